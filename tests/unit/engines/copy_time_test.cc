// What the time of copies goes into: as the test computes it, and at each moment all causes together are the
// time that has passed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "emulator/engines/save_area.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kVram = 0x10'0000'0000, kHost = 0x20'0000'0000, kPeer = 0x30'0000'0000;
constexpr std::uint64_t kMiB = 1 << 20, kBytes = kMiB, kArea = 40 << 20;
constexpr ModelTime kNs = kPsPerNs, kSetup = 200 * kNs, kFar = 150 * kNs, kFarHost = 600 * kNs;
// Of a byte: of the engine, of PCIe, of the FakePeer's wire; in quarters of a picosecond.
constexpr ModelTime kEngine = 10, kPcie = 125, kWire = 80;
constexpr ModelTime taking(std::uint64_t bytes, ModelTime quarters) {
    return bytes * quarters / 4;
}

using Ledger = CopyLedger;
static_assert(Ledger::counter_of(Ledger::kSetup) == ORR_CTR_COPY_SETUP_PS);
static_assert(Ledger::counter_of(Ledger::kMove) == ORR_CTR_COPY_MOVE_PS);
static_assert(Ledger::counter_of(Ledger::kRows) == ORR_CTR_COPY_ROWS_PS);
static_assert(Ledger::counter_of(Ledger::kVram) == ORR_CTR_COPY_VRAM_PS);
static_assert(Ledger::counter_of(Ledger::kPcie) == ORR_CTR_COPY_PCIE_PS);
static_assert(Ledger::counter_of(Ledger::kLatency) == ORR_CTR_COPY_LATENCY_PS);
static_assert(Ledger::counter_of(Ledger::kTranslation) == ORR_CTR_COPY_TRANSLATION_PS);
static_assert(Ledger::counter_of(Ledger::kLink) == ORR_CTR_COPY_LINK_PS);
static_assert(Ledger::counter_of(Ledger::kCredit) == ORR_CTR_COPY_CREDIT_PS);
static_assert(Ledger::counter_of(Ledger::kPeer) == ORR_CTR_COPY_PEER_PS);

ModelTime sum(const Ledger::Times& times) {
    return std::accumulate(times.begin(), times.end(), ModelTime{0});
}

class CopyTime : public testing::Test {
  protected:
    CopyTime() : rig(64 << 20, 64 << 20, 8 << 20, far_memory()) {
        rig.map(kVram, 16 * kMiB, ORR_TARGET_VRAM, 0);
        rig.map(kHost, 16 * kMiB, ORR_TARGET_HOST, Rig::kHostBase);
        rig.map(kPeer, 4 * kMiB, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode);
    }
    CopyEngine& engine(const CopyRates& rates = {}) {
        engines.push_back(std::make_unique<CopyEngine>(engines.size(), rates, rig.context));
        return *engines.back();
    }
    template <class Desc>
    static void start(CopyEngine& engine, const Desc& desc) {
        ASSERT_TRUE(engine.start(Rig::words_of(desc), 1));
    }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }
    // Of all copies that have ended.
    Ledger::Times counted() const {
        Ledger::Times times;
        for (std::size_t cause = 0; cause < times.size(); ++cause)
            times[cause] = rig.counters.get(Ledger::counter_of(cause));
        return times;
    }
    void expect_all() const { EXPECT_EQ(sum(counted()), rig.counters.get(ORR_CTR_COPY_BUSY_PS)); }
    // Of one that runs alone.
    template <class Desc>
    Ledger::Times of(CopyEngine& engine, const Desc& desc) {
        const Ledger::Times before = counted();
        const Completion done = rig.run_one(engine, desc);
        EXPECT_EQ(done.status, ORR_DONE_OK);
        expect_all();
        Ledger::Times times = counted();
        for (std::size_t cause = 0; cause < times.size(); ++cause)
            times[cause] -= before[cause];
        EXPECT_EQ(sum(times), done.used_ps);
        return times;
    }
    static Ledger::Times times(std::initializer_list<std::pair<Ledger::Cause, ModelTime>> of) {
        Ledger::Times times{};
        for (const auto& [cause, ps] : of)
            times[cause] = ps;
        return times;
    }

    Rig rig;
    std::vector<std::unique_ptr<CopyEngine>> engines;
};

