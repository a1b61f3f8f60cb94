// Recordings that are whole and well-formed, and made to harm their reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "emulator/trace/keyframes.h"
#include "emulator/trace/recorder.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

class Hostile : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        const TemporaryFile file;
        record_keyframes(file.path(), 3);
        good_ = new Bytes(bytes_of(file.path()));
    }
    static void TearDownTestSuite() {
        delete good_;
        good_ = nullptr;
    }
    static const Bytes& good() { return *good_; }

    static std::expected<std::unique_ptr<Replayer>, std::string> open(
        const Bytes& bytes, Opening opening, const Replayer::Progress& progress = {}) {
        auto reader = TraceReader::parse(bytes, "x.otrace");
        if (!reader) return std::unexpected(reader.error());
        return Replayer::open(*std::move(reader), progress, opening);
    }
    static std::string error_of(const Bytes& bytes, Opening opening,
                                const Replayer::Progress& progress = {}) {
        const auto replayer = open(bytes, opening, progress);
        return replayer ? "taken" : replayer.error();
    }
    static std::size_t nth(const std::vector<RawBlock>& blocks, std::uint32_t kind, std::size_t n) {
        for (std::size_t i = 0; i < blocks.size(); ++i)
            if (blocks[i].header.kind == kind && n-- == 0) return i;
        ADD_FAILURE() << "no such block of kind " << kind;
        return 0;
    }
    // What a recorder that died left, and `pairs` of a PORT and its LOG of so many steps.
    static std::vector<RawBlock> with_pairs(unsigned pairs, const Bytes& port, const Bytes& log,
                                            std::uint64_t steps) {
        auto blocks = raw_blocks(good());
        blocks.pop_back();
        for (unsigned i = 0; i < pairs; ++i) {
            RawBlock said;
            said.header = point_behind(blocks.back().header, ORR_OTRACE_PORT);
            said.payload = port;
            RawBlock took;
            took.header = point_behind(blocks.back().header, ORR_OTRACE_LOG);
            took.header.last_step += steps;
            took.payload = log;
            blocks.push_back(said);
            blocks.push_back(took);
        }
        return blocks;
    }
    static orr_otrace_block point_behind(const orr_otrace_block& before, std::uint32_t kind) {
        orr_otrace_block block{};
        block.magic = ORR_OTRACE_BLOCK_MAGIC;
        block.kind = kind;
        block.first_step = block.last_step = before.last_step;
        block.first_ps = block.last_ps = before.last_ps;
        block.state_hash = before.state_hash;
        return block;
    }
    static std::uint64_t cycle_ps() {
        const auto reader = TraceReader::parse(good(), "good");
        return reader ? reader->info().cycle_ps : 0;
    }
    static Bytes repeated(Bytes begin, const Bytes& what, std::size_t times) {
        for (std::size_t i = 0; i < times; ++i)
            begin.insert(begin.end(), what.begin(), what.end());
        return begin;
    }
    // Each of 1.7 million records of no words, a step apart: some hundred bytes in the file.
    static std::vector<RawBlock> with_records() {
        constexpr std::size_t kRecords = 1'700'000;
        return with_pairs(6, repeated(Bytes(sizeof(orr_otrace_port)), {0x01, 0x01, 0x00}, kRecords), {},
                          kRecords + 1);
    }

  private:
    static Bytes* good_;
};
Bytes* Hostile::good_ = nullptr;

TEST_F(Hostile, AFewBytesAreNotMillionsOfRecords) {
    const Bytes bytes = sealed(good(), with_records(), true);
    EXPECT_LT(bytes.size(), 2u << 20);
    const std::string error = error_of(bytes, Opening::kIndex);
    EXPECT_THAT(error, HasSubstr("x.otrace: offset 0x"));
    EXPECT_THAT(error, HasSubstr("more than is kept"));
}

TEST_F(Hostile, AFewBytesAreNotMillionsOfNotes) {
    Bytes port(sizeof(orr_otrace_port));
    port[0] = 1;
    const Bytes log = repeated({}, {ORR_OTRACE_NOTE | ORR_OTRACE_NOTE_MAILBOX << 4, 0x00, 0x00}, 1'200'000);
    const Bytes bytes = sealed(good(), with_pairs(6, port, log, 0), true);
    EXPECT_LT(bytes.size(), 2u << 20);
    EXPECT_THAT(error_of(bytes, Opening::kIndex), HasSubstr("more than is kept"));
}

