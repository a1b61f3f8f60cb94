// What cards have done is told with the call that asked for it.
#include <orrery/hw/trace_sink.h>
#include <orrery/prof.h>
#include <orrery/prof_calls.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "tests/unit/prof/stream_fixture.h"
#include "tests/unit/prof/subscription.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/signal_log.h"

namespace orrery::umd::test {
namespace {

struct Done {
    std::string name, stream, from_name;
    orrProfRecord record;
    orrProfWork work;
    std::optional<orrProfWorkCounters> counters;
};

// Records of work come on other threads.
class Watched {
  public:
    explicit Watched(std::uint64_t want = orrProfWantWork) : subscription_(want, &told, this) {}

    // All there is now.
    std::vector<Done> flushed() {
        EXPECT_OK(orrProfFlush());
        const std::lock_guard lock(mutex_);
        return done_;
    }
    std::vector<Done> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return done_.size() >= count; });
        return done_;
    }
    std::uint64_t last_call() {
        const std::lock_guard lock(mutex_);
        return last_call_;
    }
    std::size_t count() {
        const std::lock_guard lock(mutex_);
        return done_.size();
    }
    int lost() {
        const std::lock_guard lock(mutex_);
        return lost_;
    }
    std::uint64_t lost_work() {
        const std::lock_guard lock(mutex_);
        return lost_work_;
    }
    std::function<void()> and_then;
    std::function<void(const orrProfRecord&)> at_leave;

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Watched*>(user);
        if (record->kind == orrProfLeave && self.at_leave) self.at_leave(*record);
        {
            const std::lock_guard lock(self.mutex_);
            if (record->kind == orrProfEnter) self.last_call_ = record->correlation;
            if (record->kind == orrProfWorkLost) {
                ++self.lost_;
                self.lost_work_ += static_cast<const orrProfWork*>(record->params)->lost;
            }
            if (record->kind != orrProfWorkDone) return;
            const auto& work = *static_cast<const orrProfWork*>(record->params);
            self.done_.push_back({record->name,
                                  work.stream_name,
                                  work.from_name == nullptr ? "" : work.from_name,
                                  *record,
                                  work,
                                  {}});
            if (work.counters != nullptr) self.done_.back().counters = *work.counters;
        }
        self.more_.notify_all();
        if (self.and_then) self.and_then();
    }
    std::mutex mutex_;
    std::condition_variable more_;
    std::vector<Done> done_;
    std::uint64_t last_call_ = 0;
    int lost_ = 0;
    std::uint64_t lost_work_ = 0;
    Subscription subscription_;
};

class Work : public NamedStream {
  protected:
    void copy(std::size_t bytes) {
        ASSERT_OK(orrMemcpyAsync(memory_, at(memory_, 2048), bytes, orrMemcpyDeviceToDevice, stream_));
    }
    void with_card(const std::function<void(FakeCard& card)>& what) {
        FakeCard& card = system_.card();
        const std::lock_guard lock(card.mutex());
        what(card);
    }
};

