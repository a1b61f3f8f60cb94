// Who gets the engines, and when: priorities, weights, quotas, preemption, time slices. All times are model
// time, and all orders stand on the card before the first kernel runs, so that the host's pace does not
// matter.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "tests/vm/sched/bench.h"

namespace orrery::sched_test {
namespace {

constexpr std::uint64_t kUs = 1'000'000;  // ps

class Share : public ::testing::Test {
  protected:
    Card card_{0};
};

// A stream with a row of kernels behind a gate.
struct Load {
    Load(const Card& card, const Semaphore& gate, const char* name, int priority, std::uint32_t weight,
         unsigned kernels, std::uint32_t groups, std::uint64_t us, std::uint32_t slice_us = 0)
        : stream(name, priority, weight, slice_us), count(card, groups, us) {
        gate.wait_on(stream);
        marks.emplace_back(stream);
        for (unsigned i = 0; i < kernels; ++i) {
            count.launch(stream);
            marks.emplace_back(stream);
        }
    }
    std::uint64_t begin() const { return marks.front().ps(); }
    std::uint64_t end() const { return marks.back().ps(); }
    unsigned done_by(std::uint64_t ps) const {
        return static_cast<unsigned>(
            std::count_if(marks.begin() + 1, marks.end(), [&](const Mark& mark) { return mark.ps() <= ps; }));
    }

