// Signals of semaphores are told with who gave them, and marks in streams with when the stream came to them.
#include <orrery/fw/failure.h>
#include <orrery/graph.h>
#include <orrery/prof.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/prof/stream_fixture.h"
#include "tests/unit/prof/subscription.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/stream.h"
#include "umd/runtime/stream_trails.h"

namespace orrery::umd::test {
namespace {

struct Told {
    std::uint32_t kind = 0;
    std::string name, domain, stream, semaphore;
    orrProfRecord record{};
    orrProfWork work{};
    orrProfSignal signal{};
    orrProfStreamMark mark{};
};

class Heard {
  public:
    explicit Heard(std::uint64_t want) : subscription_(want, &told, this) {}

    // All there is now, of one kind.
    std::vector<Told> flushed(std::uint32_t kind) {
        EXPECT_OK(orrProfFlush());
        const std::lock_guard lock(mutex_);
        std::vector<Told> all;
        std::ranges::copy_if(told_, std::back_inserter(all),
                             [&](const Told& one) { return one.kind == kind; });
        return all;
    }
    std::uint64_t lost() {
        const std::lock_guard lock(mutex_);
        return lost_;
    }

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Heard*>(user);
        const auto text = [](const char* name) { return std::string(name == nullptr ? "" : name); };
        Told one;
        one.kind = record->kind;
        one.name = text(record->name);
        one.domain = text(record->domain);
        one.record = *record;
        if (record->kind == orrProfWorkDone || record->kind == orrProfWorkLost) {
            one.work = *static_cast<const orrProfWork*>(record->params);
            one.stream = text(one.work.stream_name);
        } else if (record->kind == orrProfSignalDone) {
            one.signal = *static_cast<const orrProfSignal*>(record->params);
            one.stream = text(one.signal.stream_name);
            one.semaphore = text(one.signal.semaphore_name);
        } else if (record->kind == orrProfStreamMarker) {
            one.mark = *static_cast<const orrProfStreamMark*>(record->params);
            one.stream = text(one.mark.stream_name);
        }
        const std::lock_guard lock(self.mutex_);
        if (record->kind == orrProfWorkLost) self.lost_ += one.work.lost;
        self.told_.push_back(std::move(one));
    }
    std::mutex mutex_;
    std::vector<Told> told_;
    std::uint64_t lost_ = 0;
    Subscription subscription_;
};

class Trails : public NamedStream {
  protected:
    void SetUp() override {
        ASSERT_NO_FATAL_FAILURE(NamedStream::SetUp());
        ASSERT_OK(orrSemaphoreCreate(&semaphore_, 0));
        ASSERT_OK(orrSemaphoreSetName(semaphore_, "gate"));
    }
    void until_waits() {
        FakeCard& card = system_.card();
        while (true) {
            const std::lock_guard lock(card.mutex());
            if (std::ranges::any_of(card.queues, [](const auto& queue) { return queue.waiting; })) return;
        }
    }

    orrSemaphore_t semaphore_ = nullptr;
};

using Signals = Trails;

TEST_F(Signals, AreToldWithWhoGaveThem) {
    Heard heard(orrProfWantWork | orrProfWantSignals);
    ASSERT_OK(orrProfExternalPush(5));
    fill(64);
    ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore_, 3));
    ASSERT_OK(orrProfExternalPop(nullptr));
    synchronize();
    ASSERT_OK(orrSemaphoreSignal(semaphore_, 7));
    const auto work = heard.flushed(orrProfWorkDone);
    auto all = heard.flushed(orrProfSignalDone);
    ASSERT_EQ(work.size(), 1u);
    while (all.size() < 2)  // nobody waits for the host's
        all = heard.flushed(orrProfSignalDone);
    ASSERT_EQ(all.size(), 2u);
    const orrProfSignal& one = all[0].signal;
    EXPECT_EQ(all[0].name, "signal");
    EXPECT_EQ(all[0].stream, "stream 'main' on device 0");
    EXPECT_EQ(all[0].semaphore, "gate");
    EXPECT_EQ(all[0].record.external, 5u);
    EXPECT_GT(all[0].record.correlation, work[0].record.correlation);
    EXPECT_EQ(one.stream, work[0].work.stream);
    EXPECT_EQ(one.index, work[0].work.index + 1);
    EXPECT_EQ(one.value, 3u);
    EXPECT_GT(one.time_ps, work[0].work.end_ps);
    EXPECT_GT(one.submitted_ns, 0u);
    EXPECT_EQ(one.memory, 0);
    EXPECT_EQ(one.outcome, static_cast<std::uint32_t>(orrProfOutcomeDone));
    EXPECT_NE(one.semaphore, 0u);
    const orrProfSignal& host = all[1].signal;
    EXPECT_EQ(host.stream, 0u) << "the host's";
    EXPECT_EQ(host.semaphore, one.semaphore);
    EXPECT_EQ(host.value, 7u);
    EXPECT_GT(host.time_ps, one.time_ps);
}

