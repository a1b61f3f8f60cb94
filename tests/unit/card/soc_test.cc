// The control core's registers and windows, used by firmware.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kNothing = ~std::uint64_t{0};

script_op load(std::uint64_t address) {
    return {OP_READ, address, 0, 0};
}
script_op store(std::uint64_t address, std::uint64_t value) {
    return {OP_WRITE, address, value, 0};
}

class Soc : public testing::Test {
  protected:
    void SetUp() override { rig_.boot_script(); }
    static script_op read(std::uint64_t reg) { return CardRig::read(reg); }
    static script_op write(std::uint64_t reg, std::uint64_t value) { return CardRig::write(reg, value); }
    std::uint64_t vram(std::uint64_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, rig_.card().vram().at(offset, 8), 8);
        return value;
    }
    CardRig rig_;
};

TEST_F(Soc, TellsWhatTheCardIsMadeOf) {
    EXPECT_EQ(rig_.soc(SOC_UID), 0x1234u);
    EXPECT_EQ(rig_.soc(SOC_CONFIG), 2u | 4ull << 16 | 4ull << 32 | 8ull << 48);
    EXPECT_EQ(rig_.soc(SOC_VRAM_SIZE), 64u << 20);
    EXPECT_EQ(rig_.soc(SOC_BOOT_COUNT), 1u);
    const auto kinds =
        rig_.run({read(SOC_ENGINE(0) + SOC_ENGINE_KIND), read(SOC_ENGINE(1) + SOC_ENGINE_KIND),
                  read(SOC_ENGINE(2) + SOC_ENGINE_KIND), read(SOC_ENGINE(5) + SOC_ENGINE_KIND),
                  read(SOC_ENGINE(6) + SOC_ENGINE_KIND), read(SOC_ENGINE(63) + SOC_ENGINE_KIND)});
    EXPECT_EQ(kinds[0].result, ORR_ENGINE_COPY);
    EXPECT_EQ(kinds[1].result, ORR_ENGINE_COPY);
    EXPECT_EQ(kinds[2].result, ORR_ENGINE_VECTOR);
    EXPECT_EQ(kinds[3].result, ORR_ENGINE_VECTOR);
    EXPECT_EQ(kinds[4].result, 0u);
    EXPECT_EQ(kinds[5].result, 0u);
    const auto of_kind = [&](std::uint64_t kind, std::uint64_t reg) {
        return rig_.soc(SOC_KIND(kind) + reg);
    };
    const std::uint64_t both = 1u << SOC_PREEMPT_GROUP | 1u << SOC_PREEMPT_NOW;
    EXPECT_EQ(of_kind(ORR_ENGINE_COPY, SOC_KIND_PORTS), 2u);
    EXPECT_EQ(of_kind(ORR_ENGINE_COPY, SOC_KIND_UNITS), 0u);
    EXPECT_EQ(of_kind(ORR_ENGINE_COPY, SOC_KIND_DESC_BYTES), sizeof(orr_desc_box));
    EXPECT_EQ(of_kind(ORR_ENGINE_COPY, SOC_KIND_PREEMPT), both);
    EXPECT_EQ(of_kind(ORR_ENGINE_VECTOR, SOC_KIND_PORTS), 4u);
    EXPECT_EQ(of_kind(ORR_ENGINE_VECTOR, SOC_KIND_UNITS), 8u);
    EXPECT_EQ(of_kind(ORR_ENGINE_VECTOR, SOC_KIND_PREEMPT), both);
    for (const std::uint64_t none : {0u, ORR_ENGINE_VECTOR + 1, SOC_KINDS_MAX - 1}) {
        EXPECT_EQ(of_kind(none, SOC_KIND_PORTS), 0u);
        EXPECT_EQ(of_kind(none, SOC_KIND_DESC_BYTES), 0u);
    }
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
    EXPECT_EQ(of_kind(ORR_ENGINE_COPY, 0x38), 0u) << "no such register";
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 1u);
}

