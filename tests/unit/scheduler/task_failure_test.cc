// Task graphs of which something fails: what is told, what goes on, and what it costs.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/unit/scheduler/task_fixture.h"
#include "tests/unit/umd/asleep.h"
#include "tests/unit/umd/long_patience.h"

namespace orrery::umd::test {
namespace {

TEST_F(TaskTest, FailureIsNamedByAllThatDependOnIt) {
    const auto x = data(1), y = data(2), z = data(3);
    const orrTask_t bad = add({0, 0, 0, 1, 1, 1}, {{x, orrTaskAccessReadWrite, kOut}},
                              [](orrTaskDesc& d) { d.name = "bad one"; });
    const orrTask_t next =
        add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}, {x, orrTaskAccessRead, kA}},
            [](orrTaskDesc& d) { d.name = "middle"; });
    const orrTask_t last = add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}});
    std::vector<orrTask_t> fine;
    for (int i = 0; i < 30; ++i)
        fine.push_back(add({0, 0, 0, 1, 1, 0}, {{z, orrTaskAccessReadWrite, kOut}}));
    EXPECT_FAIL(orrTaskGraphWait(graph_), orrErrorIllegalInstruction, "'bad one' failed");
    EXPECT_FAIL(orrTaskWait(graph_, last), orrErrorIllegalInstruction, "because task 0 'bad one' had failed");
    EXPECT_EQ(info(bad).state, orrTaskStateFailed);
    EXPECT_EQ(info(next).state, orrTaskStateCancelled);
    EXPECT_EQ(info(last).cause, bad);
    EXPECT_EQ(info(last).error, orrErrorIllegalInstruction);
    EXPECT_EQ(read(z), 33) << "what does not depend on it goes on";
    std::int64_t value = 0;
    EXPECT_FAIL(orrTaskDataRead(&value, y, 8), orrErrorIllegalInstruction, "'bad one'");
    // What is written anew is whole again.
    add({0, 0, 0, 50, 0, 0}, {{y, orrTaskAccessWrite, kOut}});
    EXPECT_EQ(read(y), 50);
}

TEST_F(TaskTest, ManyFailuresAndStillTheRestIsRight) {
    std::vector<orrTaskData_t> all;
    for (int i = 0; i < 16; ++i)
        all.push_back(data(i));
    for (int round = 0; round < 20; ++round) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool trap = i % 4 == 3 && round == static_cast<int>(i);
            add({0, 0, 0, 1, 1, trap ? 1u : 0u}, {{all[i], orrTaskAccessReadWrite, kOut}});
        }
    }
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::int64_t value = 0;
        const orrError_t error = orrTaskDataRead(&value, all[i], 8);
        if (i % 4 == 3) {
            EXPECT_EQ(error, orrErrorIllegalInstruction) << i;
        } else {
            ASSERT_EQ(error, orrSuccess) << orrGetLastErrorText();
            EXPECT_EQ(value, static_cast<std::int64_t>(i) + 20) << i;
        }
    }
}

TEST_F(TaskTest, FailureWhileHostTasksQueue) {
    const auto x = data(1), y = data(2), z = data(3);
    const auto host_task = [&](orrTaskData_t of) {
        orrTaskDesc desc = ORR_INIT(orrTaskDesc);
        orrTaskAccess access{of, orrTaskAccessReadWrite, orrTaskAccessNoArgument, 0, 0};
        desc.function = [](void*, void* const* data, std::size_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            ++*static_cast<std::int64_t*>(data[0]);
        };
        desc.accesses = &access;
        desc.access_count = 1;
        EXPECT_OK(orrTaskSubmit(nullptr, graph_, &desc));
    };
    host_task(x);  // runs when the kernel traps
    host_task(y);  // is queued
    add({0, 0, 0, 0, 0, 1}, {{z, orrTaskAccessReadWrite, kOut}});
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    EXPECT_EQ(read(x), 2);
    EXPECT_EQ(read(y), 3);
}

