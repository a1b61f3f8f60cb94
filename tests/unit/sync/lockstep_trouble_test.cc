// Members that end, stop or never come.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "tests/unit/sync/members.h"

namespace orrery::emu::sync::test {
namespace {

std::string join_error(const TempFolder& folder, std::uint64_t uid, ModelTime lookahead) {
    auto joined = Lockstep::join({.file = folder.file(), .uid = uid, .lookahead = lookahead, .note = {}});
    return joined ? "" : joined.error();
}

TEST(LockstepTrouble, JoinsThatCannotBe) {
    const TempFolder folder;
    EXPECT_NE(join_error(folder, 1, 0).find("latency"), std::string::npos);
    const auto a = join(folder, 1);
    EXPECT_NE(join_error(folder, 1, 500).find("uid 0x1"), std::string::npos);
    std::vector<std::unique_ptr<Lockstep>> all;
    for (unsigned n = 1; n < kMembers; ++n)
        all.push_back(join(folder, n + 1));
    EXPECT_NE(join_error(folder, 99, 500).find("32 cards"), std::string::npos);
    all.pop_back();
    EXPECT_EQ(join_error(folder, 99, 500), "");
    const TempFolder other;
    std::ofstream(other.file()) << "something else";
    EXPECT_NE(join_error(other, 1, 500).find("remove it"), std::string::npos);
    const TempFolder zeros;
    std::ofstream(zeros.file()) << std::string(sizeof(Area), '\0');
    EXPECT_NE(join_error(zeros, 1, 500).find("remove it"), std::string::npos);
}

// Who leaves holds nobody back, and what it sent last is not forgotten.
TEST(LockstepTrouble, WhoLeavesHoldsNobodyBack) {
    const TempFolder folder;
    const auto a = join(folder, 1);
    auto b = join(folder, 2), c = join(folder, 3);
    ASSERT_TRUE(b->promise(0, 0, b->news(), true, true));
    ASSERT_TRUE(a->promise(0, 2200, a->news(), true, true));
    EXPECT_EQ(a->granted(), 500u);
    ASSERT_TRUE(a->prepare_sleep());
    b->sent(3, 2000);
    b.reset();
    char told = 0;
    EXPECT_EQ(::read(a->fd(), &told, 1), 1) << "it was woken";
    a->after_sleep();
    EXPECT_TRUE(a->changed());
    ASSERT_TRUE(a->promise(0, 2200, a->news(), true, true));
    EXPECT_EQ(a->granted(), 2500u) << "c may answer to what b sent";
    EXPECT_FALSE(a->has(2));
    // Its slot serves another.
    const auto d = join(folder, 2);
    EXPECT_TRUE(a->has(2));
}

// A process with a member; ends with the test.
class Process {
  public:
    explicit Process(const std::function<void(int ready)>& body) {
        int pipe[2];
        if (::pipe(pipe) != 0) throw std::runtime_error("pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            body(pipe[1]);
            for (;;)
                ::pause();
        }
        ::close(pipe[1]);
        char one = 0;
        const bool told = ::read(pipe[0], &one, 1) == 1;
        ::close(pipe[0]);
        if (!told) throw std::runtime_error("the process ended");
    }
    ~Process() { kill(); }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

  private:
    pid_t pid_ = -1;
};
void ready(int fd) {
    [[maybe_unused]] const auto written = ::write(fd, "x", 1);
}

TEST(LockstepTrouble, AProcessThatEndsIsLeftBehind) {
    const TempFolder folder;
    std::vector<std::string> notes;
    const auto a = join(folder, 1, 500, &notes);
    Process process([&](int fd) {
        static auto b = join(folder, 2);
        b->promise(0, 0, b->news(), true, true);
        ready(fd);
    });
    ASSERT_TRUE(a->promise(0, 4000, a->news(), true, true));
    a->look_for_life();
    ASSERT_TRUE(a->promise(0, 4000, a->news(), true, true));
    EXPECT_EQ(a->granted(), 500u) << "it lives";
    process.kill();
    a->look_for_life();
    EXPECT_TRUE(a->changed());
    ASSERT_TRUE(a->promise(0, 4000, a->news(), true, true));
    EXPECT_GT(a->granted(), 4000u);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("card 0x2 has ended"), std::string::npos) << notes[0];
}

// Processes that ended long ago are no members, whichever slots they had.
TEST(LockstepTrouble, WhatEndedProcessesLeftBehindCountsNoMore) {
    const TempFolder folder;
    std::vector<std::string> notes;
    const auto member = [&](std::uint64_t uid) {
        return std::make_unique<Process>([&folder, uid](int fd) {
            static auto one = join(folder, uid);
            one->promise(7'000'000, 7'000'000, one->news(), true, true);
            ready(fd);
        });
    };
    auto first = member(1), second = member(2);
    first->kill();
    second->kill();
    const auto again = join(folder, 2, 500, &notes);
    EXPECT_EQ(again->intrude(10), 10u) << "nobody counts on it";
    EXPECT_TRUE(again->promise(10, 10, again->news(), true, true));
    EXPECT_GT(again->granted(), 10u);
    EXPECT_NE(join_error(folder, 2, 500), "");
    EXPECT_TRUE(notes.empty());
}

TEST(LockstepTrouble, WhoStopsIsLeftBehindAndGoesOnByItself) {
    const TempFolder folder;
    std::vector<std::string> notes, own;
    const auto a = join(folder, 1, 500, &notes);
    const auto b = join(folder, 2, 500, &own);
    ASSERT_TRUE(b->promise(0, 0, b->news(), true, true));
    ASSERT_TRUE(a->promise(0, 4000, a->news(), true, true));
    for (int n = 0; n < 20; ++n) {
        b->beat();
        a->look_for_life();
    }
    EXPECT_TRUE(notes.empty()) << "who runs may take its time";
    for (int n = 0; n < 5; ++n)
        a->look_for_life();
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("has stopped"), std::string::npos) << notes[0];
    ASSERT_TRUE(a->promise(0, 4000, a->news(), true, true));
    EXPECT_GT(a->granted(), 4000u);
    EXPECT_TRUE(b->active());
    EXPECT_TRUE(b->promise(10, 10, b->news(), true, true));
    EXPECT_FALSE(b->active());
    EXPECT_EQ(b->granted(), kNever);
    ASSERT_EQ(own.size(), 1u);
    EXPECT_NE(own[0].find("by itself"), std::string::npos) << own[0];
    EXPECT_FALSE(a->has(2));
}

TEST(LockstepTrouble, AnOwnerThatEndsWithTheLockGivesItBack) {
    const TempFolder folder;
    const auto a = join(folder, 1);
    Process process([&](int fd) {
        static auto b = join(folder, 2);
        auto area = SharedArea::open(folder.file());
        (*area)->lock = 2;  // its slot is 1
        ready(fd);
    });
    process.kill();
    EXPECT_TRUE(a->promise(0, 4000, a->news(), true, true));
    EXPECT_TRUE(a->active());
}

}  // namespace
}  // namespace orrery::emu::sync::test
