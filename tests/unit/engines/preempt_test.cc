// Kernels that are taken off their cores and go on: with the same results, in bounded time, from nothing but
// what an engine saved.
#include <algorithm>
#include <random>

#include "emulator/engines/save_area.h"
#include "emulator/time/rate.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kArea = 32 << 20;
constexpr std::uint32_t kGroups = 20;
constexpr std::uint16_t kItems = 5;
constexpr ModelTime kUs = 1'000'000;

class PreemptTest : public VectorUnitTest {
  protected:
    // The kernel whose result depends on all that a preemption has to keep.
    orr_desc_kernel mix(std::uint64_t rounds, std::uint32_t groups = kGroups) {
        data()[0] = rounds;
        data()[1] = kData + 4096;
        data()[2] = 0;
        orr_desc_kernel d = desc(kMix, kData, groups, kItems);
        d.local_bytes = 8000;
        return d;
    }
    std::vector<std::uint64_t> results(std::uint32_t groups = kGroups) {
        std::vector<std::uint64_t> all(data(4096), data(4096) + groups * kItems);
        all.push_back(data()[2]);
        std::fill_n(data(4096), groups * kItems, 0);
        data()[2] = 0;
        return all;
    }
    EnginePort& port(std::uint32_t number) { return unit->port(number); }
    void start(std::uint32_t number, const orr_desc_kernel& d, std::uint32_t tag = 1) {
        ASSERT_TRUE(port(number).start(Rig::words_of(d), tag));
    }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }
    orr_save_header* header() { return reinterpret_cast<orr_save_header*>(rig.vram.data() + kArea); }
    orr_save_group* record(std::uint32_t index) {
        return reinterpret_cast<orr_save_group*>(rig.vram.data() + kArea + kSavePage +
                                                 index * save_record_bytes(0));
    }
    // Preempts a kernel of endless groups, so that a good area stands at kArea.
    void save_loops(std::uint32_t groups = 12) {
        start(0, desc(kLoop, 0, groups, 1));
        run_until(rig.events.now() + 10 * kUs);
        ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
        ASSERT_EQ(next().status, ORR_DONE_PREEMPTED);
    }
};

TEST_F(PreemptTest, AtManyPointsTheResultIsTheSame) {
    const orr_desc_kernel d = mix(200);
    const Completion whole = run(d);
    expect_end(whole, ORR_DONE_OK, 0, 0);
    const auto expected = results();
    EXPECT_GT(expected.back(), 0u);
    const ModelTime length = whole.end_ps - whole.start_ps;
    for (unsigned point = 0; point <= 60; ++point) {
        rig.done.clear();
        start(point % 4, d);
        run_until(rig.events.now() + length * point / 60);
        const bool late = !port(point % 4).busy();
        ASSERT_TRUE(port(point % 4).preempt(Preempt::kNow, kArea));
        Completion done = next();
        if (!late) {
            ASSERT_EQ(done.status, ORR_DONE_PREEMPTED) << point;
            EXPECT_EQ(done.detail % kSavePage, 0u);
            // Others use the cores, their stacks and their work-group memory meanwhile.
            orr_desc_kernel other = desc(kLocal, kData + (1 << 20), 16, 256);
            other.local_bytes = ORR_LOCAL_BYTES;
            expect_end(run(other), ORR_DONE_OK, 0, 0);
            rig.done.clear();
            ASSERT_TRUE(port((point + 1) % 4).resume(kArea, 9));
            done = next();
            EXPECT_EQ(done.tag, 9u);
        }
        expect_end(done, ORR_DONE_OK, 0, 0);
        EXPECT_EQ(results(), expected) << "preempted at " << point << "/60";
    }
}

