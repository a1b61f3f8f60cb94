// Integer arithmetic, masks, reductions and permutations: known values, and the same bits from all kinds of
// host.
#include <random>

#include "emulator/core/vector/kernels.h"
#include "tests/unit/core/vector/vector_machine.h"

namespace orrery::emu::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Halves = std::vector<std::uint16_t>;
using Words = std::vector<std::uint32_t>;

// vd of vs2 = a, vs1 = b, bytes.
Bytes of(VectorOp op, const Bytes& a, const Bytes& b, const Bytes& d = {}) {
    VectorMachine m(128);
    m.configure(e8, m1, a.size());
    m.set<std::uint8_t>(2, a);
    m.set<std::uint8_t>(1, b);
    m.set<std::uint8_t>(3, d);
    m.run(v(op, 3, 2, 1));
    return m.get<std::uint8_t>(3, a.size());
}

TEST(VectorInteger, DivisionHasNoExceptions) {
    const Bytes a = {7, 0x80, 0x80, 0xf9, 100}, b = {0, 0xff, 0, 2, 0xfe};
    EXPECT_EQ(of(VectorOp::kVdivVv, a, b), (Bytes{0xff, 0x80, 0xff, 0xfd, 0xce}));
    EXPECT_EQ(of(VectorOp::kVdivuVv, a, b), (Bytes{0xff, 0, 0xff, 124, 0}));
    EXPECT_EQ(of(VectorOp::kVremVv, a, b), (Bytes{7, 0, 0x80, 0xff, 0}));
    EXPECT_EQ(of(VectorOp::kVremuVv, a, b), (Bytes{7, 0x80, 0x80, 1, 100}));
}

TEST(VectorInteger, HighHalvesAndShifts) {
    const Bytes a = {0xff, 0x80, 0x7f}, b = {0xff, 0xff, 0x02};
    EXPECT_EQ(of(VectorOp::kVmulhVv, a, b), (Bytes{0, 0, 0}));
    EXPECT_EQ(of(VectorOp::kVmulhuVv, a, b), (Bytes{0xfe, 0x7f, 0}));
    EXPECT_EQ(of(VectorOp::kVmulhsuVv, a, b), (Bytes{0xff, 0x80, 0}));
    // Only log2(SEW) bits count.
    EXPECT_EQ(of(VectorOp::kVsllVv, {1, 1}, {9, 255}), (Bytes{2, 0x80}));
    EXPECT_EQ(of(VectorOp::kVsraVv, {0x80, 0x80}, {9, 255}), (Bytes{0xc0, 0xff}));
    EXPECT_EQ(of(VectorOp::kVsrlVv, {0x80, 0x80}, {9, 255}), (Bytes{0x40, 1}));
}

TEST(VectorInteger, MultiplyAddTakesItsOperandsAsNamed) {
    const Bytes a = {3}, b = {5}, d = {100};
    EXPECT_EQ(of(VectorOp::kVmaccVv, a, b, d), Bytes{115});
    EXPECT_EQ(of(VectorOp::kVnmsacVv, a, b, d), Bytes{85});
    EXPECT_EQ(of(VectorOp::kVmaddVv, a, b, d), Bytes{static_cast<std::uint8_t>(503)});
    EXPECT_EQ(of(VectorOp::kVnmsubVv, a, b, d), Bytes{static_cast<std::uint8_t>(3 - 500)});
}

