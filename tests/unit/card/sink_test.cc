// The trace sink: what the firmware writes to its trace port is in host memory, and nothing else changes.
#include <gtest/gtest.h>

#include <orrery/hw/trace_sink.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kSink = kRamBase + (8 << 20), kRing = kSink + sizeof(orr_trace_sink);
constexpr std::uint32_t kBytes = 4096;

// A record of this type with so many words.
std::vector<script_op> record(std::uint64_t type, std::uint64_t words, std::uint64_t first = 100) {
    std::vector<script_op> ops = {CardRig::write(SOC_TRACE, type | words << 8 | 0xabcdull << 16)};
    for (std::uint64_t n = 0; n < words; ++n)
        ops.push_back(CardRig::write(SOC_TRACE + 8 * (n % 2), first + n));
    return ops;
}

class Sink : public testing::Test {
  protected:
    void SetUp() override { rig_.boot_script(); }
    std::uint32_t set(std::uint64_t base, std::uint32_t bytes, std::uint64_t types = ~0ull) {
        const std::uint32_t done = rig_.read32(ORR_R_SINK_DONE);
        rig_.write64(ORR_R_SINK_BASE, base);
        rig_.write64(ORR_R_SINK_TYPES, types);
        rig_.write32(ORR_R_SINK_BYTES, bytes);
        rig_.settle();
        EXPECT_EQ(rig_.read32(ORR_R_SINK_DONE), done + 1);
        return rig_.read32(ORR_R_SINK_FAULT);
    }
    std::uint64_t head() { return rig_.word(kSink); }
    std::uint64_t word(std::uint64_t n) { return rig_.word(kRing + 8 * (n % (kBytes / 8))); }
    CardRig rig_;
};

