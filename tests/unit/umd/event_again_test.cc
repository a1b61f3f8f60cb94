// The short way of events that are recorded again on their stream (Event::record_again).
#include <orrery/graph.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/clock.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

constexpr std::uint64_t kPage = 4096;

// Of the queue that was made last.
orr_ring* ring_of(FakeCard& card) {
    const std::lock_guard lock(card.mutex());
    std::uint64_t fault = 0;
    return reinterpret_cast<orr_ring*>(
        card.translate(card.queues.back().ring_va, sizeof(orr_ring), ORR_BIND_READ, &fault));
}

std::atomic<std::uintptr_t> trapped_page;
std::atomic<std::int64_t> trapped_ns;

// The first store to the page: notes when, and lets it go on when the clock has moved.
void on_store(int, siginfo_t* info, void*) {
    if ((reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(kPage - 1)) != trapped_page) {
        ::signal(SIGSEGV, SIG_DFL);
        return;
    }
    trapped_ns = now_ns();
    while (now_ns() == trapped_ns) {
    }
    void* const page = reinterpret_cast<void*>(trapped_page.load());  // NOLINT(performance-no-int-to-ptr)
    ::mprotect(page, kPage, PROT_READ | PROT_WRITE);
}

// What the host is held up for from then on is time that the work took.
TEST(EventAgain, HostTimeIsTakenBeforeTheCardCanHearOfIt) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    orr_ring* const ring = ring_of(system.card());
    ASSERT_NE(ring, nullptr);
    ASSERT_OK(orrEventCreate(&event, 0));
    struct sigaction action{}, before{};
    action.sa_sigaction = on_store;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(::sigaction(SIGSEGV, &action, &before), 0);
    trapped_page = reinterpret_cast<std::uintptr_t>(ring) & ~(kPage - 1);
    for (int round = 0; round < 3; ++round) {  // the first one goes the long way
        trapped_ns = 0;
        system.card().pause(true);
        void* const page = reinterpret_cast<void*>(trapped_page.load());  // NOLINT(performance-no-int-to-ptr)
        ASSERT_EQ(::mprotect(page, kPage, PROT_READ), 0);
        ASSERT_OK(orrEventRecord(event, stream));
        system.card().pause(false);
        ASSERT_OK(orrEventSynchronize(event));
        const auto times = Runtime::usable()->events.find(event)->times();
        ASSERT_TRUE(times);
        ASSERT_NE(trapped_ns, 0) << "nothing was written to the ring";
        EXPECT_LE(times->recorded_ns, trapped_ns) << round;
    }
    ASSERT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(stream));
}

// What the card wrote there once does not let the ring be overrun later; the fake card says if it is.
TEST(EventAgain, AnIndexThatCannotBeIsNotKept) {
    FakeSystem system(1);
    FakeCard& card = system.card();
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    orr_ring* const ring = ring_of(card);
    ASSERT_NE(ring, nullptr);
    ASSERT_OK(orrEventCreate(&event, orrEventDisableTiming));
    constexpr std::uint64_t kEntries = Stream::kDefaultEntries;
    // As much as there is room for without a look.
    while (Runtime::usable()->streams.find(stream)->submitted() < kEntries)
        ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    card.pause(true);
    const std::atomic_ref<std::uint64_t> consumer(ring->consumer);
    consumer = std::uint64_t{1} << 40;
    ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_EQ(consumer.exchange(kEntries), std::uint64_t{1} << 40);
    std::atomic<bool> waited{false};
    card.on_wait = [&] {
        waited = true;
        card.pause(false);
    };
    for (std::uint64_t i = 1; i < kEntries; ++i)
        ASSERT_OK(orrEventRecord(event, stream));
    EXPECT_FALSE(waited);
    ASSERT_OK(orrEventRecord(event, stream));
    EXPECT_TRUE(waited) << "the ring was full";
    card.pause(false);
    ASSERT_OK(orrStreamSynchronize(stream));
    card.on_wait = nullptr;
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(stream));
}

// Two record while a third one asks: each record is a packet, and the last one is the event's.
TEST(EventAgain, ByTwoThreads) {
    constexpr int kRecords = 5000;
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrEventSynchronize(event));
    const std::uint64_t before = system.card().packets();
    std::atomic<int> recording{2};
    const auto record = [&] {
        for (int i = 0; i < kRecords; ++i)
            EXPECT_OK(orrEventRecord(event, stream));
        --recording;
    };
    std::thread one(record), other(record);
    for (int i = 0; recording != 0; ++i) {
        const orrError_t state = i % 2 == 0 ? orrEventQuery(event) : orrEventSynchronize(event);
        EXPECT_TRUE(state == orrSuccess || state == orrErrorNotReady) << state;
    }
    one.join();
    other.join();
    ASSERT_OK(orrEventSynchronize(event));
    EXPECT_OK(orrStreamQuery(stream)) << "the event's last record is the stream's last packet";
    EXPECT_EQ(system.card().packets() - before, 2u * kRecords);
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(stream));
}

