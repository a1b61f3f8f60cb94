// Scenarios on real cards with the real firmware.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <orrery/fw/queue.h>

#include "tools/records/statistics.h"
#include "tools/scenario/report.h"
#include "tools/scenario/runner.h"

namespace orrery::scenario {
namespace {

Scenario parse(const std::string& text) {
    auto made = Scenario::parse(text, "test.toml");
    EXPECT_TRUE(made) << made.error();
    return made ? *made : Scenario{};
}

Result play(const Scenario& scenario) {
    Options options;
    options.keep_history = true;
    auto result = run(scenario, options);
    EXPECT_TRUE(result) << result.error();
    return result ? *std::move(result) : Result{};
}

constexpr const char* kOneCard = R"(
name = "one"
until = "21ms"
[[context]]
name = "c"
[[semaphore]]
name = "s"
[[queue]]
name = "a"
context = "c"
[[queue]]
name = "b"
context = "c"
ring = "vram"
[[submit]]
queue = "a"
at = "1010us"
every = "100us"
count = 5
jobs = [{op = "kernel", groups = 8, cycles = 20000}, {op = "copy", from = "host", bytes = "64K"}]
[[submit]]
queue = "b"
at = "1015us"
jobs = [{op = "wait", semaphore = "s", value = 1}, {op = "kernel", groups = 16, cycles = 10000, repeat = 4}]
[[submit]]
queue = "a"
at = "2ms"
jobs = [{op = "signal", semaphore = "s", value = 1}, {op = "timestamp"}]
)";

constexpr const char* kTwoCards = R"(
name = "two"
until = "21ms"
[[card]]
[[card]]
[[context]]
name = "c0"
[[context]]
name = "c1"
card = 1
[[semaphore]]
name = "s0"
[[semaphore]]
name = "s1"
card = 1
[[queue]]
name = "a"
context = "c0"
[[queue]]
name = "b"
context = "c1"
[[submit]]
queue = "a"
at = "1010us"
jobs = [{op = "kernel", groups = 8, cycles = 5000}, {op = "copy", bytes = "5M", to = "card1", ordered = true},
  {op = "signal", semaphore = "s1", value = 1}, {op = "wait", semaphore = "s0", value = 1}, {op = "nop"}]
[[submit]]
queue = "b"
at = "1015us"
jobs = [{op = "wait", semaphore = "s1", value = 1}, {op = "kernel", groups = 16, cycles = 1000},
  {op = "signal", semaphore = "s0", value = 1}]
)";

TEST(ScenarioRun, DoesAllThatItWasAsked) {
    const Scenario scenario = parse(kOneCard);
    const Result result = play(scenario);
    EXPECT_TRUE(result.done);
    ASSERT_EQ(result.jobs.size(), 17u);
    for (const JobResult& job : result.jobs) {
        EXPECT_NE(job.submitted, kUnknown);
        EXPECT_NE(job.finished, kUnknown) << job.queue << "/" << job.index;
        EXPECT_GT(job.finished, job.submitted);
    }
    EXPECT_EQ(result.jobs[0].submitted, 10 * kUs);
    EXPECT_EQ(result.jobs[2].submitted, 110 * kUs);
    // Queue b goes on at the signal of a, and not before.
    EXPECT_GT(result.jobs[12].finished, kMs);
    EXPECT_EQ(result.counter(0, ORR_CTR_VECTOR_GROUPS), 5u * 8 + 4 * 16);
    EXPECT_EQ(result.counter(0, ORR_CTR_COPY_BYTES), 5u * 65536);
    EXPECT_EQ(result.counter(0, ORR_CTR_GUEST_ERRORS), 0u);
    EXPECT_THAT(result.log, testing::IsEmpty());
    EXPECT_EQ(result.queues[0].completed, 12u);
    // 20,000 cycles at 1 GHz on each of eight cores.
    EXPECT_NEAR(static_cast<double>(result.counter(0, ORR_CTR_VECTOR_BUSY_PS)),
                (5 * 8 * 20000 + 4 * 16 * 10000) * 1e3, 2e6);
}

TEST(ScenarioRun, TwoRunsAreOne) {
    for (const char* text : {kOneCard, kTwoCards}) {
        const Scenario scenario = parse(text);
        EXPECT_EQ(to_json(scenario, play(scenario)).dump(), to_json(scenario, play(scenario)).dump());
    }
}

