// What the commands show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/step/story.h"
#include "tools/step/commands/commands.h"
#include "tools/step/commands/completion.h"

namespace orrery::step {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Commands : public ::testing::Test {
  protected:
    std::string run(std::string_view line) { return step::run(*debugger, line); }
    Json data(std::string_view line) { return debugger->execute(line).value().data; }
    std::unique_ptr<Debugger> debugger = debug(three_queues());
};

TEST_F(Commands, WhyShowsCandidatesAndReasons) {
    EXPECT_EQ(run("why 1"),
              R"(decision 1 at 40.004 us (step 71): a vector port goes to queue 2 "batch", packet 0
rule share: it has used the least for its weight of 2 in class normal (vtime 3.000 us)
      queue  name   packet  class   weight      vtime  state              for  why
  =>      2  batch       0  normal     128   3.000 us  vector_port  19.999 us  chosen
          1  train       0  normal      64  28.000 us  vector_port  18.999 us  has used more for its weight: vtime 28.000 us against 3.000 us
no candidates: 1 idle
)");
}

TEST_F(Commands, WhyNamesTheVictimOfAPreemption) {
    const std::string text = run("why 2");
    EXPECT_THAT(text, HasSubstr("rule preempt: class high takes the port of a lower class: queue 1 "
                                "\"train\", packet 1, on port 2, at the next "
                                "work-group border\n"));
    EXPECT_THAT(text,
                HasSubstr("class normal is below high, and its bound on waiting has not come (29.003 us)\n"));
}

TEST_F(Commands, WhyTakesTheDecisionHereOrBefore) {
    EXPECT_THAT(run("why"), HasSubstr("no decision has been taken"));
    run("step decision");
    EXPECT_THAT(run("why"), StartsWith("decision 0 "));
    run("goto decision 2");
    EXPECT_THAT(run("why"), StartsWith("decision 2 "));
    const std::uint64_t here = debugger->session().position();
    run("back insn");
    EXPECT_THAT(run("why"), StartsWith("decision 1 "));
    EXPECT_EQ(debugger->session().position(), here - 1);
    const Json why = data("why 3");
    EXPECT_EQ(why["rule"], "resume");
    EXPECT_EQ(why["queue"], 1);
    EXPECT_EQ(why["candidates"].size(), 1u);
    EXPECT_EQ(why["candidates"][0]["state"], "suspended");
    EXPECT_THAT(run("why 4"), StartsWith("error: there is no decision 4"));
}

TEST_F(Commands, QueuesAlignsItsTable) {
    run("goto decision 1");
    EXPECT_EQ(
        run("queues"),
        R"(queue  name   ctx  class   weight  state              for  written  next  done  flying      vtime  used  slot  error
    0  ui       0  high        64  idle                 -        0     0     0       0          0     0     -
    1  train    0  normal      64  vector_port  18.997 us        3     0     0       0  28.000 us     0     -
    2  batch    0  normal     128  vector_port  19.997 us        1     0     0       0   3.000 us     0     -
)");
    EXPECT_EQ(data("queues")["queues"][2]["class"], "normal");
    run("goto end");
    EXPECT_THAT(run("queues"), HasSubstr("TIMEOUT"));
}

TEST_F(Commands, EnginesAndContexts) {
    run("goto decision 2");
    EXPECT_EQ(run("engines"), R"(port  kind    state  queue            packet        for  limit in
   0  copy    free
   1  vector  busy   queue 2 "batch"       0  10.000 us         -
   2  vector  busy   queue 1 "train"       1  38.000 us         -
)");
    EXPECT_EQ(run("contexts"),
              "context  name  queues  quota  used in the period  state\n"
              "      0             3  none                    -\n");
}

TEST_F(Commands, TimelineDrawsEnginesCoreAndQueues) {
    EXPECT_EQ(run("timeline"),
              R"(                  |10.001 us                                                80.006 us|
copy 0            |..................................................................|
vector 1          |.11111111111111111111111111122222222222222222222..................|
vector 2          |.11111111111111111111111111111111111111100111111111111111111111111|
core              |11................................................................|
0 queue 0 "ui"    |.....................................eee###.......................|
1 queue 1 "train" |tt#####################################ssss#######################|
2 queue 2 "batch" |.........eeeeeeeeeeeeeeeeeee####################..................|
a column is 1.061 us; engines and core: the queue they work for
queues: # on an engine, t turn, e waits for an engine, s preempted, . idle
)");
    EXPECT_EQ(data("timeline 40us 60us")["from_ps"], 40 * kUs);
    EXPECT_THAT(run("timeline 60us 40us"), StartsWith("error: the time line would end at 40.000 us"));
    EXPECT_THAT(run("timeline soon"), StartsWith("error: 'soon' is no moment"));
}

TEST_F(Commands, SummaryCountsTimesAndShares) {
    const Json s = data("summary");
    EXPECT_EQ(s["jobs"], 4);
    EXPECT_EQ(s["preemptions"], 1);
    EXPECT_EQ(s["makespan_ps"], 80 * kUs + 0u - 10 * kUs - 0u);
    const Json& train = s["queues"][1];
    EXPECT_EQ(train["engine_ps"], (28 + 40 + 25) * kUs);
    EXPECT_EQ(train["latency"]["max_ps"], 70 * kUs);
    EXPECT_EQ(train["error"], "TIMEOUT");
    // Jain: (3/64 + 93/64 + 20/128)^2 / (3 * (3/64)^2 + ...)
    EXPECT_NEAR(s["fairness"], 0.4276, 0.0001);
    EXPECT_THAT(
        run("summary"),
        HasSubstr("queue 1 \"train\"  normal      64     2    93.000 us  80.2 %          1  TIMEOUT\n"));
}

TEST_F(Commands, WaitsFindTheCycleAndTheSignaller) {
    debugger = debug(deadlock());
    run("goto 25us");
    EXPECT_EQ(run("waits"), R"(   queue               waits for         is        for  signal comes from
*  queue 0 "left"      semaphore 1 >= 1   0  10.001 us  queue 1 "right", says the firmware
*  queue 1 "right"     semaphore 2 >= 1   0   9.998 us  queue 0 "left", says the firmware
   queue 2 "consumer"  semaphore 0 >= 7   6   9.995 us  queue 3 "producer", at 30.001 us
* deadlock: queue 0 "left" -> queue 1 "right" -> queue 0 "left"
)");
    const Json waits = data("waits");
    EXPECT_EQ(waits["cycles"], Json::parse("[[0,1]]"));
    EXPECT_EQ(waits["waits"][2]["signal_from"], 3);
    run("goto event 3");
    EXPECT_EQ(run("waits"), "no queue waits for a semaphore\n");
}

TEST_F(Commands, PrintShowsRowsAndValues) {
    run("goto decision 1");
    EXPECT_THAT(run("print queue[1]"), HasSubstr("  vtime           28.000 us\n"));
    EXPECT_EQ(data("print queue[1]")["vtime"], 28 * kUs);
    EXPECT_EQ(run("print /x 255 + 1"), "255 + 1 = 0x100\n");
    EXPECT_EQ(data("print 3 - 5")["value"], -2);
    EXPECT_EQ(run("p queue[1].lag"), "queue[1].lag = 0\n");
    EXPECT_THAT(run("print"), StartsWith("error: print what?"));
    EXPECT_THAT(run("print queue[99]"), StartsWith("error: queue[99]: the table has rows 0 to 15"));
}

TEST_F(Commands, EventsMarkThePosition) {
    run("goto decision 0");
    EXPECT_THAT(run("events 4"),
                HasSubstr("\n=>     10  10.005 us  decision  the core's turn goes to queue 1 "
                          "\"train\", packet 0 (only of 1 candidate)\n"));
}

TEST_F(Commands, EveryCommandHasHelpAndSurvivesItsOwnName) {
    for (const Command& command : commands()) {
        EXPECT_THAT(run(fmt::format("help {}", command.name)), StartsWith(std::string(command.name)));
        EXPECT_FALSE(command.summary.empty());
        if (command.name != "quit") (void)debugger->execute(command.name);
    }
    EXPECT_THAT(run("help"), HasSubstr("timeline [FROM] [TO]"));
    EXPECT_THAT(run("e"), StartsWith("error: 'e' could be engines, events, enable, export"));
}

TEST_F(Commands, ShowNothingThatIsNotThere) {
    Story bare;
    bare.idle(5);
    debugger = debug(bare.finish());
    EXPECT_THAT(run("queues"), StartsWith("error: the firmware wrote no trace records"));
    EXPECT_THAT(run("why"), StartsWith("error: the recording holds no decision"));
    EXPECT_THAT(run("timeline"), StartsWith("error: "));
    EXPECT_EQ(run("step 2 insn"), "step 2  0.002 us  0x80000408\n");
    EXPECT_THAT(run("step"), StartsWith("error: there is no event behind this position"));
}

TEST_F(Commands, WithoutTablesTheRestStillWorks) {
    Story bare;
    bare.record(ORR_TRACE_START, 0, 2u << 16, {ORR_SRAM_BASE + 0x70000, 0}).idle(3);
    debugger = debug(bare.finish());
    EXPECT_THAT(run("queues"), HasSubstr("there is no description of the firmware's tables at 0x80070000"));
    EXPECT_THAT(run("print queue[0].state"), HasSubstr("does not describe its tables"));
    EXPECT_THAT(run("info"), HasSubstr("1 events, 0 decisions"));
}

TEST_F(Commands, CompletionKnowsCommandsWordsAndFields) {
    EXPECT_THAT(complete(*debugger, "sum").words, ElementsAre("summary"));
    EXPECT_THAT(complete(*debugger, "step in").words, ElementsAre("insn"));
    EXPECT_THAT(complete(*debugger, "print queue[1].vt").words, ElementsAre("queue[1].vtime"));
    EXPECT_THAT(complete(*debugger, "until decision.r").words,
                ElementsAre("decision.resource", "decision.rule"));
    EXPECT_THAT(complete(*debugger, "until queue[1].state == re").words, ElementsAre("ready"));
    EXPECT_THAT(complete(*debugger, "until decision.rule != re").words, ElementsAre("resume"));
    EXPECT_THAT(complete(*debugger, "until queue[1].state==sus").words, ElementsAre("suspended"));
    EXPECT_THAT(complete(*debugger, "goto ").words, Contains("decision"));
    EXPECT_EQ(common_beginning({"decision.resource", "decision.rule"}), "decision.r");
}

TEST(Diff, ShowsTheFirstDifferentDecisionWithBothReasons) {
    Debugger::Options options;
    options.open = [](const std::string& file) -> Result<std::unique_ptr<Session>> {
        if (file == "same") return three_queues();
        if (file == "none") return deadlock();
        Story s;
        s.at(1 * kUs).record(ORR_TRACE_START, 0, 2u << 16, {ORR_SRAM_BASE + 0x1000, 0});
        s.create(1, 0, ORR_PRIORITY_NORMAL, 64, "train").create(2, 0, ORR_PRIORITY_NORMAL, 128, "batch");
        s.at(10 * kUs).state(1, ORR_TSTATE_READY).decision(1, ORR_RULE_ONLY, ORR_RESOURCE_TURN, 1, 0);
        s.at(40 * kUs).state(1, ORR_TSTATE_VECTOR_PORT).state(2, ORR_TSTATE_VECTOR_PORT);
        s.decision(1, ORR_RULE_SHARE, ORR_RESOURCE_VECTOR, 2, 2);
        return s.finish();
    };
    auto debugger = std::move(*Debugger::make(three_queues(), std::move(options)));
    EXPECT_THAT(run(*debugger, "diff same"), HasSubstr("all 4 decisions are the same, at the same times"));
    const std::string text = run(*debugger, "diff other");
    EXPECT_THAT(text, HasSubstr("the first 1 decisions are the same; decision 1 differs"));
    EXPECT_THAT(text, HasSubstr("A:\n  decision 1 at 40.004 us (step 71): a vector port goes to queue 2 "
                                "\"batch\", packet 0\n"));
    EXPECT_THAT(text, HasSubstr("a vector port goes to queue 1 \"train\", packet 2\n"));
    EXPECT_THAT(run(*debugger, "diff other same"), HasSubstr("decision 1 differs"));
    EXPECT_EQ(run(*debugger, "diff none"), "error: story.otrace holds no decisions");
    EXPECT_THAT(run(*debugger, "diff"), StartsWith("error: diff with what?"));
}

}  // namespace
}  // namespace orrery::step
