// What the core expects of the rest when things take another time than it was told.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "tests/bench/scheduler/task_graphs.h"
#include "umd/scheduler/core.h"
#include "umd/scheduler/sim_executor.h"

namespace orrery::umd {
namespace {

constexpr Ps kMs = 1'000'000'000;

// Tasks that are said to take a millisecond, and really take `kReal`.
class LateTasks : public ::testing::Test {
  protected:
    static constexpr Ps kReal = 3 * kMs;
    static constexpr unsigned kTasks = 600;

    LateTasks() : machine_(Machine::uniform(2, 1'000'000, 50e9, 32e9)), executor_(machine_) {
        executor_.duration = [](TaskId, unsigned) { return kReal; };
        executor_.bytes = [this](DataId data) { return core_->bytes(data); };
        CoreOptions options;
        options.issue_ahead = 8;
        core_ = std::make_unique<Core>(machine_, executor_, options);
        for (unsigned i = 0; i < kTasks; ++i) {
            const DataAccess access{core_->add_data(64, machine_.host()), Access::kReadWrite};
            TaskSpec spec;
            spec.cost = kMs;
            spec.accesses = {&access, 1};
            core_->submit(spec);
        }
    }
    // When the last task is expected to end.
    Ps expected_end() const {
        Ps end = 0;
        for (TaskId task = 0; task < kTasks; ++task)
            end = std::max(end, core_->planned_finish(task));
        return end;
    }

    Machine machine_;
    SimExecutor executor_;
    std::unique_ptr<Core> core_;
};

// Each task is two milliseconds late by the plan that it belongs to. Nobody tells the core that tasks take
// longer, so it expects a millisecond of each that has not ended: never more than that from now on.
TEST_F(LateTasks, OneLatenessCountsOnce) {
    std::uint64_t ended = 0, replans = 0;
    executor_.on_done = [&](TaskId) {
        ++ended;
        if (core_->stats().replans == replans) return;
        replans = core_->stats().replans;
        const Ps left = static_cast<Ps>(kTasks - ended) * kMs / 2;
        EXPECT_LE(expected_end(), core_->now() + left + 4 * kMs) << "after " << ended << " tasks";
    };
    const Ps end = executor_.drain(*core_);
    EXPECT_GE(replans, 2u);
    EXPECT_LE(end, (kTasks / 2 + 1) * kReal);
}

// What is issued already will take as long as the others.
TEST_F(LateTasks, NewCostsAreThoseOfWhatIsIssuedToo) {
    bool told = false;
    std::uint64_t checked = 0, replans = 0;
    executor_.on_done = [&](TaskId) {
        if (!std::exchange(told, true)) {
            for (TaskId task = 0; task < kTasks; ++task)
                core_->set_cost(task, kReal);
            core_->replan();
            return;
        }
        if (core_->stats().replans == replans) return;
        replans = core_->stats().replans;
        ++checked;
        const Ps real = kTasks / 2 * kReal;
        EXPECT_NEAR(static_cast<double>(expected_end()), static_cast<double>(real),
                    static_cast<double>(2 * kReal));
    };
    executor_.drain(*core_);
    EXPECT_EQ(checked, 1u) << "the plan that knew the costs has held";
}

// A task that is late is late with what others wait for, on its card and on another one, where a copy has
// been asked for already.
TEST_F(LateTasks, WhatWaitsForALateTaskIsExpectedBehindIt) {
    class Nobody : public Executor {
      public:
        void transfer(const TransferCommand& command) override { copies += command.to == 1; }
        void run(const RunCommand&) override {}
        unsigned copies = 0;
    } nobody;
    CoreOptions options;
    options.issue_ahead = 4;
    Core core(machine_, nobody, options);
    const auto add = [&](std::vector<DataAccess> accesses, int card) {
        TaskSpec spec;
        spec.cost = kMs;
        spec.accesses = accesses;
        spec.node = card;
        return core.submit(spec);
    };
    const DataId early = core.add_data(64, 2), x = core.add_data(1 << 20, 2), y = core.add_data(64, 2);
    const TaskId first = add({{early, Access::kWrite}}, 0);
    const TaskId late = add({{x, Access::kWrite}}, 0);
    const TaskId there = add({{x, Access::kRead}, {y, Access::kWrite}}, 1);
    for (int i = 0; i < 2; ++i)
        add({{early, Access::kReadWrite}}, 0);
    const TaskId behind = add({{x, Access::kRead}, {core.add_data(64, 2), Access::kWrite}}, 0);
    const TaskId far_behind = add({{y, Access::kReadWrite}}, 1);
    core.pump();
    ASSERT_EQ(core.state(late), TaskState::kIssued);
    ASSERT_EQ(core.state(there), TaskState::kIssued);
    ASSERT_EQ(core.state(behind), TaskState::kPlanned);
    ASSERT_EQ(nobody.copies, 1u);
    core.set_cost(late, 50 * kMs);
    core.complete(first, 0, kMs);
    core.replan();
    core.pump();
    EXPECT_EQ(core.planned_finish(late), 51 * kMs);
    EXPECT_GE(core.planned_start(there), 51 * kMs);
    EXPECT_GE(core.planned_start(behind), 51 * kMs);
    EXPECT_GE(core.planned_start(far_behind), core.planned_finish(there));
    EXPECT_LE(core.planned_finish(far_behind), 56 * kMs);
}

// What a core expects of tasks that nobody runs: each is said to take a millisecond on the card that is
// named.
class Expected : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kSmall = 64;

