// The scalar instructions of Zfhmin and Zfbfmin: conversions on every 16-bit pattern, in every rounding mode,
// against the reference; what moves and boxes, and who may execute them.
#include <gtest/gtest.h>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"
#include "tests/unit/core/vector_fp/harness.h"

namespace orrery::emu::test {
namespace {

using reference::Format, reference::kBf16, reference::kF16, reference::kF32, reference::kF64;

constexpr Word kDynamic = 7, fa0 = 10, fa1 = 11;
constexpr std::uint64_t kFs = 3u << 13;

constexpr Word flh(Word rd, Word rs1, int imm) {
    return i_type(0x07, 1, rd, rs1, imm);
}
constexpr Word fsh(Word rs2, Word rs1, int imm) {
    return s_type(0x27, 1, rs1, rs2, imm);
}
constexpr Word fld(Word rd, Word rs1, int imm) {
    return i_type(0x07, 3, rd, rs1, imm);
}
constexpr Word fsd(Word rs2, Word rs1, int imm) {
    return s_type(0x27, 3, rs1, rs2, imm);
}
constexpr Word fmv_x_h(Word rd, Word rs1) {
    return fp(0x1c, 2, 0, rd, rs1, 0);
}
constexpr Word fmv_h_x(Word rd, Word rs1) {
    return fp(0x1e, 2, 0, rd, rs1, 0);
}

struct Conversion {
    const char* name;
    Format to, from;
    Word to_field, from_field;  // as the instruction names them

    constexpr Word code(Word rounding) const { return fp(0x08, to_field, rounding, fa1, fa0, from_field); }
};
constexpr Conversion kWidening[] = {
    {"fcvt.s.h", kF32, kF16, 0, 2}, {"fcvt.d.h", kF64, kF16, 1, 2}, {"fcvt.s.bf16", kF32, kBf16, 0, 6}};
constexpr Conversion kNarrowing[] = {
    {"fcvt.h.s", kF16, kF32, 2, 0}, {"fcvt.h.d", kF16, kF64, 2, 1}, {"fcvt.bf16.s", kBf16, kF32, 2, 8}};

std::uint64_t boxed(Format format, std::uint64_t bits) {
    return format.bits == 64 ? bits : bits | ~0ull << format.bits;
}

Config half_config() {
    return {.reset_pc = kRam, .fp = true, .vlen = 128, .trap_to_host = true};
}

// A program that converts a block of registers' contents and keeps what comes out, with the flags of each.
class Converter {
  public:
    static constexpr std::size_t kMost = 8192;

    void run(const Conversion& conversion, const std::vector<std::uint64_t>& in, unsigned mode,
             bool dynamic) {
        const auto rounding = static_cast<Word>(mode);
        machine_.code({fld(fa0, a0, 0), csrrwi(x0, kCsrFflags, 0),
                       conversion.code(dynamic ? kDynamic : rounding), fsd(fa1, a1, 0), csrr(t0, kCsrFflags),
                       sd(t0, a1, 8), addi(a0, a0, 8), addi(a1, a1, 16), bne(a0, a2, -32), ebreak()});
        for (std::size_t first = 0; first < in.size(); first += kMost) {
            const std::size_t count = std::min(kMost, in.size() - first);
            for (std::size_t i = 0; i < count; ++i)
                machine_.bus.put(kIn + 8 * i, boxed(conversion.from, in[first + i]));
            machine_.hart.set_pc(kRam);
            machine_.hart.set_x(a0, kIn);
            machine_.hart.set_x(a1, kOut);
            machine_.hart.set_x(a2, kIn + 8 * count);
            machine_.hart.set_fcsr((dynamic ? mode : (mode + 1) % 5) << 5);
            ASSERT_EQ(machine_.hart.run(100 * count), StopReason::kTrap);
            ASSERT_EQ(machine_.hart.trap().cause, Cause::kBreakpoint);
            for (std::size_t i = 0; i < count; ++i)
                check(conversion, in[first + i], mode, machine_.bus.get<std::uint64_t>(kOut + 16 * i),
                      machine_.bus.get<std::uint64_t>(kOut + 16 * i + 8));
            if (testing::Test::HasFailure()) return;
        }
    }

