// Cards with as many cores as a SKU may have: the save areas of the real firmware hold a group of each.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include <orrery/hw/counters.h>

#include "tools/scenario/runner.h"

namespace orrery::scenario {
namespace {

// orrery-1 with that many cores, as a file.
std::string sku_with(unsigned cores) {
    std::string text = emu::Sku::standard().text;
    const std::string old = fmt::format("\ncores = [{},", emu::Sku::standard().vector_cores);
    const auto at = text.find(old);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, old.size(), fmt::format("\ncores = [{},", cores));
    const auto file =
        std::filesystem::path(testing::TempDir()) / fmt::format("cores-{}-{}.toml", cores, ::getpid());
    std::ofstream(file) << text;
    return file.string();
}

class ManyCores : public testing::TestWithParam<unsigned> {};

// Two groups a core, and then a kernel on all cores that takes them away in the middle of the first.
TEST_P(ManyCores, AreTakenAndGivenBack) {
    const unsigned cores = GetParam();
    const std::string sku = sku_with(cores);
    const auto scenario = Scenario::parse(fmt::format(R"(
name = "many"
until = "1s"
[[card]]
sku = "{0}"
vram = "8G"
[[context]]
name = "c"
[[queue]]
name = "long"
context = "c"
priority = "low"
limit = "1s"
[[queue]]
name = "short"
context = "c"
priority = "high"
[[submit]]
queue = "long"
at = "1010us"
jobs = [{{op = "kernel", groups = {1}, cycles = 60000}}]
[[submit]]
queue = "short"
at = "1040us"
jobs = [{{op = "kernel", groups = {2}, cycles = 5000}}]
)",
                                                      sku, 2 * cores, cores),
                                          "many.toml");
    std::filesystem::remove(sku);
    ASSERT_TRUE(scenario) << scenario.error();
    ASSERT_EQ(scenario->cards[0].sku.vector_cores, cores);
    const auto result = run(*scenario, {});
    ASSERT_TRUE(result) << result.error();
    EXPECT_TRUE(result->done);
    for (const QueueResult& queue : result->queues)
        EXPECT_EQ(queue.error, 0u) << queue.name;
    const auto& counters = result->counters.at(0);
    EXPECT_EQ(counters.at(ORR_CTR_VECTOR_GROUPS), 3u * cores);
    EXPECT_GE(counters.at(ORR_CTR_PREEMPTIONS), 1u);
    // A page of each group, its registers, at least.
    EXPECT_GE(counters.at(ORR_CTR_SAVED_BYTES), 4096u * cores);
    EXPECT_LT(result->jobs.at(1).finished, result->jobs.at(0).finished);
    // All of it is as long as the work of one core: no core stood still, none did another's work twice.
    const Ps work = (2 * 60'000 + 5'000) * (1'000'000'000'000 / scenario->cards[0].sku.vector_hz);
    EXPECT_GT(result->makespan, work);
    EXPECT_LT(result->makespan, 2 * work);
}

INSTANTIATE_TEST_SUITE_P(Sku, ManyCores, testing::Values(64u, 256u),
                         [](const auto& test) { return fmt::format("{}", test.param); });

}  // namespace
}  // namespace orrery::scenario
