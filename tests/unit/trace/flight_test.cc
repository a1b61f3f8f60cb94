// A flight recorder: the last of a recording without an end, out of memory that outlives the card.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "emulator/api/flight.h"
#include "emulator/base/unique_fd.h"
#include "emulator/trace/flight.h"
#include "emulator/trace/recorder.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

// Next to nothing: another one begins with each log, or each second one if the writer is late.
constexpr std::uint64_t kTiny = 1;
constexpr std::uint64_t kLarge = 64 << 20;

CardConfig flight(const std::filesystem::path& file, std::uint64_t segment) {
    CardConfig config = CardRig::config();
    config.flight_file = file;
    config.flight_segment = segment;
    return config;
}

std::expected<std::vector<std::uint8_t>, std::string> kept(const std::filesystem::path& file) {
    return flight_recording(UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)).get());
}

std::unique_ptr<Replayer> replay(const std::filesystem::path& file, Opening opening = Opening::kWhole) {
    auto replayer = Replayer::open(file, {}, opening);
    EXPECT_TRUE(replayer) << replayer.error();
    if (!replayer) return nullptr;
    EXPECT_FALSE((*replayer)->divergence()) << (*replayer)->divergence()->reason;
    return *std::move(replayer);
}

// The last things that `whole` tells, at the same times.
void expect_the_last_of(const Replayer& whole, const Replayer& last) {
    ASSERT_LE(last.record_count(), whole.record_count());
    const std::uint64_t before = whole.end() - last.end();
    const std::size_t dropped = whole.record_count() - last.record_count();
    for (std::size_t i = 0; i < last.record_count(); ++i) {
        const PortRecord one = last.record(i), other = whole.record(dropped + i);
        ASSERT_EQ(one.step + before, other.step) << i;
        ASSERT_EQ(one.time_ps, other.time_ps) << i;
        ASSERT_EQ(one.header, other.header) << i;
        ASSERT_TRUE(std::ranges::equal(one.words, other.words)) << i;
    }
    ASSERT_LE(last.notes().size(), whole.notes().size());
    for (std::size_t i = 0; i < last.notes().size(); ++i) {
        const TraceNote& one = last.notes()[i];
        const TraceNote& other = whole.notes()[whole.notes().size() - last.notes().size() + i];
        ASSERT_EQ(one.time_ps, other.time_ps);
        ASSERT_EQ(one.kind, other.kind);
    }
}

TEST(Flight, TheLastIsKeptAndReplays) {
    const TemporaryFile memory, file;
    const auto store = [](Card& card) { card.store_recording(); };
    const LiveEnd live = record_rounds(flight(memory.path(), kTiny), 24, store);
    record_firmware(file.path(), 24);
    const auto whole = replay(file.path());
    for (const Opening opening : {Opening::kWhole, Opening::kIndex}) {
        const auto last = replay(memory.path(), opening);
        ASSERT_NE(last, nullptr);
        EXPECT_TRUE(last->info().resumed);
        EXPECT_FALSE(last->info().crashed);
        EXPECT_LT(last->end(), whole->end() / 2);
        EXPECT_GT(last->info().start_ps, 0u);
        EXPECT_EQ(last->end_time(), live.time);
        EXPECT_GT(last->record_count(), 20u);
        ASSERT_NO_FATAL_FAILURE(expect_the_last_of(*whole, *last));
        last->seek(last->end());
        EXPECT_TRUE(std::ranges::equal(last->sram(), live.sram));
        // Everywhere as the whole one, backward too.
        const std::uint64_t before = whole->end() - last->end();
        for (std::uint64_t at = last->end(); at > 1; at -= std::min(at - 1, last->end() / 30)) {
            last->seek(at);
            whole->seek(before + at);
            ASSERT_EQ(trace_hash(last->state(), last->sram()), trace_hash(whole->state(), whole->sram()));
            ASSERT_EQ(last->time(), whole->time());
            ASSERT_EQ(last->running(), whole->running());
            ASSERT_EQ(last->sleeping(), whole->sleeping());
        }
        last->seek(0);
        EXPECT_FALSE(last->running());
        EXPECT_EQ(last->time(), last->info().start_ps);
    }
}