// Two record while a third one takes the event or the stream away.
TEST(EventAgain, WhileItIsDestroyed) {
    FakeSystem system(1);
    for (int round = 0; round < 60; ++round) {
        orrStream_t stream = nullptr;
        orrEvent_t event = nullptr;
        ASSERT_OK(orrStreamCreate(&stream, 0));
        ASSERT_OK(orrEventCreate(&event, 0));
        std::atomic<int> records{0};
        const auto record = [&] {
            orrError_t state = orrSuccess;
            while ((state = orrEventRecord(event, stream)) == orrSuccess)
                ++records;
            EXPECT_TRUE(state == orrErrorInvalidHandle || state == orrErrorAborted) << orrGetLastErrorText();
        };
        std::thread one(record), other(record);
        while (records < 100)
            std::this_thread::yield();
        if (round % 2 == 0) {
            EXPECT_OK(orrEventDestroy(event));
            one.join();
            other.join();
            EXPECT_OK(orrStreamSynchronize(stream));
            EXPECT_OK(orrStreamDestroy(stream));
        } else {
            EXPECT_OK(orrStreamDestroy(stream));
            one.join();
            other.join();
            EXPECT_OK(orrEventDestroy(event));
        }
    }
}

// A stream that joins a capture, and one that is in none beside it.
TEST(EventAgain, UnderCapture) {
    FakeSystem system(1);
    orrStream_t origin = nullptr, joined = nullptr, outside = nullptr;
    orrEvent_t fork = nullptr, join = nullptr, apart = nullptr;
    for (orrStream_t* stream : {&origin, &joined, &outside})
        ASSERT_OK(orrStreamCreate(stream, 0));
    for (orrEvent_t* event : {&fork, &join, &apart})
        ASSERT_OK(orrEventCreate(event, 0));
    for (int i = 0; i < 2; ++i) {  // the second one goes the short way
        ASSERT_OK(orrEventRecord(fork, origin));
        ASSERT_OK(orrEventRecord(join, joined));
        ASSERT_OK(orrEventRecord(apart, outside));
    }
    ASSERT_OK(orrDeviceSynchronize());
    ASSERT_OK(orrStreamBeginCapture(origin, 0));
    ASSERT_OK(orrEventRecord(fork, origin));
    ASSERT_OK(orrStreamWaitEvent(joined, fork, nullptr));
    const std::uint64_t before = system.card().packets();
    for (int i = 0; i < 2; ++i)
        ASSERT_OK(orrEventRecord(join, joined));
    EXPECT_FAIL(orrEventSynchronize(join), orrErrorStreamCapture, "captured");
    ASSERT_OK(orrStreamWaitEvent(origin, join, nullptr));
    ASSERT_OK(orrEventRecord(apart, outside));
    ASSERT_OK(orrEventSynchronize(apart));
    EXPECT_EQ(system.card().packets() - before, 1u) << "only what is in no capture gets to the card";
    // Recorded in a capture, and again where it was recorded before: that is what counts.
    ASSERT_OK(orrEventRecord(apart, origin));
    ASSERT_OK(orrEventRecord(apart, outside));
    ASSERT_OK(orrEventSynchronize(apart));
    orrGraph_t graph = nullptr;
    ASSERT_OK(orrStreamEndCapture(&graph, origin));
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(orrEventRecord(join, joined));
        ASSERT_OK(orrEventSynchronize(join));
    }
    ASSERT_OK(orrGraphDestroy(graph));
    for (orrEvent_t event : {fork, join, apart})
        ASSERT_OK(orrEventDestroy(event));
    for (orrStream_t stream : {origin, joined, outside})
        ASSERT_OK(orrStreamDestroy(stream));
}

// The child has the handles, and none of the cards behind them.
TEST(EventAgain, AfterAFork) {
    // The real runtime listens for forks from its first use on, whether there is a card or not.
    Runtime::replace(nullptr);
    int count = 0;
    (void)orrGetDeviceCount(&count);
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    for (int i = 0; i < 2; ++i)
        ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrEventSynchronize(event));
    const std::uint64_t before = system.card().packets();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const auto told = [](orrError_t state) {
            return state == orrErrorNotSupported && std::strstr(orrGetLastErrorText(), "fork") != nullptr;
        };
        const bool recorded = told(orrEventRecord(event, stream));
        ::_exit(recorded && told(orrEventSynchronize(event)) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrEventSynchronize(event));
    EXPECT_EQ(system.card().packets() - before, 1u);
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(stream));
}

}  // namespace
}  // namespace orrery::umd::test
