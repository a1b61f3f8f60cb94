// Groups of threads on cards of this process.
#include <orrery/graph.h>
#include <orrery/group.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/asleep.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/context.h"
#include "umd/runtime/group.h"
#include "umd/runtime/group_page.h"
#include "umd/runtime/group_rendezvous.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kLongNs = 100'000'000'000, kShortNs = 20'000'000;

orrGroupCause cause_of(orrGroup_t group) {
    orrGroupCause cause = ORR_INIT(orrGroupCause);
    EXPECT_OK(orrGroupGetCause(&cause, group));
    return cause;
}

// Members by turns on two linked cards.
class GroupTest : public ::testing::TestWithParam<int> {
  protected:
    void SetUp() override { make(GetParam()); }
    void make(int members) {
        std::vector<int> devices;
        for (int rank = 0; rank < members; ++rank)
            devices.push_back(rank % 2);
        groups_.resize(static_cast<std::size_t>(members));
        ASSERT_OK(orrGroupCreateAll(groups_.data(), groups_.size(), devices.data(), 0));
        for (int device : devices) {
            ASSERT_OK(orrSetDevice(device));
            streams_.emplace_back();
            ASSERT_OK(orrStreamCreate(&streams_.back(), 0));
        }
        ASSERT_OK(orrSetDevice(0));
    }
    void TearDown() override {
        for (orrGroup_t group : groups_) {
            if (group != nullptr) EXPECT_OK(orrGroupDestroy(group));
        }
        for (orrStream_t stream : streams_)
            EXPECT_OK(orrStreamDestroy(stream));
    }
    int members() const { return static_cast<int>(groups_.size()); }
    // All members at once; the errors are the members'.
    void all(const std::function<void(int)>& does) {
        std::vector<std::thread> threads;
        for (int rank = 0; rank < members(); ++rank)
            threads.emplace_back(does, rank);
        for (std::thread& thread : threads)
            thread.join();
    }
    orrGroup_t group(int rank) const { return groups_[static_cast<std::size_t>(rank)]; }
    orrStream_t stream(int rank) const { return streams_[static_cast<std::size_t>(rank)]; }

    FakeSystem system_{2};
    std::vector<orrGroup_t> groups_;
    std::vector<orrStream_t> streams_;
};

TEST_P(GroupTest, KnowsItself) {
    for (int rank = 0; rank < members(); ++rank) {
        orrGroupInfo info = ORR_INIT(orrGroupInfo);
        ASSERT_OK(orrGroupGetInfo(&info, group(rank)));
        EXPECT_EQ(info.rank, rank);
        EXPECT_EQ(info.members, members());
        EXPECT_EQ(info.device, rank % 2);
        EXPECT_EQ(cause_of(group(rank)).code, orrSuccess);
        EXPECT_EQ(cause_of(group(rank)).rank, -1);
    }
}

TEST_P(GroupTest, MeetsOnTheHost) {
    std::atomic<int> come{0};
    all([&](int rank) {
        for (int turn = 1; turn <= 20; ++turn) {
            ++come;
            EXPECT_OK(orrGroupBarrier(group(rank), kLongNs));
            EXPECT_GE(come.load(), turn * members());
            EXPECT_OK(orrGroupBarrier(group(rank), ORR_NO_LIMIT));
        }
    });
}

TEST_P(GroupTest, TellsSmallValues) {
    all([&](int rank) {
        for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{9}, std::size_t{4096}}) {
            std::vector<std::uint8_t> own(bytes, static_cast<std::uint8_t>(rank + 1));
            std::vector<std::uint8_t> gathered(bytes * groups_.size());
            EXPECT_OK(orrGroupAllGather(group(rank), gathered.data(), own.data(), bytes, kLongNs));
            for (std::size_t i = 0; i < gathered.size(); ++i)
                ASSERT_EQ(gathered[i], i / bytes + 1);
            for (int root = 0; root < members(); ++root) {
                std::vector<std::uint8_t> value(bytes, static_cast<std::uint8_t>(10 * rank));
                EXPECT_OK(orrGroupBroadcast(group(rank), value.data(), bytes, root, kLongNs));
                EXPECT_EQ(value, std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(10 * root)));
            }
        }
    });
}