// What the card has skipped to follow its peers, also before what is kept: its system time is the card's own.
TEST(Flight, WhatTheCardSkippedBeforeIsKnown) {
    const TemporaryFile memory;
    ModelTime skipped = 0;
    record_rounds(flight(memory.path(), kTiny), 24, [&](Card& card) {
        const ModelTime gap = 1'000'000 + card.events().now() % 1'000;
        card.core().note(ORR_OTRACE_NOTE_JUMP, {gap});
        skipped += gap;
        card.store_recording();
    });
    const auto last = replay(memory.path());
    ASSERT_NE(last, nullptr);
    ASSERT_TRUE(last->info().resumed);
    ModelTime later = 0;
    for (const TraceNote& note : last->notes())
        later += note.kind == ORR_OTRACE_NOTE_JUMP ? note.field[0] : 0;
    EXPECT_GT(later, 0u);
    EXPECT_LT(later, skipped);
    EXPECT_EQ(last->info().skipped_ps + later, skipped);
}

TEST(Flight, WhatFitsIsKeptFromPowerOn) {
    const TemporaryFile memory, file;
    record_rounds(flight(memory.path(), kLarge), 4, {});
    record_firmware(file.path(), 4);
    const auto bytes = kept(memory.path());
    ASSERT_TRUE(bytes) << bytes.error();
    const auto whole = replay(file.path()), last = replay(memory.path());
    EXPECT_FALSE(last->info().resumed);
    EXPECT_EQ(last->end(), whole->end());
    ASSERT_NO_FATAL_FAILURE(expect_the_last_of(*whole, *last));
}

TEST(Flight, ItIsThereWhileTheCardLives) {
    const TemporaryFile memory;
    unsigned looks = 0;
    record_rounds(flight(memory.path(), kTiny), 12, [&](Card& card) {
        card.store_recording();
        const auto last = replay(memory.path());
        ASSERT_NE(last, nullptr);
        EXPECT_TRUE(last->info().crashed) << "nobody has ended it";
        EXPECT_EQ(last->end_time(), card.events().now());
        // It has the card's own path, too.
        EXPECT_TRUE(TraceReader::open(card.recording()));
        ++looks;
    });
    EXPECT_EQ(looks, 12u);
}

TEST(Flight, WithoutAFileItIsMemory) {
    record_rounds(flight({}, kTiny), 12, [](Card& card) {
        card.store_recording();
        EXPECT_TRUE(TraceReader::open(card.recording()));
    });
}

TEST(Flight, ItTakesNoMoreThanItShould) {
    const TemporaryFile memory;
    constexpr std::uint64_t kBegin = 1 << 20;
    record_rounds(flight(memory.path(), kTiny), 100, [](Card& card) { card.store_recording(); });
    struct stat status{};
    ASSERT_EQ(::stat(memory.path().c_str(), &status), 0);
    EXPECT_LT(static_cast<std::uint64_t>(status.st_blocks) * 512, kFlightSlots * kBegin);
}

TEST(Flight, OneThatIsThereIsKept) {
    const TemporaryFile memory;
    const auto record = [&](unsigned rounds) { record_rounds(flight(memory.path(), kTiny), rounds, {}); };
    record(2);
    const auto first = kept(memory.path());
    const UniqueFd held(::open(memory.path().c_str(), O_RDONLY | O_CLOEXEC));
    record(4);
    const std::filesystem::path last = memory.path().string() + ".last";
    EXPECT_EQ(flight_recording(held.get()), first);
    EXPECT_EQ(kept(last), first);
    EXPECT_NE(kept(memory.path()), first);
    // One that has no name of its own is whose who made it.
    const TemporaryFile link;
    std::filesystem::create_symlink(memory.path(), link.path());
    const auto second = kept(memory.path());
    record_rounds(flight(link.path(), kTiny), 2, {});
    EXPECT_NE(kept(memory.path()), second);
    EXPECT_EQ(kept(last), first);
    std::filesystem::remove(last);
}

