// step, back, until, goto, breakpoints and watches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/step/story.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Moves : public ::testing::Test {
  protected:
    std::string run(std::string_view line) { return step::run(*debugger, line); }
    std::uint64_t position() const { return debugger->session().position(); }
    std::unique_ptr<Debugger> debugger = debug(three_queues());
};

TEST_F(Moves, BeginAtTheFirstRecord) {
    EXPECT_EQ(run("where"),
              "step 0  1.000 us  0x80000400\n  start: the firmware starts, ABI 2.0\n  next: .half 0x0000\n"
              "  event 0 of 46, decision 0 of 4\n");
}

TEST_F(Moves, StepAndBackMeetAtTheSameRecords) {
    std::vector<std::uint64_t> forward = {position()};
    while (!run("step").starts_with("error: "))
        forward.push_back(position());
    EXPECT_EQ(forward.size(), debugger->history().records().size());
    EXPECT_THAT(run("step"), StartsWith("error: there is no event behind this position"));
    std::vector<std::uint64_t> backward = {position()};
    while (!run("back").starts_with("error: "))
        backward.push_back(position());
    std::ranges::reverse(backward);
    EXPECT_EQ(forward, backward);
}

TEST_F(Moves, CountInstructionsAndDecisions) {
    run("step 3 insn");
    EXPECT_EQ(position(), 3u);
    run("back 2 insn");
    EXPECT_EQ(position(), 1u);
    EXPECT_THAT(run("step 2 decision"),
                HasSubstr("a vector port goes to queue 2 \"batch\", packet 0 (share of 2 candidates)"));
    EXPECT_THAT(run("step 7 decisions"), StartsWith("only 2 decisions were left\n"));
    EXPECT_THAT(run("back decision"), HasSubstr("preempt of 2 candidates"));
    EXPECT_THAT(run("back 99 decision"), StartsWith("only 2 decisions were before\n"));
    EXPECT_THAT(run("step 100000 insn"), StartsWith("only "));
    EXPECT_EQ(position(), debugger->session().end());
    EXPECT_THAT(run("step insn"), StartsWith("error: this is the end"));
    run("goto 0");
    EXPECT_THAT(run("back insn"), StartsWith("error: this is the beginning"));
}

TEST_F(Moves, GoAnywhere) {
    EXPECT_THAT(run("goto 45us"), HasSubstr("40.0"));
    EXPECT_LE(debugger->session().time(), 45 * kUs);
    run("goto 17");
    EXPECT_EQ(position(), 17u);
    EXPECT_THAT(run("goto decision 3"), HasSubstr("resume of 1 candidate)"));
    EXPECT_THAT(run("goto event 0"), HasSubstr("the firmware starts"));
    EXPECT_THAT(run("goto end"), HasSubstr("(the end of the recording)"));
    EXPECT_THAT(run("goto decision 4"), StartsWith("error: there is no decision 4: they run from 0 to 3"));
    EXPECT_THAT(run("goto 100000"), StartsWith("error: the recording has 130 steps"));
    EXPECT_THAT(run("goto 1s"), StartsWith("error: the recording ends at 80.0"));
    EXPECT_THAT(run("goto there"), StartsWith("error: 'there' is neither a time"));
}

TEST_F(Moves, UntilStopsAtTheFirstInstructionBehindTheStore) {
    const std::string reply = run("until queue[1].state == stopped");
    EXPECT_THAT(reply, HasSubstr("has stopped"));
    const std::uint64_t there = position();
    run("back insn");
    EXPECT_EQ(run("print queue[1].state == stopped"), "queue[1].state == stopped = false\n");
    run("goto start");
    // The same through every position, as a register makes it need.
    run("until queue[1].state == stopped && a0 != 0");
    EXPECT_EQ(position(), there);
    EXPECT_THAT(run("until queue[1].state == stopped"), StartsWith("it holds here already"));
    const std::uint64_t before = position();
    EXPECT_THAT(run("until queue[1].state == ready"),
                StartsWith("error: 'queue[1].state == ready' never holds from here"));
    EXPECT_EQ(position(), before);
}

