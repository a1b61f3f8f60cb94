// What engines count of each job: it is what the test knows of that job, whoever has cores beside it, and all
// jobs together are what the card's counters went up by, to the last picosecond, byte and instruction.
#include <algorithm>

#include "emulator/engines/save_area.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kLine = kMemoryLine;
constexpr std::uint64_t kArea = 32 << 20;

struct Job {
    Completion completion;
    JobCounts counts;
};

class Log final : public JobLog {
  public:
    bool wants_jobs() const override { return wanted; }
    void job_ended(const Completion& completion, const JobCounts& counts) override {
        jobs.push_back({completion, counts});
    }
    bool wanted = true;
    std::vector<Job> jobs;
};

// What of a job's is the card's of the same name.
struct Pair {
    orr_job_counter job;
    orr_counter card;
};
constexpr Pair kVectorPairs[] = {{ORR_JOB_BUSY_PS, ORR_CTR_VECTOR_BUSY_PS},
                                 {ORR_JOB_QUEUED_PS, ORR_CTR_VECTOR_QUEUED_PS},
                                 {ORR_JOB_GROUPS, ORR_CTR_VECTOR_GROUPS},
                                 {ORR_JOB_ITEMS, ORR_CTR_VECTOR_ITEMS},
                                 {ORR_JOB_INSTRUCTIONS, ORR_CTR_VECTOR_INSTRUCTIONS},
                                 {ORR_JOB_LATENCY_PS, ORR_CTR_VECTOR_LATENCY_PS},
                                 {ORR_JOB_BANDWIDTH_PS, ORR_CTR_VECTOR_BANDWIDTH_PS},
                                 {ORR_JOB_LINK_PS, ORR_CTR_VECTOR_LINK_PS},
                                 {ORR_JOB_LAUNCH_PS, ORR_CTR_VECTOR_LAUNCH_PS},
                                 {ORR_JOB_PAUSE_PS, ORR_CTR_VECTOR_PAUSE_PS},
                                 {ORR_JOB_BARRIERS, ORR_CTR_VECTOR_BARRIERS},
                                 {ORR_JOB_SIMD_INT, ORR_CTR_VECTOR_SIMD_INT},
                                 {ORR_JOB_SIMD_FP, ORR_CTR_VECTOR_SIMD_FP},
                                 {ORR_JOB_SIMD_MOVES, ORR_CTR_VECTOR_SIMD_MOVES},
                                 {ORR_JOB_SIMD_LOADS, ORR_CTR_VECTOR_SIMD_LOADS},
                                 {ORR_JOB_SIMD_STORES, ORR_CTR_VECTOR_SIMD_STORES},
                                 {ORR_JOB_SIMD_CONFIG, ORR_CTR_VECTOR_SIMD_CONFIG},
                                 {ORR_JOB_LANES_ACTIVE, ORR_CTR_VECTOR_LANES_ACTIVE},
                                 {ORR_JOB_LANES, ORR_CTR_VECTOR_LANES},
                                 {ORR_JOB_FLOPS_F16, ORR_CTR_VECTOR_FLOPS_F16},
                                 {ORR_JOB_FLOPS_F32, ORR_CTR_VECTOR_FLOPS_F32},
                                 {ORR_JOB_FLOPS_F64, ORR_CTR_VECTOR_FLOPS_F64},
                                 {ORR_JOB_TLB_LOOKUPS, ORR_CTR_VECTOR_TLB_LOOKUPS},
                                 {ORR_JOB_TLB_MISSES, ORR_CTR_VECTOR_TLB_MISSES},
                                 {ORR_JOB_TLB_WALKED, ORR_CTR_VECTOR_TLB_WALKED}};

