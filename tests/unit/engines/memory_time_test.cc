// What a kernel's memory costs: the real vector unit against closed forms.
#include <algorithm>
#include <optional>
#include <utility>

#include "emulator/core/meter.h"
#include "emulator/engines/vector_core.h"
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
    MemoryTime()
        : rig(64 << 20, 64 << 20, 8 << 20, far_memory()), unit(std::in_place, config(), rig.context) {
        load_image(rig, 8 << 20);
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
        return kernel_desc(rig, kernel, kDataBytes - 4096, args, groups, 1);
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
    expect_near(took, duration_ps(3 * kBytes, far_memory().vram_bytes_per_second));
}

TEST_F(MemoryTime, ATriadOnTheHostTakesWhatPcieAllows) {
    constexpr std::uint64_t kBytes = 1 << 20, kGroups = 8;
    const ModelTime took =
        run(kTriad, {kHostData, kHostData + kBytes, kHostData + 2 * kBytes, kBytes / 8 / kGroups}, kGroups);
    expect_near(took, duration_ps(2 * kBytes, far_memory().pcie_bytes_per_second));
}

TEST_F(MemoryTime, OneCoreGetsWhatItsLinesInFlightAllow) {
    VectorConfig few = config();
    few.in_flight = 64;
    unit.emplace(few, rig.context);
    constexpr std::uint64_t kBytes = 1 << 20;
    const ModelTime took = run(kTriad, {kData, kData + kBytes, kData + 2 * kBytes, kBytes / 8}, 1);
    expect_near(took, 2 * kBytes / (few.in_flight * kLine) * far_memory().vram_latency_ps);
}

// What a kernel moved before it failed has its price too, also if that was all in one quantum.
TEST_F(MemoryTime, AKernelThatFailsPaysForWhatItMoved) {
    constexpr std::uint64_t kBytes = 64 << 10, kHostEnd = kHostData + (8 << 20);
    const auto failing = desc(kTriad, {kData, kHostEnd - kBytes, kHostEnd - 2 * kBytes, kBytes / 4}, 1);
    const Completion done = rig.run_one(unit->port(0), failing);
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.detail, kHostEnd);
    EXPECT_GE(done.end_ps - done.start_ps, duration_ps(2 * kBytes, far_memory().pcie_bytes_per_second));
}

TEST_F(MemoryTime, WhatAnAbortedKernelAskedForIsUnderWay) {
    constexpr std::uint64_t kBytes = 64 << 10;
    MemoryConfig slow = far_memory();
    slow.pcie_bytes_per_second = 64'000'000;  // so that a vector load is many pieces
    rig.memory = MemorySystem(slow);
    unit.emplace(config(), rig.context);
    const auto triad = desc(kTriad, {kData, kHostData, kHostData + kBytes, kBytes / 8}, 1);
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(triad), 1));
    rig.run(2);  // the launch, and a quantum
    const ModelTime began = rig.events.now();
    unit->port(0).abort();
    constexpr std::uint64_t kLoad = 2048;
    EXPECT_GE(rig.memory.from_host().reserve(began, 0) - began,
              duration_ps(kLoad, slow.pcie_bytes_per_second));
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
    const auto took = [&](std::uint64_t most_work, bool flushes) {
        VectorConfig cut = config();
        cut.most_work = most_work;
        unit.emplace(cut, rig.context);
        const auto kernel = desc(kGather, {kData, kPage, kLoads, kRounds, kElements64, 0}, 2);
        EXPECT_TRUE(unit->port(0).start(Rig::words_of(kernel), 1));
        std::size_t goes = 0;
        for (; rig.run(1) != 0; ++goes) {
            if (flushes) rig.mmu.flush_host();
        }
        const Completion done = rig.done.back();
        EXPECT_EQ(done.status, ORR_DONE_OK);
        return std::pair(done.end_ps - done.start_ps, goes);
    };
    const auto warm = took(1024, false), few = took(128, false), flushed = took(1024, true);
    EXPECT_GT(few.second, warm.second);
    EXPECT_GT(flushed.second, warm.second);
    EXPECT_EQ(few.first, warm.first);
    EXPECT_EQ(flushed.first, warm.first);
}

// A kernel asks for a piece at a time, however much its vector loads gather, and can be saved behind each.
TEST_F(MemoryTime, PreemptionWaitsForAPieceOfEachUser) {
    constexpr std::uint64_t kElements8 = 0xc3, kSave = 40 << 20;
    const std::uint32_t cores = config().cores;
    const auto kernel = desc(kGather, {kHostData, kLine, 3, 1000, kElements8, 0}, cores);
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(kernel), 1));
    while (rig.events.run_next(100'000 * kPsPerNs)) {
    }
    ASSERT_TRUE(unit->port(0).busy());
    const ModelTime asked = rig.events.now();
    ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kSave));
    rig.run();
    const Completion done = rig.done.back();
    ASSERT_EQ(done.status, ORR_DONE_PREEMPTED);
    const ModelTime save =
        config().save_core_ps + duration_ps(done.detail, far_memory().vram_bytes_per_second);
    EXPECT_LE(done.end_ps - asked, (1 + cores) * Resource::kPiecePs + save);
}

