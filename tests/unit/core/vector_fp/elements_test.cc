// Every floating- and fixed-point vector instruction that works element by element, against the reference.
#include <gtest/gtest.h>

#include "tests/unit/core/vector_fp/cases.h"

namespace orrery::emu::test {
namespace {

using reference::kBf16;
using reference::kF16;
using reference::kF32;
using reference::kF64;

constexpr unsigned kRounds = 100;

void check_random(const std::vector<Case>& cases, unsigned rounds = kRounds) {
    for (const Case& test : cases)
        check_random(test, rounds);
}
std::vector<std::uint64_t> all_halves() {
    std::vector<std::uint64_t> result(65536);
    for (std::uint64_t i = 0; i < result.size(); ++i)
        result[i] = i;
    return result;
}
void check_all_halves(const std::vector<Case>& cases) {
    for (const Case& test : cases)
        if (test.a.bits == 16 && test.b.bits == 0) check_all(test, all_halves());
}

TEST(VectorFp, ArithmeticInHalfPrecision) {
    check_random(arithmetic_cases(kF16));
}
TEST(VectorFp, ArithmeticInSinglePrecision) {
    check_random(arithmetic_cases(kF32));
}
TEST(VectorFp, ArithmeticInDoublePrecision) {
    check_random(arithmetic_cases(kF64));
}
TEST(VectorFp, FusedInHalfPrecision) {
    check_random(fused_cases(kF16));
}
TEST(VectorFp, FusedInSinglePrecision) {
    check_random(fused_cases(kF32));
}
TEST(VectorFp, FusedInDoublePrecision) {
    check_random(fused_cases(kF64));
}
TEST(VectorFp, SignsAndOrder) {
    for (const reference::Format f : {kF16, kF32, kF64})
        check_random(sign_and_order_cases(f));
}
TEST(VectorFp, Widening) {
    for (const reference::Format f : {kF16, kBf16, kF32})
        check_random(widening_cases(f));
}
TEST(VectorFp, Conversions) {
    for (unsigned sew_log2 = 3; sew_log2 <= 6; ++sew_log2)
        check_random(conversion_cases(sew_log2));
}
TEST(VectorFp, Estimates) {
    for (const reference::Format f : {kF16, kF32, kF64})
        check_random(estimate_cases(f));
}

// Zeros, infinities, NaNs and limits with one another, each for itself: infinity times zero plus a quiet NaN
// is invalid, say.
TEST(VectorFp, SpecialValues) {
    for (const reference::Format f : {kF16, kF32, kF64}) {
        const std::uint64_t inf = reference::infinity(f, false);
        const std::uint64_t least_normal = 1ull << f.mantissa;
        const std::uint64_t one = static_cast<std::uint64_t>(f.bias) << f.mantissa;
        std::vector<std::uint64_t> values = {
            0, 1, least_normal - 1, least_normal, one, inf - 1, inf, inf + 1, reference::canonical_nan(f)};
        for (const std::uint64_t magnitude : {std::uint64_t{0}, one, inf})
            values.push_back(reference::zero(f, true) + magnitude);
        const std::vector<Case> fused = fused_cases(f);
        const std::vector<Case> arithmetic = arithmetic_cases(f);
        for (const std::uint64_t a : values) {
            for (const std::uint64_t b : values) {
                for (const std::uint64_t d : values)
                    check_one(fused[0], d, a, b, 0);
                for (const Case& test : arithmetic) {
                    if (test.b.bits != 0) check_one(test, 0, a, b, static_cast<unsigned>(a + b) % 5);
                }
            }
        }
    }
}

// All 65,536 values of 16 bits, in all rounding modes.
TEST(VectorFp, UnaryOfAllHalves) {
    check_all_halves(arithmetic_cases(kF16));
    check_all_halves(estimate_cases(kF16));
    check_all_halves(sign_and_order_cases(kF16));
}
TEST(VectorFp, ConversionsOfAllHalves) {
    check_all_halves(conversion_cases(3));
    check_all_halves(conversion_cases(4));
}

TEST(VectorFixedPoint, AllWidths) {
    for (unsigned sew_log2 = 3; sew_log2 <= 6; ++sew_log2)
        check_random(fixed_point_cases(sew_log2));
}

// The kernels are those instructions that the table of instructions calls floating or fixed point, at the
// widths that RVV 1.0 with Zvfh and Zvfbfwma has.
TEST(VectorFp, KernelsAreThoseOfTheTable) {
    for (std::size_t i = 0; i < kVectorOps; ++i) {
        const auto op = static_cast<VectorOp>(i);
        const VectorRow& instruction = row(op);
        const bool fp = instruction.has(vector_property::kFp);
        if (!fp && !instruction.has(vector_property::kFixed)) continue;
        const auto is_wide = [](VectorOperand operand) {
            return operand == VectorOperand::kWide || operand == VectorOperand::kWideElement;
        };
        const bool wide = is_wide(instruction.vd) || is_wide(instruction.vs2);
        for (unsigned sew_log2 = 3; sew_log2 <= 6; ++sew_log2) {
            bool exists = (!wide || sew_log2 < 6) && (!fp || sew_log2 > 3);
            if (instruction.has(vector_property::kBf16)) exists = sew_log2 == 4;
            // Bytes are converted from and to halves.
            const std::string name = instruction.name;
            if (sew_log2 == 3 && wide && fp &&
                (name.starts_with("vfwcvt.f.x") || name.starts_with("vfncvt.x") ||
                 name.starts_with("vfncvt.rtz.x")))
                exists = true;
            for (const Simd simd : usable_simd()) {
                EXPECT_EQ(kernel_of(simd, op, sew_log2) != nullptr, exists)
                    << name << " at SEW " << (1u << sew_log2) << ", " << to_string(simd);
            }
        }
    }
}

}  // namespace
}  // namespace orrery::emu::test
