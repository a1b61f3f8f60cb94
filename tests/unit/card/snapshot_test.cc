// A snapshot of all counters: of one moment, exact, and without a trace in what the card does.
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/unit/card/firmware_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kPage = kRamBase + 0x200000;
constexpr unsigned kRounds = 25;
using All = std::array<std::uint64_t, ORR_COUNTER_COUNT>;

// By the registers, as a driver does it.
All take(CardRig& rig, std::uint32_t tag) {
    rig.write64(ORR_R_SNAPSHOT, kPage | tag);
    EXPECT_EQ(rig.read32(ORR_R_SNAPSHOT_DONE), tag);
    All all;
    std::memcpy(all.data(), rig.ram(kPage), sizeof all);
    return all;
}

TEST(Snapshot, HasAllCountersWhereItWasTold) {
    CardRig rig;
    rig.boot_script();
    EXPECT_EQ(rig.read32(ORR_R_SNAPSHOT_DONE), 0u);
    const std::uint64_t behind = kPage + sizeof(All);
    rig.word(behind) = 0x1234;
    rig.read32(0xffc);
    const All all = take(rig, 0xabc);
    for (const orr_counter each : {ORR_CTR_CORE_INSTRUCTIONS, ORR_CTR_GUEST_ERRORS, ORR_CTR_VRAM_BYTES})
        EXPECT_EQ(all[each], rig.counter(each)) << each;
    EXPECT_EQ(all[ORR_CTR_GUEST_ERRORS], 1u);
    EXPECT_GT(all[ORR_CTR_CORE_INSTRUCTIONS], 0u);
    EXPECT_EQ(all[ORR_CTR_TIME_PS], rig.card().events().now());
    EXPECT_EQ(rig.counter(ORR_CTR_TIME_PS), all[ORR_CTR_TIME_PS]) << "the last that was found";
    EXPECT_EQ(rig.word(behind), 0x1234u);
    rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    EXPECT_EQ(rig.read32(ORR_R_SNAPSHOT_DONE), 0u);
    EXPECT_EQ(rig.counter(ORR_CTR_GUEST_ERRORS), 1u);
}

