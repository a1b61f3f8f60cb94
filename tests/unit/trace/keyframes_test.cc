// A recording that is opened without replaying it is the same as one that was replayed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "emulator/trace/port_words.h"
#include "emulator/trace/recorder.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

class Keyframes : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        const TemporaryFile file;
        record_keyframes(file.path(), 6);
        good_ = new std::vector<std::uint8_t>(bytes_of(file.path()));
    }
    static void TearDownTestSuite() {
        delete good_;
        good_ = nullptr;
    }
    static const std::vector<std::uint8_t>& good() { return *good_; }

    static std::expected<std::unique_ptr<Replayer>, std::string> try_open(
        const std::vector<std::uint8_t>& bytes, Opening opening) {
        auto reader = TraceReader::parse(bytes, "x.otrace");
        if (!reader) return std::unexpected(reader.error());
        return Replayer::open(*std::move(reader), {}, opening);
    }
    static std::unique_ptr<Replayer> open(const std::vector<std::uint8_t>& bytes, Opening opening) {
        auto replayer = try_open(bytes, opening);
        EXPECT_TRUE(replayer) << replayer.error();
        return replayer ? *std::move(replayer) : nullptr;
    }
    static std::string error_of(const std::vector<std::uint8_t>& bytes) {
        const auto replayer = try_open(bytes, Opening::kIndex);
        if (replayer) return "taken";
        EXPECT_THAT(replayer.error(), HasSubstr("x.otrace: offset 0x"));
        return replayer.error();
    }
    static std::uint64_t hash(const Replayer& replayer) {
        return trace_hash(replayer.state(), replayer.sram());
    }
    static std::size_t nth(const std::vector<RawBlock>& blocks, std::uint32_t kind, std::size_t n) {
        for (std::size_t i = 0; i < blocks.size(); ++i)
            if (blocks[i].header.kind == kind && n-- == 0) return i;
        ADD_FAILURE() << "no such block of kind " << kind;
        return 0;
    }
    // Changes one block and all that depends on it.
    template <typename Change>
    static std::vector<std::uint8_t> changed(std::uint32_t kind, std::size_t n, Change change) {
        auto blocks = raw_blocks(good());
        change(blocks, nth(blocks, kind, n));
        return sealed(good(), std::move(blocks));
    }

  private:
    static std::vector<std::uint8_t>* good_;
};
std::vector<std::uint8_t>* Keyframes::good_ = nullptr;

void expect_the_same_speech(const Replayer& a, const Replayer& b) {
    ASSERT_EQ(a.record_count(), b.record_count());
    for (std::size_t i = 0; i < a.record_count(); ++i) {
        const PortRecord one = a.record(i), other = b.record(i);
        ASSERT_EQ(one.step, other.step) << i;
        ASSERT_EQ(one.time_ps, other.time_ps) << i;
        ASSERT_EQ(one.header, other.header) << i;
        ASSERT_TRUE(std::ranges::equal(one.words, other.words)) << i;
    }
    ASSERT_EQ(a.notes().size(), b.notes().size());
    for (std::size_t i = 0; i < a.notes().size(); ++i) {
        ASSERT_EQ(a.notes()[i].step, b.notes()[i].step);
        ASSERT_EQ(a.notes()[i].time_ps, b.notes()[i].time_ps);
        ASSERT_EQ(a.notes()[i].kind, b.notes()[i].kind);
        ASSERT_TRUE(std::ranges::equal(a.notes()[i].field, b.notes()[i].field));
    }
}

TEST_F(Keyframes, NothingIsReplayedToOpen) {
    const auto index = open(good(), Opening::kIndex), whole = open(good(), Opening::kWhole);
    EXPECT_GE(index->reader().keyframes().size(), 4u);
    EXPECT_EQ(index->hashes_checked(), 0u);
    EXPECT_FALSE(index->verified());
    EXPECT_TRUE(whole->verified());
    EXPECT_EQ(index->end(), whole->end());
    EXPECT_EQ(index->end_time(), whole->end_time());
    EXPECT_GT(index->record_count(), 20u);
    EXPECT_GT(index->notes().size(), 10u);
    expect_the_same_speech(*index, *whole);
}