// A byte that changed, as of a card that died of its own memory: in the last log of a segment.
void damage(const std::filesystem::path& memory, std::uint64_t newest_but) {
    const UniqueFd file(::open(memory.c_str(), O_RDWR | O_CLOEXEC));
    const auto read = [&](std::uint64_t at, auto& to) {
        ASSERT_EQ(::pread(file.get(), &to, sizeof to, static_cast<off_t>(at)),
                  static_cast<ssize_t>(sizeof to));
    };
    FlightHead head;
    read(0, head);
    const auto segment = std::ranges::find(head.number, std::ranges::max(head.number) - newest_but);
    const std::uint64_t base =
        kFlightHead + static_cast<std::uint64_t>(segment - head.number.begin()) * head.stride;
    orr_otrace_header begin{};
    read(base, begin);
    orr_otrace_block block{};
    std::uint64_t log = 0;
    for (std::uint64_t at = begin.header_bytes; at < begin.committed;
         at += sizeof block + block.stored_bytes) {
        read(base + at, block);
        if (block.kind == ORR_OTRACE_LOG) log = base + at;
    }
    ASSERT_NE(log, 0u);
    read(log, block);
    block.first_ps ^= 1;
    ASSERT_EQ(::pwrite(file.get(), &block, sizeof block, static_cast<off_t>(log)),
              static_cast<ssize_t>(sizeof block));
}

// What is replayed of so many rounds, before and after that.
auto with_damage(const TemporaryFile& memory, std::uint64_t segment, unsigned rounds, unsigned before_last) {
    record_rounds(flight(memory.path(), segment), rounds, [](Card& card) { card.store_recording(); });
    auto good = replay(memory.path());
    damage(memory.path(), before_last);
    return std::pair(std::move(good), replay(memory.path()));
}

TEST(Flight, WhatFollowsDamageIsThere) {
    const TemporaryFile memory;
    const auto [good, last] = with_damage(memory, kTiny, 24, 5);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_NE(last, nullptr);
    EXPECT_TRUE(last->info().resumed);
    EXPECT_EQ(last->end_time(), good->end_time());
    EXPECT_LT(last->end(), good->end());
    EXPECT_GT(last->end(), 0u);
}

TEST(Flight, WhatIsBeforeDamageInTheNewestIsThere) {
    const TemporaryFile memory;
    const auto [good, shorter] = with_damage(memory, kLarge, 4, 0);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_NE(shorter, nullptr);
    EXPECT_TRUE(shorter->info().crashed);
    EXPECT_LT(shorter->end_time(), good->end_time());
    EXPECT_GT(shorter->end(), 0u);
}

// What the firmware says may stand on both sides of a segment's begin.
TEST(Flight, ARecordThatWasCutIsLeftOut) {
    const TemporaryFile memory;
    {
        CardRig rig(flight(memory.path(), kTiny));
        rig.boot_script();
        for (std::uint64_t i = 0; i < 20; ++i) {
            rig.run({CardRig::write(SOC_TRACE, 1 | 2 << 8)});
            rig.card().store_recording();
            // As a header this would be of a record that takes all that comes.
            rig.run({CardRig::write(SOC_TRACE, 0xff00 + i)});
            rig.card().store_recording();
            rig.run({CardRig::write(SOC_TRACE, i)});
            rig.card().store_recording();
        }
    }
    for (const Opening opening : {Opening::kWhole, Opening::kIndex}) {
        const auto last = replay(memory.path(), opening);
        ASSERT_NE(last, nullptr);
        ASSERT_TRUE(last->info().resumed);
        ASSERT_GE(last->record_count(), 2u);
        for (std::size_t i = 0; i < last->record_count(); ++i) {
            const PortRecord record = last->record(last->record_count() - 1 - i);
            EXPECT_EQ(record.header, 1u | 2u << 8);
            ASSERT_EQ(record.words.size(), 2u);
            EXPECT_EQ(record.words[0], 0xff00 + 19 - i);
            EXPECT_EQ(record.words[1], 19 - i);
        }
    }
}

