// When something fails, others notice nothing: healthy cards, streams that share a queue number or a
// semaphore's memory with one that failed, memory that writes are still on their way to.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

using namespace std::chrono_literals;

orrStream_t stream_on(int device, const char* name) {
    orrStream_t stream = nullptr;
    EXPECT_OK(orrSetDevice(device));
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.name = name;
    EXPECT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
    return stream;
}
orrSemaphore_t semaphore_on(int device) {
    orrSemaphore_t semaphore = nullptr;
    EXPECT_OK(orrSetDevice(device));
    EXPECT_OK(orrSemaphoreCreate(&semaphore, 0));
    return semaphore;
}
void* memory_on(int device, std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_OK(orrSetDevice(device));
    EXPECT_OK(orrMalloc(&memory, bytes));
    return memory;
}
void let_write(int device, int peer) {
    EXPECT_OK(orrSetDevice(device));
    EXPECT_OK(orrDeviceEnablePeerAccess(peer, 0));
}
// What has to come comes at once or after a quarter of a second; the limit is for hosts that give no time.
orrError_t poll(orrStream_t stream, std::chrono::milliseconds most = 30'000ms) {
    const auto end = std::chrono::steady_clock::now() + most;
    orrError_t state = orrErrorNotReady;
    while (state == orrErrorNotReady && std::chrono::steady_clock::now() < end) {
        state = orrStreamQuery(stream);
        std::this_thread::sleep_for(100us);
    }
    return state;
}
void until(const std::function<bool()>& there) {
    while (!there())
        std::this_thread::sleep_for(100us);
}
// Whether there is something in the queue of this name that the card has not done.
bool holds_work(FakeCard& card, const std::string& name) {
    const std::lock_guard lock(card.mutex());
    return std::ranges::any_of(
        card.queues, [&](const auto& queue) { return queue.options.name == name && !card.idle(queue); });
}
// Work behind it stops the stream.
void fault(FakeCard& card, void* gone, orrStream_t stream) {
    {
        const std::lock_guard lock(card.mutex());
        card.mappings.erase(reinterpret_cast<std::uintptr_t>(gone));
    }
    EXPECT_OK(orrMemsetAsync(gone, 0, 8, stream));
}

// How what is on a link dies.
enum class End : std::uint8_t { kCut, kCutAndMended, kLost };
constexpr End kEnds[] = {End::kCut, End::kCutAndMended, End::kLost};
void end(FakeCard& card, End how) {
    how == End::kLost ? card.lose() : card.cut_link();
    if (how == End::kCutAndMended) card.mend_link();  // before anybody looks
}
orrError_t told_after(End how) {
    return how == End::kLost ? orrErrorDeviceLost : orrErrorPeerAccess;
}

class Neighbour : public ::testing::Test {
  protected:
    ~Neighbour() override {
        for (orrStream_t stream : streams_)
            EXPECT_OK(orrStreamDestroy(stream));
    }
    orrStream_t stream(int device, const char* name) {
        streams_.push_back(stream_on(device, name));
        return streams_.back();
    }
    // A stream of the other card waits for it.
    void a_signal_dies(End how, bool its_stream_first) {
        orrStream_t waiter = stream(1, "waiter");
        orrStream_t source = its_stream_first ? stream_on(0, "source") : stream(0, "source");
        let_write(0, 1);
        orrSemaphore_t x = semaphore_on(1);
        ASSERT_OK(orrStreamWaitSemaphore(waiter, x, 1, nullptr));
        system_.card(1).hold_arrivals(true);
        ASSERT_OK(orrStreamSignalSemaphore(source, x, 1));
        ASSERT_OK(orrStreamSynchronize(source));
        until([&] { return system_.card(1).arrivals() == 1; });
        if (its_stream_first) ASSERT_OK(orrStreamDestroy(source));
        end(system_.card(0), how);
        system_.card(1).hold_arrivals(false);
        EXPECT_EQ(poll(waiter), told_after(how)) << orrGetLastErrorText();
        if (!its_stream_first) EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'source'"));
        if (how != End::kLost)
            EXPECT_THAT(orrGetLastErrorText(),
                        ::testing::HasSubstr("the link from port 0 of device 0 to device 1 went down"));
        EXPECT_OK(orrSemaphoreDestroy(x));
        system_.card(0).mend_link();
    }
    FakeSystem system_{2};
    std::vector<orrStream_t> streams_;
};

