// What a debugger's user expects beside moves of our own: continue, display, x, registers, files of commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/step/story.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Debugging : public ::testing::Test {
  protected:
    std::string run(std::string_view line) { return step::run(*debugger, line); }
    std::uint64_t position() const { return debugger->session().position(); }
    std::unique_ptr<Debugger> debugger = debug(three_queues());
};

TEST_F(Debugging, ContinueGoesFromBreakpointToBreakpointInBothDirections) {
    run("break decision.rule == preempt");
    run("break decision.rule == share");
    EXPECT_THAT(run("c"), StartsWith("breakpoint 2: decision.rule == share\n"));
    const std::uint64_t share = position();
    EXPECT_THAT(run("continue"), StartsWith("breakpoint 1: decision.rule == preempt\n"));
    EXPECT_THAT(run("c"), HasSubstr("(the end of the recording)"));
    EXPECT_THAT(run("c"), StartsWith("error: this is the end of the recording"));
    EXPECT_THAT(run("rc"), StartsWith("breakpoint 1: decision.rule == preempt\n"));
    EXPECT_THAT(run("reverse-continue"), StartsWith("breakpoint 2: decision.rule == share\n"));
    EXPECT_EQ(position(), share);
    run("rc");
    EXPECT_EQ(position(), 0u);
    EXPECT_THAT(run("rc"), StartsWith("error: this is the beginning of the recording"));
}

TEST_F(Debugging, ContinueSaysThatNothingCouldStopIt) {
    EXPECT_THAT(run("c"), StartsWith("no breakpoint is set"));
    EXPECT_EQ(position(), debugger->session().end());
}

TEST_F(Debugging, BreakpointsEndEveryGoto) {
    run("break decision.rule == preempt");
    EXPECT_THAT(run("goto end"), StartsWith("breakpoint 1: decision.rule == preempt\n"));
    const std::uint64_t there = position();
    for (const char* beyond : {"goto 79us", "goto 129", "goto decision 3", "goto event 45"}) {
        run("delete");
        run("goto start");
        run("break decision.rule == preempt");
        EXPECT_THAT(run(beyond), StartsWith("breakpoint ")) << beyond;
        EXPECT_EQ(position(), there) << beyond;
    }
    run("delete");
    run("goto end");
    run("break decision.rule == preempt");
    EXPECT_THAT(run("goto start"), StartsWith("breakpoint "));
    EXPECT_EQ(position(), there);
    // What lies on this side of it is reached.
    EXPECT_THAT(run("goto start"), testing::Not(StartsWith("breakpoint ")));
    EXPECT_EQ(position(), 0u);
}

TEST_F(Debugging, DisabledBreakpointsEndNothing) {
    run("break decision.rule == preempt");
    run("watch queue[0].state");
    EXPECT_EQ(run("disable"), "2 disabled\n");
    EXPECT_THAT(run("info"), HasSubstr("watch      2: queue[0].state  (disabled)"));
    run("continue");
    EXPECT_EQ(position(), debugger->session().end());
    run("goto start");
    EXPECT_EQ(run("enable 1"), "1 enabled\n");
    EXPECT_THAT(run("continue"), StartsWith("breakpoint 1"));
    EXPECT_THAT(run("enable 7"), StartsWith("error: there is no breakpoint 7"));
}

TEST_F(Debugging, DisplaysFollowEveryMove) {
    EXPECT_EQ(run("display queue[0].state"), "1: queue[0].state = idle (0)\n");
    EXPECT_EQ(run("display /x a0"), "2: a0 = 0x1000\n");
    const std::string moved = run("until queue[0].state == ready");
    EXPECT_THAT(moved, HasSubstr("\n1: queue[0].state = ready (1)\n2: a0 = 0x"));
    EXPECT_THAT(run("back insn"), HasSubstr("\n1: queue[0].state = idle (0)\n"));
    EXPECT_THAT(run("where"), testing::Not(HasSubstr("1: queue[0]")));
    EXPECT_EQ(run("undisplay 1"), "1 removed\n");
    EXPECT_THAT(run("step"), testing::Not(HasSubstr("queue[0].state")));
    EXPECT_THAT(run("undisplay 1"), StartsWith("error: there is no display 1"));
    EXPECT_THAT(run("display nonsense("), StartsWith("error: "));
}

TEST_F(Debugging, MemoryIsShownAsGdbShowsIt) {
    // The head of the tables: its magic, version and number of tables.
    EXPECT_EQ(run("x/1wx 0x80001008"), "0x80001008:  0x00000001\n");
    EXPECT_EQ(run("x/2wd 0x80001008"), "0x80001008:  1  3\n");
    EXPECT_THAT(run("x/s 0x80001100"), HasSubstr("\"queue\""));
    EXPECT_EQ(run("x/2gx 0x80001008"), "0x80001008:  0x0000000300000001  0x0000000080001100\n");
    EXPECT_EQ(run("x /1xh 0x80001008"), "0x80001008:  0x0001\n");
    EXPECT_THAT(run("x/3i pc"), HasSubstr(".half 0x0000"));
    EXPECT_THAT(run("x/4q sp"), StartsWith("error: 'q' is no format"));
    EXPECT_THAT(run("x 0"), StartsWith("error: 0x0 is not in the recording"));
    EXPECT_THAT(run("x"), StartsWith("error: x where?"));
    EXPECT_THAT(run("x/9999x 0x80001008"), StartsWith("error: x shows 1 to 4096 units"));
}

TEST_F(Debugging, RegistersAreAllThere) {
    const auto reply = debugger->execute("info registers");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->data["pc"], 0x80000400u);
    EXPECT_EQ(reply->data["a0"], 0x1000);
    EXPECT_EQ(reply->data.size(), 31u + 11u);
    EXPECT_THAT(run("info nonsense"), StartsWith("error: "));
}

TEST_F(Debugging, NoStackWithoutSymbols) {
    EXPECT_THAT(run("bt"), StartsWith("error: there are no symbols"));
    EXPECT_THAT(run("finish"), StartsWith("error: there are no symbols"));
}

TEST_F(Debugging, FilesOfCommandsRunUpToTheFirstThatFails) {
    const std::string file = ::testing::TempDir() + fmt::format("step-source-{}", ::getpid());
    ASSERT_TRUE(
        write_file(file, "# what I always want\nbreak decision.rule == preempt\nnonsense\ngoto end\n"));
    EXPECT_THAT(run("source " + file), HasSubstr(file + ":3: there is no command 'nonsense'"));
    EXPECT_EQ(debugger->breakpoints().size(), 1u);
    EXPECT_EQ(position(), 0u);
    ASSERT_TRUE(write_file(file, "source " + file + "\n"));
    EXPECT_THAT(run("source " + file), HasSubstr("nested more than 16 deep"));
    EXPECT_THAT(run("source /nowhere/at/all"), StartsWith("error: /nowhere/at/all: "));
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace orrery::step