TEST_F(Moves, UntilFollowsRecords) {
    EXPECT_THAT(run("until decision.queue == 2"), HasSubstr("share"));
    EXPECT_THAT(run("until event.type == preempt"),
                HasSubstr("queue 1 \"train\" is preempted on port 2 for queue 0 \"ui\""));
    EXPECT_THAT(run("until decision.rule == resume && queue[1].state == suspended"),
                HasSubstr("resume of 1"));
    EXPECT_THAT(run("until decision.queue == 2"), StartsWith("error: "));
    EXPECT_THAT(run("back until decision.queue == 2"), HasSubstr("share"));
    EXPECT_THAT(run("back until decision.queue == 5"), StartsWith("error: 'decision.queue == 5' never held"));
}

TEST_F(Moves, BackUntilFindsTheLastMomentThatItHeld) {
    run("goto end");
    run("back until queue[1].state == ready");
    EXPECT_EQ(run("print queue[1].state"), "queue[1].state = ready (1)\n");
    run("step insn");
    EXPECT_EQ(run("print queue[1].state"), "queue[1].state = vector_port (4)\n");
}

TEST_F(Moves, BreakpointsEndThemAndAreNumbered) {
    EXPECT_EQ(run("break decision.rule == preempt"), "breakpoint 1: decision.rule == preempt\n");
    EXPECT_EQ(run("break 0x80000410 if a0 == 0x1004"),
              "breakpoint 2: 0x80000410 if a0 == 0x1004 at 0x80000410\n");
    EXPECT_EQ(run("break 0x80000414 if a0 == 0"), "breakpoint 3: 0x80000414 if a0 == 0 at 0x80000414\n");
    EXPECT_THAT(run("step 40 event"), StartsWith("breakpoint 2: 0x80000410"));
    EXPECT_EQ(position(), 4u);
    EXPECT_THAT(run("step 40 event"), StartsWith("breakpoint 1: decision.rule == preempt"));
    EXPECT_THAT(run("info"), HasSubstr("break      2: 0x80000410 if a0 == 0x1004"));
    EXPECT_EQ(run("delete 1 2"), "2 deleted\n");
    EXPECT_THAT(run("delete 1"), StartsWith("error: there is no breakpoint 1"));
    EXPECT_THAT(run("break nowhere"), StartsWith("error: "));
    EXPECT_THAT(run("break turn.cc:12"), StartsWith("error: there is no debug information"));
    EXPECT_EQ(run("delete"), "1 deleted\n");
}

TEST_F(Moves, WatchesShowBothValuesInBothDirections) {
    EXPECT_EQ(run("watch queue[0].state"), "watch 1: queue[0].state\n");
    EXPECT_THAT(run("step 100 event"),
                StartsWith("watch 1: queue[0].state was idle (0), is now ready (1)\n"));
    EXPECT_THAT(run("step 100 event"),
                StartsWith("watch 1: queue[0].state was ready (1), is now vector_port (4)\n"));
    EXPECT_THAT(run("back 100 event"),
                StartsWith("watch 1: queue[0].state is ready (1), and becomes vector_port (4)\n"));
    EXPECT_THAT(run("watch event.type"), StartsWith("error: records come and go"));
    EXPECT_THAT(run("watch u64(0)"), StartsWith("error: a recording holds"));
}

TEST_F(Moves, RefuseWhatTheyDoNotUnderstand) {
    EXPECT_THAT(run("step sideways"), StartsWith("error: 'sideways' is no distance"));
    EXPECT_THAT(run("step 0"), StartsWith("error: '0' is no distance"));
    EXPECT_THAT(run("until"), StartsWith("error: until what?"));
    EXPECT_THAT(run("goto"), StartsWith("error: where to?"));
    EXPECT_THAT(run("stpe"), StartsWith("error: there is no command 'stpe'; did you mean 'step'?"));
    EXPECT_THAT(run("frobnicate"), StartsWith("error: there is no command 'frobnicate'; 'help' lists them"));
    EXPECT_EQ(run(""), "");
    EXPECT_EQ(run("  # a comment"), "");
}

}  // namespace
}  // namespace orrery::step
