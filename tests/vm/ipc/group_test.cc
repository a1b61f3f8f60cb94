// Groups of processes: this one is rank 0, the others are peers.
#include <orrery/group.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/vm/ipc/peer.h"

namespace orrery::umd::vm {
namespace {

int device_count() {
    int count = 0;
    EXPECT_OK(orrGetDeviceCount(&count));
    return count;
}

void new_token() {
    orrGroupToken token{};
    ASSERT_OK(orrGroupMakeToken(&token, 0));
    ::setenv(kTokenVariable, token.text, 1);
}

// Members by turns on all devices.
class Members {
  public:
    explicit Members(int members) : members_(members), devices_(device_count()) {
        new_token();
        for (int rank = 1; rank < members; ++rank) {
            peers_.push_back(std::make_unique<Peer>("member", rank % devices_));
            tell_join(rank, members);
        }
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(join(&group, 0, members, kLongNs));
        for (int rank = 1; rank < members; ++rank)
            EXPECT_EQ(peer(rank).hear().number, orrSuccess);
        EXPECT_OK(orrStreamCreate(&stream, 0));
        EXPECT_OK(orrSemaphoreCreate(&gate, 0));
    }
    ~Members() {
        EXPECT_OK(orrGroupDestroy(group));
        EXPECT_OK(orrStreamDestroy(stream));
        EXPECT_OK(orrSemaphoreDestroy(gate));
    }
    void tell_join(int rank, int members, std::uint64_t limit_ms = kLongNs / 1'000'000) {
        peer(rank).say(static_cast<std::uint64_t>(rank) | static_cast<std::uint64_t>(members) << 8 |
                       limit_ms << 16);
    }
    Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank - 1)]; }
    int size() const { return members_; }
    int device(int rank) const { return rank % devices_; }
    // The first member of the last card, whose unit it is at where there are several.
    int at_last_card() const { return std::max(1, std::min(members_, devices_) - 1); }
    // All peers but `not_he`.
    void tell(GroupDo what, int not_he = -1) {
        for (int rank = 1; rank < members_; ++rank) {
            if (rank != not_he) peer(rank).say(what);
        }
    }
    void expect(orrError_t code, int not_he = -1) {
        for (int rank = 1; rank < members_; ++rank) {
            if (rank != not_he) EXPECT_EQ(peer(rank).hear().number, code) << rank;
        }
    }
    // All but `not_he` have a barrier in their streams, and wait for those.
    void wait_in_streams(int not_he) {
        tell(kGroupEnqueue, not_he);
        EXPECT_OK(orrGroupBarrierAsync(group, stream, nullptr));
        expect(orrSuccess, not_he);
        tell(kGroupSync, not_he);
    }
    // That none has it.
    void expect_failure(int not_he = -1) {
        for (int rank = 1; rank < members_; ++rank) {
            if (rank != not_he) EXPECT_NE(peer(rank).hear().number, orrSuccess) << rank;
        }
    }
    // All are told the same.
    void expect_cause(orrError_t code, int who, bool he_lives = true) {
        orrGroupCause cause = ORR_INIT(orrGroupCause);
        ASSERT_OK(orrGroupGetCause(&cause, group));
        EXPECT_EQ(cause.code, code) << cause.text;
        EXPECT_EQ(cause.rank, who) << cause.text;
        EXPECT_EQ(cause.device, device(who)) << cause.text;
        tell(kGroupCause, he_lives ? -1 : who);
        for (int rank = 1; rank < members_; ++rank) {
            if (rank == who && !he_lives) continue;
            EXPECT_EQ(peer(rank).hear().number, static_cast<std::uint64_t>(code) << 32 |
                                                    static_cast<std::uint32_t>(who + 1) << 8 |
                                                    static_cast<std::uint32_t>(device(who) + 1))
                << rank;
        }
    }

    orrGroup_t group = nullptr;
    orrStream_t stream = nullptr;
    orrSemaphore_t gate = nullptr;

  private:
    const int members_, devices_;
    std::vector<std::unique_ptr<Peer>> peers_;
};

class Groups : public ::testing::TestWithParam<int> {};

