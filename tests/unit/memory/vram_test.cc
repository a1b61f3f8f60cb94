#include "emulator/memory/vram.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::emu {
namespace {

TEST(Vram, IsSparseUpTo64GiB) {
    auto vram = Vram::create(Vram::kMaxBytes);
    ASSERT_TRUE(vram) << vram.error();
    *vram->at(Vram::kMaxBytes - 1, 1) = 7;
    struct stat info{};
    ASSERT_EQ(fstat(vram->fd(), &info), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(info.st_size), Vram::kMaxBytes);
    EXPECT_LT(info.st_blocks, 4096);  // of 512 bytes
}

TEST(Vram, RefusesOtherSizes) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{3} << 20, std::uint64_t{4096},
                                      Vram::kMaxBytes * 2, ~std::uint64_t{0}}) {
        const auto vram = Vram::create(bytes);
        ASSERT_FALSE(vram) << bytes;
        EXPECT_NE(vram.error().find("power of two"), std::string::npos);
    }
}

TEST(Vram, ChecksRanges) {
    auto vram = Vram::create(1 << 20);
    ASSERT_TRUE(vram);
    EXPECT_NE(vram->at(0, 1 << 20), nullptr);
    EXPECT_EQ(vram->at(0, (1 << 20) + 1), nullptr);
    EXPECT_EQ(vram->at(1 << 20, 1), nullptr);
    EXPECT_EQ(vram->at(~std::uint64_t{0}, 2), nullptr);
    EXPECT_EQ(vram->at(8, ~std::uint64_t{0}), nullptr);
}

TEST(Vram, NobodyCanCutItShort) {
    auto vram = Vram::create(1 << 20);
    ASSERT_TRUE(vram);
    EXPECT_NE(ftruncate(vram->fd(), 4096), 0);
    EXPECT_NE(ftruncate(vram->fd(), 2 << 20), 0);
}

TEST(Vram, ClearsToZero) {
    auto vram = Vram::create(1 << 20);
    ASSERT_TRUE(vram);
    *vram->at(5000, 1) = 9;
    vram->clear();
    EXPECT_EQ(*vram->at(5000, 1), 0);
}

}  // namespace
}  // namespace orrery::emu