TEST_F(PreemptTest, AtRandomTimesOnRandomPortsTheResultIsTheSame) {
    const orr_desc_kernel d = mix(150);
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    const auto expected = results();
    unsigned preempted = 0;
    for (unsigned seed = 0; seed < 25; ++seed) {
        std::mt19937 random(seed);
        rig.done.clear();
        std::uint32_t at = random() % 4;
        start(at, d);
        Completion done;
        for (;;) {
            run_until(rig.events.now() + random() % (30 * kUs));
            const auto mode = random() % 3 == 0 ? Preempt::kGroup : Preempt::kNow;
            ASSERT_TRUE(port(at).preempt(mode, kArea));
            if (mode == Preempt::kGroup && random() % 2 == 0) {
                run_until(rig.events.now() + random() % kUs);
                ASSERT_TRUE(port(at).preempt(Preempt::kNow, kArea + (1 << 20)));
            }
            done = next();
            if (done.status != ORR_DONE_PREEMPTED) break;
            ++preempted;
            at = random() % 4;
            ASSERT_TRUE(port(at).resume(kArea, seed));
        }
        expect_end(done, ORR_DONE_OK, 0, 0);
        ASSERT_EQ(results(), expected) << "seed " << seed;
    }
    EXPECT_GT(preempted, 100u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_PREEMPTIONS), preempted);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_JOBS), 26u) << "a resume is no new job";
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_GROUPS), 26u * kGroups) << "no group twice";
}

// Others wait for a piece of each core and port that saves or loads, not for all that they move.
TEST_F(PreemptTest, SavesAndLoadsLetOthersIn) {
    MemoryConfig slow;
    slow.vram_bytes_per_second = 100'000'000;
    Rig other(64 << 20, 1 << 20, 1 << 20, slow);
    load_image(other);
    VectorUnit cores(config(), other.context);
    CopyEngine engine(9, {.setup_ps = 0}, other.context);
    const std::uint32_t groups = cores.config().cores;
    // A short copy in the middle of what the vector unit does.
    const auto copy_time = [&] {
        orr_desc_copy desc{};
        desc.op = ORR_DESC_COPY;
        desc.asid = 1;
        desc.src = kData;
        desc.dst = kData + kMemoryLine;
        desc.row_bytes = kMemoryLine;
        desc.rows = 1;
        EXPECT_TRUE(engine.start(Rig::words_of(desc), 1));
        while (engine.busy() && other.events.run_next(kNever - 1)) {
        }
        EXPECT_EQ(other.done.at(0).port, 9u) << "what it was to wait for is over";
        const ModelTime took = other.done.at(0).end_ps - other.done.at(0).start_ps;
        other.done.clear();
        return took;
    };
    const auto pass = [&](ModelTime time) {
        const ModelTime end = other.events.now() + time;
        while (other.events.run_next(end)) {
        }
        other.events.advance_to(end);
    };
    // One piece of each, and twice, as a copy's own comes between.
    const ModelTime most = 2 * (groups + 1) * Resource::kPiecePs;

    orr_desc_kernel d = desc(kLoop, 0, groups, 1);
    d.local_bytes = ORR_LOCAL_BYTES;
    EnginePort& low = cores.port(0);
    ASSERT_TRUE(low.start(Rig::words_of(d), 1));
    pass(20 * kUs);
    ASSERT_TRUE(low.preempt(Preempt::kNow, kArea));
    pass(3 * kUs);
    EXPECT_LE(copy_time(), most) << "beside cores that save";
    other.run();
    ASSERT_EQ(other.done.at(0).status, ORR_DONE_PREEMPTED);
    ASSERT_GT(duration_ps(other.done[0].detail, slow.vram_bytes_per_second), 4 * most);
    other.done.clear();

    ASSERT_TRUE(low.resume(kArea, 1));
    pass(cores.config().launch_ps + 60 * kUs);
    EXPECT_LE(copy_time(), most) << "beside cores that load";
    ASSERT_TRUE(low.preempt(Preempt::kNow, kArea));
    other.run();
    ASSERT_EQ(other.done.at(0).status, ORR_DONE_PREEMPTED);
    other.done.clear();

    // Its groups get no core, and are saved again by the port.
    EnginePort& high = cores.port(1);
    high.set_priority(3);
    ASSERT_TRUE(high.start(Rig::words_of(desc(kLoop, 0, groups, 1)), 1));
    pass(20 * kUs);
    ASSERT_TRUE(low.resume(kArea, 1));
    pass(20 * kUs);
    ASSERT_TRUE(low.preempt(Preempt::kNow, kArea));
    EXPECT_LE(copy_time(), most) << "beside a port that saves";
    ASSERT_TRUE(low.preempt(Preempt::kNow, kArea)) << "once more, and nothing comes of it";
    while (low.busy())
        ASSERT_TRUE(other.events.run_next(kNever - 1));
    ASSERT_EQ(other.done.at(0).status, ORR_DONE_PREEMPTED);
    other.done.clear();
    ASSERT_TRUE(low.resume(kArea, 1));
    pass(20 * kUs);
    ASSERT_TRUE(low.preempt(Preempt::kNow, kArea));
    low.abort();
    pass(0);
    EXPECT_EQ(other.done.at(0).status, ORR_DONE_ABORTED) << "in the middle of the port's save";
}