TEST_P(Groups, MeetOnTheHostAndInStreams) {
    Members all(GetParam());
    for (int turn = 0; turn < 2; ++turn) {
        all.tell(kGroupBarrier);
        EXPECT_OK(orrGroupBarrier(all.group, kLongNs));
        all.expect(orrSuccess);
    }
    all.tell(kGroupGather);
    std::uint64_t own = 7, gathered[ORR_GROUP_MAX_MEMBERS] = {};
    EXPECT_OK(orrGroupAllGather(all.group, gathered, &own, sizeof own, kLongNs));
    for (int rank = 0; rank < all.size(); ++rank)
        EXPECT_EQ(gathered[rank], static_cast<std::uint64_t>(rank) * 1000 + 7);
    all.expect(orrSuccess);
    all.tell(kGroupBroadcast);
    EXPECT_OK(orrGroupBroadcast(all.group, &own, sizeof own, all.size() - 1, kLongNs));
    EXPECT_EQ(own, static_cast<std::uint64_t>(all.size() - 1) * 1000 + 7);
    all.expect(orrSuccess);
    // Two behind each other, and the last member comes late.
    all.peer(all.size() - 1).say(kGroupHold);
    EXPECT_EQ(all.peer(all.size() - 1).hear().number, orrSuccess);
    for (int turn = 0; turn < 2; ++turn) {
        all.tell(kGroupEnqueue);
        EXPECT_OK(orrGroupBarrierAsync(all.group, all.stream, nullptr));
        all.expect(orrSuccess);
    }
    EXPECT_EQ(orrStreamQuery(all.stream), orrErrorNotReady);
    all.peer(all.size() - 1).say(kGroupRelease);
    EXPECT_EQ(all.peer(all.size() - 1).hear().number, orrSuccess);
    all.tell(kGroupSync);
    EXPECT_OK(orrStreamSynchronize(all.stream));
    all.expect(orrSuccess);
    all.tell(kGroupLeave);
    all.expect(orrSuccess);
}

TEST_P(Groups, AMemberIsKilledInABarrier) {
    Members all(GetParam());
    const int who = all.size() - 1;
    all.tell(kGroupBarrier, who);
    std::thread kills([&] { all.peer(who).kill(); });
    EXPECT_FAIL(orrGroupBarrier(all.group, kLongNs), orrErrorAborted, "its process ended");
    kills.join();
    all.expect(orrErrorAborted, who);
    all.expect_cause(orrErrorAborted, who, false);
}

// It has a barrier in its stream, and so have the others.
TEST_P(Groups, AMemberIsKilledInABarrierOfStreams) {
    Members all(GetParam());
    const int who = all.size() - 1;
    all.peer(who).say(kGroupHold);
    EXPECT_EQ(all.peer(who).hear().number, orrSuccess);
    all.tell(kGroupEnqueue);
    EXPECT_OK(orrGroupBarrierAsync(all.group, all.stream, nullptr));
    all.expect(orrSuccess);
    all.tell(kGroupSync, who);
    all.peer(who).kill();
    EXPECT_NE(orrStreamSynchronize(all.stream), orrSuccess);
    all.expect_failure(who);
    all.expect_cause(orrErrorAborted, who, false);
}

// The others' streams wait for one that never called it.
TEST_P(Groups, AMemberIsKilledBeforeItsBarrier) {
    Members all(GetParam());
    const int who = all.size() - 1;
    all.wait_in_streams(who);
    all.peer(who).kill();
    EXPECT_NE(orrStreamSynchronize(all.stream), orrSuccess);
    all.expect_failure(who);
    all.expect_cause(orrErrorAborted, who, false);
}

TEST_P(Groups, AMemberAborts) {
    Members all(GetParam());
    const int who = all.size() - 1;
    all.wait_in_streams(who);
    all.peer(who).say(kGroupAbort);
    EXPECT_EQ(all.peer(who).hear().number, orrSuccess);
    EXPECT_NE(orrStreamSynchronize(all.stream), orrSuccess);
    all.expect_failure(who);
    EXPECT_FAIL(orrGroupBarrier(all.group, kLongNs), orrErrorAborted, "as it was told");
    all.expect_cause(orrErrorAborted, who);
}

