// How far from the lower bound the scheduler ends, in model time: deterministic.
#include <gtest/gtest.h>

#include "tests/bench/scheduler/task_graphs.h"

namespace orrery::umd::graphs {
namespace {

constexpr Ps kMs = 1'000'000'000;
constexpr std::uint64_t kTile = 2 << 20;

// A graph has slack on a machine if one of the two bounds dominates (the makespan of a graph whose critical
// path is as long as its area must exceed both), and if moving data is a minor part: all inputs, were each of
// them to cross one of as many channels as there are cards, would take less than half of the bound.
bool has_slack(const Bounds& bounds) {
    return (bounds.parallelism >= 2 || bounds.parallelism <= 0.5) && bounds.communication <= 0.5;
}

std::vector<TaskGraph> graphs() {
    std::vector<TaskGraph> all;
    for (const unsigned n : {8u, 12u, 20u, 38u})
        all.push_back(cholesky(n, kMs, kTile));
    for (const unsigned n : {6u, 8u, 16u, 30u})
        all.push_back(lu(n, kMs, kTile));
    for (const unsigned n : {5u, 6u, 9u})
        all.push_back(fft(n, kMs, kTile / 4));
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        all.push_back(layered(10, 24, kMs, kTile / 2, seed));
        all.push_back(layered(40, 64, kMs, kTile / 2, seed));
        all.push_back(layered(60, 3, kMs, kTile / 16, seed));
        all.push_back(fork_join(6, 48, kMs, kTile / 4, seed));
        all.push_back(fork_join(20, 200, kMs, kTile / 4, seed));
    }
    all.push_back(layered(100, 100, kMs, kTile / 2, 9));
    return all;
}

TEST(Quality, WithinATenthOfTheBoundWhereThereIsSlack) {
    unsigned with_slack = 0, all = 0;
    double worst = 0;
    for (const TaskGraph& graph : graphs()) {
        for (const unsigned cards : {1u, 2u, 4u, 8u}) {
            const Machine machine = Machine::uniform(cards, 500'000, 50e9, 32e9);
            const Bounds limits = bounds(graph, machine);
            const SimResult result = simulate(graph, machine);
            ASSERT_EQ(result.order_errors, 0u);
            const double ratio = static_cast<double>(result.makespan) / static_cast<double>(limits.bound());
            ASSERT_GE(ratio, 1.0) << graph.name << ": below a lower bound?";
            ++all;
            if (!has_slack(limits)) {
                EXPECT_LE(ratio, 1.5) << graph.name << " on " << cards << ", without slack";
                continue;
            }
            ++with_slack;
            worst = std::max(worst, ratio);
            EXPECT_LE(ratio, 1.10) << graph.name << " on " << cards;
        }
    }
    EXPECT_GE(with_slack, 80u) << "of " << all;
    RecordProperty("worst", std::to_string(worst));
}

// Tasks of one worker each on cards of four are those of a card on four times as many cards, but for what
// moves; with tasks that take the whole card it is as if it had one worker.
TEST(Quality, SmallTasksFillACard) {
    for (const unsigned cards : {1u, 2u}) {
        Machine machine = Machine::uniform(cards, 500'000, 50e9, 32e9);
        const Machine single = machine;
        machine.workers.fill(4);
        machine.groups_a_worker.fill(2);
        for (TaskGraph graph : graphs()) {
            const Bounds limits = bounds(graph, Machine::uniform(4 * cards, 500'000, 50e9, 32e9));
            ASSERT_EQ(simulate(graph, machine).makespan, simulate(graph, single).makespan) << graph.name;
            for (GraphTask& task : graph.tasks)
                task.groups = 2;
            const SimResult result = simulate(graph, machine);
            ASSERT_EQ(result.order_errors, 0u);
            const double ratio = static_cast<double>(result.makespan) / static_cast<double>(limits.bound());
            ASSERT_GE(ratio, 1.0) << graph.name << ": below a lower bound?";
            // Fewer channels bring the data of as many tasks.
            if (!has_slack(limits) || limits.communication > 0.1) continue;
            EXPECT_LE(ratio, 1.10) << graph.name << " on " << cards;
        }
    }
}

TEST(Quality, TheSameEveryTime) {
    const TaskGraph graph = cholesky(16, kMs, kTile);
    const Machine machine = Machine::uniform(4, 500'000, 50e9, 32e9);
    const SimResult first = simulate(graph, machine, {}, 0.3);
    for (int i = 0; i < 3; ++i) {
        const SimResult again = simulate(graph, machine, {}, 0.3);
        EXPECT_EQ(again.makespan, first.makespan);
        EXPECT_EQ(again.transfers, first.transfers);
    }
}

TEST(Quality, WrongCostsAreSurvived) {
    // Durations between a half and one and a half times of what the planner believes.
    for (const unsigned cards : {2u, 4u, 8u}) {
        const Machine machine = Machine::uniform(cards, 500'000, 50e9, 32e9);
        for (const TaskGraph& graph : {cholesky(20, kMs, kTile), layered(40, 64, kMs, kTile / 2, 3)}) {
            const double exact = static_cast<double>(simulate(graph, machine).makespan);
            EXPECT_LE(static_cast<double>(simulate(graph, machine, {}, 0.5).makespan), 1.15 * exact)
                << graph.name << " on " << cards;
        }
    }
}

TEST(Quality, SlowCardsGetLess) {
    Machine machine = Machine::uniform(4, 500'000, 50e9, 32e9);
    machine.slowness[3] = 4;  // together 3.25 cards
    const TaskGraph graph = cholesky(24, kMs, kTile);
    Machine equal = machine;
    equal.slowness[3] = 1;
    const double area = static_cast<double>(bounds(graph, equal).area) * 4 / 3.25;
    EXPECT_LE(static_cast<double>(simulate(graph, machine).makespan), 1.10 * area);
}

}  // namespace
}  // namespace orrery::umd::graphs