TEST_F(Work, HasItsCallItsTimesAndItsStream) {
    Watched watched(orrProfWantWork | orrProfWantCalls);
    ASSERT_OK(orrProfExternalPush(77));
    copy(1024);
    const std::uint64_t call = watched.last_call();
    ASSERT_OK(orrProfExternalPop(nullptr));
    fill(512);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "copy");
    EXPECT_EQ(all[0].stream, "stream 'main' on device 0");
    EXPECT_EQ(all[0].record.correlation, call);
    EXPECT_EQ(all[0].record.external, 77u);
    EXPECT_EQ(all[0].record.thread, static_cast<std::uint64_t>(::gettid()));
    EXPECT_EQ(all[0].work.device, 0);
    EXPECT_EQ(all[0].work.operation, static_cast<std::uint32_t>(orrProfOperationCopy));
    EXPECT_EQ(all[0].work.outcome, static_cast<std::uint64_t>(orrProfOutcomeDone));
    EXPECT_EQ(all[0].work.end_ps - all[0].work.begin_ps, 10'240u) << "what the card says";
    EXPECT_GT(all[0].work.submitted_ns, 0u);
    EXPECT_EQ(all[0].work.bytes, 1024u);
    EXPECT_EQ(all[0].work.reduces, 0u);
    EXPECT_EQ(all[0].work.source, 0);
    EXPECT_EQ(all[0].work.destination, 0);
    EXPECT_EQ(all[1].name, "fill");
    EXPECT_EQ(all[1].work.bytes, 512u);
    EXPECT_EQ(all[1].work.destination, 0);
    EXPECT_GT(all[1].record.correlation, call);
    EXPECT_EQ(all[1].record.external, 0u);
    EXPECT_EQ(all[1].work.stream, all[0].work.stream);
    EXPECT_GT(all[1].work.index, all[0].work.index);
}

// Its destination is read as well, so who knows what copies can reach has to know.
TEST_F(Work, OfAReductionHasANameOfItsOwn) {
    Watched watched;
    ASSERT_OK(orrMemcpyReduceAsync(memory_, at(memory_, 2048), 64, orrFloat32, orrReduceSum, 0, stream_));
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].name, "reduction");
    EXPECT_EQ(all[0].work.operation, static_cast<std::uint32_t>(orrProfOperationCopy));
    EXPECT_EQ(all[0].work.reduces, 1u);
    EXPECT_EQ(all[0].work.bytes, 256u);
    EXPECT_EQ(all[0].work.source, 0);
    EXPECT_EQ(all[0].work.destination, 0);
}

TEST_F(Work, HadEndedWhenAWaitReturned) {
    Watched watched;
    fill(64);
    synchronize();
    const auto waited_ns = static_cast<std::uint64_t>(now_ns());
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    copy(1024);
    ASSERT_OK(orrEventRecord(event, stream_));
    ASSERT_OK(orrEventSynchronize(event));
    const auto event_ns = static_cast<std::uint64_t>(now_ns());
    fill(64);
    const auto all = watched.wait_for(3);
    EXPECT_LE(all[0].work.ended_by_ns, waited_ns);
    EXPECT_GT(all[0].work.ended_by_ns, all[0].work.submitted_ns);
    EXPECT_LE(all[1].work.ended_by_ns, event_ns);
    EXPECT_GT(all[1].work.ended_by_ns, waited_ns);
    EXPECT_EQ(all[2].work.ended_by_ns, all[2].record.host_ns) << "nobody has waited for it";
    ASSERT_OK(orrEventDestroy(event));
}

// As many as the card has room for, at once: the look that is due next has them all.
TEST_F(Work, ThatComesAtOnceAfterAnIdleTimeIsNotLost) {
    constexpr std::size_t kRoom = 43'000;
    with_card([](FakeCard& card) { card.work_room = kRoom; });
    Watched watched;
    fill(64);
    watched.wait_for(1);  // looks go on
    with_card([](FakeCard& card) {
        drm_orr_work_record other{};
        other.queue = 77;
        other.kind = ORR_WORK_JOB;
        for (std::size_t i = 0; i < kRoom - 100; ++i)
            card.add_work(other, false);
    });
    for (int i = 0; i < 100; ++i)
        fill(64);
    watched.wait_for(101);
    EXPECT_EQ(watched.lost(), 0);
}

// What a neighbour has the card write over while nothing of this process is under way is none of its own.
TEST_F(Work, ThatIsAllToldIsNotLostWithOthers) {
    Watched watched;
    fill(64);
    synchronize();
    (void)watched.flushed();
    with_card([](FakeCard& card) { card.work_lost = true; });
    EXPECT_EQ(watched.flushed().size(), 1u);
    EXPECT_EQ(watched.lost(), 0);
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 2u);
    EXPECT_EQ(watched.lost(), 0);
}

