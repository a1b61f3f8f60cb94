// Items of a group that wait for each other: what a barrier keeps, what preemption must not change, and
// kernels whose items do not come to the same barrier.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "emulator/engines/save_area.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kArea = 32 << 20;
constexpr std::uint64_t kStacks = kData + (4 << 20);
constexpr std::uint32_t kGroups = 20;
constexpr std::uint16_t kItems = 13;

class BarrierTest : public VectorUnitTest {
  protected:
    orr_desc_kernel with_stacks(Kernel kernel, std::uint32_t groups, std::uint16_t items) {
        orr_desc_kernel d = desc(kernel, kData, groups, items);
        d.local_bytes = 8192;
        d.item_stacks = kStacks;
        d.item_stack_pages = 1;
        return d;
    }
    orr_desc_kernel tree(std::uint64_t rounds, std::uint16_t items = kItems) {
        data()[0] = rounds;
        data()[1] = kData + 4096;
        return with_stacks(kTree, kGroups, items);
    }
    std::vector<std::uint64_t> results(std::uint16_t items = kItems) {
        std::uint64_t* const first = data(4096);
        std::vector<std::uint64_t> all(first, first + kGroups * items);
        std::fill_n(first, kGroups * items, 0);
        return all;
    }
    EnginePort& port(std::uint32_t number) { return unit->port(number); }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }
    orr_save_group* record(std::uint32_t index) {
        return reinterpret_cast<orr_save_group*>(rig.vram.data() + kArea + kSavePage +
                                                 index * save_record_bytes(0));
    }
    orr_save_item* items_of(std::uint32_t index) {
        return reinterpret_cast<orr_save_item*>(reinterpret_cast<std::uint8_t*>(record(index)) + kSavePage);
    }
    static std::uint64_t at(std::uint64_t group, std::uint64_t item) {
        return group << ORR_DONE_ITEM_BITS | item;
    }
};

// The same by hand. Kernels compute with fused operations only where the compiler may, and it may not here.
std::vector<std::uint64_t> expected_tree(std::uint64_t rounds, std::uint32_t groups, std::uint16_t items) {
    std::vector<std::uint64_t> out;
    for (std::uint32_t group = 0; group < groups; ++group) {
        std::vector<std::uint64_t> sum(items), shared(items);
        std::vector<std::vector<std::uint64_t>> stack(items, std::vector<std::uint64_t>(40));
        std::vector<double> real(items);
        for (std::uint32_t i = 0; i < items; ++i) {
            sum[i] = (std::uint64_t{group} * items + i) * 0x9e3779b97f4a7c15;
            real[i] = i;
            for (unsigned j = 0; j < 40; ++j)
                stack[i][j] = sum[i] + j;
        }
        for (std::uint64_t round = 0; round < rounds; ++round) {
            shared = sum;
            for (std::uint32_t step = 1; step < items; step *= 2) {
                const auto before = shared;
                for (std::uint32_t i = 0; i < items; ++i)
                    shared[i] += (i + step < items ? before[i + step] : round) * 3;
            }
            for (std::uint32_t i = 0; i < items; ++i) {
                sum[i] = (sum[i] << 9 | sum[i] >> 55) ^ shared[0] ^ stack[i][sum[i] % 40];
                stack[i][round % 40] += sum[i];
                real[i] = std::fma(real[i], 1.0000001, static_cast<double>(shared[i] % 1000));
            }
        }
        for (std::uint32_t i = 0; i < items; ++i)
            out.push_back(sum[i] ^ std::bit_cast<std::uint64_t>(real[i]));
    }
    return out;
}

TEST_F(BarrierTest, WhatOneItemWroteBeforeAllReadBehind) {
    for (const std::uint16_t items : std::initializer_list<std::uint16_t>{1, 2, 13, 64}) {
        expect_end(run(tree(5, items)), ORR_DONE_OK, 0, 0);
        EXPECT_EQ(results(items), expected_tree(5, kGroups, items)) << items;
    }
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_ITEMS), kGroups * (1 + 2 + 13 + 64u));
}

