// Vector loads and stores: which bytes move, and what stays precise when one cannot.
#include <numeric>

#include "tests/unit/core/vector/vector_machine.h"

namespace orrery::emu::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Halves = std::vector<std::uint16_t>;
using Words = std::vector<std::uint32_t>;

constexpr std::uint64_t kData = kRam + 0x8000;
constexpr std::uint64_t kEnd = kRam + kRamBytes;

template <class T>
std::vector<T> counted(std::size_t count, T from = 1) {
    std::vector<T> values(count);
    std::iota(values.begin(), values.end(), from);
    return values;
}

struct MemoryMachine : VectorMachine {
    using VectorMachine::VectorMachine;
    template <class T>
    void fill(std::uint64_t va, const std::vector<T>& values) {
        std::memcpy(bus.ram() + (va - kRam), values.data(), values.size() * sizeof(T));
    }
    template <class T>
    std::vector<T> memory(std::uint64_t va, std::size_t count) {
        std::vector<T> values(count);
        std::memcpy(values.data(), bus.ram() + (va - kRam), count * sizeof(T));
        return values;
    }
    // Expects a fault at element `vstart` of the instruction.
    void fault(Word instruction, Cause cause, std::uint64_t tval, std::uint64_t vstart) {
        hart.set_pc(kRam);
        code({instruction});
        const std::uint64_t steps = hart.steps();
        ASSERT_EQ(hart.run(1), StopReason::kTrap);
        EXPECT_EQ(hart.trap().cause, cause);
        EXPECT_EQ(hart.trap().tval, tval);
        EXPECT_EQ(hart.pc(), kRam);
        EXPECT_EQ(hart.steps(), steps);
        EXPECT_EQ(hart.vector_state().vstart, vstart);
    }
};

TEST(VectorMemory, UnitStride) {
    MemoryMachine m(128);
    m.fill<std::uint32_t>(kData, counted<std::uint32_t>(8));
    m.configure(e32, m2, 7);
    m.hart.set_x(a0, kData);
    m.hart.set_x(a1, kData + 0x100);
    m.set<std::uint32_t>(4, Words(8, 99));
    m.run(v(VectorOp::kVle32V, 4, 0, a0));
    EXPECT_EQ(m.get<std::uint32_t>(4, 8), (Words{1, 2, 3, 4, 5, 6, 7, 99}));
    m.run(v(VectorOp::kVse32V, 4, 0, a1));
    EXPECT_EQ(m.memory<std::uint32_t>(kData + 0x100, 8), (Words{1, 2, 3, 4, 5, 6, 7, 0}));
    // EEW other than SEW: EMUL follows.
    m.configure(e16, m2, 16);
    m.run(v(VectorOp::kVle8V, 5, 0, a0));
    EXPECT_EQ(m.get<std::uint8_t>(5, 8), (Bytes{1, 0, 0, 0, 2, 0, 0, 0}));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVle32V, 6, 0, a0)));
    m.configure(e8, m2, 16);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVle64V, 8, 0, a0)));
    m.configure(e64, m1, 1);
    // EMUL 1/8 is the least there is.
    m.run(v(VectorOp::kVle8V, 8, 0, a0));
    m.configure(e32, mf2, 1);
    m.run(v(VectorOp::kVle8V, 8, 0, a0));
    m.configure(e16, mf4, 1);
    m.run(v(VectorOp::kVle8V, 8, 0, a0));
}

