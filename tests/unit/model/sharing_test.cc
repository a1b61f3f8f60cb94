// Who uses the same memory shares its bandwidth: real engines against closed forms.
#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kHost = 0x10'0000'0000, kCard = 0x20'0000'0000;
constexpr std::uint64_t kBytes = 8 << 20;
constexpr double kNear = 0.05;

void expect_near(ModelTime time, ModelTime expected) {
    EXPECT_NEAR(static_cast<double>(time), static_cast<double>(expected),
                kNear * static_cast<double>(expected));
}

class Sharing : public testing::Test {
  protected:
    explicit Sharing(const MemoryConfig& config = {}) : rig(64 << 20, 64 << 20, 8 << 20, config) {
        rig.map(kHost, 4 * kBytes, ORR_TARGET_HOST, Rig::kHostBase);
        rig.map(kCard, 4 * kBytes, ORR_TARGET_VRAM, 0);
        for (std::uint32_t i = 0; i < 4; ++i)
            engines.emplace_back(i, rates(), rig.context);
    }
    static CopyRates rates() { return {}; }
    static orr_desc_copy copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes = kBytes) {
        return Rig::copy(from, to, bytes);
    }
    // Entries of no bytes: memory that is 0.
    static orr_desc_copies list(std::uint64_t at, std::uint32_t entries) {
        orr_desc_copies desc{};
        desc.op = ORR_DESC_COPIES;
        desc.asid = 1;
        desc.list = at;
        desc.entries = entries;
        return desc;
    }
    template <class Desc>
    void start(unsigned engine, const Desc& desc) {
        ASSERT_TRUE(engines[engine].start(Rig::words_of(desc), engine));
    }
    // From start to end, by engine.
    std::array<ModelTime, 4> run() {
        rig.done.clear();
        rig.run();
        std::array<ModelTime, 4> took{};
        for (const Completion& done : rig.done) {
            EXPECT_EQ(done.status, ORR_DONE_OK);
            took.at(done.port) = done.end_ps - done.start_ps;
        }
        return took;
    }
    ModelTime pcie(std::uint64_t bytes) const {
        return duration_ps(bytes, rig.memory.config().pcie_bytes_per_second);
    }
    ModelTime vram(std::uint64_t bytes) const {
        return duration_ps(bytes, rig.memory.config().vram_bytes_per_second);
    }

    Rig rig;
    std::deque<CopyEngine> engines;
};

TEST_F(Sharing, OneCopyTakesExactlyItsBytes) {
    start(0, copy(kHost, kCard, kBytes + 192 * kMemoryLine - 7));
    EXPECT_EQ(run()[0], rates().setup_ps + pcie(kBytes + 192 * kMemoryLine)) << "in whole lines";
}

TEST_F(Sharing, TwoEnginesHaveHalfOfPcieEach) {
    start(0, copy(kHost, kCard));
    start(1, copy(kHost + kBytes, kCard + kBytes));
    const auto took = run();
    expect_near(took[0], pcie(2 * kBytes));
    expect_near(took[1], pcie(2 * kBytes));
    EXPECT_EQ(std::max(took[0], took[1]), rates().setup_ps + pcie(2 * kBytes)) << "and nothing is lost";
}

TEST_F(Sharing, ALateOneGetsItsHalf) {
    start(0, copy(kHost, kCard, 2 * kBytes));
    rig.events.advance_to(rates().setup_ps);
    while (rig.events.now() < pcie(kBytes))
        ASSERT_TRUE(rig.events.run_next(kNever - 1));
    start(1, copy(kHost + kBytes, kCard + 2 * kBytes, kBytes / 2));
    const auto took = run();
    expect_near(took[1], pcie(kBytes));
    expect_near(took[0], pcie(2 * kBytes + kBytes / 2));
}

TEST_F(Sharing, TheTwoDirectionsOfPcieAreTwo) {
    start(0, copy(kHost, kCard));
    start(1, copy(kCard + kBytes, kHost + kBytes));
    const auto took = run();
    EXPECT_EQ(took[0], rates().setup_ps + pcie(kBytes));
    EXPECT_EQ(took[1], rates().setup_ps + pcie(kBytes));
}

