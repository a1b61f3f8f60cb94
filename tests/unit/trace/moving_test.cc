// Forward, backward, to times, to points: always the same states.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

struct Seen {
    HartState state;
    std::uint64_t time = 0;
    std::vector<std::uint8_t> sram;
    bool operator==(const Seen&) const = default;
};

class Moving : public testing::Test {
  protected:
    void SetUp() override {
        record_firmware(file_.path(), 2);
        auto opened = Replayer::open(file_.path());
        ASSERT_TRUE(opened) << opened.error();
        replayer_ = *std::move(opened);
        ASSERT_FALSE(replayer_->divergence());
    }
    Seen look() const {
        const auto sram = replayer_->sram();
        return {replayer_->state(), replayer_->time(), {sram.begin(), sram.end()}};
    }
    // Goes to where the firmware serves queues. What is before is mostly the loop that clears its memory, of
    // which an instruction comes a hundred thousand times.
    std::uint64_t at_work() {
        replayer_->seek(replayer_->record(replayer_->record_count() * 3 / 4).step);
        return replayer_->step();
    }

    TemporaryFile file_;
    std::unique_ptr<Replayer> replayer_;
};

TEST_F(Moving, APositionIsTheSameFromEverywhere) {
    std::mt19937_64 random(7);
    std::map<std::uint64_t, Seen> seen;
    for (int i = 0; i < 12; ++i) {
        const std::uint64_t step = random() % (replayer_->end() + 1);
        replayer_->seek(step);
        EXPECT_EQ(replayer_->step(), step);
        seen[step] = look();
    }
    for (int i = 0; i < 40; ++i) {
        auto at = seen.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % seen.size()));
        replayer_->seek(random() % (replayer_->end() + 1));
        const auto here = replayer_->step();
        if (here <= at->first) {
            replayer_->step_forward(at->first - here);
        } else {
            replayer_->step_back(here - at->first);
        }
        ASSERT_EQ(replayer_->step(), at->first);
        ASSERT_EQ(look(), at->second) << "from " << here;
    }
}

TEST_F(Moving, StepByStepIsTheWayInOneGo) {
    const std::uint64_t from = replayer_->end() / 2;
    replayer_->seek(from);
    for (int i = 0; i < 500; ++i)
        ASSERT_EQ(replayer_->step_forward().stop, ReplayStop::kTarget);
    const Seen there = look();
    replayer_->seek(0);
    replayer_->seek(from + 500);
    EXPECT_EQ(look(), there);
}

TEST_F(Moving, TheEnds) {
    EXPECT_EQ(replayer_->step(), 0u);
    EXPECT_EQ(replayer_->step_back().stop, ReplayStop::kBegin);
    EXPECT_EQ(replayer_->seek(~std::uint64_t{0}).stop, ReplayStop::kEnd);
    EXPECT_EQ(replayer_->step(), replayer_->end());
    EXPECT_EQ(replayer_->time(), replayer_->end_time());
    EXPECT_EQ(replayer_->step_forward().stop, ReplayStop::kEnd);
    EXPECT_EQ(replayer_->step_back(~std::uint64_t{0}).stop, ReplayStop::kBegin);
    EXPECT_EQ(replayer_->step(), 0u);
}

TEST_F(Moving, ToATime) {
    std::mt19937_64 random(9);
    replayer_->seek(0);
    const std::uint64_t first = replayer_->time();
    EXPECT_EQ(replayer_->seek_time(first - 1).stop, ReplayStop::kBegin);
    for (int i = 0; i < 30; ++i) {
        const std::uint64_t time = first + random() % (replayer_->end_time() - first + 1);
        replayer_->seek_time(time);
        ASSERT_LE(replayer_->time(), time);
        if (replayer_->step_forward().stop == ReplayStop::kTarget) {
            EXPECT_GT(replayer_->time(), time);
        }
    }
}

TEST_F(Moving, FromRecordToRecord) {
    ASSERT_GT(replayer_->record_count(), 5u);
    for (std::size_t i = 0; i < replayer_->record_count(); ++i) {
        ASSERT_EQ(replayer_->next_record().stop, ReplayStop::kTarget);
        EXPECT_EQ(replayer_->step(), replayer_->record(i).step);
        EXPECT_EQ(replayer_->time(), replayer_->record(i).time_ps);
    }
    EXPECT_EQ(replayer_->next_record().stop, ReplayStop::kEnd);
    for (std::size_t i = replayer_->record_count(); i-- != 0;) {
        ASSERT_EQ(replayer_->previous_record().stop, ReplayStop::kTarget);
        EXPECT_EQ(replayer_->step(), replayer_->record(i).step);
    }
    EXPECT_EQ(replayer_->previous_record().stop, ReplayStop::kBegin);
}