TEST_F(TaskTest, LostCardEndsTheGraph) {
    const auto x = data(1), y = data(2);
    system_.card(0).pause(true);
    add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 0); });
    add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 1); });
    ASSERT_OK(orrTaskGraphStart(graph_));
    system_.card(0).lose();
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost);
    EXPECT_EQ(read(y), 3) << "the other card goes on";
    // What comes then is not planned where nothing runs, though nobody is less busy.
    std::vector<orrTaskData_t> more;
    for (int i = 0; i < 20; ++i) {
        more.push_back(data(i));
        add({0, 0, 0, 1, 1, 0}, {{more.back(), orrTaskAccessReadWrite, kOut}});
    }
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost) << "the first cause stays";
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(read(more[static_cast<std::size_t>(i)]), i + 1);
}

// A cable is pulled, and then something fails that has nothing to do with it: what is left goes over the
// host.
TEST_F(TaskTest, AFailureAfterItsLinkWasCut) {
    const auto x = data(1), y = data(0), z = data(0);
    const auto on = [](int card) { return [card](orrTaskDesc& d) { on_device(d, card); }; };
    for (int i = 0; i < 4; ++i)
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, on(i % 2));
    ASSERT_OK(orrTaskGraphWait(graph_));
    system_.card(0).cut_link();
    add({0, 0, 0, 0, 0, 1}, {{y, orrTaskAccessReadWrite, kOut}}, on(1));
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    const orrTask_t alone = add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, on(0));
    EXPECT_OK(orrTaskWait(graph_, alone));
    const orrTask_t across =
        add({0, 0, 0, 0, 1, 0}, {{z, orrTaskAccessReadWrite, kOut}, {x, orrTaskAccessRead, kA}}, on(1));
    EXPECT_OK(orrTaskWait(graph_, across));
    EXPECT_EQ(read(z), 6);
}

// Times count from the graph's start, also when a card that nobody has missed yet is not there.
TEST_F(TaskTest, TimesBesideACardThatIsGone) {
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 32 << 20));
    ASSERT_OK(orrMemset(memory, 1, 32 << 20));
    ASSERT_OK(orrFree(memory));
    system_.card(1).lose();
    const auto x = data(1), y = data(2);
    const orrTask_t runs =
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 0); });
    add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 1); });
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost);
    EXPECT_OK(orrTaskWait(graph_, runs));
    EXPECT_LT(info(runs).start_ns, 100'000);
}

// What the cards know of each other's work is of queues that stay and of queues that are made anew.
TEST_F(TaskTest, ChainsOverTheCardsBeforeAndAfterAFailure) {
    system_.card(0).on_dispatch = [&, running = 0](FakeCard& card, const FakeDispatch& dispatch) mutable {
        if (++running % 4 != 0) return FakeOutcome{.running = true};  // so that who does not wait comes first
        return compute(card, dispatch);
    };
    const auto x = data(0), y = data(0);
    const auto chain = [&] {
        for (int i = 0; i < 40; ++i) {
            add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}},
                [i](orrTaskDesc& d) { on_device(d, i % 2); });
        }
        EXPECT_EQ(read(x) % 40, 0);
    };
    chain();
    for (int card = 0; card < 2; ++card) {
        const orrTask_t trap = add({0, 0, 0, 0, 0, 1}, {{y, orrTaskAccessWrite, kOut}},
                                   [card](orrTaskDesc& d) { on_device(d, card); });
        EXPECT_EQ(orrTaskWait(graph_, trap), orrErrorIllegalInstruction);
        chain();
        EXPECT_EQ(read(x), 40 * (card + 2));
    }
}

// A card that was lost before it was given anything costs nothing.
TEST_F(TaskTest, WhatALostCardWasNotGivenAnotherOneDoes) {
    std::vector<orrTaskData_t> all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(data(i));
        add({0, 0, 0, 1, 1, 0}, {{all.back(), orrTaskAccessReadWrite, kOut}});
    }
    system_.card(1).lose();
    ASSERT_OK(orrTaskGraphWait(graph_));
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(read(all[static_cast<std::size_t>(i)]), i + 1);
}

