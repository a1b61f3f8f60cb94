// What translations cost: vector cores and copy engines against closed forms.
#include <algorithm>
#include <memory>

#include "emulator/base/tlb_tags.h"
#include "emulator/core/meter.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kLine = kMemoryLine, kPage = ORR_PAGE_SIZE;
constexpr std::uint32_t kEntries = 64;
constexpr ModelTime kVram = 150 * kPsPerNs, kHost = 600 * kPsPerNs;
constexpr std::uint64_t kArgs = kData + kDataBytes - kPage;
constexpr std::uint64_t kHuge = 0x30'0000'0000;  // kData's bytes, in pages of 2 MiB

class TranslationTime : public testing::Test {
  protected:
    TranslationTime()
        : rig(64 << 20, 64 << 20, 8 << 20, MemoryConfig{.vram_latency_ps = kVram, .pcie_latency_ps = kHost}) {
        load_image(rig, 8 << 20);
        rig.map(kHuge, kDataBytes, ORR_TARGET_VRAM, kDataOffset, Rig::kRights, 0, true);
    }
    static VectorConfig config(std::uint32_t entries) {
        VectorConfig config;
        config.hz = 1'000'000'000;
        config.vlen = config.datapath_bits = 2048;
        config.l1_bytes = 4 << 10;  // small, so that no round through many lines finds some of them
        config.in_flight = 512;
        config.tlb_entries = entries;
        return config;
    }
    std::uint64_t* words(std::uint64_t at) {
        return reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + at);
    }
    // A ring through so many pages and all lines of each, no line near the one before it.
    void link(std::uint8_t* memory, std::uint64_t va, std::uint64_t pages) {
        const auto place = [&](std::uint64_t step) {
            return step % pages * kPage + step / pages % (kPage / kLine) * kLine;
        };
        for (std::uint64_t step = 0; step < ring(pages); ++step) {
            const std::uint64_t next = va + place((step + 1) % ring(pages));
            std::memcpy(memory + place(step), &next, sizeof next);
        }
    }
    static std::uint64_t ring(std::uint64_t pages) { return pages * (kPage / kLine); }
    orr_desc_kernel desc(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups = 1) {
        std::ranges::copy(args, words(kArgs - kData));
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = 1;
        std::memcpy(&desc.entry, rig.vram.data() + kernel * sizeof desc.entry, sizeof desc.entry);
        desc.args = kArgs;
        desc.grid_x = groups;
        desc.grid_y = desc.grid_z = desc.block_x = desc.block_y = desc.block_z = 1;
        return desc;
    }
    // `between` after each event but the last.
    template <class Between>
    ModelTime run(VectorUnit& unit, const orr_desc_kernel& kernel, Between between) {
        rig.done.clear();
        EXPECT_TRUE(unit.port(0).start(Rig::words_of(kernel), 1));
        while (rig.run(1) != 0)
            if (rig.done.empty()) between();
        EXPECT_EQ(rig.done.at(0).status, ORR_DONE_OK);
        return rig.done.at(0).end_ps - rig.done.at(0).start_ps;
    }
    ModelTime run(VectorUnit& unit, const orr_desc_kernel& kernel) {
        return run(unit, kernel, [] {});
    }
    // What a round through the ring takes, once it has been gone through.
    ModelTime chase(std::uint64_t va, std::uint64_t pages) {
        VectorUnit unit(config(kEntries), rig.context);
        run(unit, desc(kChase, {va, ring(pages)}));
        const ModelTime one = run(unit, desc(kChase, {va, ring(pages)}));
        return run(unit, desc(kChase, {va, 2 * ring(pages)})) - one;
    }
    static ModelTime steps(std::uint64_t count, ModelTime latency) {
        constexpr std::uint64_t kLoop = 3;
        return count * (latency + duration_ps(kLoop, config(0).hz));
    }
    static void expect_near(ModelTime time, ModelTime expected) {
        constexpr double kNear = 0.01;
        EXPECT_NEAR(static_cast<double>(time), static_cast<double>(expected),
                    kNear * static_cast<double>(expected));
    }

    // A copy engine, and what a copy takes on it.
    CopyRates rates() const {
        CopyRates rates;
        rates.in_flight = 1024;
        rates.tlb_entries = kEntries;
        return rates;
    }
    template <class Desc>
    ModelTime copy(CopyEngine& engine, const Desc& desc) {
        const Completion done = rig.run_one(engine, desc);
        EXPECT_EQ(done.status, ORR_DONE_OK);
        return done.end_ps - done.start_ps;
    }

    Rig rig;
};

TEST_F(TranslationTime, OfAPointerChase) {
    link(rig.vram.data() + kDataOffset, kData, 2 * kEntries);
    EXPECT_EQ(chase(kData, 2 * kEntries), steps(ring(2 * kEntries), 2 * kVram));
    link(rig.vram.data() + kDataOffset, kData, kEntries / 2);
    EXPECT_EQ(chase(kData, kEntries / 2), steps(ring(kEntries / 2), kVram));
    link(rig.host_data, kHostData, 2 * kEntries);
    EXPECT_EQ(chase(kHostData, 2 * kEntries), steps(ring(2 * kEntries), kHost + kVram));
    // The same pages of 4 KiB inside of one of 2 MiB.
    link(rig.vram.data() + kDataOffset, kHuge, 2 * kEntries);
    EXPECT_EQ(chase(kHuge, 2 * kEntries), steps(ring(2 * kEntries), kVram));
}

