// The firmware's choices against a model of the policy that was written apart.
#include <gtest/gtest.h>
#include <orrery/fw/policy.h>

#include "tests/unit/policy/check.h"
#include "tests/unit/policy/generate.h"
#include "tests/unit/policy/reference.h"

namespace orrery::policy {
namespace {

using Player = std::expected<History, std::string> (*)(const scenario::Scenario&);

void compare(Player player) {
    std::uint64_t choices = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const scenario::Scenario scenario = one_port_scenario(seed);
        const auto history = player(scenario);
        ASSERT_TRUE(history) << history.error();
        const Verdict verdict = check(scenario, *history, {});
        ASSERT_EQ(verdict.wrong, "") << "seed " << seed << "\n" << scenario.to_toml();
        const Judgement judgement = judge(scenario, *history);
        ASSERT_EQ(judgement.wrong, "") << "seed " << seed << "\n" << scenario.to_toml();
        choices += judgement.choices;
    }
    EXPECT_GT(choices, 1'000u);
}

TEST(PolicyModel, ChoosesAsTheFirmwareDoesNatively) {
    compare(run_native);
}

TEST(PolicyModel, ChoosesAsTheFirmwareDoesOnTheCard) {
    compare(run_on_card);
}

// Checks that cannot fail are none: a firmware without the rule must be found out.
std::uint64_t found_out(std::uint64_t flags, bool by_model) {
    std::uint64_t found = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const scenario::Scenario scenario = by_model ? one_port_scenario(seed) : random_scenario(seed);
        const auto history = run_on_card(scenario, {{"flags", flags}});
        EXPECT_TRUE(history) << history.error();
        if (!history) break;
        const bool wrong = by_model ? !judge(scenario, *history).wrong.empty()
                                    : !check(scenario, *history, {}).wrong.empty();
        found += wrong ? 1 : 0;
    }
    return found;
}

TEST(PolicyModel, FindsOutAFirmwareWithoutWeights) {
    EXPECT_GT(found_out(ORR_POLICY_F_NO_WEIGHTS, true), 5u);
}

TEST(PolicyModel, FindsOutAFirmwareWithoutPriorities) {
    EXPECT_GT(found_out(ORR_POLICY_F_NO_PRIORITIES, true), 5u);
    EXPECT_GT(found_out(ORR_POLICY_F_NO_PRIORITIES, false), 5u);
}

TEST(PolicyModel, FindsOutAFirmwareWithoutPreemption) {
    EXPECT_GT(found_out(ORR_POLICY_F_NO_PREEMPTION, false), 5u);
}

}  // namespace
}  // namespace orrery::policy