TEST_P(GroupTest, MeetsInStreams) {
    if (members() == 1) GTEST_SKIP();
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream(0), gate, 1, nullptr));
    for (int turn = 0; turn < 3; ++turn) {
        for (int rank = 0; rank < members(); ++rank)
            ASSERT_OK(orrGroupBarrierAsync(group(rank), stream(rank), nullptr));
    }
    for (int rank = 0; rank < members(); ++rank)
        EXPECT_EQ(orrStreamQuery(stream(rank)), orrErrorNotReady) << rank;
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    for (int rank = 0; rank < members(); ++rank)
        EXPECT_OK(orrStreamSynchronize(stream(rank)));
    ASSERT_OK(orrSemaphoreDestroy(gate));
}

// A member's barriers keep their order over its streams.
TEST_P(GroupTest, GoesFromStreamToStream) {
    orrStream_t second = nullptr;
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrStreamCreate(&second, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream(0), gate, 1, nullptr));
    ASSERT_OK(orrGroupBarrierAsync(group(0), stream(0), nullptr));
    ASSERT_OK(orrGroupBarrierAsync(group(0), second, nullptr));
    for (int rank = 1; rank < members(); ++rank) {
        ASSERT_OK(orrGroupBarrierAsync(group(rank), stream(rank), nullptr));
        EXPECT_EQ(orrStreamQuery(stream(rank)), orrErrorNotReady);
        ASSERT_OK(orrGroupBarrierAsync(group(rank), stream(rank), nullptr));
    }
    EXPECT_EQ(orrStreamQuery(second), orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    EXPECT_OK(orrStreamSynchronize(second));
    for (int rank = 0; rank < members(); ++rank)
        EXPECT_OK(orrStreamSynchronize(stream(rank)));
    ASSERT_OK(orrStreamDestroy(second));
    ASSERT_OK(orrSemaphoreDestroy(gate));
}

TEST_P(GroupTest, AbortIsToldToAll) {
    const int who = members() - 1;
    for (int rank = 0; rank < who; ++rank)
        ASSERT_OK(orrGroupBarrierAsync(group(rank), stream(rank), nullptr));
    all([&](int rank) {
        if (rank == who) {
            EXPECT_OK(orrGroupAbort(group(rank), "no more\nof this"));
        } else {
            EXPECT_FAIL(orrGroupBarrier(group(rank), kLongNs), orrErrorAborted, "no more?of this");
        }
    });
    for (int rank = 0; rank < members(); ++rank) {
        if (rank != who) EXPECT_NE(orrStreamSynchronize(stream(rank)), orrSuccess);
        EXPECT_FAIL(orrGroupBarrierAsync(group(rank), stream(rank), nullptr), orrErrorAborted,
                    fmt::format("rank {} on device {}", who, who % 2));
        const orrGroupCause cause = cause_of(group(rank));
        EXPECT_EQ(cause.code, orrErrorAborted);
        EXPECT_EQ(cause.rank, who);
        EXPECT_EQ(cause.device, who % 2);
    }
}

TEST_P(GroupTest, WhoDoesNotComeIsNamed) {
    if (members() == 1) GTEST_SKIP();
    all([&](int rank) {
        if (rank == 1) return;
        EXPECT_FAIL(orrGroupBarrier(group(rank), rank == 0 ? kShortNs : kLongNs), orrErrorTimeout,
                    "rank 1 on");
    });
    EXPECT_FAIL(orrGroupBarrier(group(1), kLongNs), orrErrorTimeout, "within the");
    EXPECT_EQ(cause_of(group(1)).rank, 1);
}

TEST_P(GroupTest, WhoLeavesIsNamed) {
    if (members() == 1) GTEST_SKIP();
    all([&](int rank) {
        if (rank == 1) {
            EXPECT_OK(orrGroupDestroy(std::exchange(groups_[1], nullptr)));
        } else {
            EXPECT_FAIL(orrGroupBarrier(group(rank), kLongNs), orrErrorAbandoned, "rank 1 on");
        }
    });
    EXPECT_FAIL(orrGroupBarrierAsync(group(0), stream(0), nullptr), orrErrorAbandoned, "rank 1 on");
}