TEST_F(CopyTime, OfWhatRunsAloneIsWhatItsWaysTake) {
    CopyEngine& one = engine();
    const ModelTime move = taking(kBytes, kEngine);
    EXPECT_EQ(of(one, Rig::copy(kVram, kVram + 4 * kMiB, kBytes)),
              times({{Ledger::kSetup, kSetup}, {Ledger::kMove, move}, {Ledger::kLatency, kFar}}));
    const ModelTime pcie = taking(kBytes, kPcie - kEngine);
    EXPECT_EQ(of(one, Rig::copy(kHost, kVram, kBytes)), times({{Ledger::kSetup, kSetup},
                                                               {Ledger::kMove, move},
                                                               {Ledger::kPcie, pcie},
                                                               {Ledger::kLatency, kFarHost}}));
    EXPECT_EQ(of(one, Rig::copy(kVram, kHost, kBytes)), times({{Ledger::kSetup, kSetup},
                                                               {Ledger::kMove, move},
                                                               {Ledger::kPcie, pcie},
                                                               {Ledger::kLatency, kFar}}));
    orr_desc_copy fill = Rig::copy(0, kVram, kBytes);
    fill.op = ORR_DESC_FILL;
    fill.pattern_bytes = 1;
    EXPECT_EQ(of(one, fill), times({{Ledger::kSetup, kSetup}, {Ledger::kMove, move}}));
    const ModelTime link = taking(kBytes, kWire - kEngine);
    EXPECT_EQ(of(one, Rig::copy(kVram, kPeer, kBytes)), times({{Ledger::kSetup, kSetup},
                                                               {Ledger::kMove, move},
                                                               {Ledger::kLink, link},
                                                               {Ledger::kLatency, kFar}}));
    EXPECT_EQ(of(one, Rig::copy(kVram, kVram, 0)), times({{Ledger::kSetup, kSetup}}));
}

TEST_F(CopyTime, OfOneThatMayAskForLittleAtOnceIsMostlyOfAnswers) {
    CopyEngine& one = engine({.in_flight = 16});
    const auto times = of(one, Rig::copy(kVram, kVram + 4 * kMiB, kBytes));
    EXPECT_EQ(times[Ledger::kMove], taking(kBytes, kEngine));
    // Sixteen lines come each time that memory takes to answer.
    EXPECT_NEAR(static_cast<double>(times[Ledger::kLatency] + times[Ledger::kMove]),
                static_cast<double>(kBytes / kMemoryLine / 16 * kFar + kFar), 10);
    EXPECT_EQ(times[Ledger::kVram] + times[Ledger::kTranslation], 0u);
}

TEST_F(CopyTime, OfShortRowsIsMostlyOfTheirStarts) {
    constexpr std::uint32_t kRows = 1000;
    CopyEngine& one = engine({.row_ps = 10 * kNs});
    orr_desc_copy desc = Rig::copy(kVram, kVram + 4 * kMiB, 64);
    desc.rows = kRows;
    desc.src_pitch = desc.dst_pitch = 256;
    const ModelTime row = taking(64, kEngine);
    EXPECT_EQ(of(one, desc), times({{Ledger::kSetup, kSetup},
                                    {Ledger::kMove, kRows * row},
                                    {Ledger::kRows, (kRows - 1) * (10 * kNs - row)},
                                    {Ledger::kLatency, kFar}}));
    // Long ones hide it.
    desc.row_bytes = desc.src_pitch = desc.dst_pitch = 64 << 10;
    desc.rows = 16;
    EXPECT_EQ(of(one, desc)[Ledger::kRows], 0u);
}