TEST_F(PreemptTest, VectorRegistersGoOn) {
    constexpr std::uint32_t kVlen = 512;
    constexpr std::uint32_t kWords = kVlen / 64;
    VectorConfig with_vectors = config();
    with_vectors.vlen = kVlen;
    unit = std::make_unique<VectorUnit>(with_vectors, rig.context);
    constexpr std::uint64_t kRounds = 5000;
    data()[0] = kRounds;
    data()[1] = kData + 4096;
    std::vector<std::uint64_t> expected;
    for (std::uint64_t item = 0; item < std::uint64_t{kGroups} * kItems; ++item) {
        for (std::uint64_t word = 0; word < kWords; ++word) {
            std::uint64_t sum = item + word;
            for (std::uint64_t round = 0; round < kRounds; ++round)
                sum = (sum ^ sum << 3) + round + 3;
            expected.push_back(sum);
        }
    }
    unsigned preempted = 0;
    std::mt19937 random(1);
    start(0, desc(kVectors, kData, kGroups, kItems));
    Completion done;
    std::uint32_t at = 0;
    for (;;) {
        run_until(rig.events.now() + random() % (20 * kUs));
        ASSERT_TRUE(port(at).preempt(Preempt::kNow, kArea));
        done = next();
        if (done.status != ORR_DONE_PREEMPTED) break;
        ++preempted;
        const auto* const saved = reinterpret_cast<orr_save_group*>(rig.vram.data() + kArea + kSavePage);
        EXPECT_TRUE(header()->groups == 0 || saved->in_item == 0 || saved->hart.vector_bytes == 4 * kVlen);
        // Others leave other things in the registers.
        data()[2] = 3;
        data()[3] = kData + (2 << 20);
        expect_end(run(desc(kVectors, kData + 16, 16, 1)), ORR_DONE_OK, 0, 0);
        rig.done.clear();
        at = random() % 4;
        ASSERT_TRUE(port(at).resume(kArea, 1));
    }
    expect_end(done, ORR_DONE_OK, 0, 0);
    EXPECT_GT(preempted, 5u);
    const std::vector<std::uint64_t> results(data(4096), data(4096) + expected.size());
    EXPECT_EQ(results, expected);
}

TEST_F(PreemptTest, TheSameTimesGiveTheSameTimes) {
    const auto history = [](Rig& rig_, VectorUnit& unit_, const orr_desc_kernel& d) {
        std::vector<ModelTime> all;
        EXPECT_TRUE(unit_.port(0).start(Rig::words_of(d), 1));
        for (unsigned i = 0; i < 6; ++i) {
            while (rig_.events.run_next(i * 20 * kUs)) {
            }
            rig_.events.advance_to(i * 20 * kUs);
            unit_.port(i % 4).preempt(Preempt::kNow, kArea);
            rig_.run();
            all.push_back(rig_.done.back().end_ps);
            all.push_back(rig_.done.back().used_ps);
            all.push_back(rig_.done.back().detail);
            unit_.port((i + 1) % 4).resume(kArea, 1);
        }
        rig_.run();
        all.push_back(rig_.done.back().end_ps);
        return all;
    };
    const orr_desc_kernel d = mix(300);
    Rig other;
    load_image(other);
    std::memcpy(other.vram.data() + kDataOffset, data(), 4096);
    VectorUnit again(config(), other.context);
    EXPECT_EQ(history(rig, *unit, d), history(other, again, d));
}

