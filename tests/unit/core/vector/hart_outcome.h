// What a hart was after a run, and that two runs came to the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/core/hart.h"

namespace orrery::emu::test {

struct HartOutcome {
    StopReason reason{};
    HartState hart;
    VectorState vectors;
    std::uint64_t cycles = 0, busy = 0;
    AccessCounts counts;
    WorkCounts work;
};

inline void expect_same_hart(const HartOutcome& a, const HartOutcome& b) {
    EXPECT_EQ(a.reason, b.reason);
    EXPECT_EQ(a.hart.pc, b.hart.pc);
    EXPECT_EQ(a.hart.steps, b.hart.steps);
    EXPECT_EQ(a.hart.minstret, b.hart.minstret);
    EXPECT_EQ(a.hart.mcycle, b.hart.mcycle);
    EXPECT_EQ(a.hart.fcsr, b.hart.fcsr);
    EXPECT_TRUE(std::ranges::equal(a.hart.f, b.hart.f));
    EXPECT_TRUE(std::ranges::equal(a.hart.x, b.hart.x));
    EXPECT_EQ(a.vectors, b.vectors);
    EXPECT_EQ(a.cycles, b.cycles);
    EXPECT_EQ(a.busy, b.busy);
    EXPECT_EQ(a.counts, b.counts);
    EXPECT_EQ(a.work, b.work);
}

}  // namespace orrery::emu::test
