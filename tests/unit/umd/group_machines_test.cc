// A group on two machines, each with a runtime and a card of its own. The test is rank 1 and its machine,
// and does what that does step by step.
#include <gmock/gmock.h>
#include <orrery/fw/failure.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/group.h"
#include "umd/runtime/group_bridge.h"
#include "umd/runtime/group_folder.h"
#include "umd/runtime/group_page.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/stream.h"

namespace orrery::umd::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr std::uint64_t kLongNs = 100'000'000'000;

void until(const std::function<bool()>& there) {
    const Until limit(kLongNs);
    while (!there() && limit.left_ns() != 0)
        std::this_thread::sleep_for(milliseconds(1));
    ASSERT_TRUE(there());
}

class GroupOfTwoMachines : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = ::testing::TempDir() + "group-XXXXXX";
        path_ = ::mkdtemp(name.data());
        const GroupToken token = *GroupToken::make(path_.string());
        std::thread joins([&] {
            auto joined = Group::join(here_, token, 0, 2, kLongNs);
            ASSERT_TRUE(joined) << joined.error().text;
            group_ = std::move(*joined);
        });
        join(token);
        joins.join();
        ASSERT_NE(group_, nullptr);
    }
    void TearDown() override { std::filesystem::remove_all(path_); }

    // Rank 1's join.
    void join(const GroupToken& token) {
        GroupFolder folder(token, 1, 2, kLongNs, {std::byte{1}});
        const std::vector<int> leaders{0, 1};
        ASSERT_EQ(*folder.introduce(), leaders);
        const auto joints = folder.plan(leaders, *own_cards(there_),
                                        [&](const auto& others) { return links_to_others(there_, others); });
        ASSERT_TRUE(joints) << joints.error().text;
        ASSERT_EQ(joints->size(), 1u);
        context_ = *there_.context(0);
        edge_ = *GroupEdge::create(there_, *context_, joints->front(), 1, {true, false});
        ASSERT_TRUE(folder.give(0, *edge_->key()));
        const auto imported = edge_->import(*folder.take(0), folder.until());
        ASSERT_TRUE(imported) << imported.error().text;
        const auto agreed = folder.agree(leaders);
        ASSERT_TRUE(agreed) << agreed.error().text;
        folder.all_in();
    }
    // What is new in rank 1's page gets to rank 0's machine.
    void tell() {
        until([&] { return edge_->quiet(); });
        EXPECT_TRUE(edge_->send(*page_));
        until([&] { return edge_->quiet(); });
    }

    FakeSystem system_{2};
    Runtime here_{std::make_unique<FakeWinsys>(system_.cards().first(1))};
    Runtime there_{std::make_unique<FakeWinsys>(system_.cards().last(1))};
    std::filesystem::path path_;
    Context* context_ = nullptr;  // of rank 1
    const std::shared_ptr<GroupPage> page_ = *GroupPage::create(2, true);
    std::unique_ptr<GroupEdge> edge_;
    std::shared_ptr<Group> group_;  // rank 0's
};

// The cards are told at once that rank 1's stream has failed. Its machine stands still, and tells why when it
// goes on.
TEST_F(GroupOfTwoMachines, WhoKnowsWhyAStreamFailedIsWaitedFor) {
    const auto stream = *Stream::create(*context_, 64, 0, {.name = "fails"});
    page_->set_queue(1, GroupPage::Queue::kBarriers,
                     1ull << 63 | std::uint64_t{context_->node()} << 32 | stream->number());
    tell();
    const auto never = *context_->semaphores().take(true);
    const orr_packet packets[] = {make_wait(never->va, never->last + 1, 1000),
                                  make_semaphore(ORR_PKT_SIGNAL, edge_->theirs(), 1)};
    ASSERT_TRUE(stream->submit(packets, OpNote{Op::kSignal, nullptr}));
    until([&] { return stream->look().has_value(); });
    // Rank 0's bridge looks all the time.
    std::this_thread::sleep_for(milliseconds(1500));
    page_->tell(1, {orrErrorTimeout, 1, "stream 'fails' waited for 'never'"});
    tell();
    const auto cause = group_->cause();
    ASSERT_TRUE(cause);
    EXPECT_EQ(cause->code, orrErrorTimeout);
    EXPECT_EQ(cause->rank, 1);
    EXPECT_THAT(cause->text, HasSubstr("'never'"));
    stream->close();
    group_->leave();
}

// A stream of rank 0 has failed, which the cards tell rank 1 first, and that one's streams tell rank 0.
TEST_F(GroupOfTwoMachines, AFailureThatComesBackIsToldWithItsText) {
    Context& context = **here_.context(0);
    const auto fails = *Stream::create(context, 64, 0, {.name = "fails"});
    const auto meets = *Stream::create(context, 64, 0, {.name = "meets"});
    const auto passes_on = *Stream::create(*context_, 64, 0, {.name = "passes on"});
    const auto never = *context.semaphores().take(true);
    context.name_semaphore(never->va, "never");
    {
        const auto given = *context_->shared_semaphores().create(SharedSemaphores::Kind::kGroup);
        given->abroad = true;
        const auto taken =
            *context.shared_semaphores().import_fabric(*context_->memory().export_fabric(*given->block));
        taken->claim();
        const orr_packet back[] = {make_wait(given->va, 1, 0),
                                   make_semaphore(ORR_PKT_SIGNAL, edge_->theirs(), 1)};
        ASSERT_TRUE(passes_on->submit(back, OpNote{Op::kSignal, nullptr}));
        ASSERT_TRUE(group_->barrier(meets, 0));
        const orr_packet there[] = {make_wait(never->va, never->last + 1, 1000),
                                    make_semaphore(ORR_PKT_SIGNAL, taken->va, 1)};
        ASSERT_TRUE(fails->submit(there, OpNote{Op::kSignal, nullptr}));
        until([&] { return meets->look().has_value(); });
        const auto cause = group_->cause();
        ASSERT_TRUE(cause);
        EXPECT_EQ(cause->code, orrErrorTimeout);
        EXPECT_EQ(cause->rank, 0);
        EXPECT_THAT(cause->text, HasSubstr("'never'"));
        for (const auto& stream : {fails, meets, passes_on})
            stream->close();
    }
    context.name_semaphore(never->va, {});
    group_->leave();
}

TEST_F(GroupOfTwoMachines, WhoIsGoneIsNamed) {
    edge_.reset();
    std::optional<GroupCause> cause;
    until([&] {
        there_.sweep();
        cause = group_->cause();
        return cause.has_value();
    });
    ASSERT_TRUE(cause);
    EXPECT_EQ(cause->rank, 1);
    EXPECT_THAT(cause->text, HasSubstr("its process ended"));
    group_->leave();
}

// Else the others take it for one whose process has ended.
TEST_F(GroupOfTwoMachines, WhoLeavesHasSaidSo) {
    system_.card(0).pause(true);
    std::atomic<bool> left{false};
    std::thread leaves([&] {
        group_->leave();
        left = true;
    });
    std::this_thread::sleep_for(milliseconds(3000));
    EXPECT_FALSE(left) << "and nobody was told";
    system_.card(0).pause(false);
    leaves.join();
    group_.reset();
    // What came before the end is seen with it.
    until([&] {
        here_.sweep();
        EXPECT_FALSE(edge_->lost(*page_).has_value());
        return edge_->over();
    });
    EXPECT_TRUE(page_->left(0));
}

}  // namespace
}  // namespace orrery::umd::test