TEST_F(Keyframes, APositionIsTheSameAsFromTheStart) {
    const auto index = open(good(), Opening::kIndex), whole = open(good(), Opening::kWhole);
    std::mt19937_64 random(3);
    const auto same = [&](std::uint64_t step) {
        ASSERT_EQ(index->step(), whole->step()) << step;
        ASSERT_EQ(index->time(), whole->time()) << step;
        ASSERT_EQ(hash(*index), hash(*whole)) << step;
        ASSERT_EQ(index->running(), whole->running()) << step;
        ASSERT_EQ(index->sleeping(), whole->sleeping()) << step;
    };
    std::vector<std::uint64_t> places = {0, 1, index->end() - 1, index->end()};
    for (const TraceBeside& each : index->reader().keyframes())
        for (const int off : {-1, 0, 1})
            places.push_back(each.at.header.first_step + static_cast<std::uint64_t>(off));
    for (int i = 0; i < 60; ++i)
        places.push_back(random() % (index->end() + 1));
    std::ranges::shuffle(places, random);
    for (const std::uint64_t step : places) {
        EXPECT_EQ(index->seek(step).stop, whole->seek(step).stop);
        ASSERT_NO_FATAL_FAILURE(same(step));
        const std::uint64_t back = 1 + random() % 3000;
        EXPECT_EQ(index->step_back(back).stop, whole->step_back(back).stop);
        ASSERT_NO_FATAL_FAILURE(same(step));
        const std::uint64_t time = random() % index->end_time();
        index->seek_time(time);
        whole->seek_time(time);
        ASSERT_NO_FATAL_FAILURE(same(step));
    }
    EXPECT_FALSE(index->divergence());
    EXPECT_GT(index->hashes_checked(), 0u);
    EXPECT_LE(index->hashes_checked(), whole->hashes_checked());
}

TEST_F(Keyframes, PointsAreFoundBackwardToo) {
    const auto index = open(good(), Opening::kIndex), whole = open(good(), Opening::kWhole);
    whole->seek(whole->record(whole->record_count() / 2).step);
    ReplayLimits limits;
    limits.breakpoints = {whole->state().pc};
    for (Replayer* each : {index.get(), whole.get()})
        each->seek(each->end());
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(index->run_back_until(0, limits).stop, whole->run_back_until(0, limits).stop);
        ASSERT_EQ(index->step(), whole->step());
        ASSERT_EQ(hash(*index), hash(*whole));
    }
}

TEST_F(Keyframes, WhatWasNotCheckedCanBe) {
    const auto index = open(good(), Opening::kIndex), whole = open(good(), Opening::kWhole);
    index->seek(index->end() / 2);
    EXPECT_TRUE(index->verify());
    EXPECT_TRUE(index->verified());
    EXPECT_FALSE(index->divergence());
    EXPECT_EQ(index->step(), index->end() / 2) << "the position stays";
    EXPECT_EQ(index->hashes_checked(), whole->hashes_checked());
    expect_the_same_speech(*index, *whole);
}

