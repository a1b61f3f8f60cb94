// What streams do between work, as the cards tell it: signals with the waits that they end, and marks.
#include <orrery/graph.h>
#include <orrery/prof.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

class Heard {
  public:
    Heard() {
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = orrProfWantWork | orrProfWantSignals | orrProfWantRanges;
        EXPECT_OK(orrProfSubscribe(&subscription_, &told, this, &options));
    }
    ~Heard() { EXPECT_OK(orrProfUnsubscribe(subscription_)); }
    Heard(const Heard&) = delete;
    Heard& operator=(const Heard&) = delete;

    // All there is now; only to be looked at while nothing runs.
    void flush() { EXPECT_OK(orrProfFlush()); }

    std::vector<orrProfWork> work;
    std::vector<orrProfSignal> signals;
    struct Mark {
        std::string name;
        orrProfStreamMark mark;
    };
    std::vector<Mark> marks;
    std::uint64_t lost = 0;

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Heard*>(user);
        const std::lock_guard lock(self.mutex_);
        if (record->kind == orrProfWorkDone)
            self.work.push_back(*static_cast<const orrProfWork*>(record->params));
        else if (record->kind == orrProfSignalDone)
            self.signals.push_back(*static_cast<const orrProfSignal*>(record->params));
        else if (record->kind == orrProfStreamMarker)
            self.marks.push_back({record->name, *static_cast<const orrProfStreamMark*>(record->params)});
        else if (record->kind == orrProfWorkLost)
            ++self.lost;
    }
    orrProfSubscription_t subscription_ = nullptr;
    std::mutex mutex_;
};

// The wait is the card's before the copy begins, which takes longer than the card takes to come to the wait.
TEST(StreamEvents, ASignalIsBetweenTheWorkBeforeItAndTheEndOfTheWait) {
    constexpr std::size_t kBytes = 4 << 20;
    Card card(0);
    orrStream_t waiter = nullptr;
    orrSemaphore_t semaphore = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrStreamCreate(&waiter, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrMalloc(&memory, 2 * kBytes));
    {
        Heard heard;
        ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphore, 5, nullptr));
        ASSERT_OK(orrProfMarkStream(waiter, nullptr, "gone on"));
        ASSERT_OK(orrMemcpyAsync(memory, at(memory, kBytes), kBytes, orrMemcpyDeviceToDevice, card.stream));
        ASSERT_OK(orrProfMarkStream(card.stream, nullptr, "copied"));
        ASSERT_OK(orrStreamSignalSemaphore(card.stream, semaphore, 5));
        ASSERT_OK(orrStreamSynchronize(waiter));
        ASSERT_OK(orrStreamSynchronize(card.stream));
        heard.flush();
        ASSERT_EQ(heard.lost, 0u);
        ASSERT_EQ(heard.work.size(), 2u);
        ASSERT_EQ(heard.signals.size(), 1u);
        ASSERT_EQ(heard.marks.size(), 2u);
        const orrProfWork &copy = heard.work[0], &wait = heard.work[1];
        const orrProfSignal& signal = heard.signals[0];
        EXPECT_EQ(copy.operation, static_cast<std::uint32_t>(orrProfOperationCopy));
        EXPECT_EQ(wait.operation, static_cast<std::uint32_t>(orrProfOperationWait));
        EXPECT_EQ(signal.stream, copy.stream);
        EXPECT_EQ(signal.index, copy.index + 1);
        EXPECT_EQ(signal.value, 5u);
        EXPECT_EQ(signal.memory, 0);
        EXPECT_EQ(signal.waiters, 1u);
        EXPECT_GE(signal.time_ps, copy.end_ps);
        EXPECT_LE(signal.time_ps, wait.end_ps);
        EXPECT_EQ(wait.from, static_cast<std::uint32_t>(orrProfFromStream));
        EXPECT_EQ(wait.from_stream, signal.stream);
        EXPECT_EQ(wait.from_index, signal.index);
        EXPECT_EQ(wait.semaphore, signal.semaphore);
        EXPECT_EQ(wait.value, 5u);
        for (const Heard::Mark& one : heard.marks) {
            if (one.name == "copied") {
                EXPECT_EQ(one.mark.time_ps, copy.end_ps);
                EXPECT_EQ(one.mark.stream, copy.stream);
                EXPECT_EQ(one.mark.index, signal.index) << "the signal comes next";
            } else {
                EXPECT_EQ(one.name, "gone on");
                EXPECT_EQ(one.mark.time_ps, wait.end_ps);
                EXPECT_EQ(one.mark.stream, wait.stream);
            }
        }
    }
    ASSERT_OK(orrFree(memory));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrStreamDestroy(waiter));
}