// The first access of all reads an entry of each level; that is how much a cold start is longer.
TEST_F(TranslationTime, OfAColdStart) {
    const auto first = [&](std::uint64_t va) {
        link(rig.vram.data() + kDataOffset, va, 1);
        VectorUnit unit(config(kEntries), rig.context);
        const orr_desc_kernel kernel = desc(kChase, {va, 1});
        const ModelTime cold = run(unit, kernel);
        return cold - run(unit, kernel);
    };
    // The arguments' page, and the pointer's: 4 MiB apart, so in another table.
    EXPECT_EQ(first(kData), 2 * ORR_MMU_LEVELS * kVram);
    EXPECT_EQ(first(kHuge), (ORR_MMU_LEVELS + ORR_MMU_LEVELS - 1) * kVram);
}

// Walks are some of the lines of a stream, and each core has its own.
TEST_F(TranslationTime, OfAStream) {
    constexpr std::uint64_t kBytes = 1 << 20, kArrays = 3, kGroups = 8;
    rig.memory.count_in(rig.counters);
    std::uint64_t bytes = 0;
    const auto took = [&](std::uint32_t entries, std::uint64_t base) {
        VectorUnit unit(config(entries), rig.context);
        const auto kernel =
            desc(kTriad, {base, base + 2 * kBytes, base + 4 * kBytes, kBytes / 8 / kGroups}, kGroups);
        const std::uint64_t before = rig.counters.get(ORR_CTR_VRAM_BYTES);
        const ModelTime time = run(unit, kernel);
        bytes = rig.counters.get(ORR_CTR_VRAM_BYTES) - before;
        return time;
    };
    const ModelTime alone = took(0, kData);
    const std::uint64_t untranslated = bytes;
    const auto expect = [&](std::uint64_t base, std::uint64_t lines) {
        constexpr double kHardly = 0.03;
        EXPECT_NEAR(static_cast<double>(took(kEntries, base)), static_cast<double>(alone),
                    kHardly * static_cast<double>(alone));
        EXPECT_EQ(bytes - untranslated, kGroups * lines * kLine);
    };
    constexpr std::uint64_t kAbove = ORR_MMU_LEVELS - 1;  // a table that is new
    expect(kData, kArrays * (kBytes / kPage / kGroups + kAbove) + 1 + kAbove);
    expect(kHuge, kArrays + (kAbove - 1) + 1 + kAbove);
}

// What software has forgotten is looked up again: each page once, and the first of them through all levels.
// What the host forgets by itself, and what is forgotten elsewhere, is in no time.
TEST_F(TranslationTime, OfAnInvalidation) {
    constexpr std::uint64_t kPages = kEntries / 2, kRounds = 4;
    link(rig.vram.data() + kDataOffset, kData, kPages);
    const orr_desc_kernel kernel = desc(kChase, {kData, kRounds * ring(kPages)});
    const auto took = [&](auto between) {
        VectorUnit unit(config(kEntries), rig.context);
        return run(unit, kernel, between);
    };
    const ModelTime alone = took([] {});
    EXPECT_EQ(took([&] { rig.mmu.flush_host(); }), alone);
    EXPECT_EQ(took([&] { rig.mmu.flush_asid(2); }), alone);
    EXPECT_EQ(took([&] { rig.mmu.flush_range(1, kHostData, 8 << 20); }), alone);
    std::size_t events = 0;
    const auto once = [&](auto forget) {
        events = 0;
        return took([&, forget] {
            if (++events == 40) forget();
        });
    };
    constexpr ModelTime kAll = (kPages + ORR_MMU_LEVELS - 1) * kVram;
    EXPECT_EQ(once([&] { rig.mmu.flush_asid(1); }), alone + kAll);
    EXPECT_EQ(once([&] { rig.mmu.flush_range(1, kData, kPages * kPage); }), alone + kAll);
    EXPECT_EQ(once([&] { rig.mmu.flush_range(1, kData, 1); }), alone + ORR_MMU_LEVELS * kVram);
    EXPECT_GE(events, 2u * 40) << "it came when the kernel was over";
}

TEST_F(TranslationTime, OfACopy) {
    constexpr std::uint64_t kBytes = 16 * kPage;
    CopyEngine engine(0, rates(), rig.context);
    const auto from_host = Rig::copy(kHostData, kData, kBytes);
    // Both sides are looked up at the same time; walks behind that take VRAM, which has more than PCIe.
    const ModelTime cold = copy(engine, from_host), warm = copy(engine, from_host);
    EXPECT_EQ(cold, warm + ORR_MMU_LEVELS * kVram);
    const ModelTime bytes = duration_ps(kBytes, rig.memory.config().pcie_bytes_per_second);
    EXPECT_EQ(warm, rates().setup_ps + bytes + kHost);
    // Another page of tables that are known.
    EXPECT_EQ(copy(engine, Rig::copy(kHostData + kBytes, kData + kBytes, kBytes)), warm + kVram);
    // More pages than there are entries: the first are gone when it comes again.
    const auto large = Rig::copy(kHostData, kData, 2 * kEntries * kPage);
    const ModelTime again = (copy(engine, large), copy(engine, large));
    EXPECT_EQ(again, rates().setup_ps + bytes * (2 * kEntries / 16) + kHost + kVram);
}