// Restarts, a reset, a core that halts: keyframes between them belong to their start.
TEST_F(Keyframes, StartsAreBetweenThem) {
    const TemporaryFile file;
    {
        CardConfig config = CardRig::config();
        config.record = file.path();
        config.record_keyframe_cost = 0;
        CardRig rig(std::move(config));
        for (int start = 0; start < 4; ++start) {
            rig.boot_script();
            for (int i = 0; i < 3; ++i) {
                rig.run({CardRig::read(SOC_TIME),
                         CardRig::write(SOC_TRACE, 1 | 1 << 8),
                         CardRig::write(SOC_TRACE, 0x77),
                         {OP_SLEEP, 0, 1'000'500, 0}});
                rig.card().flush_recording();
            }
            // A record that the end of this start cuts.
            rig.run({CardRig::write(SOC_TRACE, 1 | 2 << 8), CardRig::write(SOC_TRACE, 1)});
            if (start == 3) break;
            if (start % 2 == 0) {
                rig.write32(ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
            } else {
                rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
            }
            rig.settle();
        }
        rig.start({{OP_READ, 0x5000'0000, 0, 0}});
        rig.settle();
        EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_HALTED);
        rig.card().flush_recording();
    }
    const auto bytes = bytes_of(file.path());
    const auto index = open(bytes, Opening::kIndex), whole = open(bytes, Opening::kWhole);
    EXPECT_FALSE(whole->divergence()) << whole->divergence()->reason;
    EXPECT_EQ(index->record_count(), 12u);
    EXPECT_GE(index->reader().keyframes().size(), 12u);
    expect_the_same_speech(*index, *whole);
    std::mt19937_64 random(5);
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t step = i == 0 ? index->end() : random() % (index->end() + 1);
        index->seek(step);
        whole->seek(step);
        ASSERT_EQ(index->time(), whole->time()) << step;
        ASSERT_EQ(hash(*index), hash(*whole)) << step;
        ASSERT_EQ(index->running(), whole->running()) << step;
    }
    EXPECT_TRUE(index->verify());
    EXPECT_FALSE(index->divergence());
}

// --- files that lie ---

TEST_F(Keyframes, OneThatIsNotTheRecordedStateIsRefused) {
    EXPECT_EQ(error_of(good()), "taken");
    const auto with = [](std::size_t at, std::uint8_t value) {
        return error_of(changed(ORR_OTRACE_KEYFRAME, 2, [&](std::vector<RawBlock>& blocks, std::size_t i) {
            blocks[i].payload[at] ^= value;
        }));
    };
    EXPECT_THAT(with(offsetof(orr_otrace_state, x) + 8 * 2, 1), HasSubstr("state is not the recorded one"));
    EXPECT_THAT(with(sizeof(orr_otrace_keyframe) + 500, 1), HasSubstr("offset"));
    EXPECT_THAT(with(offsetof(orr_otrace_state, steps), 1), HasSubstr("another place than its own"));
    EXPECT_THAT(with(offsetof(orr_otrace_keyframe, rest_ps) + 7, 0x80), HasSubstr("another place"));
    EXPECT_THAT(with(offsetof(orr_otrace_keyframe, pages) + 1, 1), HasSubstr("another size"));
    EXPECT_THAT(with(offsetof(orr_otrace_keyframe, reserved), 1), HasSubstr("another size"));
    EXPECT_THAT(with(sizeof(orr_otrace_keyframe) + 3, 0xff), HasSubstr("not in SRAM"));
    EXPECT_THAT(error_of(changed(ORR_OTRACE_KEYFRAME, 0,
                                 [](std::vector<RawBlock>& blocks, std::size_t i) {
                                     blocks[i].payload.resize(sizeof(orr_otrace_keyframe) - 1);
                                 })),
                HasSubstr("without its head"));
    EXPECT_THAT(error_of(changed(
                    ORR_OTRACE_KEYFRAME, 0,
                    [](std::vector<RawBlock>& blocks, std::size_t i) { blocks[i].header.state_hash ^= 1; })),
                HasSubstr("another state than the log before it"));
    EXPECT_THAT(error_of(changed(ORR_OTRACE_KEYFRAME, 0,
                                 [](std::vector<RawBlock>& blocks, std::size_t i) {
                                     blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(i),
                                                   blocks[i]);
                                 })),
                HasSubstr("does not follow a log"));
}

// A keyframe and the hash beside it are of one mind, and wrong: a replay that gets there finds it.
TEST_F(Keyframes, OneThatLiesWellIsFoundOut) {
    std::uint64_t before = 0, at = 0;
    const auto bytes = changed(ORR_OTRACE_KEYFRAME, 3, [&](std::vector<RawBlock>& blocks, std::size_t i) {
        blocks[i].payload[offsetof(orr_otrace_state, mscratch)] ^= 0x40;
        // Its memory, to make the hash good.
        std::vector<std::uint8_t> memory;
        for (std::size_t b = 0; b <= i; ++b) {
            const auto& payload = blocks[b].payload;
            if (blocks[b].header.kind == ORR_OTRACE_START)
                memory.assign(payload.begin() + sizeof(orr_otrace_start) + ORR_ROM_SIZE, payload.end());
            if (blocks[b].header.kind != ORR_OTRACE_KEYFRAME) continue;
            const auto keyframe = apply_keyframe(payload, memory);
            ASSERT_TRUE(keyframe);
            if (b == i) blocks[i].header.state_hash = trace_hash(keyframe->state, memory);
        }
        ASSERT_EQ(blocks[i - 1].header.kind, ORR_OTRACE_LOG);
        blocks[i - 1].header.state_hash = blocks[i].header.state_hash;
        before = blocks[i - 1].header.first_step;
        at = blocks[i].header.first_step;
    });
    const auto index = open(bytes, Opening::kIndex);
    EXPECT_FALSE(index->divergence());
    EXPECT_EQ(index->seek(before).stop, ReplayStop::kTarget);
    EXPECT_EQ(index->seek(at - 1).stop, ReplayStop::kTarget) << "the lie is behind";
    EXPECT_EQ(index->step_forward(1).stop, ReplayStop::kDiverged);
    ASSERT_TRUE(index->divergence());
    EXPECT_THAT(index->divergence()->reason, HasSubstr("state hash"));
    EXPECT_EQ(index->end(), before) << "what comes after the last good block cannot be trusted";
    EXPECT_EQ(index->step(), before);
    EXPECT_EQ(index->seek(at + 100).stop, ReplayStop::kEnd);
    EXPECT_EQ(index->step(), before);
    EXPECT_TRUE(index->record_count() == 0 || index->record(index->record_count() - 1).step <= before);

    const auto verified = open(bytes, Opening::kIndex), whole = open(bytes, Opening::kWhole);
    EXPECT_TRUE(verified->verify());
    ASSERT_TRUE(verified->divergence() && whole->divergence());
    EXPECT_EQ(verified->divergence()->offset, whole->divergence()->offset);
    EXPECT_EQ(verified->end(), before);
    EXPECT_EQ(whole->end(), before);
}

TEST_F(Keyframes, WordsThatTheFirmwareDidNotSayAreFoundOut) {
    const auto bytes = changed(ORR_OTRACE_PORT, 2, [](std::vector<RawBlock>& blocks, std::size_t i) {
        blocks[i].payload.back() ^= 1;
    });
    const auto index = open(bytes, Opening::kIndex), whole = open(bytes, Opening::kWhole);
    EXPECT_FALSE(index->divergence());
    EXPECT_TRUE(index->verify());
    for (const Replayer* each : {index.get(), whole.get()}) {
        ASSERT_TRUE(each->divergence());
        EXPECT_THAT(each->divergence()->reason, HasSubstr("said something else"));
    }
}

// A head that hides its log's notes costs what comes after that, and no more.
TEST_F(Keyframes, NotesThatAreKeptBackAreFoundOut) {
    std::uint64_t log = 0;
    const auto bytes = changed(ORR_OTRACE_PORT, 5, [](std::vector<RawBlock>& blocks, std::size_t i) {
        orr_otrace_port head;
        std::memcpy(&head, blocks[i].payload.data(), sizeof head);
        ASSERT_NE(head.notes, 0u);
        head.notes = 0;
        std::memcpy(blocks[i].payload.data(), &head, sizeof head);
    });
    const auto index = open(bytes, Opening::kIndex), whole = open(bytes, Opening::kWhole);
    log = index->reader().blocks()[index->reader().ports()[5].log].offset;
    EXPECT_TRUE(index->verify());
    for (const Replayer* each : {index.get(), whole.get()}) {
        ASSERT_TRUE(each->divergence());
        EXPECT_THAT(each->divergence()->reason, HasSubstr("other notes"));
        EXPECT_EQ(each->divergence()->offset, log);
        EXPECT_GT(each->record_count(), 5u);
        EXPECT_GT(each->notes().size(), 5u);
    }
}

// Who interrupts it at the moment at which it finds something hears of it all the same.
TEST_F(Keyframes, WhatACancelledCheckFoundIsKept) {
    const TemporaryFile file;
    record_scripts(file.path());  // short: found before anybody is asked
    const auto scripts = bytes_of(file.path());
    auto blocks = raw_blocks(scripts);
    const std::size_t log = nth(blocks, ORR_OTRACE_LOG, 1);  // the core runs
    blocks[log].header.state_hash ^= 1;
    const std::uint64_t first = blocks[log].header.first_step;
    // They would have to say the same.
    std::erase_if(blocks, [](const RawBlock& each) { return each.header.kind == ORR_OTRACE_KEYFRAME; });
    const auto index = open(sealed(scripts, std::move(blocks)), Opening::kIndex);
    EXPECT_TRUE(index->verify([](double) { return false; }));
    ASSERT_TRUE(index->divergence());
    EXPECT_EQ(index->end(), first);
    EXPECT_TRUE(index->verified());
}

// Its checksum is good, and what it holds is no log. Nothing of another one comes in its place, and the end
// before it is a place like any other.
TEST_F(Keyframes, ALogThatCannotBeReadEndsTheRecordingBeforeIt) {
    std::size_t bad = 0;
    std::vector<RawBlock> cut;
    const auto bytes = changed(ORR_OTRACE_PORT, 4, [&](std::vector<RawBlock>& blocks, std::size_t i) {
        blocks[i].payload[offsetof(orr_otrace_port, notes)] = 0;  // its log is not read to open
        bad = i + 1;
        ASSERT_EQ(blocks[bad].header.kind, ORR_OTRACE_LOG);
        cut.assign(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(i));
        blocks[bad].payload.back() ^= 0xff;
        blocks[bad].payload.resize(blocks[bad].payload.size() + 1, 0xee);
    });
    const auto index = open(bytes, Opening::kIndex), whole = open(sealed(good(), cut), Opening::kWhole);
    const std::uint64_t end = whole->end();
    index->seek(end - 1);  // from here it is not jumped over
    EXPECT_EQ(index->seek(end + 1000).stop, ReplayStop::kDiverged);
    ASSERT_TRUE(index->divergence());
    EXPECT_THAT(index->divergence()->reason, HasSubstr("x.otrace: offset 0x"));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(index->end(), end);
        EXPECT_EQ(index->seek(end).stop, ReplayStop::kTarget);
        whole->seek(end);
        EXPECT_EQ(hash(*index), hash(*whole));
        EXPECT_EQ(index->time(), whole->time());
        EXPECT_EQ(index->seek(end + 1).stop, ReplayStop::kEnd);
        EXPECT_EQ(index->step_back(1).stop, ReplayStop::kTarget);
        EXPECT_EQ(index->step_forward(1).stop, ReplayStop::kTarget);
        EXPECT_EQ(hash(*index), hash(*whole));
        EXPECT_EQ(index->run_until(end + 5, {}).stop, ReplayStop::kEnd);
    }
    const auto verified = open(bytes, Opening::kIndex);
    EXPECT_TRUE(verified->verify());
    EXPECT_EQ(verified->end(), end);
    verified->seek(end);
    EXPECT_EQ(verified->running(), whole->running());
    expect_the_same_speech(*verified, *whole);
    EXPECT_THAT(try_open(bytes, Opening::kWhole).error(), HasSubstr("x.otrace: offset 0x"));
}

