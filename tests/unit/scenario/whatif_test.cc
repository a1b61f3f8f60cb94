// What-ifs: a recording's arrivals with the same firmware, and with another policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/records/figures.h"
#include "tools/scenario/runner.h"
#include "tools/scenario/whatif.h"

namespace orrery::scenario {
namespace {

constexpr const char* kMixed = R"(
name = "mixed"
until = "61ms"
[[card]]
vector_cores = 2
[[context]]
name = "batch"
[[context]]
name = "user"
[[semaphore]]
name = "ready"
[[queue]]
name = "bulk"
context = "batch"
priority = "low"
weight = 32
[[queue]]
name = "copies"
context = "batch"
ring = "vram"
[[queue]]
name = "screen"
context = "user"
priority = "high"
[[queue]]
name = "helper"
context = "user"
weight = 128
[[submit]]
queue = "bulk"
at = "1020us"
jobs = [{op = "kernel", groups = 8, cycles = 400000, repeat = 6}]
[[submit]]
queue = "copies"
at = "1025us"
every = "300us"
count = 8
jobs = [{op = "copy", from = "host", to = "host", bytes = "256K"}, {op = "fill", bytes = "64K", ordered = true}]
[[submit]]
queue = "screen"
at = "1600us"
every = "1ms"
count = 6
jobs = [{op = "kernel", groups = 2, cycles = 30000}, {op = "timestamp"}]
[[submit]]
queue = "helper"
at = "1030us"
jobs = [{op = "wait", semaphore = "ready", value = 1}, {op = "kernel", groups = 4, cycles = 100000, repeat = 5},
  {op = "barrier"}, {op = "nop"}]
[[submit]]
queue = "copies"
at = "4ms"
jobs = [{op = "signal", semaphore = "ready", value = 1}]
[[action]]
at = "5ms"
do = "set_queue"
queue = "helper"
weight = 256
)";

class WhatIfTest : public testing::Test {
  protected:
    WhatIfTest()
        : file_(std::filesystem::temp_directory_path() /
                ("orrery-whatif-" + std::to_string(::getpid()) + ".otrace")) {
        const auto scenario = Scenario::parse(kMixed, "mixed.toml");
        EXPECT_TRUE(scenario) << scenario.error();
        Options options;
        options.record = {file_.string()};
        options.keep_history = true;
        auto result = run(*scenario, options);
        EXPECT_TRUE(result) << result.error();
        EXPECT_TRUE(result->done);
        original_ = *std::move(result);
        scenario_ = *scenario;
    }
    ~WhatIfTest() override { std::filesystem::remove(file_); }

    WhatIf ask(const WhatIfOptions& options) {
        auto asked = what_if(file_.string(), options);
        EXPECT_TRUE(asked) << asked.error();
        return asked ? *std::move(asked) : WhatIf{};
    }

