// What holds for all arithmetic instructions: which elements change, and what is illegal.
#include "tests/unit/core/vector/vector_machine.h"

namespace orrery::emu::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Halves = std::vector<std::uint16_t>;
using Words = std::vector<std::uint32_t>;
using Doubles = std::vector<std::uint64_t>;

TEST(VectorRules, TailStaysAsItIs) {
    VectorMachine m(128);
    m.configure(e32, m1, 2);
    m.set<std::uint32_t>(1, {1, 2, 3, 4});
    m.set<std::uint32_t>(2, {10, 20, 30, 40});
    m.set<std::uint32_t>(3, {7, 7, 7, 7});
    m.run(v(VectorOp::kVaddVv, 3, 2, 1));
    EXPECT_EQ(m.get<std::uint32_t>(3, 4), (Words{11, 22, 7, 7}));
    EXPECT_EQ(m.get<std::uint32_t>(2, 4), (Words{10, 20, 30, 40}));
}

TEST(VectorRules, InactiveElementsStayAsTheyAre) {
    VectorMachine m(128);
    for (const Word policy : {0u, 3u << 6}) {  // agnostic is undisturbed too
        m.configure(e16, m1, 7);
        m.state.vtype |= policy;
        m.hart.set_vector_state(m.state);
        m.set<std::uint8_t>(0, {0b1010'0101});
        m.set<std::uint16_t>(1, {1, 2, 3, 4, 5, 6, 7, 8});
        m.set<std::uint16_t>(3, Halves(8, 100));
        m.run(v(VectorOp::kVaddVv, 3, 1, 1, true));
        EXPECT_EQ(m.get<std::uint16_t>(3, 8), (Halves{2, 100, 6, 100, 100, 12, 100, 100}));
    }
}

TEST(VectorRules, NothingHappensFromVlOn) {
    VectorMachine m(128);
    m.set<std::uint32_t>(1, {1, 2, 3, 4});
    for (const auto [vl, vstart] : {std::pair(0u, 0u), std::pair(2u, 2u), std::pair(2u, 3u)}) {
        for (const VectorOp op :
             {VectorOp::kVaddVi, VectorOp::kVmvVI, VectorOp::kVmvSX, VectorOp::kVmseqVi}) {
            m.configure(e32, m1, vl, vstart);
            m.run(v(op, 1, 1, 1));
        }
        EXPECT_EQ(m.get<std::uint32_t>(1, 4), (Words{1, 2, 3, 4}));
    }
    m.configure(e32, m1, 0);
    m.set<std::uint32_t>(2, {9});
    m.run(v(VectorOp::kVredsumVs, 1, 2, 2));
    EXPECT_EQ(m.get<std::uint32_t>(1, 4), (Words{1, 2, 3, 4}));
    // But a scalar register is written.
    m.run(v(VectorOp::kVmvXS, a0, 2, 0));
    EXPECT_EQ(m.hart.x(a0), 9u);
    m.run(v(VectorOp::kVcpopM, a0, 2, 0));
    EXPECT_EQ(m.hart.x(a0), 0u);
    m.run(v(VectorOp::kVfirstM, a0, 2, 0));
    EXPECT_EQ(m.hart.x(a0), ~0ull);
}

TEST(VectorRules, VstartSkipsElements) {
    VectorMachine m(128);
    m.configure(e32, m1, 4, 2);
    m.set<std::uint32_t>(1, {1, 2, 3, 4});
    m.run(v(VectorOp::kVaddVi, 1, 1, 1));
    EXPECT_EQ(m.get<std::uint32_t>(1, 4), (Words{1, 2, 4, 5}));
    m.configure(e8, m1, 16, 3);
    m.set<std::uint8_t>(1, Bytes(16, 5));
    m.set<std::uint8_t>(2, {0, 0, 0});
    m.run(v(VectorOp::kVmseqVi, 2, 1, 5));
    EXPECT_EQ(m.get<std::uint8_t>(2, 2), (Bytes{0xf8, 0xff}));
    m.configure(e32, m1, 4, 1);
    m.set<std::uint32_t>(2, {9, 9, 9, 9});
    m.set<std::uint32_t>(3, {1, 2, 3, 4});
    m.run(v(VectorOp::kVslideupVi, 2, 3, 0));
    EXPECT_EQ(m.get<std::uint32_t>(2, 4), (Words{9, 2, 3, 4}));
    // Where all elements count from the first there is no start in between.
    for (const VectorOp op : {VectorOp::kVredsumVs, VectorOp::kVcpopM, VectorOp::kVfirstM, VectorOp::kVmsbfM,
                              VectorOp::kViotaM, VectorOp::kVcompressVm}) {
        m.configure(e32, m1, 4, 1);
        EXPECT_TRUE(m.illegal(v(op, 1, 2, 3)));
    }
}

TEST(VectorRules, GroupsAreAligned) {
    VectorMachine m(128);
    m.configure(e8, m4, 64);
    m.run(v(VectorOp::kVaddVv, 4, 8, 12));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVaddVv, 2, 8, 12)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVaddVv, 4, 10, 12)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVaddVv, 4, 8, 13)));
    m.run(v(VectorOp::kVaddVx, 4, 8, 13));
    // EMUL of what is twice as wide is 8, and 16 there is not.
    EXPECT_TRUE(m.illegal(v(VectorOp::kVwaddVv, 4, 16, 20)));
    m.run(v(VectorOp::kVwaddVv, 8, 16, 20));
    m.configure(e8, m8, 128);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVwaddVv, 8, 16, 24)));
    // Nor elements of 128 bits.
    m.configure(e64, m1, 2);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVwaddVv, 8, 16, 24)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVnsrlWi, 8, 16, 1)));
    // Nor of 4.
    m.configure(e8, m1, 2);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVzextVf2, 8, 16, 0)));
    m.configure(e16, m1, 2);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVzextVf4, 8, 16, 0)));
    // Masks and the elements of reductions lie in any register.
    m.configure(e8, m8, 128);
    m.run(v(VectorOp::kVmseqVv, 1, 8, 16));
    m.run(v(VectorOp::kVredsumVs, 1, 8, 3));
}