// The waiter is told of the lost card's cause just when somebody asks whether its own card is there.
TEST_F(Neighbour, CauseOfAPoisonedStreamIsNotTheStateOfItsCard) {
    orrStream_t waiter = stream(0, "waiter"), bystander = stream(0, "bystander"),
                source = stream(1, "source");
    let_write(1, 0);
    orrSemaphore_t promised = semaphore_on(0), gate = semaphore_on(0), never = semaphore_on(1);
    ASSERT_OK(orrStreamWaitSemaphore(source, never, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(source, promised, 1));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, promised, 1, nullptr));
    ASSERT_OK(orrStreamWaitSemaphore(bystander, gate, 1, nullptr));
    system_.card(0).pause(true);
    system_.card(1).lose();
    until([&] {
        EXPECT_EQ(orrStreamQuery(waiter), orrErrorNotReady);
        return holds_work(system_.card(0), "signals from the host");  // the failure
    });
    std::this_thread::sleep_for(50ms);  // so that the next look is at cards first
    std::atomic<bool> once{false};
    system_.card(0).on_wait = [&] {
        if (once.exchange(true)) return;
        const std::uint64_t before = system_.card(0).packets();
        system_.card(0).pause(false);
        until([&] { return system_.card(0).packets() > before; });
        std::this_thread::sleep_for(10ms);
    };
    EXPECT_EQ(poll(waiter), orrErrorDeviceLost) << orrGetLastErrorText();
    EXPECT_EQ(poll(waiter), orrErrorDeviceLost);
    std::this_thread::sleep_for(25ms);
    EXPECT_EQ(poll(bystander, 50ms), orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    EXPECT_OK(orrStreamSynchronize(bystander));
    for (orrSemaphore_t semaphore : {promised, gate, never})
        EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

// What a stream has signalled stays signalled when it stops for another card's loss.
TEST(NeighbourOfThree, SignalOnItsWayFromAHealthyCardArrives) {
    FakeSystem system(3);
    system.card(2).link_to(system.card(1));
    orrStream_t last = stream_on(0, "last"), between = stream_on(1, "between"), lost = stream_on(2, "lost");
    let_write(1, 0);
    let_write(2, 1);
    orrSemaphore_t x = semaphore_on(0), y = semaphore_on(1), never = semaphore_on(2);
    ASSERT_OK(orrStreamWaitSemaphore(last, x, 1, nullptr));
    ASSERT_OK(orrStreamWaitSemaphore(lost, never, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(lost, y, 1));
    system.card(0).hold_arrivals(true);
    ASSERT_OK(orrStreamSignalSemaphore(between, x, 1));
    ASSERT_OK(orrStreamWaitSemaphore(between, y, 1, nullptr));
    until([&] { return system.card(0).arrivals() == 1; });
    system.card(2).lose();
    EXPECT_EQ(poll(between), orrErrorDeviceLost) << orrGetLastErrorText();
    EXPECT_EQ(poll(last, 100ms), orrErrorNotReady);
    system.card(0).hold_arrivals(false);
    EXPECT_OK(orrStreamSynchronize(last));
    for (orrStream_t stream : {last, between, lost})
        EXPECT_OK(orrStreamDestroy(stream));
    for (orrSemaphore_t semaphore : {x, y, never})
        EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

// The memory of a semaphore that the lost card had signalled long ago is another one's by now.
TEST_F(Neighbour, SemaphoreInMemoryUsedAgainIsNotFailed) {
    orrStream_t old = stream(0, "old");
    let_write(0, 1);
    orrSemaphore_t first = semaphore_on(1);
    ASSERT_OK(orrStreamSignalSemaphore(old, first, 5));
    ASSERT_OK(orrStreamSynchronize(old));
    until([&] {
        std::uint64_t value = 0;
        EXPECT_OK(orrSemaphoreGetValue(&value, first));
        return value == 5;
    });
    ASSERT_OK(orrSemaphoreDestroy(first));
    orrStream_t waiter = stream(1, "waiter"), helper = stream(1, "helper");
    // One of them has the old one's memory.
    orrSemaphore_t gate = semaphore_on(1);
    std::vector<orrSemaphore_t> semaphores;
    for (int i = 0; i < 4; ++i) {
        semaphores.push_back(semaphore_on(1));
        ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphores.back(), 1, nullptr));
    }
    ASSERT_OK(orrStreamWaitSemaphore(helper, gate, 1, nullptr));
    for (orrSemaphore_t semaphore : semaphores)
        ASSERT_OK(orrStreamSignalSemaphore(helper, semaphore, 1));
    system_.card(0).lose();
    EXPECT_EQ(poll(waiter, 100ms), orrErrorNotReady) << orrGetLastErrorText();
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    EXPECT_OK(orrStreamSynchronize(waiter));
    semaphores.push_back(gate);
    for (orrSemaphore_t semaphore : semaphores)
        EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

// What a lost card had signalled, and what had not arrived, fails.
TEST_F(Neighbour, SignalThatDiedOnTheLinkIsTold) {
    for (const End how : kEnds)
        a_signal_dies(how, false);
}

// The same when the stream that signalled is no more.
TEST_F(Neighbour, SignalOfADestroyedStreamThatDiedOnTheLinkIsTold) {
    for (const End how : kEnds)
        a_signal_dies(how, true);
}

// A queue that stops fails its signals over the link, where the failure dies too, just when the library asks
// where that link stands: it is up again, as it is for what is sent from now on.
TEST_F(Neighbour, FailureThatDiedOnTheLinkIsTold) {
    orrStream_t waiter = stream(1, "waiter"), source = stream(0, "source");
    let_write(0, 1);
    void* gone = memory_on(0, 2 << 20);
    orrSemaphore_t x = semaphore_on(1);
    ASSERT_OK(orrStreamWaitSemaphore(waiter, x, 1, nullptr));
    system_.card(1).hold_arrivals(true);
    system_.card(0).pause(true);
    fault(system_.card(0), gone, source);
    ASSERT_OK(orrStreamSignalSemaphore(source, x, 1));
    std::atomic<bool> once{false};
    system_.card(0).on_link = [&] {
        if (once.exchange(true)) return;
        system_.card(0).pause(false);
        until([&] { return system_.card(1).arrivals() == 1; });
        end(system_.card(0), End::kCutAndMended);
    };
    EXPECT_EQ(poll(waiter), orrErrorIllegalAddress) << orrGetLastErrorText();
    EXPECT_TRUE(once);
    system_.card(0).on_link = nullptr;
    system_.card(1).hold_arrivals(false);
    EXPECT_OK(orrSemaphoreDestroy(x));
    EXPECT_OK(orrFree(gone));
}

// A link that was down and is up again carries what comes later, however long the other card takes to see it.
TEST_F(Neighbour, SignalAfterALinkCameBackIsNotGivenUp) {
    for (const bool queued : {false, true}) {
        orrStream_t waiter = stream(1, "waiter"), source = stream(0, "source");
        let_write(0, 1);
        orrSemaphore_t x = semaphore_on(1), gate = semaphore_on(0);
        ASSERT_OK(orrStreamSignalSemaphore(source, x, 1));
        ASSERT_OK(orrStreamSynchronize(source));
        until([&] {  // it has come, so what is cut does not lose it
            std::uint64_t value = 0;
            EXPECT_OK(orrSemaphoreGetValue(&value, x));
            return value == 1;
        });
        ASSERT_OK(orrStreamWaitSemaphore(waiter, x, 2, nullptr));
        if (queued) {  // submitted before, and sent after
            ASSERT_OK(orrStreamWaitSemaphore(source, gate, 1, nullptr));
            ASSERT_OK(orrStreamSignalSemaphore(source, x, 2));
        }
        EXPECT_EQ(poll(waiter, 200ms), orrErrorNotReady);
        bool seen = false;
        system_.card(0).on_link = [&] { seen = true; };
        end(system_.card(0), End::kCutAndMended);
        if (queued) {
            until([&] {
                EXPECT_EQ(orrStreamQuery(waiter), orrErrorNotReady);
                return seen;
            });
        } else {
            EXPECT_EQ(poll(waiter, 200ms), orrErrorNotReady);
        }
        system_.card(0).on_link = nullptr;
        system_.card(1).hold_arrivals(true);
        if (!queued) ASSERT_OK(orrStreamSignalSemaphore(source, x, 2));
        ASSERT_OK(orrSemaphoreSignal(gate, 1));
        EXPECT_EQ(poll(waiter, 600ms), orrErrorNotReady) << orrGetLastErrorText();
        system_.card(1).hold_arrivals(false);
        EXPECT_OK(orrStreamSynchronize(waiter));
        for (orrSemaphore_t semaphore : {x, gate})
            EXPECT_OK(orrSemaphoreDestroy(semaphore));
    }
}

TEST_F(Neighbour, WriteUnderWayToACardThatDiesIsToldToWhoPolls) {
    for (const End how : kEnds) {
        void* source = memory_on(0, 4096);
        void* target = memory_on(1, 4096);
        let_write(0, 1);
        orrStream_t writer = stream(0, "writer"), waiter = stream(0, "waiter");
        orrEvent_t event = nullptr;
        ASSERT_OK(orrEventCreate(&event, 0));
        system_.card(1).hold_arrivals(true);
        ASSERT_OK(orrMemcpyAsync(target, source, 4096, orrMemcpyDefault, writer));
        ASSERT_OK(orrEventRecord(event, writer));
        until([&] { return system_.card(1).arrivals() == 2; });
        end(system_.card(1), how);
        const orrError_t expected = told_after(how);
        EXPECT_EQ(poll(writer), expected) << orrGetLastErrorText();
        EXPECT_EQ(orrEventQuery(event), expected) << orrGetLastErrorText();
        EXPECT_EQ(orrStreamSynchronize(writer), expected) << orrGetLastErrorText();
        EXPECT_OK(orrMemsetAsync(source, 1, 64, waiter));
        EXPECT_OK(orrStreamSynchronize(waiter));
        EXPECT_OK(orrFree(source));
        EXPECT_OK(orrFree(target));
        EXPECT_OK(orrEventDestroy(event));
        system_.card(1).hold_arrivals(false);
        system_.card(1).mend_link();
    }
}

// Memory is not given out again while a write to it is on a link, though the stream that wrote has stopped.
TEST_F(Neighbour, MemoryIsFreedBehindWritesUnderWay) {
    for (const bool destroyed : {false, true}) {
        void* source = memory_on(0, 4096);
        void* gone = memory_on(0, 2 << 20);
        void* target = memory_on(1, 4096);
        let_write(0, 1);
        orrStream_t writer = stream_on(0, "writer");
        ASSERT_OK(orrMemset(source, 0xee, 4096));
        system_.card(1).hold_arrivals(true);
        ASSERT_OK(orrMemcpyAsync(target, source, 4096, orrMemcpyDefault, writer));
        fault(system_.card(0), gone, writer);
        until([&] { return system_.card(1).arrivals() == 2; });
        std::this_thread::sleep_for(10ms);
        if (destroyed) EXPECT_OK(orrStreamDestroy(writer));
        auto freed = std::async(std::launch::async, [&] { return orrFree(target); });
        EXPECT_EQ(freed.wait_for(100ms), std::future_status::timeout) << "a write to it is under way";
        system_.card(1).hold_arrivals(false);
        EXPECT_EQ(freed.get(), orrSuccess);
        void* again = memory_on(1, 4096);
        EXPECT_EQ(again, target);
        EXPECT_OK(orrMemset(again, 7, 4096));
        std::uint8_t byte = 0;
        EXPECT_OK(orrMemcpy(&byte, again, 1, orrMemcpyDefault));
        EXPECT_EQ(byte, 7);
        if (!destroyed) {
            EXPECT_EQ(orrStreamSynchronize(writer), orrErrorIllegalAddress);
            EXPECT_OK(orrStreamDestroy(writer));
        }
        for (void* memory : {source, gone, again})
            EXPECT_OK(orrFree(memory));
    }
}

// Writes that a card never came to hold nobody up when it is gone, alone or with the card that they were for.
TEST(NeighbourGone, MemoryIsFreedThoughAWriteWillNeverBegin) {
    for (const bool both : {false, true}) {
        FakeSystem system(2);
        void* source = memory_on(0, 4096);
        void* target = memory_on(1, 4096);
        let_write(0, 1);
        orrStream_t writer = stream_on(0, "writer");
        system.card(0).pause(true);
        ASSERT_OK(orrMemcpyAsync(target, source, 4096, orrMemcpyDefault, writer));
        system.card(0).lose();
        if (both) system.card(1).lose();
        auto freed = std::async(std::launch::async, [&] {
            (void)orrFree(target);
            return orrFree(source);
        });
        EXPECT_EQ(freed.wait_for(60s), std::future_status::ready) << (both ? "both lost" : "the writer lost");
        EXPECT_EQ(freed.get(), orrSuccess);
        EXPECT_OK(orrStreamDestroy(writer));
    }
}

// What was complete, also on the other card, stays so when the stream stops later.
TEST_F(Neighbour, ArrivedWorkIsNotForgotten) {
    void* source = memory_on(0, 4096);
    void* gone = memory_on(0, 2 << 20);
    void* target = memory_on(1, 4096);
    let_write(0, 1);
    orrStream_t writer = stream(0, "writer");
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrMemcpyAsync(target, source, 4096, orrMemcpyDefault, writer));
    ASSERT_OK(orrEventRecord(event, writer));
    system_.card(0).pause(true);
    fault(system_.card(0), gone, writer);
    // Its landing is failed with the rest.
    ASSERT_OK(orrMemcpyAsync(target, source, 4096, orrMemcpyDefault, writer));
    system_.card(0).pause(false);
    EXPECT_EQ(orrStreamSynchronize(writer), orrErrorIllegalAddress);
    until([&] { return orrEventQuery(event) != orrErrorNotReady; });
    EXPECT_OK(orrEventQuery(event));
    EXPECT_OK(orrEventSynchronize(event));
    EXPECT_OK(orrEventDestroy(event));
    for (void* memory : {source, gone, target})
        EXPECT_OK(orrFree(memory));
}

TEST_F(Neighbour, SignalsFromTheHostOutliveAFirmwareCrash) {
    orrStream_t waiter = stream(0, "waiter");
    orrSemaphore_t first = semaphore_on(0), second = semaphore_on(0);
    ASSERT_OK(orrSemaphoreSignal(first, 1));
    system_.card(0).crash("signals from the host");
    ASSERT_OK(orrStreamWaitSemaphore(waiter, second, 1, nullptr));
    EXPECT_OK(orrSemaphoreSignal(second, 1));
    EXPECT_OK(orrStreamSynchronize(waiter));
    EXPECT_OK(orrSemaphoreDestroy(first));
    EXPECT_OK(orrSemaphoreDestroy(second));
}

// And failures that go through that stream reach those who wait.
TEST_F(Neighbour, FailureIsToldThoughTheStreamForItHadCrashed) {
    orrStream_t waiter = stream(0, "waiter"), source = stream(1, "source");
    let_write(1, 0);
    orrSemaphore_t promised = semaphore_on(0), never = semaphore_on(1);
    ASSERT_OK(orrSemaphoreSignal(semaphore_on(0), 1));
    ASSERT_OK(orrStreamWaitSemaphore(source, never, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(source, promised, 1));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, promised, 1, nullptr));
    system_.card(0).crash("signals from the host");
    system_.card(1).lose();
    EXPECT_EQ(poll(waiter), orrErrorDeviceLost) << orrGetLastErrorText();
    EXPECT_OK(orrSemaphoreDestroy(promised));
    EXPECT_OK(orrSemaphoreDestroy(never));
}