// Its process goes on, with a stream that never ends. Nobody of the group looks: the cards tell each other,
// and a process that is no member and waits for one of them.
TEST_P(Groups, AMemberLeavesAndNobodyLooks) {
    Members all(GetParam());
    const int who = all.at_last_card();
    all.tell(kGroupEnqueue);
    EXPECT_OK(orrGroupBarrierAsync(all.group, all.stream, nullptr));
    all.expect(orrSuccess);
    all.tell(kGroupSync);
    EXPECT_OK(orrStreamSynchronize(all.stream));
    all.expect(orrSuccess);
    all.peer(who).say(kGroupHold);
    EXPECT_EQ(all.peer(who).hear().number, orrSuccess);
    all.tell(kGroupEnqueue, who);
    EXPECT_OK(orrGroupBarrierAsync(all.group, all.stream, nullptr));
    all.expect(orrSuccess, who);

    orrEvent_t event = nullptr;
    int fd = -1;
    ASSERT_OK(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    ASSERT_OK(orrEventRecord(event, all.stream));
    ASSERT_OK(orrIpcExportEvent(&fd, event, 0));
    Peer stranger("event");
    stranger.say(0, {fd});
    ::close(fd);
    EXPECT_EQ(stranger.hear().number, orrErrorNotReady);
    all.peer(who).say(kGroupLeave);
    EXPECT_EQ(all.peer(who).hear().number, orrSuccess);
    stranger.say(0);
    EXPECT_EQ(stranger.hear().number, orrErrorAbandoned);
    EXPECT_EQ(stranger.hear().number, orrErrorAbandoned);

    EXPECT_NE(orrStreamSynchronize(all.stream), orrSuccess);
    all.expect_cause(orrErrorAbandoned, who, false);
    EXPECT_OK(orrEventDestroy(event));
}

TEST_P(Groups, AMemberDoesSomethingElse) {
    Members all(GetParam());
    const int who = all.size() - 1;
    all.tell(kGroupBarrier, who);
    all.peer(who).say(kGroupGather);
    EXPECT_FAIL(orrGroupBarrier(all.group, kLongNs), orrErrorInvalidValue, "orrGroupAllGather");
    all.expect(orrErrorInvalidValue);
    all.expect_cause(orrErrorInvalidValue, who);
}

TEST_P(Groups, AMemberDoesNotCome) {
    Members all(GetParam());
    const int who = all.size() - 1;
    all.tell(kGroupBarrier, who);
    for (int rank = 1; rank < who; ++rank)
        all.peer(rank).wait_until_it_sleeps_in(SYS_futex);
    EXPECT_FAIL(orrGroupBarrier(all.group, 200'000'000), orrErrorTimeout, "did not come");
    all.expect(orrErrorTimeout, who);
    all.expect_cause(orrErrorTimeout, who);
}

INSTANTIATE_TEST_SUITE_P(Of, Groups, ::testing::Values(2, 4, 8));

TEST(GroupJoins, WithAWrongTokenOrTooLate) {
    new_token();
    Peer right("member", 0);
    new_token();
    Peer wrong("member", 0), late("member", 0);
    ::setenv(kTokenVariable, "orrg1-unix-0123", 1);
    Peer broken("member", 0);
    orrGroup_t group = nullptr;
    const std::uint64_t as_one = 1 | 2 << 8;
    wrong.say(as_one | 300 << 16);
    EXPECT_EQ(wrong.hear().number, orrErrorTimeout);
    broken.say(as_one | 300 << 16);
    EXPECT_EQ(broken.hear().number, orrErrorInvalidValue);
    // Nobody comes to this one.
    new_token();
    EXPECT_FAIL(join(&group, 0, 3, 300'000'000), orrErrorTimeout, "rank 1, 2 did not");
    // The right one is still there.
    new_token();
    Peer first("member", 0), second("member", 0);
    first.say(as_one | 60'000ull << 16);
    EXPECT_OK(join(&group, 0, 2, kLongNs));
    EXPECT_EQ(first.hear().number, orrSuccess);
    second.say(as_one | 300 << 16);
    EXPECT_EQ(second.hear().number, orrErrorTimeout);
    first.say(kGroupBarrier);
    EXPECT_OK(orrGroupBarrier(group, kLongNs));
    EXPECT_EQ(first.hear().number, orrSuccess);
    EXPECT_OK(orrGroupDestroy(group));
}

TEST(GroupJoins, AMemberIsKilledMeanwhile) {
    new_token();
    Peer first("member", 0);
    first.say(1 | 3 << 8 | 60'000ull << 16);
    orrGroup_t group = nullptr;
    std::thread kills([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        first.kill();
    });
    // It may have been killed before it came; then nobody misses it but the limit.
    const orrError_t joined = join(&group, 0, 3, 5'000'000'000);
    EXPECT_TRUE(joined == orrErrorAborted || joined == orrErrorTimeout) << orrGetLastErrorText();
    kills.join();
}

std::uint64_t barrier_rounds(int device) {
    orrCounter_t counter = 0;
    std::uint64_t value = 0;
    EXPECT_OK(orrDeviceFindCounter(&counter, device, "barrier_releases"));
    EXPECT_OK(orrDeviceReadCounters(&value, device, &counter, 1));
    return value;
}

// A member a card, in one process.
struct OnAllCards {
    OnAllCards() {
        for (int rank = 0; rank < device_count(); ++rank)
            devices.push_back(rank);
        groups.resize(devices.size());
        EXPECT_OK(orrGroupCreateAll(groups.data(), groups.size(), devices.data(), 0));
    }
    ~OnAllCards() {
        for (const orrGroup_t group : groups)
            EXPECT_OK(orrGroupDestroy(group));
    }
    OnAllCards(const OnAllCards&) = delete;
    OnAllCards& operator=(const OnAllCards&) = delete;
    // In model time of the first card; one behind the other, after a first that has all come together.
    double ns_each(unsigned rounds) const {
        std::vector<orrStream_t> streams(devices.size());
        for (std::size_t rank = 0; rank < devices.size(); ++rank) {
            EXPECT_OK(orrSetDevice(devices[rank]));
            EXPECT_OK(orrStreamCreate(&streams[rank], 0));
        }
        EXPECT_OK(orrSetDevice(0));
        orrEvent_t begin = nullptr, end = nullptr;
        EXPECT_OK(orrEventCreate(&begin, 0));
        EXPECT_OK(orrEventCreate(&end, 0));
        // All wait until everything has been handed out.
        orrSemaphore_t gate = nullptr;
        EXPECT_OK(orrSemaphoreCreate(&gate, 0));
        EXPECT_OK(orrStreamWaitSemaphore(streams[0], gate, 1, nullptr));
        for (unsigned round = 0; round <= rounds; ++round) {
            if (round == 1) EXPECT_OK(orrEventRecord(begin, streams[0]));
            for (std::size_t rank = 0; rank < devices.size(); ++rank)
                EXPECT_OK(orrGroupBarrierAsync(groups[rank], streams[rank], nullptr));
        }
        EXPECT_OK(orrEventRecord(end, streams[0]));
        EXPECT_OK(orrSemaphoreSignal(gate, 1));
        for (const orrStream_t stream : streams)
            EXPECT_OK(orrStreamSynchronize(stream));
        double ns = 0;
        EXPECT_OK(orrEventElapsedModelTime(&ns, begin, end));
        for (const orrStream_t stream : streams)
            EXPECT_OK(orrStreamDestroy(stream));
        EXPECT_OK(orrEventDestroy(begin));
        EXPECT_OK(orrEventDestroy(end));
        EXPECT_OK(orrSemaphoreDestroy(gate));
        return ns / rounds;
    }
    std::vector<int> devices;
    std::vector<orrGroup_t> groups;
};

// Between any two cards.
double longest_way_ns() {
    std::uint64_t longest = 0;
    for (int from = 0; from < device_count(); ++from)
        for (int to = 0; to < device_count(); ++to) {
            if (from == to) continue;
            orrPeerWay way = ORR_INIT(orrPeerWay);
            EXPECT_OK(orrDeviceGetPeerWay(&way, from, to));
            EXPECT_EQ(way.kind, orrPeerWayLink);
            longest = std::max(longest, way.latency_ps);
        }
    return static_cast<double>(longest) / 1e3;
}

// As many groups as a user has slots for meet by their cards' units, and one more as before there were any.
// Both times are shown; that of the units is bounded where cards keep step (ORRERY_IN_STEP). A round is the
// way, and around it what the firmware does: 0.8 us from a queue's wake to its next arrival, 0.6 us until it
// has parked, and then a look for deadlocks, which begins as nobody else has work: the release may come in a
// chunk of that, and is not heard for up to 2.4 us.
TEST(GroupUnits, BarriersInStreamsAreTheCards) {
    if (device_count() < 2) GTEST_SKIP() << "needs two cards";
    constexpr unsigned kRounds = 16, kSlots = 12, kPlays = 5;
    constexpr double kFirmwareNs = 6'000;
    std::vector<std::unique_ptr<OnAllCards>> all;
    while (all.size() < kSlots)
        all.push_back(std::make_unique<OnAllCards>());
    std::vector<std::uint64_t> before;
    for (const int device : all[0]->devices)
        before.push_back(barrier_rounds(device));
    std::array<double, kPlays> plays{};  // in some the host has something to say
    for (double& play : plays)
        play = all[0]->ns_each(kRounds);
    std::ranges::sort(plays);
    const double by_units = plays[kPlays / 2];
    for (const int device : all[0]->devices)
        EXPECT_EQ(barrier_rounds(device) - before[static_cast<std::size_t>(device)], kPlays * (kRounds + 1));
    const OnAllCards last;
    const double by_tree = last.ns_each(kRounds);
    EXPECT_EQ(barrier_rounds(0) - before[0], kPlays * (kRounds + 1)) << "it has no slot";
    const double way = longest_way_ns();
    std::printf(
        "barriers in streams of %zu cards, longest way %.0f ns: %.0f ns each (%.0f to %.0f), by the "
        "tree %.0f ns\n",
        last.devices.size(), way, by_units, plays.front(), plays.back(), by_tree);
    if (std::getenv("ORRERY_IN_STEP") == nullptr) return;
    EXPECT_LE(by_units, way + kFirmwareNs);
    EXPECT_GE(plays.front(), way);
}

// Streams of the first two cards, each with a barrier of one group behind one of the other.
class TwoGroups {
  public:
    TwoGroups() {
        for (orrStream_t& stream : streams) {
            EXPECT_OK(orrSetDevice(static_cast<int>(&stream - streams.data())));
            EXPECT_OK(orrStreamCreate(&stream, 0));
        }
    }
    ~TwoGroups() {
        for (const orrStream_t stream : streams)
            EXPECT_OK(orrStreamDestroy(stream));
    }
    void meet(const OnAllCards& group, std::size_t rank) const {
        orrGroupInfo info = ORR_INIT(orrGroupInfo);
        EXPECT_OK(orrGroupGetInfo(&info, group.groups[rank]));
        EXPECT_EQ(info.by_units, 1);
        EXPECT_OK(orrGroupBarrierAsync(group.groups[rank], streams[rank], nullptr));
    }
    OnAllCards one, other;
    std::array<orrStream_t, 2> streams{};
};

TEST(GroupUnits, ACircleOfBarriersIsTold) {
    if (device_count() != 2) GTEST_SKIP() << "of two cards";
    const TwoGroups groups;
    groups.meet(groups.one, 0);
    groups.meet(groups.other, 0);
    groups.meet(groups.other, 1);
    groups.meet(groups.one, 1);
    for (const orrStream_t stream : groups.streams) {
        EXPECT_EQ(orrStreamSynchronize(stream), orrErrorDeadlock) << orrGetLastErrorText();
        EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("deadlock of 2 streams: a stream on device"));
    }
    // Nothing was stopped: who is not there can come.
    EXPECT_OK(orrStreamAbort(groups.streams[0]));
    EXPECT_NE(orrStreamSynchronize(groups.streams[1]), orrSuccess);
}

// One has arrived, and has its next arrival behind that; the other waits for the host.
TEST(GroupUnits, ABarrierThatSomebodyCanEndIsNoCircle) {
    if (device_count() != 2) GTEST_SKIP() << "of two cards";
    const TwoGroups groups;
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamWaitSemaphore(groups.streams[1], gate, 1, nullptr));
    for (std::size_t rank = 0; rank < 2; ++rank) {
        for (int round = 0; round < 2; ++round)
            groups.meet(groups.one, rank);
    }
    std::thread host([gate] {
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        EXPECT_OK(orrSemaphoreSignal(gate, 1));
    });
    for (const orrStream_t stream : groups.streams)
        EXPECT_OK(orrStreamSynchronize(stream));
    host.join();
    EXPECT_OK(orrSemaphoreDestroy(gate));
}

// Also while the process has a stream that never ends.
TEST(GroupUnits, WhoLeavesGivesItsSlotBack) {
    if (device_count() < 2) GTEST_SKIP() << "needs two cards";
    orrStream_t busy = nullptr;
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrStreamCreate(&busy, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamWaitSemaphore(busy, gate, 1, nullptr));
    const std::uint64_t before = barrier_rounds(0);
    constexpr unsigned kMoreThanSlots = 17;
    for (unsigned turn = 0; turn < kMoreThanSlots; ++turn)
        (void)OnAllCards().ns_each(1);
    EXPECT_EQ(barrier_rounds(0) - before, 2 * kMoreThanSlots);
    EXPECT_EQ(orrStreamQuery(busy), orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    EXPECT_OK(orrStreamDestroy(busy));
    EXPECT_OK(orrSemaphoreDestroy(gate));
}

}  // namespace
}  // namespace orrery::umd::vm