// A card goes at any moment of a graph that uses all of it: the graph ends, and soon.
class CardGoes : public TaskTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(CardGoes, AtAnyMomentAndTheGraphEnds) {
    constexpr int kRow = 12;
    std::mt19937 random(GetParam());
    std::vector<orrTaskData_t> handles;
    for (int i = 0; i < kRow * kRow; ++i)
        handles.push_back(data(i));
    const auto at = [&](int i, int j) { return handles[static_cast<std::size_t>(i * kRow + j)]; };
    for (int k = 0; k < kRow; ++k) {
        for (int i = k + 1; i < kRow; ++i) {
            for (int j = k + 1; j < i; ++j)
                add({0, 0, 0, 1, 1, 0}, {{at(i, j), orrTaskAccessReadWrite, kOut},
                                         {at(i, k), orrTaskAccessRead, kA},
                                         {at(j, k), orrTaskAccessRead, kB}});
        }
    }
    const LongPatience patience;
    ASSERT_OK(orrTaskGraphStart(graph_));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12'000));
    FakeCard& gone = system_.card(GetParam() % 2);
    gone.pause(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until the driver looks
    gone.lose();
    const auto begin = std::chrono::steady_clock::now();
    const orrError_t told = orrTaskGraphWait(graph_);
    EXPECT_TRUE(told == orrSuccess || told == orrErrorDeviceLost) << orrGetLastErrorText();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, LongPatience::kShort);
}
INSTANTIATE_TEST_SUITE_P(Seeds, CardGoes, ::testing::Range(0u, 12u));

// Asking for a task's state never waits for the longest kernel, also while the graph recovers.
TEST_F(TaskTest, CanBeAskedWhileItRecovers) {
    std::atomic<bool> held{true};
    system_.card(1).on_dispatch = [&](FakeCard& card, const FakeDispatch& dispatch) {
        return held.load() ? FakeOutcome{.running = true} : compute(card, dispatch);
    };
    const auto x = data(1), y = data(2);
    const orrTask_t bad =
        add({0, 0, 0, 0, 0, 1}, {{x, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 0); });
    add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 1); });
    ASSERT_OK(orrTaskGraphStart(graph_));
    while (info(bad).state != orrTaskStateFailed)
        std::this_thread::yield();  // with the lock held over the recovery this never ends
    held.store(false);
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    EXPECT_EQ(read(y), 3);
}

// Who has heard of a failure and destroys the graph does not wait for what else it has under way.
TEST_F(TaskTest, DestroyedAfterAFailureItStopsWhatRuns) {
    system_.card(1).on_dispatch = [](FakeCard&, const FakeDispatch&) { return FakeOutcome{.running = true}; };
    const auto x = data(1), y = data(2);
    const orrTask_t bad =
        add({0, 0, 0, 0, 0, 1}, {{x, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 0); });
    add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 1); });
    EXPECT_EQ(orrTaskWait(graph_, bad), orrErrorIllegalInstruction);
    EXPECT_OK(orrTaskGraphDestroy(graph_));  // else never
    graph_ = nullptr;
    system_.card(1).on_dispatch = compute;
    create(nullptr);
    EXPECT_EQ(read(data(5)), 5);
}

// Of several that destroy it one does, and nobody is told so before it has ended.
TEST_F(TaskTest, DestroyedByTwoAtOnce) {
    struct {
        std::atomic<bool> runs{false}, may_end{false}, ended{false};
    } state;
    const auto x = data(1);
    orrTaskAccess access{};
    access.data = x;
    access.mode = orrTaskAccessReadWrite;
    orrTaskDesc desc = ORR_INIT(orrTaskDesc);
    desc.user = &state;
    desc.function = [](void* user, void* const*, std::size_t) {
        auto& task = *static_cast<decltype(state)*>(user);
        task.runs.store(true);
        while (!task.may_end.load())
            std::this_thread::yield();
        task.ended.store(true);
    };
    desc.accesses = &access;
    desc.access_count = 1;
    ASSERT_OK(orrTaskSubmit(nullptr, graph_, &desc));
    ASSERT_OK(orrTaskGraphStart(graph_));
    while (!state.runs.load())
        std::this_thread::yield();
    std::atomic<int> first{0}, late{0}, called{0};
    const auto destroy = [&] {
        ++called;
        const orrError_t told = orrTaskGraphDestroy(graph_);
        EXPECT_TRUE(state.ended.load());
        if (told == orrSuccess) ++first;
        if (told == orrErrorInvalidHandle) ++late;
    };
    {
        std::jthread one(destroy), other(destroy);
        while (called.load() < 2)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // they are in it, most likely
        state.may_end.store(true);
    }
    EXPECT_EQ(first.load(), 1);
    EXPECT_EQ(late.load(), 1);
    graph_ = nullptr;
    create(nullptr);
}

