// What was recorded is what is replayed, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>

#include "tests/unit/core/instruction_class.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

std::unique_ptr<Replayer> open(const std::filesystem::path& file) {
    auto replayer = Replayer::open(file);
    if (!replayer) {
        ADD_FAILURE() << replayer.error();
        return nullptr;
    }
    const auto& divergence = (*replayer)->divergence();
    EXPECT_FALSE(divergence) << divergence->reason << " at step " << divergence->step;
    return *std::move(replayer);
}

void expect_end(Replayer& replayer, const LiveEnd& live) {
    EXPECT_EQ(replayer.end_time(), live.time);
    ASSERT_EQ(replayer.seek(replayer.end()).stop, ReplayStop::kTarget);
    EXPECT_EQ(replayer.time(), live.time);
    EXPECT_TRUE(std::ranges::equal(replayer.sram(), live.sram));
    EXPECT_EQ(replayer.end(), live.instructions + 1) << "and the start";
}

TEST(Replay, ScriptsAreTheSame) {
    TemporaryFile file;
    const LiveEnd live = record_scripts(file.path());
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    EXPECT_FALSE(replayer->info().crashed);
    EXPECT_GE(replayer->hashes_checked(), 2u);
    expect_end(*replayer, live);
}

TEST(Replay, TheRealFirmwareIsTheSame) {
    TemporaryFile file;
    const LiveEnd live = record_firmware(file.path());
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    expect_end(*replayer, live);
    EXPECT_EQ(replayer->info().sku_name, Sku::standard().name);
    EXPECT_EQ(replayer->info().sku_text, Sku::standard().text);
    ASSERT_EQ(replayer->images().size(), 1u);
    EXPECT_EQ(replayer->images()[0].bytes, read_file(FIRMWARE_IMAGE));
}

// The card's counters of classes against the bits of each instruction of the firmware, one by one.
TEST(Replay, CountersKnowEachInstructionsClass) {
    TemporaryFile file;
    const LiveEnd live = record_firmware(file.path(), 2);
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    test::ClassCounts executed;
    replayer->seek(0);
    while (replayer->step() < replayer->end()) {
        const std::uint64_t pc = replayer->state().pc;
        if (replayer->running()) {
            std::array<std::uint8_t, 4> code{};
            ASSERT_TRUE(replayer->read(pc, std::span(code).first(2)));
            if ((code[0] & 3) == 3) ASSERT_TRUE(replayer->read(pc, code));
            executed.add(std::bit_cast<std::uint32_t>(code));
        }
        replayer->step_forward();
    }
    using enum ScalarClass;
    std::size_t n = 0;
    for (const ScalarClass kind : {kInt, kMulDiv, kLoads, kStores, kJumps, kAtomics, kSystem}) {
        EXPECT_EQ(live.counters.at(ORR_CTR_CORE_INT + n), executed.of(kind)) << n;
        // A core that is alone needs no atomics; with them class_truth_test.cc and oracle_test.cc.
        if (kind != kAtomics) EXPECT_GT(executed.of(kind), 0u) << n;
        ++n;
    }
    EXPECT_EQ(executed.of(kFp) + executed.vector, 0u);
}

// Where a store of eight bytes goes; 0: it is none.
std::uint64_t stored_to(std::uint32_t bits, const HartState& state) {
    const auto field = [&](unsigned from, unsigned count, unsigned to) {
        return std::uint64_t{bits >> from & ((1u << count) - 1)} << to;
    };
    if ((bits & 0x707f) == 0x3023) {
        const auto offset = static_cast<std::int64_t>(field(7, 5, 0) | field(25, 7, 5)) << 52 >> 52;
        return state.x[bits >> 15 & 31] + static_cast<std::uint64_t>(offset);
    }
    if ((bits & 0xe003) == 0xe000) return state.x[8 + (bits >> 7 & 7)] + (field(10, 3, 3) | field(5, 2, 6));
    if ((bits & 0xe003) == 0xe002) return state.x[2] + (field(10, 3, 3) | field(7, 3, 6));
    return 0;
}