TEST(VectorInteger, SignsOfMixedWidening) {
    VectorMachine m(128);
    const auto wide = [&](VectorOp op, std::uint8_t two, std::uint8_t one) {
        m.configure(e8, m1, 1);
        m.set<std::uint8_t>(2, {two});
        m.set<std::uint8_t>(1, {one});
        m.set<std::uint16_t>(4, {1000});
        m.hart.set_x(1, one);
        m.run(v(op, 4, 2, 1));
        return m.get<std::uint16_t>(4, 1)[0];
    };
    EXPECT_EQ(wide(VectorOp::kVwmulsuVv, 0xff, 0xff), static_cast<std::uint16_t>(-255));
    EXPECT_EQ(wide(VectorOp::kVwmaccsuVv, 0xff, 0xff), 1000 - 255);  // vs1 is signed
    EXPECT_EQ(wide(VectorOp::kVwmaccsuVv, 0xff, 0x01), 1000 + 255);
    EXPECT_EQ(wide(VectorOp::kVwmaccusVx, 0xff, 0x02), 1000 - 2);  // vs2 is signed
    EXPECT_EQ(wide(VectorOp::kVwmaccusVx, 0x01, 0xff), 1000 + 255);
    EXPECT_EQ(wide(VectorOp::kVwsubuVv, 1, 2), 0xffff);
    EXPECT_EQ(wide(VectorOp::kVwsubVx, 0x80, 0x7f), static_cast<std::uint16_t>(-255));
}

TEST(VectorInteger, ScalarsAndImmediates) {
    VectorMachine m(128);
    m.configure(e64, m1, 1);
    m.set<std::uint64_t>(2, {5});
    m.run(v(VectorOp::kVaddVi, 3, 2, 0x1f));
    EXPECT_EQ(m.get<std::uint64_t>(3, 1)[0], 4u);
    m.run(v(VectorOp::kVrsubVi, 3, 2, 0x10));
    EXPECT_EQ(m.get<std::uint64_t>(3, 1)[0], static_cast<std::uint64_t>(-21));
    m.run(v(VectorOp::kVsllVi, 3, 2, 0x1f));
    EXPECT_EQ(m.get<std::uint64_t>(3, 1)[0], 5ull << 31);
    m.run(v(VectorOp::kVmsgtuVi, 3, 2, 0x1f));
    EXPECT_EQ(m.get<std::uint8_t>(3, 1)[0] & 1, 0);
    // To a scalar register signed, of the element's width.
    m.configure(e16, m1, 1);
    m.set<std::uint16_t>(2, {0x8001});
    m.run(v(VectorOp::kVmvXS, a0, 2, 0));
    EXPECT_EQ(m.hart.x(a0), 0xffffffffffff8001u);
    m.hart.set_x(a1, 0x12345);
    m.run(v(VectorOp::kVmvSX, 3, 0, a1));
    EXPECT_EQ(m.get<std::uint16_t>(3, 1)[0], 0x2345);
}

TEST(VectorInteger, CarriesAndBorrows) {
    VectorMachine m(128);
    m.configure(e8, m1, 4);
    m.set<std::uint8_t>(0, {0b0101});
    m.set<std::uint8_t>(2, {255, 255, 1, 0});
    m.set<std::uint8_t>(1, {0, 0, 1, 0});
    m.run(v(VectorOp::kVadcVvm, 3, 2, 1));
    EXPECT_EQ(m.get<std::uint8_t>(3, 4), (Bytes{0, 255, 3, 0}));
    m.run(v(VectorOp::kVmadcVvm, 3, 2, 1));
    EXPECT_EQ(m.get<std::uint8_t>(3, 1)[0] & 15, 0b0001);
    m.run(v(VectorOp::kVsbcVvm, 3, 1, 2));
    EXPECT_EQ(m.get<std::uint8_t>(3, 4), (Bytes{0, 1, 255, 0}));
    m.run(v(VectorOp::kVmsbcVvm, 3, 1, 2));
    EXPECT_EQ(m.get<std::uint8_t>(3, 1)[0] & 15, 0b0111);
    m.run(v(VectorOp::kVmsbcVv, 3, 1, 2));
    EXPECT_EQ(m.get<std::uint8_t>(3, 1)[0] & 15, 0b0011);
    m.run(v(VectorOp::kVmergeVim, 3, 2, 7));
    EXPECT_EQ(m.get<std::uint8_t>(3, 4), (Bytes{7, 255, 7, 0}));
}