TEST_F(PreemptTest, NowTakesTwoMicrosecondsAndTheSave) {
    start(0, desc(kLoop, 0, 12, 1));
    run_until(rig.events.now() + 10 * kUs + 1);
    EXPECT_EQ(port(0).active(), 8u);
    const ModelTime asked = rig.events.now();
    ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
    const Completion done = next();
    ASSERT_EQ(done.status, ORR_DONE_PREEMPTED);
    // A loop has no stack and no work-group memory: a page a group, and the header.
    EXPECT_EQ(done.detail, 9 * kSavePage);
    EXPECT_EQ(rig.counters.get(ORR_CTR_SAVED_BYTES), 9 * kSavePage);
    const VectorConfig& c = unit->config();
    const ModelTime save =
        c.save_core_ps + 9 * duration_ps(kSavePage, rig.memory.config().vram_bytes_per_second);
    EXPECT_LE(done.end_ps - asked, 2 * kUs + save);
    EXPECT_GE(done.end_ps - asked, save);
    // Eight cores from the first hand-over on, until each had its group saved.
    EXPECT_LE(done.used_ps, 8 * (done.end_ps - done.start_ps - c.launch_ps));
    EXPECT_GE(done.used_ps, 8 * (asked - done.start_ps - c.launch_ps));
    EXPECT_FALSE(port(0).busy());
    EXPECT_EQ(port(0).active(), 0u);
    EXPECT_EQ(header()->groups, 8u);
    EXPECT_EQ(header()->next_group, 8u);
    // To go on takes the launch, the header, and each group its way back.
    const ModelTime resumed = rig.events.now();
    ASSERT_TRUE(port(3).resume(kArea, 1));
    const ModelTime group =
        c.group_ps + c.save_core_ps + duration_ps(kSavePage, rig.memory.config().vram_bytes_per_second);
    const std::uint64_t before = rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS);
    const ModelTime begins =
        resumed + c.launch_ps + duration_ps(kSavePage, rig.memory.config().vram_bytes_per_second) + group;
    run_until(begins - 1);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS), before);
    run_until(begins);
    EXPECT_GT(rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS), before);
    EXPECT_EQ(port(3).active(), 8u);
}

TEST_F(PreemptTest, AHigherPriorityHasItsCoresInTime) {
    start(0, desc(kLoop, 0, 1000, 4));
    run_until(rig.events.now() + 100 * kUs + 777);
    port(1).set_priority(3);
    const ModelTime asked = rig.events.now();
    data()[0] = 10;
    start(1, desc(kSpin, kData, 8, 1), 2);
    ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
    run_until(asked + 10 * kUs);
    EXPECT_GT(rig.counters.get(ORR_CTR_VECTOR_GROUPS), 0u) << "its first groups are done";
    // In the order in which they end: first the victim's save, or the short kernel.
    const Completion first = next(), second = next();
    EXPECT_NE(first.status, second.status);
    EXPECT_LT(first.end_ps - asked, 10 * kUs);
    EXPECT_LT(second.end_ps - asked, 10 * kUs);
}

TEST_F(PreemptTest, AtGroupBordersNoGroupIsCut) {
    data()[0] = 3000;
    start(0, desc(kSpin, kData, 20, 1));
    run_until(rig.events.now() + 5 * kUs);
    ASSERT_TRUE(port(0).preempt(Preempt::kGroup, kArea));
    const Completion done = next();
    ASSERT_EQ(done.status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(done.detail, kSavePage);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_GROUPS), 8u);
    EXPECT_EQ(header()->groups, 0u);
    EXPECT_EQ(header()->next_group, 8u);
    ASSERT_TRUE(port(2).resume(kArea, 5));
    // While the last groups run there is nothing to keep: it ends as ever.
    while (port(2).active() != 4 || rig.counters.get(ORR_CTR_VECTOR_GROUPS) != 16)
        ASSERT_TRUE(rig.events.run_next(kNever - 1));
    ASSERT_TRUE(port(2).preempt(Preempt::kGroup, kArea));
    expect_end(next(), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_GROUPS), 20u);
}

