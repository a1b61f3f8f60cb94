// Kernels whose code changes between dispatches and within one, on cores that decode for one another.
#include <gtest/gtest.h>

#include <array>
#include <span>

#include "tests/unit/core/encode.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kCode = 0x30'0000'0000, kCodeOffset = 32 << 20, kOtherOffset = 33 << 20;
constexpr std::uint64_t kCodeRights = ORR_PTE_READ | ORR_PTE_WRITE | ORR_PTE_EXEC;
constexpr std::uint32_t kGroups = 8;  // one for each core

class NewCodeTest : public VectorUnitTest {
  protected:
    NewCodeTest() { map_code(kCodeOffset); }

    void map_code(std::uint64_t vram) { rig.map(kCode, ORR_PAGE_SIZE, ORR_TARGET_VRAM, vram, kCodeRights); }
    void put(std::uint64_t vram, std::span<const Word> code) {
        std::memcpy(rig.vram.data() + vram, code.data(), code.size_bytes());
    }
    // A kernel that adds `value` to the sum.
    static std::array<Word, 4> adds(int value) {
        return {addi(a0, a0, 8), li(a1, value), amo(0, 3, x0, a0, a1), jalr(x0, ra, 0)};
    }
    // What the kernel at kCode adds, run by so many groups.
    std::uint64_t sum(std::uint32_t groups = kGroups, std::uint32_t asid = 1) {
        data()[1] = 0;
        orr_desc_kernel d = desc(kMark, kData, groups, 1);
        d.entry = kCode;
        d.asid = asid;
        expect_end(run(d), ORR_DONE_OK, 0, 0);
        return data()[1];
    }
};

// Into the memory itself, as the receiver of a link and the host write. Each core finds the new code,
// whichever was the first to run it.
TEST_F(NewCodeTest, WrittenInPlace) {
    for (int value = 1; value < 6; ++value) {
        put(kCodeOffset, adds(value));
        EXPECT_EQ(sum(static_cast<std::uint32_t>(value)), static_cast<std::uint64_t>(value * value));
        EXPECT_EQ(sum(), kGroups * static_cast<std::uint64_t>(value));
    }
}

TEST_F(NewCodeTest, WrittenByTheCopyEngine) {
    CopyEngine engine(0, CopyRates{}, rig.context);
    constexpr std::uint64_t kAlias = 0x31'0000'0000;
    rig.map(kAlias, ORR_PAGE_SIZE, ORR_TARGET_VRAM, kCodeOffset);
    for (int value = 1; value < 6; ++value) {
        const auto code = adds(value);
        std::memcpy(rig.host_data, code.data(), sizeof code);
        orr_desc_copy copy{};
        copy.op = ORR_DESC_COPY;
        copy.asid = 1;
        copy.src = kHostData;
        copy.dst = kAlias;
        copy.row_bytes = sizeof code;
        copy.rows = 1;
        ASSERT_EQ(rig.run_one(engine, copy).status, ORR_DONE_OK);
        EXPECT_EQ(sum(), kGroups * static_cast<std::uint64_t>(value));
    }
}

TEST_F(NewCodeTest, MappedElsewhereAndBack) {
    put(kCodeOffset, adds(1));
    put(kOtherOffset, adds(2));
    for (int round = 0; round < 3; ++round) {
        map_code(kCodeOffset);
        EXPECT_EQ(sum(), kGroups * 1u);
        map_code(kOtherOffset);
        EXPECT_EQ(sum(), kGroups * 2u);
        rig.unmap(kCode);
        orr_desc_kernel d = desc(kMark, kData, kGroups, 1);
        d.entry = kCode;
        expect_end(run(d), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, kCode);
    }
    // Its first place has got other code meanwhile.
    put(kCodeOffset, adds(3));
    map_code(kCodeOffset);
    EXPECT_EQ(sum(), kGroups * 3u);
}

// Two processes with their code at one address, by turns: each runs its own.
TEST_F(NewCodeTest, OneAddressInTwoAddressSpaces) {
    put(kCodeOffset, adds(1));
    put(kOtherOffset, adds(2));
    // The other's tables are those of the first, up to the one with the page of code.
    const auto words = [&](std::uint64_t at) {
        return reinterpret_cast<std::uint64_t*>(rig.vram.data() + at);
    };
    std::uint64_t copies = 40 << 20, table = rig.vram.size() - ORR_PAGE_SIZE;
    ASSERT_EQ(rig.mmu.set_root(2, copies), ORR_FAULT_NONE);
    for (unsigned level = ORR_MMU_LEVELS; level-- > 0; copies += ORR_PAGE_SIZE) {
        std::memcpy(words(copies), words(table), ORR_PAGE_SIZE);
        std::uint64_t& word = words(copies)[kCode >> (12 + 9 * level) & 511];
        table = word & ORR_PTE_ADDR_MASK;
        const std::uint64_t target = level == 0 ? kOtherOffset : copies + ORR_PAGE_SIZE;
        word = (word & ~std::uint64_t{ORR_PTE_ADDR_MASK}) | target;
    }
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(sum(kGroups, 1), kGroups * 1u);
        EXPECT_EQ(sum(kGroups, 2), kGroups * 2u);
    }
}

// A kernel that writes the next instruction but one into its own code: every item runs what it wrote.
TEST_F(NewCodeTest, WrittenByTheKernelItself) {
    const std::array<Word, 8> code = {lw(t0, a0, 0), auipc(t1, 0),    sw(t0, t1, 12),        nop(),
                                      li(a1, 1),     addi(a0, a0, 8), amo(0, 3, x0, a0, a1), jalr(x0, ra, 0)};
    put(kCodeOffset, code);
    for (int value = 2; value < 6; ++value) {
        data()[0] = li(a1, value);
        EXPECT_EQ(sum(4 * kGroups), 4 * kGroups * static_cast<std::uint64_t>(value));
        // By another kernel of the page, so that all of them know it before it is changed again.
        put(kCodeOffset, adds(7));
        EXPECT_EQ(sum(), kGroups * 7u);
        put(kCodeOffset, code);
    }
}

}  // namespace
}  // namespace orrery::emu::test