// Where a piece ends inside a vector load, that goes on where it was, on this core or another.
TEST_F(MemoryTime, AVectorLoadIsPreemptedInside) {
    constexpr std::uint64_t kElements8 = 0xc3, kSave = 40 << 20, kCount = 4096, kLoads = 2;
    VectorConfig wide = config();
    wide.vlen = wide.datapath_bits = 4096;
    for (std::uint64_t i = 0; i < kLoads * kCount; ++i)
        rig.host_data[i * kLine] = static_cast<std::uint8_t>(i * 7 + i / kCount);
    const auto kernel = desc(kGather, {kHostData, kLine, kLoads, 1, kElements8, kData}, 1);
    const auto check = [&] {
        const auto* result = reinterpret_cast<const std::uint8_t*>(words(0));
        for (std::uint64_t i = 0; i < kCount; ++i)
            ASSERT_EQ(result[i], static_cast<std::uint8_t>((kCount + i) * 7 + 1)) << i;
        std::memset(words(0), 0, kCount);
    };
    unit.emplace(wide, rig.context);
    std::size_t whole = 0;
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(kernel), 1));
    while (rig.run(1) != 0)
        ++whole;
    check();
    bool inside = false;
    for (std::size_t events = 2; events + 1 < whole; ++events) {
        rig.done.clear();
        ASSERT_TRUE(unit->port(0).start(Rig::words_of(kernel), 1));
        rig.run(events);
        ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kSave));
        rig.run();
        if (rig.done.back().status == ORR_DONE_PREEMPTED) {
            auto area = SaveArea::at(rig.vram, kSave, wide.cores, wide.vlen);
            if (const auto group = area->read_group(0, 1)) inside |= group->vectors().vstart != 0;
            ASSERT_TRUE(unit->port(1).resume(kSave, 2));
            rig.run();
        }
        ASSERT_EQ(rig.done.back().status, ORR_DONE_OK);
        check();
    }
    EXPECT_TRUE(inside);
}

TEST_F(MemoryTime, APointerChaseTakesItsLatencies) {
    constexpr std::uint64_t kSteps = 2000, kLoop = 3;
    link_ring(words(0), kData, kSteps);
    expect_near(run(kChase, {kData, kSteps}, 1), kSteps * (far_memory().vram_latency_ps + cycles(kLoop)));
    link_ring(reinterpret_cast<std::uint64_t*>(rig.host_data), kHostData, kSteps);
    expect_near(run(kChase, {kHostData, kSteps}, 1), kSteps * (far_memory().pcie_latency_ps + cycles(kLoop)));
}

TEST_F(MemoryTime, WhatIsInTheCacheCostsNothing) {
    constexpr std::uint64_t kLines = 32, kRounds = 1000, kLoop = 3;
    link_ring(words(0), kData, kLines);
    const ModelTime cold = kLines * far_memory().vram_latency_ps;
    const ModelTime expected = cold + cycles(kLines * kRounds * kLoop);
    expect_near(run(kChase, {kData, kLines * kRounds}, 1), expected);
    // Each group begins with an empty cache, so what it takes does not depend on who was there before.
    EXPECT_EQ(run(kChase, {kData, kLines}, 1), run(kChase, {kData, kLines}, 1));
}

// The addresses of items' stacks have bits where a tag has the number of its cold start.
TEST(Meter, NothingIsKeptOverAColdStart) {
    Meter meter({.l1_bytes = 32 << 10, .vram_cycles = 1, .host_cycles = 1});
    for (const std::uint64_t va : {kData, std::uint64_t{ORR_ITEM_STACKS} + ORR_ITEM_STACK_STRIDE - kLine}) {
        meter.load(va, 8, PagePlace::kVram);
        EXPECT_TRUE(meter.has(va));
        meter.start_cold();
        EXPECT_FALSE(meter.has(va)) << std::hex << va;
    }
}