TEST_F(Signals, AreTheOnesThatWaitsName) {
    Heard heard(orrProfWantWork | orrProfWantSignals);
    orrStream_t other = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore_, 2, nullptr));
    until_waits();
    ASSERT_OK(orrStreamSignalSemaphore(other, semaphore_, 1));
    ASSERT_OK(orrStreamSignalSemaphore(other, semaphore_, 2));
    synchronize();
    const auto waits = heard.flushed(orrProfWorkDone);
    const auto signals = heard.flushed(orrProfSignalDone);
    ASSERT_EQ(waits.size(), 1u);
    ASSERT_EQ(signals.size(), 2u);
    EXPECT_EQ(waits[0].work.semaphore, signals[1].signal.semaphore);
    EXPECT_EQ(waits[0].work.value, 2u);
    EXPECT_EQ(waits[0].work.from_stream, signals[1].signal.stream);
    EXPECT_EQ(waits[0].work.from_index, signals[1].signal.index);
    EXPECT_OK(orrStreamDestroy(other));
}

// The next semaphore may be at the same place.
TEST_F(Signals, OfTwoSemaphoresHaveDifferentNumbers) {
    Heard heard(orrProfWantWork | orrProfWantSignals);
    for (int turn = 0; turn < 2; ++turn) {
        ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore_, 4));
        synchronize();
        ASSERT_OK(orrSemaphoreDestroy(semaphore_));
        ASSERT_OK(orrSemaphoreCreate(&semaphore_, 0));
    }
    const auto all = heard.flushed(orrProfSignalDone);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_NE(all[0].signal.semaphore, all[1].signal.semaphore);
}

TEST_F(Signals, AreNotToldToWhoDoesNotWantThem) {
    Heard heard(orrProfWantWork);
    ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore_, 1));
    fill(64);
    synchronize();
    EXPECT_EQ(heard.flushed(orrProfWorkDone).size(), 1u);
    EXPECT_TRUE(heard.flushed(orrProfSignalDone).empty());
}

TEST_F(Signals, OfAStreamThatStopsHaveFailed) {
    Heard heard(orrProfWantWork | orrProfWantSignals);
    orrSemaphore_t never = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&never, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, never, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore_, 9));
    until_waits();
    ASSERT_OK(orrStreamAbort(stream_));
    EXPECT_NE(orrSemaphoreWait(semaphore_, 9, ORR_NO_LIMIT), orrSuccess);
    const auto all = heard.flushed(orrProfSignalDone);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].signal.outcome, static_cast<std::uint32_t>(orrProfOutcomeFailed));
    EXPECT_EQ(all[0].signal.value, 9u) << "as it was to be";
    EXPECT_OK(orrSemaphoreDestroy(never));
}

TEST_F(Signals, ThatAreLostAreCounted) {
    Heard heard(orrProfWantWork | orrProfWantSignals);
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().loses_work = true;
    }
    for (std::uint64_t value = 1; value <= 3; ++value)
        ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore_, value));
    synchronize();
    EXPECT_TRUE(heard.flushed(orrProfSignalDone).empty());
    EXPECT_EQ(heard.lost(), 3u);
}

TEST(SignalTrail, FindsByAddressAndValueInOrder) {
    SignalTrail trail;
    for (std::uint64_t index = 0; index < 6; ++index)
        EXPECT_TRUE(trail.add({.index = index, .va = 16 * (index % 2), .value = index / 2}));
    EXPECT_FALSE(trail.take(64, 0, false));
    EXPECT_EQ(trail.take(0, 0, false)->index, 0u);
    EXPECT_EQ(trail.take(16, 1, false)->index, 3u) << "the one before had no record";
    EXPECT_EQ(trail.take(16, 77, true)->index, 5u) << "it failed, with whatever word";
    EXPECT_FALSE(trail.take(0, 1, false)) << "it is before what was found";
    EXPECT_EQ(trail.drop(4, 3), 2u) << "of packets below 3 those at 1 and 2 had none";
    EXPECT_EQ(trail.drop(6, 3), 0u) << "nothing of these was lost";
}

using Marks = Trails;