// A submission that meets an abort either fails, or its promises do.
TEST_F(Neighbour, SubmissionThatMeetsAnAbortLeavesNobodyWaiting) {
    constexpr std::size_t kMany = 40;
    orrStream_t waiter = stream(0, "waiter");
    for (std::size_t round = 0; round < 400 && !HasFailure(); ++round) {
        orrStream_t source = stream_on(0, "source");
        std::vector<orrSemaphore_t> semaphores;
        for (std::size_t i = 0; i < kMany; ++i)
            semaphores.push_back(semaphore_on(0));
        std::atomic<std::size_t> sent{0};
        std::thread aborter([&] {
            while (sent.load() < round % kMany) {
            }
            EXPECT_OK(orrStreamAbort(source));
        });
        while (sent.load() < kMany &&
               orrStreamSignalSemaphore(source, semaphores[sent.load()], 1) == orrSuccess)
            ++sent;
        aborter.join();
        if (sent.load() != 0) {
            ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphores[sent.load() - 1], 1, nullptr));
            const orrError_t told = poll(waiter);
            ASSERT_NE(told, orrErrorNotReady) << "round " << round << ", signal " << sent.load();
            if (told != orrSuccess) {
                EXPECT_OK(orrStreamDestroy(waiter));
                streams_.back() = waiter = stream_on(0, "waiter");
            }
        }
        for (orrSemaphore_t semaphore : semaphores)
            EXPECT_OK(orrSemaphoreDestroy(semaphore));
        EXPECT_OK(orrStreamDestroy(source));
    }
}