TEST_F(Moving, BreakpointsForwardAndBackward) {
    const std::uint64_t there = at_work();
    const std::uint64_t pc = replayer_->state().pc;
    ReplayLimits limits;
    limits.breakpoints = {pc};
    std::vector<std::uint64_t> forward;
    replayer_->seek(0);
    for (;;) {
        const ReplayStopInfo info = replayer_->run_until(~std::uint64_t{0}, limits);
        if (info.stop != ReplayStop::kBreakpoint) {
            EXPECT_EQ(info.stop, ReplayStop::kEnd);
            break;
        }
        EXPECT_EQ(info.breakpoint, pc);
        EXPECT_EQ(replayer_->state().pc, pc);
        forward.push_back(replayer_->step());
    }
    ASSERT_FALSE(forward.empty());
    EXPECT_TRUE(std::ranges::find(forward, there) != forward.end());
    std::vector<std::uint64_t> backward;
    while (replayer_->run_back_until(0, limits).stop == ReplayStop::kBreakpoint)
        backward.push_back(replayer_->step());
    EXPECT_EQ(replayer_->step(), 0u);
    std::ranges::reverse(backward);
    EXPECT_EQ(backward, forward);
}

TEST_F(Moving, MoreBreakpointsThanTheHartHas) {
    at_work();
    const std::uint64_t pc = replayer_->state().pc;
    ReplayLimits limits;
    limits.breakpoints = {pc};
    replayer_->seek(0);
    replayer_->run_until(~std::uint64_t{0}, limits);
    const std::uint64_t first = replayer_->step();
    for (std::uint64_t i = 0; i < 100; ++i)
        limits.breakpoints.push_back(0x8007'0000 + 4 * i);
    replayer_->seek(0);
    EXPECT_EQ(replayer_->run_until(~std::uint64_t{0}, limits).stop, ReplayStop::kBreakpoint);
    EXPECT_EQ(replayer_->step(), first);
}

// A word that the firmware changes: every change of it must be found, in both directions, and the run must
// stay what it is.
TEST_F(Moving, WatchpointsSeeEveryWrite) {
    const std::uint64_t from = replayer_->record(replayer_->record_count() / 4).step;
    const std::uint64_t to = std::min(from + 20'000, replayer_->end());
    replayer_->seek(from);
    const Seen begin = look();
    replayer_->seek(to);
    const auto sram = replayer_->sram();
    const auto differs = std::ranges::mismatch(begin.sram, sram).in1 - begin.sram.begin();
    ASSERT_LT(static_cast<std::size_t>(differs), sram.size());
    const std::uint64_t address = ORR_SRAM_BASE + static_cast<std::uint64_t>(differs) / 8 * 8;
    ReplayLimits limits;
    limits.watchpoints = {{.address = address, .bytes = 8}};
    replayer_->seek(from);
    // The truth, a step at a time.
    std::vector<std::uint64_t> changes;
    std::uint64_t before = 0, now = 0;
    ASSERT_TRUE(replayer_->read64(address, before));
    while (replayer_->step() < to) {
        replayer_->step_forward();
        ASSERT_TRUE(replayer_->read64(address, now));
        if (now != before) changes.push_back(replayer_->step());
        before = now;
    }
    ASSERT_FALSE(changes.empty());
    const Seen end = look();
    std::vector<std::uint64_t> hits;
    replayer_->seek(from);
    while (replayer_->run_until(to, limits).stop == ReplayStop::kWatchpoint)
        hits.push_back(replayer_->step());
    EXPECT_EQ(look(), end);
    EXPECT_TRUE(std::ranges::includes(hits, changes))
        << hits.size() << " hits, " << changes.size() << " changes";
    std::vector<std::uint64_t> backward;
    for (;;) {
        const ReplayStopInfo info = replayer_->run_back_until(from, limits);
        if (info.stop != ReplayStop::kWatchpoint) break;
        EXPECT_EQ(info.watch_pc, replayer_->state().pc) << "about to be executed";
        backward.push_back(replayer_->step() + 1);
    }
    std::ranges::reverse(backward);
    EXPECT_EQ(backward, hits);
}

TEST_F(Moving, Conditions) {
    ReplayLimits limits;
    const std::uint64_t wanted = replayer_->end() / 3;
    limits.condition = [&] { return replayer_->step() >= wanted; };
    EXPECT_EQ(replayer_->run_until(~std::uint64_t{0}, limits).stop, ReplayStop::kCondition);
    EXPECT_EQ(replayer_->step(), wanted);
    limits.condition = [&] { return replayer_->step() <= 100; };
    EXPECT_EQ(replayer_->run_back_until(0, limits).stop, ReplayStop::kCondition);
    EXPECT_EQ(replayer_->step(), 100u);
    limits.condition_at_records = true;
    const PortRecord third = replayer_->record(2);
    limits.condition = [&] { return replayer_->step() >= third.step; };
    EXPECT_EQ(replayer_->run_until(~std::uint64_t{0}, limits).stop, ReplayStop::kCondition);
    EXPECT_EQ(replayer_->step(), third.step);
    replayer_->seek(replayer_->end());
    limits.condition = [&] { return replayer_->step() <= third.step; };
    EXPECT_EQ(replayer_->run_back_until(0, limits).stop, ReplayStop::kCondition);
    EXPECT_EQ(replayer_->step(), third.step);
}

TEST_F(Moving, ACancelledRunStops) {
    ReplayLimits limits;
    limits.condition = [] { return false; };
    limits.progress = [](std::uint64_t) { return false; };
    const ReplayStop stop = replayer_->run_until(~std::uint64_t{0}, limits).stop;
    EXPECT_TRUE(stop == ReplayStop::kCancelled || stop == ReplayStop::kEnd);
}

}  // namespace
}  // namespace orrery::emu