TEST_P(GroupTest, WhoLeavesWithABarrierUnderWayIsNamed) {
    if (members() == 1) GTEST_SKIP();
    for (int rank = 0; rank < members() - 1; ++rank)
        ASSERT_OK(orrGroupBarrierAsync(group(rank), stream(rank), nullptr));
    EXPECT_OK(orrGroupDestroy(std::exchange(groups_[0], nullptr)));
    for (int rank = 0; rank < members() - 1; ++rank)
        EXPECT_NE(orrStreamSynchronize(stream(rank)), orrSuccess);
    EXPECT_FAIL(orrGroupBarrier(group(members() - 1), kLongNs), orrErrorAborted, "last barrier");
}

TEST_P(GroupTest, WhoDoesSomethingElseIsNamed) {
    if (members() == 1) GTEST_SKIP();
    const int who = members() - 1;
    all([&](int rank) {
        std::uint64_t own = 1, gathered[8];
        if (rank == who) {
            EXPECT_FAIL(
                orrGroupAllGather(group(rank), gathered, &own, 4, kLongNs), orrErrorInvalidValue,
                "it called orrGroupAllGather (bytes 4, root 0), and rank 0 orrGroupAllGather (bytes 8");
        } else {
            EXPECT_FAIL(orrGroupAllGather(group(rank), gathered, &own, 8, kLongNs), orrErrorInvalidValue,
                        fmt::format("rank {} on", who));
        }
    });
}

TEST_P(GroupTest, AFailureOfAStreamIsTheGroups) {
    if (members() == 1) GTEST_SKIP();
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrStreamWaitSemaphore(stream(1), gate, 1, nullptr));
    for (int rank = 0; rank < members(); ++rank)
        ASSERT_OK(orrGroupBarrierAsync(group(rank), stream(rank), nullptr));
    ASSERT_OK(orrStreamAbort(stream(1)));
    for (int rank = 0; rank < members(); ++rank)
        EXPECT_EQ(orrStreamSynchronize(stream(rank)), orrErrorAborted) << orrGetLastErrorText();
    const orrGroupCause cause = cause_of(group(0));
    EXPECT_EQ(cause.code, orrErrorAborted);
    EXPECT_EQ(cause.rank, 1);
    EXPECT_FAIL(orrGroupBarrier(group(0), kLongNs), orrErrorAborted, "rank 1 on device 1");
    ASSERT_OK(orrSemaphoreDestroy(gate));
}

TEST_P(GroupTest, ALostDeviceIsNamed) {
    if (members() == 1) GTEST_SKIP();
    system_.card(1).lose();
    all([&](int rank) {
        if (rank != 1) EXPECT_FAIL(orrGroupBarrier(group(rank), kLongNs), orrErrorDeviceLost, "rank 1 on");
    });
    EXPECT_FAIL(orrGroupBarrier(group(1), kLongNs), orrErrorDeviceLost, "rank 1 on");
}

class GroupOfDriver119 : public GroupTest {
  protected:
    void SetUp() override {
        for (std::size_t card = 0; card < 2; ++card)
            system_.card(card).driver_version = ORR_MAKE_VERSION(1, 19, 0);
        make(2);
    }
};

// The card's own words are longer than what members can tell each other.
TEST_F(GroupOfDriver119, IsToldOfTheLinkOfALostDevice) {
    system_.card(1).cut_link();
    system_.card(1).lose();
    EXPECT_FAIL(orrGroupBarrier(group(0), kLongNs), orrErrorDeviceLost,
                "rank 1 on device 1: the link from port 0 of device 0 to device 1 went down first; ");
}

TEST_P(GroupTest, AStreamsWaitHasItsLimit) {
    if (members() == 1) GTEST_SKIP();
    orrWaitOptions limit = ORR_INIT(orrWaitOptions);
    limit.limit_ns = 1000;
    ASSERT_OK(orrGroupBarrierAsync(group(0), stream(0), &limit));
    EXPECT_EQ(orrStreamSynchronize(stream(0)), orrErrorTimeout) << orrGetLastErrorText();
    const orrGroupCause cause = cause_of(group(1));
    EXPECT_EQ(cause.code, orrErrorTimeout);
    EXPECT_EQ(cause.rank, 0);
}

