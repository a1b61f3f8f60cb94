// The scheduler's figures on the card against their goals. Those that the firmware does not reach yet are not
// here: bench_scheduler shows them all.
#include <gtest/gtest.h>

#include "tests/unit/firmware/documented.h"
#include "tests/unit/policy/figures.h"

namespace orrery::policy {
namespace {

void all_hold(const Figures& figures) {
    ASSERT_TRUE(figures) << figures.error();
    for (const Figure& one : *figures)
        EXPECT_TRUE(one.holds()) << one.name << ": " << one.value << " " << one.unit << ", goal " << one.goal;
}

TEST(Figures, SharesAreFair) {
    all_hold(share_figures());
}

TEST(Figures, AHigherClassHasTheEngineWithinTenMicroseconds) {
    all_hold(preemption_figures());
}

TEST(Figures, TheLowestClassWaitsForABoundedTime) {
    const Figures figures = waiting_figures();
    all_hold(figures);
    if (figures)
        fw::test::expect_documented(
            "the longest wait of a LOW job for its start, under HIGH and NORMAL loads", 0,
            figures->front().value);
}

TEST(Figures, OneBadQueueCostsTheOthersLittle) {
    all_hold(guard_figures());
}

}  // namespace
}  // namespace orrery::policy
