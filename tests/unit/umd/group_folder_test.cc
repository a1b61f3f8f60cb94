// How members of a group on several machines find each other, with threads for the members and a folder for
// what all machines see.
#include "umd/runtime/group_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "umd/runtime/clock.h"
#include "umd/runtime/group_page.h"

namespace orrery::umd {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kLongNs = 60'000'000'000, kShortNs = 100'000'000;

std::array<std::byte, 16> machine(int number) {
    std::array<std::byte, 16> id{};
    id[7] = static_cast<std::byte>(number);
    return id;
}

// A link between cards that are called by number.
GroupLink link(std::uint64_t from, std::uint64_t to) {
    return {from, to, static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from)};
}

class GroupFolders : public ::testing::Test {
  protected:
    GroupFolders() {
        std::string name = ::testing::TempDir() + "group-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        token_ = *GroupToken::make(folder_.string());
    }
    ~GroupFolders() override { fs::remove_all(folder_); }

    std::unique_ptr<GroupFolder> member(int rank, int members, int of_machine,
                                        std::uint64_t limit_ns = kLongNs) const {
        return std::make_unique<GroupFolder>(token_, rank, members, limit_ns, machine(of_machine));
    }
    fs::path file(const std::string& name) const { return folder_ / ("orrery-group-" + token_.name) / name; }
    std::vector<std::string> left() const {
        std::vector<std::string> all;
        for (const auto& entry : fs::recursive_directory_iterator(folder_))
            all.push_back(entry.path().filename());
        return all;
    }
    void until_there(const std::string& name) const {
        while (!fs::exists(file(name)))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // Each rank in a thread: body(rank).
    static void each(int members, const auto& body) {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < members; ++rank)
            threads.emplace_back([&body, rank] { body(rank); });
    }

    fs::path folder_;
    GroupToken token_;
};

// Ranks 0, 1 and 3 on one machine, 2 and 4 on another.
TEST_F(GroupFolders, LeadersMeetAndAllFilesGo) {
    const auto of_machine = [](int rank) { return rank == 2 || rank == 4 ? 8 : 7; };
    {
        std::mutex mutex;
        std::latch all_are_in(5);
        std::vector<std::unique_ptr<GroupFolder>> kept;
        each(5, [&](int rank) {
            auto own = member(rank, 5, of_machine(rank));
            const auto leaders = own->introduce();
            ASSERT_TRUE(leaders) << leaders.error().text;
            EXPECT_THAT(*leaders, ElementsAre(0, 0, 2, 0, 2));
            if (rank == 0 || rank == 2) {
                // The link comes up while they look.
                int looks = 0;
                const auto joints = own->plan({0, 2}, {}, [&](const auto&) -> Result<std::vector<GroupLink>> {
                    if (rank == 2) return std::vector{link(20, 12), link(21, 11)};
                    return ++looks < 3 ? std::vector{link(11, 99)} : std::vector{link(11, 99), link(12, 20)};
                });
                ASSERT_TRUE(joints) << joints.error().text;
                ASSERT_EQ(joints->size(), 1u);
                EXPECT_EQ(joints->front().above, 0);
                EXPECT_EQ(joints->front().below, 2);
                EXPECT_EQ(joints->front().link, link(12, 20));
                FabricKey key;
                key.object = 100 + static_cast<std::uint64_t>(rank);
                ASSERT_TRUE(own->give(2 - rank, key));
                const auto other = own->take(2 - rank);
                ASSERT_TRUE(other) << other.error().text;
                EXPECT_EQ(other->object, 102 - static_cast<std::uint64_t>(rank));
                const auto agreed = own->agree({0, 2});
                ASSERT_TRUE(agreed) << agreed.error().text;
            }
            all_are_in.arrive_and_wait();
            own->all_in();
            // As long as the group, for those who have not read the last word yet.
            const std::lock_guard lock(mutex);
            if (rank == 0) kept.push_back(std::move(own));
        });
        EXPECT_THAT(left(), ::testing::Contains("go"));
    }
    EXPECT_THAT(left(), IsEmpty());
}

TEST_F(GroupFolders, TheLastWordStaysUntilAllHaveReadIt) {
    each(3, [&](int rank) {
        const auto own = member(rank, 3, rank);
        const auto leaders = own->introduce();
        ASSERT_TRUE(leaders) << leaders.error().text;
        const auto agreed = own->agree(*leaders);
        ASSERT_TRUE(agreed) << agreed.error().text;
        own->all_in();
    });
    EXPECT_THAT(left(), IsEmpty());
}

