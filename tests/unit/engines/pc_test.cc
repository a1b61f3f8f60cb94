// Where cores are told to be at each multiple of a period. With a period of one cycle that is the whole
// truth: each cycle of a core is at one instruction and one cause, and they are those that counters have.
// With and without, all else is the same.
#include <algorithm>
#include <array>
#include <map>

#include "emulator/engines/save_area.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kCycle = 1000;
constexpr std::uint64_t kArea = 32 << 20;

class Log final : public JobLog {
  public:
    bool wants_jobs() const override { return false; }
    void job_ended(const Completion&, const JobCounts&) override {}
    void was_at(const PcSample& sample) override { samples.push_back(sample); }
    std::vector<PcSample> samples;
};

struct Card {
    explicit Card(unsigned threads = 0) : rig(64 << 20, 64 << 20, 8 << 20, far_memory()) {
        rig.context.jobs = &log;
        rig.memory.count_in(rig.counters);
        load_image(rig);
        unit = std::make_unique<VectorUnit>(counted_config(threads), rig.context);
    }
    std::uint64_t entry(Kernel kernel) const { return entry_of(rig, kernel); }
    // Of instruction `n` of a kernel, which may be of two bytes.
    std::uint64_t pc(Kernel kernel, unsigned n) const {
        std::uint64_t at = entry(kernel);
        for (; n > 0; --n)
            at += (rig.vram.data()[at - kImageBase] & 3) == 3 ? 4 : 2;
        return at;
    }
    orr_desc_kernel desc(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups,
                         std::uint16_t items = 1) {
        return kernel_desc(rig, kernel, kDataBytes - 4096 * ++described, args, groups, items);
    }
    orr_desc_kernel triad(std::uint64_t words, std::uint32_t groups) {
        return desc(kTriad, {kData, kData + (1 << 18), kData + (2 << 18), words}, groups);
    }
    orr_desc_kernel product(std::uint64_t depth, std::uint32_t groups) {
        return desc(kProduct, {kData, kData + (1 << 20), kData + (2 << 20), depth}, groups);
    }
    orr_desc_kernel chase(std::uint64_t steps, std::uint32_t groups) {
        auto* words = reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + (4 << 20));
        link_ring(words, kData + (4 << 20), 8192);
        return desc(kChase, {kData + (4 << 20), steps}, groups);
    }
    orr_desc_kernel tree(std::uint32_t groups, std::uint16_t items) {
        orr_desc_kernel d = desc(kTree, {5, kData + (3 << 20)}, groups, items);
        d.local_bytes = 4096;
        d.item_stacks = kData + (6 << 20);
        d.item_stack_pages = 1;
        return d;
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

    std::uint64_t of(auto&& wanted) const {
        std::uint64_t all = 0;
        for (const PcSample& each : log.samples)
            all += wanted(each) ? each.count : 0;
        return all;
    }
    std::uint64_t all() const {
        return of([](const PcSample&) { return true; });
    }
    std::uint64_t of_cause(std::uint32_t cause) const {
        return of([&](const PcSample& each) { return each.cause == cause; });
    }
    std::uint64_t at(std::uint64_t pc, std::uint32_t cause) const {
        return of([&](const PcSample& each) { return each.pc == pc && each.cause == cause; });
    }

    Log log;
    Rig rig;
    std::unique_ptr<VectorUnit> unit;
    std::uint64_t described = 0;
};

// The instruction that pauses has its waits, and each that it executes.
TEST(Pc, OfPausesAreTheirs) {
    constexpr std::uint64_t kTimes = 50, kGroups = 3;
    Card card;
    card.unit->sample(kCycle);
    card.start(0, card.desc(kPauses, {kTimes}, kGroups));
    card.rig.run();
    EXPECT_EQ(card.all() * kCycle, card.count(ORR_CTR_VECTOR_BUSY_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_PAUSE) * kCycle, card.count(ORR_CTR_VECTOR_PAUSE_PS));
    EXPECT_EQ(card.at(card.pc(kPauses, 1), ORR_PC_PAUSE), kGroups * kTimes * (ORR_PAUSE_CYCLES - 1));
    EXPECT_EQ(card.at(card.pc(kPauses, 1), ORR_PC_ISSUE), kGroups * kTimes);
    EXPECT_EQ(card.of_cause(ORR_PC_ISSUE), card.count(ORR_CTR_VECTOR_INSTRUCTIONS));
}