// Its records are not found here, and the looks come as often as they need.
TEST_F(Work, BesideANeighbourThatFillsTheRingIsTold) {
    Watched watched;
    fill(64);
    watched.wait_for(1);
    // There is always something under way, so it never dozes: who wakes it has a look of his own.
    orrStream_t second = nullptr;
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrStreamCreate(&second, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(second, semaphore, 1, nullptr));
    fill(64);
    watched.wait_for(2);
    // Less than from one look to the next where few come.
    with_card([](FakeCard& card) { card.work_lives = std::chrono::milliseconds(14); });
    for (int i = 0; i < 3'000 && watched.count() < 20; ++i) {
        fill(64);
        synchronize();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(watched.count(), 20u);
    with_card([](FakeCard& card) { card.work_lives = {}; });
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    ASSERT_OK(orrStreamSynchronize(second));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrStreamDestroy(second));
}

// It is submitted and ends when the card's records have just been read.
TEST_F(Work, ThatEndsBehindALookIsToldByTheNextOne) {
    Watched watched;
    fill(64);
    watched.wait_for(1);
    WorkLog& log = (*Runtime::usable()->context(0))->work_log();
    for (std::size_t i = 2; i < 6; ++i) {
        std::atomic<bool> done = false;
        with_card([&](FakeCard& card) {
            card.on_work_read = [&, once = std::make_shared<std::atomic<bool>>(false)] {
                if (once->exchange(true)) return;
                fill(64);
                synchronize();
                done = true;
            };
        });
        while (!done)
            std::this_thread::yield();
        for (; watched.count() < i; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
            const bool dozes = log.dozes();
            EXPECT_FALSE(dozes && watched.count() < i) << "with something to tell";
        }
        with_card([](FakeCard& card) { card.on_work_read = nullptr; });
    }
}

// While nothing is under way nobody looks, and who submits work says so.
TEST_F(Work, ThatComesAfterADozeIsToldToo) {
    Watched watched;
    fill(64);
    watched.wait_for(1);
    WorkLog& log = (*Runtime::usable()->context(0))->work_log();
    for (std::size_t i = 1; i < 4; ++i) {
        while (!log.dozes())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(log.is_on());
        orrSemaphore_t semaphore = nullptr;
        ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
        // The card cannot be done with this until the host says so.
        ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
        // But for the moment in which it sees that there is something.
        while (log.dozes())
            std::this_thread::yield();
        fill(64);
        ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
        watched.wait_for(1 + 2 * i);  // the wait, too
        ASSERT_OK(orrSemaphoreDestroy(semaphore));
    }
}

TEST_F(Work, IsToldWithoutAFlushToo) {
    Watched watched;
    fill(64);
    const auto all = watched.wait_for(1);
    EXPECT_NE(all[0].record.correlation, 0u) << "also where calls are not told";
}

// Who flushes inside of a callback: what it takes from the card is told by another thread.
TEST_F(Work, ThatACallbackFlushesIsTold) {
    Watched watched(orrProfWantWork | orrProfWantCalls);
    watched.at_leave = [&](const orrProfRecord& record) {
        if (record.call != orrProfCall_orrStreamSynchronize) return;
        EXPECT_OK(orrProfFlush());
        // Its stream too: what it did is told all the same.
        const orrStream_t gone = std::exchange(stream_, nullptr);
        if (gone != nullptr) EXPECT_OK(orrStreamDestroy(gone));
    };
    fill(64);
    copy(1024);
    synchronize();
    const auto all = watched.wait_for(2);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "fill");
    EXPECT_EQ(all[1].name, "copy");
    EXPECT_EQ(all[1].stream, "stream 'main' on device 0");
}