TEST(Snapshot, SaysThatMemoryIsNotThere) {
    CardRig rig;
    const auto fault_of = [&](std::uint64_t address) {
        rig.write64(ORR_R_SNAPSHOT, address | 7);
        const std::uint32_t done = rig.read32(ORR_R_SNAPSHOT_DONE);
        EXPECT_EQ(done & 0xffff, 7u);
        return done >> 16;
    };
    EXPECT_EQ(fault_of(kPage), ORR_FAULT_NONE);
    EXPECT_EQ(fault_of(kRamBase + kRamBytes), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault_of(~std::uint64_t{4095}), ORR_FAULT_PAGE_RANGE);
    rig.unmap_ram();
    EXPECT_EQ(fault_of(kPage), ORR_FAULT_PAGE_RANGE);
    rig.map_ram();
    EXPECT_EQ(fault_of(kPage), ORR_FAULT_NONE);
    EXPECT_EQ(rig.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

orr_packet_fill fill(std::uint64_t bytes, unsigned pattern) {
    orr_packet_fill fill{};
    fill.header.opcode = ORR_PKT_FILL;
    fill.pattern = pattern;
    fill.pattern_bytes = 1;
    fill.dst = 0x10000;
    fill.row_bytes = bytes;
    fill.rows = 1;
    return fill;
}

struct Seen {
    std::vector<char> recording;
    ModelTime time = 0;
    All all{};
};

// Two queues of the firmware, with copies of both engines under way; `look` after each step of the card.
template <class Look>
Seen rounds(Look look) {
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / fmt::format("orrery-snapshot-{}.otrace", ::getpid());
    Seen seen;
    {
        CardConfig config = CardRig::config();
        config.record = file;
        FirmwareRig fw(FirmwareRig::config(std::move(config)));
        fw.boot();
        for (std::uint32_t asid = 1; asid <= 2; ++asid) {
            for (std::uint64_t at = 0; at < 0x10000; at += 4096)
                fw.rig().map_page(asid, 0x10000 + at, 0x200000 * asid + at, kRw);
            fw.make_queue(asid);
        }
        for (unsigned round = 0; round < kRounds; ++round) {
            for (std::uint32_t asid = 1; asid <= 2; ++asid) {
                fw.push(asid, fill(0x4000 * asid, round));
                fw.submit(asid);
            }
            while (fw.card().step())
                look(fw.rig());
        }
        EXPECT_EQ(fw.ring(2).consumer, kRounds);
        seen.time = fw.card().events().now();
        seen.all = fw.card().snapshot();
    }
    std::ifstream in(file, std::ios::binary);
    seen.recording.assign(std::istreambuf_iterator<char>(in), {});
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    return seen;
}

TEST(Snapshot, LeavesNoTrace) {
    const Seen without = rounds([](CardRig&) {});
    unsigned count = 0;
    const Seen with = rounds([&](CardRig& rig) { take(rig, ++count % 4095 + 1); });
    EXPECT_GT(count, 100u);
    EXPECT_EQ(with.time, without.time);
    EXPECT_EQ(with.all, without.all);
    ASSERT_FALSE(without.recording.empty());
    EXPECT_TRUE(with.recording == without.recording) << "what the control core saw is another";
}

// Nor do records of the hardware in the trace sink.
TEST(Snapshot, AndRecordsOfTheHardwareLeaveNone) {
    constexpr std::uint64_t kSink = kRamBase + (8 << 20);
    const auto seen = [](bool asked, std::uint64_t& words) {
        bool is_set = false;
        return rounds([&](CardRig& rig) {
            words = rig.word(kSink);
            if (std::exchange(is_set, true)) return;
            rig.write64(ORR_R_SINK_BASE, kSink);
            rig.write32(ORR_R_SINK_BYTES, 1 << 20);
            if (!asked) return;
            rig.write32(ORR_R_SINK_ASK, ORR_SINK_ASK_JOBS);
            rig.write64(ORR_R_SINK_SET, ~0ull);
            rig.write32(ORR_R_SINK_PERIOD, ORR_SINK_PERIOD_MIN);
        });
    };
    std::uint64_t none = 0, some = 0;
    const Seen without = seen(false, none);
    const Seen with = seen(true, some);
    EXPECT_EQ(none, 0u);
    EXPECT_GT(some, 100u);
    EXPECT_EQ(with.time, without.time);
    EXPECT_EQ(with.all, without.all);
    EXPECT_TRUE(with.recording == without.recording) << "what the control core saw is another";
}

// At any moment, whatever is under way.
TEST(Snapshot, SumsAgreeAtEachMoment) {
    All last{};
    unsigned moments = 0, busy = 0;
    rounds([&](CardRig& rig) {
        const All all = take(rig, 1);
        const Sku& sku = rig.card().sku();
        const std::uint64_t now = all[ORR_CTR_TIME_PS];
        // By which idle times are computed; IdleTruth (counter_truth_test.cc) knows what they are.
        EXPECT_EQ(all[ORR_CTR_CORE_BUSY_PS] + all[ORR_CTR_CORE_IDLE_PS], now);
        EXPECT_EQ(all[ORR_CTR_COPY_BUSY_PS] + all[ORR_CTR_COPY_IDLE_PS], now * sku.copy_engines);
        EXPECT_EQ(all[ORR_CTR_VECTOR_BUSY_PS] + all[ORR_CTR_VECTOR_IDLE_PS], now * sku.vector_cores);
        std::uint64_t of_copies = 0;
        for (unsigned n = ORR_CTR_COPY_SETUP_PS; n <= ORR_CTR_COPY_PEER_PS; ++n)
            of_copies += all[n];
        EXPECT_EQ(of_copies, all[ORR_CTR_COPY_BUSY_PS]);
        std::uint64_t of_core = 0, of_kernels = 0;
        for (unsigned n = ORR_CTR_CORE_INT; n <= ORR_CTR_CORE_SYSTEM; ++n)
            of_core += all[n];
        EXPECT_EQ(of_core, all[ORR_CTR_CORE_INSTRUCTIONS]);
        for (unsigned n = ORR_CTR_VECTOR_SCALAR_INT; n <= ORR_CTR_VECTOR_SCALAR_SYSTEM; ++n)
            of_kernels += all[n];
        for (unsigned n = ORR_CTR_VECTOR_SIMD_INT; n <= ORR_CTR_VECTOR_SIMD_CONFIG; ++n)
            of_kernels += all[n];
        EXPECT_EQ(of_kernels, all[ORR_CTR_VECTOR_INSTRUCTIONS]);
        EXPECT_EQ(all[ORR_CTR_VRAM_CORE_BYTES] + all[ORR_CTR_VRAM_COPY_BYTES] +
                      all[ORR_CTR_VRAM_VECTOR_BYTES] + all[ORR_CTR_VRAM_LINK_BYTES],
                  all[ORR_CTR_VRAM_BYTES]);
        // None goes back, so no idle time was more than there was, and none passes its clock.
        for (unsigned n = 0; n < all.size(); ++n)
            EXPECT_GE(all[n], last[n]) << n;
        const std::uint64_t passed = now - last[ORR_CTR_TIME_PS];
        EXPECT_LE(all[ORR_CTR_CORE_BUSY_PS] - last[ORR_CTR_CORE_BUSY_PS], passed);
        EXPECT_LE(all[ORR_CTR_COPY_BUSY_PS] - last[ORR_CTR_COPY_BUSY_PS], passed * sku.copy_engines);
        busy += all[ORR_CTR_COPY_BUSY_PS] != rig.counter(ORR_CTR_COPY_BUSY_PS) ? 1 : 0;
        last = all;
        ++moments;
    });
    EXPECT_GT(moments, 100u);
    EXPECT_GT(busy, 10u) << "looked while copies were under way";
    EXPECT_EQ(last[ORR_CTR_COPY_BYTES], kRounds * (0x4000 + 0x8000));
}

// The firmware's own words: at each moment what it does is all that it did, and it does what was asked.
TEST(Snapshot, KnowsWhatTheFirmwareDoes) {
    const auto sum = [](const All& all) {
        std::uint64_t of_all = 0;
        for (std::uint32_t activity = 0; activity < ORR_ACTIVITIES; ++activity)
            of_all += all[ORR_CTR_CORE_OTHER_PS + activity];
        return of_all;
    };
    const Seen seen = rounds([&](CardRig& rig) {
        const All all = rig.card().snapshot();
        ASSERT_EQ(sum(all), all[ORR_CTR_CORE_BUSY_PS]);
    });
    EXPECT_EQ(sum(seen.all), seen.all[ORR_CTR_CORE_BUSY_PS]);
    for (const orr_counter each : {ORR_CTR_CORE_OTHER_PS, ORR_CTR_CORE_PACKETS_PS,
                                   ORR_CTR_CORE_COMPLETIONS_PS, ORR_CTR_CORE_MAILBOX_PS})
        EXPECT_GT(seen.all[each], 0u) << each;
    EXPECT_EQ(seen.all[ORR_CTR_CORE_LINKS_PS], 0u);
    // Each fill was one packet; nobody else submits.
    EXPECT_EQ(seen.all[ORR_CTR_RING_PACKETS], 2 * kRounds);
    EXPECT_GT(seen.all[ORR_CTR_RING_WAIT_PS], 0u);
    EXPECT_GE(seen.all[ORR_CTR_DOORBELL_POPS], kRounds);
    EXPECT_LE(seen.all[ORR_CTR_DOORBELL_POPS], seen.all[ORR_CTR_DOORBELLS]);
}

}  // namespace
}  // namespace orrery::emu