// The firmware itself says them, in a loop.
TEST_F(Hostile, AFewStepsAreNotMillionsOfRecords) {
    auto blocks = raw_blocks(good());
    const std::size_t start = nth(blocks, ORR_OTRACE_START, 0);
    blocks.resize(start + 1);
    orr_otrace_start head{};
    std::memcpy(&head, blocks[start].payload.data(), sizeof head);
    constexpr std::uint32_t kPort = ORR_SOC_BASE + SOC_TRACE;
    const std::uint32_t code[] = {
        (kPort & ~0xfffu) | 0x2b7,                                                 // lui t0, port
        (kPort & 0xfe0u) << 20 | 5u << 15 | 3u << 12 | (kPort & 31u) << 7 | 0x23,  // sd zero, port(t0)
        0xffdff06f,                                                                // j to the one before
    };
    static_assert((kPort & 0x800u) == 0 && kPort < 1u << 31);
    std::memcpy(blocks[start].payload.data() + sizeof head + (head.reset_pc - ORR_ROM_BASE), code,
                sizeof code);
    RawBlock log;
    log.header = point_behind(blocks[start].header, ORR_OTRACE_LOG);
    log.header.last_step += TraceReader::kMaxSteps;
    blocks.push_back(log);
    EXPECT_THAT(error_of(sealed(good(), std::move(blocks), true), Opening::kWhole),
                HasSubstr("more than is kept"));
}

TEST_F(Hostile, WhatTheFileSaysIsNotReadBehindADivergence) {
    auto blocks = with_records();
    blocks[nth(blocks, ORR_OTRACE_LOG, 1)].header.state_hash ^= 1;
    std::erase_if(blocks, [](const RawBlock& each) { return each.header.kind == ORR_OTRACE_KEYFRAME; });
    const auto replayer = open(sealed(good(), std::move(blocks), true), Opening::kWhole);
    ASSERT_TRUE(replayer) << replayer.error();
    EXPECT_TRUE((*replayer)->divergence());
}

TEST_F(Hostile, ReadingWhatTheFileSaysCanBeCancelled) {
    auto blocks = raw_blocks(good());
    std::erase_if(blocks, [](const RawBlock& each) { return each.header.kind == ORR_OTRACE_KEYFRAME; });
    const Bytes bytes = sealed(good(), std::move(blocks));
    EXPECT_EQ(error_of(bytes, Opening::kIndex), "taken");
    EXPECT_THAT(error_of(bytes, Opening::kIndex, [](double) { return false; }), HasSubstr("cancelled"));
}

// rest_ps is in no hash: what it leads to is not told as exact.
TEST_F(Hostile, NothingOfAKeyframeIsLeftBehindAVerify) {
    auto blocks = raw_blocks(good());
    unsigned lies = 0;
    for (RawBlock& block : blocks) {
        if (block.header.kind != ORR_OTRACE_KEYFRAME) continue;
        std::uint64_t rest = 0;
        std::memcpy(&rest, block.payload.data() + offsetof(orr_otrace_keyframe, rest_ps), sizeof rest);
        rest = rest != 0 ? 0 : cycle_ps() - 1;
        std::memcpy(block.payload.data() + offsetof(orr_otrace_keyframe, rest_ps), &rest, sizeof rest);
        ++lies;
    }
    ASSERT_GE(lies, 2u);
    const auto index = open(sealed(good(), std::move(blocks)), Opening::kIndex);
    const auto whole = open(good(), Opening::kWhole);
    ASSERT_TRUE(index && whole);
    EXPECT_GT((*index)->snapshots(), lies);
    EXPECT_TRUE((*index)->verify());
    EXPECT_FALSE((*index)->divergence());
    EXPECT_EQ((*index)->end(), (*whole)->end());
    EXPECT_EQ((*index)->snapshots(), (*whole)->snapshots());
    for (std::uint64_t step = (*index)->end(); step > 20; step -= 1 + step / 100) {
        (*index)->seek(step);
        (*whole)->seek(step);
        ASSERT_EQ(trace_hash((*index)->state(), (*index)->sram()),
                  trace_hash((*whole)->state(), (*whole)->sram()))
            << step;
    }
}

// --- a core that does not run ---

// Two starts; the card is reset between them.
Bytes with_reset() {
    const TemporaryFile file;
    {
        CardConfig config = CardRig::config();
        config.record = file.path();
        CardRig rig(std::move(config));
        for (int start = 0; start < 2; ++start) {
            if (start != 0) rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
            rig.settle();
            rig.boot_script();
            rig.run({CardRig::read(SOC_TIME)});
        }
    }
    return bytes_of(file.path());
}