// Who is told of a failure and leaves, or gives up, is not the first cause.
TEST_P(GroupTest, WhoGoesAfterAFailureIsNotItsCause) {
    if (members() == 1) GTEST_SKIP();
    for (const bool destroys : {true, false}) {
        orrWaitOptions limit = ORR_INIT(orrWaitOptions);
        limit.limit_ns = 1000;
        orrGroup_t pair[2] = {};
        const int devices[] = {0, 1};
        ASSERT_OK(orrGroupCreateAll(pair, 2, devices, 0));
        orrStream_t waits = nullptr;
        ASSERT_OK(orrStreamCreate(&waits, 0));
        ASSERT_OK(orrGroupBarrierAsync(pair[0], waits, &limit));
        // Looks at the card only, so that nobody has told the cause.
        while (orrStreamQuery(waits) == orrErrorNotReady)
            std::this_thread::yield();
        EXPECT_OK(destroys ? orrGroupDestroy(pair[0]) : orrGroupAbort(pair[0], nullptr));
        EXPECT_EQ(cause_of(pair[1]).code, orrErrorTimeout) << cause_of(pair[1]).text;
        if (!destroys) {
            EXPECT_OK(orrGroupDestroy(pair[0]));
        }
        EXPECT_OK(orrGroupDestroy(pair[1]));
        EXPECT_OK(orrStreamDestroy(waits));
    }
}

TEST_P(GroupTest, AStreamThatHadStoppedIsTheGroupsFailure) {
    if (members() == 1) GTEST_SKIP();
    ASSERT_OK(orrStreamAbort(stream(1)));
    for (int rank = 0; rank < members(); ++rank) {
        const orrError_t queued = orrGroupBarrierAsync(group(rank), stream(rank), nullptr);
        EXPECT_EQ(queued, rank == 0 ? orrSuccess : orrErrorAborted) << rank;
    }
    EXPECT_EQ(cause_of(group(0)).code, orrErrorAborted);
    EXPECT_EQ(cause_of(group(0)).rank, 1);
    EXPECT_EQ(orrStreamSynchronize(stream(0)), orrErrorAborted);
}

// As after execve, or if its join failed late: there is a process, which takes part in nothing.
TEST_P(GroupTest, WhoLetsGoIsNamed) {
    if (members() == 1) GTEST_SKIP();
    FakeCard& card = system_.card(1);
    {
        const std::lock_guard lock(card.mutex());
        for (const FakeCard::Queue& queue : card.queues) {
            if (queue.options.name == "group, rank 1") card.end_signals(queue);
        }
    }
    EXPECT_FAIL(orrGroupBarrier(group(0), ORR_NO_LIMIT), orrErrorAborted, "rank 1 on device 1: its process");
    EXPECT_EQ(cause_of(group(members() - 1)).rank, 1);
}

// While a barrier waits for room in its stream.
TEST_P(GroupTest, DestroyedUnderABarrierOfAnotherThread) {
    orrSemaphore_t gate = nullptr, counts = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrSemaphoreCreate(&counts, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream(0), gate, 1, nullptr));
    {
        const auto full = Runtime::usable()->streams.find(stream(0));
        for (std::uint64_t n = 1; full->submitted() < full->executed() + full->entries(); ++n)
            ASSERT_OK(orrStreamSignalSemaphore(stream(0), counts, n));
    }
    std::atomic<pid_t> caller{0};
    std::atomic<bool> ended{false};
    std::thread calls([&, its = group(0)] {
        caller = ::gettid();
        EXPECT_EQ(orrGroupBarrierAsync(its, stream(0), nullptr), orrErrorInvalidHandle);
        ended = true;
    });
    while (caller == 0 || (!asleep(caller) && !ended))
        std::this_thread::yield();
    EXPECT_OK(orrGroupDestroy(std::exchange(groups_[0], nullptr)));
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    calls.join();
    EXPECT_OK(orrStreamSynchronize(stream(0)));
    ASSERT_OK(orrSemaphoreDestroy(gate));
    ASSERT_OK(orrSemaphoreDestroy(counts));
}