TEST_F(Marks, AreWhenAllBeforeThemIsDone) {
    orrProfDomain_t domain = nullptr;
    // The same one again, if another test of this process has taken all that there can be.
    ASSERT_OK(orrProfDomainCreate(&domain, "data"));
    Heard heard(orrProfWantWork | orrProfWantRanges);
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "first"));
    fill(64);
    ASSERT_OK(orrProfMarkStream(stream_, domain, "between"));
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "also between"));
    fill(128);
    fill(256);
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "last"));
    synchronize();
    const auto work = heard.flushed(orrProfWorkDone);
    const auto marks = heard.flushed(orrProfStreamMarker);
    ASSERT_EQ(work.size(), 3u);
    ASSERT_EQ(marks.size(), 4u);
    EXPECT_EQ(marks[0].name, "first");
    EXPECT_EQ(marks[0].mark.time_ps, 0u) << "nothing was before it";
    EXPECT_EQ(marks[0].mark.index, work[0].work.index);
    EXPECT_EQ(marks[1].name, "between");
    EXPECT_EQ(marks[1].domain, "data");
    EXPECT_EQ(marks[1].mark.time_ps, work[0].work.end_ps);
    EXPECT_EQ(marks[1].mark.stream, work[0].work.stream);
    EXPECT_EQ(marks[1].stream, "stream 'main' on device 0");
    EXPECT_EQ(marks[1].record.thread, work[0].record.thread);
    EXPECT_GE(marks[1].mark.submitted_ns, work[0].work.submitted_ns);
    EXPECT_EQ(marks[2].domain, "");
    EXPECT_EQ(marks[2].mark.time_ps, work[0].work.end_ps);
    EXPECT_EQ(marks[2].mark.index, work[1].work.index);
    EXPECT_EQ(marks[3].mark.time_ps, work[2].work.end_ps);
    EXPECT_EQ(marks[3].mark.index, work[2].work.index + 1);
}

TEST_F(Marks, AreBehindWaitsAndSignals) {
    Heard heard(orrProfWantWork | orrProfWantRanges | orrProfWantSignals);
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore_, 1, nullptr));
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "waited"));
    orrSemaphore_t next = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&next, 0));
    ASSERT_OK(orrStreamSignalSemaphore(stream_, next, 1));
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "signalled"));
    until_waits();
    EXPECT_TRUE(heard.flushed(orrProfStreamMarker).empty()) << "the stream has not come there";
    ASSERT_OK(orrSemaphoreSignal(semaphore_, 1));
    synchronize();
    const auto work = heard.flushed(orrProfWorkDone);
    const auto marks = heard.flushed(orrProfStreamMarker);
    const auto signals = heard.flushed(orrProfSignalDone);
    ASSERT_EQ(work.size(), 1u);
    ASSERT_EQ(marks.size(), 2u);
    EXPECT_EQ(marks[0].mark.time_ps, work[0].work.end_ps);
    const auto own = std::ranges::find_if(signals, [](const Told& one) { return one.signal.stream != 0; });
    ASSERT_NE(own, signals.end());
    EXPECT_EQ(marks[1].mark.time_ps, own->signal.time_ps);
    EXPECT_OK(orrSemaphoreDestroy(next));
}

TEST_F(Marks, CostTheStreamNothing) {
    fill(64);
    synchronize();
    const std::uint64_t packets = system_.card().packets();
    Heard heard(orrProfWantWork | orrProfWantRanges);
    for (int i = 0; i < 100; ++i)
        ASSERT_OK(orrProfMarkStream(stream_, nullptr, "here"));
    synchronize();
    EXPECT_EQ(system_.card().packets(), packets);
    EXPECT_EQ(heard.flushed(orrProfStreamMarker).size(), 100u);
}

TEST_F(Marks, OfWhatIsLostHaveNoTime) {
    Heard heard(orrProfWantWork | orrProfWantRanges);
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().loses_work = true;
    }
    fill(64);
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "here"));
    synchronize();
    const auto marks = heard.flushed(orrProfStreamMarker);
    ASSERT_EQ(marks.size(), 1u);
    EXPECT_EQ(marks[0].mark.time_ps, 0u);
}

TEST_F(Marks, AreRefusedWhereTheyMakeNoSense) {
    EXPECT_EQ(orrProfMarkStream(stream_, nullptr, nullptr), orrErrorInvalidValue);
    EXPECT_EQ(orrProfMarkStream(reinterpret_cast<orrStream_t>(12345), nullptr, "x"), orrErrorInvalidHandle);
    EXPECT_EQ(orrProfMarkStream(stream_, reinterpret_cast<orrProfDomain_t>(12345), "x"),
              orrErrorInvalidHandle);
    EXPECT_OK(orrProfMarkStream(stream_, nullptr, "nobody listens"));
    EXPECT_OK(orrProfMarkStream(nullptr, nullptr, "the null stream"));
    ASSERT_OK(orrStreamBeginCapture(stream_, 0));
    EXPECT_EQ(orrProfMarkStream(stream_, nullptr, "x"), orrErrorStreamCapture);
    orrGraph_t graph = nullptr;
    EXPECT_EQ(orrStreamEndCapture(&graph, stream_), orrErrorStreamCapture);
}