TEST(VectorMemory, MaskedMovesActiveElementsOnly) {
    for (const Simd simd : {Simd::kPortable, Simd::kAvx2, Simd::kAvx512}) {
        Config config = vector_config(1024);
        config.simd = simd;
        MemoryMachine m(config);
        for (const auto& [sew, bytes] : {std::pair(e8, 1u), {e16, 2u}, {e32, 4u}, {e64, 8u}}) {
            const unsigned count = 128 / bytes - 3;
            m.configure(sew, m1, count);
            Bytes mask(128);
            for (unsigned i = 0; i < 128; ++i)
                mask[i] = static_cast<std::uint8_t>(i < 5 ? 0xff : i * 37);
            const auto active = [&](unsigned i) { return (mask[i / 8] >> (i % 8) & 1) != 0; };
            m.set<std::uint8_t>(0, mask);
            // Elements that lie across the end of a page, misaligned.
            const std::uint64_t va = kData + 0x1000 - 61;
            m.fill<std::uint8_t>(va, counted<std::uint8_t>(128));
            m.fill<std::uint8_t>(kData + 0x4000 - 35, Bytes(140, 200));
            m.set<std::uint8_t>(3, Bytes(128, 100));
            m.hart.set_x(a0, va);
            m.hart.set_x(a1, kData + 0x4000 - 33);
            const VectorOp loads[] = {VectorOp::kVle8V, VectorOp::kVle16V, VectorOp::kVle32V,
                                      VectorOp::kVle64V};
            const VectorOp stores[] = {VectorOp::kVse8V, VectorOp::kVse16V, VectorOp::kVse32V,
                                       VectorOp::kVse64V};
            m.run(v(loads[sew], 3, 0, a0, true));
            m.run(v(stores[sew], 3, 0, a1, true));
            const Bytes got = m.get<std::uint8_t>(3, 128);
            const Bytes put = m.memory<std::uint8_t>(kData + 0x4000 - 33, 128);
            for (unsigned i = 0; i < 128; ++i) {
                const bool moved = i / bytes < count && active(i / bytes);
                EXPECT_EQ(got[i], moved ? i + 1 : 100) << i;
                EXPECT_EQ(put[i], moved ? i + 1 : 200) << i;
            }
            EXPECT_EQ(m.memory<std::uint8_t>(kData + 0x4000 - 35, 2), (Bytes{200, 200}));
        }
        EXPECT_TRUE(m.illegal(v(VectorOp::kVle8V, 0, 0, a0, true)));
    }
}

TEST(VectorMemory, Strided) {
    MemoryMachine m(128);
    m.fill<std::uint16_t>(kData, counted<std::uint16_t>(64));
    m.configure(e16, m1, 8);
    m.hart.set_x(a0, kData + 40);
    m.hart.set_x(a1, static_cast<std::uint64_t>(-6));
    m.run(v(VectorOp::kVlse16V, 4, a1, a0));
    EXPECT_EQ(m.get<std::uint16_t>(4, 8), (Halves{21, 18, 15, 12, 9, 6, 3, 0}));
    m.hart.set_x(a1, 0);
    m.run(v(VectorOp::kVsse16V, 4, a1, a0));
    EXPECT_EQ(m.bus.get<std::uint16_t>(kData + 40), 0u);  // the last one
    m.run(v(VectorOp::kVlse16V, 4, x0, a0));
    EXPECT_EQ(m.get<std::uint16_t>(4, 8), Halves(8, 0));
}

TEST(VectorMemory, Indexed) {
    MemoryMachine m(128);
    m.fill<std::uint32_t>(kData, counted<std::uint32_t>(64, 0));
    m.configure(e32, m1, 4);
    m.hart.set_x(a0, kData);
    m.set<std::uint8_t>(2, {4, 255 - 3, 0, 8});
    m.run(v(VectorOp::kVluxei8V, 4, 2, a0));
    EXPECT_EQ(m.get<std::uint32_t>(4, 4), (Words{1, 63, 0, 2}));
    m.set<std::uint64_t>(2, {static_cast<std::uint64_t>(-4), 12, 12, 16});
    m.hart.set_x(a0, kData + 0x100);
    m.run(v(VectorOp::kVsoxei64V, 4, 2, a0));
    EXPECT_EQ(m.memory<std::uint32_t>(kData + 0xfc, 6), (Words{1, 0, 0, 0, 0, 2}));
    EXPECT_EQ(m.bus.get<std::uint32_t>(kData + 0x10c), 0u);  // in order: the third after the second
    // Groups: the data's is LMUL, the index's its own.
    EXPECT_TRUE(m.illegal(v(VectorOp::kVluxei64V, 4, 3, a0)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVluxei64V, 3, 2, a0)));
    m.hart.set_x(a0, kData);
    m.set<std::uint64_t>(2, {4, 0, 8, 12});
    m.run(v(VectorOp::kVluxei64V, 2, 2, a0));
    EXPECT_EQ(m.get<std::uint32_t>(2, 4), (Words{1, 0, 2, 3}));
    // Not with segments.
    EXPECT_TRUE(m.illegal(v(VectorOp::kVluxei32V, 4, 5, a0, false, 2)));
    m.configure(e32, m8, 4);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVluxei64V, 8, 16, a0)));
}