class JobTruth : public testing::TestWithParam<unsigned> {
  protected:
    JobTruth() : rig(64 << 20, 64 << 20, 8 << 20, far_memory()) {
        rig.context.jobs = &log;
        rig.memory.count_in(rig.counters);
        load_image(rig);
        unit = std::make_unique<VectorUnit>(counted_config(GetParam()), rig.context);
    }
    // Arguments at a place of its own.
    orr_desc_kernel desc(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups,
                         std::uint16_t items = 1) {
        return kernel_desc(rig, kernel, kDataBytes - 4096 * ++described_, args, groups, items);
    }
    orr_desc_kernel triad(std::uint64_t at, std::uint64_t words, std::uint32_t groups) {
        return desc(kTriad, {kData + at, kData + at + (1 << 18), kData + at + (2 << 18), words}, groups);
    }
    orr_desc_kernel chase(std::uint64_t steps) {
        auto* words = reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + (4 << 20));
        link_ring(words, kData + (4 << 20), 8192);
        return desc(kChase, {kData + (4 << 20), steps}, 3);
    }
    void start(unsigned port, const orr_desc_kernel& desc) {
        ASSERT_TRUE(unit->port(port).start(Rig::words_of(desc), 10 + port));
    }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }
    std::uint64_t count(orr_counter counter) const { return rig.counters.get(counter); }
    std::uint64_t sum(orr_job_counter counter) const {
        std::uint64_t all = 0;
        for (const Job& job : log.jobs)
            all += job.counts[counter];
        return all;
    }
    // Of kernels alone.
    void expect_all() {
        for (const Pair& pair : kVectorPairs)
            EXPECT_EQ(sum(pair.job), count(pair.card)) << pair.card;
        EXPECT_EQ(sum(ORR_JOB_VRAM_READ) + sum(ORR_JOB_VRAM_WRITTEN), count(ORR_CTR_VRAM_VECTOR_BYTES));
        EXPECT_EQ(sum(ORR_JOB_HOST_READ), count(ORR_CTR_PCIE_READ_BYTES));
        EXPECT_EQ(sum(ORR_JOB_HOST_WRITTEN), count(ORR_CTR_PCIE_WRITE_BYTES));
    }
    const JobCounts& of_port(unsigned port) const {
        const auto found =
            std::ranges::find(log.jobs, 10 + port, [](const Job& job) { return job.completion.tag; });
        EXPECT_NE(found, log.jobs.end());
        return found->counts;
    }

    Log log;
    Rig rig;
    std::unique_ptr<VectorUnit> unit;

  private:
    std::uint64_t described_ = 0;
};

// Instructions and words as CounterTruth.OfATriad has them, while others have cores of the same unit.
TEST_P(JobTruth, EachOfSeveralJobsAtOnceHasItsOwn) {
    constexpr std::uint64_t kMost = 8 * 2048 / 64, kWords = 4096 + 100, kOther = 1000, kGroups = 7;
    constexpr auto strips = [](std::uint64_t words) { return (words + kMost - 1) / kMost; };
    start(0, triad(0, kWords, kGroups));
    start(1, triad(1 << 20, kOther, 2));
    start(2, chase(500));
    start(3, desc(kProduct, {kData, kData + (1 << 18), kData + (3 << 20), 100}, 2));
    rig.run();
    ASSERT_EQ(log.jobs.size(), 4u);
    expect_all();
    for (const auto& [port, groups, words] :
         {std::tuple(0u, kGroups, kWords), std::tuple(1u, std::uint64_t{2}, kOther)}) {
        const JobCounts& job = of_port(port);
        EXPECT_EQ(job[ORR_JOB_GROUPS], groups);
        EXPECT_EQ(job[ORR_JOB_INSTRUCTIONS], groups * (10 + 11 * strips(words) + 1));
        EXPECT_EQ(job[ORR_JOB_SIMD_LOADS], groups * strips(words) * 2);
        EXPECT_EQ(job[ORR_JOB_SIMD_STORES], groups * strips(words));
        EXPECT_EQ(job[ORR_JOB_LANES_ACTIVE], groups * words * 4);
        EXPECT_EQ(job[ORR_JOB_VRAM_WRITTEN], groups * 8 * words);
        EXPECT_EQ(job[ORR_JOB_VRAM_READ], groups * (2 * 8 * words + kLine) + kLine * job[ORR_JOB_TLB_WALKED]);
        EXPECT_EQ(job[ORR_JOB_FLOPS_F32], 0u);
        EXPECT_GE(job[ORR_JOB_CORES], 1u);
        EXPECT_LE(job[ORR_JOB_CORES], groups);
    }
    EXPECT_EQ(of_port(3)[ORR_JOB_FLOPS_F32], 2u * 4 * 100 * (4 * 2048 / 32) * 2);
    EXPECT_EQ(of_port(2)[ORR_JOB_SIMD_LOADS], 0u);
    // Loads that miss, and what walks read, one behind the other.
    EXPECT_EQ(of_port(2)[ORR_JOB_LATENCY_PS],
              (3 * (500 + 1) + of_port(2)[ORR_JOB_TLB_WALKED]) * far_memory().vram_latency_ps);
    EXPECT_EQ(of_port(2)[ORR_JOB_CORES], 3u);
}