TEST_P(GroupTest, DestroyedUnderACall) {
    if (members() == 1) GTEST_SKIP();
    std::atomic<pid_t> id{0};
    std::atomic<bool> ended{false};
    std::thread waits([&, waited = group(0)] {
        id = ::gettid();
        EXPECT_EQ(orrGroupBarrier(waited, kLongNs), orrErrorInvalidHandle);
        ended = true;
    });
    while (id == 0 || (!asleep(id) && !ended))
        std::this_thread::yield();
    EXPECT_OK(orrGroupDestroy(std::exchange(groups_[0], nullptr)));
    waits.join();
}

TEST_P(GroupTest, WhatIsWrongIsRefused) {
    std::vector<std::uint8_t> bytes(8192);
    orrGroupInfo none{};
    EXPECT_FAIL(orrGroupGetInfo(&none, group(0)), orrErrorInvalidValue, "ORR_INIT");
    EXPECT_FAIL(orrGroupBarrier(nullptr, 0), orrErrorInvalidHandle, "group");
    EXPECT_FAIL(orrGroupBroadcast(group(0), bytes.data(), 4097, 0, 0), orrErrorInvalidValue, "at most 4096");
    EXPECT_FAIL(orrGroupBroadcast(group(0), bytes.data(), 8, members(), 0), orrErrorInvalidValue, "no rank");
    EXPECT_FAIL(orrGroupBroadcast(group(0), bytes.data(), 8, -1, 0), orrErrorInvalidValue, "no rank");
    EXPECT_FAIL(orrGroupBroadcast(group(0), nullptr, 8, 0, 0), orrErrorInvalidValue, "data is null");
    EXPECT_FAIL(orrGroupAllGather(group(0), nullptr, bytes.data(), 8, 0), orrErrorInvalidValue,
                "all is null");
    EXPECT_FAIL(orrGroupAllGather(group(0), bytes.data(), bytes.data(), ~std::size_t{0} / 2, 0),
                orrErrorInvalidValue, "at most 4096");
    orrGroup_t made = nullptr;
    EXPECT_FAIL(orrGroupCreateAll(&made, 0, nullptr, 0), orrErrorInvalidValue, "0 members");
    EXPECT_FAIL(orrGroupCreateAll(&made, 65, nullptr, 0), orrErrorInvalidValue, "65 members");
    EXPECT_FAIL(orrGroupCreateAll(&made, 1, nullptr, 1), orrErrorInvalidValue, "flags");
    const int wrong = 7;
    EXPECT_FAIL(orrGroupCreateAll(&made, 1, &wrong, 0), orrErrorInvalidDevice, "device 7");
    if (members() > 1) {
        EXPECT_FAIL(orrGroupBarrierAsync(group(1), stream(0), nullptr), orrErrorInvalidValue, "device 1");
    }
    ASSERT_OK(orrStreamBeginCapture(stream(0), 0));
    EXPECT_EQ(orrGroupBarrierAsync(group(0), stream(0), nullptr), orrErrorStreamCapture);
    orrGraph_t graph = nullptr;
    EXPECT_EQ(orrStreamEndCapture(&graph, stream(0)), orrErrorStreamCapture);

    orrGroupToken token{};
    orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
    EXPECT_FAIL(orrGroupJoin(&made, &token, &params), orrErrorInvalidValue, "no token");
    EXPECT_FAIL(orrGroupMakeToken(&token, 2), orrErrorInvalidValue, "flags");
    ASSERT_OK(orrGroupMakeToken(&token, 0));
    params.rank = 1;
    EXPECT_FAIL(orrGroupJoin(&made, &token, &params), orrErrorInvalidValue, "rank 1 in a group of 1");
    params.members = -1;
    EXPECT_FAIL(orrGroupJoin(&made, &token, &params), orrErrorInvalidValue, "-1 members");
    params.members = 2;
    params.limit_ns = kShortNs;
    EXPECT_FAIL(orrGroupJoin(&made, &token, &params), orrErrorTimeout, "rank 0 was not");
    params.rank = params.members = 0;
    ASSERT_OK(orrGroupJoin(&made, &token, &params));
    EXPECT_OK(orrGroupBarrier(made, 0));
    EXPECT_OK(orrGroupBarrierAsync(made, stream(0), nullptr));
    EXPECT_OK(orrStreamSynchronize(stream(0)));
    EXPECT_OK(orrGroupDestroy(made));
    EXPECT_FAIL(orrGroupDestroy(made), orrErrorInvalidHandle, "group");
}