// The number of a queue is used again at once: who asks late is told of the right one.
TEST_F(Neighbour, NumberUsedAgainIsNotBlamed) {
    void* gone = memory_on(0, 2 << 20);
    orrStream_t waiter = stream(0, "waiter"), first = stream_on(0, "first");
    orrSemaphore_t promised = semaphore_on(0);
    ASSERT_OK(orrStreamWaitSemaphore(waiter, promised, 1, nullptr));
    system_.card(0).pause(true);
    ASSERT_OK(orrMemsetAsync(memory_on(0, 64), 0, 8, first));
    fault(system_.card(0), gone, first);
    ASSERT_OK(orrStreamSignalSemaphore(first, promised, 1));
    system_.card(0).pause(false);
    EXPECT_EQ(orrStreamSynchronize(first), orrErrorIllegalAddress);
    EXPECT_OK(orrStreamDestroy(first));
    orrStream_t second = stream(0, "second");
    EXPECT_OK(orrStreamAbort(second));
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorIllegalAddress) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'first'"));
    EXPECT_OK(orrSemaphoreDestroy(promised));
    EXPECT_OK(orrFree(gone));
}

// Its memory would be another semaphore's, whose signals would wake the old one's waiter.
TEST_F(Neighbour, WaiterOfADestroyedSemaphoreIsToldSo) {
    orrStream_t waiter = stream(0, "waiter");
    orrSemaphore_t old = semaphore_on(0);
    ASSERT_OK(orrSemaphoreSetName(old, "forgotten"));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, old, 5, nullptr));
    ASSERT_OK(orrSemaphoreDestroy(old));
    orrSemaphore_t next = semaphore_on(0);
    ASSERT_OK(orrSemaphoreSignal(next, 5));
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorAbandoned) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'forgotten'"));
    EXPECT_OK(orrSemaphoreDestroy(next));
}

