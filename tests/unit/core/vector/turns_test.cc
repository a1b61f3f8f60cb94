// Loops of rows and their products, of which many turns are done at once: the same as one by one.
#include <cmath>
#include <map>
#include <random>

#include "tests/unit/core/vector/hart_outcome.h"
#include "tests/unit/core/vector/huge_bus.h"

namespace orrery::emu::test {
namespace {

constexpr Word kEbreak = 0x100073, kFcsr = 0x003;
// Rows are in VRAM, factors in memory of the hart's own.
constexpr std::uint64_t kRows = kHere + 0x10000, kFactors = kRam + 0x8000;
constexpr Word kRow = 4;

constexpr Word flw(Word rd, Word rs1, int imm) {
    return i_type(0x07, 2, rd, rs1, imm);
}
constexpr Word fma(Word vd, Word fs, Word vs2 = kRow) {
    return v(VectorOp::kVfmaccVf, vd, vs2, fs);
}
constexpr Word sub(Word rd, Word rs1, Word rs2) {
    return r_type(0x33, 0, 0x20, rd, rs1, rs2);
}
constexpr Word vle(Word vd = kRow, Word rs1 = a0) {
    return v(VectorOp::kVle32V, vd, 0, rs1);
}
Word keep_vl() {
    return vsetvli(x0, s0, vtype(e32, m1));
}

struct Case {
    Simd simd = Simd::kAvx512;
    std::vector<Word> body;  // a2 counts turns down, and a3 up
    int turns = 40;
    std::uint64_t vl = 64;
    Word branch = 1;  // funct3: bne
    bool whole = true;
    std::uint64_t rows = kRows, factors = kFactors, most_vram = ~0ull;
    int stride = 256;
    Word type = vtype(e32, m1);
    std::uint64_t avl = 0;  // 0: vl
    double rare = 0;
    std::vector<std::uint64_t> breakpoints = {};
};

struct Outcome : HartOutcome {
    std::vector<std::uint8_t> memory, ram;
};

// Floats that are rounded when they are added up; some are no numbers.
const std::vector<float>& numbers(double rare) {
    static std::map<double, std::vector<float>> all;
    std::vector<float>& some = all[rare];
    if (!some.empty()) return some;
    std::mt19937 random(11);
    for (int i = 0; i < 0x8000; ++i) {
        const float strange[] = {NAN, INFINITY, -INFINITY, 1e38f};
        const bool is_rare = std::uniform_real_distribution<>()(random) < rare;
        some.push_back(is_rare ? strange[random() % 4]
                               : static_cast<float>(static_cast<int>(random() % 4001) - 2000) / 3);
    }
    return some;
}

Outcome run(const Case& which, std::uint64_t budget) {
    HugeBus bus;
    bus.whole = which.whole;
    Config config = vector_config(2048);
    config.simd = which.simd;
    config.vector_datapath = 512;
    config.memory = {.l1_bytes = 4096,
                     .vram_cycles = 100,
                     .host_cycles = 1000,
                     .tlb_entries = 4,
                     .most_vram = which.most_vram};
    Hart hart(config, bus);
    const std::vector<float>& data = numbers(which.rare);
    for (const std::uint64_t to : {kHere, kThere - 0x10000, kThere + kHuge - 0x10000})
        std::memcpy(bus.at(to), data.data(), 0x10000);
    std::memcpy(bus.at(kRows), data.data(), 0x10000);
    std::memcpy(bus.ram() + 0x8000, data.data(), 0x10000);
    // The second page of factors is somewhere else.
    std::memcpy(bus.ram() + 0x20000, bus.ram() + 0x9000, kPageBytes);
    std::memset(bus.ram() + 0x9000, 0, kPageBytes);
    bus.pages[kRam + 0x9000] = PageRef::memory(bus.ram() + 0x20000, kAll);
    std::uint64_t at = kRam;
    const auto put = [&](Word word) {
        bus.put(at, word);
        at += 4;
    };
    for (const Word word : which.body)
        put(word);
    put(addi(a3, a3, 1));
    put(addi(a2, a2, -1));
    const int back = -4 * static_cast<int>(which.body.size() + 2);
    const bool counts_down = which.branch <= 1, greater = (which.branch & 1) != 0;
    put(counts_down ? b_type(which.branch, a2, x0, back)
        : greater   ? b_type(which.branch, a4, a3, back)
                    : b_type(which.branch, a3, a4, back));
    put(v(VectorOp::kVse32V, 8, 0, a5));
    put(csrrs(a6, kFcsr, x0));
    put(kEbreak);
    VectorState vectors = hart.vector_state();
    for (std::size_t i = 0; i < sizeof vectors.v; i += 4) {
        const float f = static_cast<float>(i % 977) / 7;
        std::memcpy(vectors.v + i, &f, 4);
    }
    vectors.vtype = which.type;
    vectors.vl = which.vl;
    hart.set_vector_state(vectors);
    HartState state = hart.state();
    state.x[a0] = which.rows;
    state.x[a1] = which.factors;
    state.x[a2] = static_cast<std::uint64_t>(which.turns);
    state.x[a4] = static_cast<std::uint64_t>(which.turns);
    state.x[a5] = kHere;
    state.x[s0] = which.avl != 0 ? which.avl : which.vl;
    state.x[s1] = static_cast<std::uint64_t>(which.stride);
    for (std::uint64_t i = 0; i < 32; ++i)
        state.f[i] = 0xffffffff00000000 | std::bit_cast<std::uint32_t>(static_cast<float>(i) - 9.5f);
    state.f[30] = 0x3f800000;  // is not boxed
    hart.set_state(state);
    if (!which.breakpoints.empty()) EXPECT_TRUE(hart.set_breakpoints(which.breakpoints));
    Outcome outcome;
    const std::uint64_t cycles = hart.cycles(), end = hart.steps() + 5000;
    AccessCounts counts;
    do {
        outcome.reason = hart.run(std::min(budget, end - hart.steps()));
        if (outcome.reason == StopReason::kRequested) {
            EXPECT_TRUE(hart.full());
            counts += hart.take_counts();
            outcome.ram.push_back(static_cast<std::uint8_t>(hart.pc()));  // where that was
        }
    } while ((outcome.reason == StopReason::kBudget || outcome.reason == StopReason::kRequested) &&
             hart.steps() < end);
    counts += hart.take_counts();
    outcome.counts = counts;
    outcome.work = hart.take_work();
    outcome.cycles = hart.cycles() - cycles;
    outcome.hart = hart.state();
    outcome.vectors = hart.vector_state();
    outcome.busy = hart.finish_vectors();
    for (const std::uint64_t from : {kHere, kRows, kThere - 0x10000, kThere})
        outcome.memory.insert(outcome.memory.end(), bus.at(from), bus.at(from) + 0x10000);
    outcome.ram.insert(outcome.ram.end(), bus.bytes().begin(), bus.bytes().end());
    return outcome;
}

void expect_same(const Outcome& a, const Outcome& b) {
    expect_same_hart(a, b);
    EXPECT_TRUE(a.memory == b.memory);
    EXPECT_TRUE(a.ram == b.ram);
}

std::vector<Simd> kinds() {
    std::vector<Simd> all;
    for (const Simd simd : {Simd::kAvx2, Simd::kAvx512})
        if (simd_usable(simd)) all.push_back(simd);
    return all;
}

// Against kernels that have no runs, step by step.
void check(Case which, bool ends = true,
           const std::vector<std::uint64_t>& budgets = {1, 7, 60, 61, 97, 200, 333, 1'000'000}) {
    which.simd = Simd::kPortable;
    const Outcome single = run(which, budgets[0]);
    if (ends) EXPECT_EQ(single.reason, StopReason::kTrap);
    for (const Simd simd : kinds()) {
        which.simd = simd;
        for (const std::uint64_t budget : budgets) {
            SCOPED_TRACE(testing::Message() << to_string(simd) << ", " << budget);
            Outcome now = run(which, budget);
            expect_same(now, single);
            if (testing::Test::HasFailure()) return;
        }
    }
}

const Word kNextRow = add(a0, a0, s1), kNextFactors = addi(a1, a1, 16);
const std::vector<Word> kPlain = {keep_vl(),  vle(),      flw(1, a1, 0), flw(2, a1, 4),
                                  fma(8, 1),  fma(9, 2),  flw(1, a1, 8), fma(10, 1),
                                  fma(11, 3), fma(12, 2), kNextFactors,  kNextRow};

std::vector<Word> with(std::vector<Word> body, std::size_t at, std::initializer_list<Word> more) {
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(at), more);
    return body;
}

TEST(VectorTurns, AreTheSameAsOneByOne) {
    for (const std::uint64_t vl : {1u, 16u, 31u, 64u})
        for (const double rare : {0.0, 0.0005})
            check({.body = kPlain, .vl = vl, .rare = rare});
    check({.body = {vle(), flw(1, a1, 0), fma(8, 1), kNextFactors, kNextRow}, .turns = 200});
    check({.body = kPlain, .whole = false});
}

TEST(VectorTurns, EndWithAnyBranch) {
    for (const Word branch : {1u, 4u, 5u, 6u, 7u})  // bne, blt, bge, bltu, bgeu
        check({.body = kPlain, .branch = branch});
    check({.body = with(kPlain, 12, {addi(a2, x0, 1)}), .branch = 0}, false);  // beq, for ever
    check({.body = with(kPlain, 12, {addi(a2, a2, 1)})}, false);               // for ever
}

// What changes what is read, or is read before it is changed.
TEST(VectorTurns, AreThoseOfLoopsThatTheyAreMadeFor) {
    const std::vector<Word> bodies[] = {
        with(kPlain, 1, {kNextRow}),
        with(kPlain, 1, {kNextFactors}),
        with(kPlain, 3, {kNextFactors}),
        with(kPlain, 3, {kNextRow}),
        with(kPlain, 5, {kNextRow, addi(a1, a1, 4)}),
        with(kPlain, 12, {add(a7, a1, a0), sub(a7, a7, a3), addi(a1, a1, 0), add(t1, a7, a7)}),
        with(kPlain, 2, {fma(13, 1)}),                           // the factor of the turn before
        with(kPlain, 4, {flw(1, a1, 12)}),                       // one that nobody reads
        with(kPlain, 10, {flw(7, a1, -4)}),                      // likewise, and the last
        with(kPlain, 5, {fma(13, 30), fma(14, 29)}),             // that stay
        with(kPlain, 5, {flw(5, a5, 0), fma(13, 5)}),            // from VRAM
        with(kPlain, 5, {flw(5, s2, 0), fma(13, 5)}),            // another base
        with(kPlain, 7, {vle()}),                                // a second row
        with(kPlain, 0, {fma(13, 3)}),                           // of the row before
        with(kPlain, 2, {vle(16, a5), fma(17, 1, 16)}),          // another group
        with(kPlain, 10, {fma(8, 3)}),                           // a sum again
        with(kPlain, 10, {fma(13, 3), fma(14, 3), fma(15, 3)}),  // eight
        with(kPlain, 10, {fma(13, 3), fma(14, 3), fma(15, 3), fma(16, 3)}),
        with(kPlain, 10, {v(VectorOp::kVse32V, 8, 0, a0)}),  // into the row
        with(kPlain, 10, {sw(a3, a0, 0)}),
        with(kPlain, 10, {sw(a3, a1, 0), sw(a3, a1, 24)}),  // into factors
        with(kPlain, 10, {sw(x0, a0, 256)}),                // into the next row
        with(kPlain, 10, {addi(s0, s0, -1)}),               // vl
        with(kPlain, 10, {beq(a3, s3, 8), nop()}),
        with(kPlain, 5, {beq(a3, s3, 8), fma(13, 3)}),
        with(kPlain, 12, {csrrs(t1, 0xc00, x0), add(t2, t2, t1)}),  // the time
        {vle(), fma(8, 1), fma(9, 2), kNextRow},                    // nothing is loaded
        {vle(), flw(1, a1, 0), fma(8, 1), vsetvli(a7, s0, vtype(e32, m1)), kNextRow},
        {vle(), flw(1, a1, 0), flw(2, a1, 3), fma(8, 1), fma(9, 2), kNextRow},  // one that is misaligned
        {flw(1, a1, 0), vle(), fma(8, 1), addi(a1, a1, 6), kNextRow},
        {vle(), flw(1, a1, 0), fma(8, 1), addi(a0, a0, 2)},
        // A row of some of the sums, one that is copied, one that is not.
        {vle(), fma(8, 1), fma(9, 2), vle(), fma(8, 1), vle(kRow, a1), vle(), fma(8, 1), fma(9, 2)},
    };
    for (const auto& body : bodies) {
        SCOPED_TRACE(testing::Message() << "body " << &body - bodies);
        for (const double rare : {0.0, 0.0005})
            check({.body = body, .rare = rare}, false);
        if (HasFailure()) return;
    }
}

// As the sample's are, and as long as a row in place may be and longer.
TEST(VectorTurns, OfGroupsOfRegisters) {
    const std::vector<Word> four = {vsetvli(x0, s0, vtype(e32, m4)),
                                    vle(),
                                    flw(1, a1, 0),
                                    flw(2, a1, 4),
                                    fma(8, 1),
                                    fma(12, 2),
                                    flw(1, a1, 8),
                                    fma(16, 1),
                                    fma(20, 3),
                                    fma(24, 2),
                                    kNextFactors,
                                    kNextRow};
    const std::vector<Word> eight = {vsetvli(x0, s0, vtype(e32, m8)),
                                     vle(24),
                                     flw(1, a1, 0),
                                     flw(2, a1, 4),
                                     fma(8, 1, 24),
                                     fma(16, 2, 24),
                                     fma(0, 1, 24),
                                     kNextFactors,
                                     kNextRow};
    for (const double rare : {0.0, 0.0005}) {
        for (const std::uint64_t vl : {1u, 33u, 255u, 256u})
            check({.body = four, .vl = vl, .stride = 1024, .type = vtype(e32, m4), .rare = rare});
        for (const std::uint64_t vl : {255u, 256u, 257u, 512u})
            check(
                {.body = eight, .turns = 20, .vl = vl, .stride = 2048, .type = vtype(e32, m8), .rare = rare});
    }
    for (const int stride : {4, 64, 100})
        check({.body = four, .vl = 256, .stride = stride, .type = vtype(e32, m4)});
    for (const std::uint64_t most : {256u, 3000u, 9 * 1024u, 9 * 1024u + 64})
        check({.body = four, .vl = 256, .most_vram = most, .stride = 1024, .type = vtype(e32, m4)});
}

TEST(VectorTurns, OfDoubles) {
    const auto fld = [](Word rd, int imm) { return i_type(0x07, 3, rd, a1, imm); };
    const std::vector<Word> body = {vsetvli(x0, s0, vtype(e64, m1)),
                                    v(VectorOp::kVle64V, kRow, 0, a0),
                                    fld(1, 0),
                                    fld(2, 8),
                                    fma(8, 1),
                                    fma(9, 2),
                                    fld(1, 16),
                                    fma(10, 1),
                                    fma(11, 3),
                                    fma(12, 2),
                                    addi(a1, a1, 24),
                                    kNextRow};
    for (const std::uint64_t vl : {1u, 9u, 31u, 32u})
        for (const double rare : {0.0, 0.0005})
            check({.body = body, .vl = vl, .type = vtype(e64, m1), .rare = rare});
}

// Rows here and there, each for some of the sums.
TEST(VectorTurns, OfRandomLoops) {
    std::mt19937 random(5);
    const auto below = [&](unsigned n) { return static_cast<Word>(random() % n); };
    for (int i = 0; i < 1000; ++i) {
        std::vector<Word> body = {vle()};
        for (Word left = 3 + below(14); left != 0; --left) {
            switch (below(9)) {
                case 0:
                    body.push_back(vle(kRow, below(3) == 0 ? a1 : a0));
                    break;
                case 1:
                    body.push_back(below(4) == 0 ? keep_vl() : below(2) == 0 ? kNextRow : kNextFactors);
                    break;
                case 2:
                case 3:
                    body.push_back(flw(1 + below(3), a1, static_cast<int>(4 * below(4))));
                    break;
                default:
                    body.push_back(fma(8 + below(below(3) == 0 ? 8 : 3), 1 + below(4)));
            }
        }
        SCOPED_TRACE(testing::Message() << "loop " << i);
        check({.body = body, .turns = 30, .rare = below(4) == 0 ? 0.0005 : 0}, false, {97, 1'000'000});
        if (HasFailure()) return;
    }
}

TEST(VectorTurns, EndWhereVlChanges) {
    check({.body = with(kPlain, 12, {addi(s0, s0, -1)}), .turns = 60, .avl = 64 + 30});
}

// Factors go on into another page, and rows to the end of a page of 2 MiB and behind it.
TEST(VectorTurns, EndWithThePage) {
    check({.body = kPlain, .turns = 100, .factors = kFactors + 0x1000 - 16 * 20});
    check({.body = kPlain, .turns = 100, .factors = kFactors + 0x1000 - 16 * 20 - 4});
    check({.body = kPlain, .turns = 100, .factors = kRam + kRamBytes - 16 * 20}, false);  // a fault
    check({.body = kPlain, .turns = 100, .factors = kRam + kRamBytes - 16 * 20 - 4}, false);
    check({.body = kPlain, .turns = 60, .rows = kThere - 20 * 256});
    check({.body = kPlain, .turns = 60, .rows = kThere - 20 * 256 - 100});
    check({.body = kPlain, .turns = 60, .rows = kThere + kHuge - 20 * 256}, false);  // a fault
    check({.body = kPlain, .turns = 60, .stride = -256});
    check({.body = kPlain, .turns = 60, .stride = 0});
    check({.body = kPlain, .turns = 60, .rows = kRows + 2}, false);
}

TEST(VectorTurns, StopAtTheLimitOfMemory) {
    for (const std::uint64_t most : {256u, 3000u, 256u * 9, 256u * 9 + 64})
        for (const bool whole : {true, false})
            check({.body = kPlain, .whole = whole, .most_vram = most});
}

TEST(VectorTurns, StopAtBreakpoints) {
    for (std::size_t at = 0; at < kPlain.size() + 3; ++at)
        check({.body = kPlain, .breakpoints = {kRam + 4 * at}}, false, {1'000'000});
}

// Loops of all that such a loop is made of, in any order.
TEST(VectorTurns, OfAnyLoop) {
    std::mt19937 random(5);
    for (int round = 0; round < 300; ++round) {
        std::vector<Word> body;
        const auto some = [&](Word count) { return static_cast<Word>(random() % count); };
        const auto at = [&] { return body.empty() ? 0 : random() % (body.size() + 1); };
        const Word products = 1 + some(9);
        for (Word i = 0; i < products; ++i) {
            if (some(3) != 0) body.push_back(flw(1 + some(4), a1, static_cast<int>(4 * some(6))));
            body.push_back(fma(8 + (some(10) == 0 ? some(8) : i), 1 + some(5)));
        }
        const auto put = [&](Word word, bool anywhere) {
            body.insert(anywhere ? body.begin() + static_cast<std::ptrdiff_t>(at()) : body.end(), word);
        };
        body.insert(body.begin(), vle());
        put(kNextFactors, some(3) == 0);
        put(kNextRow, some(3) == 0);
        if (some(2) == 0) put(keep_vl(), true);
        if (some(4) == 0) put(vle(), true);
        if (some(4) == 0) put(add(t1, a0, a1), true);
        if (some(6) == 0) put(sw(a3, a0, static_cast<int>(4 * some(64))), true);
        if (some(6) == 0) put(nop(), true);
        SCOPED_TRACE(round);
        check({.body = body, .turns = 12 + static_cast<int>(some(30)), .vl = 1 + some(64), .rare = 0.0003},
              false, {1, 97, 1'000'000});
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace orrery::emu::test
