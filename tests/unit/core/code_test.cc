// Fetching: self-modifying code, page borders, compressed corner cases, breakpoints, exits, budgets.
#include <gtest/gtest.h>

#include <bit>

#include "emulator/core/decode.h"
#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

Config to_host() {
    return {.reset_pc = kRam, .trap_to_host = true};
}

TEST(Code, OwnStoresAreSeenByFetchesAtOnce) {
    Machine m(to_host());
    // Executes the patched instruction once, patches it, executes it again.
    m.code({li(a2, 0), addi(a2, a2, 1), sw(a1, a0, 4), addi(a3, a3, 1), addi(a4, a3, -2), bne(a4, x0, -16),
            nop()});
    m.hart.set_x(a0, kRam);
    m.hart.set_x(a1, addi(a2, a2, 100));
    m.hart.run(11);
    EXPECT_EQ(m.hart.x(a2), 101u);
}

TEST(Code, OwnStoreToTheVeryNextInstruction) {
    for (const std::uint64_t offset : {0x10u, 0xff8u, 0x1000u}) {
        Machine m(to_host());
        const std::uint64_t base = kRam + offset;
        const auto put = [&] { m.bus.put_code(base, {sw(a1, a0, 4), li(a2, 1), jal(x0, 0)}); };
        put();
        m.hart.set_x(a0, base);
        m.hart.set_x(a1, li(a2, 2));
        // Twice, so that the second time all is decoded already.
        for (int i = 0; i < 2; ++i) {
            m.hart.set_pc(base);
            m.hart.run(3);
            EXPECT_EQ(m.hart.x(a2), 2u) << offset << " " << i;
            put();
            m.hart.flush_code();
        }
    }
}

TEST(Code, StoreThroughAnotherMappingOfTheSamePage) {
    Machine m(to_host());
    constexpr std::uint64_t kAlias = 0x8000000000000000;
    m.bus.pages[kAlias] = PageRef::memory(m.bus.ram(), kPageRead | kPageWrite);
    m.code({sw(a5, a0, 0x100), li(a2, 1), sw(a1, a0, 4), addi(a3, a3, 1), addi(a4, a3, -2), bne(a4, x0, -16),
            nop()});
    m.hart.set_x(a0, kAlias);
    m.hart.set_x(a1, li(a2, 2));
    m.hart.run(10);
    EXPECT_EQ(m.hart.x(a2), 2u);
}

// As a loader does: a page is written, called, written again in part, called again. `patch` and `width` (as
// of store()) go to `patched`; the call runs addi a3, a3, 1 first.
std::uint64_t call_patch_call(std::uint64_t function, std::uint32_t patch, Word width,
                              std::uint64_t patched) {
    Machine m(to_host());
    m.code({store(2, a1, a0, 0), store(2, a4, a0, 4), jalr(ra, a0, 0), store(width, a2, a5, 0),
            jalr(ra, a0, 0), nop()});
    m.hart.set_x(a0, function);
    m.hart.set_x(a1, addi(a3, a3, 1));
    m.hart.set_x(a4, jalr(x0, ra, 0));
    m.hart.set_x(a2, patch);
    m.hart.set_x(a5, patched);
    EXPECT_EQ(m.hart.run(9), StopReason::kBudget);
    return m.hart.x(a3);
}

TEST(Code, PageThatWasWrittenBeforeItWasCode) {
    constexpr std::uint64_t kFunction = kRam + 0x2000;
    EXPECT_EQ(call_patch_call(kFunction, addi(a3, a3, 100), 2, kFunction), 101u);
}

TEST(Code, StoreToTheSecondHalfOfAnInstruction) {
    for (const std::uint64_t function : {kRam + 0x2000, kRam + 0x2ff8, kRam + 0x2ffa}) {
        EXPECT_EQ(call_patch_call(function, addi(a3, a3, 100) >> 16, 1, function + 2), 101u);
        EXPECT_EQ(call_patch_call(function, addi(a3, a3, 100) >> 24, 0, function + 3), 98u);
    }
}

