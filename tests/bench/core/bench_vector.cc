// Multiply-adds of floats a second on a vector hart, for each kind of host instructions, and natively: saxpy
// on arrays that stay in the host's second-level cache, and without memory.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/core/machine.h"
#include "tools/bench/thread_clock.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kElements = 16384, kTimes = 500;
constexpr std::uint64_t kX = kRam + 0x8000, kY = kX + kElements * 4;
constexpr std::uint64_t kRegisters = kRam + 256;  // vector.S
constexpr std::uint32_t kVlen = 2048;

std::vector<char> program() {
    std::ifstream in(ORRERY_BENCH_VECTOR, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.empty()) throw std::runtime_error(std::string(ORRERY_BENCH_VECTOR) + " is missing");
    return bytes;
}

// Thousands of millions of multiply-adds a second.
double rate(double adds, double seconds) {
    return adds / seconds / 1e9;
}

double on_hart(Simd simd, std::uint64_t entry, std::uint64_t times, double adds) {
    Machine machine{{.reset_pc = entry, .fp = true, .vlen = kVlen, .simd = simd, .trap_to_host = true}};
    const std::vector<char> code = program();
    std::copy(code.begin(), code.end(), machine.bus.ram());
    HartState state = machine.hart.state();
    state.f[10] = 0xffffffff3f800000;
    state.x[10] = kElements;
    state.x[11] = kX;
    state.x[12] = kY;
    state.x[13] = times;
    machine.hart.set_state(state);
    return rate(adds, bench::thread_seconds_of([&] { machine.hart.run(1ull << 40); }));
}

#if defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void
saxpy(float* y, const float* x, float a, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
        y[i] += a * x[i];
}
double natively() {
    std::vector<float> x(kElements), y(kElements);
    volatile float a = 1;
    const double adds = static_cast<double>(kElements * kTimes * 10);
    return rate(adds, bench::thread_seconds_of([&] {
                    for (std::uint64_t i = 0; i < kTimes * 10; ++i)
                        saxpy(y.data(), x.data(), a, kElements);
                }));
}

int run() {
    fmt::print("native saxpy {:.2f} G/s\n", natively());
    for (const Simd simd : {Simd::kPortable, Simd::kAvx2, Simd::kAvx512}) {
        if (!simd_usable(simd)) continue;
        constexpr std::uint64_t kRounds = 200'000;
        constexpr double kAddsOfRound = 4 * 4.0 * kVlen / 32;
        const std::uint64_t fewer = simd == Simd::kPortable ? 20 : 1;
        fmt::print(
            "{:<9} saxpy {:.2f} G/s, in registers {:.2f} G/s\n", to_string(simd),
            on_hart(simd, kRam, kTimes / fewer, static_cast<double>(kElements * (kTimes / fewer))),
            on_hart(simd, kRegisters, kRounds / fewer, kAddsOfRound * static_cast<double>(kRounds / fewer)));
    }
    return 0;
}

}  // namespace
}  // namespace orrery::emu::test

int main() {
    try {
        return orrery::emu::test::run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_vector: %s\n", error.what());
        return 1;
    }
}
