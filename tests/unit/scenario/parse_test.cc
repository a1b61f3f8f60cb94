// Scenario files: what is read, and what people are told about what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/scenario/scenario.h"

namespace orrery::scenario {
namespace {

constexpr const char* kHead = "name = \"t\"\nuntil = \"2ms\"\n[[context]]\nname = \"c\"\n";

std::string error_of(const std::string& text) {
    const auto made = Scenario::parse(text, "t.toml");
    return made ? "" : made.error();
}

TEST(ScenarioFile, ReadsWhatItSays) {
    const auto made = Scenario::parse(std::string(kHead) + R"(
[[semaphore]]
name = "s"
[[queue]]
name = "q"
context = "c"
count = 3
priority = "high"
weight = 7
slice = "200us"
ring = "vram"
[[submit]]
queue = "q"
at = "1001.5us"
every = "10us"
count = 2
jobs = [
  {op = "kernel", groups = 4, cycles = 500, repeat = 2},
  {op = "copy", from = "host", bytes = "64K", ordered = true},
  {op = "signal", semaphore = "s", value = 3},
]
[[action]]
at = "1005us"
do = "set_queue"
queue = "q1"
weight = 9
)",
                                      "t.toml");
    ASSERT_TRUE(made) << made.error();
    ASSERT_EQ(made->queues.size(), 3u);
    EXPECT_EQ(made->queues[2].name, "q2");
    EXPECT_EQ(made->queues[2].priority, ORR_PRIORITY_HIGH);
    EXPECT_EQ(made->queues[2].slice_us, 200u);
    EXPECT_TRUE(made->queues[2].ring_in_vram);
    ASSERT_EQ(made->submits.size(), 6u);  // two rings of each of the three
    EXPECT_EQ(made->submits[0].at, 1'500'000u);
    EXPECT_EQ(made->submits[5].at, 11'500'000u);
    EXPECT_EQ(made->submits[5].queue, 2u);
    const auto& jobs = made->submits[0].jobs;
    ASSERT_EQ(jobs.size(), 4u);
    EXPECT_EQ(jobs[1], jobs[0]);
    EXPECT_EQ(jobs[2].from.kind, Place::Kind::kHost);
    EXPECT_EQ(jobs[2].bytes, 65536u);
    EXPECT_TRUE(jobs[2].ordered);
    EXPECT_EQ(jobs[3].value, 3u);
    ASSERT_EQ(made->actions.size(), 1u);
    EXPECT_EQ(made->actions[0].queue, 1u);
    EXPECT_EQ(made->actions[0].weight, 9u);
}

TEST(ScenarioFile, IsWrittenSoThatItReadsTheSame) {
    const auto made = Scenario::parse(std::string(kHead) + R"(
[[semaphore]]
name = "s"
[[gang]]
name = "g"
members = [2]
[[queue]]
name = "q"
context = "c"
limit = "3ms"
[[submit]]
queue = "q"
at = "1001us"
jobs = [{op = "nop", repeat = 3}, {op = "wait", semaphore = "s", value = 1}, {op = "gang", gang = "g"},
  {op = "kernel", resident = true}, {op = "fill", bytes = 100}, {op = "malformed"}, {op = "barrier"}, {op = "timestamp"}]
[[action]]
at = "1002us"
do = "poke"
semaphore = "s"
value = 1
[[action]]
at = "1003us"
do = "crash"
queue = "q"
)",
                                      "t.toml");
    ASSERT_TRUE(made) << made.error();
    const std::string text = made->to_toml();
    const auto again = Scenario::parse(text, "again.toml");
    ASSERT_TRUE(again) << again.error() << "\n" << text;
    EXPECT_EQ(again->to_toml(), text);
    ASSERT_EQ(again->submits.size(), 1u);
    EXPECT_EQ(again->submits[0].jobs, made->submits[0].jobs);
}

TEST(ScenarioFile, NamesTheLineAndWhatToDo) {
    const std::string head = kHead;
    EXPECT_EQ(error_of("name = "), "t.toml:1: Error while parsing key-value pair: encountered end-of-file");
    EXPECT_THAT(error_of("name = \"t\""), testing::HasSubstr("scenario.until: is missing"));
    EXPECT_EQ(
        error_of(head + "[[queue]]\nname = \"q\"\ncontext = \"d\"\n"),
        "t.toml:7: queue.context: there is no context 'd': make one with [[context]] and that name above");
    EXPECT_THAT(error_of(head + "[[queue]]\nname = \"q\"\ncontext = \"c\"\nprio = \"low\"\n"),
                testing::StartsWith("t.toml:8: queue: 'prio' is no key here; there are context, count"));
    EXPECT_THAT(error_of(head + "[[queue]]\nname = \"q\"\ncontext = \"c\"\npriority = \"urgent\"\n"),
                testing::EndsWith("'urgent' is none of \"low\", \"normal\", \"high\", \"realtime\""));
    EXPECT_THAT(error_of(head + "[[queue]]\nname = \"q\"\ncontext = \"c\"\nweight = 0\n"),
                testing::EndsWith("must be a whole number from 1 to 1024"));
    const std::string queue = head + "[[queue]]\nname = \"q\"\ncontext = \"c\"\n[[submit]]\nqueue = \"q\"\n";
    EXPECT_THAT(error_of(queue + "at = \"5 min\"\njobs = []\n"), testing::HasSubstr("is no time"));
    EXPECT_THAT(error_of(queue + "jobs = [{op = \"kernel\", grups = 3}]\n"),
                testing::StartsWith("t.toml:10: job: 'grups' is no key here"));
    EXPECT_THAT(error_of(queue + "jobs = [{op = \"copy\", to = \"card1\", bytes = 1}]\n"),
                testing::HasSubstr("none of \"vram\", \"host\""));
    EXPECT_THAT(error_of(head + "[queue]\nname = \"q\"\n"), testing::HasSubstr("two brackets"));
}

TEST(ScenarioFile, RefusesAWaitForAnotherCardsSemaphore) {
    EXPECT_THAT(
        error_of("name = \"t\"\nuntil = \"2ms\"\n[[card]]\n[[card]]\n[[context]]\nname = \"c\"\n"
                 "[[semaphore]]\nname = \"s\"\ncard = 1\n[[queue]]\nname = \"q\"\ncontext = \"c\"\n"
                 "[[submit]]\nqueue = \"q\"\njobs = [{op = \"wait\", semaphore = \"s\", value = 1}]\n"),
        testing::HasSubstr("its own card only"));
}

TEST(ScenarioFile, KnowsTimes) {
    EXPECT_EQ(parse_time("1.5ms"), 1'500'000'000u);
    EXPECT_EQ(parse_time("3s"), 3'000'000'000'000u);
    EXPECT_EQ(parse_time("7ps"), 7u);
    for (const char* bad : {"", "5", "ms", "-1us", "1 us", "1h", "1e30s"})
        EXPECT_FALSE(parse_time(bad)) << bad;
    EXPECT_EQ(time_text(1'500'000'000), "1500us");
    EXPECT_EQ(time_text(1), "1ps");
}

}  // namespace
}  // namespace orrery::scenario