TEST_F(PreemptTest, BeforeTheLaunchAndBeforeTheReturn) {
    const orr_desc_kernel d = mix(20);
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    const auto expected = results();
    rig.done.clear();
    start(0, d);
    ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
    EXPECT_EQ(next().status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(header()->next_group, 0u);
    ASSERT_TRUE(port(0).resume(kArea, 1));
    run_until(rig.events.now() + 5 * kUs);
    ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
    EXPECT_EQ(next().status, ORR_DONE_PREEMPTED);
    const std::uint32_t groups = header()->groups;
    EXPECT_EQ(groups, 8u);
    // What was loaded and had no core yet is saved again, whole.
    ASSERT_TRUE(port(1).resume(kArea, 1));
    ASSERT_TRUE(port(1).preempt(Preempt::kGroup, kArea + (2 << 20)));
    EXPECT_EQ(next().status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(header()->magic, 0u);
    ASSERT_TRUE(port(2).resume(kArea + (2 << 20), 1));
    expect_end(next(), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(results(), expected);
}

TEST_F(PreemptTest, AnAreaServesOnce) {
    save_loops();
    ASSERT_TRUE(port(0).resume(kArea, 1));
    ASSERT_TRUE(port(1).resume(kArea, 2));
    const Completion second = next();
    EXPECT_EQ(second.tag, 2u);
    EXPECT_EQ(second.status, ORR_DONE_BAD_DESC);
    EXPECT_FALSE(port(0).resume(kArea, 3)) << "busy";
    port(0).abort();
    EXPECT_EQ(next().status, ORR_DONE_ABORTED);
}

TEST_F(PreemptTest, IdlePortsAndBadAreas) {
    EXPECT_TRUE(port(0).preempt(Preempt::kNow, 1)) << "nothing to do, nothing wrong";
    start(0, desc(kLoop, 0, 1, 1));
    run_until(rig.events.now() + 5 * kUs);
    const std::uint64_t size = save_area_bytes(unit->config().cores);
    for (const std::uint64_t bad : {kArea + 8, rig.vram.size() - size + kSavePage, rig.vram.size(),
                                    ~std::uint64_t{0} - 4095, ~std::uint64_t{0}}) {
        EXPECT_FALSE(port(0).preempt(Preempt::kNow, bad)) << bad;
        EXPECT_TRUE(port(1).resume(bad, 1));
        EXPECT_EQ(next().status, ORR_DONE_BAD_DESC);
    }
    EXPECT_TRUE(port(0).busy());
    ASSERT_TRUE(port(0).preempt(Preempt::kNow, rig.vram.size() - (size + 4096)));
    EXPECT_EQ(next().status, ORR_DONE_PREEMPTED);
}

TEST_F(PreemptTest, AbortEndsASave) {
    // At every event from the request to the completion: one completion, aborted, and nothing to resume.
    for (unsigned events = 0;; ++events) {
        start(0, desc(kLoop, 0, 12, 1));
        run_until(rig.events.now() + 10 * kUs);
        ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
        rig.run(events);
        if (!rig.done.empty()) break;
        port(0).abort();
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED) << events;
        rig.done.clear();
        EXPECT_FALSE(port(0).busy());
        ASSERT_TRUE(port(0).resume(kArea, 1));
        EXPECT_EQ(next().status, ORR_DONE_BAD_DESC) << events;
    }
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    rig.done.clear();
    // And a resume, before and while its groups are loaded.
    ASSERT_TRUE(port(0).resume(kArea, 1));
    rig.run(1);
    port(0).abort();
    EXPECT_EQ(next().status, ORR_DONE_ABORTED);
    EXPECT_EQ(rig.run(), 0u);
    expect_end(run(desc(kMark, kData, 10, 1)), ORR_DONE_OK, 0, 0);
}

TEST_F(PreemptTest, ResetEndsASave) {
    for (unsigned events = 0; events < 12; ++events) {
        start(0, desc(kLoop, 0, 12, 1));
        run_until(rig.events.now() + 10 * kUs);
        ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
        rig.run(events);
        unit->reset();
        EXPECT_EQ(rig.run(), 0u);
        EXPECT_FALSE(port(0).busy());
        ASSERT_TRUE(rig.done.empty());
        EXPECT_EQ(header()->magic, 0u);
    }
    expect_end(run(desc(kMark, kData, 10, 1)), ORR_DONE_OK, 0, 0);
}

TEST_F(PreemptTest, AFaultMeanwhileIsAFault) {
    data()[0] = kHostData;
    data()[1] = 1 << 20;
    data()[2] = kData + 4096;
    start(0, desc(kHistogram, kData, 8, 16));
    run_until(rig.events.now() + 10 * kUs);
    rig.mmu.flush_host();
    ASSERT_TRUE(rig.host.remove(Rig::kHostBase, 64 << 20).has_value());
    ASSERT_TRUE(port(0).preempt(Preempt::kGroup, kArea));
    const Completion done = next();
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.fault, ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(header()->magic, 0u);
}

TEST_F(PreemptTest, WhatMakesNoSenseIsRefused) {
    const std::uint64_t size = save_area_bytes(unit->config().cores);
    save_loops();
    const std::vector<std::uint8_t> good(rig.vram.data() + kArea, rig.vram.data() + kArea + size);
    const auto expect_bad = [&](const char* what) {
        ASSERT_TRUE(port(1).resume(kArea, 1));
        EXPECT_EQ(next().status, ORR_DONE_BAD_DESC) << what;
        std::ranges::copy(good, rig.vram.data() + kArea);
    };
    header()->magic ^= 1, expect_bad("magic");
    header()->kind = ORR_ENGINE_COPY, expect_bad("kind");
    header()->version = 1, expect_bad("version");
    header()->cores = 4, expect_bad("a card with other cores");
    header()->group_bytes += 8, expect_bad("another layout of groups");
    header()->vlen = 256, expect_bad("a card with vector registers");
    header()->row = 1, expect_bad("a row of no copy");
    record(0)->stack_pages |= 1u << 31, expect_bad("a page of stack that does not exist");
    record(0)->local_pages |= 1u << 31, expect_bad("a page of work-group memory that does not exist");
    record(1)->hart.x[0] = 1, expect_bad("x0");
    record(1)->hart.pc |= 1, expect_bad("an odd pc");
    record(1)->hart.fcsr = 0x100, expect_bad("bits of fcsr that do not exist");
    record(1)->hart.reservation_size = 3, expect_bad("a reservation of three bytes");
    header()->groups = 9, expect_bad("more groups than cores");
    header()->groups = ~0u, expect_bad("very many groups");
    header()->next_group = 13, expect_bad("beyond the grid");
    header()->next_group = ~0ull, expect_bad("far beyond the grid");
    header()->next_group = 7, expect_bad("a group on a core that is still to come");
    header()->descriptor[0] ^= 0xff, expect_bad("descriptor");
    header()->descriptor[6] = 1, expect_bad("reserved words of the descriptor");
    header()->groups = 0, header()->next_group = 12, expect_bad("nothing left to do");
    record(3)->group = 8, expect_bad("a group that is still to come");
    record(3)->group = ~0ull, expect_bad("no group");
    record(3)->group = record(4)->group, expect_bad("a group twice");
    record(0)->item = 1, expect_bad("no item");
    record(7)->in_item = 2, expect_bad("neither in an item nor not");
    // And the good one is good, with any values of registers and any pages.
    record(0)->stack_pages = (1u << (ORR_STACK_BYTES / kSavePage)) - 1;
    record(0)->local_pages = (1u << (ORR_LOCAL_BYTES / kSavePage)) - 1;
    orr_save_hart& wild = record(1)->hart;
    std::memset(&wild, 0xff, sizeof wild);
    wild.x[0] = 0;
    wild.pc &= ~std::uint64_t{1};
    wild.fcsr = 0xff;
    wild.reservation_size = 8;
    wild.vl = wild.vtype = wild.vstart = 0;
    wild.vcsr = wild.vector_bytes = 0;
    ASSERT_TRUE(port(1).resume(kArea, 1));
    run_until(rig.events.now() + 20 * kUs);
    port(1).abort();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_NE(rig.done[0].status, ORR_DONE_BAD_DESC);
    rig.done.clear();
    expect_end(run(desc(kMark, kData, 10, 1)), ORR_DONE_OK, 0, 0);
}

}  // namespace
}  // namespace orrery::emu::test