TEST_F(Sink, HasEachRecordWithItsTime) {
    EXPECT_EQ(rig_.read32(ORR_R_SINK), 64u << 20);
    ASSERT_EQ(set(kSink, kBytes), ORR_FAULT_NONE);
    auto ops = record(9, 4);
    ops.insert(ops.begin(), CardRig::read(SOC_TIME));
    ops.push_back(CardRig::read(SOC_TIME));
    const auto ran = rig_.run(ops);
    rig_.run(record(10, 0));
    ASSERT_EQ(head(), 6u + 2u);
    EXPECT_GT(word(0), ran.front().result);
    EXPECT_LT(word(0), ran.back().result);
    EXPECT_EQ(word(1), 9u | 4u << 8 | 0xabcdull << 16);
    for (std::uint64_t n = 0; n < 4; ++n)
        EXPECT_EQ(word(2 + n), 100 + n);
    EXPECT_GT(word(6), word(0));
    EXPECT_EQ(word(7), 10u | 0xabcdull << 16);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(Sink, HasNoOthersThanThoseThatAreAskedFor) {
    ASSERT_EQ(set(kSink, kBytes, 1ull << 9 | 1ull << 63), ORR_FAULT_NONE);
    rig_.run(record(8, 2));
    rig_.run(record(9, 1));
    rig_.run(record(63, 1));
    rig_.run(record(64, 1));
    rig_.run(record(0x80 | 9, 1));
    ASSERT_EQ(head(), 6u);
    EXPECT_EQ(word(1) & 0xff, 9u);
    EXPECT_EQ(word(4) & 0xff, 63u);
}

TEST_F(Sink, SaysOnlyOfWholeRecordsThatTheyAreThere) {
    ASSERT_EQ(set(kSink, kBytes), ORR_FAULT_NONE);
    auto ops = record(9, 4);
    ops.pop_back();
    rig_.run(ops);
    EXPECT_EQ(head(), 0u);
    // The core sleeps between scripts: what comes next begins with a header.
    rig_.run(record(8, 1));
    EXPECT_EQ(head(), 3u);
    EXPECT_EQ(word(1) & 0xff, 8u);
}

// A core that is told nothing of the switch is in the midst of a record, of words that look like headers.
TEST_F(Sink, BeginsWithARecordAlsoIfItIsSetWithinOne) {
    std::vector<script_op> ops = {CardRig::write(SOC_TRACE, 8 | 200u << 8)};
    for (int n = 0; n < 200; ++n)
        ops.push_back(CardRig::write(SOC_TRACE, 9 | 3u << 8));
    rig_.start(ops);
    rig_.write64(ORR_R_SINK_BASE, kSink);
    rig_.write64(ORR_R_SINK_TYPES, ~0ull);
    rig_.write32(ORR_R_SINK_BYTES, kBytes);
    rig_.settle();
    const std::uint64_t before = head();
    if (before != 0) EXPECT_EQ(word(1) & 0xff, 8u) << "it was set before the record";
    rig_.run(record(9, 3));
    ASSERT_EQ(head(), before + 5);
    EXPECT_EQ(word(before + 1) & 0xff, 9u);
    EXPECT_EQ(word(before + 2), 100u);
}

TEST_F(Sink, WritesOverWhatIsOld) {
    ASSERT_EQ(set(kSink, kBytes), ORR_FAULT_NONE);
    constexpr std::uint64_t kRecords = 200,
                            kSize = 5;  // more than there is room for, and they do not fit evenly
    for (std::uint64_t n = 0; n < kRecords; ++n)
        rig_.run(record(9, kSize - 2, 1'000 * n));
    ASSERT_EQ(head(), kRecords * kSize);
    for (std::uint64_t n = kRecords - 100; n < kRecords; ++n)
        EXPECT_EQ(word(n * kSize + 2), 1'000 * n);
    EXPECT_EQ(rig_.word(kRing + kBytes), 0u) << "not behind the ring";
}

TEST_F(Sink, IsOffAtFirstAndWhenItIsSwitchedOff) {
    rig_.run(record(9, 1));
    EXPECT_EQ(head(), 0u);
    ASSERT_EQ(set(kSink, kBytes), ORR_FAULT_NONE);
    ASSERT_EQ(set(kSink, 0), ORR_FAULT_NONE);
    rig_.run(record(9, 1));
    EXPECT_EQ(head(), 0u);
    ASSERT_EQ(set(kSink, kBytes), ORR_FAULT_NONE);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_SINK_DONE), 0u);
    rig_.boot_script();
    rig_.run(record(9, 1));
    EXPECT_EQ(head(), 0u);
}

TEST_F(Sink, RefusesWhatItCannotBe) {
    EXPECT_EQ(set(kSink + 8, kBytes), ORR_FAULT_MISALIGNED);
    for (const std::uint32_t bytes : {1u, 2048u, 4097u, 12288u, 128u << 20, 0xffffffffu})
        EXPECT_EQ(set(kSink, bytes), ORR_FAULT_PAGE_RANGE) << bytes;
    rig_.run(record(9, 1));
    EXPECT_EQ(head(), 0u);
}

TEST_F(Sink, LosesWhatHasNoMemory) {
    ASSERT_EQ(set(kRamBase + kRamBytes - 64, kBytes), ORR_FAULT_NONE);  // the ring is behind the end
    rig_.run(record(9, 1));
    ASSERT_EQ(set(~0ull << 6, kBytes), ORR_FAULT_NONE);  // and wraps
    rig_.run(record(9, 1));
    EXPECT_EQ(rig_.word(kRamBase + kRamBytes - 64), 0u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

constexpr std::uint32_t kAsid = 3;
constexpr std::uint64_t kFrom = 0x2000'0000, kTo = kFrom + ORR_PAGE_SIZE;

orr_desc_copy copy(std::uint64_t bytes) {
    orr_desc_copy desc{};
    desc.op = ORR_DESC_COPY;
    desc.asid = kAsid;
    desc.src = kFrom;
    desc.dst = kTo;
    desc.row_bytes = bytes;
    desc.rows = 1;
    return desc;
}
void map_pages(CardRig& rig) {
    rig.map_page(kAsid, kFrom, 0x10000, kRw);
    rig.map_page(kAsid, kTo, 0x20000, kRw);
    rig.run(rig.set_root(kAsid));
}
// Takes its completion: when it began and ended is in the last two.
std::vector<script_op> job(std::uint64_t bytes) {
    auto ops = CardRig::start_job(0, copy(bytes), 7);
    ops.push_back({OP_WAIT, 0, 1u << SOC_LINE_DONE, 0});
    ops.push_back(CardRig::read(SOC_DONE_POP));
    ops.push_back(CardRig::read(SOC_DONE_START_PS));
    ops.push_back(CardRig::read(SOC_DONE_END_PS));
    return ops;
}

TEST_F(Sink, SaysWhatEachJobDidWhenItIsAsked) {
    map_pages(rig_);
    ASSERT_EQ(set(kSink, kBytes, 1ull << 9), ORR_FAULT_NONE);
    rig_.run(job(1024));
    EXPECT_EQ(head(), 0u) << "nobody has asked";
    rig_.write32(ORR_R_SINK_ASK, 0xffff'ffff);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_SINK_ASK), ORR_SINK_ASK_JOBS) << "what it can do";
    // In the midst of a record of the firmware's, which is whole all the same.
    auto ops = record(9, 2);
    const auto rest = std::vector(ops.begin() + 2, ops.end());
    ops.resize(2);
    std::ranges::copy(job(1000), std::back_inserter(ops));
    std::ranges::copy(rest, std::back_inserter(ops));
    const auto ran = rig_.run(ops);
    const std::uint64_t end = ran[ran.size() - 2].result, start = ran[ran.size() - 3].result;
    EXPECT_EQ(word(0), end);
    EXPECT_EQ(word(1) & 0xff, ORR_SINK_JOB);
    EXPECT_EQ(word(1) >> 16, 0u | std::uint64_t{ORR_DONE_OK} << 16) << "port and status";
    EXPECT_EQ(word(2), start);
    EXPECT_EQ(word(3), end);
    const std::uint64_t there = word(4);
    std::vector<std::uint64_t> did(ORR_JOB_COUNTERS);
    std::uint64_t next = 5;
    for (std::size_t n = 0; n < did.size(); ++n)
        if ((there >> n & 1) != 0) did[n] = word(next++);
    EXPECT_EQ(there >> ORR_JOB_COUNTERS, 0u);
    ASSERT_EQ(ORR_SINK_WORDS(word(1)), next);
    EXPECT_EQ(did[ORR_JOB_MOVED], 1000u);
    EXPECT_EQ(did[ORR_JOB_VRAM_WRITTEN], 1024u) << "whole lines";
    EXPECT_EQ(did[ORR_JOB_BUSY_PS], end - start);
    EXPECT_EQ(word(next + 1) & 0xff, 9u);
    EXPECT_EQ(word(next + 2), 100u);
    EXPECT_EQ(word(next + 3), 101u);
    ASSERT_EQ(head(), next + 4);
    // The firmware cannot speak for the hardware.
    rig_.run(record(ORR_SINK_JOB, 3));
    EXPECT_EQ(head(), next + 4);
    rig_.write32(ORR_R_SINK_ASK, 0);
    rig_.settle();
    rig_.run(job(64));
    EXPECT_EQ(head(), next + 4);
    rig_.write32(ORR_R_SINK_ASK, ORR_SINK_ASK_JOBS);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_SINK_ASK), 0u);
}

TEST_F(Sink, HasSamplesOfCountersAtAPeriodOfModelTime) {
    map_pages(rig_);
    ASSERT_EQ(set(kSink, 1 << 16, 0), ORR_FAULT_NONE);
    const auto at = [&](std::uint64_t n) { return rig_.word(kRing + 8 * n); };
    rig_.write64(ORR_R_SINK_SET, 1ull << ORR_CTR_COPY_BYTES | 1ull << ORR_CTR_TIME_PS);
    rig_.write64(ORR_R_SINK_SET_HIGH, 1ull << (ORR_CTR_VRAM_COPY_BYTES - 64));
    rig_.write32(ORR_R_SINK_PERIOD, 7);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_SINK_PERIOD), ORR_SINK_PERIOD_MIN);
    const std::uint64_t before = rig_.counter(ORR_CTR_COPY_BYTES);
    for (int n = 0; n < 40; ++n)
        rig_.run(job(ORR_PAGE_SIZE));
    rig_.write32(ORR_R_SINK_PERIOD, 0);
    rig_.settle();
    const std::uint64_t end = head(), now = rig_.read64(ORR_R_MODEL_TIME);
    constexpr std::uint64_t kWords = 2 + 2 + 3, kPeriod = 1'000'000;
    ASSERT_EQ(end % kWords, 0u);
    ASSERT_GT(end / kWords, 5u);
    EXPECT_LE(end / kWords, now / kPeriod);
    std::uint64_t last = 0, last_bytes = before;
    for (std::uint64_t n = 0; n < end / kWords; ++n) {
        const std::uint64_t word = n * kWords, time = at(word), bytes = at(word + 4);
        EXPECT_EQ(at(word + 1), ORR_SINK_SAMPLE | (kWords - 2) << 8 | (n + 1) << 32);
        EXPECT_EQ(at(word + 2), 1ull << ORR_CTR_COPY_BYTES | 1ull << ORR_CTR_TIME_PS);
        EXPECT_EQ(at(word + 3), 1ull << (ORR_CTR_VRAM_COPY_BYTES - 64));
        EXPECT_EQ(at(word + 5), time) << "as of one moment";
        EXPECT_GT(time / kPeriod, last / kPeriod) << "one for a multiple of the period";
        EXPECT_GE(bytes, last_bytes);
        EXPECT_LE(bytes - last_bytes, 40 * ORR_PAGE_SIZE);
        EXPECT_GE(at(word + 6), 2 * (bytes - before));
        last = time;
        last_bytes = bytes;
    }
    EXPECT_GT(last_bytes, before);
    EXPECT_LE(last_bytes, rig_.counter(ORR_CTR_COPY_BYTES));
    rig_.run(job(ORR_PAGE_SIZE));
    EXPECT_EQ(head(), end);
}

constexpr std::uint64_t kCode = 0x3000'0000, kCell = kCode + ORR_PAGE_SIZE;
constexpr std::uint32_t kVectorPort = 2;

// 32 groups: t1 = 3,000; do --t1; while (t1 != 0); amoadd.d zero, sp, (a0); ret
orr_desc_kernel kernel(CardRig& rig) {
    const std::uint32_t program[] = {0x00001337, 0xbb830313, 0xfff30313, 0xfe031ee3, 0x0025302f, 0x00008067};
    std::memcpy(rig.card().vram().at(0x30000, sizeof program), program, sizeof program);
    orr_desc_kernel desc{};
    desc.op = ORR_DESC_KERNEL;
    desc.asid = kAsid;
    desc.entry = kCode;
    desc.args = kCell;
    desc.grid_x = 32;
    desc.grid_y = desc.grid_z = desc.block_x = desc.block_y = desc.block_z = 1;
    return desc;
}
void map_kernel(CardRig& rig) {
    rig.map_page(kAsid, kCode, 0x30000, ORR_PTE_READ | ORR_PTE_EXEC);
    rig.map_page(kAsid, kCell, 0x40000, kRw);
    rig.run(rig.set_root(kAsid));
}
std::vector<script_op> kernel_job(CardRig& rig) {
    auto ops = CardRig::start_job(kVectorPort, kernel(rig), 9);
    ops.push_back({OP_WAIT, 0, 1u << SOC_LINE_DONE, 0});
    ops.push_back(CardRig::read(SOC_DONE_POP));
    ops.push_back(CardRig::read(SOC_DONE_START_PS));
    ops.push_back(CardRig::read(SOC_DONE_END_PS));
    return ops;
}

TEST_F(Sink, SaysWhereCoresAreAtAPeriodOfModelTime) {
    map_kernel(rig_);
    rig_.write32(ORR_R_SINK_PC_PERIOD, 7);
    EXPECT_EQ(rig_.read32(ORR_R_SINK_PC_PERIOD), ORR_SINK_PC_PERIOD_MIN);
    rig_.run(kernel_job(rig_));
    ASSERT_EQ(set(kSink, 1 << 20, 0), ORR_FAULT_NONE);
    EXPECT_EQ(head(), 0u) << "there was no sink";
    const std::uint64_t busy = rig_.counter(ORR_CTR_VECTOR_BUSY_PS);
    const auto ran = rig_.run(kernel_job(rig_));
    const std::uint64_t end = ran[ran.size() - 1].result, start = ran[ran.size() - 2].result;
    constexpr std::uint64_t kPeriod = ORR_SINK_PC_PERIOD_MIN * 1000, kWords = 6;
    const auto at = [&](std::uint64_t n) { return rig_.word(kRing + 8 * n); };
    const std::uint64_t words = head();
    ASSERT_EQ(words % kWords, 0u);
    std::uint64_t all = 0, in_loop = 0;
    std::vector<bool> groups(32);
    for (std::uint64_t n = 0; n < words; n += kWords) {
        const std::uint64_t count = at(n + 5) >> 32, core = at(n + 1) >> 32 & 0xffff, cause = at(n + 1) >> 48;
        EXPECT_EQ(at(n + 1) & 0xffff'ffff, ORR_SINK_PC | (kWords - 2) << 8 | kVectorPort << 16);
        EXPECT_EQ(at(n) % kPeriod, 0u);
        EXPECT_GE(at(n), start);
        EXPECT_LT(at(n) + (count - 1) * kPeriod, end);
        EXPECT_LT(core, rig_.read32(ORR_R_VECTOR_CORES));
        EXPECT_LT(cause, ORR_PC_CAUSES);
        EXPECT_EQ(at(n + 2), start);
        EXPECT_LE(at(n + 3) - kCode, 20u);
        ASSERT_LT(at(n + 4), groups.size());
        groups[at(n + 4)] = true;
        EXPECT_EQ(at(n + 5) & 0xffff'ffff, kAsid);
        all += count;
        if (at(n + 3) - kCode == 8 || at(n + 3) - kCode == 12) in_loop += count;
    }
    EXPECT_EQ(std::ranges::count(groups, true), 32);
    EXPECT_NEAR(static_cast<double>(all * kPeriod),
                static_cast<double>(rig_.counter(ORR_CTR_VECTOR_BUSY_PS) - busy), 32.0 * kPeriod);
    EXPECT_GT(in_loop, all * 9 / 10);
    rig_.write32(ORR_R_SINK_PC_PERIOD, 0);
    rig_.settle();
    rig_.run(kernel_job(rig_));
    EXPECT_EQ(head(), words);
    rig_.write32(ORR_R_SINK_PC_PERIOD, 1000);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_SINK_PC_PERIOD), 0u);
}

TEST_F(Sink, SaysEachInstructionOfACore) {
    map_kernel(rig_);
    ASSERT_EQ(set(kSink, 2 << 20, 0), ORR_FAULT_NONE);
    rig_.write64(ORR_R_SINK_STEP_FROM, 0);
    rig_.write64(ORR_R_SINK_STEP_UNTIL, ~0ull);
    rig_.write32(ORR_R_SINK_STEP_CORE, 1 + 1);
    EXPECT_EQ(rig_.read64(ORR_R_SINK_STEP_UNTIL), ~0ull);
    rig_.run(kernel_job(rig_));
    const std::uint64_t words = head();
    ASSERT_EQ(words % 6, 0u);
    ASSERT_GT(words / 6, 6'000u);
    const auto at = [&](std::uint64_t n) { return rig_.word(kRing + 8 * n); };
    std::uint64_t branches = 0;
    for (std::uint64_t n = 0; n < words; n += 6) {
        ASSERT_EQ(at(n + 1) & 0xff, ORR_SINK_STEP);
        ASSERT_EQ(at(n + 1) >> 32 & 0xffff, 1u);
        branches += at(n + 3) == kCode + 12 ? 1 : 0;
    }
    EXPECT_EQ(branches % 3000, 0u);
    rig_.write32(ORR_R_SINK_STEP_CORE, 0);
    rig_.settle();
    rig_.run(kernel_job(rig_));
    EXPECT_EQ(head(), words);
    // No such core.
    rig_.write32(ORR_R_SINK_STEP_CORE, 0xffff'ffff);
    rig_.settle();
    rig_.run(kernel_job(rig_));
    EXPECT_EQ(head(), words);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

// The same work on a card whose sink is on and on one whose is off: profiling.record_ps of the SKU.
TEST(SinkTime, IsTheSameWithAndWithout) {
    const auto times = [](bool on) {
        CardRig rig;
        EXPECT_EQ(rig.card().sku().profiling_record_ps, 0u);
        rig.boot_script();
        map_pages(rig);
        map_kernel(rig);
        rig.write64(ORR_R_SINK_BASE, kSink);
        rig.write64(ORR_R_SINK_TYPES, ~0ull);
        rig.write32(ORR_R_SINK_ASK, on ? ORR_SINK_ASK_JOBS : 0);
        rig.write64(ORR_R_SINK_SET, ~0ull);
        rig.write32(ORR_R_SINK_PERIOD, on ? ORR_SINK_PERIOD_MIN : 0);
        rig.write32(ORR_R_SINK_PC_PERIOD, on ? ORR_SINK_PC_PERIOD_MIN : 0);
        rig.write32(ORR_R_SINK_BYTES, on ? kBytes : 0);
        rig.settle();
        std::vector<std::uint64_t> all;
        for (int round = 0; round < 20; ++round) {
            std::vector<script_op> ops = {CardRig::read(SOC_TIME)};
            for (const auto& op : record(9, 4))
                ops.push_back(op);
            ops.push_back(CardRig::read(SOC_TIME));
            for (const auto& op : record(8, 2))
                ops.push_back(op);
            for (const auto& op : job(512))
                ops.push_back(op);
            for (const auto& op : kernel_job(rig))
                ops.push_back(op);
            ops.push_back(CardRig::read(SOC_TIME));
            for (const auto& op : rig.run(ops))
                all.push_back(op.result);
        }
        for (const orr_counter each :
             {ORR_CTR_CORE_STALL_PS, ORR_CTR_VECTOR_BUSY_PS, ORR_CTR_VECTOR_INSTRUCTIONS,
              ORR_CTR_VECTOR_BANDWIDTH_PS, ORR_CTR_VECTOR_LATENCY_PS})
            all.push_back(rig.counter(each));
        all.push_back(rig.read64(ORR_R_MODEL_TIME));
        EXPECT_EQ(rig.word(kSink) != 0, on);
        return all;
    };
    EXPECT_EQ(times(true), times(false));
}

}  // namespace
}  // namespace orrery::emu