TEST_F(CopyTime, OfPagesThatAreNotAtHandHasTheFirstOnesWalks) {
    CopyEngine& one = engine({.tlb_entries = 256});
    const auto first = of(one, Rig::copy(kVram, kHost, 8192));
    EXPECT_EQ(first[Ledger::kTranslation], 4 * kFar) << "four levels of either side at the same time";
    const auto again = of(one, Rig::copy(kVram, kHost, 8192));
    EXPECT_EQ(again[Ledger::kTranslation], 0u);
    // Rows of a line in a page each: reads of tables are half of what may be in flight.
    CopyEngine& slow = engine({.in_flight = 4, .tlb_entries = 16});
    orr_desc_copy desc = Rig::copy(kVram, kHost, 64);
    desc.rows = 2000;
    desc.src_pitch = 4096;
    desc.dst_pitch = 64;
    const auto rows = of(slow, desc);
    EXPECT_GT(rows[Ledger::kTranslation], rows[Ledger::kLatency] * 9 / 10);
    EXPECT_LT(rows[Ledger::kTranslation], rows[Ledger::kLatency] * 13 / 10);
}

// Each of three gets a third of what two need.
TEST_F(CopyTime, OfThreeAtTheSameMemoryIsThatOfWaitingForIt) {
    for (unsigned n = 0; n < 3; ++n)
        start(engine(), Rig::copy(kVram + n * kMiB, kVram + (4 + n) * kMiB, kBytes));
    rig.run();
    ASSERT_EQ(rig.done.size(), 3u);
    expect_all();
    const auto times = counted();
    const ModelTime move = 3 * taking(kBytes, kEngine);
    EXPECT_EQ(times[Ledger::kMove], move);
    EXPECT_EQ(times[Ledger::kSetup], 3 * kSetup);
    EXPECT_GT(times[Ledger::kVram], move * 18 / 10);
    EXPECT_LE(times[Ledger::kVram], move * 2);
    EXPECT_EQ(times[Ledger::kPcie] + times[Ledger::kLink] + times[Ledger::kTranslation], 0u);
}