TEST_F(Work, OfAStreamIsToldBeforeTheStreamGoes) {
    Watched watched;
    fill(64);
    ASSERT_OK(orrStreamDestroy(stream_));
    EXPECT_EQ(watched.wait_for(1).size(), 1u);
    // The next one has its number at the card, and another one here.
    ASSERT_OK(orrStreamCreate(&stream_, 0));
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_NE(all[0].work.stream, all[1].work.stream);
}

TEST_F(Work, OfAWaitIsFromItsBeginToItsEnd) {
    Watched watched;
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    fill(64);
    FakeCard& card = system_.card();
    while (true) {  // until the card has come to it
        const std::lock_guard lock(card.mutex());
        if (std::ranges::any_of(card.queues, [](const auto& queue) { return queue.waiting; })) break;
    }
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "wait");
    EXPECT_EQ(all[0].work.operation, static_cast<std::uint32_t>(orrProfOperationWait));
    EXPECT_LT(all[0].work.begin_ps, all[0].work.end_ps);
    EXPECT_LE(all[0].work.end_ps, all[1].work.begin_ps);
    EXPECT_EQ(all[0].work.from, static_cast<std::uint32_t>(orrProfFromHost));
    EXPECT_EQ(all[0].from_name, "");
}

// Who ended a wait: nobody rather than the wrong one.
TEST(SignalLog, DoesNotTakeWhatStandsBehindTheWait) {
    SignalLog log;
    constexpr std::uint64_t kSemaphore = 0x5e3a;
    log.note(kSemaphore, 1, {orrProfFromStream, 7, 11});
    EXPECT_NE(log.find(kSemaphore, 0, 1, 7, 10).from, orrProfFromStream);
    EXPECT_EQ(log.find(kSemaphore, 0, 1, 7, 12).from, orrProfFromStream);
    EXPECT_EQ(log.find(kSemaphore, 0, 1, 8, 10).index, 11u);
}

TEST(SignalLog, OfWhatOthersSignalTooKnowsExactValuesOnly) {
    SignalLog log;
    constexpr std::uint64_t kSemaphore = 0x5e3a;
    const auto find = [&](std::uint64_t value, std::uint64_t stream) {
        return log.find(kSemaphore, log.generation(kSemaphore), value, stream, 10).from;
    };
    log.begin(kSemaphore, true);
    EXPECT_EQ(find(1, 7), orrProfFromOutside);
    log.note(kSemaphore, 2, {orrProfFromStream, 7, 11});
    EXPECT_EQ(find(1, 7), orrProfFromOutside) << "the wait's own stream answers";
    EXPECT_EQ(find(1, 8), orrProfFromUnknown) << "somebody else, once that was there";
    EXPECT_EQ(find(2, 8), orrProfFromStream);
    EXPECT_EQ(find(3, 8), orrProfFromOutside);
}