TEST_F(GroupFolders, WhoIsMissingIsNamed) {
    // By the first whose limit passes, to all.
    each(2, [&](int rank) {
        if (rank == 1) until_there("hello-0");  // its limit begins when all who come are there
        const auto own = member(2 * rank, 4, rank, rank == 1 ? kShortNs : kLongNs);
        const auto leaders = own->introduce();
        ASSERT_FALSE(leaders);
        own->give_up(leaders.error());
        EXPECT_EQ(leaders.error().code, orrErrorTimeout);
        EXPECT_THAT(leaders.error().text, HasSubstr("rank 1, 3 did not"));
    });
}

TEST_F(GroupFolders, AllAreToldOfAnotherNumberOfMembers) {
    each(3, [&](int rank) {
        const auto own = member(rank, rank == 1 ? 2 : 3, rank);
        const auto leaders = own->introduce();
        if (rank == 1 && leaders) return;  // it was done before the third came
        ASSERT_FALSE(leaders);
        EXPECT_EQ(leaders.error().code, orrErrorInvalidValue);
        EXPECT_THAT(leaders.error().text,
                    HasSubstr("rank 1 joined a group of 2 members, and rank 0 one of 3"));
    });
}

TEST_F(GroupFolders, TwoOfOneRankAreRefused) {
    const auto first = member(1, 2, 0, kShortNs);
    EXPECT_FALSE(first->introduce());
    const auto second = member(1, 2, 1, kShortNs)->introduce();
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().text, HasSubstr("two joined as rank 1"));
}

TEST_F(GroupFolders, WhatHasNotTheSecretIsNotThere) {
    fs::create_directory(file("hello-0").parent_path());
    std::ofstream(file("hello-0")) << std::string(68, 'x');
    const auto leaders = member(1, 2, 0, kShortNs)->introduce();
    ASSERT_FALSE(leaders);
    EXPECT_THAT(leaders.error().text, HasSubstr("rank 0 did not"));
    std::ofstream(file("hello-0")) << token_.secret << "short";
    const auto other = member(0, 2, 0, kShortNs);
    std::ofstream(file("hello-1")) << token_.secret << "short";
    fs::remove(file("hello-0"));
    const auto bad = other->introduce();
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, orrErrorNotSupported);
    EXPECT_THAT(bad.error().text, HasSubstr("another version"));
}

TEST_F(GroupFolders, WhoGivesUpEndsTheOthersWaits) {
    std::latch all_know_all(3);  // who is still looking for the others would be told while it looks
    each(3, [&](int rank) {
        const auto own = member(rank, 3, rank);
        const auto leaders = own->introduce();
        all_know_all.arrive_and_wait();
        ASSERT_TRUE(leaders) << leaders.error().text;
        if (rank == 2) return own->give_up(Error{orrErrorOutOfMemory, "no room"});
        const auto joints = own->plan({0, 1, 2}, {}, [&](const auto&) -> Result<std::vector<GroupLink>> {
            return std::vector{
                link(10 + static_cast<std::uint64_t>(rank), 11 - static_cast<std::uint64_t>(rank))};
        });
        ASSERT_FALSE(joints) << rank;
        EXPECT_EQ(joints.error().code, orrErrorOutOfMemory);
        EXPECT_THAT(joints.error().text, HasSubstr("no room"));
        own->give_up(joints.error());
    });
    EXPECT_THAT(left(), IsEmpty());
}

// Who comes when others have gone again is told their cause; with the last of all the files go.
TEST_F(GroupFolders, FilesOfAFailedJoinStayUntilAllHaveCome) {
    for (const int rank : {2, 0, 1}) {
        const auto own = member(rank, 3, rank, rank == 2 ? kShortNs : kLongNs);
        const auto leaders = own->introduce();
        ASSERT_FALSE(leaders) << rank;
        EXPECT_EQ(leaders.error().code, orrErrorTimeout);
        EXPECT_THAT(leaders.error().text, HasSubstr("rank 0, 1 did not"));
        own->give_up(leaders.error());
        EXPECT_THAT(left(), ::testing::Contains("go")) << rank;
    }
    EXPECT_THAT(left(), IsEmpty());
}

// Somebody else of that rank takes nothing along that the others have to read.
TEST_F(GroupFolders, AStrangerOfTheSameRankLeavesNothingUndone) {
    for (const int rank : {0, 1, 1, 2}) {
        const auto own = member(rank, 3, rank, rank == 0 ? kShortNs : kLongNs);
        const auto leaders = own->introduce();
        ASSERT_FALSE(leaders) << rank;
        own->give_up(leaders.error());
        if (rank == 2) EXPECT_THAT(leaders.error().text, HasSubstr("rank 1, 2 did not"));
    }
    EXPECT_THAT(left(), IsEmpty());
}

