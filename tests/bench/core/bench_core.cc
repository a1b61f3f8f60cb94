// Instructions a second of the interpreter on a scheduler-like program, in run() budgets of the given sizes,
// and of Unicorn on the same program, in turns; and of both from the program's start to its end. Unicorn
// calls a function before each instruction when it is to stop after so many, and runs free when it is not.
//   bench_core INSTRUCTIONS,...
#include <fmt/format.h>
#include <unicorn/unicorn.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/core/machine.h"
#include "tools/bench/measured.h"
#include "tools/bench/thread_clock.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kInstructions = 10'000'000;
constexpr int kRounds = 9;
constexpr std::uint64_t kSeed = 12345, kForEver = ~0ull, kProgramRounds = 100'000;

std::vector<char> program() {
    std::ifstream in(ORRERY_BENCH_PROGRAM, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.empty() || bytes.size() > kRamBytes) {
        throw std::runtime_error(std::string(ORRERY_BENCH_PROGRAM) + " is missing or too large");
    }
    return bytes;
}

// Millions a second, of so many instructions in pieces.
template <typename Piece>
double mips(std::uint64_t budget, Piece piece) {
    const std::uint64_t all = std::max(kInstructions, budget);
    const double took = bench::thread_seconds_of([&] {
        for (std::uint64_t done = 0; done < all; done += budget)
            piece();
    });
    return static_cast<double>(all) / took / 1e6;
}

class OurHart {
  public:
    explicit OurHart(std::uint64_t rounds) {
        const std::vector<char> code = program();
        std::copy(code.begin(), code.end(), machine_.bus.ram());
        machine_.hart.set_x(10, kSeed);
        machine_.hart.set_x(11, rounds);
    }
    double run(std::uint64_t budget) {
        return mips(budget, [&] {
            if (machine_.hart.run(budget) != StopReason::kBudget)
                throw std::runtime_error("the program ended on the interpreter");
        });
    }
    // Seconds to the program's end.
    double run_to_end() {
        return bench::thread_seconds_of([&] {
            if (machine_.hart.run(1ull << 40) == StopReason::kBudget)
                throw std::runtime_error("the program does not end on the interpreter");
        });
    }
    std::uint64_t instructions() const { return machine_.hart.steps(); }

  private:
    Machine machine_{{.reset_pc = kRam, .trap_to_host = true}};
};

class Unicorn {
  public:
    explicit Unicorn(std::uint64_t rounds) {
        if (uc_open(UC_ARCH_RISCV, UC_MODE_RISCV64, &uc_) != UC_ERR_OK) throw std::runtime_error("uc_open");
        const std::vector<char> code = program();
        uc_mem_map(uc_, kRam, kRamBytes, UC_PROT_ALL);
        uc_mem_write(uc_, kRam, code.data(), code.size());
        uc_reg_write(uc_, UC_RISCV_REG_A0, &kSeed);
        uc_reg_write(uc_, UC_RISCV_REG_A1, &rounds);
    }
    ~Unicorn() { uc_close(uc_); }
    Unicorn(const Unicorn&) = delete;
    Unicorn& operator=(const Unicorn&) = delete;
    double run(std::uint64_t budget) {
        return mips(budget, [&] {
            if (uc_emu_start(uc_, pc_, 0, 0, budget) != UC_ERR_OK)
                throw std::runtime_error("the program ended on Unicorn");
            uc_reg_read(uc_, UC_RISCV_REG_PC, &pc_);
        });
    }
    double run_to_end() {
        // As it tells an exception depends on its version.
        return bench::thread_seconds_of([&] {
            const uc_err error = uc_emu_start(uc_, pc_, 0, 0, 0);
            if (error != UC_ERR_EXCEPTION && error != UC_ERR_INSN_INVALID)
                throw std::runtime_error(fmt::format("the program does not come to its ebreak on Unicorn: {}",
                                                     static_cast<int>(error)));
        });
    }

  private:
    uc_engine* uc_ = nullptr;
    std::uint64_t pc_ = kRam;
};

void measure(bench::Measured& measured, std::uint64_t budget) {
    OurHart ours(kForEver);
    Unicorn unicorn(kForEver);
    bench::Measurement one{"interpreter", budget, {}, {}};
    for (int round = 0; round <= kRounds; ++round) {
        const double mine = ours.run(budget), theirs = unicorn.run(budget);
        if (round == 0) continue;  // warms up
        one.samples.push_back(mine);
        one.yardstick.push_back(theirs);
    }
    measured.add(std::move(one));
}

void measure_free(bench::Measured& measured) {
    bench::Measurement one{"interpreter, to the end", {}, {}, {}};
    for (int round = 0; round <= kRounds; ++round) {
        OurHart ours(kProgramRounds);
        Unicorn unicorn(kProgramRounds);
        const double mine = ours.run_to_end(), theirs = unicorn.run_to_end();
        const double millions = static_cast<double>(ours.instructions()) / 1e6;
        if (round == 0) continue;
        one.samples.push_back(millions / mine);
        one.yardstick.push_back(millions / theirs);
    }
    measured.add(std::move(one));
}

}  // namespace
}  // namespace orrery::emu::test

int main(int argc, char** argv) {
    std::istringstream sizes(argc == 2 ? argv[1] : "");
    orrery::bench::Measured measured;
    try {
        for (std::string size; std::getline(sizes, size, ',');)
            orrery::emu::test::measure(measured, std::stoull(size));
        orrery::emu::test::measure_free(measured);
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_core: {}\n", error.what());
        return 1;
    }
}
