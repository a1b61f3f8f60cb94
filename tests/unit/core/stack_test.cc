// Handlers call each other without end: none of them may leave anything on the host's stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <random>

#include "tests/unit/core/machine.h"
#include "tests/unit/core/random_program.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kCode = kRam, kData = kRam + 0x20000;
constexpr unsigned kPrograms = 20;

// A million and more instructions of all kinds in one run().
void* run_programs(void*) {
    std::mt19937_64 random(7);
    for (unsigned n = 0; n < kPrograms; ++n) {
        const Program program = make_program(
            random, {.fp = true, .compressed = true, .atomics = true, .instructions = 300, .rounds = 2000});
        Config config = fp_config();
        config.has_exit_pc = true;
        config.exit_pc = kCode + program.code.size();
        Machine machine(config);
        std::ranges::copy(program.code, machine.bus.ram());
        HartState state;
        for (auto& x : state.x)
            x = interesting_integer(random);
        state.x[2] = kData + 0x1000;  // at a page border: misaligned accesses cross it
        state.x[8] = kData + 0x3800;
        state.x[9] = kData + 0x5ff8;
        state.pc = kCode;
        for (auto& f : state.f)
            f = interesting_double(random);
        state.fcsr = static_cast<std::uint32_t>(n % 5 << 5);
        state.mstatus = 3u << 13;
        machine.hart.set_state(state);
        EXPECT_EQ(machine.hart.run(100'000'000), StopReason::kExit) << "program " << n;
    }
    return nullptr;
}

TEST(Stack, NoInstructionLeavesAnythingOnIt) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, &attributes, run_programs, nullptr), 0);
    EXPECT_EQ(pthread_join(thread, nullptr), 0);
    EXPECT_EQ(pthread_attr_destroy(&attributes), 0);
}

}  // namespace
}  // namespace orrery::emu::test
