// What a kernel's memory costs: the real vector unit against closed forms.
#include <algorithm>
#include <optional>
#include <utility>

#include "emulator/core/meter.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr double kNear = 0.05;
constexpr std::uint64_t kLine = kMemoryLine;

void expect_near(ModelTime time, ModelTime expected) {
    EXPECT_NEAR(static_cast<double>(time), static_cast<double>(expected),
                kNear * static_cast<double>(expected));
}

class MemoryTime : public testing::Test {
  protected:
    MemoryTime() : rig(64 << 20, 64 << 20, 8 << 20, memory()), unit(std::in_place, config(), rig.context) {
        std::ifstream file(ORRERY_TEST_KERNELS, std::ios::binary);
        const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
        std::memcpy(rig.vram.data(), image.data(), image.size());
        rig.map(kImageBase, 64 << 10, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_EXEC);
        rig.map(kData, kDataBytes, ORR_TARGET_VRAM, kDataOffset);
        rig.map(kHostData, 8 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    }
    static MemoryConfig memory() {
        MemoryConfig config;
        config.vram_latency_ps = 150 * kPsPerNs;
        config.pcie_latency_ps = 600 * kPsPerNs;
        return config;
    }
    static VectorConfig config() {
        VectorConfig config;
        config.vlen = 2048;
        config.datapath_bits = 2048;
        config.l1_bytes = 32 << 10;
        config.in_flight = 512;
        return config;
    }
    orr_desc_kernel desc(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups) {
        std::ranges::copy(args, words(kDataBytes - 4096));
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = 1;
        std::memcpy(&desc.entry, rig.vram.data() + kernel * sizeof desc.entry, sizeof desc.entry);
        desc.args = kData + kDataBytes - 4096;
        desc.grid_x = groups;
        desc.grid_y = desc.grid_z = desc.block_x = desc.block_y = desc.block_z = 1;
        return desc;
    }
    // Without its launch.
    ModelTime run(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups) {
        const Completion done = rig.run_one(unit->port(0), desc(kernel, args, groups));
        EXPECT_EQ(done.status, ORR_DONE_OK);
        return done.end_ps - done.start_ps - config().launch_ps - config().group_ps;
    }
    std::uint64_t* words(std::uint64_t at) {
        return reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + at);
    }
    // A ring of pointers, a line each and far from one another.
    void link(std::uint64_t* memory, std::uint64_t va, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i)
            memory[i * 37 % count * (kLine / 8)] = va + (i + 1) * 37 % count * kLine;
    }
    static ModelTime cycles(std::uint64_t count) { return duration_ps(count, config().hz); }

    Rig rig;
    std::optional<VectorUnit> unit;
};

TEST_F(MemoryTime, ATriadTakesWhatBandwidthAllows) {
    constexpr std::uint64_t kBytes = 2 << 20, kGroups = 8;
    for (std::uint64_t i = 0; i < kBytes / 8; ++i) {
        words(kBytes)[i] = i;
        words(2 * kBytes)[i] = 3 * i;
    }
    const ModelTime took =
        run(kTriad, {kData, kData + kBytes, kData + 2 * kBytes, kBytes / 8 / kGroups}, kGroups);
    EXPECT_EQ(words(0)[kBytes / 8 - 1], 4 * (kBytes / 8 - 1));
    expect_near(took, duration_ps(3 * kBytes, memory().vram_bytes_per_second));
}

TEST_F(MemoryTime, ATriadOnTheHostTakesWhatPcieAllows) {
    constexpr std::uint64_t kBytes = 1 << 20, kGroups = 8;
    const ModelTime took =
        run(kTriad, {kHostData, kHostData + kBytes, kHostData + 2 * kBytes, kBytes / 8 / kGroups}, kGroups);
    expect_near(took, duration_ps(2 * kBytes, memory().pcie_bytes_per_second));
}

TEST_F(MemoryTime, OneCoreGetsWhatItsLinesInFlightAllow) {
    VectorConfig few = config();
    few.in_flight = 64;
    unit.emplace(few, rig.context);
    constexpr std::uint64_t kBytes = 1 << 20;
    const ModelTime took = run(kTriad, {kData, kData + kBytes, kData + 2 * kBytes, kBytes / 8}, 1);
    expect_near(took, 2 * kBytes / (few.in_flight * kLine) * memory().vram_latency_ps);
}

// What a kernel moved before it failed has its price too, also if that was all in one quantum.
TEST_F(MemoryTime, AKernelThatFailsPaysForWhatItMoved) {
    constexpr std::uint64_t kBytes = 64 << 10, kHostEnd = kHostData + (8 << 20);
    const auto failing = desc(kTriad, {kData, kHostEnd - kBytes, kHostEnd - 2 * kBytes, kBytes / 4}, 1);
    const Completion done = rig.run_one(unit->port(0), failing);
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.detail, kHostEnd);
    EXPECT_GE(done.end_ps - done.start_ps, duration_ps(2 * kBytes, memory().pcie_bytes_per_second));
}