// Each of many, in order, of several streams at once; and what the card counts is what is told.
TEST(StreamEvents, EachSignalIsToldOnce) {
    constexpr std::uint64_t kRounds = 300;
    Card card(0);
    orrStream_t streams[2] = {card.stream, nullptr};
    orrSemaphore_t semaphores[2] = {};
    ASSERT_OK(orrStreamCreate(&streams[1], 0));
    for (orrSemaphore_t& semaphore : semaphores)
        ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    orrCounter_t counter = 0;
    ASSERT_OK(orrDeviceFindCounter(&counter, 0, "semaphore_signals"));
    const auto signals = [&] {
        std::uint64_t value = 0;
        EXPECT_OK(orrDeviceReadCounters(&value, 0, &counter, 1));
        return value;
    };
    {
        Heard heard;
        const std::uint64_t before = signals();
        for (std::uint64_t value = 1; value <= kRounds; ++value) {
            // To and fro.
            ASSERT_OK(orrStreamSignalSemaphore(streams[0], semaphores[0], value));
            ASSERT_OK(orrStreamWaitSemaphore(streams[1], semaphores[0], value, nullptr));
            ASSERT_OK(orrStreamSignalSemaphore(streams[1], semaphores[1], value));
            ASSERT_OK(orrStreamWaitSemaphore(streams[0], semaphores[1], value, nullptr));
        }
        for (orrStream_t stream : streams)
            ASSERT_OK(orrStreamSynchronize(stream));
        heard.flush();
        EXPECT_EQ(signals() - before, 2 * kRounds);
        EXPECT_EQ(heard.lost, 0u);
        ASSERT_EQ(heard.signals.size(), 2 * kRounds);
        for (std::uint64_t n = 0; n < heard.signals.size(); ++n) {
            EXPECT_EQ(heard.signals[n].value, 1 + n / 2);
            EXPECT_EQ(heard.signals[n].semaphore, heard.signals[n % 2].semaphore);
            if (n > 0) EXPECT_GT(heard.signals[n].time_ps, heard.signals[n - 1].time_ps);
        }
        EXPECT_NE(heard.signals[0].semaphore, heard.signals[1].semaphore);
        EXPECT_NE(heard.signals[0].stream, heard.signals[1].stream);
    }
    for (orrSemaphore_t semaphore : semaphores)
        ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrStreamDestroy(streams[1]));
}

// All is the card's before it begins. (That profiling takes no model time is vm.prof_same's and
// scenario_profiled's: two rounds on one card are not alike.)
TEST(StreamEvents, ManyBehindOneReleaseAreTold) {
    constexpr std::size_t kBytes = 64 << 10;
    Card card(0);
    orrSemaphore_t gate = nullptr, steps = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrSemaphoreCreate(&steps, 0));
    ASSERT_OK(orrMalloc(&memory, 2 * kBytes));
    std::uint64_t round = 0;
    orrEvent_t begin = nullptr, end = nullptr;
    ASSERT_OK(orrEventCreate(&begin, 0));
    ASSERT_OK(orrEventCreate(&end, 0));
    const auto run = [&](bool marks) -> double {
        ++round;
        EXPECT_OK(orrStreamWaitSemaphore(card.stream, gate, round, nullptr));
        EXPECT_OK(orrEventRecord(begin, card.stream));
        for (std::uint64_t n = 0; n < 20; ++n) {
            EXPECT_OK(
                orrMemcpyAsync(memory, at(memory, kBytes), kBytes, orrMemcpyDeviceToDevice, card.stream));
            if (marks) EXPECT_OK(orrProfMarkStream(card.stream, nullptr, "here"));
            EXPECT_OK(orrStreamSignalSemaphore(card.stream, steps, 20 * round + n));
        }
        EXPECT_OK(orrEventRecord(end, card.stream));
        EXPECT_OK(orrSemaphoreSignal(gate, round));
        EXPECT_OK(orrStreamSynchronize(card.stream));
        double ns = 0;
        EXPECT_OK(orrEventElapsedModelTime(&ns, begin, end));
        return ns;
    };
    EXPECT_GT(run(false), 0);
    {
        Heard heard;
        EXPECT_GT(run(true), 0);
        heard.flush();
        EXPECT_EQ(heard.marks.size(), 20u);
        EXPECT_GE(heard.signals.size(), 21u) << "with the host's; events are some too";
    }
    EXPECT_GT(run(true), 0) << "marks without anybody who listens";
    ASSERT_OK(orrEventDestroy(begin));
    ASSERT_OK(orrEventDestroy(end));
    ASSERT_OK(orrFree(memory));
    ASSERT_OK(orrSemaphoreDestroy(gate));
    ASSERT_OK(orrSemaphoreDestroy(steps));
}