// Inside of VRAM it takes what walks read: a line for each page.
TEST_F(TranslationTime, OfACopyInVram) {
    constexpr std::uint64_t kPages = 2 * kEntries, kBytes = kPages * kPage;
    const auto took = [&](std::uint32_t entries) {
        CopyRates with = rates();
        with.engine_bytes_per_second = 1'000'000'000'000'000;
        with.in_flight = 0;
        with.tlb_entries = entries;
        CopyEngine engine(0, with, rig.context);
        const auto all = Rig::copy(kData, kData + (4 << 20), kBytes);
        copy(engine, all);
        return copy(engine, all);
    };
    const ModelTime walks = duration_ps(2 * kPages * kLine, rig.memory.config().vram_bytes_per_second);
    expect_near(took(kEntries) - took(0), kVram + walks);
}

TEST_F(TranslationTime, OfACopyWhoseTranslationsAreForgotten) {
    constexpr std::uint64_t kBytes = 1 << 20;
    const auto took = [&](auto forget) {
        CopyEngine engine(0, rates(), rig.context);
        rig.done.clear();
        EXPECT_TRUE(engine.start(Rig::words_of(Rig::copy(kHostData, kData, kBytes)), 1));
        rig.run(4);
        EXPECT_TRUE(rig.done.empty());
        forget();
        rig.run();
        EXPECT_EQ(rig.done.at(0).status, ORR_DONE_OK);
        return rig.done.at(0).end_ps - rig.done.at(0).start_ps;
    };
    const ModelTime alone = took([] {});
    EXPECT_EQ(took([&] { rig.mmu.flush_host(); }), alone);
    EXPECT_EQ(took([&] { rig.mmu.flush_asid(2); }), alone);
    EXPECT_EQ(took([&] { rig.mmu.flush_asid(1); }), alone + ORR_MMU_LEVELS * kVram);
}

TEST_F(TranslationTime, OfALongDescriptor) {
    orr_desc_box box{};
    box.op = ORR_DESC_BOX;
    box.dimensions = 1;
    box.src = kHostData;
    box.dst = kData;
    box.row_bytes = kPage;
    box.count[0] = 1;
    std::memcpy(words(1 << 20), &box, sizeof box);
    orr_desc_long to{};
    to.op = ORR_DESC_LONG;
    to.asid = 1;
    to.descriptor = kData + (1 << 20);
    to.bytes = sizeof box;
    CopyEngine engine(0, rates(), rig.context);
    // Its own page, and its bytes behind those of the walk; then its two sides.
    const ModelTime cold = copy(engine, to);
    const ModelTime walk = duration_ps(ORR_MMU_LEVELS * kLine, rig.memory.config().vram_bytes_per_second);
    EXPECT_EQ(cold, copy(engine, to) + 2 * ORR_MMU_LEVELS * kVram + walk);
}

// An instruction without elements touches no page.
TEST(TlbTags, AreNotAskedForNothing) {
    Meter meter({.l1_bytes = 4096, .vram_cycles = 1, .host_cycles = 1, .tlb_entries = 4});
    meter.stream(kData, 0, PagePlace::kVram, false);
    EXPECT_EQ(meter.take().vram.read, 0u);
    meter.stream(kData, 1, PagePlace::kVram, false);
    EXPECT_EQ(meter.take().vram.read, ORR_MMU_LEVELS * kLine + 1);
}

TEST(TlbTags, KeepTheLastPagesOfEachSpace) {
    TlbTags tags(4);
    EXPECT_EQ(tags.use(1, 0, false), 4u);
    EXPECT_EQ(tags.use(1, kPage, false), 1u);
    EXPECT_EQ(tags.use(2, 0, false), 4u);
    EXPECT_EQ(tags.use(1, 0, true), 3u);
    EXPECT_EQ(tags.use(1, 17, false), 0u);
    EXPECT_EQ(tags.use(1, kPage + 1, false), 0u);
    // The one that was used longest ago makes room.
    EXPECT_NE(tags.use(3, 0, false), 0u);
    EXPECT_EQ(tags.use(1, 0, true), 0u);
    EXPECT_NE(tags.use(2, 0, false), 0u);
    // More has been forgotten than anybody can tell.
    Invalidations all;
    for (std::size_t i = 0; i <= Invalidations::kKept; ++i)
        all.add({.space = 7});
    EXPECT_TRUE(tags.follow(all, 1));
    EXPECT_NE(tags.use(2, 0, false), 0u);
    EXPECT_FALSE(tags.follow(all, 1));
    EXPECT_EQ(tags.use(2, 0, false), 0u);
}

}  // namespace
}  // namespace orrery::emu::test