// By the number that one has all are there and have gone; but another one is to come, and has to hear of it.
TEST_F(GroupFolders, FilesStayWhereMembersDoNotAgreeOnTheirNumber) {
    for (const int rank : {0, 1, 2}) {
        const auto own = member(rank, rank == 1 ? 2 : 3, rank, rank == 0 ? kShortNs : kLongNs);
        const auto leaders = own->introduce();
        ASSERT_FALSE(leaders) << rank;
        EXPECT_THAT(leaders.error().text, HasSubstr("rank 1, 2 did not"));
        own->give_up(leaders.error());
        EXPECT_THAT(left(), ::testing::Contains("hello-0")) << rank;
    }
    EXPECT_THAT(left(), ::testing::Contains("go"));
}

// Who is none of those who have given up, and taken all files along, does not wait for them.
TEST_F(GroupFolders, WhoseFilesAreTakenAwayIsTold) {
    const auto own = member(2, 3, 2);
    const std::jthread others([&] {
        until_there("hello-2");
        fs::rename(file("hello-2").parent_path(), folder_ / "gone");
    });
    const auto leaders = own->introduce();
    ASSERT_FALSE(leaders);
    EXPECT_EQ(leaders.error().code, orrErrorAborted);
    EXPECT_THAT(leaders.error().text, HasSubstr("all other members of the group have given up"));
}

TEST_F(GroupFolders, WhoDoesNotSayWhyIsToldToHaveGivenUp) {
    const auto own = member(0, 2, 0), other = member(1, 2, 1);
    fs::create_directory(file("go").parent_path());
    other->give_up(Error{orrErrorAborted, ""});
    const auto leaders = own->introduce();
    ASSERT_FALSE(leaders);
    EXPECT_THAT(leaders.error().text, HasSubstr("gave up, and did not say why"));
}

TEST_F(GroupFolders, WhoIsReadyIsToldOfThoseWhoAreNot) {
    each(2, [&](int rank) {
        const auto first = member(rank, 2, rank);
        ASSERT_TRUE(first->introduce());
        if (rank == 0) until_there("ready-1");  // its limit begins when all who will be are ready
        const auto own = member(rank, 2, rank, rank == 0 ? kShortNs : kLongNs);
        const auto agreed = own->agree({0, 1, 2});
        ASSERT_FALSE(agreed) << rank;
        EXPECT_EQ(agreed.error().code, orrErrorTimeout);
        EXPECT_THAT(agreed.error().text, HasSubstr("rank 2 is not ready"));
        own->give_up(agreed.error());
    });
}

TEST_F(GroupFolders, MachinesThatNoLinkJoinsAreNamed) {
    each(2, [&](int rank) {
        const auto first = member(rank, 2, rank);
        ASSERT_TRUE(first->introduce());
        if (rank == 0) until_there("links-1");
        const auto own = member(rank, 2, rank, rank == 0 ? kShortNs : kLongNs);
        const auto joints =
            own->plan({0, 1}, {}, [](const auto&) -> Result<std::vector<GroupLink>> { return {}; });
        ASSERT_FALSE(joints);
        EXPECT_EQ(joints.error().code, orrErrorPeerAccess);
        EXPECT_THAT(joints.error().text, HasSubstr("no link that is up joins a card of rank 1's machine"));
        own->give_up(joints.error());
    });
}

TEST(GroupMachines, AreJoinedOverSwitchesWhereNoLinkIs) {
    constexpr std::uint32_t kBehind = GroupLink::kBehindSwitch;
    const auto star = plan_machines({0, 4, 6}, {{{1, 4, 0, kBehind}, {1, 6, 0, kBehind}, {2, 4, 3, 5}},
                                                {{4, 1, 2, kBehind}, {4, 2, 5, 3}},
                                                {{6, 1, 7, kBehind}, {6, 4, 7, kBehind}}});
    ASSERT_TRUE(star);
    ASSERT_EQ(star->size(), 2u);
    // Rather by the link.
    EXPECT_EQ((*star)[0].link, (GroupLink{2, 4, 3, 5}));
    // Each says its own port.
    EXPECT_EQ((*star)[1].above, 0);
    EXPECT_EQ((*star)[1].link, (GroupLink{1, 6, 0, 7}));
    EXPECT_FALSE(plan_machines({0, 1}, {{{1, 2, 0, kBehind}}, {{2, 1, 0, 0}}}));
}