// Each linked with each.
class EightCards : public TaskTest {
  protected:
    static constexpr std::size_t kCards = 8;

    EightCards() : TaskTest(kCards) {
        for (std::size_t a = 0; a < kCards; ++a) {
            for (std::size_t b = a + 1; b < kCards; ++b) {
                if (a % 2 != 0 || b != a + 1) system_.card(a).link_to(system_.card(b));
            }
            system_.card(a).on_make_queue = [&] {
                ++queues_;
                if (made_) made_();
            };
        }
        create(nullptr);  // the first one knows of fewer links
        for (std::size_t card = 0; card < kCards; ++card)
            parts_.push_back(data(static_cast<std::int64_t>(card)));
    }
    static std::function<void(orrTaskDesc&)> on(std::size_t card) {
        return [card](orrTaskDesc& desc) { on_device(desc, static_cast<int>(card)); };
    }
    // Each card makes its part anew, and then needs all others'.
    void all_to_all(std::size_t cards) {
        for (std::size_t card = 0; card < cards; ++card)
            add({0, 0, 0, 1, 0, 0}, {{parts_[card], orrTaskAccessWrite, kOut}}, on(card));
        for (std::size_t card = 0; card < cards; ++card) {
            const auto sum = data(0);
            for (std::size_t other = 0; other < cards; ++other)
                add({0, 0, 0, 0, 1, 0},
                    {{sum, orrTaskAccessReadWrite, kOut}, {parts_[other], orrTaskAccessRead, kA}}, on(card));
        }
    }

    std::atomic<int> queues_{0};
    std::function<void()> made_;
    std::vector<orrTaskData_t> parts_;
};

// To make queues for eight cards takes longer than all else that a failure costs.
TEST_F(EightCards, AFailureCostsOnlyTheQueuesThatItStopped) {
    all_to_all(kCards);
    ASSERT_OK(orrTaskGraphWait(graph_));
    const int all = queues_.load();
    EXPECT_GT(all, 100);
    system_.card(7).lose();
    add({0, 0, 0, 1, 0, 0}, {{data(0), orrTaskAccessWrite, kOut}}, on(7));
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost);
    all_to_all(kCards - 1);
    for (std::size_t card = 0; card < kCards - 1; ++card)
        EXPECT_EQ(read(parts_[card]), 1);
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost) << "the first cause stays";
    EXPECT_LE(queues_.load(), all + 20);
}

// Who destroys a graph that still makes its queues does not wait until it has them all.
TEST_F(EightCards, DestroyedWhileItMakesQueues) {
    std::atomic<bool> enough{false}, destroys{false};
    made_ = [&] {
        if (queues_.load() < 20) return;
        enough.store(true);
        // Only while who destroys it waits for that.
        while (!destroys.load() || !asleep(::getpid()))
            std::this_thread::yield();
    };
    all_to_all(kCards);
    ASSERT_OK(orrTaskGraphStart(graph_));
    while (!enough.load())
        std::this_thread::yield();
    destroys.store(true);
    EXPECT_OK(orrTaskGraphDestroy(graph_));
    graph_ = nullptr;
    EXPECT_LE(queues_.load(), 36) << "the rest of a turn; 50 when all are made that were asked for";
    made_ = {};
    create(nullptr);
}

}  // namespace
}  // namespace orrery::umd::test
