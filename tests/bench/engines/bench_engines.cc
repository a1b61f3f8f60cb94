// How fast engines work on the host: copies against memcpy, kernels in instructions a second.
//
// Counter memcpy_ratio: memcpy's time for the same bytes divided by the engine's, taken in turns; the median.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/unit/engines/kernels.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kHost = 0x10'0000'0000, kCard = 0x20'0000'0000, kData = 0x30'0000'0000;

// Of this thread's processor time: both sides run on this thread only, and other processes do not count.
double seconds_of(auto&& work) {
    const auto now = [] {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double begin = now();
    work();
    return now() - begin;
}

double median(std::vector<double>& values) {
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
}

// Arguments: bytes; 0 host to card, 1 card to host; 0 pages of 4 KiB, 1 of 2 MiB on the card's side.
void copy(benchmark::State& state) {
    const auto bytes = static_cast<std::uint64_t>(state.range(0));
    const bool to_host = state.range(1) != 0, huge = state.range(2) != 0;
    Rig rig(256 << 20, 128 << 20);
    rig.map(kHost, bytes, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kCard, bytes, ORR_TARGET_VRAM, 0, Rig::kRights, 0, huge);
    CopyEngine engine(0, CopyRates{}, rig.context);
    orr_desc_copy desc{};
    desc.op = ORR_DESC_COPY;
    desc.asid = 1;
    desc.src = to_host ? kCard : kHost;
    desc.dst = to_host ? kHost : kCard;
    desc.row_bytes = bytes;
    desc.rows = 1;
    std::memset(rig.vram.data(), 1, bytes);
    std::memset(rig.host_data, 2, bytes);
    std::uint8_t* const from = to_host ? rig.vram.data() : rig.host_data;
    std::uint8_t* const to = to_host ? rig.host_data : rig.vram.data();
    std::vector<double> ratios;
    bool good = true;
    for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
        const double memcpy_s = seconds_of([&] {
            std::memcpy(to, from, bytes);
            benchmark::ClobberMemory();
        });
        const double engine_s = seconds_of([&] { good &= rig.run_one(engine, desc).status == ORR_DONE_OK; });
        ratios.push_back(memcpy_s / engine_s);
        state.SetIterationTime(engine_s);
    }
    if (!good) state.SkipWithError("the copy failed");
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
    state.counters["memcpy_ratio"] = median(ratios);
}
BENCHMARK(copy)
    ->ArgNames({"bytes", "to_host", "huge"})
    ->Args({64 << 20, 0, 0})
    ->Args({64 << 20, 1, 0})
    ->Args({64 << 20, 0, 1})
    ->Args({64 << 20, 1, 1})
    ->Args({64 << 10, 0, 0})
    ->UseManualTime();

// Arguments: kernel; work-items a group; rounds a work-item (for kSpin).
void kernel(benchmark::State& state) {
    Rig rig;
    std::ifstream file(ORRERY_TEST_KERNELS, std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    if (image.size() < kKernels * sizeof(std::uint64_t)) return state.SkipWithError("no kernel image");
    std::memcpy(rig.vram.data(), image.data(), image.size());
    rig.map(kImageBase, 64 << 10, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_EXEC);
    rig.map(kData, 8 << 20, ORR_TARGET_VRAM, 16 << 20);
    rig.map(kHost, 8 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    auto* args = reinterpret_cast<std::uint64_t*>(rig.vram.data() + (16 << 20));
    VectorUnit unit({}, rig.context);
    orr_desc_kernel desc{};
    desc.op = ORR_DESC_KERNEL;
    desc.asid = 1;
    std::memcpy(&desc.entry, image.data() + state.range(0) * 8, 8);
    desc.args = kData;
    desc.grid_x = 64;
    desc.block_x = static_cast<std::uint16_t>(state.range(1));
    desc.grid_y = desc.grid_z = desc.block_y = desc.block_z = 1;
    bool good = true;
    for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
        args[0] = state.range(0) == kHistogram ? kHost : static_cast<std::uint64_t>(state.range(2));
        args[1] = 4 << 20;
        args[2] = kData + 4096;
        good &= rig.run_one(unit.port(0), desc).status == ORR_DONE_OK;
    }
    if (!good) state.SkipWithError("the kernel failed");
    const auto rate = [&](orr_counter counter) {
        return benchmark::Counter(static_cast<double>(rig.counters.get(counter)),
                                  benchmark::Counter::kIsRate);
    };
    state.counters["instructions"] = rate(ORR_CTR_VECTOR_INSTRUCTIONS);
    state.counters["items"] = rate(ORR_CTR_VECTOR_ITEMS);
}
BENCHMARK(kernel)
    ->ArgNames({"kernel", "items", "rounds"})
    ->Args({kSpin, 64, 10'000})
    ->Args({kSpin, 256, 10})
    ->Args({kMark, 256, 0})
    ->Args({kHistogram, 256, 0});

// A graph of 100 small kernels, two kinds in turn, on all cores: what a launch costs the host. Arguments:
// work-items a group; rounds a work-item.
void launches(benchmark::State& state) {
    constexpr int kLaunches = 100;
    Rig rig;
    std::ifstream file(ORRERY_TEST_KERNELS, std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    if (image.size() < kKernels * sizeof(std::uint64_t)) return state.SkipWithError("no kernel image");
    std::memcpy(rig.vram.data(), image.data(), image.size());
    rig.map(kImageBase, 64 << 10, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_EXEC);
    rig.map(kData, 8 << 20, ORR_TARGET_VRAM, 16 << 20);
    auto* args = reinterpret_cast<std::uint64_t*>(rig.vram.data() + (16 << 20));
    VectorUnit unit({}, rig.context);
    orr_desc_kernel desc{};
    desc.op = ORR_DESC_KERNEL;
    desc.asid = 1;
    desc.args = kData;
    desc.grid_x = 8;
    desc.block_x = static_cast<std::uint16_t>(state.range(0));
    desc.grid_y = desc.grid_z = desc.block_y = desc.block_z = 1;
    args[0] = static_cast<std::uint64_t>(state.range(1));
    args[2] = kData + 4096;
    bool good = true;
    for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
        for (int launch = 0; launch < kLaunches; ++launch) {
            std::memcpy(&desc.entry, image.data() + (launch % 2 == 0 ? kSpin : kRegisters) * 8, 8);
            good &= rig.run_one(unit.port(0), desc).status == ORR_DONE_OK;
        }
    }
    if (!good) state.SkipWithError("a kernel failed");
    state.SetItemsProcessed(kLaunches * state.iterations());
}
BENCHMARK(launches)->ArgNames({"items", "rounds"})->Args({1, 10})->Args({8, 10})->Args({32, 10});

}  // namespace
}  // namespace orrery::emu::test