TEST(Code, StraddlingInstructionThatWasAnotherInBetween) {
    Machine m(to_host());
    const std::uint64_t function = kRam + 0x1ffe;
    m.bus.put(function, addi(a3, a3, 1));
    m.bus.put(function + 4, jalr(x0, ra, 0));
    // c.jr ra takes the place of its first half, and goes again.
    m.code(
        {jalr(ra, a0, 0), store(1, a1, a0, 0), jalr(ra, a0, 0), store(1, a2, a0, 0), jalr(ra, a0, 0), nop()});
    m.hart.set_x(a0, function);
    m.hart.set_x(a1, 0x8082);
    m.hart.set_x(a2, addi(a3, a3, 1) & 0xffff);
    EXPECT_EQ(m.hart.run(10), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a3), 2u);
    EXPECT_EQ(m.hart.pc(), kRam + 20);
}

TEST(Code, OthersStoresAreSeenAfterFenceI) {
    Machine m(to_host());
    m.code({li(a2, 1), fence_i(), jal(x0, -8)});
    m.hart.run(3);
    m.bus.put(kRam, li(a2, 2));
    m.hart.run(3);  // decoded again after the fence at the latest
    m.hart.run(3);
    EXPECT_EQ(m.hart.x(a2), 2u);
}

TEST(Code, OthersStoresAreSeenAfterFlushCode) {
    Machine m(to_host());
    m.code({li(a2, 1), jal(x0, -4)});
    m.hart.run(4);
    m.bus.put(kRam, li(a2, 2));
    m.hart.flush_code();
    m.hart.run(2);
    EXPECT_EQ(m.hart.x(a2), 2u);
}

// Code that goes from one page to another and back, and counts in a2.
void back_and_forth(Machine& m) {
    m.code({addi(a2, a2, 1), jalr(x0, a0, 0)});
    m.code({jalr(x0, a1, 0)}, kRam + 0x1000);
    m.hart.set_x(a0, kRam + 0x1000);
    m.hart.set_x(a1, kRam);
}

// A page that comes back is good again only as far as nothing has changed, whoever changed it, and through
// which address.
TEST(Code, PagesThatComeBackAreCompared) {
    Config config = to_host();
    config.code_pages = 1;
    Machine m(config);
    back_and_forth(m);
    m.hart.run(3 * 10);
    EXPECT_EQ(m.hart.x(a2), 10u);
    EXPECT_EQ(m.bus.translations, 20u);
    // While the other page is there.
    m.hart.run(2);
    ASSERT_EQ(m.hart.pc(), kRam + 0x1000);
    m.bus.put(kRam, addi(a2, a2, 100));
    m.hart.run(3);
    EXPECT_EQ(m.hart.x(a2), 11u + 100);
    // By the hart itself, through another address, while the page is there: before and after it was read.
    m.bus.pages[kRam + 0x20000] = PageRef::memory(m.bus.ram(), kPageRead | kPageWrite);
    m.code({sw(a3, a4, 0), addi(a2, a2, 1), jalr(x0, a0, 0)});
    m.hart.set_x(a4, kRam + 0x20000 + 4);
    m.hart.set_x(a3, addi(a2, a2, 5));
    m.hart.set_x(a2, 0);
    m.hart.set_pc(kRam);
    m.hart.run(3);
    EXPECT_EQ(m.hart.x(a2), 5u);
    m.hart.set_x(a3, addi(a2, a2, 7));
    m.hart.run(4);
    EXPECT_EQ(m.hart.x(a2), 5u + 7);
    // And the same bytes again are the same page.
    m.hart.run(4);
    EXPECT_EQ(m.hart.x(a2), 5u + 7 + 7);
}

TEST(Code, ABreakpointIsSeenInAPageThatComesBack) {
    Config config = to_host();
    config.code_pages = 1;
    Machine m(config);
    back_and_forth(m);
    m.hart.run(30);
    const std::uint64_t at = kRam + 4;
    ASSERT_TRUE(m.hart.set_breakpoints({&at, 1}));
    EXPECT_EQ(m.hart.run(30), StopReason::kBreakpoint);
    EXPECT_EQ(m.hart.pc(), at);
    ASSERT_TRUE(m.hart.set_breakpoints({}));
    EXPECT_EQ(m.hart.run(30), StopReason::kBudget);
}

