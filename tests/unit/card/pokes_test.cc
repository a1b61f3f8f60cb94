// The lanes of pokes: nothing is lost, nothing waits twice, no lane stands in another's way.
#include <gtest/gtest.h>

#include "emulator/soc/pokes.h"

namespace orrery::emu {
namespace {

TEST(Pokes, ComeOutInTheOrderOfTheirLane) {
    Pokes pokes;
    unsigned freed = 0;
    EXPECT_TRUE(pokes.empty());
    EXPECT_EQ(pokes.pop(freed), Pokes::kNone);
    EXPECT_TRUE(pokes.push(2, 0x10));
    EXPECT_TRUE(pokes.push(2, 0x20));
    EXPECT_EQ(pokes.pop(freed), 0x10u);
    EXPECT_EQ(pokes.pop(freed), 0x20u);
    EXPECT_TRUE(pokes.empty());
}

TEST(Pokes, AMemoryThatWaitsIsNotEnteredAgain) {
    Pokes pokes;
    unsigned freed = 0;
    for (int i = 0; i < 1000; ++i)
        EXPECT_TRUE(pokes.push(0, 0x40));
    EXPECT_EQ(pokes.pop(freed), 0x40u);
    EXPECT_TRUE(pokes.empty());
    EXPECT_TRUE(pokes.push(0, 0x40));  // a new signal after somebody looked
    EXPECT_EQ(pokes.pop(freed), 0x40u);
}

TEST(Pokes, AFullLaneIsNoOtherLanesMatter) {
    Pokes pokes;
    unsigned freed = 0;
    for (std::uint64_t i = 0; i < Pokes::kDepth; ++i)
        EXPECT_TRUE(pokes.push(0, 16 * i));
    EXPECT_FALSE(pokes.room(0));
    EXPECT_FALSE(pokes.push(0, 0xffff0));
    EXPECT_TRUE(pokes.push(1, 0x123450));
    EXPECT_EQ(pokes.pop(freed), 0u);
    EXPECT_EQ(pokes.pop(freed), 0x123450u);
    unsigned pops = 0;
    while (freed == Pokes::kLanes) {
        pokes.pop(freed);
        ++pops;
    }
    EXPECT_EQ(freed, 0u);  // half empty: its port may go on
    EXPECT_EQ(pops, Pokes::kDepth / 2 - 1);
}

}  // namespace
}  // namespace orrery::emu