TEST(VectorRules, WhichGroupsMayOverlap) {
    VectorMachine m(128);
    m.configure(e8, m2, 32);
    // Wider: sources in the highest part.
    m.run(v(VectorOp::kVwaddVv, 8, 10, 12));
    m.run(v(VectorOp::kVwaddVv, 8, 12, 10));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVwaddVv, 8, 8, 12)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVwaddVv, 8, 12, 8)));
    m.run(v(VectorOp::kVwaddWv, 8, 8, 10));
    // Narrower: in the lowest.
    m.run(v(VectorOp::kVnsrlWi, 8, 8, 1));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVnsrlWi, 10, 8, 1)));
    m.run(v(VectorOp::kVmseqVv, 8, 8, 12));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVmseqVv, 9, 8, 12)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVmseqVv, 9, 12, 8)));
    // A fraction of a register has no part of its own.
    m.configure(e8, mf2, 8);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVwaddVv, 8, 8, 9)));
    m.configure(e16, m1, 8);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVzextVf2, 8, 8, 0)));
    m.configure(e16, m2, 8);
    m.run(v(VectorOp::kVzextVf2, 8, 9, 0));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVzextVf2, 8, 8, 0)));
    // Never, of those that read elements out of order.
    m.configure(e8, m1, 16);
    for (const VectorOp op : {VectorOp::kVrgatherVv, VectorOp::kVslideupVi, VectorOp::kVslide1upVx,
                              VectorOp::kVcompressVm, VectorOp::kViotaM, VectorOp::kVmsbfM}) {
        EXPECT_TRUE(m.illegal(v(op, 4, 4, 1)));
        m.run(v(op, 4, 5, 1));
    }
    EXPECT_TRUE(m.illegal(v(VectorOp::kVrgatherVv, 4, 5, 4)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVcompressVm, 4, 5, 4)));
    m.run(v(VectorOp::kVslidedownVi, 4, 4, 1));
    m.run(v(VectorOp::kVslide1downVx, 4, 4, 1));
    // The indices of vrgatherei16 have a group of another size.
    m.configure(e8, m1, 16);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVrgatherei16Vv, 4, 5, 7)));
    m.run(v(VectorOp::kVrgatherei16Vv, 4, 5, 6));
    m.configure(e8, m8, 16);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVrgatherei16Vv, 8, 16, 24)));
}