TEST(Code, InstructionAcrossAPageBorder) {
    for (std::uint32_t pages : {1u, 2u, 64u}) {
        Config config = to_host();
        config.code_pages = pages;
        Machine m(config);
        const std::uint64_t at = kRam + 0x1ffe;
        m.bus.put(at, addi(a2, a2, 3));
        m.bus.put(at + 4, jalr(x0, a0, 0));
        m.hart.set_x(a0, at);
        m.hart.set_pc(at);
        ASSERT_EQ(m.hart.run(20), StopReason::kBudget);
        EXPECT_EQ(m.hart.x(a2), 30u);
        // Its second half changes, by the hart's own store.
        m.bus.put_code(kRam, {sw(a1, a3, 0), jalr(x0, a0, 0)});
        m.hart.set_x(a1, static_cast<std::uint32_t>(static_cast<std::uint64_t>(addi(a2, a2, 5)) >> 16) |
                             jalr(x0, a0, 0) << 16);
        m.hart.set_x(a3, kRam + 0x2000);
        m.hart.set_x(a2, 0);
        m.hart.set_pc(kRam);
        ASSERT_EQ(m.hart.run(3), StopReason::kBudget);
        EXPECT_EQ(m.hart.x(a2), 5u);
    }
}

TEST(Code, InstructionAcrossIntoNothingFaultsAtTheSecondPage) {
    Machine m(to_host());
    const std::uint64_t at = kRam + kRamBytes - 2;
    m.bus.put<std::uint16_t>(at, 0x0013);
    m.hart.set_pc(at);
    EXPECT_EQ(m.hart.run(1), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kFetchAccess);
    EXPECT_EQ(m.hart.trap().pc, at);
    EXPECT_EQ(m.hart.trap().tval, at + 2);
    // A two-byte instruction there is fine; the next one is not.
    m.bus.put<std::uint16_t>(at, 0x0001);
    m.hart.flush_code();
    EXPECT_EQ(m.hart.run(2), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().pc, at + 2);
}

TEST(Code, StraightIntoTheNextPage) {
    Machine m(to_host());
    for (std::uint64_t va = kRam; va < kRam + 0x3000; va += 4)
        m.bus.put(va, addi(a0, a0, 1));
    m.hart.run(0x3000 / 4);
    EXPECT_EQ(m.hart.x(a0), 0x3000u / 4);
    EXPECT_EQ(m.hart.pc(), kRam + 0x3000);
}

TEST(Code, JumpsToOddAddressesDropTheLowestBit) {
    Machine m(to_host());
    m.code({jalr(ra, a0, 1), nop(), li(a1, 1)});
    m.hart.set_x(a0, kRam + 8);
    m.hart.run(2);
    EXPECT_EQ(m.hart.x(a1), 1u);
}

TEST(Code, JalrReadsItsSourceBeforeItWritesTheLink) {
    Machine m(to_host());
    m.code({jalr(a0, a0, 0), nop(), li(a1, 1)});
    m.hart.set_x(a0, kRam + 8);
    m.hart.run(2);
    EXPECT_EQ(m.hart.x(a1), 1u);
    EXPECT_EQ(m.hart.x(a0), kRam + 4);
}

TEST(Code, FetchFromMmioFaults) {
    Machine m(to_host());
    m.hart.set_pc(kMmio);
    EXPECT_EQ(m.hart.run(1), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kFetchAccess);
}

TEST(Code, AddressSpaceWrapsAround) {
    Machine m(to_host());
    m.bus.pages[~0ull - 4095] = PageRef::memory(m.bus.ram(), kPageRead | kPageExec);
    m.bus.pages[0] = PageRef::memory(m.bus.ram() + 0x1000, kPageRead | kPageExec);
    m.bus.put(kRam + 0xffe, addi(a0, a0, 1));
    m.bus.put(kRam + 0x1002, addi(a0, a0, 1));
    m.hart.set_pc(~0ull - 1);
    EXPECT_EQ(m.hart.run(2), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a0), 2u);
    EXPECT_EQ(m.hart.pc(), 6u);
}