TEST(ScenarioRun, CardsMeetOverTheirLink) {
    const Scenario scenario = parse(kTwoCards);
    const Result result = play(scenario);
    EXPECT_TRUE(result.done);
    EXPECT_EQ(result.counter(0, ORR_CTR_LINK_TX_BYTES), (5u << 20) + 16);
    EXPECT_EQ(result.counter(1, ORR_CTR_LINK_RX_BYTES), (5u << 20) + 16);
    for (std::uint32_t card = 0; card < 2; ++card) {
        EXPECT_EQ(result.counter(card, ORR_CTR_LINK_STRAGGLERS), 0u);
        EXPECT_EQ(result.counter(card, ORR_CTR_LINK_DENIED), 0u);
    }
    // 5 MiB at 50 GB/s, and there and back over the link.
    EXPECT_GT(result.jobs[6].finished, 10 * kUs + 104 * kUs);
    EXPECT_GT(result.jobs[4].finished, result.jobs[7].finished);
}

TEST(ScenarioRun, TellsWhatWentWrongAndWhere) {
    const Scenario scenario = parse(R"(
name = "bad"
until = "6ms"
[[context]]
name = "c"
[[queue]]
name = "bad"
context = "c"
[[queue]]
name = "trap"
context = "c"
[[queue]]
name = "good"
context = "c"
[[submit]]
queue = "bad"
at = "1010us"
jobs = [{op = "nop"}, {op = "malformed"}]
[[submit]]
queue = "trap"
at = "1010us"
jobs = [{op = "kernel", traps = true}]
[[submit]]
queue = "good"
at = "1020us"
jobs = [{op = "nop"}]
)");
    const Result result = play(scenario);
    EXPECT_TRUE(result.done);
    EXPECT_EQ(result.queues[0].error, ORR_QERR_BAD_OPCODE);
    EXPECT_EQ(result.queues[0].error_index, 1u);
    EXPECT_EQ(result.queues[1].error, ORR_QERR_KERNEL_TRAP);
    EXPECT_EQ(result.queues[2].error, 0u);
    EXPECT_EQ(result.queues[2].completed, 1u);
    ASSERT_EQ(result.events.size(), 2u);
    EXPECT_EQ(result.events[0].message.opcode, ORR_EVENT_QUEUE_ERROR);
}

TEST(ScenarioRun, EndsWhenItsTimeIsOver) {
    const Scenario scenario = parse(R"(
name = "wait"
until = "4ms"
[[context]]
name = "c"
[[semaphore]]
name = "s"
[[queue]]
name = "q"
context = "c"
[[submit]]
queue = "q"
jobs = [{op = "wait", semaphore = "s", value = 5}]
)");
    const Result result = play(scenario);
    EXPECT_FALSE(result.done);
    EXPECT_LE(result.end, 3 * kMs);
    EXPECT_EQ(result.jobs[0].finished, kUnknown);
}

TEST(ScenarioRun, APokeWakes) {
    const Scenario scenario = parse(R"(
name = "poke"
until = "4ms"
[[context]]
name = "c"
[[semaphore]]
name = "s"
[[queue]]
name = "q"
context = "c"
[[submit]]
queue = "q"
jobs = [{op = "wait", semaphore = "s", value = 5}]
[[action]]
at = "2ms"
do = "poke"
semaphore = "s"
value = 5
)");
    const Result result = play(scenario);
    EXPECT_TRUE(result.done);
    EXPECT_GT(result.jobs[0].finished, kMs);
    EXPECT_LT(result.jobs[0].finished, kMs + 50 * kUs);
}

TEST(ScenarioRun, AnImageThatIsNoneIsRefused) {
    Options options;
    options.image = Image();
    EXPECT_FALSE(Image::from_bytes({1, 2, 3}, "x"));
    auto elf = Image::built().elf();
    ASSERT_FALSE(elf.empty());
    auto other = elf;
    other[18] = 0;  // another machine
    EXPECT_FALSE(Image::from_bytes(other, "other machine"));
    elf[16] = 1;  // not an executable: for the card's ROM to see
    auto image = Image::from_bytes(elf, "no executable");
    ASSERT_TRUE(image);
    options.image = *image;
    const auto result = run(parse(kOneCard), options);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error(), testing::HasSubstr("boot status 11"));
}

TEST(Fairness, IsOneForEqualsAndOneNthForOne) {
    EXPECT_DOUBLE_EQ(records::jain(std::vector<double>{5, 5, 5, 5}), 1);
    EXPECT_DOUBLE_EQ(records::jain(std::vector<double>{7, 0, 0, 0}), 0.25);
    EXPECT_DOUBLE_EQ(records::jain({}), 1);
}

}  // namespace
}  // namespace orrery::scenario