// And its counters of instructions and of time by what it did: a cycle for each instruction, what accesses
// took on top of that, and the stores by which the firmware says what it does from then on.
TEST(Replay, CountersKnowWhatTheCoreDidWithItsTime) {
    TemporaryFile file;
    const LiveEnd live = record_firmware(file.path(), 2);
    std::map<std::uint64_t, std::uint64_t> stalls;  // by step
    auto reader = TraceReader::open(file.path());
    ASSERT_TRUE(reader) << reader.error();
    const auto opened =
        Replayer::open(*std::move(reader), {}, Opening::kWhole,
                       [&](const PortAccess& access) { stalls[access.step] += access.stall_ps; });
    ASSERT_TRUE(opened) << opened.error();
    Replayer& replay = **opened;
    std::array<std::uint64_t, ORR_ACTIVITIES> spent{};
    std::size_t activity = ORR_ACTIVITY_OTHER;
    std::uint64_t instructions = 0;
    replay.seek(0);
    while (replay.step() < replay.end()) {
        if (replay.running()) {
            std::array<std::uint8_t, 4> code{};
            ASSERT_TRUE(replay.read(replay.state().pc, std::span(code).first(2)));
            if ((code[0] & 3) == 3) ASSERT_TRUE(replay.read(replay.state().pc, code));
            const std::uint64_t port =
                stored_to(std::bit_cast<std::uint32_t>(code), replay.state()) - ORR_SOC_BASE;
            for (std::size_t n = 0; n < spent.size(); ++n)
                if (port == SOC_ACTIVITY(n)) activity = n;
            ++instructions;
            spent.at(activity) += replay.info().cycle_ps;
            if (const auto stall = stalls.find(replay.step()); stall != stalls.end())
                spent.at(activity) += stall->second;
        }
        replay.step_forward();
    }
    EXPECT_EQ(live.counters.at(ORR_CTR_CORE_INSTRUCTIONS), instructions);
    EXPECT_EQ(live.counters.at(ORR_CTR_CORE_BUSY_PS), std::reduce(spent.begin(), spent.end()));
    for (std::size_t n = 0; n < spent.size(); ++n) {
        EXPECT_EQ(live.counters.at(ORR_CTR_CORE_OTHER_PS + n), spent.at(n)) << n;
        // No other card is there to signal anything.
        EXPECT_EQ(spent.at(n) != 0, n != ORR_ACTIVITY_LINKS) << n;
    }
}

TEST(Replay, TimesOfThePortAreExact) {
    TemporaryFile file;
    record_scripts(file.path());
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    ASSERT_EQ(replayer->record_count(), 2u);
    const PortRecord record = replayer->record(0);
    EXPECT_EQ(record.header, 1u | 2 << 8);
    ASSERT_EQ(record.words.size(), 2u);
    EXPECT_EQ(record.words[1], 0x2222u);
    replayer->seek(record.step);
    EXPECT_EQ(replayer->time(), record.time_ps);
    // A step takes a cycle, and the store of the header nothing beyond it.
    replayer->step_forward();
    EXPECT_EQ(replayer->time(), record.time_ps + replayer->info().cycle_ps);
}

TEST(Replay, NotesSayWhatArrived) {
    TemporaryFile file;
    record_firmware(file.path(), 3);
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    unsigned doorbells = 0, mails = 0;
    std::uint64_t time = 0;
    for (const TraceNote& note : replayer->notes()) {
        EXPECT_GE(note.time_ps, time);
        time = note.time_ps;
        mails += note.kind == ORR_OTRACE_NOTE_MAILBOX ? 1 : 0;
        if (note.kind != ORR_OTRACE_NOTE_DOORBELL) continue;
        ++doorbells;
        EXPECT_EQ(note.field[3], 7u) << "slot";
    }
    EXPECT_EQ(mails, 4u) << "two contexts and two queues";
    EXPECT_EQ(doorbells, 6u);
}

TEST(Replay, RunsAreReproducible) {
    TemporaryFile first, second;
    record_firmware(first.path());
    record_firmware(second.path());
    EXPECT_EQ(bytes_of(first.path()), bytes_of(second.path()));
}