// A load that misses, and two instructions around it.
TEST(Pc, OfAChaseIsTheLoadThatWaits) {
    constexpr std::uint64_t kSteps = 700, kGroups = 3;
    Card card;
    card.unit->sample(kCycle);
    card.start(0, card.chase(kSteps, kGroups));
    card.rig.run();
    EXPECT_EQ(card.all() * kCycle, card.count(ORR_CTR_VECTOR_BUSY_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_LATENCY) * kCycle, card.count(ORR_CTR_VECTOR_LATENCY_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_LAUNCH) * kCycle, card.count(ORR_CTR_VECTOR_LAUNCH_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_BANDWIDTH) * kCycle, card.count(ORR_CTR_VECTOR_BANDWIDTH_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_ISSUE), card.count(ORR_CTR_VECTOR_INSTRUCTIONS));
    // Two loads of arguments, then the loop and the end.
    for (const unsigned n : {2u, 3u, 4u})
        EXPECT_EQ(card.at(card.pc(kChase, n), ORR_PC_ISSUE), kGroups * kSteps) << n;
    for (const unsigned n : {0u, 1u, 5u})
        EXPECT_EQ(card.at(card.pc(kChase, n), ORR_PC_ISSUE), kGroups) << n;
    EXPECT_EQ(card.at(card.pc(kChase, 0), ORR_PC_LATENCY) + card.at(card.pc(kChase, 2), ORR_PC_LATENCY),
              card.of_cause(ORR_PC_LATENCY))
        << "the other argument is in the same line";
    EXPECT_EQ(card.at(card.entry(kChase), ORR_PC_LAUNCH), card.of_cause(ORR_PC_LAUNCH));
    std::map<std::uint64_t, std::uint64_t> groups;
    for (const PcSample& each : card.log.samples) {
        groups[each.group] += each.count;
        EXPECT_EQ(each.asid, 1u);
        EXPECT_EQ(each.port, 0u);
        EXPECT_EQ(each.job_start_ps, card.rig.done.front().start_ps);
        EXPECT_EQ(each.first_ps % kCycle, 0u);
    }
    EXPECT_EQ(groups.size(), kGroups);
}