TEST_F(Sharing, ACopyInVramReadsAndWritesIt) {
    start(0, copy(kCard, kCard + kBytes));
    start(1, copy(kCard + 2 * kBytes, kCard + 3 * kBytes));
    const auto took = run();
    expect_near(took[0], vram(4 * kBytes));
    expect_near(took[1], vram(4 * kBytes));
}

// A packet that is read ahead waits for a burst of a copy, and not for all that the copy has reserved.
TEST_F(Sharing, SmallReadsDoNotWaitForCopies) {
    start(0, copy(kHost, kCard));
    while (rig.events.now() < pcie(kBytes / 2))
        ASSERT_TRUE(rig.events.run_next(kNever - 1));
    const ModelTime now = rig.events.now();
    EXPECT_LE(rig.memory.from_host().slip_in(now, 64), now + pcie(Resource::kBurst + 64) + 1);
    EXPECT_EQ(run()[0], rates().setup_ps + pcie(kBytes + 64));
}

// Nobody's list goes before the others, though its entries are small and cost nothing else.
TEST_F(Sharing, AListHasItsShareAndNoMore) {
    constexpr std::uint64_t kSome = kBytes / 8;
    constexpr std::uint32_t kEntries = 2 * kBytes / sizeof(orr_copy_entry);
    const auto beside = [&](std::uint64_t from, std::uint64_t list_at) {
        start(0, copy(from, kCard, kSome));
        start(1, list(list_at, kEntries));
        return run()[0];
    };
    const ModelTime in_vram = beside(kCard + kSome, kCard + 2 * kBytes);
    EXPECT_LE(static_cast<double>(in_vram), (1 + kNear) * static_cast<double>(2 * vram(2 * kSome)));
    const ModelTime from_host = beside(kHost, kHost + 2 * kBytes);
    EXPECT_LE(static_cast<double>(from_host), (1 + kNear) * static_cast<double>(2 * pcie(kSome)));
}

TEST_F(Sharing, AListTakesItsLines) {
    constexpr std::uint32_t kEntries = 100'001;
    start(0, list(kHost + 32, kEntries));
    expect_near(run()[0], rates().setup_ps + pcie(kEntries * sizeof(orr_copy_entry)));
}

TEST_F(Sharing, SmallReadsDoNotWaitForLists) {
    start(0, list(kHost, 2 * kBytes / sizeof(orr_copy_entry)));
    while (rig.events.now() < pcie(kBytes))
        ASSERT_TRUE(rig.events.run_next(kNever - 1));
    const ModelTime now = rig.events.now();
    EXPECT_LE(rig.memory.from_host().slip_in(now, 64), now + pcie(Resource::kBurst + 64) + 1);
}

// Both sides are off their lines: one more of each, however many pieces and pages there are.
TEST_F(Sharing, ACopyOffItsLinesTakesOneMore) {
    start(0, copy(kHost + 3, kCard + 61));
    EXPECT_EQ(run()[0], rates().setup_ps + pcie(kBytes + kMemoryLine));
}

TEST_F(Sharing, ShortRowsTakeWholeLines) {
    orr_desc_copy desc = copy(kCard + 62, kCard + 16'000'000, 4);
    desc.rows = 4'000;
    desc.src_pitch = 4'000;  // every other row lies in two lines
    desc.dst_pitch = 4'096;
    start(0, desc);
    expect_near(run()[0] - rates().setup_ps, vram(desc.rows / 2 * 5 * kMemoryLine));
    desc.src_pitch = desc.dst_pitch = 4;
    start(0, desc);
    const std::uint64_t lines =
        lines_of(62, desc.rows * desc.row_bytes) + desc.rows * desc.row_bytes / kMemoryLine;
    EXPECT_EQ(run()[0], rates().setup_ps + vram(lines * kMemoryLine)) << "rows without a gap";
}