TEST_F(Keyframes, WordsThatCannotBeAreRefused) {
    const auto with = [](auto change) {
        return error_of(changed(ORR_OTRACE_PORT, 1, [&](std::vector<RawBlock>& blocks, std::size_t i) {
            change(blocks[i].payload);
        }));
    };
    using Bytes = std::vector<std::uint8_t>;
    EXPECT_THAT(with([](Bytes& bytes) { bytes.pop_back(); }), HasSubstr("a word is cut"));
    EXPECT_THAT(with([](Bytes& bytes) { bytes[sizeof(orr_otrace_port)] = 0x99; }), HasSubstr("unknown form"));
    EXPECT_THAT(with([](Bytes& bytes) { bytes[offsetof(orr_otrace_port, reserved)] = 1; }),
                HasSubstr("reserved"));
    EXPECT_THAT(with([](Bytes& bytes) { bytes.resize(sizeof(orr_otrace_port) - 1); }),
                HasSubstr("without its head"));
    // One record that has no end.
    EXPECT_THAT(with([](Bytes& bytes) { bytes.resize(bytes.size() + (4 << 20)); }),
                HasSubstr("beyond its log"));
    EXPECT_THAT(error_of(changed(ORR_OTRACE_PORT, 1,
                                 [](std::vector<RawBlock>& blocks, std::size_t i) {
                                     std::swap(blocks[i], blocks[i + 1]);
                                 })),
                HasSubstr("offset"));
}