TEST(VectorInteger, Masks) {
    VectorMachine m(128);
    m.configure(e8, m1, 12);
    m.set<std::uint8_t>(2, {0b0100'1000, 0xff});
    m.set<std::uint8_t>(0, {0b1111'0000, 0b0000'0101});
    m.run(v(VectorOp::kVcpopM, a0, 2, 0));
    EXPECT_EQ(m.hart.x(a0), 6u);
    m.run(v(VectorOp::kVcpopM, a0, 2, 0, true));
    EXPECT_EQ(m.hart.x(a0), 3u);
    m.run(v(VectorOp::kVfirstM, a0, 2, 0));
    EXPECT_EQ(m.hart.x(a0), 3u);
    m.run(v(VectorOp::kVfirstM, a0, 2, 0, true));
    EXPECT_EQ(m.hart.x(a0), 6u);
    const auto mask = [&](VectorOp op, bool masked) {
        m.set<std::uint8_t>(3, {0b1010'1010, 0b1010'1010});
        m.run(v(op, 3, 2, 0, masked));
        return m.get<std::uint8_t>(3, 2);
    };
    EXPECT_EQ(mask(VectorOp::kVmsbfM, false), (Bytes{0b0000'0111, 0b1010'0000}));
    EXPECT_EQ(mask(VectorOp::kVmsifM, false), (Bytes{0b0000'1111, 0b1010'0000}));
    EXPECT_EQ(mask(VectorOp::kVmsofM, false), (Bytes{0b0000'1000, 0b1010'0000}));
    EXPECT_EQ(mask(VectorOp::kVmsbfM, true), (Bytes{0b0011'1010, 0b1010'1010}));
    EXPECT_EQ(mask(VectorOp::kVmsifM, true), (Bytes{0b0111'1010, 0b1010'1010}));
    EXPECT_EQ(mask(VectorOp::kVmsofM, true), (Bytes{0b0100'1010, 0b1010'1010}));
    m.set<std::uint8_t>(2, {0, 0});
    EXPECT_EQ(mask(VectorOp::kVmsbfM, false), (Bytes{0xff, 0b1010'1111}));
    EXPECT_EQ(mask(VectorOp::kVmsofM, false), (Bytes{0, 0b1010'0000}));
    m.set<std::uint8_t>(2, {0b1001'0001, 0});
    m.set<std::uint8_t>(4, Bytes(12, 99));
    m.run(v(VectorOp::kViotaM, 4, 2, 0, true));
    EXPECT_EQ(m.get<std::uint8_t>(4, 12), (Bytes{99, 99, 99, 99, 0, 1, 1, 1, 2, 99, 2, 99}));
    m.run(v(VectorOp::kVidV, 4, 0, 0, true));
    EXPECT_EQ(m.get<std::uint8_t>(4, 12), (Bytes{99, 99, 99, 99, 4, 5, 6, 7, 8, 99, 10, 99}));
    m.set<std::uint8_t>(2, {0b1100, 0});
    m.set<std::uint8_t>(1, {0b1010, 0});
    const auto logic = [&](VectorOp op) {
        m.run(v(op, 3, 2, 1));
        return m.get<std::uint8_t>(3, 1)[0] & 15;
    };
    EXPECT_EQ(logic(VectorOp::kVmandMm), 0b1000);
    EXPECT_EQ(logic(VectorOp::kVmnandMm), 0b0111);
    EXPECT_EQ(logic(VectorOp::kVmandnMm), 0b0100);
    EXPECT_EQ(logic(VectorOp::kVmxorMm), 0b0110);
    EXPECT_EQ(logic(VectorOp::kVmorMm), 0b1110);
    EXPECT_EQ(logic(VectorOp::kVmnorMm), 0b0001);
    EXPECT_EQ(logic(VectorOp::kVmornMm), 0b1101);
    EXPECT_EQ(logic(VectorOp::kVmxnorMm), 0b1001);
}

TEST(VectorInteger, Reductions) {
    VectorMachine m(128);
    m.configure(e8, m1, 4);
    m.set<std::uint8_t>(0, {0b0110});
    m.set<std::uint8_t>(2, {0x80, 0x90, 0x7f, 0x01});
    m.set<std::uint8_t>(1, {0x05});
    m.set<std::uint8_t>(3, Bytes(16, 0xaa));
    const auto reduce = [&](VectorOp op, bool masked) {
        m.run(v(op, 3, 2, 1, masked));
        EXPECT_EQ(m.get<std::uint8_t>(3, 3)[2], 0xaa);
        return m.get<std::uint16_t>(3, 1)[0];
    };
    EXPECT_EQ(reduce(VectorOp::kVredsumVs, false), 0xaa95);
    EXPECT_EQ(reduce(VectorOp::kVredsumVs, true), 0xaa14);
    EXPECT_EQ(reduce(VectorOp::kVredminVs, false), 0xaa80);
    EXPECT_EQ(reduce(VectorOp::kVredminuVs, false), 0xaa01);
    EXPECT_EQ(reduce(VectorOp::kVredmaxVs, true), 0xaa7f);
    EXPECT_EQ(reduce(VectorOp::kVredmaxuVs, true), 0xaa90);
    EXPECT_EQ(reduce(VectorOp::kVredandVs, true), 0xaa00);
    EXPECT_EQ(reduce(VectorOp::kVredorVs, true), 0xaaff);
    EXPECT_EQ(reduce(VectorOp::kVredxorVs, true), 0xaaea);
    m.set<std::uint16_t>(1, {1});
    EXPECT_EQ(reduce(VectorOp::kVwredsumVs, true), 1 + 0x7f - 0x70);
    EXPECT_EQ(reduce(VectorOp::kVwredsumuVs, true), 1 + 0x7f + 0x90);
}

TEST(VectorInteger, Permutations) {
    VectorMachine m(128);
    m.configure(e16, m1, 6);
    m.set<std::uint16_t>(2, {10, 11, 12, 13, 14, 15, 16, 17});
    const auto permute = [&](VectorOp op, Word one, bool masked = false) {
        m.set<std::uint16_t>(3, Halves(8, 9));
        m.run(v(op, 3, 2, one, masked));
        return m.get<std::uint16_t>(3, 8);
    };
    EXPECT_EQ(permute(VectorOp::kVslideupVi, 2), (Halves{9, 9, 10, 11, 12, 13, 9, 9}));
    EXPECT_EQ(permute(VectorOp::kVslideupVi, 6), Halves(8, 9));
    // From above vl, but below VLMAX.
    EXPECT_EQ(permute(VectorOp::kVslidedownVi, 3), (Halves{13, 14, 15, 16, 17, 0, 9, 9}));
    m.hart.set_x(a0, ~0ull);
    EXPECT_EQ(permute(VectorOp::kVslidedownVx, a0), (Halves{0, 0, 0, 0, 0, 0, 9, 9}));
    EXPECT_EQ(permute(VectorOp::kVslideupVx, a0), Halves(8, 9));
    m.hart.set_x(a0, 0x1'0007);
    EXPECT_EQ(permute(VectorOp::kVslide1upVx, a0), (Halves{7, 10, 11, 12, 13, 14, 9, 9}));
    EXPECT_EQ(permute(VectorOp::kVslide1downVx, a0), (Halves{11, 12, 13, 14, 15, 7, 9, 9}));
    EXPECT_EQ(permute(VectorOp::kVrgatherVx, a0), (Halves{0, 0, 0, 0, 0, 0, 9, 9}));
    EXPECT_EQ(permute(VectorOp::kVrgatherVi, 7), (Halves{17, 17, 17, 17, 17, 17, 9, 9}));
    m.set<std::uint16_t>(1, {7, 0, 8, 65535, 1, 1});
    EXPECT_EQ(permute(VectorOp::kVrgatherVv, 1), (Halves{17, 10, 0, 0, 11, 11, 9, 9}));
    EXPECT_EQ(permute(VectorOp::kVrgatherei16Vv, 1), (Halves{17, 10, 0, 0, 11, 11, 9, 9}));
    m.set<std::uint8_t>(0, {0b0010'1110});
    EXPECT_EQ(permute(VectorOp::kVslideupVi, 2, true), (Halves{9, 9, 10, 11, 9, 13, 9, 9}));
    EXPECT_EQ(permute(VectorOp::kVrgatherVv, 1, true), (Halves{9, 10, 0, 0, 9, 11, 9, 9}));
    m.set<std::uint8_t>(1, {0b1010'1110});
    EXPECT_EQ(permute(VectorOp::kVcompressVm, 1), (Halves{11, 12, 13, 15, 9, 9, 9, 9}));
    // Eight-bit indices cannot name all elements of a long group.
    VectorMachine wide(4096);
    wide.configure(e8, m8, 4096);
    wide.set<std::uint8_t>(8, Bytes(1, 42));
    wide.set<std::uint8_t>(15, Bytes(512, 7));
    wide.hart.set_x(a0, 4095);
    wide.run(v(VectorOp::kVrgatherVx, 16, 8, a0));
    EXPECT_EQ(wide.get<std::uint8_t>(23, 512), Bytes(512, 7));
}

TEST(VectorInteger, Extensions) {
    VectorMachine m(128);
    m.configure(e64, m1, 2);
    m.set<std::uint8_t>(2, {0x80, 0xff, 0xfe, 0x01, 0, 0, 0, 0x80});
    const auto extend = [&](VectorOp op) {
        m.run(v(op, 3, 2, 0));
        return m.get<std::uint64_t>(3, 2);
    };
    using Doubles = std::vector<std::uint64_t>;
    EXPECT_EQ(extend(VectorOp::kVzextVf8), (Doubles{0x80, 0xff}));
    EXPECT_EQ(extend(VectorOp::kVsextVf8), (Doubles{~0x7full, ~0ull}));
    EXPECT_EQ(extend(VectorOp::kVzextVf4), (Doubles{0xff80, 0x1fe}));
    EXPECT_EQ(extend(VectorOp::kVsextVf4), (Doubles{0xffffffffffffff80, 0x1fe}));
    EXPECT_EQ(extend(VectorOp::kVzextVf2), (Doubles{0x1feff80, 0x80000000}));
    EXPECT_EQ(extend(VectorOp::kVsextVf2), (Doubles{0x1feff80, 0xffffffff80000000}));
}

// Each instruction on random registers, by kernels for each kind of host that this one is.
TEST(VectorInteger, AllKindsOfHostGiveTheSameBits) {
    std::mt19937_64 random(9);
    unsigned compared = 0;
    for (std::size_t number = 0; number < kVectorOps; ++number) {
        const auto op = static_cast<VectorOp>(number);
        if (row(op).has(vector_property::kLoad | vector_property::kStore | vector_property::kConfig))
            continue;
        for (const Sew sew : {e8, e16, e32, e64}) {
            for (const bool masked : {false, true}) {
                VectorState state;
                for (std::uint8_t& byte : state.v)
                    byte = static_cast<std::uint8_t>(random() % 8 == 0 ? (random() % 3) * 127 : random());
                state.vtype = vtype(sew, m2);
                state.vl = random() % 100;
                const std::uint64_t x = random(), f = random();
                const Word instruction = v(op, 4, 8, 12, masked);
                std::vector<VectorState> results;
                std::vector<HartState> harts;
                for (const Simd simd : {Simd::kPortable, Simd::kAvx2, Simd::kAvx512}) {
                    if (!simd_usable(simd)) continue;
                    Config config = vector_config(512);
                    config.simd = simd;
                    config.code_pages = 1;
                    VectorMachine m(config);
                    HartState hart = m.hart.state();
                    hart.x[12] = x;
                    hart.f[12] = f;
                    m.hart.set_state(hart);
                    m.hart.set_vector_state(state);
                    m.code({instruction});
                    m.hart.run(1);
                    results.push_back(m.hart.vector_state());
                    harts.push_back(m.hart.state());
                }
                for (std::size_t i = 1; i < results.size(); ++i) {
                    EXPECT_EQ(results[i], results[0]) << row(op).name << " SEW " << (8 << sew);
                    EXPECT_EQ(harts[i], harts[0]) << row(op).name;
                    if (!(results[i] == state)) ++compared;
                }
            }
        }
    }
    if (simd_usable(Simd::kAvx2)) EXPECT_GT(compared, 1000u);
}

}  // namespace
}  // namespace orrery::emu::test