INSTANTIATE_TEST_SUITE_P(Sizes, GroupTest, ::testing::Values(1, 2, 4, 8));

// Its last answer does not come: the others may have got theirs, so it tells them.
TEST(GroupJoins, WhoFailsLateTellsTheOthers) {
    FakeSystem system;
    system.card().as_another_process = true;
    ASSERT_OK(orrSetDevice(0));
    orrGroupToken text{};
    ASSERT_OK(orrGroupMakeToken(&text, 0));
    Context& context = **Runtime::usable()->current_context();
    const auto slot = *context.shared_semaphores().create(SharedSemaphores::Kind::kGroup);
    const UniqueFd semaphore = *SharedSemaphores::export_fd(*slot);
    const auto page = *GroupPage::create(2);
    const pid_t host = ::fork();
    if (host == 0) {
        Rendezvous meeting{*GroupToken::parse(text.text), 0, 2, kLongNs, semaphore.get(), {}, {}};
        meeting.plan = [&](Gathering& gathering) -> Status {
            gathering.page = UniqueFd(::dup(page->fd()));
            return {};
        };
        meeting.admit = [](Gathering&) -> Status { ::_exit(0); };
        (void)meeting.meet();
        ::_exit(1);
    }
    orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
    params.rank = 1;
    params.members = 2;
    params.limit_ns = kLongNs;
    orrGroup_t group = nullptr;
    EXPECT_FAIL(orrGroupJoin(&group, &text, &params), orrErrorAborted, "rank 0 went away");
    int status = -1;
    ::waitpid(host, &status, 0);
    EXPECT_EQ(status, 0);
    ASSERT_TRUE(page->cause());
    EXPECT_EQ(page->cause()->rank, 1);
    EXPECT_THAT(page->cause()->text, HasSubstr("its orrGroupJoin failed: "));
    EXPECT_TRUE(page->left(1));
}

TEST(GroupLinks, WithoutALinkThereIsNoGroup) {
    FakeSystem system{4};
    orrGroup_t groups[3] = {};
    const int apart[] = {0, 1, 2};
    EXPECT_FAIL(orrGroupCreateAll(groups, 3, apart, 0), orrErrorPeerAccess, "device 2 of rank 2");
}

TEST(GroupUnits, WithoutASlotAGroupMeetsByTheTree) {
    FakeSystem system{2};
    system.card(0).has_barriers = system.card(1).has_barriers = true;
    const int devices[] = {0, 1};
    orrGroup_t groups[2] = {};
    // What is no lack of slots or ways is told.
    system.card(0).barrier_errno = EIO;
    EXPECT_FAIL(orrGroupCreateAll(groups, 2, devices, 0), orrErrorSystem, "making a barrier");
    system.card(0).barrier_errno = 0;
    ASSERT_OK(orrGroupCreateAll(groups, 2, devices, 0));
    for (orrGroup_t group : groups) {
        orrGroupInfo info = ORR_INIT(orrGroupInfo);
        EXPECT_OK(orrGroupGetInfo(&info, group));
        EXPECT_EQ(info.by_units, 0);
        EXPECT_OK(orrGroupDestroy(group));
    }
}

TEST(GroupPlan, IsATreeOfFewLinks) {
    const auto chain = [](int one, int other) -> Result<bool> { return std::abs(one - other) == 1; };
    const auto plan = [&](const std::vector<int>& devices) { return *plan_group(devices, chain); };
    EXPECT_EQ(plan({0}), (std::vector{-1}));
    EXPECT_EQ(plan({5, 5, 5}), (std::vector{-1, 0, 0}));
    EXPECT_EQ(plan({0, 1, 2, 3}), (std::vector{-1, 0, 1, 2}));
    EXPECT_EQ(plan({2, 3, 1, 0, 0, 1, 2, 3}), (std::vector{-1, 0, 0, 2, 3, 2, 0, 1}));
    EXPECT_FALSE(plan_group({0, 2}, chain));
}

