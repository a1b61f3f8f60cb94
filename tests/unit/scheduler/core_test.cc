#include "umd/scheduler/core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "tests/bench/scheduler/task_graphs.h"
#include "umd/scheduler/sim_executor.h"

namespace orrery::umd {
namespace {

constexpr Ps kMs = 1'000'000'000;

class CoreTest : public ::testing::Test {
  protected:
    explicit CoreTest(unsigned cards = 2)
        : machine_(Machine::uniform(cards, 1'000'000, 50e9, 32e9)),
          executor_(machine_),
          core_(std::make_unique<Core>(machine_, executor_)) {
        executor_.duration = [this](TaskId task, unsigned) { return costs_[task]; };
        executor_.bytes = [this](DataId data) { return core_->bytes(data); };
    }
    TaskId add(std::vector<DataAccess> accesses, Ps cost = kMs, TaskSpec spec = {}) {
        spec.cost = cost;
        spec.accesses = accesses;
        const TaskId id = core_->submit(spec);
        costs_.resize(id + 1, kMs / 100);
        costs_[id] = cost;
        return id;
    }
    Ps start(TaskId task) const { return core_->planned_start(task); }
    Ps finish(TaskId task) const { return core_->planned_finish(task); }

    Machine machine_;
    SimExecutor executor_;
    std::unique_ptr<Core> core_;
    std::vector<Ps> costs_;
};

TEST_F(CoreTest, OrderFollowsFromAccesses) {
    const DataId a = core_->add_data(64, 2), b = core_->add_data(64, 2);
    const TaskId writer = add({{a, Access::kWrite}});
    const TaskId reader1 = add({{a, Access::kRead}});
    const TaskId reader2 = add({{a, Access::kRead}});
    const TaskId rewriter = add({{a, Access::kReadWrite}});
    const TaskId other = add({{b, Access::kWrite}});
    const TaskId both = add({{a, Access::kRead}, {b, Access::kRead}, {a, Access::kRead}});
    executor_.drain(*core_);
    EXPECT_TRUE(core_->idle());
    EXPECT_EQ(executor_.order_errors(), 0u);
    EXPECT_GE(start(reader1), finish(writer));
    EXPECT_GE(start(reader2), finish(writer));
    EXPECT_NE(core_->node(reader1), core_->node(reader2)) << "readers run side by side";
    EXPECT_GE(start(rewriter), std::max(finish(reader1), finish(reader2)));
    EXPECT_LT(start(other), finish(reader1)) << "independent";
    EXPECT_GE(start(both), std::max(finish(rewriter), finish(other)));
    EXPECT_EQ(core_->stats().edges, 7u);
}

TEST_F(CoreTest, EveryOrderOfRandomGraphsIsKept) {
    for (std::uint32_t seed = 1; seed < 20; ++seed) {
        std::mt19937 random(seed);
        graphs::TaskGraph graph;
        graph.data.assign(20, 1 << 20);
        for (int i = 0; i < 300; ++i) {
            graphs::GraphTask task{kMs / 10 + static_cast<Ps>(random() % kMs), {}};
            for (unsigned a = 0; a < 1 + random() % 3; ++a) {
                const auto mode = static_cast<Access>(1 + random() % 3);
                const auto data = static_cast<DataId>(random() % 20);
                if (std::ranges::none_of(task.accesses, [&](const DataAccess& x) { return x.data == data; }))
                    task.accesses.push_back({data, mode});
            }
            graph.tasks.push_back(std::move(task));
        }
        for (const double noise : {0.0, 0.5}) {
            const Machine machine = Machine::uniform(1 + seed % 8, 1'000'000, 10e9, 5e9);
            SimExecutor executor(machine);
            executor.bytes = [&](DataId data) { return graph.data[data]; };
            executor.duration = [&](TaskId task, unsigned) {
                return static_cast<Ps>(static_cast<double>(graph.tasks[task].cost) *
                                       (1 + noise * (static_cast<double>(task * 7919 % 100) / 50 - 1)));
            };
            Core core(machine, executor);
            graphs::submit_all(core, graph, machine.host());
            executor.drain(core);
            ASSERT_TRUE(core.idle());
            ASSERT_EQ(executor.order_errors(), 0u);
            const auto before = graphs::predecessors(graph);
            for (TaskId task = 0; task < graph.tasks.size(); ++task) {
                for (const TaskId p : before[task])
                    ASSERT_GE(core.planned_start(task), core.planned_finish(p))
                        << seed << ": " << task << " after " << p;
            }
        }
    }
}

TEST_F(CoreTest, WorkStaysWhereItsDataIs) {
    // Two chains on large data: each stays on one card.
    const DataId a = core_->add_data(64 << 20, 2), b = core_->add_data(64 << 20, 2);
    std::vector<TaskId> on_a, on_b;
    for (int i = 0; i < 10; ++i) {
        on_a.push_back(add({{a, Access::kReadWrite}}));
        on_b.push_back(add({{b, Access::kReadWrite}}));
    }
    executor_.drain(*core_);
    for (int i = 1; i < 10; ++i) {
        EXPECT_EQ(core_->node(on_a[static_cast<std::size_t>(i)]), core_->node(on_a[0]));
        EXPECT_EQ(core_->node(on_b[static_cast<std::size_t>(i)]), core_->node(on_b[0]));
    }
    EXPECT_NE(core_->node(on_a[0]), core_->node(on_b[0]));
    EXPECT_EQ(core_->stats().transfers, 2u);
}

class OneCard : public CoreTest {
  protected:
    OneCard() : CoreTest(1) {}
};

TEST_F(OneCard, PrioritiesAndDeadlinesReachWhatTheyDependOn) {
    const DataId d = core_->add_data(64, 0), e = core_->add_data(64, 0), f = core_->add_data(64, 0);
    std::vector<TaskId> plain;
    for (int i = 0; i < 5; ++i)
        plain.push_back(add({{d, Access::kRead}}));
    TaskSpec urgent;
    urgent.deadline = 10 * kMs;
    const TaskId source = add({{f, Access::kWrite}});
    const TaskId timed = add({{f, Access::kRead}}, kMs, urgent);
    TaskSpec high;
    high.priority = 5;
    const TaskId first = add({{e, Access::kWrite}});
    const TaskId second = add({{e, Access::kRead}}, kMs, high);
    executor_.drain(*core_);
    EXPECT_EQ(start(first), 0);
    EXPECT_EQ(start(second), kMs);
    EXPECT_EQ(start(source), 2 * kMs);
    EXPECT_EQ(finish(timed), 4 * kMs);
    for (const TaskId task : plain)
        EXPECT_GE(start(task), finish(timed));
}

TEST_F(CoreTest, ReductionsRunOnAllCardsAndAreMergedOnce) {
    const DataId sum = core_->add_data(1 << 20, 2);
    core_->set_merge_cost(sum, kMs / 100);
    std::vector<TaskId> parts;
    for (int i = 0; i < 8; ++i)
        parts.push_back(add({{sum, Access::kReduce}}));
    const TaskId reader = add({{sum, Access::kRead}});
    EXPECT_EQ(reader, 9u) << "behind the merge";
    EXPECT_TRUE(core_->is_merge(8));
    executor_.drain(*core_);
    EXPECT_TRUE(core_->idle());
    EXPECT_EQ(executor_.order_errors(), 0u);
    bool used[2] = {};
    Ps last = 0;
    for (const TaskId part : parts) {
        used[core_->node(part)] = true;
        last = std::max(last, finish(part));
    }
    EXPECT_TRUE(used[0] && used[1]);
    EXPECT_LE(last, 4 * kMs + kMs / 2);
    EXPECT_GE(start(8), last);
    EXPECT_GE(start(reader), finish(8));
}

TEST_F(CoreTest, FailureCancelsWhatNeedsTheResultAndNamesTheFirstCause) {
    const DataId a = core_->add_data(64, 2), b = core_->add_data(64, 2), c = core_->add_data(64, 2);
    const TaskId bad = add({{a, Access::kWrite}});
    const TaskId user = add({{a, Access::kRead}, {b, Access::kWrite}});
    const TaskId users_user = add({{b, Access::kRead}, {c, Access::kWrite}});
    const TaskId healed = add({{b, Access::kWrite}});
    const TaskId fine = add({{b, Access::kRead}});
    executor_.fails = [&](TaskId task) { return task == bad; };
    executor_.drain(*core_);
    EXPECT_EQ(core_->state(bad), TaskState::kFailed);
    EXPECT_EQ(core_->caused_by(bad), bad);
    EXPECT_EQ(core_->state(user), TaskState::kCancelled);
    EXPECT_EQ(core_->state(users_user), TaskState::kCancelled);
    EXPECT_EQ(core_->caused_by(users_user), bad);
    EXPECT_EQ(core_->state(healed), TaskState::kDone) << "it only writes: nothing of the failure reaches it";
    EXPECT_EQ(core_->state(fine), TaskState::kDone);
    const TaskId late = add({{c, Access::kRead}});
    EXPECT_EQ(core_->state(late), TaskState::kCancelled) << "submitted afterwards";
    EXPECT_EQ(core_->caused_by(late), bad);
    EXPECT_TRUE(core_->idle());
}

TEST_F(CoreTest, CancelTakesTheDependentsAlong) {
    const DataId a = core_->add_data(64, 2);
    const TaskId first = add({{a, Access::kWrite}});
    const TaskId second = add({{a, Access::kReadWrite}});
    const TaskId third = add({{a, Access::kRead}});
    EXPECT_TRUE(core_->cancel(second));
    EXPECT_FALSE(core_->cancel(third)) << "it is cancelled already";
    executor_.drain(*core_);
    EXPECT_EQ(core_->state(first), TaskState::kDone);
    EXPECT_EQ(core_->state(third), TaskState::kCancelled);
    EXPECT_EQ(core_->caused_by(third), second);
    EXPECT_FALSE(core_->cancel(first));
    EXPECT_TRUE(core_->idle());
}

TEST_F(CoreTest, GraphsGrowWhileTheyRun) {
    const DataId a = core_->add_data(1 << 16, 2);
    int left = 200;
    add({{a, Access::kReadWrite}}, kMs);
    executor_.on_done = [&](TaskId) {
        if (left-- > 0) add({{a, left % 3 == 0 ? Access::kReadWrite : Access::kRead}}, kMs);
    };
    executor_.drain(*core_);
    EXPECT_TRUE(core_->idle());
    EXPECT_EQ(core_->stats().done, 201u);
    EXPECT_EQ(executor_.order_errors(), 0u);
}

// What users and files say of times may be anything; a plan needs sums of them.
TEST_F(OneCard, CostsAreBounded) {
    machine_.slowness[0] = 16;
    machine_.channel[1][0] = {kLongest, 1e15, true};
    core_->set_machine(machine_);
    const DataId large = core_->add_data(1ull << 40, 1);
    const TaskId first = add({{large, Access::kRead}}, Ps{1'000'000'000'000'000'000});
    core_->pump();
    EXPECT_EQ(start(first), 2 * kLongest);
    EXPECT_EQ(finish(first), 3 * kLongest);
}

TEST_F(CoreTest, HostTasksRunOnTheHost) {
    const DataId a = core_->add_data(1 << 20, 2);
    TaskSpec host;
    host.node = static_cast<int>(machine_.host());
    const TaskId card = add({{a, Access::kReadWrite}});
    const TaskId on_host = add({{a, Access::kReadWrite}}, kMs, host);
    const TaskId back = add({{a, Access::kRead}});
    executor_.drain(*core_);
    EXPECT_EQ(core_->node(on_host), machine_.host());
    EXPECT_GT(start(on_host), finish(card)) << "the data crosses PCIe";
    EXPECT_GT(start(back), finish(on_host));
    EXPECT_EQ(core_->stats().transfers, 3u);
}

TEST_F(CoreTest, CardsWithoutALinkUseTheHost) {
    machine_.channel[0][1].exists = machine_.channel[1][0].exists = false;
    SimExecutor executor(machine_);
    executor.duration = executor_.duration;
    Core core(machine_, executor);
    executor.bytes = [&](DataId data) { return core.bytes(data); };
    const DataId a = core.add_data(1 << 20, 0);
    costs_.assign(1, kMs);
    const DataAccess access{a, Access::kRead};
    TaskSpec spec;
    spec.cost = kMs;
    spec.accesses = {&access, 1};
    spec.node = 1;
    const TaskId task = core.submit(spec);
    executor.drain(core);
    EXPECT_EQ(core.state(task), TaskState::kDone);
    EXPECT_EQ(core.stats().transfers, 2u);
}

// Commands that were lost are issued again, from data that is really there.
// Four workers with two groups each.
class Workers4 : public CoreTest {
  protected:
    Workers4() : CoreTest(1) {
        machine_.workers[0] = 4;
        machine_.groups_a_worker[0] = 2;
        core_ = std::make_unique<Core>(machine_, executor_);
    }
    TaskId of(std::uint64_t groups, std::vector<DataAccess> accesses) {
        TaskSpec spec;
        spec.groups = groups;
        return add(std::move(accesses), kMs, spec);
    }
    DataId datum() { return core_->add_data(64, 0); }
};

TEST_F(Workers4, SmallKernelsShareACard) {
    std::vector<TaskId> small;
    for (int i = 0; i < 8; ++i)
        small.push_back(of(1 + static_cast<std::uint64_t>(i % 2), {{datum(), Access::kWrite}}));
    EXPECT_EQ(executor_.drain(*core_), 2 * kMs);
    EXPECT_EQ(start(small[3]), start(small[0]));
    EXPECT_EQ(start(small[4]), finish(small[0]));
}

TEST_F(Workers4, OthersTakeAsManyWorkersAsTheyHaveGroups) {
    const TaskId half = of(3, {{datum(), Access::kWrite}}), other = of(4, {{datum(), Access::kWrite}});
    const TaskId third = of(4, {{datum(), Access::kWrite}});
    const TaskId whole = of(7, {{datum(), Access::kWrite}}), huge = of(1 << 20, {{datum(), Access::kWrite}});
    const TaskId unknown = of(0, {{datum(), Access::kWrite}});
    executor_.drain(*core_);
    EXPECT_EQ(start(half), start(other));
    EXPECT_GE(start(third), finish(half));
    EXPECT_GE(start(whole), finish(third));
    EXPECT_GE(start(huge), finish(whole));
    EXPECT_GE(start(unknown), finish(huge));
}

// They add into one part of the card's.
TEST_F(Workers4, ReductionsOfACardDoNotRunSideBySide) {
    const DataId sum = datum();
    core_->set_merge_cost(sum, kMs);
    const TaskId first = of(1, {{sum, Access::kReduce}}), second = of(1, {{sum, Access::kReduce}});
    executor_.drain(*core_);
    EXPECT_TRUE(start(second) >= finish(first) || start(first) >= finish(second));
}

TEST_F(Workers4, OrderIsKeptAndPlansAreMadeAnew) {
    std::vector<DataId> data;
    for (int i = 0; i < 12; ++i)
        data.push_back(datum());
    std::mt19937 random(1);
    executor_.duration = [](TaskId task, unsigned) { return kMs / 2 + kMs * (task * 7919 % 100) / 100; };
    for (int i = 0; i < 400; ++i) {
        const auto at = static_cast<DataId>(random() % data.size());
        of(random() % 9, {{data[at], Access::kReadWrite}});
    }
    executor_.drain(*core_);
    EXPECT_TRUE(core_->idle());
    EXPECT_EQ(executor_.order_errors(), 0u);
    EXPECT_GT(core_->stats().replans, 0u);
}

TEST(CoreReissue, LostTasksRunAgain) {
    const Machine machine = Machine::uniform(2, 1'000'000, 50e9, 32e9);
    class Recorder : public Executor {
      public:
        void transfer(const TransferCommand& command) override { transfers.push_back(command); }
        void run(const RunCommand& command) override { runs.push_back(command.task); }
        std::vector<TransferCommand> transfers;
        std::vector<TaskId> runs;
    } recorder;
    Core core(machine, recorder);
    const DataId a = core.add_data(64, 2), b = core.add_data(64, 2);
    const auto submit = [&](std::vector<DataAccess> accesses) {
        TaskSpec spec;
        spec.cost = kMs;
        spec.accesses = accesses;
        return core.submit(spec);
    };
    const TaskId t0 = submit({{a, Access::kReadWrite}});
    const TaskId t1 = submit({{a, Access::kReadWrite}});
    const TaskId t2 = submit({{b, Access::kReadWrite}});
    const TaskId t3 = submit({{a, Access::kRead}, {b, Access::kReadWrite}});
    core.pump();
    ASSERT_EQ(recorder.runs.size(), 4u);
    core.complete(t0, 0, kMs);
    core.fail(t2);
    EXPECT_EQ(core.state(t3), TaskState::kCancelled);
    recorder.runs.clear();
    recorder.transfers.clear();
    core.reissue();
    core.pump();
    EXPECT_EQ(recorder.runs, (std::vector<TaskId>{t1}));
    for (const auto& transfer : recorder.transfers)
        EXPECT_EQ(transfer.from, core.node(t0)) << "only t0's result of `a` is whole";
    core.complete(t1, kMs, 2 * kMs);
    EXPECT_TRUE(core.idle());
    // One of the cards goes: nothing is planned there, unless it has to be.
    const unsigned gone = core.node(t1);
    recorder.runs.clear();
    core.reissue(1u << gone);
    EXPECT_TRUE(core.stranded().empty());
    std::vector<TaskId> later;
    for (int i = 0; i < 4; ++i)
        later.push_back(submit({{core.add_data(64, 2), Access::kReadWrite}}));
    core.pump();
    EXPECT_EQ(recorder.runs, later);
    for (const TaskId task : later)
        EXPECT_EQ(core.node(task), 1 - gone);
    // What only it had is gone: whoever needs it is known at once.
    const TaskId reader = submit({{a, Access::kRead}}), writer = submit({{a, Access::kWrite}}),
                 next = submit({{a, Access::kRead}});
    core.reissue(1u << gone);
    EXPECT_EQ(core.stranded(), (std::vector<TaskId>{reader}));
    core.fail(reader);
    core.pump();
    EXPECT_EQ(core.state(writer), TaskState::kIssued);
    EXPECT_EQ(core.state(next), TaskState::kIssued);
}

}  // namespace
}  // namespace orrery::umd