TEST_F(BarrierTest, AThousandItems) {
    data()[0] = 1;
    data()[1] = kData + 4096;
    orr_desc_kernel d = with_stacks(kTree, 2, 1024);
    rig.map(kData + (1ull << 32), 32 << 20, ORR_TARGET_VRAM, 32 << 20);
    d.item_stacks = kData + (1ull << 32);
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    const auto expected = expected_tree(1, 2, 1024);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data(4096)));
}

TEST_F(BarrierTest, PreemptedAtManyPointsTheResultIsTheSame) {
    const orr_desc_kernel d = tree(12);
    const Completion whole = run(d);
    expect_end(whole, ORR_DONE_OK, 0, 0);
    const auto expected = expected_tree(12, kGroups, kItems);
    ASSERT_EQ(results(), expected);
    unsigned preempted = 0, waiting = 0, released = 0, both = 0;
    for (unsigned seed = 0; seed < 30; ++seed) {
        std::mt19937 random(seed);
        rig.done.clear();
        std::uint32_t number = random() % 4;
        ASSERT_TRUE(port(number).start(Rig::words_of(d), 1));
        Completion done;
        for (;;) {
            run_until(rig.events.now() + random() % ((whole.end_ps - whole.start_ps) / 4));
            ASSERT_TRUE(port(number).preempt(Preempt::kNow, kArea));
            done = next();
            if (done.status != ORR_DONE_PREEMPTED) break;
            ++preempted;
            const auto groups = reinterpret_cast<orr_save_header*>(rig.vram.data() + kArea)->groups;
            for (std::uint32_t i = 0; i < groups; ++i) {
                waiting += record(i)->waits == ORR_SAVE_WAITING ? 1 : 0;
                released += record(i)->waits == ORR_SAVE_RELEASED ? 1 : 0;
                both += record(i)->waits == (ORR_SAVE_WAITING | ORR_SAVE_RELEASED) ? 1 : 0;
            }
            // Others use the cores and their stacks meanwhile, in an item form of their own.
            orr_desc_kernel other = with_stacks(kRounding, 8, 32);
            other.args = kData + (1 << 20);
            other.item_stacks = kData + (6 << 20);
            expect_end(run(other), ORR_DONE_OK, 0, 0);
            rig.done.clear();
            number = random() % 4;
            ASSERT_TRUE(port(number).resume(kArea, seed));
        }
        expect_end(done, ORR_DONE_OK, 0, 0);
        ASSERT_EQ(results(), expected) << "seed " << seed;
    }
    // All that a save has to tell apart was there.
    EXPECT_GT(preempted, 60u);
    EXPECT_GT(waiting, 0u);
    EXPECT_GT(released, 0u);
    EXPECT_GT(both, 0u);
}

TEST_F(BarrierTest, EachItemKeepsItsRoundingModeAndFlags) {
    orr_desc_kernel d = with_stacks(kRounding, 3, 100);
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    for (std::uint64_t i = 0; i < 300; ++i)
        ASSERT_EQ(data()[i], i % 4 << 5 | i % 32) << i;
}

TEST_F(BarrierTest, AnItemThatEndsWhileOthersWaitIsTold) {
    data()[0] = 4;
    const Completion done = run(with_stacks(kBarrierEnded, 1, 8));
    expect_end(done, ORR_DONE_TRAP, ORR_TRAP_BARRIER_ENDED, 5);
    EXPECT_EQ(done.item, at(0, 4));
    // Of the others those come to it too late whose forerunner has ended.
    data()[0] = 0;
    const Completion late = run(with_stacks(kBarrierEnded, 1, 8));
    expect_end(late, ORR_DONE_TRAP, ORR_TRAP_BARRIER_LATE, 5);
    EXPECT_EQ(late.item, at(0, 1));
    data()[0] = 7;
    const Completion last = run(with_stacks(kBarrierLate, 1, 8));
    expect_end(last, ORR_DONE_TRAP, ORR_TRAP_BARRIER_LATE, 6);
    EXPECT_EQ(last.item, at(0, 7));
}