// Also of those that are preempted, go on, are aborted or fault.
TEST_P(JobTruth, PartsOfAJobAreAllOfIt) {
    start(0, triad(0, 20'000, 12));
    start(1, chase(4'000));
    run_until(5'000'000);
    ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
    run_until(12'000'000);
    ASSERT_EQ(rig.done.size(), 1u);
    ASSERT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    ASSERT_TRUE(unit->port(2).resume(kArea, 12));
    start(0, desc(kIllegal, {}, 2));
    run_until(15'000'000);
    unit->port(1).abort();
    rig.run();
    ASSERT_EQ(log.jobs.size(), 4u);
    ASSERT_EQ(rig.done.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(log.jobs[i].completion.status, rig.done[i].status);
    expect_all();
    EXPECT_GT(log.jobs[0].counts[ORR_JOB_GROUPS], 0u);
    EXPECT_EQ(log.jobs[0].counts[ORR_JOB_GROUPS] + of_port(2)[ORR_JOB_GROUPS], 12u);
    EXPECT_GE(log.jobs[0].counts[ORR_JOB_VRAM_WRITTEN], kSavePage);
}

// Who asks while a job is under way is not told a part of it.
TEST_P(JobTruth, OnlyJobsThatBeginWhileTheyAreWantedAreCounted) {
    log.wanted = false;
    start(0, triad(0, 4096, 4));
    run_until(2'000'000);
    log.wanted = true;
    start(1, triad(1 << 20, 1000, 1));
    rig.run();
    ASSERT_EQ(log.jobs.size(), 1u);
    EXPECT_EQ(log.jobs[0].completion.tag, 11u);
    log.wanted = false;
    start(0, triad(0, 1000, 4));
    rig.run();
    EXPECT_EQ(log.jobs.size(), 1u);
}

// The other card answers as soon as it is asked.
TEST_P(JobTruth, BytesOfOtherCardsAndWaitsForThemAreTheirs) {
    constexpr std::uint64_t kPeer = 0x30'0000'0000, kWords = 1000, kGroups = 2;
    rig.map(kPeer, 1 << 20, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode);
    // Reads there, and writes there.
    start(0, desc(kTriad, {kData, kPeer, kData + (1 << 18), kWords}, kGroups));
    start(1, desc(kTriad, {kPeer + (1 << 19), kData + (2 << 18), kData + (3 << 18), kWords}, kGroups));
    start(2, chase(300));
    for (;;) {
        if (rig.events.run_next(kNever - 1)) continue;
        if (rig.peer.asked.empty()) break;
        rig.events.advance_to(rig.events.now() + 1'000'000);
        rig.peer.give();
    }
    ASSERT_EQ(log.jobs.size(), 3u);
    for (const Job& job : log.jobs)
        EXPECT_EQ(job.completion.status, ORR_DONE_OK);
    expect_all();
    // And what was asked for ahead, in vain behind the end.
    EXPECT_GE(of_port(0)[ORR_JOB_LINK_READ], kGroups * kWords * 8);
    EXPECT_LE(of_port(0)[ORR_JOB_LINK_READ], kGroups * (kWords * 8 + (16 << 10)));
    EXPECT_EQ(of_port(0)[ORR_JOB_LINK_WRITTEN], 0u);
    EXPECT_GE(of_port(0)[ORR_JOB_LINK_PS], 1'000'000u);
    EXPECT_EQ(of_port(1)[ORR_JOB_LINK_READ], 0u);
    EXPECT_EQ(of_port(1)[ORR_JOB_LINK_WRITTEN], kGroups * kWords * 8);
    EXPECT_EQ(of_port(1)[ORR_JOB_VRAM_WRITTEN], 0u);
    EXPECT_EQ(of_port(2)[ORR_JOB_LINK_READ] + of_port(2)[ORR_JOB_LINK_WRITTEN], 0u);
    EXPECT_EQ(of_port(2)[ORR_JOB_LINK_PS], 0u);
}

TEST_P(JobTruth, BytesOfTheHostAreTheirs) {
    constexpr std::uint64_t kWords = 1000, kGroups = 2, kBytes = kGroups * kWords * 8;
    start(0, desc(kTriad, {kData, kHostData, kData + (1 << 18), kWords}, kGroups));
    start(1, desc(kTriad, {kHostData + (1 << 19), kData + (2 << 18), kData + (3 << 18), kWords}, kGroups));
    rig.run();
    ASSERT_EQ(log.jobs.size(), 2u);
    for (const Job& job : log.jobs)
        EXPECT_EQ(job.completion.status, ORR_DONE_OK);
    expect_all();
    EXPECT_EQ(of_port(0)[ORR_JOB_HOST_READ], kBytes);
    EXPECT_EQ(of_port(0)[ORR_JOB_HOST_WRITTEN], 0u);
    EXPECT_EQ(of_port(0)[ORR_JOB_VRAM_WRITTEN], kBytes);
    EXPECT_EQ(of_port(1)[ORR_JOB_HOST_READ], 0u);
    EXPECT_EQ(of_port(1)[ORR_JOB_HOST_WRITTEN], kBytes);
    EXPECT_EQ(of_port(1)[ORR_JOB_VRAM_WRITTEN], 0u);
}

INSTANTIATE_TEST_SUITE_P(Threads, JobTruth, testing::Values(0u, 2u));

class CopyJobTruth : public testing::Test {
  protected:
    CopyJobTruth() : rig(64 << 20, 64 << 20, 8 << 20, far_memory()) {
        rig.context.jobs = &log;
        rig.memory.count_in(rig.counters);
        load_image(rig, 4 << 20);
    }
    std::uint64_t count(orr_counter counter) const { return rig.counters.get(counter); }
    void expect_all() const {
        const auto sum = [&](orr_job_counter counter) {
            std::uint64_t all = 0;
            for (const Job& job : log.jobs)
                all += job.counts[counter];
            return all;
        };
        EXPECT_EQ(sum(ORR_JOB_VRAM_READ) + sum(ORR_JOB_VRAM_WRITTEN), count(ORR_CTR_VRAM_COPY_BYTES));
        EXPECT_EQ(sum(ORR_JOB_HOST_READ), count(ORR_CTR_PCIE_READ_BYTES));
        EXPECT_EQ(sum(ORR_JOB_HOST_WRITTEN), count(ORR_CTR_PCIE_WRITE_BYTES));
        EXPECT_EQ(sum(ORR_JOB_MOVED), count(ORR_CTR_COPY_BYTES));
        EXPECT_EQ(sum(ORR_JOB_BUSY_PS), count(ORR_CTR_COPY_BUSY_PS));
        for (std::size_t cause = 0; cause < CopyLedger::kCauses; ++cause) {
            if (cause == CopyLedger::kMove) continue;
            EXPECT_EQ(sum(CopyLedger::job_counter_of(cause)), count(CopyLedger::counter_of(cause))) << cause;
        }
    }
    static CopyRates rates() {
        CopyRates rates;
        rates.tlb_entries = 16;
        return rates;
    }
    Log log;
    Rig rig;
};

TEST_F(CopyJobTruth, CopiesBesideEachOther) {
    CopyEngine one(0, rates(), rig.context), two(1, rates(), rig.context);
    constexpr std::uint64_t kBytes = 1 << 20;
    ASSERT_TRUE(one.start(Rig::words_of(Rig::copy(kHostData, kData, kBytes)), 1));
    ASSERT_TRUE(two.start(Rig::words_of(Rig::copy(kData + (2 << 20), kHostData + (2 << 20), 2 * kBytes)), 2));
    rig.run();
    ASSERT_TRUE(one.start(Rig::words_of(Rig::copy(kData, kData + (4 << 20), kBytes)), 3));
    rig.run();
    ASSERT_EQ(log.jobs.size(), 3u);
    expect_all();
    std::ranges::sort(log.jobs, {}, [](const Job& job) { return job.completion.tag; });
    const JobCounts &in = log.jobs[0].counts, &out = log.jobs[1].counts, &within = log.jobs[2].counts;
    EXPECT_EQ(in[ORR_JOB_MOVED], kBytes);
    EXPECT_EQ(in[ORR_JOB_HOST_READ], kBytes);
    EXPECT_EQ(in[ORR_JOB_VRAM_WRITTEN], kBytes);
    EXPECT_EQ(in[ORR_JOB_HOST_WRITTEN], 0u);
    EXPECT_EQ(in[ORR_JOB_VRAM_READ] % kLine, 0u) << "what walks read";
    EXPECT_GT(in[ORR_JOB_VRAM_READ], 0u);
    EXPECT_EQ(in[ORR_JOB_BUSY_PS], log.jobs[0].completion.used_ps);
    EXPECT_EQ(out[ORR_JOB_HOST_WRITTEN], 2 * kBytes);
    EXPECT_GE(out[ORR_JOB_VRAM_READ], 2 * kBytes);
    EXPECT_EQ(out[ORR_JOB_VRAM_WRITTEN], 0u);
    EXPECT_EQ(within[ORR_JOB_VRAM_WRITTEN], kBytes);
    EXPECT_GE(within[ORR_JOB_VRAM_READ], kBytes);
    EXPECT_EQ(within[ORR_JOB_HOST_READ] + within[ORR_JOB_HOST_WRITTEN], 0u);
    EXPECT_EQ(in[ORR_JOB_CORES] + in[ORR_JOB_INSTRUCTIONS], 0u);
}

TEST_F(CopyJobTruth, BytesOfOtherCardsAreTheirs) {
    constexpr std::uint64_t kPeer = 0x30'0000'0000, kBytes = 100'000;
    rig.map(kPeer, 1 << 20, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode);
    CopyEngine engine(0, rates(), rig.context);
    ASSERT_TRUE(engine.start(Rig::words_of(Rig::copy(kData, kPeer, kBytes)), 1));
    rig.run();
    ASSERT_TRUE(engine.start(Rig::words_of(Rig::copy(kPeer, kData, kBytes)), 2));
    for (;;) {
        if (rig.events.run_next(kNever - 1)) continue;
        if (rig.peer.asked.empty()) break;
        rig.peer.give();
    }
    ASSERT_EQ(log.jobs.size(), 2u);
    expect_all();
    // By port 3, in both directions.
    for (const Job& job : log.jobs)
        EXPECT_EQ(job.counts[ORR_JOB_LINK_PORTS], 1u << 3);
    EXPECT_EQ(log.jobs[0].counts[ORR_JOB_LINK_WRITTEN], kBytes);
    EXPECT_EQ(log.jobs[0].counts[ORR_JOB_LINK_READ] + log.jobs[0].counts[ORR_JOB_VRAM_WRITTEN], 0u);
    EXPECT_EQ(log.jobs[1].counts[ORR_JOB_LINK_READ], kBytes);
    EXPECT_EQ(log.jobs[1].counts[ORR_JOB_LINK_WRITTEN], 0u);
    EXPECT_EQ(log.jobs[1].counts[ORR_JOB_VRAM_WRITTEN], (kBytes + kLine - 1) / kLine * kLine);
}

// Nobody's port, or those of two cards; and not that of one that had no room.
TEST_F(CopyJobTruth, PortsOfAListAreThoseThatItTook) {
    constexpr std::uint64_t kPeer = 0x30'0000'0000, kSecond = 0x31'0000'0000, kEach = 5000, kListAt = 2 << 20;
    FakePeer second(rig.events, 8 << 20);
    rig.peers.attach(1, &second);
    rig.peers.set_route(7, ORR_ROUTE_VALID | 1);
    rig.map(kPeer, 1 << 20, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode);
    rig.map(kSecond, 1 << 20, ORR_TARGET_PEER, 0, Rig::kRights, 7);
    CopyEngine engine(0, rates(), rig.context);
    auto* const entries = reinterpret_cast<orr_copy_entry*>(rig.host_data + kListAt);
    orr_desc_copies desc{};
    desc.op = ORR_DESC_COPIES;
    desc.asid = 1;
    desc.list = kHostData + kListAt;
    desc.bytes = 2 * kEach;
    desc.entries = 2;
    for (const std::uint64_t other : {kPeer, kSecond, kData + (4 << 20)}) {
        entries[0] = {kData, other, kEach, 0};
        entries[1] = {kData, kPeer, kEach, 0};
        if (other == kData + (4 << 20)) entries[1].dst = other + kEach;
        rig.peer.refusals = 1;
        ASSERT_TRUE(engine.start(Rig::words_of(desc), 1));
        rig.run();
        rig.peer.let();
        rig.run();
    }
    ASSERT_EQ(log.jobs.size(), 3u);
    expect_all();
    EXPECT_EQ(log.jobs[0].counts[ORR_JOB_LINK_PORTS], 1u << 3);
    EXPECT_EQ(log.jobs[1].counts[ORR_JOB_LINK_PORTS], 1u << 3 | 1u << 1);
    EXPECT_EQ(log.jobs[2].counts[ORR_JOB_LINK_PORTS], 0u);
}

TEST_F(CopyJobTruth, WhatAListTakesIsItsCopysToo) {
    CopyEngine engine(0, rates(), rig.context);
    constexpr std::uint32_t kEntries = 100;
    constexpr std::uint64_t kEach = 4096, kListAt = 2 << 20;
    for (std::uint8_t* const list : {rig.vram.data() + kDataOffset, rig.host_data}) {
        auto* const entries = reinterpret_cast<orr_copy_entry*>(list + kListAt);
        for (std::uint64_t i = 0; i < kEntries; ++i)
            entries[i] = {kHostData + i * kEach, kData + i * kEach, kEach, 0};
    }
    orr_desc_copies desc{};
    desc.op = ORR_DESC_COPIES;
    desc.asid = 1;
    desc.bytes = kEntries * kEach;
    desc.entries = kEntries;
    for (const std::uint64_t list : {kData, kHostData}) {
        desc.list = list + kListAt;
        ASSERT_TRUE(engine.start(Rig::words_of(desc), 1));
        rig.run();
    }
    ASSERT_EQ(log.jobs.size(), 2u);
    expect_all();
    const JobCounts &there = log.jobs[0].counts, &in_host = log.jobs[1].counts;
    EXPECT_EQ(there[ORR_JOB_HOST_READ], kEntries * kEach);
    EXPECT_GE(there[ORR_JOB_VRAM_READ], kEntries * sizeof(orr_copy_entry)) << "the list, and what walks read";
    EXPECT_EQ(in_host[ORR_JOB_HOST_READ], kEntries * (kEach + sizeof(orr_copy_entry)));
    for (const JobCounts& each : {there, in_host}) {
        EXPECT_EQ(each[ORR_JOB_MOVED], kEntries * kEach);
        EXPECT_EQ(each[ORR_JOB_VRAM_WRITTEN], kEntries * kEach);
    }
}

TEST_F(CopyJobTruth, AReductionReadsBothSidesAndAFillNone) {
    CopyEngine engine(0, rates(), rig.context);
    constexpr std::uint64_t kBytes = 1 << 20;
    orr_desc_reduce reduce{};
    reduce.op = ORR_DESC_REDUCE;
    reduce.asid = 1;
    reduce.src = kHostData;
    reduce.dst = kData;
    reduce.row_bytes = kBytes;
    reduce.rows = 1;
    reduce.type = ORR_TYPE_I8;
    reduce.function = ORR_REDUCE_ADD;
    ASSERT_TRUE(engine.start(Rig::words_of(reduce), 1));
    rig.run();
    std::swap(reduce.src, reduce.dst);
    ASSERT_TRUE(engine.start(Rig::words_of(reduce), 2));
    rig.run();
    orr_desc_copy fill = Rig::copy(0, kData, kBytes);
    fill.op = ORR_DESC_FILL;
    fill.pattern_bytes = 1;
    ASSERT_TRUE(engine.start(Rig::words_of(fill), 3));
    rig.run();
    ASSERT_EQ(log.jobs.size(), 3u);
    for (const Job& job : log.jobs)
        EXPECT_EQ(job.completion.status, ORR_DONE_OK);
    expect_all();
    const JobCounts &here = log.jobs[0].counts, &there = log.jobs[1].counts, &filled = log.jobs[2].counts;
    EXPECT_EQ(here[ORR_JOB_HOST_READ], kBytes);
    EXPECT_GE(here[ORR_JOB_VRAM_READ], kBytes);
    EXPECT_EQ(here[ORR_JOB_VRAM_WRITTEN], kBytes);
    EXPECT_EQ(there[ORR_JOB_HOST_READ], kBytes);
    EXPECT_EQ(there[ORR_JOB_HOST_WRITTEN], kBytes);
    EXPECT_EQ(there[ORR_JOB_VRAM_WRITTEN], 0u);
    EXPECT_EQ(filled[ORR_JOB_VRAM_WRITTEN], kBytes);
    EXPECT_LT(filled[ORR_JOB_VRAM_READ], kBytes) << "what walks read";
    EXPECT_EQ(filled[ORR_JOB_HOST_READ] + filled[ORR_JOB_HOST_WRITTEN], 0u);
}

TEST_F(CopyJobTruth, PartsOfACopyAreAllOfIt) {
    CopyEngine engine(0, rates(), rig.context);
    constexpr std::uint64_t kBytes = 3 << 20;
    ASSERT_TRUE(engine.start(Rig::words_of(Rig::copy(kHostData, kData, kBytes)), 1));
    while (rig.events.run_next(20'000'000)) {
    }
    ASSERT_TRUE(engine.preempt(Preempt::kNow, kArea));
    rig.run();
    ASSERT_TRUE(engine.resume(kArea, 2));
    rig.run();
    ASSERT_EQ(log.jobs.size(), 2u);
    expect_all();
    EXPECT_GT(log.jobs[0].counts[ORR_JOB_MOVED], 0u);
    EXPECT_EQ(log.jobs[0].counts[ORR_JOB_MOVED] + log.jobs[1].counts[ORR_JOB_MOVED], kBytes);
}

}  // namespace
}  // namespace orrery::emu::test
