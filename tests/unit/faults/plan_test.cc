// The text of a fault plan: what it means, and what is refused with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "emulator/faults/plan.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

FaultPlan good(std::string_view text) {
    auto plan = FaultPlan::parse(text);
    EXPECT_TRUE(plan) << (plan ? "" : plan.error());
    return plan.value_or(FaultPlan{});
}

TEST(FaultPlanText, Rules) {
    const FaultPlan plan = good(
        "# what fails\n"
        "seed 0x2a\n"
        "\n"
        "msi vector=1 first=3 count=2 drop ; doorbell tag=0x10 every=4 count=all delay=3us\r\n"
        "dma-read chance=0.25 count=all corrupt # often\n"
        "dispatch die");
    EXPECT_EQ(plan.seed, 42u);
    ASSERT_EQ(plan.rules.size(), 4u);
    EXPECT_EQ(plan.rules[0].point, FaultPoint::kMsi);
    EXPECT_EQ(plan.rules[0].action, FaultAction::kDrop);
    EXPECT_EQ(plan.rules[0].subject, 1u);
    EXPECT_EQ(plan.rules[0].first, 3u);
    EXPECT_EQ(plan.rules[0].count, 2u);
    EXPECT_EQ(plan.rules[1].subject, 16u);
    EXPECT_EQ(plan.rules[1].every, 4u);
    EXPECT_EQ(plan.rules[1].count, FaultRule::kEver);
    EXPECT_EQ(plan.rules[1].delay, 3'000'000u);
    EXPECT_EQ(plan.rules[2].chance, 250'000u);
    EXPECT_EQ(plan.rules[3].action, FaultAction::kDie);
    EXPECT_TRUE(good("").rules.empty());
    EXPECT_EQ(good("walk fail").seed, 1u);
}

TEST(FaultPlanText, ARulesTextMeansTheRule) {
    for (const char* text :
         {"msi vector=0x1 first=3 every=2 count=2 drop", "doorbell count=all delay=3000000ps", "walk fail",
          "link port=0x0 chance=0.000001 corrupt", "register offset=0x88 count=all all-ones", "done hang",
          "wire port=0x1 count=all ber=1e-07 corrupt", "wire first=9 lanes=2", "training port=0x3 lanes=64"})
        EXPECT_EQ(to_text(good(text).rules.at(0)), text);
}

TEST(FaultPlanText, IsRefusedWithTheReason) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"doorbel drop", "'doorbel' is no point; there are: doorbell, dma-read"},
        {"doorbell", "the action is missing; at 'doorbell' there are: drop, delay, duplicate, hang, die"},
        {"doorbell corrupt", "'doorbell' cannot corrupt; it can: drop, delay, duplicate, hang, die"},
        {"register drop", "'register' cannot drop; it can: all-ones, corrupt"},
        {"doorbell explode", "'explode' is no action"},
        {"doorbell none", "'none' is no action"},
        {"doorbell drop first=2", "follows the action, which comes last"},
        {"doorbell port=2 drop", "'doorbell' has no 'port'; it has first, every, count, chance, tag"},
        {"mailbox tag=2 drop", "'mailbox' has no 'tag'; it has first, every, count, chance"},
        {"doorbell first=0 drop", "first=0: a number from 1 on"},
        {"doorbell first=x drop", "first=x: a number from 1 on"},
        {"doorbell count=18446744073709551616 drop", "a number from 1 on"},
        {"doorbell chance=0 drop", "chance=0: a number above 0"},
        {"doorbell chance=1.5 drop", "chance=1.5"},
        {"doorbell chance=nan drop", "chance=nan"},
        {"doorbell delay", "delay=TIME wants a model time"},
        {"doorbell delay=", "a model time such as"},
        {"doorbell delay=0us", "a model time such as"},
        {"doorbell delay=99999999999999999s", "a model time such as"},
        {"doorbell drop=3", "no other action one"},
        {"training lanes", "lanes=N a number"},
        {"training lanes=0", "a number of lanes from 1 to 64"},
        {"training lanes=65", "a number of lanes from 1 to 64"},
        {"training corrupt", "'training' cannot corrupt; it can: lanes, hang, die"},
        {"wire ber=0 corrupt", "ber=0: a number from 1e-18 on, below 1"},
        {"wire ber=1 corrupt", "ber=1"},
        {"wire ber=nan corrupt", "ber=nan"},
        {"wire ber=1e-6 lanes=1", "ber= goes with corrupt"},
        {"wire ber=1e-6 chance=0.5 corrupt", "without chance="},
        {"link ber=1e-6 corrupt", "'link' has no 'ber'; it has first, every, count, chance, port"},
        {"wire tag=1 corrupt", "it has first, every, count, chance, port, ber"},
        {"seed 0", "'seed NUMBER'"},
        {"seed 1;seed 2", "'seed NUMBER'"},
        {"walk fail\nseed 2", "line 2: 'seed NUMBER'"},
        {"\n\nwalk walk", "line 3"}};
    for (const auto& [text, why] : cases) {
        const auto plan = FaultPlan::parse(text);
        ASSERT_FALSE(plan) << text;
        EXPECT_THAT(plan.error(), HasSubstr(why)) << text;
        EXPECT_THAT(plan.error(), HasSubstr("fault plan, line ")) << text;
    }
    std::string many;
    for (std::size_t i = 0; i <= FaultPlan::kMaxRules; ++i)
        many += "walk fail\n";
    EXPECT_FALSE(FaultPlan::parse(many));
    EXPECT_FALSE(FaultPlan::parse(std::string(FaultPlan::kMaxText + 1, '\n')));
}

TEST(FaultPlanText, ComesFromAFileToo) {
    const std::string file = testing::TempDir() + "plan-" + std::to_string(::getpid()) + ".txt";
    std::ofstream(file) << "seed 9\nwalk fail\n";
    const auto plan = FaultPlan::load(file);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->seed, 9u);
    EXPECT_EQ(plan->text, "seed 9\nwalk fail\n");
    std::ofstream(file) << "walk fial\n";
    EXPECT_THAT(FaultPlan::load(file).error(), HasSubstr(file + ": fault plan, line 1"));
    std::filesystem::remove(file);
    EXPECT_THAT(FaultPlan::load("/no/such/file").error(), HasSubstr("neither a file nor a plan"));
    EXPECT_TRUE(FaultPlan::load("walk fail"));
}

}  // namespace
}  // namespace orrery::emu