TEST_F(BarrierTest, DifferentBarriersAreTold) {
    data()[0] = 3;
    const Completion done = run(with_stacks(kBarrierOther, 1, 8));
    expect_end(done, ORR_DONE_TRAP, ORR_TRAP_BARRIER_OTHER, 8);
    EXPECT_EQ(done.other, 9u);
    EXPECT_EQ(done.item, at(0, 3));
    // And nobody is held up by what was left.
    data()[0] = 8;
    expect_end(run(with_stacks(kBarrierOther, 9, 8)), ORR_DONE_OK, 0, 0);
}

TEST_F(BarrierTest, AStackThatOverflowsIsAFaultAndHurtsNobody) {
    const orr_desc_kernel d = with_stacks(kDeep, 1, 8);
    data()[0] = 3500;
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    data()[0] = 5000;
    const Completion done = run(d);
    const std::uint64_t top = ORR_ITEM_STACKS + 8ull * ORR_ITEM_STACK_STRIDE;
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.fault, ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(done.detail, top - ORR_PAGE_SIZE - 8) << "the first word below";
    EXPECT_EQ(done.item, at(0, 7));
    EXPECT_EQ(*data((4 << 20) + 7 * 4096 - ORR_ITEM_SLOT_BYTES - 8), ORR_KERNEL_EXIT)
        << "its neighbour's return address stands";
    orr_desc_kernel more = d;
    more.item_stack_pages = 2;
    expect_end(run(more), ORR_DONE_OK, 0, 0);
}

