// Multiply-adds of one row in a run, and the loads of their scalars between them: the same as one by one.
#include <random>

#include "tests/unit/core/vector/hart_outcome.h"
#include "tests/unit/core/vector/vector_machine.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kData = kRam + 0x8000;
constexpr Word kFcsr = 0x003, kEbreak = 0x100073;

constexpr Word flw(Word rd, Word rs1, int imm) {
    return i_type(0x07, 2, rd, rs1, imm);
}
constexpr Word fld(Word rd, Word rs1, int imm) {
    return i_type(0x07, 3, rd, rs1, imm);
}
constexpr Word fma(Word vd, Word fs, Word vs2, bool masked = false) {
    return v(VectorOp::kVfmaccVf, vd, vs2, fs, masked);
}

struct Outcome : HartOutcome {
    Trap trap;
};
void expect_same(const Outcome& a, const Outcome& b) {
    expect_same_hart(a, b);
    if (a.reason != StopReason::kTrap) return;
    EXPECT_EQ(a.trap.cause, b.trap.cause);
    EXPECT_EQ(a.trap.pc, b.trap.pc);
    EXPECT_EQ(a.trap.tval, b.trap.tval);
}

struct Case {
    Simd simd = Simd::kAvx512;
    Sew sew = e32;
    Lmul lmul = m1;
    std::uint64_t vl = 64;
    std::vector<Word> code;
    double rare = 0;          // how often a number is a NaN or infinite
    std::uint64_t fault = 0;  // this page is not there
    std::vector<std::uint64_t> breakpoints = {};
};

// `again`: decoded, and executed, before; `budget`: of each call of run().
Outcome run(const Case& which, std::uint64_t budget, bool again) {
    Config config = vector_config(2048);
    config.simd = which.simd;
    config.vector_datapath = 512;
    config.memory = {.l1_bytes = 4096, .vram_cycles = 100, .host_cycles = 1000};
    VectorMachine m(config);
    for (std::uint64_t page = kData; page < kData + 0x4000; page += kPageBytes)
        m.bus.pages[page] = page == which.fault ? PageRef::fault()
                                                : PageRef::memory(m.bus.ram() + (page - kRam),
                                                                  kPageRead | kPageWrite, PagePlace::kVram);
    for (std::size_t i = 0; i < which.code.size(); ++i)
        m.bus.put(kRam + 4 * i, which.code[i]);
    m.bus.put(kRam + 4 * which.code.size(), kEbreak);
    std::mt19937 random(7);
    const auto number = [&]() -> double {
        if (std::uniform_real_distribution<>()(random) >= which.rare)
            return static_cast<double>(static_cast<int>(random() % 4001) - 2000) /
                   3;  // most sums are rounded
        const double rare[] = {NAN, INFINITY, -INFINITY, 0, 1e38};
        return rare[random() % 5];
    };
    for (std::uint64_t i = 0; i < 512; ++i) {
        if (which.sew == e64)
            m.bus.put(kData + 8 * i, number());
        else
            m.bus.put(kData + 4 * i, static_cast<float>(number()));
    }
    VectorState vectors = m.hart.vector_state();
    for (std::size_t i = 0; i < 32 * config.vlen / 8; i += which.sew == e64 ? 8 : 4) {
        const double d = number();
        const auto f = static_cast<float>(d);
        std::memcpy(vectors.v + i, which.sew == e64 ? static_cast<const void*>(&d) : &f,
                    which.sew == e64 ? 8 : 4);
    }
    vectors.vtype = vtype(which.sew, which.lmul);
    vectors.vl = which.vl;
    HartState start = m.hart.state();
    start.x[a0] = kData;
    start.x[a1] = kData + 0x1000;
    for (std::uint64_t i = 0; i < 32; ++i) {
        const auto f = static_cast<float>(i) - 9.5f;
        start.f[i] = 0xffffffff00000000 | std::bit_cast<std::uint32_t>(f);
        if (which.sew == e64) start.f[i] = std::bit_cast<std::uint64_t>(double{f});
    }
    const auto begin = [&] {
        m.hart.set_state(start);
        m.hart.set_vector_state(vectors);
        m.hart.forget_lines();
    };
    begin();
    if (again) {
        m.hart.run(1'000'000);
        begin();
    }
    if (!which.breakpoints.empty()) EXPECT_TRUE(m.hart.set_breakpoints(which.breakpoints));
    Outcome outcome;
    const std::uint64_t cycles = m.hart.cycles();
    do {
        outcome.reason = m.hart.run(budget);
    } while (outcome.reason == StopReason::kBudget && m.hart.steps() - start.steps < 1000);
    outcome.trap = m.hart.trap();
    outcome.cycles = m.hart.cycles() - cycles;
    outcome.counts = m.hart.take_counts();
    outcome.work = m.hart.take_work();
    outcome.hart = m.hart.state();
    outcome.vectors = m.hart.vector_state();
    outcome.busy = m.hart.finish_vectors();
    return outcome;
}