TEST(SignalLog, WhatIsForgottenIsNobodys) {
    SignalLog log;
    constexpr std::uint64_t kSemaphore = 0x5e3a;
    for (std::uint64_t value = 1; value <= 5'000; ++value)
        log.note(kSemaphore, value, {orrProfFromStream, 7, value});
    EXPECT_EQ(log.find(kSemaphore, 0, 500, 8, 1).from, orrProfFromUnknown);
    EXPECT_EQ(log.find(kSemaphore, 0, 4'000, 8, 1).index, 4'000u);
    // Another semaphore is there now: waits for this one are not told with its signals.
    log.begin(kSemaphore, false);
    log.note(kSemaphore, 4'000, {orrProfFromStream, 9, 1});
    EXPECT_EQ(log.find(kSemaphore, 0, 4'000, 8, 1).from, orrProfFromUnknown);
    EXPECT_EQ(log.find(kSemaphore, log.generation(kSemaphore), 4'000, 8, 1).stream, 9u);
}

// So whoever reads it can go from a wait to what it waited for.
TEST_F(Work, OfAWaitHasTheStreamThatEndedIt) {
    Watched watched;
    orrSemaphore_t semaphore = nullptr;
    orrStream_t other = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSemaphoreSetName(semaphore, "gate"));
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    FakeCard& card = system_.card();
    const auto until_waits = [&](std::size_t count) {
        while (true) {
            const std::lock_guard lock(card.mutex());
            if (std::ranges::count_if(card.queues, [](const auto& queue) { return queue.waiting; }) ==
                static_cast<std::ptrdiff_t>(count))
                break;
        }
    };
    // `stream_` waits for the host; `other` for an event of it.
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    fill(64);
    ASSERT_OK(orrEventRecord(event, stream_));
    ASSERT_OK(orrStreamWaitEvent(other, event, 0));
    until_waits(2);
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    ASSERT_OK(orrStreamSynchronize(other));
    const auto all = watched.flushed();
    const auto of = [&](const std::string& name, auto&& has) -> const Done& {
        return *std::ranges::find_if(all, [&](const Done& one) { return one.name == name && has(one); });
    };
    ASSERT_EQ(all.size(), 3u);
    const Done& filled = of("fill", [](const Done&) { return true; });
    const Done& first = of("wait", [&](const Done& one) { return one.work.stream == filled.work.stream; });
    const Done& second = of("wait", [&](const Done& one) { return one.work.stream != filled.work.stream; });
    EXPECT_EQ(first.from_name, "gate");
    EXPECT_EQ(first.work.from, static_cast<std::uint32_t>(orrProfFromHost));
    EXPECT_EQ(second.work.from, static_cast<std::uint32_t>(orrProfFromStream));
    EXPECT_EQ(second.work.from_stream, filled.work.stream);
    EXPECT_EQ(second.work.from_index, filled.work.index + 1);
    EXPECT_OK(orrStreamDestroy(other));
    EXPECT_OK(orrEventDestroy(event));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

// The memory of one that was destroyed is the next one's.
TEST_F(Work, OfAWaitDoesNotHaveWhoSignalledAnEarlierSemaphore) {
    Watched watched;
    orrStream_t other = nullptr, third = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrStreamCreate(&third, 0));
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    for (std::uint64_t value = 1; value <= 10; ++value)
        ASSERT_OK(orrStreamSignalSemaphore(other, semaphore, value));
    ASSERT_OK(orrStreamSynchronize(other));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 5, nullptr));
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, third));
    ASSERT_OK(orrStreamSignalSemaphore(third, semaphore, 10));
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    const auto [filled, waited] =
        all[0].name == "fill" ? std::pair(all[0], all[1]) : std::pair(all[1], all[0]);
    EXPECT_NE(waited.work.from, static_cast<std::uint32_t>(orrProfFromOutside)) << "nobody else has it";
    if (waited.work.from == orrProfFromStream) {
        EXPECT_EQ(waited.work.from_stream, filled.work.stream);
    }
    EXPECT_OK(orrStreamDestroy(other));
    EXPECT_OK(orrStreamDestroy(third));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

// Who signals before somebody listens is not another process.
TEST_F(Work, OfAWaitForWhatWasSubmittedBeforeIsNobodys) {
    orrStream_t other = nullptr, third = nullptr;
    orrSemaphore_t semaphore = nullptr, gate = nullptr, shared = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrStreamCreate(&third, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrSemaphoreCreate(&shared, orrSemaphoreInterprocess));
    ASSERT_OK(orrStreamWaitSemaphore(other, gate, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(other, semaphore, 1));
    ASSERT_OK(orrStreamSignalSemaphore(other, shared, 1));
    Watched watched;
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    ASSERT_OK(orrStreamWaitSemaphore(third, shared, 1, nullptr));
    FakeCard& card = system_.card();
    while (true) {  // until the card has come to all three
        const std::lock_guard lock(card.mutex());
        if (std::ranges::count_if(card.queues, [](const auto& queue) { return queue.waiting; }) == 3) break;
    }
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    synchronize();
    ASSERT_OK(orrStreamSynchronize(third));
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    for (const Done& one : all)
        EXPECT_EQ(one.work.from, static_cast<std::uint32_t>(orrProfFromUnknown));
    EXPECT_OK(orrStreamDestroy(other));
    EXPECT_OK(orrStreamDestroy(third));
    for (const orrSemaphore_t one : {semaphore, gate, shared})
        EXPECT_OK(orrSemaphoreDestroy(one));
}

TEST_F(Work, OfCopiesHasTheirBytesAndSides) {
    Watched watched;
    void* host = nullptr;
    ASSERT_OK(orrMallocHost(&host, 4096, 0));
    ASSERT_OK(orrMemcpyAsync(memory_, host, 100, orrMemcpyHostToDevice, stream_));
    ASSERT_OK(orrMemcpyAsync(host, memory_, 200, orrMemcpyDeviceToHost, stream_));
    ASSERT_OK(orrMemcpy2DAsync(memory_, 64, host, 128, 16, 3, orrMemcpyHostToDevice, stream_));
    void* const to[] = {memory_, host};
    const void* const from[] = {host, memory_};
    const std::size_t bytes[] = {8, 16};
    ASSERT_OK(orrMemcpyBatchAsync(to, from, bytes, 2, 0, stream_));
    ASSERT_OK(orrMemcpyBatchAsync(to, from, bytes, 1, 0, stream_));
    orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
    box.dst = memory_;
    box.src = host;
    box.dims = 4;
    for (std::size_t i = 0; i < 4; ++i)
        box.extent[i] = 4;
    box.dst_stride[0] = box.src_stride[0] = 8;
    box.dst_stride[1] = box.src_stride[1] = 40;
    box.dst_stride[2] = box.src_stride[2] = 200;
    box.kind = orrMemcpyHostToDevice;
    ASSERT_OK(orrMemcpyNDAsync(&box, stream_));
    synchronize();
    using Sides = std::vector<std::vector<std::int64_t>>;
    Sides sides;
    for (const Done& one : watched.flushed())
        sides.push_back({static_cast<std::int64_t>(one.work.bytes), one.work.source, one.work.destination});
    EXPECT_EQ(sides, (Sides{{100, orrProfPlaceHost, 0},
                            {200, 0, orrProfPlaceHost},
                            {48, orrProfPlaceHost, 0},
                            {24, orrProfPlaceUnknown, orrProfPlaceUnknown},
                            {8, orrProfPlaceHost, 0},
                            {256, orrProfPlaceHost, 0}}));
    EXPECT_OK(orrFreeHost(host));
}

TEST_F(Work, IsAskedForOnlyWhileSomebodyWantsIt) {
    FakeCard& card = system_.card();
    const auto wanted = [&] {
        const std::lock_guard lock(card.mutex());
        return card.work_wanted;
    };
    fill(64);
    synchronize();
    EXPECT_FALSE(wanted());
    {
        Watched watched;
        fill(64);
        EXPECT_TRUE(wanted());
        synchronize();
        EXPECT_EQ(watched.flushed().size(), 1u) << "not of what was submitted before";
    }
    while (wanted())  // the library's thread notices
        std::this_thread::yield();
    Watched again;
    fill(64);
    synchronize();
    EXPECT_EQ(again.flushed().size(), 1u);
}

TEST_F(Work, HasCountersWhereTheyAreWanted) {
    Watched watched;
    fill(64);
    synchronize();
    ASSERT_EQ(watched.flushed().size(), 1u);
    EXPECT_FALSE(watched.flushed()[0].counters);
    {
        Watched counted(orrProfWantWork | orrProfWantCounters);
        fill(64);
        synchronize();
        const auto all = counted.flushed();
        ASSERT_EQ(all.size(), 1u);
        ASSERT_TRUE(all[0].counters);
        EXPECT_EQ(all[0].counters->size, sizeof(orrProfWorkCounters));
        // What the fake card says, by number.
        const std::uint64_t first = 1000 * all[0].work.index;
        EXPECT_EQ(all[0].counters->cores, first + ORR_JOB_CORES);
        EXPECT_EQ(all[0].counters->moved, first + ORR_JOB_MOVED);
        EXPECT_EQ(all[0].counters->flops_f32, first + ORR_JOB_FLOPS_F32);
        EXPECT_EQ(all[0].counters->tlb_walked, first + ORR_JOB_TLB_WALKED);
        EXPECT_EQ(all[0].counters->copy_setup_ps, first + ORR_JOB_COPY_SETUP_PS);
        EXPECT_EQ(all[0].counters->copy_peer_ps, first + ORR_JOB_COPY_PEER_PS);
        EXPECT_EQ(all[0].counters->link_ports, first + ORR_JOB_LINK_PORTS);
        EXPECT_EQ(all[0].counters->pause_ps, first + ORR_JOB_PAUSE_PS);
    }
    // A wait has none.
    Watched again(orrProfWantWork | orrProfWantCounters);
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    FakeCard& card = system_.card();
    while (true) {  // until the card has come to it
        const std::lock_guard lock(card.mutex());
        if (std::ranges::any_of(card.queues, [](const auto& queue) { return queue.waiting; })) break;
    }
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    synchronize();
    const auto all = again.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].name, "wait");
    EXPECT_FALSE(all[0].counters);
}

// Cards before 2.15 count no more.
TEST_F(Work, HasTheCountersThatTheCardCounts) {
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().counters_known = (std::uint64_t{1} << ORR_JOB_COPY_SETUP_PS) - 1;
    }
    Watched watched(orrProfWantWork | orrProfWantCounters);
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 1u);
    ASSERT_TRUE(all[0].counters);
    EXPECT_EQ(all[0].counters->size, offsetof(orrProfWorkCounters, copy_setup_ps));
    EXPECT_EQ(all[0].counters->tlb_walked, 1000 * all[0].work.index + ORR_JOB_TLB_WALKED);
    EXPECT_EQ(all[0].counters->copy_setup_ps, 0u);
}