    Stream stream;
    Count count;
    std::vector<Mark> marks;
};

TEST_F(Share, AHigherPriorityComesFirst) {
    std::uint64_t alone = 0;
    {
        const Semaphore gate("alone");
        const Load load(card_, gate, "alone", -1, 0, 12, 32, 20);
        gate.signal();
        alone = load.end() - load.begin();
    }
    const Semaphore gate("gate");
    const Load low(card_, gate, "low", 1, 0, 12, 32, 20);
    const Load normal(card_, gate, "normal", 0, 0, 12, 32, 20);
    const Load high(card_, gate, "high", -1, 0, 12, 32, 20);
    gate.signal();
    EXPECT_LT(high.end(), normal.end());
    EXPECT_LT(normal.end(), low.end());
    // As good as alone: the others do not cost it more than their preemption.
    EXPECT_LT(high.end() - high.begin(), alone + alone / 6);
    EXPECT_TRUE(low.count.right() && normal.count.right() && high.count.right());
    const orrStreamStats stats = low.stream.stats();
    EXPECT_EQ(stats.jobs, 12u);
    EXPECT_GT(stats.vector_ps, 0u);
    EXPECT_GT(stats.longest_wait_ps, 0u);
    EXPECT_GE(stats.waited_ps, stats.longest_wait_ps);
}

TEST_F(Share, RealTimeIsStrict) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs CAP_SYS_NICE";
    const Semaphore gate("gate");
    const Load high(card_, gate, "high", -1, 0, 8, 32, 20);
    const Load real_time(card_, gate, "real-time", -2, 0, 8, 32, 20);
    gate.signal();
    EXPECT_LT(real_time.end(), high.end());
    EXPECT_LE(high.done_by(real_time.end()), 2u);
}

TEST_F(Share, WeightsDivideThePriority) {
    constexpr unsigned kKernels = 16;
    const Semaphore gate("gate");
    const Load one(card_, gate, "one", 0, 64, kKernels, 256, 5);
    const Load two(card_, gate, "two", 0, 128, kKernels, 256, 5);
    const Load four(card_, gate, "four", 0, 256, kKernels, 256, 5);
    gate.signal();
    const std::uint64_t end = four.end();
    EXPECT_LT(end, two.end());
    EXPECT_LT(end, one.end());
    // A kernel counts when it has ended: one more may be half done.
    EXPECT_NEAR(two.done_by(end), kKernels / 2, 1);
    EXPECT_NEAR(one.done_by(end), kKernels / 4, 1);
}

TEST_F(Share, AnAttributeCanBeChanged) {
    const Semaphore gate("gate");
    const Load first(card_, gate, "first", -1, 0, 8, 32, 20);
    const Load second(card_, gate, "second", 1, 0, 8, 32, 20);
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.priority = 1;
    ASSERT_OK(orrStreamSetAttributes(first.stream.get(), &attributes));
    attributes.priority = -1;
    ASSERT_OK(orrStreamSetAttributes(second.stream.get(), &attributes));
    gate.signal();
    EXPECT_LT(second.end(), first.end());
}

// A kernel that is preempted inside its groups, and comes to the right end all the same.
TEST_F(Share, AHigherPriorityTakesTheCoresWithinTenMicroseconds) {
    std::uint64_t alone = 0;
    const auto timed = [&](const Stream& stream, const Count& count) {
        std::vector<Mark> marks;
        marks.emplace_back(stream);
        count.launch(stream);
        marks.emplace_back(stream);
        return marks;
    };
    const auto time_of = [](const std::vector<Mark>& marks) { return marks[1].ps() - marks[0].ps(); };
    {
        const Stream stream("alone", -1);
        const Count count(card_, 8, 10);
        alone = time_of(timed(stream, count));
    }
    const Semaphore gate("gate"), now("now");
    const Stream clock("clock", -1), high("high", -1), victim("victim", 0);
    const Count tick(card_, 1, 300), urgent(card_, 8, 10), work(card_, 8, 2000);
    gate.wait_on(victim);
    work.launch(victim);
    gate.wait_on(clock);
    tick.launch(clock);
    now.signal_on(clock);
    now.wait_on(high);
    const std::vector<Mark> marks = timed(high, urgent);
    gate.signal();
    EXPECT_LE(time_of(marks), alone + 10 * kUs);
    ASSERT_OK(orrStreamSynchronize(victim.get()));
    EXPECT_GE(victim.stats().preemptions, 1u);
    EXPECT_TRUE(work.right()) << "the preempted kernel went wrong";
    EXPECT_TRUE(urgent.right());
}

// Kernels of seconds in another process, on all cores.
TEST_F(Share, AKernelOfSecondsHoldsNobodyUp) {
    const Stream high("high", -1);
    const Count urgent(card_, 8, 10);
    const Semaphore gate("gate");
    std::uint64_t round = 0;
    // All stands on the card before it begins, and nobody sends the firmware commands meanwhile.
    const auto measure = [&] {
        gate.wait_on(high, ++round);
        const Mark before(high);
        urgent.launch(high);
        const Mark after(high);
        gate.signal(round);
        while (orrStreamQuery(high.get()) == orrErrorNotReady)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        return after.ps() - before.ps();
    };
    std::uint64_t alone = 0;
    for (unsigned i = 0; i < 8; ++i)
        alone = std::max(alone, measure());
    const pid_t hog = umd::vm::start_worker("hog");
    // It says when its kernel has begun by its file.
    while (::access("/tmp/hog-runs", F_OK) != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (unsigned i = 0; i < 10; ++i)
        EXPECT_LE(measure(), alone + 10 * kUs) << i;
    ::kill(hog, SIGKILL);
    EXPECT_EQ(umd::vm::wait_for(hog), 128 + SIGKILL);
    ::unlink("/tmp/hog-runs");
    // The cores' quantum is 2 us: a begin falls on any moment of it. The firmware may have to do with its end
    // still.
    std::uint64_t then = measure();
    for (unsigned i = 0; i < 7; ++i)
        then = std::min(then, measure());
    EXPECT_LE(then, alone + 2 * kUs);
}

// Forty streams of another process with kernels that do not end: it has half of the card, and no more.
TEST_F(Share, ACrowdOfAnotherProcessHasItsHalf) {
    const Stream high("high", -1), normal("normal");
    const Count urgent(card_, 8, 10), work(card_, 32, 3000);
    const Semaphore gate("gate");
    std::uint64_t round = 0;
    const auto measure = [&](const Stream& stream, const Count& what) {
        gate.wait_on(stream, ++round);
        const Mark before(stream);
        what.launch(stream);
        const Mark after(stream);
        gate.signal(round);
        while (orrStreamQuery(stream.get()) == orrErrorNotReady)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        return after.ps() - before.ps();
    };
    const std::uint64_t work_alone = measure(normal, work);
    std::uint64_t urgent_alone = 0;
    for (unsigned i = 0; i < 8; ++i)
        urgent_alone = std::max(urgent_alone, measure(high, urgent));
    const pid_t crowd = umd::vm::start_worker("crowd");
    while (::access("/tmp/crowd-runs", F_OK) != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (unsigned i = 0; i < 10; ++i)
        EXPECT_LE(measure(high, urgent), urgent_alone + 50 * kUs) << i;
    // Cores go back and forth by whole kernels: not quite half of them.
    EXPECT_LE(measure(normal, work), work_alone * 4);
    ::kill(crowd, SIGKILL);
    EXPECT_EQ(umd::vm::wait_for(crowd), 128 + SIGKILL);
    ::unlink("/tmp/crowd-runs");
}

TEST_F(Share, TimeSlicesGoRound) {
    constexpr unsigned kStreams = 8;  // twice as many as there are ports
    const Semaphore gate("gate");
    std::vector<std::unique_ptr<Load>> loads;
    for (unsigned i = 0; i < kStreams; ++i)
        loads.push_back(std::make_unique<Load>(card_, gate, "equal", 0, 0, 1, 32, 100, 100));
    gate.signal();
    std::uint64_t preemptions = 0, first = ~std::uint64_t{0}, last = 0, begin = loads[0]->begin();
    for (const auto& load : loads) {
        first = std::min(first, load->end());
        last = std::max(last, load->end());
        preemptions += load->stream.stats().preemptions;
        EXPECT_TRUE(load->count.right());
    }
    EXPECT_GT(preemptions, 0u);
    // In turns, not four by four: the first to end is not far before the last.
    EXPECT_GT(first - begin, (last - begin) * 5 / 8);
}

TEST_F(Share, AProcessKeepsItsQuota) {
    ::setenv("ORR_QUOTA", "250/1000", 1);
    const pid_t worker = umd::vm::start_worker("quota");
    ::unsetenv("ORR_QUOTA");
    // What is beyond its quota is there for us meanwhile.
    EXPECT_EQ(umd::vm::wait_for(worker), 0);
}

}  // namespace
}  // namespace orrery::sched_test