// What the bus does while it is asked for code holds after one instruction at the latest.
TEST(Code, RequestsFromInsideAFetch) {
    for (const std::uint64_t at : {kRam + 0x2000, kRam + 0x1ffe}) {  // the second one straddles
        Machine m(to_host());
        for (std::uint64_t va = at; va < at + 0x100; va += 4)
            m.bus.put(va, nop());
        m.hart.set_pc(at);
        m.bus.on_translate = [&](std::uint64_t va, Access access) {
            if (access == Access::kFetch && va >= kRam + 0x2000) m.hart.request_stop();
        };
        EXPECT_EQ(m.hart.run(50), StopReason::kRequested);
        EXPECT_EQ(m.hart.pc(), at + 4);
        EXPECT_EQ(m.hart.steps(), 1u);
        m.bus.on_translate = nullptr;
        EXPECT_EQ(m.hart.run(50), StopReason::kBudget);
        EXPECT_EQ(m.hart.steps(), 51u);
        EXPECT_EQ(m.hart.pc(), at + 4 * 51);
    }
}

// --- compressed ---

TEST(Compressed, ReservedEncodings) {
    for (const std::uint16_t bits :
         std::initializer_list<std::uint16_t>{0x0000,  // all zero
                                              0x0004,  // c.addi4spn with 0
                                              0x8000,  // quadrant 0, funct3 4
                                              0x2001,  // c.addiw x0
                                              0x6101,  // c.addi16sp 0
                                              0x6081,  // c.lui 0
                                              0x9c41,  // quadrant 1, reserved arithmetic
                                              0x9c61,
                                              0x4002,     // c.lwsp x0
                                              0x6002,     // c.ldsp x0
                                              0x8002}) {  // c.jr x0
        const std::uint32_t expanded = expand_compressed(bits);
        EXPECT_EQ(decode(expanded, 0, true).code, OpCode::kIllegal) << std::hex << bits;
    }
}

TEST(Compressed, HintsDoNothing) {
    for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{0x0001, 0x0005, 0x4001, 0x4015,
                                                                         0x6005, 0x0002, 0x8006, 0x9006}) {
        EXPECT_EQ(decode(expand_compressed(bits), 0, false).code, OpCode::kNop) << std::hex << bits;
    }
}

TEST(Compressed, FpFormsNeedFp) {
    for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{0x2000, 0xa000, 0x2002, 0xa002}) {
        EXPECT_EQ(decode(expand_compressed(bits), 0, false).code, OpCode::kIllegal) << std::hex << bits;
        EXPECT_NE(decode(expand_compressed(bits), 0, true).code, OpCode::kIllegal) << std::hex << bits;
    }
}

TEST(Compressed, LinksPointBehindTwoBytes) {
    Machine m(to_host());
    m.bus.put<std::uint16_t>(kRam, 0x9502);  // c.jalr a0
    m.bus.put(kRam + 0x20, nop());
    m.hart.set_x(a0, kRam + 0x20);
    m.hart.run(1);
    EXPECT_EQ(m.hart.x(ra), kRam + 2);
    EXPECT_EQ(m.hart.pc(), kRam + 0x20);
}

TEST(Compressed, EbreakIsOne) {
    Config config = plain_config();
    config.ebreak_to_host = true;
    Machine m(config);
    m.bus.put<std::uint16_t>(kRam, 0x9002);
    EXPECT_EQ(m.hart.run(5), StopReason::kEbreak);
}

// Every 16-bit pattern decodes to something that has a handler.
TEST(Compressed, EveryPatternHasAHandler) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        if (is_four_bytes(static_cast<std::uint16_t>(bits))) continue;
        const Decoded d = decode(expand_compressed(static_cast<std::uint16_t>(bits)), 0x1000, true);
        EXPECT_NE(handler_table().of[static_cast<unsigned>(d.code)][0], nullptr) << std::hex << bits;
    }
}

// --- stops ---