// They take room of all processes'.
TEST_F(Work, HasCountersOnlyWhileTheyAreWanted) {
    FakeCard& card = system_.card();
    const auto counts = [&] {
        const std::lock_guard lock(card.mutex());
        return card.counters_wanted;
    };
    Watched watched;
    {
        Watched counted(orrProfWantWork | orrProfWantCounters);
        fill(64);
        EXPECT_TRUE(counts());
        synchronize();
        EXPECT_EQ(counted.flushed().size(), 1u);
    }
    while (counts())  // the library's thread notices
        std::this_thread::yield();
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u) << "the records go on";
    EXPECT_TRUE(all[0].counters);
    EXPECT_FALSE(all[1].counters);
}

// Who subscribes to all of what an older version knew costs nobody that room.
TEST_F(Work, HasNoCountersForWhoJustSubscribes) {
    Watched watched(0);
    fill(64);
    with_card([](const FakeCard& card) {
        EXPECT_TRUE(card.work_wanted);
        EXPECT_FALSE(card.counters_wanted);
    });
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].counters);
}

TEST_F(Work, HasCountersOnceTheCardCan) {
    with_card([](FakeCard& card) { card.counters_busy = 1; });
    Watched watched(orrProfWantWork | orrProfWantCounters);
    fill(64);
    synchronize();
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_FALSE(all[0].counters);
    EXPECT_TRUE(all[1].counters);
}

