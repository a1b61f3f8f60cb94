// What-ifs: a recording's arrivals with the same firmware, and with another policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/step/scenario/whatif.h"

namespace orrery::scenario {
namespace {

constexpr const char* kMixed = R"(
name = "mixed"
until = "60ms"
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
at = "20us"
jobs = [{op = "kernel", groups = 8, cycles = 400000, repeat = 6}]
[[submit]]
queue = "copies"
at = "25us"
every = "300us"
count = 8
jobs = [{op = "copy", from = "host", to = "host", bytes = "256K"}, {op = "fill", bytes = "64K", ordered = true}]
[[submit]]
queue = "screen"
at = "600us"
every = "1ms"
count = 6
jobs = [{op = "kernel", groups = 2, cycles = 30000}, {op = "timestamp"}]
[[submit]]
queue = "helper"
at = "30us"
jobs = [{op = "wait", semaphore = "ready", value = 1}, {op = "kernel", groups = 4, cycles = 100000, repeat = 5},
  {op = "barrier"}, {op = "nop"}]
[[submit]]
queue = "copies"
at = "3ms"
jobs = [{op = "signal", semaphore = "ready", value = 1}]
[[action]]
at = "4ms"
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
    EXPECT_EQ(same.before.jobs, 6u + 16 + 6 + 5);
    EXPECT_EQ(same.before.jobs, measure(scenario_, original_).jobs);
}

TEST_F(WhatIfTest, TheSameFirmwareDecidesTheSame) {
    const WhatIf same = ask({});
    EXPECT_GT(same.decisions_before.size(), 20u);
    EXPECT_FALSE(same.first_different) << to_text(same);
    EXPECT_EQ(same.after.jobs, same.before.jobs);
    EXPECT_NEAR(static_cast<double>(same.after.makespan), static_cast<double>(same.before.makespan), 1e6);
}

// Of other programs' kernels only the time is known: close, not the same.
TEST_F(WhatIfTest, KernelsOfOthersAreKnownByTheirTime) {
    Options options;
    options.record = {file_.string()};
    options.program = "another";
    ASSERT_TRUE(run(scenario_, options));
    const WhatIf same = ask({});
    EXPECT_THAT(same.notes, testing::Contains(testing::HasSubstr("preempted kernels")));
    EXPECT_EQ(same.after.jobs, same.before.jobs);
    EXPECT_NEAR(static_cast<double>(same.scenario.submits[0].jobs[0].cycles), 400'000, 4'000);
    EXPECT_NEAR(static_cast<double>(same.after.makespan) / static_cast<double>(same.before.makespan), 1,
                0.05);
    EXPECT_NEAR(static_cast<double>(same.after.mean_wait) / static_cast<double>(same.before.mean_wait), 1,
                0.1);
}

TEST_F(WhatIfTest, WithoutPrioritiesTheScreenWaits) {
    const WhatIf flat =
        ask({.firmware = {}, .policy = {{"flags", ORR_POLICY_F_NO_PRIORITIES | ORR_POLICY_F_NO_PREEMPTION}}});
    ASSERT_TRUE(flat.first_different) << to_text(flat);
    EXPECT_GT(flat.after.queues[2].max_wait, 2 * flat.before.queues[2].max_wait) << to_text(flat);
    EXPECT_EQ(flat.after.preemptions, 0u);
    const auto json = to_json(flat);
    EXPECT_EQ(json["first_different"]["number"], *flat.first_different);
    EXPECT_THAT(to_text(flat), testing::HasSubstr("first different decision"));
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
    const WhatIf by_image = ask({.firmware = image.string(), .policy = {}});
    std::filesystem::remove(image);
    const WhatIf by_policy = ask({.firmware = {}, .policy = {{"flags", ORR_POLICY_F_NO_PRIORITIES}}});
    ASSERT_TRUE(by_image.first_different);
    EXPECT_EQ(by_image.first_different, by_policy.first_different);
    ASSERT_EQ(by_image.decisions_after.size(), by_policy.decisions_after.size());
    for (std::size_t n = 0; n < by_image.decisions_after.size(); ++n)
        EXPECT_TRUE(by_image.decisions_after[n].same_choice(by_policy.decisions_after[n])) << n;
    EXPECT_EQ(to_json(by_image.after), to_json(by_policy.after));
    const auto json = to_json(by_image);
    for (const char* figure : {"makespan_ps", "wait_ps", "fairness"}) {
        ASSERT_TRUE(json["recorded"].contains(figure)) << json["recorded"].dump();
        ASSERT_TRUE(json["what_if"].contains(figure)) << json["what_if"].dump();
    }
    EXPECT_NE(json["recorded"]["wait_ps"]["mean"], json["what_if"]["wait_ps"]["mean"]);
    EXPECT_EQ(json["decisions"]["what_if"], by_image.decisions_after.size());
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
    const WhatIf flat = ask({.firmware = {}, .policy = {{"flags", ORR_POLICY_F_NO_WEIGHTS}}});
    ASSERT_TRUE(flat.first_different);
    // Of engine time for its weight, as the figure counts it: fair at first, and then not.
    EXPECT_GT(flat.before.fairness, 0.99) << to_text(flat);
    EXPECT_LT(flat.after.fairness, 0.8) << to_text(flat);
    EXPECT_NEAR(flat.before.queues[1].share, 8.0 / 9, 0.02);
    EXPECT_NEAR(flat.after.queues[1].share, 0.5, 0.02);
    EXPECT_LT(flat.after.queues[0].mean_wait, flat.before.queues[0].mean_wait);
    // The card was busy all the time, with both.
    EXPECT_NEAR(static_cast<double>(flat.after.makespan) / static_cast<double>(flat.before.makespan), 1,
                0.01);
}

TEST_F(WhatIfTest, SaysWhatItCannotDo) {
    const auto no_name = what_if(file_.string(), {.firmware = {}, .policy = {{"slices", 3}}});
    ASSERT_FALSE(no_name);
    EXPECT_THAT(no_name.error(), testing::HasSubstr("there are flags, slice_us"));
    EXPECT_FALSE(what_if("/nowhere.otrace", {}));
    const auto no_firmware = what_if(file_.string(), {.firmware = "/etc/hostname", .policy = {}});
    ASSERT_FALSE(no_firmware);
    EXPECT_THAT(no_firmware.error(), testing::HasSubstr("neither a firmware image nor an ELF"));
}

}  // namespace
}  // namespace orrery::scenario