    std::filesystem::path file_;
    Scenario scenario_;
    Result original_;
};

TEST_F(WhatIfTest, TakesTheArrivalsFromTheRecording) {
    const WhatIf same = ask({});
    ASSERT_EQ(same.scenario.queues.size(), 4u);
    EXPECT_EQ(same.scenario.queues[2].name, "screen");
    EXPECT_EQ(same.scenario.queues[2].priority, ORR_PRIORITY_HIGH);
    EXPECT_EQ(same.scenario.queues[0].weight, 32u);
    EXPECT_FALSE(same.scenario.queues[0].ring_in_vram);
    EXPECT_TRUE(same.scenario.queues[1].ring_in_vram);
    ASSERT_EQ(same.scenario.submits.size(), scenario_.submits.size());
    EXPECT_EQ(same.scenario.submits[0].at, 20 * kUs);
    EXPECT_EQ(same.scenario.submits[0].jobs.size(), 6u);
    EXPECT_EQ(same.scenario.submits[0].jobs[0].groups, 8u);
    EXPECT_NEAR(static_cast<double>(same.scenario.submits[0].jobs[0].cycles), 400'000, 2);
    ASSERT_EQ(same.scenario.actions.size(), 1u);
    EXPECT_EQ(same.scenario.actions[0].weight, 256u);
    EXPECT_NEAR(static_cast<double>(same.scenario.actions[0].at), 4e9, 1e6);
    EXPECT_EQ(same.before.figures.jobs, 6u + 16 + 6 + 5);
    // The same figures, whoever heard the records: what ran, or what was recorded.
    const records::History heard(original_.history[0]);
    EXPECT_EQ(records::to_json(heard, records::statistics(heard, original_.start + original_.end)),
              records::to_json(*same.before.history, same.before.figures));
}

TEST_F(WhatIfTest, TheSameFirmwareDecidesTheSame) {
    const WhatIf same = ask({});
    EXPECT_GT(same.before.decisions.size(), 20u);
    EXPECT_FALSE(same.first_different) << to_text(same);
    EXPECT_EQ(same.after.figures.jobs, same.before.figures.jobs);
    EXPECT_NEAR(static_cast<double>(same.after.figures.makespan()),
                static_cast<double>(same.before.figures.makespan()), 1e6);
    // Decisions have their recording's numbers, and its times.
    EXPECT_EQ(same.later_ps, 0);
    for (std::size_t n = 0; n < same.before.decisions.size(); ++n) {
        const EngineDecision &was = same.before.decisions[n], &is = same.after.decisions[n];
        EXPECT_EQ(was.record, &same.before.history->records()[same.before.history->decisions()[was.number]]);
        EXPECT_EQ(is.number, was.number);
        EXPECT_NEAR(static_cast<double>(is.record->time), static_cast<double>(was.record->time), 1e6);
    }
}

// Of other programs' kernels only the time is known: close, not the same.
TEST_F(WhatIfTest, KernelsOfOthersAreKnownByTheirTime) {
    Options options;
    options.record = {file_.string()};
    options.program = "another";
    ASSERT_TRUE(run(scenario_, options));
    const WhatIf same = ask({});
    EXPECT_THAT(same.notes, testing::Contains(testing::HasSubstr("preempted kernels")));
    const records::Statistics &was = same.before.figures, &is = same.after.figures;
    EXPECT_EQ(is.jobs, was.jobs);
    EXPECT_NEAR(static_cast<double>(same.scenario.submits[0].jobs[0].cycles), 400'000, 4'000);
    EXPECT_NEAR(static_cast<double>(is.makespan()) / static_cast<double>(was.makespan()), 1, 0.05);
    EXPECT_NEAR(static_cast<double>(is.waiting.mean) / static_cast<double>(was.waiting.mean), 1, 0.1);
}

TEST_F(WhatIfTest, WithoutPrioritiesTheScreenWaits) {
    const WhatIf flat = ask({.firmware = {},
                             .policy = {{"flags", ORR_POLICY_F_NO_PRIORITIES | ORR_POLICY_F_NO_PREEMPTION}},
                             .record = {}});
    ASSERT_TRUE(flat.first_different) << to_text(flat);
    EXPECT_GT(flat.after.queue(2).waiting.max, 2 * flat.before.queue(2).waiting.max) << to_text(flat);
    EXPECT_EQ(flat.after.figures.preemptions, 0u);
    const auto json = to_json(flat);
    EXPECT_EQ(json["first_different"]["same_before"], *flat.first_different);
    EXPECT_EQ(json["first_different"]["recorded"]["number"],
              flat.before.decisions[*flat.first_different].number);
    EXPECT_THAT(to_text(flat), testing::HasSubstr("are the same, then:"));
}

// The same decisions and figures, whether a policy's number is changed in the image of the recording or in
// one that comes from a file; and others than those of the recording.
TEST_F(WhatIfTest, AnotherImageIsComparedAsAnotherPolicyIs) {
    Image other = Image::built();
    ASSERT_TRUE(other.set_policy("flags", ORR_POLICY_F_NO_PRIORITIES));
    const std::filesystem::path image = file_.string() + ".bin";
    const auto bytes = other.signed_image();
    std::ofstream(image, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const WhatIf by_image = ask({.firmware = image.string(), .policy = {}, .record = {}});
    std::filesystem::remove(image);
    const WhatIf by_policy =
        ask({.firmware = {}, .policy = {{"flags", ORR_POLICY_F_NO_PRIORITIES}}, .record = {}});
    ASSERT_TRUE(by_image.first_different);
    EXPECT_EQ(by_image.first_different, by_policy.first_different);
    const auto &by_image_decided = by_image.after.decisions, &by_policy_decided = by_policy.after.decisions;
    ASSERT_EQ(by_image_decided.size(), by_policy_decided.size());
    for (std::size_t n = 0; n < by_image_decided.size(); ++n)
        EXPECT_TRUE(by_image_decided[n].same_choice(by_policy_decided[n])) << n;
    const auto json = to_json(by_image);
    EXPECT_EQ(json["what_if"], to_json(by_policy)["what_if"]);
    for (const char* figure : {"makespan_ps", "waiting", "fairness"}) {
        ASSERT_TRUE(json["recorded"].contains(figure)) << json["recorded"].dump();
        ASSERT_TRUE(json["what_if"].contains(figure)) << json["what_if"].dump();
    }
    EXPECT_NE(json["recorded"]["waiting"]["mean_ps"], json["what_if"]["waiting"]["mean_ps"]);
    EXPECT_EQ(json["engine_decisions"]["what_if"], by_image_decided.size());
}

// Two equal users, one of whom has eight times the weight of the other, on a card that is never idle. The
// figures of both sides must say what the weights did.
TEST_F(WhatIfTest, FairnessAndMakespanAreComparedToo) {
    Scenario scenario;
    scenario.name = "two users";
    scenario.until = 12 * kMs;
    scenario.cards[0].sku.vector_ports = 1;
    scenario.cards[0].sku.vector_cores = 1;
    scenario.contexts.push_back({"c", 0, 0, 0});
    Job job;
    job.op = Op::kKernel;
    job.cycles = 50'000;
    for (const std::uint32_t weight : {64u, 512u}) {
        Queue queue;
        queue.name = std::to_string(weight);
        queue.weight = weight;
        scenario.queues.push_back(queue);
        scenario.submits.push_back(
            {10 * kUs, static_cast<std::uint32_t>(scenario.queues.size() - 1), std::vector<Job>(400, job)});
    }
    Options options;
    options.record = {file_.string()};
    ASSERT_TRUE(run(scenario, options));
    const WhatIf flat = ask({.firmware = {}, .policy = {{"flags", ORR_POLICY_F_NO_WEIGHTS}}, .record = {}});
    ASSERT_TRUE(flat.first_different);
    // Of engine time for its weight, as the figure counts it: fair at first, and then not.
    EXPECT_GT(flat.before.figures.fairness, 0.99) << to_text(flat);
    EXPECT_LT(flat.after.figures.fairness, 0.8) << to_text(flat);
    EXPECT_NEAR(flat.before.queue(1).share, 8.0 / 9, 0.02);
    EXPECT_NEAR(flat.after.queue(1).share, 0.5, 0.02);
    EXPECT_LT(flat.after.queue(0).waiting.mean, flat.before.queue(0).waiting.mean);
    // Neither came to an end in its time: nobody won.
    EXPECT_FALSE(flat.before.figures.done);
    EXPECT_FALSE(flat.after.figures.done);
    EXPECT_THAT(to_text(flat), testing::ContainsRegex("makespan +> 11\\.[0-9]+ ms +> [0-9.]+ ms +\\?"));
    EXPECT_TRUE(to_json(flat)["what_if"]["makespan_ps"].is_null());
}

// A slice that never ends starves the screen of its engine: that is no shorter makespan.
TEST_F(WhatIfTest, OneThatDoesNotEndWinsNothing) {
    Scenario scenario = scenario_;
    scenario.cards[0].sku.vector_ports = 1;
    scenario.until = 20 * kMs;
    scenario.submits[0].jobs[0].cycles = 1'000'000'000;
    scenario.queues[0].limit_us = 10'000'000;
    Options options;
    options.record = {file_.string()};
    ASSERT_TRUE(run(scenario, options));
    const WhatIf stuck =
        ask({.firmware = {}, .policy = {{"flags", ORR_POLICY_F_NO_PREEMPTION}}, .record = {}});
    EXPECT_FALSE(stuck.after.figures.done);
    const std::string text = to_text(stuck);
    EXPECT_THAT(text, testing::HasSubstr("NOT DONE: the what-if ended at"));
    EXPECT_THAT(text, testing::ContainsRegex("makespan .*> [0-9.]+ ms +\\?"));
    const std::string line = text.substr(text.find("makespan"));
    EXPECT_THAT(line.substr(0, line.find('\n')), testing::Not(testing::HasSubstr("%")));
    EXPECT_THAT(text, testing::HasSubstr("not done"));
}

TEST_F(WhatIfTest, RecordsWhatItPlayed) {
    const std::string played = file_.string() + ".played";
    const WhatIf flat = ask({.firmware = {}, .policy = {{"slice_us", 50}}, .record = played});
    const auto again = what_if(played, {});
    std::filesystem::remove(played);
    ASSERT_TRUE(again) << again.error();
    EXPECT_FALSE(again->first_different);
    EXPECT_EQ(to_json(*again)["recorded"], to_json(flat)["what_if"]);
}

TEST(Policies, HaveFlagsByName) {
    const auto flags = parse_policy({"flags=no_weights,no_preemption", "slice_us=0x20"});
    ASSERT_TRUE(flags) << flags.error().text;
    EXPECT_EQ((*flags)[0].second, ORR_POLICY_F_NO_WEIGHTS | ORR_POLICY_F_NO_PREEMPTION);
    EXPECT_EQ((*flags)[1].second, 32u);
    EXPECT_EQ(parse_policy({"flags=4"})->front().second, 4u);
    EXPECT_EQ(parse_policy({"flags=none"})->front().second, 0u);
    const auto wrong = parse_policy({"flags=no_wait"});
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().text,
                testing::HasSubstr("'no_wait'; there are no_weights, no_priorities, no_preemption, none"));
    EXPECT_FALSE(parse_policy({"slice_us=no_weights"}));
    EXPECT_FALSE(parse_policy({"slice_us"}));
}

TEST_F(WhatIfTest, SaysWhatItCannotDo) {
    const auto no_name = what_if(file_.string(), {.firmware = {}, .policy = {{"slices", 3}}, .record = {}});
    ASSERT_FALSE(no_name);
    EXPECT_THAT(no_name.error(), testing::HasSubstr("there are flags, slice_us"));
    EXPECT_FALSE(what_if("/nowhere.otrace", {}));
    const auto no_firmware =
        what_if(file_.string(), {.firmware = "/etc/hostname", .policy = {}, .record = {}});
    ASSERT_FALSE(no_firmware);
    EXPECT_THAT(no_firmware.error(), testing::HasSubstr("neither a firmware image nor an ELF"));
}

}  // namespace
}  // namespace orrery::scenario