// Who upgrades while others have records.
TEST_F(Work, KeepsItsRecordsWhileTheCardCannotCount) {
    Watched watched;
    fill(64);
    synchronize();
    with_card([](FakeCard& card) { card.counters_busy = 1; });
    Watched counted(orrProfWantWork | orrProfWantCounters);
    for (int i = 0; i < 2; ++i) {
        fill(64);
        synchronize();
    }
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_FALSE(all[1].counters);
    EXPECT_TRUE(all[2].counters);
}

TEST_F(Work, ThatIsLostIsSaidToBe) {
    Watched watched;
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    with_card([](FakeCard& card) { card.work_lost = true; });
    (void)watched.flushed();
    EXPECT_EQ(watched.lost(), 1);
    EXPECT_EQ(watched.lost_work(), 0u) << "it may have been a wait, or another process's";
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    synchronize();
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
}

// Of each packet that the library gave the card it knows whether it was told.
TEST_F(Work, ThatIsLostIsCounted) {
    Watched watched;
    orrStream_t second = nullptr;
    ASSERT_OK(orrStreamCreate(&second, 0));
    fill(64);
    synchronize();
    (void)watched.flushed();
    with_card([](FakeCard& card) { card.loses_work = true; });
    for (int n = 0; n < 5; ++n)
        fill(64);
    for (int n = 0; n < 2; ++n)
        ASSERT_OK(orrMemsetAsync(at(memory_, 1024), 1, 64, second));
    synchronize();
    ASSERT_OK(orrStreamSynchronize(second));
    with_card([](FakeCard& card) { card.loses_work = false; });
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 2u);
    EXPECT_EQ(watched.lost_work(), 7u);
    const int times = watched.lost();
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 3u);
    EXPECT_EQ(watched.lost_work(), 7u) << "each once";
    EXPECT_EQ(watched.lost(), times);
    ASSERT_OK(orrStreamDestroy(second));
}