TEST(VectorMemory, Segments) {
    MemoryMachine m(128);
    for (const std::uint64_t va : {kData, kData + 0x1000 - 17}) {
        m.fill<std::uint8_t>(va, counted<std::uint8_t>(24));
        m.configure(e8, m1, 8);
        m.hart.set_x(a0, va);
        m.run(v(VectorOp::kVle8V, 4, 0, a0, false, 3));
        EXPECT_EQ(m.get<std::uint8_t>(4, 8), (Bytes{1, 4, 7, 10, 13, 16, 19, 22}));
        EXPECT_EQ(m.get<std::uint8_t>(5, 8), (Bytes{2, 5, 8, 11, 14, 17, 20, 23}));
        EXPECT_EQ(m.get<std::uint8_t>(6, 8), (Bytes{3, 6, 9, 12, 15, 18, 21, 24}));
        m.hart.set_x(a0, va + 0x3000);
        m.run(v(VectorOp::kVse8V, 4, 0, a0, false, 3));
        EXPECT_EQ(m.memory<std::uint8_t>(va + 0x3000, 25)[23], 24u);
        EXPECT_EQ(m.memory<std::uint8_t>(va + 0x3000, 24), m.memory<std::uint8_t>(va, 24));
    }
    // By the element: strided and indexed.
    m.configure(e16, m1, 2);
    m.hart.set_x(a0, kData);
    m.hart.set_x(a1, 8);
    m.fill<std::uint16_t>(kData, counted<std::uint16_t>(12));
    m.run(v(VectorOp::kVlse16V, 8, a1, a0, false, 2));
    EXPECT_EQ(m.get<std::uint16_t>(8, 2), (Halves{1, 5}));
    EXPECT_EQ(m.get<std::uint16_t>(9, 2), (Halves{2, 6}));
    m.set<std::uint8_t>(2, {4, 0});
    m.run(v(VectorOp::kVluxei8V, 8, 2, a0, false, 2));
    EXPECT_EQ(m.get<std::uint16_t>(8, 2), (Halves{3, 1}));
    EXPECT_EQ(m.get<std::uint16_t>(9, 2), (Halves{4, 2}));
    // At most eight registers, and none behind v31.
    m.configure(e8, m2, 2);
    m.run(v(VectorOp::kVle8V, 24, 0, a0, false, 4));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVle8V, 8, 0, a0, false, 5)));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVle8V, 26, 0, a0, false, 4)));
}

TEST(VectorMemory, MasksAndWholeRegisters) {
    MemoryMachine m(128);
    m.fill<std::uint8_t>(kData, counted<std::uint8_t>(64));
    m.hart.set_x(a0, kData);
    m.hart.set_x(a1, kData + 0x100);
    m.configure(e8, m1, 11);
    m.run(v(VectorOp::kVlmV, 4, 0, a0));
    EXPECT_EQ(m.get<std::uint8_t>(4, 3), (Bytes{1, 2, 0}));
    m.run(v(VectorOp::kVsmV, 4, 0, a1));
    EXPECT_EQ(m.memory<std::uint8_t>(kData + 0x100, 3), (Bytes{1, 2, 0}));
    // Whatever vl and vtype are.
    m.state = m.hart.vector_state();
    m.state.vtype = 1ull << 63;
    m.hart.set_vector_state(m.state);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVlmV, 4, 0, a0)));
    m.run(v(VectorOp::kVl2re64V, 6, 0, a0));
    Bytes expected = counted<std::uint8_t>(32);
    expected.push_back(0);
    EXPECT_EQ(m.get<std::uint8_t>(6, 33), expected);
    m.run(v(VectorOp::kVs2rV, 6, 0, a1));
    EXPECT_EQ(m.memory<std::uint8_t>(kData + 0x100, 32), counted<std::uint8_t>(32));
    EXPECT_TRUE(m.illegal(v(VectorOp::kVl2re8V, 5, 0, a0)));
}