TEST_F(BarrierTest, StacksAreWhereEachLaunchSays) {
    // The same block, as kernels of a stream have it, with stacks of another size.
    orr_desc_kernel larger = tree(5, 4);
    larger.grid_x = 1;
    larger.item_stack_pages = 2;
    expect_end(run(larger), ORR_DONE_OK, 0, 0);
    expect_end(run(tree(5, 4)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(results(4), expected_tree(5, kGroups, 4));
    // And the second page is no longer there when the launch has one.
    orr_desc_kernel deep = with_stacks(kDeep, 1, 4);
    data()[0] = 5000;
    deep.item_stack_pages = 2;
    expect_end(run(deep), ORR_DONE_OK, 0, 0);
    deep.item_stack_pages = 1;
    EXPECT_EQ(run(deep).status, ORR_DONE_FAULT);
}

TEST_F(BarrierTest, WithoutStacksABarrierIsATrap) {
    data()[0] = 1;
    data()[1] = kData + 4096;
    orr_desc_kernel d = with_stacks(kTree, 1, 2);
    d.item_stacks = 0;
    d.item_stack_pages = 0;
    const Completion done = run(d);
    EXPECT_EQ(done.status, ORR_DONE_TRAP);
    EXPECT_EQ(done.fault, ORR_TRAP_BARRIER_STACKS);
    d.block_x = 1;
    expect_end(run(d), ORR_DONE_OK, 0, 0);
}

TEST_F(BarrierTest, AnAssertionCarriesItsText) {
    const Completion done = run(desc(kAssert, kData, 3, 2));
    expect_end(done, ORR_DONE_TRAP, ORR_TRAP_ASSERT, 0x1234);
    EXPECT_EQ(done.item & 0xffff, 0u);
}

TEST_F(BarrierTest, HostileAreasAreRefused) {
    const auto save = [&] {
        ASSERT_TRUE(port(0).start(Rig::words_of(tree(1000)), 1));
        run_until(rig.events.now() + 20'000'000);
        ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
        ASSERT_EQ(next().status, ORR_DONE_PREEMPTED);
    };
    save();
    const std::uint64_t size = save_area_bytes(unit->config().cores);
    const std::vector<std::uint8_t> good(rig.vram.data() + kArea, rig.vram.data() + kArea + size);
    const auto expect_bad = [&](const char* what) {
        ASSERT_TRUE(port(1).resume(kArea, 1));
        EXPECT_EQ(next().status, ORR_DONE_BAD_DESC) << what;
        std::ranges::copy(good, rig.vram.data() + kArea);
    };
    auto* const header = reinterpret_cast<orr_save_header*>(rig.vram.data() + kArea);
    auto* const saved = reinterpret_cast<orr_desc_kernel*>(header->descriptor);
    ASSERT_NE(record(0)->waits, 0u);
    record(0)->waits = 4, expect_bad("a state that does not exist");
    record(0)->waits = ORR_SAVE_WAITING, record(0)->item = 0, expect_bad("items below the first wait");
    record(0)->waits = ORR_SAVE_RELEASED, record(0)->barrier = 1, expect_bad("a barrier of nobody");
    record(0)->item = kItems, expect_bad("no item");
    record(0)->place = 8, expect_bad("a place beyond the cores");
    record(0)->place = record(1)->place, expect_bad("a place twice");
    items_of(0)[2].pc |= 1, expect_bad("an odd pc of an item");
    items_of(0)[kItems - 1].fcsr = 0x100, expect_bad("fcsr of an item");
    items_of(0)[0].reserved = 1, expect_bad("reserved");
    record(0)->hart.vl = 1, expect_bad("vector state of a hart without");
    record(0)->hart.vector_bytes = 64, expect_bad("vector registers of a hart without");
    saved->item_stacks = 0, saved->item_stack_pages = 0, expect_bad("items that wait, and no stacks");
    saved->block_x = 1, expect_bad("one item that waits");
    // Anything else is the kernel's own business.
    items_of(0)[1].sp = ~0ull;
    items_of(0)[2].pc = 2;
    ASSERT_TRUE(port(1).resume(kArea, 1));
    EXPECT_EQ(next().status, ORR_DONE_FAULT);
}

TEST_F(BarrierTest, AnyAreaEndsAndHarmsNobody) {
    ASSERT_TRUE(port(0).start(Rig::words_of(tree(1000)), 1));
    run_until(rig.events.now() + 20'000'000);
    ASSERT_TRUE(port(0).preempt(Preempt::kNow, kArea));
    ASSERT_EQ(next().status, ORR_DONE_PREEMPTED);
    const std::uint64_t size = save_area_bytes(unit->config().cores);
    const std::vector<std::uint8_t> good(rig.vram.data() + kArea, rig.vram.data() + kArea + size);
    unsigned refused = 0, ran = 0;
    for (unsigned seed = 0; seed < 120; ++seed) {
        std::mt19937_64 random(seed);
        std::ranges::copy(good, rig.vram.data() + kArea);
        for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
            std::uint8_t* const group = reinterpret_cast<std::uint8_t*>(record(random() % 8));
            std::uint8_t* at = group + random() % 64;
            if (random() % 2 == 0) at = group + kSavePage + random() % (kItems * sizeof(orr_save_item));
            if (random() % 8 == 0) at = rig.vram.data() + kArea + 24 + random() % 64;
            *at = random() % 2 == 0 ? static_cast<std::uint8_t>(random()) : *at ^ 1u;
        }
        rig.done.clear();
        ASSERT_TRUE(port(1).resume(kArea, seed));
        rig.run(200);
        port(1).abort();
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u) << seed;
        ++(rig.done[0].status == ORR_DONE_BAD_DESC ? refused : ran);
        ASSERT_FALSE(port(1).busy());
        ASSERT_EQ(port(1).active(), 0u);
    }
    EXPECT_GT(refused, 15u);
    EXPECT_GT(ran, 15u);
    expect_end(run(tree(5)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(results(), expected_tree(5, kGroups, kItems));
}

}  // namespace
}  // namespace orrery::emu::test
