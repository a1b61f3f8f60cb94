// Instructions a second of the interpreter on a scheduler-like program, whole and in small run() budgets, and
// of Unicorn on the same program. The ratio within one run is what counts: hosts differ and are noisy.
#include <benchmark/benchmark.h>
#include <unicorn/unicorn.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kInstructions = 10'000'000;

std::vector<char> program() {
    std::ifstream in(ORRERY_BENCH_PROGRAM, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.empty() || bytes.size() > kRamBytes) {
        throw std::runtime_error(std::string(ORRERY_BENCH_PROGRAM) + " is missing or too large");
    }
    return bytes;
}

void run_hart(benchmark::State& state) {
    Machine machine({.reset_pc = kRam, .trap_to_host = true});
    const std::vector<char> code = program();
    std::copy(code.begin(), code.end(), machine.bus.ram());
    machine.hart.set_x(10, 12345);
    const auto budget = static_cast<std::uint64_t>(state.range(0));
    for (auto _ : state) {
        for (std::uint64_t done = 0; done < kInstructions; done += budget) {
            if (machine.hart.run(budget) != StopReason::kBudget) state.SkipWithError("the program ended");
        }
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kInstructions));
}

void run_unicorn(benchmark::State& state) {
    uc_engine* uc = nullptr;
    if (uc_open(UC_ARCH_RISCV, UC_MODE_RISCV64, &uc) != UC_ERR_OK) return state.SkipWithError("uc_open");
    const std::vector<char> code = program();
    std::uint64_t seed = 12345;
    std::uint64_t pc = kRam;
    uc_mem_map(uc, kRam, kRamBytes, UC_PROT_ALL);
    uc_mem_write(uc, kRam, code.data(), code.size());
    uc_reg_write(uc, UC_RISCV_REG_A0, &seed);
    const auto budget = static_cast<std::uint64_t>(state.range(0));
    for (auto _ : state) {
        for (std::uint64_t done = 0; done < kInstructions; done += budget) {
            if (uc_emu_start(uc, pc, 0, 0, budget) != UC_ERR_OK) state.SkipWithError("the program ended");
            uc_reg_read(uc, UC_RISCV_REG_PC, &pc);
        }
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kInstructions));
    uc_close(uc);
}

BENCHMARK(run_hart)->Name("hart")->Arg(kInstructions)->Arg(1000)->Arg(100)->Unit(benchmark::kMillisecond);
BENCHMARK(run_unicorn)
    ->Name("unicorn")
    ->Arg(kInstructions)
    ->Arg(1000)
    ->Arg(100)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::emu::test

BENCHMARK_MAIN();