TEST(Run, BudgetIsExactInEverySize) {
    for (std::uint64_t chunk = 1; chunk <= 7; ++chunk) {
        Machine m(to_host());
        m.code({addi(a0, a0, 1), bne(a0, x0, 4), jal(x0, -8)});
        std::uint64_t total = 0;
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(m.hart.run(chunk), StopReason::kBudget);
            total += chunk;
            ASSERT_EQ(m.hart.steps(), total);
            ASSERT_EQ(m.hart.state().minstret, total);
            ASSERT_EQ(m.hart.x(a0), (total + 2) / 3);
            ASSERT_EQ(m.hart.pc(), kRam + 4 * (total % 3));
        }
    }
}

TEST(Run, ZeroBudgetDoesNothing) {
    Machine m;
    const HartState before = m.hart.state();
    EXPECT_EQ(m.hart.run(0), StopReason::kBudget);
    EXPECT_EQ(m.hart.state(), before);
    EXPECT_EQ(m.bus.translations, 0u);
}

TEST(Run, HugeBudgetsAreFine) {
    Machine m(to_host());
    m.code({addi(a0, a0, 1), ecall()});
    EXPECT_EQ(m.hart.run(~0ull), StopReason::kTrap);
    EXPECT_EQ(m.hart.steps(), 1u);
}

TEST(Run, ExitAddress) {
    for (const std::uint64_t exit : {kRam + 0x10, std::uint64_t{0xfffffffffffff000}}) {
        Config config = to_host();
        config.has_exit_pc = true;
        config.exit_pc = exit;
        Machine m(config);
        m.code({nop(), jalr(x0, ra, 0)});
        m.hart.set_x(ra, exit);
        EXPECT_EQ(m.hart.run(100), StopReason::kExit);
        EXPECT_EQ(m.hart.pc(), exit);
        EXPECT_EQ(m.hart.steps(), 2u);
        EXPECT_EQ(m.hart.run(100), StopReason::kExit);
        EXPECT_EQ(m.hart.steps(), 2u);
        // Falling into it counts too, and with the budget just used up.
        m.hart.set_pc(kRam);
        EXPECT_EQ(m.hart.run(2), StopReason::kExit);
    }
    Config config = to_host();
    config.has_exit_pc = true;
    config.exit_pc = kRam + 8;
    Machine m(config);
    m.code({nop(), nop(), nop()});
    EXPECT_EQ(m.hart.run(100), StopReason::kExit);
    EXPECT_EQ(m.hart.pc(), kRam + 8);
}

TEST(Run, RequestedStopComesAfterTheInstruction) {
    Machine m(to_host());
    m.code({sw(a1, a0, 0), li(a2, 1)});
    m.hart.set_x(a0, kMmio);
    m.bus.on_store = [&](std::uint64_t, unsigned, std::uint64_t) {
        EXPECT_EQ(m.hart.pc(), kRam);
        EXPECT_EQ(m.hart.steps(), 0u);
        m.hart.request_stop();
        return true;
    };
    EXPECT_EQ(m.hart.run(10), StopReason::kRequested);
    EXPECT_EQ(m.hart.pc(), kRam + 4);
    EXPECT_EQ(m.hart.steps(), 1u);
    m.hart.request_stop();  // outside run(): nothing
    EXPECT_EQ(m.hart.run(1), StopReason::kBudget);
}

TEST(Run, BreakpointsStopBeforeTheInstruction) {
    Machine m(to_host());
    m.code({addi(a0, a0, 1), addi(a0, a0, 1), jal(x0, -8)});
    const std::uint64_t points[] = {kRam + 4};
    EXPECT_TRUE(m.hart.set_breakpoints(points));
    for (std::uint64_t round = 0; round < 4; ++round) {
        EXPECT_EQ(m.hart.run(100), StopReason::kBreakpoint);
        EXPECT_EQ(m.hart.pc(), kRam + 4);
        EXPECT_EQ(m.hart.x(a0), 2 * round + 1);
        EXPECT_EQ(m.hart.steps(), 3 * round + 1);
    }
    EXPECT_TRUE(m.hart.set_breakpoints({}));
    EXPECT_EQ(m.hart.run(100), StopReason::kBudget);
}