// What one event of a core does for the host is bounded, whatever one instruction asks for.
class Goes : public MemoryTime {
  protected:
    static constexpr std::uint64_t kWork = 1024, kSomePages = 64;
    // The quantum, and the most that a go of it did.
    std::pair<Quantum, std::uint64_t> compute(const orr_desc_kernel& kernel, std::uint32_t vlen,
                                              std::uint64_t work) {
        CodeStore code;
        Event event = Event::stop();
        PeerAccess peers(rig.context, event, 0, 1);
        VectorCore core(0, vlen, vlen, config().hz, 4, work, {}, false, rig.mmu, peers, &code);
        core.take({.desc = kernel, .serial = 1}, 0, 0);
        Quantum quantum{.budget = 2000};
        std::uint64_t before = 0, most = 0;
        for (bool whole = false; !whole; before = quantum.work) {
            whole = core.compute(quantum);
            most = std::max(most, quantum.work - before);
        }
        EXPECT_EQ(quantum.end, Quantum::End::kMore);
        return {quantum, most};
    }
    void expect_bounded(const orr_desc_kernel& kernel, std::uint32_t vlen, std::uint64_t bound) {
        const auto [whole, all] = compute(kernel, vlen, ~std::uint64_t{0});
        const auto [cut, most] = compute(kernel, vlen, kWork);
        EXPECT_GT(all, 10 * bound);
        EXPECT_LE(most, bound);
        EXPECT_EQ(cut.cycles, whole.cycles);
        EXPECT_EQ(cut.instructions, whole.instructions);
    }
};

TEST_F(Goes, EndInsideALoadOfManyPages) {
    constexpr std::uint64_t kFar = 0x30'0000'0000, kPage = 4096, kElements8 = 0xc3;
    rig.map(kFar, 4096 * kPage, ORR_TARGET_VRAM, kDataOffset);
    expect_bounded(desc(kGather, {kFar, kPage, 1, 1'000'000, kElements8, 0}, 1), 4096, kWork + kSomePages);
}

TEST_F(Goes, EndBehindArithmeticThatTheHostDoesByIntegers) {
    constexpr std::uint64_t kNearestAway = 4, kHalves = 0xcb, kElements = 1024;
    expect_bounded(desc(kFused, {kNearestAway, 1'000'000, kHalves}, 1), 2048, kWork + kElements + kSomePages);
}

// A store does not bring the rest of its line.
TEST(Meter, OfALineThatWasWrittenOnlyItsBytesAreThere) {
    constexpr std::uint64_t kWait = 9;
    Meter meter({.l1_bytes = 32 << 10, .vram_cycles = kWait, .host_cycles = 1});
    meter.store(kData, 4, PagePlace::kVram);
    EXPECT_EQ(meter.load(kData + 2, 2, PagePlace::kVram), 0u);
    EXPECT_EQ(meter.take().vram.read, 0u);
    EXPECT_EQ(meter.load(kData + 3, 2, PagePlace::kVram), kWait);
    EXPECT_EQ(meter.load(kData + 5, 1, PagePlace::kVram), 0u);
    EXPECT_EQ(meter.take().vram.read, kLine);
    // One that was written as a whole needs nothing from memory.
    constexpr std::uint64_t kNext = kData + kLine;
    for (std::uint64_t at = 0; at < kLine; at += 8)
        meter.store(kNext + at, 8, PagePlace::kVram);
    EXPECT_TRUE(meter.has(kNext));
    EXPECT_EQ(meter.load(kNext + 60, 4, PagePlace::kVram), 0u);
    const AccessCounts counts = meter.take();
    EXPECT_EQ(counts.vram.read, 0u);
    EXPECT_EQ(counts.vram.written, kLine);
}

TEST_F(MemoryTime, AMaskedRowAsksForTheLinesOfItsElements) {
    const auto lines = [&](std::uint64_t mask) {
        const VectorConfig wide = config();
        CodeStore code;
        Event event = Event::stop();
        PeerAccess peers(rig.context, event, 0, 1);
        VectorCore core(0, wide.vlen, wide.datapath_bits, wide.hz, 4, wide.most_work,
                        {.l1_bytes = wide.l1_bytes, .vram_cycles = 1, .host_cycles = 1}, false, rig.mmu,
                        peers, &code);
        core.take({.desc = desc(kMasked, {kData, mask}, 1), .serial = 1}, 0, 0);
        Quantum quantum{.budget = 2000};
        EXPECT_TRUE(core.compute(quantum));
        EXPECT_EQ(quantum.end, Quantum::End::kGroupDone);
        return (quantum.accesses.vram.read - kLine) / kLine;  // without that of the arguments
    };
    EXPECT_EQ(lines(0), 0u);
    EXPECT_EQ(lines(1), 1u);
    EXPECT_EQ(lines(0xff), 1u);
    EXPECT_EQ(lines(0x180), 2u);
    EXPECT_EQ(lines(0x8080'8080'8080'8080), 8u);
    EXPECT_EQ(lines(~std::uint64_t{0}), 8u);
}

TEST_F(MemoryTime, AtomicsGoToTheirMemory) {
    constexpr std::uint64_t kRounds = 100;
    // A round: an AMO, LR and SC, and two loads of lines that these have driven out.
    expect_near(run(kAtomics, {0, 0, kRounds}, 1), 5 * kRounds * far_memory().vram_latency_ps);
}

}  // namespace
}  // namespace orrery::emu::test