TEST(TwoStreamEvents, ASignalOverALinkSaysWhereTheSemaphoreIs) {
    Card first(0), second(1);
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrSetDevice(1));
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSemaphoreSetName(semaphore, "there"));
    {
        Heard heard;
        ASSERT_OK(orrStreamWaitSemaphore(second.stream, semaphore, 1, nullptr));
        ASSERT_OK(orrStreamSignalSemaphore(first.stream, semaphore, 1));
        ASSERT_OK(orrStreamSynchronize(second.stream));
        ASSERT_OK(orrStreamSynchronize(first.stream));
        heard.flush();
        ASSERT_EQ(heard.signals.size(), 1u);
        EXPECT_EQ(heard.signals[0].device, 0);
        EXPECT_EQ(heard.signals[0].memory, 1);
        // It waits if it came there first.
        for (const orrProfWork& wait : heard.work) {
            EXPECT_EQ(wait.semaphore, heard.signals[0].semaphore);
            EXPECT_EQ(wait.from_stream, heard.signals[0].stream);
            EXPECT_EQ(wait.from_index, heard.signals[0].index);
        }
    }
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
}

// By itself, and as a node of a graph.
TEST(Reductions, AreToldAsWhatTheyAre) {
    constexpr std::size_t kCount = 1 << 16, kBytes = kCount * sizeof(float);
    Card card(0);
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 2 * kBytes));
    std::vector<float> values(2 * kCount, 1.0f);
    std::fill(values.begin() + kCount, values.end(), 3.0f);
    ASSERT_OK(orrMemcpy(memory, values.data(), 2 * kBytes, orrMemcpyHostToDevice));
    orrGraph_t graph = nullptr;
    orrGraphExec_t exec = nullptr;
    orrGraphNode_t node = nullptr;
    ASSERT_OK(orrGraphCreate(&graph, 0));
    ASSERT_OK(orrGraphAddReduceNode(&node, graph, nullptr, 0, memory, at(memory, kBytes), kCount, orrFloat32,
                                    orrReduceSum, 0));
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    {
        Heard heard;
        ASSERT_OK(orrMemcpyReduceAsync(memory, at(memory, kBytes), kCount, orrFloat32, orrReduceSum, 0,
                                       card.stream));
        ASSERT_OK(orrGraphLaunch(exec, card.stream));
        ASSERT_OK(orrMemcpyAsync(at(memory, kBytes), memory, kBytes, orrMemcpyDeviceToDevice, card.stream));
        ASSERT_OK(orrStreamSynchronize(card.stream));
        heard.flush();
        ASSERT_EQ(heard.work.size(), 3u);
        for (std::size_t i = 0; i < heard.work.size(); ++i) {
            EXPECT_EQ(heard.work[i].operation, static_cast<std::uint32_t>(orrProfOperationCopy)) << i;
            EXPECT_EQ(heard.work[i].reduces, i < 2 ? 1u : 0u) << i;
            EXPECT_EQ(heard.work[i].bytes, kBytes) << i;
            EXPECT_GT(heard.work[i].ended_by_ns, heard.work[i].submitted_ns) << i;
        }
    }
    ASSERT_OK(orrMemcpy(values.data(), memory, kBytes, orrMemcpyDeviceToHost));
    EXPECT_EQ(std::count(values.begin(), values.begin() + kCount, 7.0f), static_cast<std::ptrdiff_t>(kCount));
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
    ASSERT_OK(orrFree(memory));
}

}  // namespace
}  // namespace orrery::umd::vm