TEST(VectorMemory, FaultsNameTheElementAndAreRestartable) {
    MemoryMachine m(128);
    m.fill<std::uint32_t>(kEnd - 12, {1, 2, 3});
    m.configure(e32, m2, 8);
    m.hart.set_x(a0, kEnd - 12);
    m.set<std::uint32_t>(4, Words(8, 9));
    m.fault(v(VectorOp::kVle32V, 4, 0, a0), Cause::kLoadAccess, kEnd, 3);
    EXPECT_EQ(m.get<std::uint32_t>(4, 8), (Words{1, 2, 3, 9, 9, 9, 9, 9}));
    // The host mends it: the rest is loaded, and no element twice.
    std::vector<std::uint64_t> page(512, 0x0000'0005'0000'0004);
    m.bus.pages[kEnd] = PageRef::memory(reinterpret_cast<std::uint8_t*>(page.data()), kPageRead | kPageWrite);
    m.fill<std::uint32_t>(kEnd - 12, {7, 7, 7});
    m.hart.flush_pages();
    EXPECT_EQ(m.hart.run(1), StopReason::kBudget);
    EXPECT_EQ(m.get<std::uint32_t>(4, 8), (Words{1, 2, 3, 4, 5, 4, 5, 4}));
    // Stores likewise, with an element across the border: it is not begun.
    m.bus.pages.clear();
    m.hart.flush_pages();
    m.hart.set_x(a0, kEnd - 10);
    m.set<std::uint32_t>(4, counted<std::uint32_t>(8));
    m.fault(v(VectorOp::kVse32V, 4, 0, a0), Cause::kStoreAccess, kEnd, 2);
    EXPECT_EQ(m.memory<std::uint16_t>(kEnd - 12, 6), (Halves{7, 1, 0, 2, 0, 0}));
    // What is inactive does not fault.
    m.set<std::uint8_t>(0, {0b0000'0111});
    m.hart.set_x(a0, kEnd - 12);
    m.configure(e32, m2, 8);
    m.run(v(VectorOp::kVle32V, 4, 0, a0, true));
    // Strided, indexed, segments.
    m.hart.set_x(a1, 4);
    m.fault(v(VectorOp::kVlse32V, 4, a1, a0), Cause::kLoadAccess, kEnd, 3);
    m.configure(e32, m2, 8);
    m.set<std::uint8_t>(2, {0, 4, 8, 12});
    m.fault(v(VectorOp::kVluxei8V, 4, 2, a0), Cause::kLoadAccess, kEnd, 3);
    m.configure(e32, m2, 8);
    m.fault(v(VectorOp::kVle32V, 4, 0, a0, false, 2), Cause::kLoadAccess, kEnd, 1);
}

TEST(VectorMemory, FaultOnlyFirst) {
    MemoryMachine m(128);
    m.fill<std::uint32_t>(kEnd - 12, {1, 2, 3});
    m.configure(e32, m2, 8);
    m.hart.set_x(a0, kEnd - 12);
    m.set<std::uint32_t>(4, Words(8, 9));
    m.run(v(VectorOp::kVle32ffV, 4, 0, a0));
    EXPECT_EQ(m.hart.vector_state().vl, 3u);
    EXPECT_EQ(m.get<std::uint32_t>(4, 8), (Words{1, 2, 3, 9, 9, 9, 9, 9}));
    m.configure(e32, m2, 8);
    m.hart.set_x(a0, kEnd);
    m.fault(v(VectorOp::kVle32ffV, 4, 0, a0), Cause::kLoadAccess, kEnd, 0);
    EXPECT_EQ(m.hart.vector_state().vl, 8u);
    // All there.
    m.configure(e32, m2, 8);
    m.hart.set_x(a0, kData);
    m.run(v(VectorOp::kVle32ffV, 4, 0, a0));
    EXPECT_EQ(m.hart.vector_state().vl, 8u);
    // The first one is inactive: the fault of the second is none.
    m.set<std::uint8_t>(0, {0b0000'0010});
    m.hart.set_x(a0, kEnd);
    m.run(v(VectorOp::kVle32ffV, 4, 0, a0, true));
    EXPECT_EQ(m.hart.vector_state().vl, 1u);
}

TEST(VectorMemory, RegistersOfDevicesAreAccessedByTheElement) {
    MemoryMachine m(128);
    m.configure(e32, m1, 3);
    m.set<std::uint32_t>(4, {5, 6, 7});
    m.hart.set_x(a0, kMmio + 8);
    m.run(v(VectorOp::kVse32V, 4, 0, a0));
    EXPECT_EQ(m.bus.log, (std::vector<MmioAccess>{
                             {true, kMmio + 8, 4, 5}, {true, kMmio + 12, 4, 6}, {true, kMmio + 16, 4, 7}}));
    m.hart.set_x(a0, kMmio + 6);
    m.fault(v(VectorOp::kVle32V, 4, 0, a0), Cause::kLoadMisaligned, kMmio + 6, 0);
}

TEST(VectorMemory, StoresToCodeAreSeen) {
    MemoryMachine m(128);
    m.configure(e32, m1, 2);
    m.set<std::uint32_t>(4, {addi(a2, a2, 100), addi(a2, a2, 100)});
    m.hart.set_x(a0, kRam);
    m.code({addi(a2, a2, 1), addi(a2, a2, 1), v(VectorOp::kVse32V, 4, 0, a0), jal(x0, -12)});
    m.hart.run(6);
    EXPECT_EQ(m.hart.x(a2), 202u);
}

}  // namespace
}  // namespace orrery::emu::test
