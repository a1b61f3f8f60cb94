// What host threads that compute work-groups ahead bring: one kernel on a card with so many of them, beside
// two cards without any, each with the same work, that run at the same time on threads of their own. In
// work-groups a second, by the wall's clock, and by the time on CPUs, which other programs disturb less.
//   bench_threads THREADS,... [PART OF A NAME]
#include <fmt/format.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/unit/engines/kernels.h"
#include "tests/unit/engines/rig.h"
#include "tools/bench/measured.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kData = 0x30'0000'0000, kOut = 1 << 20;
constexpr std::uint32_t kGroups = 64;
constexpr int kTurns = 9;

struct Work {
    const char* name;
    Kernel kernel;
    std::vector<std::uint64_t> args;
    std::uint16_t items;
    int launches;  // one after the other, so that a sample takes some 50 ms
};

const std::vector<Work>& works() {
    static const std::vector<Work> all{
        {"scalar code in registers", kSpin, {20'000}, 2, 3},
        {"scalar code with a stack, and memory", kMixAlone, {8'000, kData + kOut}, 1, 2},
        {"vector code in registers", kVectors, {6'000, kData + kOut}, 1, 2},
        {"product of two matrices", kProduct, {kData + kOut, kData + 5 * kOut, kData + 9 * kOut, 1024}, 1, 4},
        {"vector stream: a = b + c", kTriad, {kData + kOut, kData + 5 * kOut, kData + 9 * kOut, 8192}, 1, 20},
    };
    return all;
}

class Card {
  public:
    explicit Card(unsigned threads) : rig_(64 << 20, 1 << 20), unit_(config(threads), rig_.context) {
        std::ifstream file(ORRERY_TEST_KERNELS, std::ios::binary);
        image_.assign(std::istreambuf_iterator<char>(file), {});
        if (image_.size() < kKernels * sizeof(std::uint64_t))
            throw std::runtime_error("there is no kernel image");
        std::memcpy(rig_.vram.data(), image_.data(), image_.size());
        rig_.map(kImageBase, 64 << 10, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_EXEC);
        rig_.map(kData, 16 << 20, ORR_TARGET_VRAM, 16 << 20);
        std::memset(rig_.vram.data() + (16 << 20), 1, 16 << 20);
    }
    void run(const Work& work) {
        std::memcpy(rig_.vram.data() + (16 << 20), work.args.data(),
                    work.args.size() * sizeof(std::uint64_t));
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = 1;
        std::memcpy(&desc.entry, image_.data() + work.kernel * sizeof desc.entry, sizeof desc.entry);
        desc.args = kData;
        desc.grid_x = kGroups;
        desc.block_x = work.items;
        desc.grid_y = desc.grid_z = desc.block_y = desc.block_z = 1;
        for (int i = 0; i < work.launches; ++i) {
            if (rig_.run_one(unit_.port(0), desc).status != ORR_DONE_OK)
                throw std::runtime_error("the kernel failed");
        }
    }
    // Of a hundred instructions.
    std::uint64_t ahead() const {
        return 100 * rig_.counters.get(ORR_CTR_VECTOR_AHEAD) / rig_.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS);
    }

  private:
    static VectorConfig config(unsigned threads) {
        VectorConfig config;
        config.vlen = 2048;
        config.datapath_bits = 2048;
        config.l1_bytes = 32 << 10;
        config.in_flight = 512;
        config.threads = threads;
        return config;
    }
    Rig rig_;
    VectorUnit unit_;
    std::vector<char> image_;
};

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of so many launches, by the wall's clock and by the time on CPUs.
struct Rates {
    double wall = 0, cpu = 0;
};
template <class Do>
Rates groups_a_second(int launches, const Do& what) {
    const auto from = std::chrono::steady_clock::now();
    const double from_cpu = cpu_seconds();
    what();
    const double cpu = cpu_seconds() - from_cpu;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
    const double groups = launches * static_cast<double>(kGroups);
    return {groups / took.count(), groups / cpu};
}

void measure(bench::Measured& measured, const Work& work, unsigned threads) {
    Card card(threads), first(0), second(0);
    bench::Measurement wall{fmt::format("groups, {}", work.name), threads, {}, {}};
    bench::Measurement cpu{fmt::format("groups, {}, CPU time", work.name), threads, {}, {}};
    for (int turn = 0; turn <= kTurns; ++turn) {
        const Rates with = groups_a_second(work.launches, [&] { card.run(work); });
        const Rates two = groups_a_second(2 * work.launches, [&] {
            std::thread other([&] { second.run(work); });
            first.run(work);
            other.join();
        });
        if (turn == 0) continue;  // it decodes, and touches memory for the first time
        wall.samples.push_back(with.wall);
        wall.yardstick.push_back(two.wall);
        cpu.samples.push_back(with.cpu);
        cpu.yardstick.push_back(two.cpu);
    }
    if (threads > 0 && card.ahead() < 90)
        throw std::runtime_error(fmt::format("only {} % of {} were computed ahead", card.ahead(), work.name));
    measured.add(std::move(wall));
    measured.add(std::move(cpu));
}

}  // namespace
}  // namespace orrery::emu::test

int main(int argc, char** argv) {
    using namespace orrery::emu::test;
    std::istringstream counts(argc > 1 ? argv[1] : "0,1");
    const std::string part = argc > 2 ? argv[2] : "";
    orrery::bench::Measured measured;
    try {
        for (std::string count; std::getline(counts, count, ',');) {
            for (const Work& work : works())
                if (std::string_view(work.name).find(part) != std::string_view::npos)
                    measure(measured, work, static_cast<unsigned>(std::stoul(count)));
        }
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_threads: {}\n", error.what());
        return 1;
    }
}