// A segment may begin with a start as well: of a card that is reset again and again.
TEST(Flight, StartsAreInIt) {
    constexpr int kRounds = 24;  // each second one begins a segment, however late the writer is
    const TemporaryFile memory;
    LiveEnd live;
    {
        CardRig rig(flight(memory.path(), kTiny));
        for (int i = 0; i < kRounds; ++i) {
            rig.boot_script();
            rig.run({CardRig::read(SOC_TIME), {OP_CYCLES, 0, 0, 0}});
            if (i % 2 == 1) rig.card().store_recording();
            rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
            rig.settle();
        }
        rig.boot_script();
        rig.run({CardRig::read(SOC_TIME)});
        live = live_end(rig.card());
    }
    const auto last = replay(memory.path());
    ASSERT_NE(last, nullptr);
    const auto resets =
        std::ranges::count(last->notes(), std::uint32_t{ORR_OTRACE_NOTE_RESET}, &TraceNote::kind);
    EXPECT_GE(resets, 2);
    EXPECT_LT(resets, kRounds);
    EXPECT_EQ(last->end_time(), live.time);
    last->seek(last->end());
    EXPECT_TRUE(std::ranges::equal(last->sram(), live.sram));
    ASSERT_NE(last->image(), nullptr);
    EXPECT_FALSE(last->image()->elf.empty());
}