TEST_F(Soc, ResetValuesAreThoseOfTheContract) {
    const auto values = rig_.run({read(SOC_TIMER), read(SOC_DB_POP), read(SOC_DONE_POP), read(SOC_POKE_POP),
                                  read(SOC_WINDOW_FAULT), read(SOC_SEM_STATUS)});
    EXPECT_EQ(values[0].result, kNothing);
    EXPECT_EQ(values[1].result, kNothing);
    EXPECT_EQ(values[2].result, kNothing);
    EXPECT_EQ(values[3].result, kNothing);
    EXPECT_EQ(values[4].result, 0u);
    EXPECT_EQ(values[5].result, 0u);
}

TEST_F(Soc, HolesReadAsZeroAndCount) {
    const auto values = rig_.run({read(0x50), read(0x7f8), read(0xfff8), write(0x50, 1), write(SOC_UID, 5),
                                  read(SOC_HALT), write(SOC_ENGINE(40), 1), write(SOC_DB_RING, 77),
                                  write(SOC_MMU_CMD, 9), write(SOC_DB_CMD, 3), write(SOC_WINDOW_FAULT, 5)});
    EXPECT_EQ(values[0].result, 0u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), values.size());
}

TEST_F(Soc, WindowsReachVramAndHostMemory) {
    rig_.word(kRamBase + 0x100) = 0x1111;
    const auto values = rig_.run({store(ORR_VRAM_WINDOW + 0x8000, 0x2222), load(ORR_VRAM_WINDOW + 0x8000),
                                  load(ORR_HOST_WINDOW(kRamBase + 0x100)),
                                  store(ORR_HOST_WINDOW(kRamBase + 0x108), 0x3333), read(SOC_WINDOW_FAULT)});
    EXPECT_EQ(vram(0x8000), 0x2222u);
    EXPECT_EQ(values[1].result, 0x2222u);
    EXPECT_EQ(values[2].result, 0x1111u);
    EXPECT_EQ(rig_.word(kRamBase + 0x108), 0x3333u);
    EXPECT_EQ(values[4].result, 0u);
    rig_.word(kRamBase + 0x100) = 0x8877'6655'4433'2211;
    const auto parts = rig_.run({{OP_READ32, ORR_HOST_WINDOW(kRamBase + 0x104), 0, 0},
                                 {OP_READ8, ORR_HOST_WINDOW(kRamBase + 0x103), 0, 0}});
    EXPECT_EQ(parts[0].result, 0x8877'6655u);
    EXPECT_EQ(parts[1].result, 0x44u);
}

TEST_F(Soc, TheContextWindowGoesThroughTheMmu) {
    rig_.map_page(9, 0x5000, 0x20000, kRw);
    rig_.map_page(9, 0x6000, kRamBase + 0x3000, kRw | kHostTarget);
    rig_.run(rig_.set_root(9));
    const auto values =
        rig_.run({store(ORR_CONTEXT_WINDOW(9, 0x5010), 0xabc), store(ORR_CONTEXT_WINDOW(9, 0x6018), 0xdef),
                  load(ORR_CONTEXT_WINDOW(9, 0x5010)), read(SOC_WINDOW_FAULT)});
    EXPECT_EQ(vram(0x20010), 0xabcu);
    EXPECT_EQ(rig_.word(kRamBase + 0x3018), 0xdefu);
    EXPECT_EQ(values[2].result, 0xabcu);
    EXPECT_EQ(values[3].result, 0u);
}

TEST_F(Soc, AWindowFaultIsStickyAndTheFirst) {
    rig_.map_page(9, 0x5000, 0x20000, ORR_PTE_READ);
    rig_.map_page(9, 0x7000, 0x20000, kRw | of_node(5));
    rig_.run(rig_.set_root(9));
    const std::uint64_t bad = ORR_CONTEXT_WINDOW(9, 0x9000);
    const auto values =
        rig_.run({load(bad), load(ORR_HOST_WINDOW(0x10)), read(SOC_WINDOW_FAULT), read(SOC_WINDOW_FAULT_VA),
                  write(SOC_WINDOW_FAULT, 0), store(ORR_CONTEXT_WINDOW(9, 0x5000), 1), read(SOC_WINDOW_FAULT),
                  write(SOC_WINDOW_FAULT, 0), load(ORR_HOST_WINDOW(0x10)), read(SOC_WINDOW_FAULT),
                  write(SOC_WINDOW_FAULT, 0), load(ORR_CONTEXT_WINDOW(1000, 0)), read(SOC_WINDOW_FAULT),
                  write(SOC_WINDOW_FAULT, 0), store(ORR_CONTEXT_WINDOW(9, 0x7000), 1), read(SOC_WINDOW_FAULT),
                  write(SOC_WINDOW_FAULT, 0), load(ORR_CONTEXT_WINDOW(9, 0x7000)), read(SOC_WINDOW_FAULT)});
    EXPECT_EQ(values[0].result, 0u);
    EXPECT_EQ(values[2].result, ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(values[3].result, bad);
    EXPECT_EQ(values[6].result, ORR_FAULT_PERMISSION);
    EXPECT_EQ(values[9].result, ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(values[12].result, ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(values[15].result, ORR_FAULT_NO_ROUTE);
    EXPECT_EQ(values[18].result, ORR_FAULT_PEER_READ);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING);
}

TEST_F(Soc, AnAccessToNowhereHaltsFirmwareWithoutAHandler) {
    rig_.start({load(0x1234'5678)});
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_HALTED);
    EXPECT_EQ(rig_.read64(ORR_R_HALT_CAUSE), 5u);  // load access fault
    EXPECT_EQ(rig_.read64(ORR_R_HALT_TVAL), 0x1234'5678u);
    EXPECT_GE(rig_.read64(ORR_R_HALT_PC), ORR_SRAM_BASE);
    EXPECT_EQ(rig_.raised, (std::vector<unsigned>{ORR_IRQ_FAULT}));
}

TEST_F(Soc, HaltsOnWhatNoHandlerCanMend) {
    const script_op cases[] = {
        load(ORR_VRAM_WINDOW + (64 << 20)),         // beyond VRAM
        {OP_AMO, ORR_VRAM_WINDOW, 1, 0},            // atomics are for SRAM
        {OP_READ32, ORR_SOC_BASE + SOC_UID, 0, 0},  // registers are 8 bytes
        load(ORR_VRAM_WINDOW + 4),                  // misaligned
        {OP_WRITE, ORR_ROM_BASE, 1, 0},             // ROM
        {OP_JUMP, ORR_VRAM_WINDOW, 0, 0},           // no code there
        {OP_JUMP, 0, 0, 0},
    };
    for (const script_op& op : cases) {
        CardRig rig;
        rig.boot_script();
        rig.start({op});
        rig.settle();
        EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_HALTED) << op.code << " at " << op.address;
        EXPECT_LT(rig.read64(ORR_R_HALT_CAUSE), 16u);
    }
}

TEST_F(Soc, ATrapLoopHalts) {
    // The handler itself faults: first at its first instruction, then at a later one.
    rig_.start({{OP_TRAP_VECTOR, 0x4000, 0, 0}, load(0)});
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_HALTED);
    EXPECT_EQ(rig_.read64(ORR_R_HALT_PC), 0x4000u);

    CardRig rig;
    rig.boot_script();
    const std::uint64_t handler = ORR_SRAM_BASE + 0x40000;
    // nop; ld zero, 0(zero)
    rig.start({store(handler, 0x0000'3003'0000'0013), {OP_TRAP_VECTOR, handler, 0, 0}, load(8)});
    rig.settle();
    EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_HALTED);
    EXPECT_EQ(rig.read64(ORR_R_HALT_PC), handler + 4);
}

TEST_F(Soc, AHandlerMaySkipWhatTrapped) {
    const std::uint64_t handler = ORR_SRAM_BASE + 0x40000;
    // csrr t0, mepc; addi t0, t0, 2 (a compressed load); csrw mepc, t0; mret -- the operation's load is c.ld
    // or ld: take the width from its low bits instead.
    const std::uint32_t code[] = {
        0x341022f3,  // csrr t0, mepc
        0x0002d303,  // lhu  t1, 0(t0)
        0x00337313,  // andi t1, t1, 3
        0xffd30313,  // addi t1, t1, -3
        0x00133313,  // seqz via sltiu t1, t1, 1
        0x00131313,  // slli t1, t1, 1
        0x006282b3,  // add  t0, t0, t1
        0x00228293,  // addi t0, t0, 2
        0x34129073,  // csrw mepc, t0
        0x30200073,  // mret
    };
    std::vector<script_op> script;
    for (unsigned i = 0; i < std::size(code); i += 2) {
        script.push_back(store(handler + 4 * i, code[i] | std::uint64_t{code[i + 1]} << 32));
    }
    script.push_back({OP_TRAP_VECTOR, handler, 0, 0});
    script.push_back(load(0x10));
    script.push_back(load(0x18));
    rig_.run(script);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING);
}

TEST_F(Soc, FirmwareCanStopItself) {
    rig_.start({write(SOC_HALT, 0x42)});
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_HALTED);
    EXPECT_EQ(rig_.read64(ORR_R_HALT_CAUSE), ORR_HALT_REQUESTED | 0x42);
    rig_.write32(ORR_R_MBOX_DOORBELL, 1);
    rig_.settle();
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    EXPECT_EQ(rig_.read64(ORR_R_HALT_CAUSE), 0u);
    rig_.boot_script();
}

TEST_F(Soc, SleepIsSkippedInModelTime) {
    const std::uint64_t before = rig_.read64(ORR_R_MODEL_TIME);
    const std::uint64_t instructions = rig_.counter(ORR_CTR_CORE_INSTRUCTIONS);
    rig_.run({{OP_SLEEP, 0, kPsPerSecond, 0}});
    const std::uint64_t slept = rig_.read64(ORR_R_MODEL_TIME) - before;
    EXPECT_GE(slept, kPsPerSecond);
    EXPECT_LT(slept, kPsPerSecond + kPsPerSecond / 1000);
    EXPECT_LT(rig_.counter(ORR_CTR_CORE_INSTRUCTIONS) - instructions, 1000u);
}

TEST_F(Soc, CyclesFollowTheModelClock) {
    const auto values = rig_.run({read(SOC_TIME),
                                  {OP_CYCLES, 0, 0, 0},
                                  {OP_SLEEP, 0, 1'000'000'000, 0},
                                  read(SOC_TIME),
                                  {OP_CYCLES, 0, 0, 0}});
    const std::uint64_t time = values[3].result - values[0].result;
    const std::uint64_t cycles = values[4].result - values[1].result;
    EXPECT_NEAR(static_cast<double>(cycles), static_cast<double>(time) / 1000.0, 5000.0);
}

TEST_F(Soc, SemaphoresGetTimeAndValue) {
    rig_.map_page(9, 0x5000, 0x20000, kRw);
    rig_.map_page(9, 0x6000, kRamBase + 0x3000, kRw | kHostTarget);
    rig_.map_page(9, 0x7000, 0x1000, ORR_PTE_WRITE | of_node(5));
    rig_.write32(ORR_R_ROUTE(5), ORR_ROUTE_VALID);
    rig_.run(rig_.set_root(9));
    const auto signal = [](std::uint64_t asid, std::uint64_t va, std::uint64_t value) {
        return std::vector<script_op>{write(SOC_SEM_ASID, asid), write(SOC_SEM_VA, va),
                                      write(SOC_SEM_SIGNAL, value), read(SOC_SEM_STATUS)};
    };
    EXPECT_EQ(rig_.run(signal(9, 0x5010, 7))[3].result, ORR_FAULT_NONE);
    EXPECT_EQ(vram(0x20010), 7u);
    EXPECT_GT(vram(0x20018), 0u);
    EXPECT_LE(vram(0x20018), rig_.read64(ORR_R_MODEL_TIME));
    EXPECT_EQ(rig_.run(signal(9, 0x6020, 8))[3].result, ORR_FAULT_NONE);
    EXPECT_EQ(rig_.word(kRamBase + 0x3020), 8u);
    EXPECT_EQ(rig_.run(signal(9, 0x5018, 8))[3].result, ORR_FAULT_MISALIGNED);
    EXPECT_EQ(rig_.run(signal(9, 0x9000, 8))[3].result, ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(rig_.run(signal(8, 0x5000, 8))[3].result, ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(rig_.run(signal(1ull << 32, 0x5000, 8))[3].result, ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(rig_.run(signal(9, 0x7000, 8))[3].result, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(rig_.counter(ORR_CTR_SEMAPHORE_SIGNALS), 3u);
}

TEST_F(Soc, SemaphoresOnlyGrowAndTheFirstFailureStays) {
    rig_.map_page(9, 0x5000, 0x20000, kRw);
    rig_.map_page(9, 0x6000, kRamBase + 0x3000, kRw | kHostTarget);
    rig_.run(rig_.set_root(9));
    const auto signal = [&](std::uint64_t va, std::uint64_t value) {
        const auto ops = rig_.run({write(SOC_SEM_ASID, 9), write(SOC_SEM_VA, va),
                                   write(SOC_SEM_SIGNAL, value), read(SOC_SEM_STATUS)});
        EXPECT_EQ(ops[3].result, ORR_FAULT_NONE);
    };
    const auto at = [&](std::uint64_t va) {
        return va < 0x6000 ? vram(0x20000 + va % 0x1000) : rig_.word(kRamBase + 0x3000 + va % 0x1000);
    };
    for (const std::uint64_t va : {0x5040ull, 0x6040ull}) {
        signal(va, 7);
        const std::uint64_t time = at(va + 8);
        signal(va, 6);
        signal(va, 7);
        EXPECT_EQ(at(va), 7u);
        EXPECT_EQ(at(va + 8), time) << "what changes nothing has no time";
        signal(va, 8);
        EXPECT_EQ(at(va), 8u);
        EXPECT_GT(at(va + 8), time);
        signal(va, ORR_SEM_FAILED | 3);
        EXPECT_EQ(at(va), ORR_SEM_FAILED | 3);
        signal(va, ORR_SEM_FAILED | 4);
        signal(va, 9);
        EXPECT_EQ(at(va), ORR_SEM_FAILED | 3);
    }
    // Nobody was left who might signal: that it was so stays to be seen.
    signal(0x6080, 1);
    const auto close = [&](std::uint64_t memory) {
        return rig_.run({write(SOC_SEM_CLOSE, memory), read(SOC_SEM_STATUS)})[1].result;
    };
    for (const std::uint64_t va : {0x5080ull, 0x6080ull}) {
        signal(va, 1);
        const std::uint64_t time = at(va + 8);
        const std::uint64_t memory =
            va < 0x6000 ? ORR_VRAM_WINDOW + 0x20080 : ORR_HOST_WINDOW(kRamBase + 0x3080);
        EXPECT_EQ(close(memory), ORR_FAULT_NONE);
        EXPECT_EQ(at(va), 1u);
        EXPECT_EQ(at(va + 8), ORR_SEM_CLOSED | time);
        signal(va, 2);
        EXPECT_GT(at(va + 8), ORR_SEM_CLOSED | time);
        EXPECT_EQ(close(memory + 8), ORR_FAULT_MISALIGNED);
    }
    EXPECT_EQ(close(ORR_HOST_WINDOW(kRamBase + kRamBytes)), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(close(ORR_VRAM_WINDOW + rig_.card().vram().size()), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(close(ORR_CONTEXT_WINDOW(9, 0x5080)), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(close(0), ORR_FAULT_PAGE_RANGE);
}

TEST_F(Soc, TheSameMemoryHasOneNameInAllContexts) {
    rig_.map_page(9, 0x5000, 0x20000, kRw);
    rig_.map_page(10, 0x8000, 0x20000, ORR_PTE_READ);
    rig_.map_page(9, 0x6000, kRamBase + 0x3000, kRw | kHostTarget);
    rig_.map_page(9, 0x7000, 0x1000, kRw | of_node(5));
    rig_.run(rig_.set_root(9));
    rig_.run(rig_.set_root(10));
    const auto translate = [&](std::uint64_t asid, std::uint64_t va) {
        const auto ops =
            rig_.run({write(SOC_MMU_ASID, asid), write(SOC_MMU_ARG, va),
                      write(SOC_MMU_CMD, SOC_MMU_TRANSLATE), read(SOC_MMU_RESULT), read(SOC_MMU_FAULT)});
        return std::pair(ops[3].result, ops[4].result);
    };
    const auto signal = [&](std::uint64_t va) {
        return rig_
            .run({write(SOC_SEM_ASID, 9), write(SOC_SEM_VA, va), write(SOC_SEM_SIGNAL, 1),
                  read(SOC_SEM_MEMORY)})[3]
            .result;
    };
    using Answer = std::pair<std::uint64_t, std::uint64_t>;
    EXPECT_EQ(translate(9, 0x5010), Answer(ORR_VRAM_WINDOW + 0x20010, 0));
    EXPECT_EQ(translate(10, 0x8010), Answer(ORR_VRAM_WINDOW + 0x20010, 0));
    EXPECT_EQ(translate(9, 0x6018), Answer(ORR_HOST_WINDOW(kRamBase + 0x3018), 0));
    EXPECT_EQ(translate(9, 0x7000), Answer(kNothing, ORR_FAULT_PEER_READ));
    EXPECT_EQ(translate(9, 0x9000), Answer(kNothing, ORR_FAULT_NOT_MAPPED));
    EXPECT_EQ(translate(11, 0x5000), Answer(kNothing, ORR_FAULT_NO_CONTEXT));
    EXPECT_EQ(translate(1ull << 32 | 9, 0x5000), Answer(kNothing, ORR_FAULT_NO_CONTEXT));
    EXPECT_EQ(translate(9, ~0ull), Answer(kNothing, ORR_FAULT_NON_CANONICAL));
    EXPECT_EQ(signal(0x5010), ORR_VRAM_WINDOW + 0x20010);
    EXPECT_EQ(signal(0x6020), ORR_HOST_WINDOW(kRamBase + 0x3020));
    EXPECT_EQ(signal(0x7000), kNothing);
    EXPECT_EQ(signal(0x9000), kNothing);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(Soc, TraceWordsCostACycleHeardOrNot) {
    // From one look at the clock to the next with a store between them.
    const auto cost = [&](std::uint64_t address) {
        const auto ops = rig_.run({read(SOC_TIME), store(address, 0xabcdef), read(SOC_TIME)});
        return ops[2].result - ops[0].result;
    };
    const std::uint64_t sram = cost(ORR_SRAM_BASE + 0x60000);
    EXPECT_EQ(cost(ORR_SOC_BASE + SOC_TRACE), sram);
    EXPECT_GT(cost(ORR_SOC_BASE + SOC_DB_TAG), sram);
    std::vector<std::pair<std::uint64_t, ModelTime>> heard;
    rig_.card().core().set_trace_listener(
        [&](std::uint64_t word, ModelTime now) { heard.emplace_back(word, now); });
    const auto ops = rig_.run({read(SOC_TIME), write(SOC_TRACE, 1), write(SOC_TRACE, ~0ull), read(SOC_TIME)});
    EXPECT_EQ(cost(ORR_SOC_BASE + SOC_TRACE), sram);
    ASSERT_EQ(heard.size(), 3u);
    EXPECT_EQ(heard[0].first, 1u);
    EXPECT_EQ(heard[1].first, ~0ull);
    EXPECT_GT(heard[0].second, ops[0].result);
    EXPECT_LT(heard[0].second, heard[1].second);
    EXPECT_LT(heard[1].second, ops[3].result);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

// Between two looks at the clock around a store of another activity, and two right inside.
TEST_F(Soc, TimeIsChargedToWhatTheCoreSaysThatItDoes) {
    const auto cost = [&](std::uint64_t address) {
        const auto ops = rig_.run({read(SOC_TIME), store(address, 7), read(SOC_TIME)});
        return ops[2].result - ops[0].result;
    };
    EXPECT_EQ(cost(ORR_SOC_BASE + SOC_ACTIVITY(ORR_ACTIVITY_OTHER)), cost(ORR_SRAM_BASE + 0x60000));
    const auto of = [&](std::uint32_t activity) {
        return rig_.counter(static_cast<orr_counter>(ORR_CTR_CORE_OTHER_PS + activity));
    };
    for (std::uint32_t activity = 1; activity < ORR_ACTIVITIES; ++activity) {
        const std::uint64_t before = of(activity);
        const auto ops =
            rig_.run({read(SOC_TIME), write(SOC_ACTIVITY(activity), ~0ull), read(SOC_TIME),
                      load(ORR_VRAM_WINDOW), store(ORR_HOST_WINDOW(kRamBase + 0x3000), 1), read(SOC_TIME),
                      write(SOC_ACTIVITY(ORR_ACTIVITY_OTHER), 0), read(SOC_TIME)});
        const std::uint64_t charged = of(activity) - before;
        EXPECT_GT(charged, ops[5].result - ops[2].result) << activity;
        EXPECT_LT(charged, ops[7].result - ops[0].result) << activity;
    }
    std::uint64_t sum = 0;
    for (std::uint32_t activity = 0; activity < ORR_ACTIVITIES; ++activity)
        sum += of(activity);
    EXPECT_EQ(sum, rig_.counter(ORR_CTR_CORE_BUSY_PS));
    // A core that starts anew says nothing yet.
    rig_.run({write(SOC_ACTIVITY(ORR_ACTIVITY_LINKS), 0)});
    const std::uint64_t links = of(ORR_ACTIVITY_LINKS);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.boot_script();
    rig_.run({load(ORR_VRAM_WINDOW)});
    EXPECT_EQ(of(ORR_ACTIVITY_LINKS), links);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(Soc, ScToTheTracePageFailsHeardOrNot) {
    const auto sc = [&] { return rig_.run({{OP_SC, ORR_SOC_BASE + SOC_TRACE, 1, 0}})[0].result; };
    EXPECT_EQ(sc(), 1u);
    unsigned heard = 0;
    rig_.card().core().set_trace_listener([&](std::uint64_t, ModelTime) { ++heard; });
    EXPECT_EQ(sc(), 1u);
    EXPECT_EQ(heard, 0u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(Soc, WaitsForMemoryAreCounted) {
    const std::uint64_t before = rig_.counter(ORR_CTR_CORE_STALL_PS);
    rig_.run({});
    const std::uint64_t empty = rig_.counter(ORR_CTR_CORE_STALL_PS) - before;
    rig_.run({load(ORR_VRAM_WINDOW), store(ORR_VRAM_WINDOW, 1)});
    const std::uint64_t with = rig_.counter(ORR_CTR_CORE_STALL_PS) - before - empty;
    const Sku& sku = rig_.card().sku();
    // Two operations more than the script of none: each is read with 3 loads and answered with a store.
    const std::uint64_t script = empty + 2 * (3 * sku.host_load_ps + sku.host_store_ps);
    EXPECT_EQ(with, script + sku.vram_load_ps + sku.vram_store_ps);
}

TEST_F(Soc, BusMasteringGatesHostMemory) {
    rig_.device().bus_master(false);
    rig_.start({});
    rig_.settle();
    // The firmware read an operation 0 (its end) from memory that it could not see, and could not count it.
    EXPECT_EQ(rig_.word(CardRig::kScript), 0u);
    rig_.device().bus_master(true);
    rig_.start({read(SOC_WINDOW_FAULT)});
    rig_.settle();
    EXPECT_EQ(rig_.results(1)[0].result, ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(rig_.word(CardRig::kScript), 2u);
}

}  // namespace
}  // namespace orrery::emu