// The driver has no place for one more who sleeps: that is no state of the stream.
TEST_F(Neighbour, RefusedWaitDoesNotEndTheStream) {
    orrStream_t work = stream(0, "work");
    orrSemaphore_t gate = semaphore_on(0);
    for (const int number : {ENOSPC, EINVAL}) {
        ASSERT_OK(orrStreamWaitSemaphore(work, gate, 1, nullptr));
        system_.card(0).wait_errno.store(number);
        (void)poll(work, 50ms);
        system_.card(0).wait_errno.store(number);
        auto waited = std::async(std::launch::async, [&] { return orrStreamSynchronize(work); });
        if (number == ENOSPC) {
            EXPECT_EQ(waited.wait_for(50ms), std::future_status::timeout);
            EXPECT_OK(orrSemaphoreSignal(gate, 1));
            EXPECT_EQ(waited.get(), orrSuccess);
        } else {
            (void)waited.get();
        }
        system_.card(0).wait_errno.store(0);
        EXPECT_OK(poll(work));
    }
    EXPECT_OK(orrSemaphoreDestroy(gate));
}

TEST_F(Neighbour, PeerAccessThatFailedOnceCanBeEnabledLater) {
    void* memory = memory_on(1, 64);
    ASSERT_OK(orrSetDevice(0));
    system_.card(0).refuse_import = 2;  // behind the semaphore of landings: the slab
    EXPECT_EQ(orrDeviceEnablePeerAccess(1, 0), orrErrorPeerAccess);
    EXPECT_OK(orrDeviceEnablePeerAccess(1, 0)) << orrGetLastErrorText();
    EXPECT_OK(orrFree(memory));
}

}  // namespace
}  // namespace orrery::umd::test