TEST(Flight, AHaltIsInIt) {
    const TemporaryFile memory;
    {
        CardRig rig(flight(memory.path(), kTiny));
        rig.boot_script();
        for (int i = 0; i < 20; ++i) {
            rig.run({CardRig::read(SOC_TIME)});
            rig.card().store_recording();
        }
        rig.start({{OP_READ, 0x5000'0000, 0, 0}});
        rig.settle();
        rig.card().store_recording();
        rig.card().store_recording();
    }
    const auto last = replay(memory.path());
    ASSERT_NE(last, nullptr);
    EXPECT_TRUE(last->info().resumed);
    ASSERT_FALSE(last->notes().empty());
    EXPECT_EQ(last->notes().back().kind, ORR_OTRACE_NOTE_HALT);
    last->seek(last->notes().back().step - 1);
    EXPECT_TRUE(last->running());
    last->seek(last->end());
    EXPECT_FALSE(last->running());
}

// --- a core that stands still, and what arrives there all the time ---

constexpr std::uint64_t kFlood = kFlightSlack + (8 << 20);  // more than a segment holds
constexpr std::size_t kLeastNote = 14;                      // bytes, of a doorbell with a random value

TEST(Flight, ArrivalsAtAHaltedCoreLeaveRoomForWhatComesNext) {
    const TemporaryFile memory;
    LiveEnd live;
    {
        CardRig rig(flight(memory.path(), kTiny));
        rig.boot_script();
        std::vector<script_op> bindings;
        for (unsigned slot = 0; slot < ORR_DB_SLOTS; ++slot) {
            bindings.insert(bindings.end(),
                            {CardRig::write(SOC_DB_PAGE, 2), CardRig::write(SOC_DB_SLOT, slot),
                             CardRig::write(SOC_DB_TAG, slot), CardRig::write(SOC_DB_CMD, SOC_DB_BIND)});
        }
        rig.run(std::move(bindings));
        rig.start({{OP_READ, 0x5000'0000, 0, 0}});
        rig.settle();
        rig.card().store_recording();
        std::mt19937_64 random(1);
        for (std::uint64_t bytes = 0, rounds = 0; bytes < kFlood; bytes += ORR_DB_SLOTS * kLeastNote) {
            for (unsigned slot = 0; slot < ORR_DB_SLOTS; ++slot)
                rig.ring(2, slot, random() | std::uint64_t{1} << 63);
            rig.settle();
            if (++rounds % 200 == 0) rig.card().store_recording();
        }
        EXPECT_EQ(rig.card().errors().count(ErrorKind::kHostError), 0u);
        const auto halted = replay(memory.path());
        ASSERT_NE(halted, nullptr);
        EXPECT_GT(halted->notes().size(), kFlightSlack / 4 / 32) << "most of the room is theirs";
        rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
        rig.settle();
        rig.boot_script();
        rig.run({CardRig::read(SOC_TIME)});
        live = live_end(rig.card());
    }
    const auto last = replay(memory.path());
    ASSERT_NE(last, nullptr);
    for (const std::uint32_t kind : {ORR_OTRACE_NOTE_HALT, ORR_OTRACE_NOTE_RESET})
        EXPECT_EQ(std::ranges::count(last->notes(), kind, &TraceNote::kind), 1) << kind;
    EXPECT_EQ(last->end_time(), live.time);
    last->seek(last->end());
    EXPECT_TRUE(last->running());
    EXPECT_TRUE(std::ranges::equal(last->sram(), live.sram));
}

// As of a guest that is down, on a card whose time goes on.
TEST(Flight, WhatComesBeforeAStartLeavesRoomForIt) {
    const TemporaryFile memory;
    std::mt19937_64 random(1);
    RecordingInfo info;
    info.cycle_ps = 1'000;
    info.flight_segment = kTiny;
    auto recorder = Recorder::create(memory.path(), info);
    ASSERT_TRUE(recorder) << recorder.error();
    Recorder& it = **recorder;
    std::uint64_t time = 0, skipped = 0;
    for (std::uint64_t bytes = 0; bytes < kFlood; bytes += kLeastNote) {
        it.note(ORR_OTRACE_NOTE_DOORBELL, 0, ++time, {1, random() | std::uint64_t{1} << 63, 2, 3});
        if (time % 100'000 != 0) continue;
        it.note(ORR_OTRACE_NOTE_JUMP, 0, time, {5});
        skipped += 5;
        it.flush({}, {}, time, 0);
        it.writer().drain();
    }
    const std::vector<std::uint8_t> rom(ORR_ROM_SIZE), sram(ORR_SRAM_SIZE);
    it.start({.time = time, .reset_pc = ORR_ROM_BASE, .rom = rom, .sram = sram, .state = {}});
    it.finish({}, sram, time);
    EXPECT_EQ(it.error(), "");
    const auto bytes = kept(memory.path());
    ASSERT_TRUE(bytes) << bytes.error();
    const auto blocks = raw_blocks(*bytes);
    EXPECT_EQ(std::ranges::count(blocks, std::uint32_t{ORR_OTRACE_START},
                                 [](const RawBlock& block) { return block.header.kind; }),
              1);
    EXPECT_EQ(blocks.back().header.kind, ORR_OTRACE_END);
    EXPECT_EQ(blocks.back().header.last_ps, time);
    // Of what came there only what it has skipped is in the recording to its end.
    const auto reader = TraceReader::parse(*bytes, "flight");
    ASSERT_TRUE(reader) << reader.error();
    const auto replayer = Replayer::open(*reader, {}, Opening::kIndex);
    ASSERT_TRUE(replayer) << replayer.error();
    std::uint64_t told = reader->info().skipped_ps;
    for (const TraceNote& note : (*replayer)->notes())
        told += note.kind == ORR_OTRACE_NOTE_JUMP ? note.field[0] : 0;
    EXPECT_EQ(told, skipped);
}

TEST(Flight, WhatIsNoneIsRefused) {
    const TemporaryFile file;
    write_bytes(file.path(), std::vector<std::uint8_t>(8192));
    EXPECT_EQ(kept(file.path()).error(), "this is no flight recorder's memory");
    FlightHead head;
    head.stride = kFlightSlack;
    std::vector<std::uint8_t> bytes(4 * 8192);
    std::memcpy(bytes.data(), &head, sizeof head);
    write_bytes(file.path(), bytes);
    EXPECT_EQ(kept(file.path()).error(), "the flight recorder has not kept anything yet");
    head.number[0] = 1;
    std::memcpy(bytes.data(), &head, sizeof head);
    write_bytes(file.path(), bytes);
    EXPECT_EQ(kept(file.path()).error(), "the flight recorder has not kept anything yet");
}

// --- RESUME blocks that nobody vouches for ---

class Resume : public testing::Test {
  protected:
    static const std::vector<std::uint8_t>& good() {
        static const std::vector<std::uint8_t> bytes = [] {
            const TemporaryFile memory;
            record_rounds(flight(memory.path(), kTiny), 24, [](Card& card) { card.store_recording(); });
            return *kept(memory.path());
        }();
        return bytes;
    }
    template <typename Change>
    static std::string error_of(Change change) {
        const std::vector<std::uint8_t>& file = good();
        auto blocks = raw_blocks(file);
        const auto at = std::ranges::find(blocks, ORR_OTRACE_RESUME,
                                          [](const RawBlock& block) { return block.header.kind; });
        if (at == blocks.end()) return "there is none";
        change(blocks, *at);
        const auto reader = TraceReader::parse(sealed(file, std::move(blocks)), "x.otrace");
        if (!reader) return reader.error();
        const auto replayer = Replayer::open(*reader, {}, Opening::kWhole);
        if (!replayer) return replayer.error();
        return (*replayer)->divergence() ? (*replayer)->divergence()->reason : "taken";
    }
    template <typename Change>
    static std::string error_of_head(Change change) {
        return error_of([&](auto&, RawBlock& block) {
            orr_otrace_resume head{};
            std::memcpy(&head, block.payload.data(), sizeof head);
            change(head);
            std::memcpy(block.payload.data(), &head, sizeof head);
        });
    }
};

TEST_F(Resume, TheGoodOneIsTaken) {
    EXPECT_EQ(error_of([](auto&, RawBlock&) {}), "taken");
}

TEST_F(Resume, AStateThatCannotBeIsRefused) {
    constexpr const char* kState = "a state to go on from that no core can be in";
    EXPECT_THAT(error_of_head([](auto& head) { head.rest_ps = 1'000'000; }), HasSubstr(kState));
    EXPECT_THAT(error_of_head([](auto& head) { head.port_words = 256; }), HasSubstr(kState));
    EXPECT_THAT(error_of_head([](auto& head) { head.reserved = 1; }), HasSubstr(kState));
    EXPECT_THAT(error_of_head([](auto& head) { head.state.steps = ~0ull; }), HasSubstr(kState));
    // One that could be, and was not: the hash tells.
    EXPECT_THAT(error_of_head([](auto& head) { head.state.x[5] ^= 1; }), HasSubstr("state hash"));
    EXPECT_THAT(error_of_head([](auto& head) { head.state.steps = 12; }), HasSubstr("state hash"));
}

TEST_F(Resume, SizesAndPlacesAreLookedAt) {
    EXPECT_THAT(error_of([](auto&, RawBlock& block) { block.payload.resize(100); }),
                HasSubstr("a start of another size than this card's memory"));
    EXPECT_THAT(error_of([](auto&, RawBlock& block) { block.payload.push_back(0); }),
                HasSubstr("a start of another size than this card's memory"));
    EXPECT_THAT(error_of([](auto& blocks, RawBlock& block) {
                    RawBlock again = block;
                    again.header.first_step = block.header.last_step;
                    again.header.last_step = again.header.first_step + 1;
                    blocks.insert(blocks.begin() + (&block - blocks.data()) + 1, std::move(again));
                }),
                HasSubstr("a core goes on where the recording does not begin"));
}

}  // namespace
}  // namespace orrery::emu