TEST_F(MemoryTime, WhatAnAbortedKernelAskedForIsUnderWay) {
    constexpr std::uint64_t kBytes = 64 << 10;
    const auto triad = desc(kTriad, {kData, kHostData, kHostData + kBytes, kBytes / 8}, 1);
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(triad), 1));
    rig.run(2);  // the launch, and a quantum
    const ModelTime began = rig.events.now();
    unit->port(0).abort();
    EXPECT_GE(rig.memory.from_host().reserve(began, 0) - began,
              duration_ps(2 * kBytes, memory().pcie_bytes_per_second));
}

// What was in flight for a dispatch that is no more does not hold up the next one on its cores.
TEST_F(MemoryTime, AnAbortedDispatchLeavesNothingToTheNext) {
    VectorConfig few = config();
    few.in_flight = 1;
    unit.emplace(few, rig.context);
    constexpr std::uint64_t kBytes = 64 << 10;
    const auto triad = {kData, kData + kBytes, kData + 2 * kBytes, kBytes / 8};
    const auto begin = [&] {
        ASSERT_TRUE(unit->port(0).start(Rig::words_of(desc(kTriad, triad, 1)), 1));
        rig.run(2);  // the launch, and a quantum
        ASSERT_TRUE(unit->port(0).busy());
    };
    const ModelTime alone = run(kTriad, triad, 1);
    begin();
    unit->port(0).abort();
    rig.run();
    EXPECT_EQ(run(kTriad, triad, 1), alone);
    begin();
    unit->reset();
    EXPECT_EQ(run(kTriad, triad, 1), alone);
}

// How often a core has to ask for pages, and in how many goes the host computes a quantum, is the host's
// matter: other processes' TLB flushes and DMA ranges that go change it.
TEST_F(MemoryTime, GoesOfTheHostAreNotInTheModel) {
    constexpr std::uint64_t kPage = 4096, kLoads = 3, kRounds = 20, kElements64 = 0xdb;
    const auto took = [&](std::uint64_t most_lookups, bool flushes) {
        VectorConfig cut = config();
        cut.most_lookups = most_lookups;
        unit.emplace(cut, rig.context);
        const auto kernel = desc(kGather, {kData, kPage, kLoads, kRounds, kElements64}, 2);
        EXPECT_TRUE(unit->port(0).start(Rig::words_of(kernel), 1));
        std::size_t goes = 0;
        for (; rig.run(1) != 0; ++goes) {
            if (flushes) rig.mmu.flush_host();
        }
        const Completion done = rig.done.back();
        EXPECT_EQ(done.status, ORR_DONE_OK);
        return std::pair(done.end_ps - done.start_ps, goes);
    };
    const auto warm = took(512, false), few = took(64, false), flushed = took(512, true);
    EXPECT_GT(few.second, warm.second);
    EXPECT_GT(flushed.second, warm.second);
    EXPECT_EQ(few.first, warm.first);
    EXPECT_EQ(flushed.first, warm.first);
}

TEST_F(MemoryTime, APointerChaseTakesItsLatencies) {
    constexpr std::uint64_t kSteps = 2000, kLoop = 3;
    link(words(0), kData, kSteps);
    expect_near(run(kChase, {kData, kSteps}, 1), kSteps * (memory().vram_latency_ps + cycles(kLoop)));
    link(reinterpret_cast<std::uint64_t*>(rig.host_data), kHostData, kSteps);
    expect_near(run(kChase, {kHostData, kSteps}, 1), kSteps * (memory().pcie_latency_ps + cycles(kLoop)));
}

TEST_F(MemoryTime, WhatIsInTheCacheCostsNothing) {
    constexpr std::uint64_t kLines = 32, kRounds = 1000, kLoop = 3;
    link(words(0), kData, kLines);
    const ModelTime cold = kLines * memory().vram_latency_ps;
    const ModelTime expected = cold + cycles(kLines * kRounds * kLoop);
    expect_near(run(kChase, {kData, kLines * kRounds}, 1), expected);
    // Each group begins with an empty cache, so what it takes does not depend on who was there before.
    EXPECT_EQ(run(kChase, {kData, kLines}, 1), run(kChase, {kData, kLines}, 1));
}

// The addresses of items' stacks have bits where a tag has the number of its cold start.
TEST(Meter, NothingIsKeptOverAColdStart) {
    Meter meter({.l1_bytes = 32 << 10, .vram_cycles = 1, .host_cycles = 1});
    for (const std::uint64_t va : {kData, std::uint64_t{ORR_ITEM_STACKS} + ORR_ITEM_STACK_STRIDE - kLine}) {
        meter.load(va, PagePlace::kVram);
        EXPECT_TRUE(meter.has(va));
        meter.start_cold();
        EXPECT_FALSE(meter.has(va)) << std::hex << va;
    }
}

TEST_F(MemoryTime, AtomicsGoToTheirMemory) {
    constexpr std::uint64_t kRounds = 100;
    // A round: an AMO, LR and SC, and two loads of lines that these have driven out.
    expect_near(run(kAtomics, {0, 0, kRounds}, 1), 5 * kRounds * memory().vram_latency_ps);
}

}  // namespace
}  // namespace orrery::emu::test