TEST_F(CopyTime, WithoutRoomInALinkIsThatOfCredits) {
    CopyEngine& one = engine();
    rig.peer.refusals = 1;
    start(one, Rig::copy(kVram, kPeer, 64));
    run_until(3'000 * kNs);
    EXPECT_EQ(one.times(), times({{Ledger::kSetup, kSetup}, {Ledger::kCredit, 3'000 * kNs - kSetup}}));
    run_until(5'000 * kNs);
    rig.peer.let();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    // Its bytes have left as if there had been room.
    EXPECT_EQ(counted(), times({{Ledger::kSetup, kSetup}, {Ledger::kCredit, 5'000 * kNs - kSetup}}));
    expect_all();
    EXPECT_EQ(one.times(), Ledger::Times{}) << "of what is over nothing is under way";
}

TEST_F(CopyTime, OfOneThatReadsAnotherCardIsThatOfItsAnswers) {
    CopyEngine& one = engine();
    start(one, Rig::copy(kPeer, kVram, 4096));
    run_until(3'000 * kNs);
    EXPECT_EQ(one.times(), times({{Ledger::kSetup, kSetup}, {Ledger::kPeer, 3'000 * kNs - kSetup}}));
    rig.peer.give();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(counted(), times({{Ledger::kSetup, kSetup},
                                {Ledger::kPeer, 3'000 * kNs - kSetup},
                                {Ledger::kMove, taking(4096, kEngine)}}));
    expect_all();
}

// Copies of all ways beside each other, with a list and pieces of rows; looked at every 37 ns.
TEST_F(CopyTime, AtEachMomentIsAllThatHasPassed) {
    constexpr std::uint32_t kEntries = 50;
    auto* const entries = reinterpret_cast<orr_copy_entry*>(rig.host_data + 8 * kMiB);
    for (std::uint64_t n = 0; n < kEntries; ++n)
        entries[n] = {(n % 2 != 0 ? kVram : kHost) + n * 5000, kVram + 6 * kMiB + n * 4096, n * 80, 0};
    orr_desc_copies list{};
    list.op = ORR_DESC_COPIES;
    list.asid = 1;
    list.list = kHost + 8 * kMiB;
    list.entries = kEntries;
    list.bytes = 80 * kEntries * (kEntries - 1) / 2;
    orr_desc_copy rows = Rig::copy(kHost + 3, kVram + 8 * kMiB, 100);
    rows.rows = 500;
    rows.src_pitch = rows.dst_pitch = 900;
    const CopyRates rates{.row_ps = 5 * kNs, .in_flight = 256, .peer_reads = 2, .tlb_entries = 8};
    start(engine(rates), list);
    start(engine(rates), rows);
    start(engine(rates), Rig::copy(kVram + 10 * kMiB, kVram + 12 * kMiB, kBytes));
    start(engine(rates), Rig::copy(kVram + 5, kPeer + 9, 200'000));
    start(engine(rates), Rig::copy(kPeer + 2 * kMiB, kHost + 12 * kMiB, 150'000));
    start(engine(rates), Rig::copy(kPeer + 2 * kMiB, kPeer + kMiB, 100'000));
    rig.peer.refusals = 3;
    rig.peer.max_bytes = 5000;
    std::vector<Ledger::Times> last(engines.size());
    Ledger::Times all{};
    unsigned moments = 0;
    for (ModelTime now = 0; rig.done.size() < engines.size(); now += 37 * kNs) {
        ASSERT_LT(now, 1'000'000 * kNs);
        run_until(now);
        for (std::size_t n = 0; n < engines.size(); ++n) {
            const Ledger::Times times = engines[n]->times();
            ASSERT_EQ(sum(times), engines[n]->used()) << n << " at " << now;
            for (std::size_t cause = 0; cause < times.size(); ++cause) {
                if (engines[n]->busy()) {
                    ASSERT_GE(times[cause], last[n][cause]) << n << ": " << cause;
                }
                all[cause] = std::max(all[cause], times[cause]);
            }
            last[n] = times;
        }
        if (++moments % 50 != 0) continue;
        rig.peer.let();
        while (!rig.peer.asked.empty())
            rig.peer.give();
    }
    expect_all();
    // All of them have happened.
    for (std::size_t cause = 0; cause < all.size(); ++cause)
        EXPECT_GT(counted()[cause], 0u) << cause;
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_JOBS), engines.size());
}

// Cut off in the middle of what was planned; a reset hands nothing in, and its time is counted.
TEST_F(CopyTime, OfWhatIsCutOffIsNoMoreThanHasPassed) {
    CopyEngine& one = engine();
    const orr_desc_copy desc = Rig::copy(kHost, kVram, kBytes);
    const ModelTime each = 7'123 * kNs;
    start(one, desc);
    run_until(each);
    const auto at = one.times();
    one.abort();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].used_ps, each);
    EXPECT_EQ(counted(), at);
    expect_all();

    start(one, desc);
    run_until(2 * each);
    one.reset();
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BUSY_PS), 2 * each);
    expect_all();
    EXPECT_EQ(one.times(), Ledger::Times{});

    const ModelTime moved = counted()[Ledger::kMove];
    start(one, desc);
    run_until(3 * each);
    ASSERT_TRUE(one.preempt(Preempt::kNow, kArea));
    rig.run();
    expect_all();
    ASSERT_TRUE(one.resume(kArea, 2));
    rig.run();
    ASSERT_EQ(rig.done.size(), 3u);
    EXPECT_EQ(rig.done[2].status, ORR_DONE_OK);
    expect_all();
    // In both parts together the engine moved all of it.
    EXPECT_EQ(counted()[Ledger::kMove] - moved, taking(kBytes, kEngine));

    // One that is preempted or aborted while it waits for room.
    for (const bool aborted : {false, true}) {
        rig.peer.refusals = 1;
        const ModelTime began = rig.events.now();
        start(one, Rig::copy(kVram, kPeer, 64));
        run_until(began + 2'000 * kNs);
        const ModelTime before = counted()[Ledger::kCredit];
        if (aborted)
            one.abort();
        else
            ASSERT_TRUE(one.preempt(Preempt::kNow, kArea));
        rig.run();
        EXPECT_EQ(counted()[Ledger::kCredit] - before, 2'000 * kNs - kSetup);
        expect_all();
    }
}

}  // namespace
}  // namespace orrery::emu::test