    void begin(const Machine& machine) {
        host_ = machine.host();
        CoreOptions options;
        options.issue_ahead = 4;
        core_ = std::make_unique<Core>(machine, nobody_, options);
    }
    void begin() { begin(Machine::uniform(3, 1'000'000, 50e9, 32e9)); }
    TaskId add(std::vector<DataAccess> accesses, int card) {
        TaskSpec spec;
        spec.cost = kMs;
        spec.accesses = accesses;
        spec.node = card;
        return core_->submit(spec);
    }
    // On the host.
    DataId data(std::uint64_t bytes = kSmall) { return core_->add_data(bytes, host_); }
    // A task that the rest does not need, so that the others can be under way when there is a re-plan.
    TaskId other(int card) { return add({{data(), Access::kWrite}}, card); }
    void replan_after(TaskId task, Ps finish = kMs) {
        core_->complete(task, finish - kMs, finish);
        core_->replan();
        core_->pump();
    }
    void expect_start(TaskId task, double ms) const {
        EXPECT_NEAR(static_cast<double>(core_->planned_start(task)) / 1e9, ms, ms / 100);
    }

    class : public Executor {
        void transfer(const TransferCommand&) override {}
        void run(const RunCommand&) override {}
    } nobody_;
    unsigned host_ = 0;
    std::unique_ptr<Core> core_;
};

// 64 bytes come from another card, behind its task of the second millisecond; a GiB lies there.
TEST_F(Expected, ATaskIsNotBehindCopiesThatItNeedsNot) {
    begin();
    const DataId x = data(), there = core_->add_data(1 << 30, 1);
    const TaskId first = other(0);
    add({{x, Access::kWrite}}, 0);
    const TaskId reader = add({{x, Access::kRead}, {there, Access::kRead}, {data(), Access::kWrite}}, 1);
    core_->pump();
    replan_after(first);
    expect_start(reader, 2.0);
}

// 256 MiB from card to card without a link: 8.39 ms to the host, and as long from there.
TEST_F(Expected, ACopyOverTheHostTakesItsTime) {
    Machine machine = Machine::uniform(2, 1'000'000, 50e9, 32e9);
    machine.channel[0][1].exists = machine.channel[1][0].exists = false;
    begin(machine);
    const DataId x = data(256 << 20);
    const TaskId first = other(0);
    add({{x, Access::kWrite}}, 0);
    const TaskId reader = add({{x, Access::kRead}, {data(), Access::kWrite}}, 1);
    core_->pump();
    replan_after(first);
    expect_start(reader, 18.78);
}

// First contents, which no task has written: they are copied from when the reader was issued, and who comes
// later finds them as late.
TEST_F(Expected, ACopyOfFirstContentsTakesItsTime) {
    begin();
    const TaskId early = other(0);
    core_->pump();
    core_->complete(early, 99 * kMs, 100 * kMs);
    const DataId x = data(256 << 20);
    const TaskId first = other(0);
    const TaskId reader = add({{x, Access::kRead}, {data(), Access::kWrite}}, 1);
    const TaskId second = add({{x, Access::kRead}, {data(), Access::kWrite}}, 1);
    core_->pump();
    replan_after(first, 101 * kMs);
    expect_start(reader, 108.39);
    expect_start(second, 109.39);
}

// Of two inputs the one that was the earlier when both were asked for becomes the later.
TEST_F(Expected, EachInputComesBehindItsOwnWriter) {
    begin();
    const DataId near = data(), far = data(200 << 20);  // 4.19 ms
    const TaskId first = other(2);
    add({{near, Access::kWrite}}, 1);
    const TaskId far_writer = add({{far, Access::kWrite}}, 0);
    const TaskId reader = add({{near, Access::kRead}, {far, Access::kRead}, {data(), Access::kWrite}}, 1);
    const TaskId again = add({{far, Access::kRead}, {data(), Access::kWrite}}, 1);
    core_->pump();
    core_->set_cost(far_writer, 20 * kMs);
    replan_after(first);
    expect_start(reader, 24.19);
    expect_start(again, 25.19);
}

// A reduction's part on the other card is copied when its last task has ended.
TEST_F(Expected, AMergeIsBehindTheCopyOfTheOtherPart) {
    begin();
    const DataId sum = core_->add_data(200 << 20, 0);
    const TaskId first = other(2);
    for (const int card : {0, 1})
        add({{sum, Access::kReduce}}, card);
    const TaskId merge = core_->close_reduction(sum);
    core_->pump();
    ASSERT_EQ(core_->state(merge), TaskState::kIssued);
    replan_after(first);
    expect_start(merge, 5.19);  // whichever of the two it is on
}

// What is issued to an idle card begins there when it comes, not when the card's last task ended.
TEST_F(Expected, NothingBeginsBeforeItIsIssued) {
    begin();
    const TaskId early = other(0), long_ago = other(1);
    core_->pump();
    core_->complete(long_ago, 0, kMs);
    core_->complete(early, 99 * kMs, 100 * kMs);
    const TaskId first = other(0), late = other(1);
    core_->pump();
    core_->replan();
    core_->pump();
    EXPECT_EQ(core_->planned_start(first), 100 * kMs);
    EXPECT_EQ(core_->planned_start(late), 100 * kMs);
    EXPECT_EQ(core_->planned_finish(late), 101 * kMs);
}

// As a task graph without a file of costs begins: all tasks are thought to take the same, far too little, and
// what a kind of them takes is known when the first one has ended. By then many are issued.
double learning_over_bound(const graphs::TaskGraph& graph, const Machine& machine) {
    constexpr Ps kGuess = 20'000'000;
    SimExecutor executor(machine);
    Core core(machine, executor);
    executor.bytes = [&](DataId data) { return graph.data[data]; };
    executor.duration = [&](TaskId task, unsigned) { return graph.tasks[task].cost; };
    std::map<Ps, bool> known;
    executor.on_done = [&](TaskId task) {
        const Ps cost = graph.tasks[task].cost;
        if (std::exchange(known[cost], true)) return;
        for (TaskId other = 0; other < core.tasks(); ++other)
            if (graph.tasks[other].cost == cost) core.set_cost(other, cost);
        core.replan();
    };
    graphs::TaskGraph guessed = graph;
    for (graphs::GraphTask& task : guessed.tasks)
        task.cost = kGuess;
    graphs::submit_all(core, guessed, machine.host());
    const Ps end = executor.drain(core);
    EXPECT_TRUE(core.idle());
    EXPECT_EQ(executor.order_errors(), 0u);
    return static_cast<double>(end) / static_cast<double>(graphs::bounds(graph, machine).bound());
}

TEST(Learning, CostsThatAreLearntOnTheWayAreAsGoodAsKnownOnes) {
    constexpr std::uint64_t kTile = 32 << 10;
    for (const auto& [cards, tiles] : {std::pair(2u, 8u), {4u, 12u}, {8u, 16u}, {8u, 24u}}) {
        const Machine machine = Machine::uniform(cards, 2'000'000, 12e9, 16e9);
        const graphs::TaskGraph graph = graphs::cholesky(tiles, kMs / 2, kTile);
        const auto bound = static_cast<double>(graphs::bounds(graph, machine).bound());
        const double known = static_cast<double>(graphs::simulate(graph, machine).makespan) / bound;
        const double learnt = learning_over_bound(graph, machine);
        RecordProperty(graph.name + " on " + std::to_string(cards), std::to_string(learnt));
        EXPECT_LE(learnt, known * 1.03) << graph.name << " on " << cards;
    }
}

}  // namespace
}  // namespace orrery::umd
