#include "emulator/pcie/dma_table.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/pcie/protocol.h"

namespace orrery::emu {
namespace {

constexpr uint64_t kTop = 0xfffffffffffff000;

TEST(DmaTable, TakesWholePagesOnly) {
    const DmaTable table;
    EXPECT_EQ(table.check_map(0, 4096), 0);
    EXPECT_EQ(table.check_map(kTop, 4096), 0) << "the last page there is";
    EXPECT_EQ(table.check_map(0, 0), EINVAL);
    EXPECT_EQ(table.check_map(1, 4096), EINVAL);
    EXPECT_EQ(table.check_map(4096, 100), EINVAL);
    EXPECT_EQ(table.check_map(kTop, 8192), EINVAL) << "wraps";
    EXPECT_EQ(table.check_map(4096, kTop), 0) << "up to the last byte";
    EXPECT_EQ(table.check_map(8192, kTop), EINVAL);
}

TEST(DmaTable, RefusesOverlaps) {
    DmaTable table;
    table.add(0x10000, 0x4000);
    EXPECT_EQ(table.check_map(0xf000, 0x1000), 0);
    EXPECT_EQ(table.check_map(0x14000, 0x1000), 0);
    EXPECT_EQ(table.check_map(0xf000, 0x2000), EEXIST);
    EXPECT_EQ(table.check_map(0x10000, 0x4000), EEXIST);
    EXPECT_EQ(table.check_map(0x11000, 0x1000), EEXIST);
    EXPECT_EQ(table.check_map(0x13000, 0x2000), EEXIST);
    EXPECT_EQ(table.check_map(0x0, 0x100000), EEXIST);
}

TEST(DmaTable, IsBounded) {
    DmaTable table;
    for (uint64_t i = 0; i < wire::kMaxDmaMaps; i++)
        table.add(i << 12, 4096);
    EXPECT_EQ(table.check_map(uint64_t{1} << 40, 4096), ENOSPC);
    table.remove(0);
    EXPECT_EQ(table.check_map(uint64_t{1} << 40, 4096), 0);
}

TEST(DmaTable, FindsWhatARangeCovers) {
    DmaTable table;
    table.add(0x1000, 0x1000);
    table.add(0x2000, 0x2000);
    table.add(0x8000, 0x1000);
    std::vector<DmaTable::Range> found;
    ASSERT_EQ(table.find(0x1000, 0x3000, found), 0);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[1].address, 0x2000u);
    EXPECT_EQ(found[1].size, 0x2000u);
    ASSERT_EQ(table.find(0, 0x100000, found), 0);
    EXPECT_EQ(found.size(), 3u);
    ASSERT_EQ(table.find(0x5000, 0x1000, found), 0) << "never mapped: fine";
    EXPECT_TRUE(found.empty());
    EXPECT_EQ(table.find(0x1000, 0x2000, found), EINVAL) << "cuts the second";
    EXPECT_TRUE(found.empty());
    EXPECT_EQ(table.find(0x3000, 0x1000, found), EINVAL) << "cuts the second from below";
    EXPECT_EQ(table.find(0x3000, 0, found), EINVAL);
    EXPECT_EQ(table.size(), 3u);
}

}  // namespace
}  // namespace orrery::emu