TEST(VectorRules, OverlapGivesWhatItGaveApart) {
    VectorMachine m(128);
    m.configure(e8, m1, 16);
    Bytes values(16);
    for (unsigned i = 0; i < 16; ++i)
        values[i] = static_cast<std::uint8_t>(i * 7 + 1);
    m.set<std::uint8_t>(3, values);
    m.run(v(VectorOp::kVwadduVv, 2, 3, 3));
    Halves doubled(16);
    for (unsigned i = 0; i < 16; ++i)
        doubled[i] = static_cast<std::uint16_t>(2 * values[i]);
    EXPECT_EQ(m.get<std::uint16_t>(2, 16), doubled);
    m.run(v(VectorOp::kVnsrlWi, 2, 2, 1));
    EXPECT_EQ(m.get<std::uint8_t>(2, 16), values);
    m.run(v(VectorOp::kVmsgtuVi, 2, 2, 15));
    EXPECT_EQ(m.get<std::uint8_t>(2, 2), (Bytes{0xf8, 0xff}));
}

TEST(VectorRules, V0IsTheMask) {
    VectorMachine m(128);
    m.configure(e8, m1, 16);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVaddVv, 0, 1, 2, true)));
    m.run(v(VectorOp::kVaddVv, 0, 1, 2));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVadcVvm, 0, 1, 2)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVmergeVvm, 0, 1, 2)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVmsbfM, 0, 1, 0, true)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kViotaM, 0, 1, 0, true)));
    m.run(v(VectorOp::kVmsbfM, 0, 1, 0));
    // Comparisons may write it, and see it as it was.
    m.set<std::uint8_t>(0, {0b0000'1111, 0});
    m.set<std::uint8_t>(1, {1, 0, 1, 0, 1, 0, 1, 0});
    m.run(v(VectorOp::kVmseqVi, 0, 1, 1, true));
    EXPECT_EQ(m.get<std::uint8_t>(0, 2), (Bytes{0b0000'0101, 0}));
    m.set<std::uint8_t>(0, {0b0000'0011, 0});
    m.run(v(VectorOp::kVredsumVs, 0, 1, 1, true));
    EXPECT_EQ(m.get<std::uint8_t>(0, 2), (Bytes{2, 0}));
    m.set<std::uint8_t>(0, {0b0000'0011, 0});
    m.set<std::uint8_t>(2, Bytes(16, 255));
    m.run(v(VectorOp::kVmadcVvm, 0, 1, 2));
    EXPECT_EQ(m.get<std::uint8_t>(0, 2), (Bytes{0b0101'0111, 0}));
}

TEST(VectorRules, TheRegistersAreLookedAtForEachVtype) {
    VectorMachine m(128);
    m.code({vsetivli(x0, 8, vtype(e8, m1)), v(VectorOp::kVaddVi, 1, 1, 1), vsetivli(x0, 8, vtype(e8, m2)),
            ecall()});
    m.hart.run(3);
    m.hart.set_pc(kRam + 4);
    EXPECT_EQ(m.hart.run(1), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kIllegal);
}

TEST(VectorRules, WholeRegistersMoveWhateverVlIs) {
    VectorMachine m(128);
    m.configure(e8, m1, 0);
    m.set<std::uint64_t>(4, {1, 2, 3, 4});
    m.run(v(VectorOp::kVmv2rV, 8, 4, 0));
    EXPECT_EQ(m.get<std::uint64_t>(8, 5), (Doubles{1, 2, 3, 4, 0}));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVmv2rV, 8, 5, 0)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVmv4rV, 6, 4, 0)));
    m.configure(e64, m1, 0, 1);
    m.run(v(VectorOp::kVmv1rV, 10, 4, 0));
    EXPECT_EQ(m.get<std::uint64_t>(10, 2), (Doubles{0, 2}));
}

}  // namespace
}  // namespace orrery::emu::test