// The recorder died after a PORT block, before its log.
TEST_F(Keyframes, APortBlockWithoutItsLogIsLeftOut) {
    auto blocks = raw_blocks(good());
    blocks.resize(nth(blocks, ORR_OTRACE_PORT, 3) + 1);
    const auto bytes = sealed(good(), std::move(blocks));
    const auto index = open(bytes, Opening::kIndex), whole = open(bytes, Opening::kWhole);
    EXPECT_TRUE(index->info().crashed);
    EXPECT_GT(index->end(), 0u);
    EXPECT_EQ(index->end(), whole->end());
    expect_the_same_speech(*index, *whole);
    EXPECT_FALSE(whole->divergence());
}

// --- the coding of words ---

TEST(PortWords, WhatIsTakenIsRead) {
    PortWords words(1 << 10);
    const auto take = [&](std::uint32_t notes) {
        const std::size_t bytes = words.used();
        std::vector<std::uint8_t> taken = words.take(notes, {});
        taken.resize(bytes);
        return taken;
    };
    words.begin(999, 69'000);
    ASSERT_TRUE(words.put(1'000, 70'000, 5 | 2 << 8));
    ASSERT_TRUE(words.put(1'001, 71'000, 0));
    ASSERT_TRUE(words.put(1'002, 72'000, ~std::uint64_t{0}));
    ASSERT_TRUE(words.put(900'000, 1'000'000'000'000, 1 << 8));
    const auto first = take(3);
    words.begin(900'001, 1'000'000'001'000);
    ASSERT_TRUE(words.put(900'001, 1'000'000'001'000, 0x1234));
    ASSERT_TRUE(words.put(900'002, 1'000'000'002'000, 9));
    const auto second = take(0);

    PortDecoder one(first, 900'000, 1'000'000'000'000);
    ASSERT_EQ(one.head()->notes, 3u);
    auto word = one.next(true);
    ASSERT_TRUE(word);
    EXPECT_EQ(word->step, 1u);
    EXPECT_EQ(word->ps, 1'000u);
    EXPECT_EQ(word->value, 5u | 2 << 8);
    EXPECT_EQ(one.next(false)->value, 0u);
    EXPECT_EQ(one.next(false)->value, ~std::uint64_t{0});
    word = one.next(true);
    EXPECT_EQ(word->step, 899'001u);
    EXPECT_TRUE(one.done());
    PortDecoder two(second, 10, 10'000);
    ASSERT_EQ(two.head()->notes, 0u);
    EXPECT_EQ(two.next(false)->value, 0x1234u);
    word = two.next(true);
    EXPECT_EQ(word->step, 1u);
    EXPECT_EQ(word->value, 9u);
    EXPECT_TRUE(two.done());

    // Cut anywhere, or of a log that is shorter: an error, and nothing behind the end is read.
    for (std::size_t size = 0; size < first.size(); ++size) {
        const std::vector<std::uint8_t> cut(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(size));
        PortDecoder decoder(cut, 900'000, 1'000'000'000'000);
        bool good = decoder.head().has_value();
        int words_read = 0;
        for (; good && !decoder.done(); ++words_read)
            good = decoder.next(words_read == 0 || words_read == 3).has_value();
        EXPECT_TRUE(!good || words_read < 4) << size;
    }
    PortDecoder shorter(first, 899'001, 1'000'000'000'000);
    ASSERT_TRUE(shorter.head());
    EXPECT_TRUE(shorter.next(true) && shorter.next(false) && shorter.next(false));
    EXPECT_FALSE(shorter.next(true));
}

TEST(PortWords, OnlyWhatThereIsRoomFor) {
    PortWords words(100);
    int taken = 0;
    while (words.put(1, 1, 1))
        ++taken;
    EXPECT_GE(taken, 2);
    EXPECT_LE(words.used(), 100u);
}

}  // namespace
}  // namespace orrery::emu