std::vector<Simd> kinds() {
    std::vector<Simd> all{Simd::kPortable};
    for (const Simd simd : {Simd::kAvx2, Simd::kAvx512})
        if (simd_usable(simd)) all.push_back(simd);
    return all;
}

// In one go, in pieces that end anywhere in a run, and step by step, on all kinds of kernels. The loop makes
// runs of what its first turn has decoded.
void check(Case which) {
    for (const bool again : {false, true}) {
        which.simd = Simd::kPortable;
        const Outcome single = run(which, 1, again);
        EXPECT_EQ(single.reason, StopReason::kTrap);
        for (const Simd simd : kinds()) {
            which.simd = simd;
            for (const std::uint64_t budget : {1u, 2u, 3u, 5u, 7u, 11u, 40u, 1'000'000u}) {
                SCOPED_TRACE(testing::Message() << to_string(simd) << ", " << budget << ", " << again);
                expect_same(run(which, budget, again), single);
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

// Three times round: a row, then seven sums of it.
std::vector<Word> loop(std::vector<Word> body) {
    std::vector<Word> code{li(a2, 3)};
    code.insert(code.end(), body.begin(), body.end());
    code.push_back(addi(a2, a2, -1));
    code.push_back(bne(a2, x0, -4 * static_cast<int>(body.size() + 1)));
    return code;
}
const std::vector<Word> kSeven = {flw(1, a0, 0), flw(2, a0, 4),  flw(3, a0, 8),  fma(8, 1, 4),  fma(9, 2, 4),
                                  fma(10, 3, 4), flw(1, a0, 12), flw(2, a0, 16), fma(11, 1, 4), fma(12, 2, 4),
                                  fma(13, 1, 4), flw(4, a0, 20), fma(14, 4, 4),  fma(8, 2, 4),  fma(8, 2, 4)};

TEST(VectorRuns, AreTheSameAsOneByOne) {
    for (const std::uint64_t vl : {1u, 15u, 16u, 33u, 64u})
        for (const double rare : {0.0, 0.02})
            check({.vl = vl, .code = loop(kSeven), .rare = rare});
    check({.sew = e64,
           .vl = 32,
           .code =
               loop({fld(1, a0, 0), fma(8, 1, 4), fma(9, 2, 4), fld(1, a0, 8), fma(10, 1, 4), fma(8, 1, 4)}),
           .rare = 0.01});
    // Of 20, more than go in one.
    std::vector<Word> many;
    for (Word i = 0; i < 20; ++i)
        many.push_back(fma(8 + i, i, 4));
    check({.code = loop(many)});
    check({.lmul = m4,
           .vl = 256,
           .code = loop({fma(8, 1, 4), fma(12, 2, 4), fma(16, 3, 4), fma(20, 4, 4)}),
           .rare = 0.01});
    check({.lmul = mf2, .vl = 32, .code = loop({fma(8, 1, 4), fma(9, 2, 4), fma(10, 3, 4)})});
}

// A row, and sums of it, again and again: what is computed late is seen by nobody.
TEST(VectorRuns, OfRowsThatFollowOneAnother) {
    const auto rows = [](std::vector<Word> between, Word turns = 11) {
        std::vector<Word> code{li(a2, static_cast<int>(turns))};
        std::vector<Word> body = {v(VectorOp::kVle32V, 4, 0, a0),
                                  flw(1, a0, 0),
                                  fma(8, 1, 4),
                                  flw(2, a0, 4),
                                  fma(9, 2, 4),
                                  fma(10, 1, 4)};
        body.insert(body.end(), between.begin(), between.end());
        body.push_back(addi(a0, a0, 64));
        code.insert(code.end(), body.begin(), body.end());
        code.push_back(addi(a2, a2, -1));
        code.push_back(bne(a2, x0, -4 * static_cast<int>(body.size() + 1)));
        return code;
    };
    for (const std::uint64_t vl : {5u, 32u, 64u})
        for (const double rare : {0.0, 0.005})
            check({.vl = vl, .code = rows({}), .rare = rare});
    check({.lmul = m4, .vl = 256, .code = rows({}), .rare = 0.0005});
    check({.lmul = mf2, .vl = 32, .code = rows({})});
    // Who reads or writes one of the registers, the flags, the mode, vl or memory.
    const std::vector<Word> others[] = {
        {v(VectorOp::kVse32V, 8, 0, a1)},
        {v(VectorOp::kVse32V, 4, 0, a1)},
        {v(VectorOp::kVle32V, 9, 0, a0)},
        {v(VectorOp::kVfaddVv, 20, 8, 4)},
        {v(VectorOp::kVfaddVv, 9, 20, 21)},
        {v(VectorOp::kVfaddVv, 4, 20, 21)},
        {v(VectorOp::kVmv1rV, 21, 4, 0)},
        {v(VectorOp::kVfmvFS, 3, 8, 0)},
        {fma(11, 2, 4, true)},
        {fma(11, 1, 4)},
        {fma(8, 1, 4), fma(8, 2, 4)},
        {fma(12, 1, 8), fma(13, 1, 8)},
        {v(VectorOp::kVluxei32V, 12, 4, a0)},
        {v(VectorOp::kVlse32V, 4, a3, a0)},
        {csrrs(a4, kFcsr, x0)},
        {csrrw(a4, kFcsr, x0)},
        {vsetvli(x0, x0, vtype(e32, m1))},
        {vsetivli(x0, 9, vtype(e32, m1)), vsetivli(x0, 31, vtype(e32, m1))},
        {vsetivli(x0, 5, vtype(e64, m1)), fma(16, 1, 4), vsetivli(x0, 31, vtype(e32, m1))},
        {li(a3, 2 << 5), csrrw(x0, kFcsr, a3), fma(8, 1, 4), fma(9, 2, 4), csrrw(x0, kFcsr, x0)},
    };
    for (const auto& between : others)
        check({.code = rows(between), .rare = 0.002});
    // The row that faults is not the first.
    check({.code = rows({addi(a0, a0, 1000)}), .fault = kData + 0x1000});
}

TEST(VectorRuns, EndWhereSomethingElseBegins) {
    // The row itself, another row, a mask, another instruction, another vtype, a scalar that is no number.
    check({.code = loop({fma(8, 1, 4), fma(9, 2, 4), fma(4, 3, 4), fma(10, 4, 4), fma(11, 5, 4)})});
    check({.code = loop({fma(8, 1, 4), fma(4, 2, 8), fma(9, 2, 4), fma(10, 2, 8), fma(11, 2, 8)})});
    check({.code = loop({fma(8, 1, 4), fma(9, 2, 4, true), fma(10, 3, 4), fma(11, 3, 4)})});
    check({.code = loop({fma(8, 1, 4), v(VectorOp::kVfnmsacVf, 9, 4, 2), fma(10, 3, 4), fma(11, 3, 4)})});
    check({.code = loop({fma(8, 1, 4), vsetivli(x0, 7, vtype(e32, m1)), fma(9, 2, 4), fma(10, 3, 4),
                         vsetivli(x0, 30, vtype(e32, m1))})});
    check({.code = loop({fma(8, 1, 4), vsetivli(x0, 7, vtype(e64, m1)), fma(9, 2, 4), fma(10, 3, 4),
                         vsetivli(x0, 30, vtype(e32, m1))})});
    check({.code = loop({fma(8, 1, 4), fld(2, a0, 0), fma(9, 2, 4), fma(10, 2, 4)})});
}

TEST(VectorRuns, RoundAsTheyAreTold) {
    for (const int mode : {1, 2, 3, 4})
        check({.code = loop({li(a3, mode << 5), csrrw(x0, kFcsr, a3), fma(8, 1, 4), fma(9, 2, 4),
                             csrrs(a4, kFcsr, x0), csrrw(x0, kFcsr, x0), fma(10, 3, 4), fma(11, 3, 4)}),
               .rare = 0.01});
}

TEST(VectorRuns, StopAtALoadThatFaults) {
    const std::vector<Word> faults =
        loop({flw(1, a0, 0), fma(8, 1, 4), fma(9, 2, 4), flw(2, a1, 0), fma(10, 2, 4), fma(11, 3, 4)});
    check({.code = faults});
    check({.code = faults, .fault = kData + 0x1000});
    // In the second turn, when all is decoded.
    check({.code = loop({flw(1, a0, 0), fma(8, 1, 4), fma(9, 2, 4), flw(2, a1, -4), fma(10, 2, 4),
                         fma(11, 3, 4), addi(a1, a1, 4)}),
           .fault = kData + 0x1000});
}

TEST(VectorRuns, StopAtBreakpoints) {
    for (std::uint64_t at = 1; at <= kSeven.size(); ++at) {
        Case which{.code = loop(kSeven), .breakpoints = {kRam + 4 * at}};
        for (const std::uint64_t budget : {60u, 1'000'000u}) {
            which.simd = Simd::kPortable;  // has no runs
            const Outcome plain = run(which, budget, false);
            EXPECT_EQ(plain.reason, StopReason::kBreakpoint);
            EXPECT_EQ(plain.hart.pc, which.breakpoints[0]);
            for (const Simd simd : kinds()) {
                which.simd = simd;
                expect_same(run(which, budget, true), plain);
            }
        }
    }
}

TEST(VectorRuns, MayBeEnteredInTheirMiddle) {
    check({.code = loop({beq(a2, x0, 8), li(a3, 2), beq(a2, a3, 16), fma(8, 1, 4), flw(2, a0, 4),
                         fma(9, 2, 4), fma(10, 3, 4), flw(4, a0, 8), fma(11, 4, 4)})});
}

}  // namespace
}  // namespace orrery::emu::test