// Of what this machine and another one tell, the other's is the first, also if it has stood still.
TEST(GroupPages, WaitForWhoDecides) {
    const auto page = *GroupPage::create(2, true);
    page->tell(1, {orrErrorAborted, 1, "this one's"});
    EXPECT_FALSE(page->cause());
    std::thread decides([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        page->decide(0, {orrErrorTimeout, 0, "the other's"});
    });
    EXPECT_TRUE(page->settle());
    EXPECT_EQ(page->cause()->text, "the other's");
    decides.join();
}

TEST(GroupPages, DecideThemselvesWhereNobodyIsThereWhoCould) {
    const auto page = *GroupPage::create(2, true);
    page->tell(1, {orrErrorAborted, 1, "this one's"});
    bool looked = false;
    EXPECT_TRUE(page->settle([&] {
        looked = true;
        page->ask_nobody();
    }));
    EXPECT_TRUE(looked);
    EXPECT_EQ(page->cause()->text, "this one's");
}

// What another process may have written there.
TEST(GroupPages, AreNotBelieved) {
    const std::function<void()> nothing = [] {};
    const std::atomic<bool> stays{false};
    const auto page_of = [](std::size_t words) {
        auto page = *GroupPage::create(2);
        auto other = *GroupPage::open(UniqueFd(::dup(page->fd())), 2);
        auto* all = static_cast<std::uint64_t*>(
            ::mmap(nullptr, words * 8, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd(), 0));
        return std::pair{std::move(other), all};
    };
    constexpr std::size_t kWords = 2000;
    for (const std::uint64_t nonsense :
         {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{77} << 32}) {
        auto [page, words] = page_of(kWords);
        for (std::size_t i = 2; i < kWords; ++i)
            words[i] = nonsense;
        ASSERT_TRUE(page->cause());
        EXPECT_THAT(page->cause()->text, HasSubstr("nonsense"));
        EXPECT_EQ(page->exchange({.rank = 0, .step = 1}, nothing, stays), GroupPage::Outcome::kFailed);
        ::munmap(words, kWords * 8);
    }
    auto [page, words] = page_of(kWords);
    for (std::size_t i = 8 + 1; i < kWords; ++i)  // behind the head
        words[i] = 0x4141'4141'4141'4141;
    EXPECT_EQ(page->exchange({.rank = 0, .step = 1}, nothing, stays), GroupPage::Outcome::kFailed);
    ASSERT_TRUE(page->cause());
    EXPECT_EQ(page->cause()->rank, 1);
    ::munmap(words, kWords * 8);
    {
        // Both roots, while rank 0 waits in a call with another one.
        auto [shared, all] = page_of(kWords);
        constexpr std::size_t kHead = 8, kSlot = 24 + 2 * 514, kOffer = 24 + 514;
        const auto scribble = [its = all] {
            for (std::size_t slot = kHead; slot <= kHead + kSlot; slot += kSlot)
                its[slot + kOffer] = std::uint64_t{1} << 32 | 1;
            std::atomic_ref(its[kHead + kSlot]).store(1);
        };
        EXPECT_EQ(shared->exchange({.rank = 0, .step = 1, .limit_ns = kLongNs}, scribble, stays),
                  GroupPage::Outcome::kFailed);
        EXPECT_THAT(shared->cause()->text, HasSubstr("wrote into its part"));
        ::munmap(all, kWords * 8);
    }
    // What could be cut short, or is something else.
    UniqueFd open(::memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(open.get(), 1 << 20), 0);
    EXPECT_FALSE(GroupPage::open(std::move(open), 2));
    EXPECT_FALSE(GroupPage::open(UniqueFd(::dup(STDIN_FILENO)), 2));
    EXPECT_FALSE(GroupPage::open(UniqueFd(::dup(page->fd())), 3));
    EXPECT_FALSE(GroupPage::open(UniqueFd(), 2));
}

}  // namespace
}  // namespace orrery::umd::test