void mark(MarkTrail& trail, std::uint64_t index) {
    StreamMarkNote note;
    note.index = index;
    trail.add(std::move(note));
}

TEST(MarkTrail, TakesTheLastEndBeforeEachWhateverTheOrder) {
    MarkTrail trail;
    std::deque<StreamMarkNote> marks;
    trail.ended(0, 50);
    mark(trail, 2);
    mark(trail, 4);
    trail.ended(3, 70);  // packets of a stream may overlap
    trail.ended(1, 90);
    trail.take(3, marks);
    ASSERT_EQ(marks.size(), 1u) << "not all before the second one has ended";
    EXPECT_EQ(marks[0].time_ps, 90u);
    trail.ended(2, 60);
    trail.take(4, marks);
    ASSERT_EQ(marks.size(), 2u);
    EXPECT_EQ(marks[1].time_ps, 90u) << "what ended last was before the first one";
}

TEST(MarkTrail, KnowsNothingOfWhatNobodyWanted) {
    MarkTrail trail;
    std::deque<StreamMarkNote> marks;
    trail.ended(0, 50);
    trail.begin(7);
    trail.ended(1, 60);  // what came before, and is told late
    mark(trail, 7);
    trail.ended(7, 80);
    mark(trail, 8);
    trail.take(8, marks);
    ASSERT_EQ(marks.size(), 2u);
    EXPECT_EQ(marks[0].time_ps, 0u);
    EXPECT_EQ(marks[1].time_ps, 80u);
}

TEST_F(Marks, AreNotWhenWorkEndedThatAnotherSubscriberSaw) {
    std::uint64_t earlier = 0;
    {
        Heard heard(orrProfWantWork | orrProfWantRanges);
        fill(64);
        synchronize();
        const auto work = heard.flushed(orrProfWorkDone);
        ASSERT_EQ(work.size(), 1u);
        earlier = work[0].work.end_ps;
    }
    const auto stream = Runtime::usable()->streams.find(stream_);
    // Until it is noticed that nobody listens.
    while (stream->context().work_log().is_on())
        std::this_thread::yield();
    fill(128);
    synchronize();
    Heard heard(orrProfWantWork | orrProfWantRanges);
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "first"));
    fill(256);
    ASSERT_OK(orrProfMarkStream(stream_, nullptr, "second"));
    synchronize();
    const auto marks = heard.flushed(orrProfStreamMarker);
    ASSERT_EQ(marks.size(), 2u);
    EXPECT_EQ(marks[0].mark.time_ps, 0u) << "nobody knows; " << earlier << " was before the second fill";
    EXPECT_GT(marks[1].mark.time_ps, earlier);
}

// Who waits for room in a full ring has the stream's lock; a mark waits for nobody.
TEST_F(Marks, DoNotWaitForRoom) {
    Heard heard(orrProfWantWork | orrProfWantRanges);
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore_, 1, nullptr));
    const auto stream = Runtime::usable()->streams.find(stream_);
    std::thread filler([&] {
        for (int i = 0; i < 1100; ++i)
            EXPECT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    });
    while (stream->submitted() < 1024)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits, most likely
    EXPECT_OK(orrProfMarkStream(stream_, nullptr, "here"));
    EXPECT_OK(orrSemaphoreSignal(semaphore_, 1));
    filler.join();
    synchronize();
}

TEST(MarkTrail, WhatFollowsALossHasNoTimeUntilSomethingEnds) {
    MarkTrail trail;
    std::deque<StreamMarkNote> marks;
    trail.ended(0, 50);
    mark(trail, 1);
    trail.lose();
    mark(trail, 2);
    mark(trail, 2);
    mark(trail, 1);  // another thread's, which was late
    trail.ended(2, 90);
    mark(trail, 3);
    trail.take(3, marks);
    ASSERT_EQ(marks.size(), 5u);
    EXPECT_EQ(marks[1].time_ps, 0u);
    EXPECT_EQ(marks[2].time_ps, 0u);
    EXPECT_EQ(marks[3].time_ps, 0u);
    EXPECT_EQ(marks[4].time_ps, 90u);
}

}  // namespace
}  // namespace orrery::umd::test
