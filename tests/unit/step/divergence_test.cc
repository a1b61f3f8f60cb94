// A long recording is opened without a replay: what a move finds later must not pass for what was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/gdb/replay_target.h"
#include "emulator/trace/port_words.h"
#include "tests/unit/step/story.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Diverging : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        const emu::TemporaryFile file;
        emu::record_keyframes(file.path(), 6);
        good_ = new std::vector<std::uint8_t>(emu::bytes_of(file.path()));
    }
    static void TearDownTestSuite() {
        delete good_;
        good_ = nullptr;
    }
    // A block in the middle of the work is not as its hash says; its keyframe must agree or go.
    void SetUp() override {
        auto blocks = emu::raw_blocks(*good_);
        std::size_t seen = 0;
        for (std::size_t i = 0; i + 1 < blocks.size() && bad_ == 0; ++i) {
            if (blocks[i].header.kind != ORR_OTRACE_LOG || blocks[i + 1].header.kind != ORR_OTRACE_KEYFRAME)
                continue;
            if (++seen != 4) continue;
            blocks[i].header.state_hash ^= 1;
            bad_ = blocks[i].header.first_step;
            blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
        ASSERT_NE(bad_, 0u);
        emu::write_bytes(file_.path(), emu::sealed(*good_, std::move(blocks)));
    }
    std::unique_ptr<Session> session(emu::Opening opening = emu::Opening::kIndex) const {
        auto opened = open_session(file_.path(), {}, opening);
        EXPECT_TRUE(opened) << opened.error().text;
        return opened ? *std::move(opened) : nullptr;
    }
    std::unique_ptr<Debugger> debugger() const { return debug(session()); }

    emu::TemporaryFile file_;
    std::uint64_t bad_ = 0;  // first step of the block that is not as recorded

  private:
    static std::vector<std::uint8_t>* good_;
};
std::vector<std::uint8_t>* Diverging::good_ = nullptr;

TEST_F(Diverging, EveryCommandThatMovesSaysSo) {
    const auto count = [](const Debugger& one) {
        return std::pair(one.history().records().size(), one.history().decisions().size());
    };
    const auto [events, decisions] = count(*debugger());
    ASSERT_GT(decisions, 3u);
    for (const std::string& line :
         {std::string("goto end"), std::string("continue"), fmt::format("goto event {}", events - 1),
          fmt::format("step {} events", events - 1), std::string("step 100000000 insn"),
          std::string("timeline"), fmt::format("why {}", decisions - 1),
          std::string("until queue[0].state == 77"), std::string("until decision.queue == 77"),
          std::string("verify")}) {
        const auto d = debugger();
        EXPECT_TRUE(d->session().about().divergence.empty());
        EXPECT_THAT(run(*d, line), StartsWith("error: replay does NOT make what was recorded: ")) << line;
        EXPECT_EQ(d->session().end(), bad_) << line;
        EXPECT_LE(d->session().position(), bad_) << line;
        // Nothing behind it is told any more.
        EXPECT_LT(count(*d).first, events) << line;
        ASSERT_FALSE(d->history().records().empty());
        EXPECT_LE(d->history().records().back().step, bad_) << line;
        EXPECT_THAT(run(*d, fmt::format("goto event {}", events - 1)),
                    StartsWith("error: there is no event"));
        EXPECT_THAT(run(*d, "goto end"), HasSubstr("(the end of the recording)")) << "that is known by now";
    }
}

TEST_F(Diverging, ALookBackAsksForWhatIsLeft) {
    const auto d = debugger();
    d->session().seek(bad_ + 1);
    EXPECT_THAT(run(*d, "break queue[0].state == 77"), Not(StartsWith("error"))) << "not there yet";
    EXPECT_THAT(run(*d, "continue"), StartsWith("error: replay does NOT make")) << "with a condition too";
    EXPECT_THAT(run(*d, "reverse-continue"), Not(StartsWith("error")));
}

// What nobody has checked is not called exact, and programs are told too.
TEST_F(Diverging, WhatIsNotCheckedIsNotCalledExact) {
    const auto d = debugger();
    EXPECT_THAT(d->notes(), ::testing::Contains(StartsWith("not verified: ")));
    run(*d, fmt::format("goto {}", bad_));
    EXPECT_THAT(run(*d, "info"), HasSubstr("exact where it was replayed, "));
    for (const char* line : {"info", "events", "summary", "why 0"})
        EXPECT_EQ(d->execute(line).value().data["verified"], Json(false)) << line;
    auto story = three_queues();
    story->info.verified = false;
    story->info.hashes_checked = 0;
    EXPECT_THAT(run(*debug(std::move(story)), "info"), HasSubstr("not checked yet: "));
    run(*d, "verify");
    EXPECT_FALSE(d->execute("events").value().data.contains("verified"));
    EXPECT_THAT(run(*d, "info"), HasSubstr("NOT exact"));
}

TEST_F(Diverging, WhatWasFoundAtOpeningIsCutToo) {
    const auto d = debug(session(emu::Opening::kWhole));
    ASSERT_FALSE(d->notes().empty());
    EXPECT_THAT(d->notes().front(), StartsWith("replay does NOT make what was recorded"));
    EXPECT_LE(d->history().records().back().step, bad_);
}

TEST_F(Diverging, GdbIsTold) {
    for (const char* command : {"seek 100000000000", "time 100000000000000000"}) {
        auto replayer = emu::Replayer::open(file_.path(), {}, emu::Opening::kIndex);
        ASSERT_TRUE(replayer) << replayer.error();
        emu::gdb::ReplayTarget target(**replayer);
        target.monitor(fmt::format("seek {}", bad_));  // from here it is not jumped over
        EXPECT_THAT(target.monitor(command), StartsWith("replay does NOT make what was recorded: "))
            << command;
        EXPECT_THAT(target.monitor(command), StartsWith(fmt::format("step {} of {},", bad_, bad_)))
            << command;
    }
    // A record at a time, until there is none left.
    auto replayer = emu::Replayer::open(file_.path(), {}, emu::Opening::kIndex);
    emu::gdb::ReplayTarget target(**replayer);
    std::string said;
    for (std::size_t i = (*replayer)->record_count(); i-- != 0 && !said.starts_with("replay");)
        said = target.monitor("record next");
    EXPECT_THAT(said, StartsWith("replay does NOT make what was recorded: "));
    // What gdb found, those who look on with it know.
    auto shared = emu::Replayer::open(file_.path(), {}, emu::Opening::kIndex);
    const auto d = debug(share_session("x", **shared));
    const std::size_t events = d->history().records().size();
    (*shared)->seek(~std::uint64_t{0});
    run(*d, "events");
    EXPECT_LT(d->history().records().size(), events);
}

}  // namespace
}  // namespace orrery::step
