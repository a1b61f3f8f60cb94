// Random scenarios through the firmware, natively and on the card: what must hold in every run. A failure
// prints the smallest scenario with it that could be found; orrery-step run plays that file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/unit/policy/check.h"
#include "tests/unit/policy/generate.h"

namespace orrery::policy {
namespace {

using scenario::Scenario;
using Player = std::expected<History, std::string> (*)(const Scenario&);

std::string complaint(Player run, const Scenario& scenario, const Limits& limits) {
    const auto history = run(scenario);
    if (!history) return history.error();
    return check(scenario, *history, limits).wrong;
}

// Leaves away what the failure does not need: submissions in ever smaller pieces, then single packets.
Scenario shrink(Player run, Scenario scenario, const Limits& limits) {
    for (std::size_t piece = scenario.submits.size() / 2; piece > 0; piece /= 2) {
        for (std::size_t at = 0; at < scenario.submits.size();) {
            Scenario less = scenario;
            const auto first = less.submits.begin() + static_cast<std::ptrdiff_t>(at);
            less.submits.erase(
                first, first + static_cast<std::ptrdiff_t>(std::min(piece, less.submits.size() - at)));
            // A wait whose signal is gone would be another failure.
            if (!complaint(run, less, limits).empty() &&
                complaint(run, less, limits).find("in time") == std::string::npos) {
                scenario = std::move(less);
            } else {
                at += piece;
            }
        }
    }
    return scenario;
}

class RandomPolicy : public testing::TestWithParam<std::uint64_t> {
  protected:
    void judge(Player run) {
        const Scenario scenario = random_scenario(GetParam());
        ASSERT_EQ(scenario.check(), "");
        Limits limits;
        // All queues may want the core's attention at once, and a turn of each takes a while.
        limits.grip_ps += scenario.queues.size() * scenario::kUs;
        const std::string wrong = complaint(run, scenario, limits);
        if (wrong.empty()) return;
        const Scenario small = shrink(run, scenario, limits);
        FAIL() << "seed " << GetParam() << ": " << wrong << "\nsmallest: " << complaint(run, small, limits)
               << "\n"
               << small.to_toml();
    }
};

TEST_P(RandomPolicy, HoldsNatively) {
    judge(run_native);
}

TEST_P(RandomPolicy, HoldsOnTheCard) {
    judge(run_on_card);
}

// ORRERY_SEEDS=N tries that many seeds.
std::uint64_t seeds() {
    const char* const wanted = std::getenv("ORRERY_SEEDS");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 40;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPolicy, testing::Range<std::uint64_t>(1, seeds() + 1),
                         [](const auto& seed) { return std::to_string(seed.param); });

}  // namespace
}  // namespace orrery::policy