TEST(Replay, AHundredTimes) {
    TemporaryFile file;
    record_firmware(file.path(), 1);
    const auto reader = TraceReader::open(file.path());
    ASSERT_TRUE(reader) << reader.error();
    for (unsigned i = 0; i < 100; ++i) {
        const auto replayer = Replayer::open(*reader);
        ASSERT_TRUE(replayer) << replayer.error();
        ASSERT_FALSE((*replayer)->divergence());
        ASSERT_EQ((*replayer)->hashes_checked(), (*Replayer::open(*reader))->hashes_checked());
    }
}

TEST(Replay, AResetAndASecondStartAreInIt) {
    TemporaryFile file;
    LiveEnd live;
    {
        CardConfig config = CardRig::config();
        config.record = file.path();
        CardRig rig(std::move(config));
        rig.boot_script();
        rig.run({CardRig::read(SOC_TIME)});
        rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
        rig.settle();
        rig.boot_script();
        rig.run({CardRig::read(SOC_TIME), {OP_CYCLES, 0, 0, 0}});
        live = live_end(rig.card());
    }
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    EXPECT_EQ(replayer->images().size(), 1u) << "the same image is kept once";
    EXPECT_EQ(replayer->end(), live.instructions + 2);
    EXPECT_EQ(std::ranges::count(replayer->notes(), std::uint32_t{ORR_OTRACE_NOTE_RESET}, &TraceNote::kind),
              1);
    replayer->seek(replayer->end());
    EXPECT_TRUE(std::ranges::equal(replayer->sram(), live.sram));
    EXPECT_TRUE(replayer->running());
    replayer->seek(0);
    EXPECT_FALSE(replayer->running());
}

// A restart of the core alone: its memory stays, but for the image.
TEST(Replay, AWarmRestartIsInIt) {
    TemporaryFile file;
    LiveEnd live;
    constexpr std::uint64_t kKept = ORR_SRAM_BASE + 0x70000;
    {
        CardConfig config = CardRig::config();
        config.record = file.path();
        CardRig rig(std::move(config));
        rig.boot_script();
        rig.run({{OP_WRITE, kKept, 0x1234, 0}});
        rig.write32(ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
        rig.settle();
        ASSERT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_RESET);
        rig.boot_script();
        EXPECT_EQ(rig.run({{OP_READ, kKept, 0, 0}})[0].result, 0x1234u);
        EXPECT_EQ(rig.soc(SOC_BOOT_COUNT), 2u);
        live = live_end(rig.card());
    }
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    EXPECT_EQ(replayer->images().size(), 1u);
    EXPECT_EQ(replayer->end_time(), live.time);
    EXPECT_EQ(std::ranges::count(replayer->notes(), std::uint32_t{ORR_OTRACE_NOTE_RESTART}, &TraceNote::kind),
              1);
    replayer->seek(replayer->end());
    EXPECT_TRUE(std::ranges::equal(replayer->sram(), live.sram));
    // Back over the restart: the core before it, still running.
    const auto restart =
        std::ranges::find(replayer->notes(), std::uint32_t{ORR_OTRACE_NOTE_RESTART}, &TraceNote::kind);
    replayer->seek(restart->step - 1);
    EXPECT_TRUE(replayer->running());
    replayer->seek(restart->step + 1);
    EXPECT_TRUE(replayer->running()) << "started again";
    EXPECT_EQ(replayer->state().pc, ORR_ROM_BASE);
}

TEST(Replay, ExceptionsAndHaltsAreInIt) {
    TemporaryFile file;
    LiveEnd live;
    {
        CardConfig config = CardRig::config();
        config.record = file.path();
        CardRig rig(std::move(config));
        rig.boot_script();
        // No memory there: an access fault, and no handler.
        rig.start({{OP_READ, 0x5000'0000, 0, 0}});
        rig.settle();
        EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_HALTED);
        live = live_end(rig.card());
    }
    const auto replayer = open(file.path());
    ASSERT_NE(replayer, nullptr);
    EXPECT_EQ(replayer->end_time(), live.time);
    ASSERT_FALSE(replayer->notes().empty());
    EXPECT_EQ(replayer->notes().back().kind, ORR_OTRACE_NOTE_HALT);
    replayer->seek(replayer->end());
    EXPECT_TRUE(std::ranges::equal(replayer->sram(), live.sram));
    EXPECT_FALSE(replayer->running());
}

}  // namespace
}  // namespace orrery::emu
