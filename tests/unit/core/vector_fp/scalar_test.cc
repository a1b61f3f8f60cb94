// The vector instructions and the scalar ones of the same name agree, bits and flags.
#include <gtest/gtest.h>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"
#include "tests/unit/core/vector_fp/harness.h"

namespace orrery::emu::test {
namespace {

constexpr Word kOpFp = 0x53, kMadd = 0x43, kDynamic = 7;

// fa3 = fa0 op fa1, in the format that funct7's low bits name.
struct Pair {
    VectorOp vector;
    Word funct7, funct3;
};
constexpr Pair kPairs[] = {
    {VectorOp::kVfaddVv, 0x00, kDynamic}, {VectorOp::kVfsubVv, 0x04, kDynamic},
    {VectorOp::kVfmulVv, 0x08, kDynamic}, {VectorOp::kVfdivVv, 0x0c, kDynamic},
    {VectorOp::kVfsgnjxVv, 0x10, 2},      {VectorOp::kVfminVv, 0x14, 0},
    {VectorOp::kVfmaxVv, 0x14, 1},        {VectorOp::kVfmaccVv, kMadd, kDynamic},
};

class Scalar {
  public:
    // d is the third operand of multiply-add.
    std::uint64_t compute(const Pair& pair, bool is_double, std::uint64_t a, std::uint64_t b, std::uint64_t d,
                          unsigned frm, std::uint8_t& flags) {
        const Word format = is_double ? 1 : 0;
        const Word instruction = pair.funct7 == kMadd
                                     ? r_type(kMadd, kDynamic, 12u << 2 | format, 13, 10, 11)
                                     : r_type(kOpFp, pair.funct3, pair.funct7 | format, 13, 10, 11);
        machine_.code({instruction});
        HartState state = machine_.hart.state();
        const std::uint64_t box = is_double ? 0 : ~0ull << 32;
        state.pc = kRam;
        state.f[10] = a | box;
        state.f[11] = b | box;
        state.f[12] = d | box;
        state.fcsr = frm << 5;
        machine_.hart.set_state(state);
        machine_.hart.run(1);
        state = machine_.hart.state();
        EXPECT_EQ(state.pc, kRam + 4);
        flags = state.fcsr & 31;
        return state.f[13] & ~box;
    }

  private:
    Machine machine_{fp_config()};
};

void check(bool is_double) {
    const Operand operand = floating(is_double ? reference::kF64 : reference::kF32);
    std::mt19937_64 random(seed());
    Scalar scalar;
    for (unsigned round = 0; round < 1000; ++round) {
        const std::uint64_t a = interesting(operand, random);
        const std::uint64_t b = interesting(operand, random);
        const std::uint64_t d = interesting(operand, random);
        const auto frm = static_cast<unsigned>(random() % 5);
        for (const Pair& pair : kPairs) {
            std::uint8_t flags = 0;
            const std::uint64_t want = scalar.compute(pair, is_double, a, b, d, frm, flags);
            for (const Simd simd : usable_simd()) {
                std::uint64_t result = d;
                VectorOperands o;
                o.vd = reinterpret_cast<std::uint8_t*>(&result);
                o.vs2 = reinterpret_cast<const std::uint8_t*>(&a);
                o.vs1 = reinterpret_cast<const std::uint8_t*>(&b);
                o.vl = o.vlmax = 1;
                o.frm = static_cast<std::uint8_t>(frm);
                run_kernel(kernel_of(simd, pair.vector, is_double ? 6 : 5), o);
                ASSERT_EQ(result & (is_double ? ~0ull : 0xffffffffull), want)
                    << row(pair.vector).name << " " << to_string(simd) << std::hex << " of " << a << " and "
                    << b;
                ASSERT_EQ(o.fflags, flags) << row(pair.vector).name << " " << to_string(simd) << std::hex
                                           << " of " << a << " and " << b;
            }
        }
    }
}

TEST(VectorFp, AgreesWithScalarsOfSinglePrecision) {
    check(false);
}
TEST(VectorFp, AgreesWithScalarsOfDoublePrecision) {
    check(true);
}

}  // namespace
}  // namespace orrery::emu::test
