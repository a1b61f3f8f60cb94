// What host threads that compute work-groups ahead bring, by the wall's clock: one kernel on a card with so
// many of them, beside two cards without any, each with the same work, that run at the same time on threads
// of their own. In work-groups a second.
//   bench_threads THREADS,...
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/engines/kernels.h"
#include "tests/unit/engines/rig.h"
#include "tools/bench/measured.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kData = 0x30'0000'0000, kOut = 1 << 20;
constexpr std::uint32_t kGroups = 64;
constexpr int kTurns = 7;

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

template <class Do>
double groups_a_second(int launches, const Do& what) {
    const auto from = std::chrono::steady_clock::now();
    what();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
    return launches * static_cast<double>(kGroups) / took.count();
}

void measure(bench::Measured& measured, const Work& work, unsigned threads) {
    Card card(threads), first(0), second(0);
    bench::Measurement one{fmt::format("groups, {}", work.name), threads, {}, {}};
    for (int turn = 0; turn <= kTurns; ++turn) {
        const double with = groups_a_second(work.launches, [&] { card.run(work); });
        const double two = groups_a_second(2 * work.launches, [&] {
            std::thread other([&] { second.run(work); });
            first.run(work);
            other.join();
        });
        if (turn == 0) continue;  // it decodes, and touches memory for the first time
        one.samples.push_back(with);
        one.yardstick.push_back(two);
    }
    if (threads > 0 && card.ahead() < 90)
        throw std::runtime_error(fmt::format("only {} % of {} were computed ahead", card.ahead(), work.name));
    measured.add(std::move(one));
}

}  // namespace
}  // namespace orrery::emu::test

int main(int argc, char** argv) {
    using namespace orrery::emu::test;
    std::istringstream counts(argc == 2 ? argv[1] : "0,1");
    orrery::bench::Measured measured;
    try {
        for (std::string count; std::getline(counts, count, ',');) {
            for (const Work& work : works())
                measure(measured, work, static_cast<unsigned>(std::stoul(count)));
        }
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_threads: {}\n", error.what());
        return 1;
    }
}