// A true one, with all pages.
RawBlock keyframe_behind(const orr_otrace_block& log, const HartState& state,
                         std::span<const std::uint8_t> sram) {
    RawBlock out;
    out.header = log;
    out.header.kind = ORR_OTRACE_KEYFRAME;
    out.header.first_step = log.last_step;
    out.header.first_ps = log.last_ps;
    Bytes other(sram.begin(), sram.end());
    for (std::uint8_t& byte : other)
        byte ^= 1;
    ChangedPages pages;
    pages.begin(other);
    pages.keyframe(state, 0, sram, out.payload);
    return out;
}

// The log at whose end the reset is, in blocks with a true keyframe behind it.
struct WithStop {
    Bytes file;
    std::vector<RawBlock> blocks;
    std::size_t log = 0;
    RawBlock keyframe;
};
WithStop with_stop() {
    WithStop out;
    out.file = with_reset();
    out.blocks = raw_blocks(out.file);
    for (std::size_t i = 0, starts = 0; i < out.blocks.size() && starts < 2; ++i) {
        starts += out.blocks[i].header.kind == ORR_OTRACE_START;
        if (out.blocks[i].header.kind == ORR_OTRACE_LOG &&
            out.blocks[i].header.last_step != out.blocks[i].header.first_step && starts == 1)
            out.log = i;
    }
    auto reader = TraceReader::parse(out.file, "x.otrace");
    EXPECT_TRUE(reader) << reader.error();
    const auto whole = Replayer::open(*std::move(reader), {}, Opening::kWhole);
    EXPECT_TRUE(whole) << whole.error();
    EXPECT_FALSE((*whole)->divergence());
    (*whole)->seek(out.blocks[out.log].header.last_step);
    EXPECT_FALSE((*whole)->running());
    out.keyframe = keyframe_behind(out.blocks[out.log].header, (*whole)->state(), (*whole)->sram());
    return out;
}

TEST_F(Hostile, AKeyframeOfAStoppedCoreIsRefused) {
    for (const bool later : {false, true}) {
        WithStop stop = with_stop();
        auto at = stop.blocks.begin() + static_cast<std::ptrdiff_t>(stop.log) + 1;
        if (later) {
            RawBlock idle;
            idle.header = point_behind(stop.blocks[stop.log].header, ORR_OTRACE_LOG);
            at = stop.blocks.insert(at, idle) + 1;
        }
        stop.blocks.insert(at, stop.keyframe);
        const std::string error = error_of(sealed(stop.file, stop.blocks), Opening::kIndex);
        EXPECT_THAT(error, HasSubstr("x.otrace: offset 0x"));
        EXPECT_THAT(error, HasSubstr("of a core that does not run"));
    }
}

TEST_F(Hostile, AKeyframeBeforeAnyStartIsRefused) {
    auto blocks = raw_blocks(good());
    const Bytes sram(ORR_SRAM_SIZE);
    RawBlock log;
    log.header = blocks.front().header;
    log.header.kind = ORR_OTRACE_LOG;
    log.header.last_step = log.header.first_step;
    log.header.last_ps = log.header.first_ps;
    log.header.state_hash = trace_hash({}, sram);
    const RawBlock keyframe = keyframe_behind(log.header, {}, sram);
    blocks.insert(blocks.begin(), {log, keyframe});
    EXPECT_THAT(error_of(sealed(good(), blocks), Opening::kIndex), HasSubstr("of a core that does not run"));
}

// Nobody could hold a hash against them.
TEST_F(Hostile, AStoppedCoreMakesNoSteps) {
    WithStop stop = with_stop();
    stop.blocks.resize(stop.log + 1);
    RawBlock steps;
    steps.header = point_behind(stop.blocks.back().header, ORR_OTRACE_LOG);
    steps.header.last_step += 5;
    stop.blocks.push_back(steps);
    const auto replayer = open(sealed(stop.file, stop.blocks), Opening::kWhole);
    ASSERT_TRUE(replayer) << replayer.error();
    ASSERT_TRUE((*replayer)->divergence());
    EXPECT_THAT((*replayer)->divergence()->reason, HasSubstr("does not run"));
}

TEST_F(Hostile, AllStartsHaveTheSameMemory) {
    const Bytes file = with_reset();
    auto blocks = raw_blocks(file);
    RawBlock& second = blocks[nth(blocks, ORR_OTRACE_START, 1)];
    second.payload.resize(second.payload.size() - 4096);
    orr_otrace_start head{};
    std::memcpy(&head, second.payload.data(), sizeof head);
    head.sram_bytes -= 4096;
    std::memcpy(second.payload.data(), &head, sizeof head);
    EXPECT_THAT(error_of(sealed(file, std::move(blocks)), Opening::kWhole),
                HasSubstr("than the first one's memory"));
}

}  // namespace
}  // namespace orrery::emu
