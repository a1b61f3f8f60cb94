// Random programs, here and in Unicorn: all registers, all memory and the number of instructions agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/unit/core/machine.h"
#include "tests/unit/core/random_program.h"
#include "tests/unit/core/unicorn_oracle.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kCode = kRam + 0x800;  // crosses page borders
constexpr std::uint64_t kData = kRam + 0x20000;

std::uint64_t seed() {
    const char* given = std::getenv("ORRERY_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0) : 20261121;
}

HartState start_state(std::mt19937_64& random, bool fp) {
    HartState state;
    for (auto& x : state.x)
        x = interesting_integer(random);
    state.x[0] = 0;
    state.x[2] = kData + 0x1000;  // at a page border: misaligned accesses cross it
    state.x[8] = kData + 0x3800;
    state.x[9] = kData + 0x5ff8;
    state.pc = kCode;
    if (fp) {
        for (int i = 0; i < 16; ++i)
            state.f[i] = 0xffffffff00000000u | interesting_float(random);
        for (int i = 16; i < 32; ++i)
            state.f[i] = interesting_double(random);
        state.fcsr = static_cast<std::uint32_t>(random() % 5 << 5 | random() % 32);
        state.mstatus = 3u << 13;
    }
    return state;
}

// Unicorn leaves the high halves of singles as they come; see random_program.cc.
HartState get(const UnicornOracle& oracle, bool fp) {
    HartState state = oracle.get(fp);
    for (int i = 0; fp && i < 16; ++i)
        state.f[i] |= 0xffffffff00000000u;
    return state;
}

void compare(const HartState& ours, const HartState& theirs) {
    for (unsigned i = 0; i < 32; ++i)
        EXPECT_EQ(ours.x[i], theirs.x[i]) << "x" << i << std::hex << " " << ours.x[i] << " " << theirs.x[i];
    for (unsigned i = 0; i < 32; ++i)
        EXPECT_EQ(ours.f[i], theirs.f[i]) << "f" << i << std::hex << " " << ours.f[i] << " " << theirs.f[i];
    EXPECT_EQ(ours.fcsr, theirs.fcsr);
    EXPECT_EQ(ours.pc, theirs.pc);
}

bool same_registers(const HartState& a, const HartState& b) {
    return std::equal(a.x, a.x + 32, b.x) && std::equal(a.f, a.f + 32, b.f) && a.fcsr == b.fcsr &&
           a.pc == b.pc;
}

// One instruction at a time, in both: names the first that differs.
void explain(Machine& machine, UnicornOracle& oracle, std::span<std::uint8_t> their_memory,
             const HartState& start, std::span<const std::uint8_t> ram, bool fp) {
    std::copy(ram.begin(), ram.end(), machine.bus.ram());
    std::copy(ram.begin(), ram.end(), their_memory.begin());
    machine.hart.set_state(start);
    oracle.set(start, fp);
    for (unsigned i = 0; i < 100000; ++i) {
        const HartState before = machine.hart.state();
        const StopReason reason = machine.hart.run(1);
        if (reason != StopReason::kBudget && machine.hart.steps() == before.steps) return;
        const std::string error = oracle.run(~std::uint64_t{0}, 1);
        const HartState ours = machine.hart.state();
        if (error.empty() && same_registers(ours, get(oracle, fp)) &&
            std::equal(their_memory.begin(), their_memory.end(), machine.bus.ram())) {
            continue;
        }
        const auto bits = machine.bus.get<std::uint32_t>(before.pc);
        ADD_FAILURE() << "first difference at step " << i << ", pc " << std::hex << before.pc
                      << ", instruction " << bits << ", x[rs1] " << before.x[bits >> 15 & 31] << ", x[rs2] "
                      << before.x[bits >> 20 & 31] << ", f[rs1] " << before.f[bits >> 15 & 31] << ", f[rs2] "
                      << before.f[bits >> 20 & 31] << ", f[rs3] " << before.f[bits >> 27] << ", fcsr "
                      << before.fcsr << ": " << error;
        compare(ours, get(oracle, fp));
        return;
    }
}

void run_programs(const ProgramOptions& options, unsigned programs, std::uint64_t seed_offset) {
    const std::uint64_t used = seed() + seed_offset;
    std::printf("seed %llu\n", static_cast<unsigned long long>(used - seed_offset));
    std::mt19937_64 random(used);
    std::vector<std::uint8_t> their_ram(kRamBytes + kPageBytes);
    auto* aligned = reinterpret_cast<std::uint8_t*>(
        (reinterpret_cast<std::uintptr_t>(their_ram.data()) + kPageBytes - 1) & ~(kPageBytes - 1));
    const std::span<std::uint8_t> their_memory(aligned, kRamBytes);
    UnicornOracle oracle(kRam, their_memory);
    std::uint64_t instructions = 0;
    for (unsigned n = 0; n < programs && !testing::Test::HasFailure(); ++n) {
        SCOPED_TRACE(testing::Message() << "program " << n);
        const Program program = make_program(random, options);
        const std::uint64_t end = kCode + program.code.size();
        Config config = options.fp ? fp_config() : plain_config();
        config.has_exit_pc = true;
        config.exit_pc = end;
        config.trap_to_host = true;
        config.code_pages = 1u << random() % 4;
        // Loads and stores have other handlers with a meter.
        if (n % 2 == 1)
            config.memory = {.l1_bytes = 4096, .vram_cycles = 3, .host_cycles = 5, .tlb_entries = 4};
        Machine machine(config);
        for (std::uint64_t va = kData; va < kData + 0x8000; va += 8)
            machine.bus.put(va, random());
        for (std::uint64_t va = kData; config.memory.l1_bytes != 0 && va < kData + 0x8000; va += kPageBytes)
            machine.bus.pages[va] =
                PageRef::memory(machine.bus.ram() + (va - kRam), kPageRead | kPageWrite, PagePlace::kVram);
        std::copy(program.code.begin(), program.code.end(), machine.bus.ram() + (kCode - kRam));
        std::copy(machine.bus.bytes().begin(), machine.bus.bytes().end(), their_memory.begin());
        const std::vector<std::uint8_t> ram(their_memory.begin(), their_memory.end());
        const HartState start = start_state(random, options.fp);
        machine.hart.set_state(start);
        machine.hart.take_work();
        // In pieces of any size.
        StopReason reason = StopReason::kBudget;
        while (reason == StopReason::kBudget)
            reason = machine.hart.run(1 + random() % 100);
        ASSERT_EQ(reason, StopReason::kExit)
            << to_string(reason) << ", " << to_string(machine.hart.trap().cause) << std::hex << " tval "
            << machine.hart.trap().tval << " pc " << machine.hart.pc();
        const HartState ours = machine.hart.state();
        oracle.set(start, options.fp);
        // One more than ours would run past the end.
        // Looking at each takes Unicorn ten times as long.
        if (n % 8 < 2) {
            ClassCounts theirs;
            ASSERT_EQ(oracle.run(end, ours.steps, theirs), "");
            EXPECT_EQ(machine.hart.take_work().scalar, theirs.scalar) << "instructions by class";
        } else {
            ASSERT_EQ(oracle.run(end, ours.steps), "");
        }
        EXPECT_TRUE(same_registers(ours, get(oracle, options.fp)));
        EXPECT_EQ(ours.minstret, ours.steps);
        EXPECT_TRUE(std::equal(their_memory.begin(), their_memory.end(), machine.bus.ram()));
        if (testing::Test::HasFailure()) explain(machine, oracle, their_memory, start, ram, options.fp);
        instructions += ours.steps;
    }
    std::printf("%llu instructions\n", static_cast<unsigned long long>(instructions));
}

TEST(Oracle, IntegerPrograms) {
    run_programs({.instructions = 200}, 2000, 0);
}
TEST(Oracle, LongIntegerPrograms) {
    run_programs({.instructions = 1500, .rounds = 2}, 200, 1);
}
TEST(Oracle, ProgramsWithoutCompressed) {
    run_programs({.compressed = false, .instructions = 100}, 500, 2);
}
TEST(Oracle, FpPrograms) {
    run_programs({.fp = true, .atomics = false, .instructions = 100, .rounds = 2}, 5000, 3);
}

}  // namespace
}  // namespace orrery::emu::test