// Samples of a period that has nothing to do with the loop fall where the time goes.
TEST(Pc, OfALongPeriodHasTheSameShares) {
    Card card;
    constexpr std::uint64_t kPeriod = 100'000, kGroups = 3;
    card.unit->sample(kPeriod);
    card.start(0, card.chase(20'000, kGroups));
    card.rig.run();
    const double all = static_cast<double>(card.all());
    EXPECT_NEAR(all * kPeriod, static_cast<double>(card.count(ORR_CTR_VECTOR_BUSY_PS)), kPeriod * kGroups);
    const double waits = static_cast<double>(card.count(ORR_CTR_VECTOR_LATENCY_PS)) /
                         static_cast<double>(card.count(ORR_CTR_VECTOR_BUSY_PS));
    EXPECT_NEAR(static_cast<double>(card.of_cause(ORR_PC_LATENCY)) / all, waits, 0.01);
    EXPECT_GT(static_cast<double>(card.at(card.pc(kChase, 2), ORR_PC_LATENCY)) / all, waits - 0.01);
}

// Rows of vectors: the instructions that move them wait for memory, each as much.
TEST(Pc, OfATriadIsWhatAsksForBandwidth) {
    constexpr std::uint64_t kWords = 16'384, kGroups = 8, kStrips = kWords / (8 * 2048 / 64);
    Card card;
    card.unit->sample(kCycle);
    card.start(0, card.triad(kWords, kGroups));
    card.rig.run();
    EXPECT_EQ(card.of_cause(ORR_PC_LATENCY) * kCycle, card.count(ORR_CTR_VECTOR_LATENCY_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_LAUNCH) * kCycle, card.count(ORR_CTR_VECTOR_LAUNCH_PS));
    // Waits for bandwidth do not end with a cycle: each may have one moment more or less.
    const std::uint64_t busy = card.count(ORR_CTR_VECTOR_BUSY_PS);
    const std::uint64_t waits = card.count(ORR_CTR_VECTOR_BANDWIDTH_PS);
    EXPECT_NEAR(static_cast<double>(card.all() * kCycle), static_cast<double>(busy), kCycle * kGroups);
    EXPECT_GT(waits, busy / 3);
    const double told = static_cast<double>(card.of_cause(ORR_PC_BANDWIDTH) * kCycle);
    EXPECT_NEAR(told, static_cast<double>(waits), static_cast<double>(waits) * 0.01);
    constexpr unsigned kLoad = 11, kOther = 12, kStore = 14;
    double moved = 0;
    for (const unsigned n : {kLoad, kOther, kStore}) {
        const double here =
            static_cast<double>(card.at(card.pc(kTriad, n), ORR_PC_BANDWIDTH)) * static_cast<double>(kCycle);
        EXPECT_NEAR(here, told / 3, told * 0.02) << n;
        moved += here;
    }
    EXPECT_GT(moved, told * 0.98);
    // Each instruction of the loop is issued, and a vector instruction may wait for those before it.
    for (unsigned n = 10; n < 21; ++n)
        EXPECT_GE(card.at(card.pc(kTriad, n), ORR_PC_ISSUE), kGroups * kStrips * 9 / 10) << n;
}

// Loops that the host does in runs of many instructions, and vector code that waits for itself.
TEST(Pc, OfAProductIsEachOfItsCycles) {
    constexpr std::uint64_t kDepth = 300, kGroups = 4;
    Card card;
    card.unit->sample(kCycle);
    card.start(0, card.product(kDepth, kGroups));
    card.rig.run();
    const auto near = [&](std::uint64_t samples, std::uint64_t ps) {
        EXPECT_NEAR(static_cast<double>(samples * kCycle), static_cast<double>(ps), kCycle * kGroups * 40.0);
    };
    near(card.all(), card.count(ORR_CTR_VECTOR_BUSY_PS));
    near(card.of_cause(ORR_PC_LATENCY), card.count(ORR_CTR_VECTOR_LATENCY_PS));
    near(card.of_cause(ORR_PC_BANDWIDTH), card.count(ORR_CTR_VECTOR_BANDWIDTH_PS));
    // All four multiply-adds of a turn, and what it counts with.
    for (unsigned n = 19; n < 31; ++n)
        EXPECT_GE(card.at(card.pc(kProduct, n), ORR_PC_ISSUE), kGroups * kDepth * 9 / 10) << n;
}

TEST(Pc, OfItemsIsTheirStartAndTheirBarriers) {
    Card card;
    card.unit->sample(kCycle);
    card.start(0, card.tree(3, 8));
    card.rig.run();
    ASSERT_EQ(card.rig.done.front().status, ORR_DONE_OK);
    EXPECT_EQ(card.of_cause(ORR_PC_BARRIER), card.count(ORR_CTR_VECTOR_BARRIERS));
    EXPECT_GT(card.count(ORR_CTR_VECTOR_BARRIERS), 100u);
    EXPECT_EQ(card.of_cause(ORR_PC_LAUNCH) * kCycle, card.count(ORR_CTR_VECTOR_LAUNCH_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_LATENCY) * kCycle, card.count(ORR_CTR_VECTOR_LATENCY_PS));
    EXPECT_EQ(card.of_cause(ORR_PC_ISSUE) + card.of_cause(ORR_PC_BARRIER),
              card.count(ORR_CTR_VECTOR_INSTRUCTIONS));
}

// Kernels beside each other on the same cores.
TEST(Pc, OfEachJobIsItsOwn) {
    Card card;
    card.unit->sample(kCycle);
    card.start(0, card.chase(300, 5));
    card.start(1, card.triad(4096, 9));
    card.rig.run();
    ASSERT_EQ(card.rig.done.size(), 2u);
    for (const PcSample& each : card.log.samples) {
        const std::uint64_t entry = card.entry(each.port == 0 ? kChase : kTriad);
        EXPECT_LT(each.pc - entry, 128u);
        const auto job = std::ranges::find(card.rig.done, each.port, &Completion::port);
        ASSERT_NE(job, card.rig.done.end());
        EXPECT_GE(each.first_ps, job->start_ps);
        EXPECT_LE(each.first_ps + (each.count - 1) * kCycle, job->end_ps);
    }
}

TEST(Pc, EndsWhereAKernelIsCutOff) {
    Card card;
    card.unit->sample(kCycle);
    card.start(0, card.chase(1'000'000, 2));
    card.run_until(7'123'456);
    card.unit->port(0).abort();
    card.rig.run();
    EXPECT_NEAR(static_cast<double>(card.all() * kCycle),
                static_cast<double>(card.count(ORR_CTR_VECTOR_BUSY_PS)), 2.0 * kCycle);
    for (const PcSample& each : card.log.samples)
        EXPECT_LT(each.first_ps + (each.count - 1) * kCycle, 7'123'456u);
}

TEST(Pc, IsAskedForAndLeftAtAnyTime) {
    Card card(2);
    card.start(0, card.triad(32'768, 16));
    card.run_until(3'000'000);
    EXPECT_TRUE(card.log.samples.empty());
    card.unit->sample(10 * kCycle);
    card.run_until(9'000'000);
    card.unit->sample(0);
    card.rig.run();
    ASSERT_FALSE(card.log.samples.empty());
    for (const PcSample& each : card.log.samples) {
        EXPECT_GE(each.first_ps, 3'000'000u);
        EXPECT_LT(each.first_ps, 9'000'000u);
    }
}

// Each instruction of one core for a window: one after the other, without a gap but those that the core has.
TEST(Pc, OfEachInstructionOfACore) {
    constexpr std::uint64_t kSteps = 200;
    Card card;
    card.unit->trace(0, 0, kNever);
    card.start(0, card.chase(kSteps, 3));
    card.rig.run();
    const std::uint64_t load = card.pc(kChase, 2);
    ModelTime next = 0;
    std::uint64_t loads = 0;
    for (const PcSample& each : card.log.samples) {
        ASSERT_TRUE(each.of_cycles);
        EXPECT_EQ(each.core, 0u);
        EXPECT_EQ(each.group, 0u) << "the others have cores of their own";
        if (next != 0) EXPECT_EQ(each.first_ps, next);
        next = each.first_ps + each.count * kCycle;
        loads += each.pc == load && each.cause == ORR_PC_ISSUE ? 1 : 0;
    }
    EXPECT_EQ(loads, kSteps);
    // One of three cores that do the same, each in lines of its own cache.
    EXPECT_EQ(3 * card.of_cause(ORR_PC_LATENCY) * kCycle, card.count(ORR_CTR_VECTOR_LATENCY_PS));
    EXPECT_EQ(3 * card.of_cause(ORR_PC_ISSUE), card.count(ORR_CTR_VECTOR_INSTRUCTIONS));
    // A window of it is what begins there.
    Card part;
    const ModelTime from = card.log.samples[100].first_ps, until = card.log.samples[200].first_ps;
    part.unit->trace(0, from, until);
    part.start(0, part.chase(kSteps, 3));
    part.rig.run();
    ASSERT_EQ(part.log.samples.size(), 100u);
    EXPECT_EQ(part.log.samples.front().first_ps, from);
    EXPECT_EQ(part.log.samples.front().pc, card.log.samples[100].pc);
    EXPECT_LT(part.log.samples.back().first_ps, until);
    // And all that it waits for is there, if it is rows that it moves.
    Card rows;
    rows.unit->trace(3, 0, kNever);
    rows.start(0, rows.triad(8192, 8));
    rows.rig.run();
    std::uint64_t all = 0;
    for (const PcSample& each : rows.log.samples)
        all += each.count;
    EXPECT_NEAR(static_cast<double>(8 * all * kCycle),
                static_cast<double>(rows.count(ORR_CTR_VECTOR_BUSY_PS)),
                static_cast<double>(rows.count(ORR_CTR_VECTOR_BUSY_PS)) * 0.1);
}

class PcSame : public testing::TestWithParam<std::tuple<unsigned, std::uint64_t>> {};

TEST_P(PcSame, TimeCountersAndMemoryAreAsWithout) {
    const auto [threads, period] = GetParam();
    struct World {
        std::vector<std::uint64_t> numbers;
        std::vector<std::uint8_t> memory;
    };
    const auto world = [&](std::uint64_t sampled) {
        Card card(threads);
        card.unit->sample(sampled);
        if (sampled != 0) card.unit->trace(2, 1'000'000, 9'000'000);
        card.start(0, card.triad(8192, 20));
        card.start(1, card.product(200, 6));
        card.start(2, card.tree(9, 4));
        card.start(3, card.chase(900, 7));
        // One of them goes away meanwhile, and goes on.
        card.run_until(6'543'210);
        EXPECT_TRUE(card.unit->port(3).preempt(Preempt::kNow, kArea));
        card.rig.run();
        EXPECT_TRUE(card.unit->port(3).resume(kArea, 20));
        card.rig.run();
        World all;
        for (const Completion& each : card.rig.done)
            for (const std::uint64_t number : {std::uint64_t{each.port}, std::uint64_t{each.status},
                                               each.start_ps, each.end_ps, each.used_ps})
                all.numbers.push_back(number);
        for (std::uint32_t n = 0; n < ORR_COUNTER_COUNT; ++n)
            // With threads these are the host's.
            if (threads == 0 ||
                (n != ORR_CTR_VECTOR_AHEAD && n != ORR_CTR_MMU_TLB_HITS && n != ORR_CTR_MMU_TLB_MISSES))
                all.numbers.push_back(card.count(static_cast<orr_counter>(n)));
        all.memory.assign(card.rig.vram.data(), card.rig.vram.data() + (64 << 20));
        EXPECT_EQ(card.log.samples.empty(), sampled == 0);
        return all;
    };
    const World without = world(0), with = world(period);
    EXPECT_EQ(without.numbers, with.numbers);
    EXPECT_TRUE(without.memory == with.memory);
}

INSTANTIATE_TEST_SUITE_P(Threads, PcSame,
                         testing::Combine(testing::Values(0u, 2u), testing::Values(kCycle, 100 * kCycle)));

}  // namespace
}  // namespace orrery::emu::test