// Also when a callback of a call has taken them from the card.
TEST_F(Work, ThatACallbackLosesIsCounted) {
    Watched watched(orrProfWantWork | orrProfWantCalls);
    with_card([](FakeCard& card) { card.loses_work = true; });
    fill(64);
    fill(64);
    synchronize();
    watched.at_leave = [&](const orrProfRecord& record) {
        if (record.call == orrProfCall_orrGetDeviceCount) EXPECT_OK(orrProfFlush());
    };
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    watched.at_leave = nullptr;
    (void)watched.flushed();
    EXPECT_EQ(watched.lost_work(), 2u);
}

TEST_F(Work, OfACardThatSaysNothingIsNotTold) {
    system_.card().records_work = false;
    Watched watched;
    fill(64);
    synchronize();
    EXPECT_FAIL(orrProfFlush(), orrErrorNotSupported, "does not say when");
}

TEST_F(Work, CallbacksMayCallTheApi) {
    Watched watched;
    watched.and_then = [&] {
        EXPECT_OK(orrProfFlush());  // does nothing
        orrStream_t another = nullptr;
        EXPECT_OK(orrStreamCreate(&another, 0));
        EXPECT_OK(orrStreamDestroy(another));
    };
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 1u);
}

TEST_F(Work, OfManyThreadsIsAllThere) {
    Watched watched;
    constexpr int kThreads = 4, kFills = 500;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            orrStream_t own = nullptr;
            EXPECT_OK(orrStreamCreate(&own, 0));
            for (int n = 0; n < kFills; ++n)
                EXPECT_OK(orrMemsetAsync(memory_, 1, 8, own));
            EXPECT_OK(orrStreamSynchronize(own));
            EXPECT_OK(orrStreamDestroy(own));
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    const auto all = watched.flushed();
    EXPECT_EQ(all.size(), static_cast<std::size_t>(kThreads * kFills));
    std::set<std::uint64_t> calls, streams;
    for (const Done& one : all) {
        calls.insert(one.record.correlation);
        streams.insert(one.work.stream);
    }
    EXPECT_EQ(calls.size(), all.size()) << "each has a call of its own";
    EXPECT_EQ(streams.size(), static_cast<std::size_t>(kThreads));
}

}  // namespace
}  // namespace orrery::umd::test