  private:
    static void check(const Conversion& conversion, std::uint64_t in, unsigned mode, std::uint64_t result,
                      std::uint64_t flags) {
        std::uint8_t want_flags = 0;
        const std::uint64_t want = reference::convert(conversion.to, reference::decode(conversion.from, in),
                                                      static_cast<reference::Mode>(mode), want_flags);
        ASSERT_EQ(result, boxed(conversion.to, want))
            << conversion.name << std::hex << " of " << in << ", mode " << mode;
        ASSERT_EQ(flags, want_flags) << conversion.name << std::hex << " of " << in << ", mode " << mode;
    }

    static constexpr std::uint64_t kIn = kRam + 0x1000, kOut = kRam + 0x12000;
    Machine machine_{half_config()};
};

TEST(ScalarHalf, WidensEveryValue) {
    std::vector<std::uint64_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = i;
    Converter converter;
    for (const Conversion& conversion : kWidening)
        converter.run(conversion, all, reference::kRne, true);
}

// Every value that the narrow format has, and those next to it and half way to the next one.
TEST(ScalarHalf, RoundsAboutEveryValue) {
    Converter converter;
    std::mt19937_64 random(seed());
    for (const Conversion& conversion : kNarrowing) {
        const Format wide = conversion.from;
        const std::uint64_t half_way = 1ull << (wide.mantissa - conversion.to.mantissa - 1);
        for (unsigned mode = 0; mode < 5; ++mode) {
            std::vector<std::uint64_t> in;
            for (std::uint64_t i = 0; i < 65536; ++i) {
                std::uint8_t flags = 0;
                const std::uint64_t exact =
                    reference::convert(wide, reference::decode(conversion.to, i), reference::kRne, flags);
                const std::uint64_t near[] = {0, half_way, 1, ~0ull, half_way + 1, half_way - 1};
                const std::uint64_t value = exact + near[random() % std::size(near)];
                in.push_back(wide.bits == 64 ? value : value & 0xffffffff);
                if (i % 8 == 0) in.push_back(interesting(floating(wide), random));
            }
            converter.run(conversion, in, mode, mode % 2 == 0);
        }
    }
}

TEST(ScalarHalf, MovesBoxAndExtend) {
    Machine machine(half_config());
    machine.bus.put<std::uint32_t>(kRam + 0x1000, 0x1234'bc00);
    machine.hart.set_x(a0, kRam + 0x1000);
    machine.hart.set_x(a1, 0x7777'0000'3c01);
    machine.code({flh(1, a0, 0), flh(2, a0, 2), fmv_x_h(a2, 1), fmv_x_h(a3, 2), fmv_h_x(3, a1), fsh(3, a0, 4),
                  fmv_x_h(a4, 4), fsh(4, a0, 10), fmv_x_h(x0, 1)});
    HartState state = machine.hart.state();
    state.f[4] = 0x0123'4567'89ab'8001;  // no box: moves and stores take the low bits all the same
    state.mstatus = (state.mstatus & ~kFs) | 1u << 13;
    machine.hart.set_state(state);
    ASSERT_EQ(machine.hart.run(9), StopReason::kBudget);
    state = machine.hart.state();
    EXPECT_EQ(state.f[1], 0xffff'ffff'ffff'bc00u);
    EXPECT_EQ(state.f[2], 0xffff'ffff'ffff'1234u);
    EXPECT_EQ(state.f[3], 0xffff'ffff'ffff'3c01u);
    EXPECT_EQ(state.x[a2], 0xffff'ffff'ffff'bc00u);
    EXPECT_EQ(state.x[a3], 0x1234u);
    EXPECT_EQ(state.x[a4], 0xffff'ffff'ffff'8001u);
    EXPECT_EQ(state.x[0], 0u);
    EXPECT_EQ(machine.bus.get<std::uint64_t>(kRam + 0x1004), 0x8001'0000'0000'3c01u);
    EXPECT_EQ(state.mstatus & kFs, kFs) << "dirty";
    EXPECT_EQ(state.fcsr, 0u);
}

TEST(ScalarHalf, WhatIsNotBoxedIsTheNanOfItsFormat) {
    Machine machine(half_config());
    for (const std::uint64_t bits : {0x0000'0000'0000'3c00ull, 0xffff'ffff'0000'3c00ull,
                                     0x7fff'ffff'ffff'3c00ull, 0xffff'ffff'fffe'3c00ull}) {
        for (const Conversion& conversion : kWidening) {
            machine.code({conversion.code(kDynamic)});
            HartState state = machine.hart.state();
            state.pc = kRam;
            state.f[fa0] = bits;
            machine.hart.set_state(state);
            ASSERT_EQ(machine.hart.run(1), StopReason::kBudget);
            state = machine.hart.state();
            EXPECT_EQ(state.f[fa1], boxed(conversion.to, reference::canonical_nan(conversion.to)))
                << conversion.name;
            EXPECT_EQ(state.fcsr, 0u);
        }
    }
}

class Illegal {
  public:
    explicit Illegal(const Config& config) : machine_(config) {}
    void expect(Word code, bool illegal, std::uint64_t fs = kFs, unsigned frm = 0) {
        machine_.code({code});
        HartState state = machine_.hart.state();
        state.pc = kRam;
        state.x[a0] = kRam + 0x1000;
        state.mstatus = (state.mstatus & ~kFs) | fs;
        state.fcsr = frm << 5;
        machine_.hart.set_state(state);
        ASSERT_EQ(machine_.hart.run(1), illegal ? StopReason::kTrap : StopReason::kBudget)
            << std::hex << code;
        if (!illegal) return;
        EXPECT_EQ(machine_.hart.trap().cause, Cause::kIllegal);
        EXPECT_EQ(machine_.hart.trap().tval, code);
        EXPECT_EQ(machine_.hart.pc(), kRam);
    }

  private:
    Machine machine_;
};

std::vector<Word> all_instructions() {
    std::vector<Word> all = {flh(fa0, a0, 0), fsh(fa0, a0, 0), fmv_x_h(a2, fa0), fmv_h_x(fa0, a2)};
    for (const Conversion& conversion : kWidening)
        all.push_back(conversion.code(kDynamic));
    for (const Conversion& conversion : kNarrowing)
        all.push_back(conversion.code(kDynamic));
    return all;
}

TEST(ScalarHalf, AreForHartsWithVectors) {
    Illegal vectors(half_config());
    Illegal scalars({.reset_pc = kRam, .fp = true, .trap_to_host = true});
    Illegal control({.reset_pc = kRam, .trap_to_host = true});
    for (const Word code : all_instructions()) {
        vectors.expect(code, false);
        vectors.expect(code, true, 0);
        scalars.expect(code, true);
        control.expect(code, true);
    }
}

TEST(ScalarHalf, ReservedRoundingModesAndFormsAreIllegal) {
    Illegal hart(half_config());
    const auto check = [&](const Conversion& conversion) {
        for (Word mode = 0; mode < 8; ++mode) {
            hart.expect(conversion.code(mode), mode == 5 || mode == 6);
            hart.expect(conversion.code(kDynamic), mode > 4, kFs, mode);
        }
        hart.expect(conversion.code(0), false, kFs, 5);
    };
    for (const Conversion& conversion : kWidening)
        check(conversion);
    for (const Conversion& conversion : kNarrowing)
        check(conversion);
    for (Word funct5 = 0; funct5 < 32; ++funct5)
        for (Word source = 0; source < 32; ++source)
            for (Word funct3 = 0; funct3 < 8; ++funct3) {
                const bool moves = (funct5 == 0x1c || funct5 == 0x1e) && source == 0 && funct3 == 0;
                const bool converts = funct5 == 0x08 && (source == 0 || source == 1 || source == 8) &&
                                      funct3 != 5 && funct3 != 6;
                hart.expect(fp(funct5, 2, funct3, fa1, fa0, source), !moves && !converts);
            }
}

}  // namespace
}  // namespace orrery::emu::test