// What a leader says of its cards the others ask their drivers about.
TEST_F(GroupFolders, LeadersKnowEachOthersCards) {
    std::latch both_have_it(2);
    each(2, [&](int rank) {
        const auto own = member(rank, 2, rank);
        ASSERT_TRUE(own->introduce());
        const auto at = static_cast<std::uint64_t>(rank);
        const auto joints =
            own->plan({0, 1}, {{.uid = 10 + at, .node = 1 + 511 * static_cast<std::uint32_t>(rank)}},
                      [&](const std::vector<GroupCard>& others) -> Result<std::vector<GroupLink>> {
                          std::vector<GroupLink> links;
                          for (const GroupCard& other : others)
                              if (other.node == (rank == 0 ? 512 : 1))
                                  links.push_back({10 + at, other.uid, 3 + static_cast<std::uint32_t>(rank),
                                                   GroupLink::kBehindSwitch});
                          return links;
                      });
        ASSERT_TRUE(joints) << joints.error().text;
        ASSERT_EQ(joints->size(), 1u);
        EXPECT_EQ(joints->front().link, (GroupLink{10, 11, 3, 4}));
        both_have_it.arrive_and_wait();  // the files go with who wrote them
        own->all_in();
    });
}

TEST(GroupMachines, FormATreeOverLinksThatBothEndsSee) {
    // A row of three, of which the last says that it is at the first, who does not.
    const auto row =
        plan_machines({0, 4, 6}, {{link(1, 4)}, {link(4, 1), link(5, 6)}, {link(6, 5), link(6, 1)}});
    ASSERT_TRUE(row);
    ASSERT_EQ(row->size(), 2u);
    EXPECT_EQ((*row)[0].above, 0);
    EXPECT_EQ((*row)[0].below, 4);
    EXPECT_EQ((*row)[1].above, 4);
    EXPECT_EQ((*row)[1].below, 6);
    EXPECT_EQ((*row)[1].link, link(5, 6));
    EXPECT_TRUE(plan_machines({0}, {{}})->empty());
    EXPECT_FALSE(plan_machines({0, 1}, {{link(1, 2)}, {}}));
}

// A machine that is asked decides; the others propose.
TEST(GroupPagesOfMachines, WhatIsProposedIsDecidedElsewhere) {
    std::shared_ptr<GroupPage> page;
    std::int64_t start = 0;
    int rounds = 0;
    do {  // again if the host stood still for so long that nobody is asked any more
        page = *GroupPage::create(4, true);
        EXPECT_FALSE(page->settle());
        page->tell(2, {orrErrorAborted, 3, "mine"});
        EXPECT_FALSE(page->cause());
        ASSERT_TRUE(page->proposed());
        EXPECT_EQ(page->proposed()->text, "mine");
        start = now_ns();
        std::jthread other([&] { page->decide(0, {orrErrorTimeout, 1, "theirs was first"}); });
        EXPECT_TRUE(page->settle());
    } while (now_ns() - start >= kGroupDecideNs && ++rounds < 20);
    EXPECT_EQ(page->cause()->code, orrErrorTimeout);
    EXPECT_EQ(page->cause()->rank, 1);
    EXPECT_EQ(page->cause()->text, "theirs was first");
    page->ask_nobody();
    EXPECT_EQ(page->cause()->text, "theirs was first");
}

TEST(GroupPagesOfMachines, WhoIsNotAnsweredDecides) {
    const auto page = *GroupPage::create(4, true);
    page->tell(2, {orrErrorAborted, 3, "mine"});
    EXPECT_TRUE(page->settle()) << "who is asked stands still";
    EXPECT_EQ(page->cause()->text, "mine");
    const auto gone = *GroupPage::create(4, true);
    gone->ask_nobody();
    gone->tell(2, {orrErrorAborted, 3, "mine"});
    EXPECT_EQ(gone->cause()->text, "mine");
}

TEST(GroupPagesOfMachines, StepsOfOthersComeByTwo) {
    const auto page = *GroupPage::create(2);
    EXPECT_FALSE(page->apart());
    const GroupPage::Said first{2, 1, 3}, second{1, 0, 0};
    const std::vector<std::byte> data(3, std::byte{9});
    page->put_offer(1, 1, first, data);
    page->put_offer(1, 2, second, {});
    page->put(1, {2, 0, {7, 8}});
    EXPECT_TRUE(page->apart());
    EXPECT_EQ(page->said(1, 1), first);
    EXPECT_EQ(page->said(1, 2), second);
    EXPECT_EQ(page->given(1, 1)[2], std::byte{9});
    EXPECT_EQ(page->queue(1, GroupPage::Queue::kGuard), 8u);
    EXPECT_FALSE(page->left(1));
    page->put(1, {2, 1, {7, 8}});
    EXPECT_TRUE(page->left(1));
}

}  // namespace
}  // namespace orrery::umd