// What a row or an entry costs the host is bounded by its model time.
TEST_F(Sharing, RowsAndEntriesTakeTime) {
    CopyRates rows = rates();
    rows.row_ps = 3 * kPsPerNs;
    CopyEngine engine(0, rows, rig.context);
    const auto time = [&](const auto& desc) {
        const Completion done = rig.run_one(engine, desc);
        EXPECT_EQ(done.status, ORR_DONE_OK);
        return done.end_ps - done.start_ps - rows.setup_ps;
    };
    constexpr std::uint32_t kRows = 1'000, kPlanes = 7;
    orr_desc_copy desc = copy(kHost, kCard, 1);
    EXPECT_EQ(time(desc), pcie(kMemoryLine)) << "the first is a part of the setup";
    desc.rows = kRows;
    desc.planes = kPlanes;  // the same byte again and again
    expect_near(time(desc), kRows * kPlanes * rows.row_ps);
    desc.planes = 0;
    desc.row_bytes = desc.src_pitch = desc.dst_pitch = 4'096;
    EXPECT_EQ(time(desc), pcie(std::uint64_t{4'096} * kRows)) << "long rows cost their bytes";
    expect_near(time(list(kCard, kRows)), kRows * rows.row_ps);
    desc = copy(0, kCard, 4);
    desc.op = ORR_DESC_FILL;
    desc.pattern_bytes = 4;
    desc.dst_pitch = 64;
    desc.rows = kRows;
    expect_near(time(desc), kRows * rows.row_ps);
}

TEST_F(Sharing, CopiesThatAreSlowOnTheHostAreTold) {
    std::FILE* log = std::tmpfile();
    ASSERT_NE(log, nullptr);
    const auto logged = [&](std::uint64_t row_bytes, std::uint32_t rows) {
        Errors errors(rig.counters, log);
        rig.context.errors = &errors;
        orr_desc_copy desc = copy(kCard, kCard + kBytes, row_bytes);
        desc.rows = rows;
        rig.run_one(engines[0], desc);
        rig.context.errors = nullptr;
        errors.flush();
        return std::ftell(log);
    };
    EXPECT_EQ(logged(kBytes, 1), 0);
    EXPECT_EQ(logged(1, 999'999), 0);
    EXPECT_GT(logged(1, 1'100'000), 0);
    EXPECT_EQ(std::fclose(log), 0);
}

MemoryConfig slow_memory() {
    MemoryConfig config;
    config.vram_latency_ps = 100 * kPsPerNs;
    config.pcie_latency_ps = 1'000 * kPsPerNs;
    return config;
}

class Latency : public Sharing {
  protected:
    Latency() : Sharing(slow_memory()) {}
};

TEST_F(Latency, ComesOnTopOnce) {
    start(0, copy(kHost, kCard));
    EXPECT_EQ(run()[0], rates().setup_ps + pcie(kBytes) + slow_memory().pcie_latency_ps);
}

TEST_F(Latency, LinesInFlightLimitOneUser) {
    CopyRates few;
    few.in_flight = 100;
    CopyEngine engine(0, few, rig.context);
    const ModelTime turn = slow_memory().pcie_latency_ps;
    const Completion done = rig.run_one(engine, copy(kHost, kCard));
    expect_near(done.end_ps - done.start_ps, kBytes / (100 * kMemoryLine) * turn);
}

// What was in flight for a copy that is no more does not hold up the next one.
TEST_F(Latency, AnAbortedCopyLeavesNothingToTheNext) {
    CopyRates few;
    few.in_flight = 1;
    CopyEngine engine(0, few, rig.context);
    const orr_desc_copy one = copy(kHost, kCard, 16 * kMemoryLine);
    const auto time = [&] {
        const Completion done = rig.run_one(engine, one);
        EXPECT_EQ(done.status, ORR_DONE_OK);
        return done.end_ps - done.start_ps;
    };
    const auto begin = [&] {
        ASSERT_TRUE(engine.start(Rig::words_of(one), 1));
        rig.run(1);
        ASSERT_TRUE(engine.busy());
    };
    const ModelTime alone = time();
    begin();
    engine.abort();
    rig.run();
    EXPECT_EQ(time(), alone);
    begin();
    engine.reset();
    EXPECT_EQ(time(), alone);
}

}  // namespace
}  // namespace orrery::emu::test