TEST(Run, BreakpointOnAStraddlingInstruction) {
    Machine m(to_host());
    const std::uint64_t at = kRam + 0xffe;
    m.bus.put(at, addi(a0, a0, 1));
    m.bus.put(at + 4, jal(x0, -4));
    m.hart.set_pc(at);
    const std::uint64_t points[] = {at};
    m.hart.set_breakpoints(points);
    for (std::uint64_t round = 1; round < 4; ++round) {
        EXPECT_EQ(m.hart.run(100), StopReason::kBreakpoint);
        EXPECT_EQ(m.hart.x(a0), round);
    }
}

TEST(Run, TooManyBreakpointsAreRefused) {
    Machine m;
    const std::vector<std::uint64_t> points(Hart::kMaxBreakpoints + 1, kRam);
    EXPECT_FALSE(m.hart.set_breakpoints(points));
}

// --- state ---

TEST(State, RoundTrips) {
    Machine m(fp_config());
    HartState state;
    for (unsigned i = 1; i < 32; ++i)
        state.x[i] = i * 0x0101010101010101;
    for (unsigned i = 0; i < 32; ++i)
        state.f[i] = i * 0x1111;
    state.pc = kRam + 0x124;
    state.steps = 1000;
    state.minstret = 900;
    state.mcycle = 1100;
    state.mstatus = 0x7888;
    state.mie = 0x888;
    state.mip = 0x80;
    state.mtvec = 0x1001;
    state.mscratch = 1;
    state.mepc = 2;
    state.mcause = 3;
    state.mtval = 4;
    state.reservation_address = 8;
    state.reservation_value = 5;
    state.reservation_size = 8;
    state.fcsr = 0xff;
    state.waiting = 1;
    m.hart.set_state(state);
    EXPECT_EQ(m.hart.state(), state);
}

TEST(State, IsMadeLegal) {
    Machine m;
    std::array<std::uint8_t, sizeof(HartState)> ones;
    ones.fill(0xff);
    const auto wild = std::bit_cast<HartState>(ones);
    m.hart.set_state(wild);
    const HartState state = m.hart.state();
    EXPECT_EQ(state.x[0], 0u);
    EXPECT_EQ(state.pc & 1, 0u);
    EXPECT_EQ(state.mstatus, 0x1888u);
    EXPECT_EQ(state.mie, 0x888u);
    EXPECT_EQ(state.fcsr, 0u);
    EXPECT_EQ(state.f[3], 0u);
    EXPECT_EQ(state.reservation_size, 0u);
    EXPECT_EQ(state.waiting, 1u);
    m.hart.set_state(state);
    EXPECT_EQ(m.hart.state(), state);
}

TEST(State, RestoringGoesBackInTime) {
    Machine m(to_host());
    m.code({addi(a0, a0, 1), jal(x0, -4)});
    m.hart.run(100);
    const HartState then = m.hart.state();
    m.hart.run(33);
    const HartState later = m.hart.state();
    m.hart.set_state(then);
    m.hart.run(33);
    EXPECT_EQ(m.hart.state(), later);
}

TEST(State, RestartKeepsCountersAndLines) {
    Machine m(fp_config());
    const HartState fresh = m.hart.state();
    m.code({li(a0, 1), fdiv_d(1, 0, 0), csrrwi(x0, kCsrMie, 8), csrrwi(x0, kCsrMscratch, 3), lr_w(a1, a2),
            nop()});
    m.hart.set_x(a2, kRam);
    m.hart.run(5);
    m.hart.set_irq(Irq::kTimer, true);
    m.hart.restart(kRam + 0x100);
    HartState expected = fresh;
    expected.pc = kRam + 0x100;
    expected.steps = expected.minstret = expected.mcycle = 5;
    expected.mip = 0x80;
    EXPECT_EQ(m.hart.state(), expected);
}

TEST(State, ResetForgetsEverything) {
    Machine m;
    const HartState fresh = m.hart.state();
    m.code({addi(a0, a0, 1), wfi()});
    m.hart.set_irq(Irq::kTimer, true);
    m.hart.run(5);
    m.hart.reset();
    EXPECT_EQ(m.hart.state(), fresh);
}

}  // namespace
}  // namespace orrery::emu::test
