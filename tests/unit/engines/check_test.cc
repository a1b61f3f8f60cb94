// Kernels under --check: what shares memory rightly is not reported, what does not is, with both sides.
#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "emulator/api/checks.h"
#include "emulator/check/launch_check.h"
#include "emulator/engines/checked_spaces.h"
#include "emulator/engines/save_area.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kArea = 32 << 20;
constexpr std::uint64_t kStacks = kData + (4 << 20);
constexpr std::uint64_t kShared = kData + 4096;

class CheckTest : public VectorUnitTest {
  protected:
    CheckTest() { check(kCheckRace | kCheckMemory); }
    void check(unsigned what, std::uint32_t vlen = 0) {
        VectorConfig with = config();
        with.check = what;
        with.vlen = vlen;
        unit = std::make_unique<VectorUnit>(with, rig.context);
    }
    orr_desc_kernel sharing(Sharing how, std::uint64_t where, std::uint32_t groups, std::uint16_t items) {
        data()[0] = how;
        data()[1] = where;
        std::fill_n(data(4096), 512, 0);
        orr_desc_kernel d = desc(kShare, kData, groups, items);
        d.local_bytes = 100 * 8;
        d.item_stacks = kStacks;
        d.item_stack_pages = 1;
        return d;
    }
    Completion share(Sharing how, std::uint64_t where = ORR_LOCAL_BASE, std::uint32_t groups = 3,
                     std::uint16_t items = 4) {
        return run(sharing(how, where, groups, items));
    }
    static unsigned cause(const Completion& done) {
        return done.status == ORR_DONE_TRAP ? done.fault & 0xffff : 0;
    }
    static std::uint64_t address(const Completion& done) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(done.detail << 16) >> 16);
    }
    static std::uint64_t bytes(const Completion& done) { return done.fault >> 20 & 0xff; }
    static std::uint64_t findings(const Completion& done) { return done.detail >> 48; }
};

TEST_F(CheckTest, ReadingANeighboursWordNeedsABarrier) {
    const Completion bad = share(kNeighbour);
    EXPECT_EQ(cause(bad), unsigned{ORR_TRAP_RACE});
    EXPECT_EQ(address(bad), ORR_LOCAL_BASE + 8);
    EXPECT_EQ(bytes(bad), 8u);
    // Item 0 read word 1, then item 1 wrote it: the order that hides the race here.
    EXPECT_EQ(bad.item, 1u);
    EXPECT_EQ(bad.fault >> 16 & 3, ORR_CHECK_LOAD);
    EXPECT_EQ(bad.fault >> 18 & 3, ORR_CHECK_STORE);
    EXPECT_EQ(bad.fault >> 28, 0u) << "item 0 of group 0";
    EXPECT_GT(static_cast<std::uint32_t>(bad.other >> 32), 0u);
    EXPECT_NE(static_cast<std::uint32_t>(bad.other), bad.other >> 32);
    // The last item reads what the first has written: the same pair of places the other way round.
    EXPECT_EQ(findings(bad), 1u);

    EXPECT_EQ(share(kNeighbourBarrier).status, ORR_DONE_OK);
    EXPECT_EQ(cause(share(kRounds)), unsigned{ORR_TRAP_RACE});
}

TEST_F(CheckTest, GroupsAreOrderedByNothingAndHaveTheirOwnMemory) {
    EXPECT_EQ(share(kOneWord, ORR_LOCAL_BASE, 9, 1).status, ORR_DONE_OK);
    const Completion bad = share(kOneWord, kShared, 9, 1);
    EXPECT_EQ(cause(bad), unsigned{ORR_TRAP_RACE});
    EXPECT_EQ(address(bad), kShared);
    EXPECT_EQ(bad.item >> ORR_DONE_ITEM_BITS, 1u);
    // A barrier orders the items of its group only: each group reads the first word of the next one's.
    EXPECT_EQ(cause(share(kNeighbourBarrier, kShared)), unsigned{ORR_TRAP_RACE});
    EXPECT_EQ(share(kNeighbourBarrier, kShared, 1).status, ORR_DONE_OK);
}

TEST_F(CheckTest, AtomicsDoNotRaceWithEachOther) {
    for (const std::uint64_t where : {std::uint64_t{ORR_LOCAL_BASE}, kShared}) {
        EXPECT_EQ(share(kCount, where).status, ORR_DONE_OK);
        const Completion bad = share(kCountAndRead, where);
        EXPECT_EQ(cause(bad), unsigned{ORR_TRAP_RACE});
        EXPECT_EQ(bad.fault >> 16 & 3, ORR_CHECK_ATOMIC);
        EXPECT_EQ(bad.fault >> 18 & 3, ORR_CHECK_LOAD);
    }
}

TEST_F(CheckTest, WhatIsReleasedAndAcquiredIsOrdered) {
    for (const std::uint64_t where : {std::uint64_t{ORR_LOCAL_BASE}, kShared}) {
        EXPECT_EQ(share(kMessage, where).status, ORR_DONE_OK);
        EXPECT_EQ(cause(share(kMessageRelaxed, where)), unsigned{ORR_TRAP_RACE});
        EXPECT_EQ(share(kFences, where, 1).status, ORR_DONE_OK);
        EXPECT_EQ(share(kTicket, where, 1).status, ORR_DONE_OK);
        EXPECT_EQ(cause(share(kTicketRelaxed, where, 1)), unsigned{ORR_TRAP_RACE});
    }
}

TEST_F(CheckTest, BytesAreCheckedOneByOne) {
    EXPECT_EQ(share(kBytes, kShared, 16, 16).status, ORR_DONE_OK);
    const Completion bad = share(kHalves, kShared, 16, 16);
    EXPECT_EQ(cause(bad), unsigned{ORR_TRAP_RACE});
    EXPECT_EQ(address(bad), kShared + 1);
    EXPECT_EQ(bytes(bad), 1u);
    EXPECT_EQ(share(kNoSum, kShared, 16, 16).status, ORR_DONE_OK);
}

TEST_F(CheckTest, VectorAccessesAreCheckedByElement) {
    for (const std::uint32_t vlen : {128u, 2048u}) {
        check(kCheckRace, vlen);
        data()[0] = kShared;
        data()[1] = kShared + 65536;
        data()[2] = 1000;
        const Completion bad = run(desc(kShareRows, kData, 8, 1));
        EXPECT_EQ(cause(bad), unsigned{ORR_TRAP_RACE});
        EXPECT_EQ(address(bad), kShared + 65536 + 1000);
        EXPECT_EQ(bytes(bad), 1u);
        EXPECT_EQ(findings(bad), 1u);
    }
}

TEST_F(CheckTest, MemoryThatIsNotTheItems) {
    orr_desc_kernel d = sharing(kOutsideLocal, kShared, 1, 1);
    d.local_bytes = 102;
    const Completion outside = run(d);
    EXPECT_EQ(cause(outside), unsigned{ORR_TRAP_OUTSIDE});
    EXPECT_EQ(address(outside), ORR_LOCAL_BASE + 102);
    EXPECT_EQ(bytes(outside), 2u);
    d.local_bytes = 104;
    EXPECT_EQ(run(d).status, ORR_DONE_OK);

    const Completion below = share(kBelowStack);
    EXPECT_EQ(cause(below), unsigned{ORR_TRAP_BELOW_STACK});
    EXPECT_EQ(bytes(below), 4u);
    const Completion fresh = share(kFreshStack);
    EXPECT_EQ(cause(fresh), unsigned{ORR_TRAP_NEVER_WRITTEN});
    EXPECT_EQ(bytes(fresh), 8u);

    check(kCheckRace);
    EXPECT_EQ(share(kFreshStack).status, ORR_DONE_OK);
    check(kCheckMemory);
    EXPECT_EQ(share(kNeighbour).status, ORR_DONE_OK);
    check(0);
    EXPECT_EQ(share(kFreshStack).status, ORR_DONE_OK);
}

TEST_F(CheckTest, ResultsAndTimesAreThoseWithoutACheck) {
    const auto tree = [&](unsigned what) {
        VectorConfig with = config();
        with.check = what;
        with.l1_bytes = 16384;
        Rig own;
        load_image(own);
        VectorUnit checked(with, own.context);
        std::uint64_t* const args = reinterpret_cast<std::uint64_t*>(own.vram.data() + kDataOffset);
        args[0] = 3;
        args[1] = kShared;
        orr_desc_kernel d = desc(kTree, kData, 20, 13);
        d.local_bytes = 8192;
        d.item_stacks = kStacks;
        d.item_stack_pages = 1;
        const Completion done = own.run_one(checked.port(0), d);
        EXPECT_EQ(done.status, ORR_DONE_OK);
        std::vector<std::uint64_t> all(args + 512, args + 512 + 20 * 13);
        all.push_back(done.end_ps);
        all.push_back(own.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS));
        return all;
    };
    EXPECT_EQ(tree(kCheckRace | kCheckMemory), tree(0));
}

// Groups are saved and go on, on other cores: what they did before is not forgotten.
TEST_F(CheckTest, PreemptionHidesNothingAndInventsNothing) {
    const auto preempted = [&](const orr_desc_kernel& d, ModelTime period) {
        DescriptorWords words;
        std::memcpy(words.data(), &d, sizeof d);
        EXPECT_TRUE(unit->port(0).start(words, 7));
        unsigned saves = 0;
        for (ModelTime at = rig.events.now() + period;; at = rig.events.now() + period) {
            while (rig.done.empty() && rig.events.run_next(at)) {
            }
            if (rig.done.empty()) {
                rig.events.advance_to(at);
                EXPECT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
            }
            const Completion done = next();
            if (done.status != ORR_DONE_PREEMPTED) {
                EXPECT_GT(saves, 0u);
                return done;
            }
            ++saves;
            EXPECT_TRUE(unit->port(0).resume(kArea, 7));
        }
    };
    data()[0] = 20;
    data()[1] = kShared;
    orr_desc_kernel d = desc(kTree, kData, 20, 13);
    d.local_bytes = 8192;
    d.item_stacks = kStacks;
    d.item_stack_pages = 1;
    EXPECT_EQ(preempted(d, 20 * 1000 * kPsPerNs).status, ORR_DONE_OK);
    // 600 groups on few cores; the first two are long done when it is saved.
    const Completion bad = preempted(sharing(kOneWord, kShared, 600, 1), 2 * 1000 * kPsPerNs);
    EXPECT_EQ(cause(bad), unsigned{ORR_TRAP_RACE});
    EXPECT_EQ(bad.item >> ORR_DONE_ITEM_BITS, 1u);
}

class ParkedCheckTest : public CheckTest {
  protected:
    static constexpr std::uint32_t kGroups = 2;
    static constexpr std::uint16_t kItems = 400;
    // Saved when all its groups are on cores and have done something.
    void save(Sharing how) {
        const orr_desc_kernel d = sharing(how, kShared, kGroups, kItems);
        ASSERT_TRUE(unit->port(0).start(Rig::words_of(d), 7));
        const std::uint64_t items = rig.counters.get(ORR_CTR_VECTOR_ITEMS);
        while (rig.counters.get(ORR_CTR_VECTOR_ITEMS) < items + 100)
            ASSERT_TRUE(rig.events.run_next(kNever - 1));
        ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
        ASSERT_EQ(next().status, ORR_DONE_PREEMPTED);
    }
    Completion go_on() {
        EXPECT_TRUE(unit->port(0).resume(kArea, 7));
        return next();
    }
    std::vector<std::uint8_t> area() const {
        const std::uint8_t* const at = rig.vram.data() + kArea;
        return {at, at + save_area_bytes(config().cores)};
    }
};

TEST_F(ParkedCheckTest, AnotherLaunchOfTheSameKernelDoesNotTakeIt) {
    save(kOneWord);
    const auto racy = area();
    // It never goes on, or later; the others are like it in all that a descriptor says.
    for (unsigned i = 0; i < 70; ++i)
        save(kNoSum);
    EXPECT_EQ(go_on().status, ORR_DONE_OK);
    std::ranges::copy(racy, rig.vram.data() + kArea);
    EXPECT_EQ(cause(go_on()), unsigned{ORR_TRAP_RACE});
}

TEST_F(ParkedCheckTest, WhatHasGoneWithItsProcessIsForgotten) {
    save(kOneWord);
    data()[0] = kNoSum;
    EXPECT_EQ(cause(go_on()), unsigned{ORR_TRAP_RACE});
    save(kOneWord);
    data()[0] = kNoSum;
    ASSERT_EQ(rig.mmu.clear_root(1), 0u);
    ASSERT_EQ(rig.mmu.set_root(1, rig.root()), 0u);
    EXPECT_EQ(go_on().status, ORR_DONE_OK);
}

// Two launches of two streams, each right by itself, write one word.
TEST_F(CheckTest, LaunchesSideBySideAreInNoOrder) {
    const orr_desc_kernel d = sharing(kOneWord, kShared, 1, 1);
    const auto both = [&](const orr_desc_kernel& other) {
        rig.done.clear();
        EXPECT_TRUE(unit->port(0).start(Rig::words_of(d), 1));
        EXPECT_TRUE(unit->port(1).start(Rig::words_of(other), 2));
        rig.run();
        EXPECT_EQ(rig.done.size(), 2u);
        return rig.done;
    };
    const auto met = both(d);
    EXPECT_EQ(met[0].status, ORR_DONE_OK);
    EXPECT_EQ(cause(met[1]), unsigned{ORR_TRAP_RACE_BESIDE});
    EXPECT_EQ(address(met[1]), kShared);
    EXPECT_EQ(run(d).status, ORR_DONE_OK);
    EXPECT_EQ(run(d).status, ORR_DONE_OK) << "one after the other";
    orr_desc_kernel other = d;
    other.asid = 2;
    ASSERT_EQ(rig.mmu.set_root(2, rig.root()), 0u);
    for (const Completion& done : both(other))
        EXPECT_EQ(done.status, ORR_DONE_OK) << "another process";
}

// A card that was told of a heap of two pages with some allocations.
class CheckedHeapTest : public CheckTest {
  protected:
    static constexpr std::uint64_t kHeap = kData + (1 << 20), kAllocation = kHeap + 256, kAllocated = 96;

    CheckedHeapTest() {
        rig.context.checked = &memory;
        check(kCheckMemory);
        tell(ORR_TELL_HEAP, kHeap, 8192);
        tell(ORR_TELL_ALLOCATED, kAllocation, kAllocated);
    }
    orr_desc_long telling(std::uint16_t what, std::uint64_t va, std::uint64_t bytes) {
        const orr_desc_tell desc{ORR_DESC_TELL, what, 0, va, bytes};
        std::memcpy(data(64 << 10), &desc, sizeof desc);
        orr_desc_long pointer{};
        pointer.op = ORR_DESC_LONG;
        pointer.asid = 1;
        pointer.descriptor = kData + (64 << 10);
        pointer.bytes = sizeof desc;
        return pointer;
    }
    Completion tell(std::uint16_t what, std::uint64_t va, std::uint64_t bytes) {
        return rig.run_one(copies, telling(what, va, bytes));
    }
    Completion fill(std::uint64_t va, std::uint64_t bytes) {
        orr_desc_copy d{};
        d.op = ORR_DESC_FILL;
        d.asid = 1;
        d.dst = va;
        d.row_bytes = bytes;
        d.rows = 1;
        d.pattern_bytes = 1;
        return rig.run_one(copies, d);
    }
    Completion load(std::uint64_t va) { return run(desc(kLoad, va, 1, 1)); }
    Completion store(std::uint64_t va) { return run(desc(kStore, va, 1, 1)); }

    CheckedMemory memory{checked_spaces(rig.mmu), 1 << 20};
    CopyEngine copies{0, {}, rig.context};
};

TEST_F(CheckedHeapTest, AccessesBesideAnAllocationAreNamed) {
    const Completion past = store(kAllocation + kAllocated);
    EXPECT_EQ(cause(past), unsigned{ORR_TRAP_OUTSIDE});
    EXPECT_EQ(address(past), kAllocation + kAllocated);
    EXPECT_EQ(bytes(past), 4u);
    EXPECT_EQ(past.fault >> 18 & 3, ORR_CHECK_STORE);
    EXPECT_EQ(cause(load(kAllocation - 4)), unsigned{ORR_TRAP_OUTSIDE});
    EXPECT_EQ(cause(load(kHeap + 4096)), unsigned{ORR_TRAP_OUTSIDE}) << "nothing is allocated in this page";
    EXPECT_EQ(store(kAllocation + kAllocated - 4).status, ORR_DONE_OK);
    EXPECT_EQ(load(kHeap + 8192).status, ORR_DONE_OK) << "no heap";
    EXPECT_EQ(load(kHeap - 4).status, ORR_DONE_OK) << "no heap";

    tell(ORR_TELL_FREED, kAllocation, kAllocated);
    EXPECT_EQ(cause(store(kAllocation)), unsigned{ORR_TRAP_OUTSIDE});
    tell(ORR_TELL_NO_HEAP, kHeap, 8192);
    EXPECT_EQ(store(kAllocation).status, ORR_DONE_OK);
}

TEST_F(CheckedHeapTest, WhatNobodyWroteSinceItsAllocationIsNotRead) {
    const Completion fresh = load(kAllocation + 8);
    EXPECT_EQ(cause(fresh), unsigned{ORR_TRAP_NEVER_WRITTEN});
    EXPECT_EQ(address(fresh), kAllocation + 8);
    EXPECT_EQ(fresh.fault >> 18 & 3, ORR_CHECK_LOAD);
    // Kernels, copies and fills write, and so do peers.
    EXPECT_EQ(store(kAllocation + 8).status, ORR_DONE_OK);
    EXPECT_EQ(load(kAllocation + 8).status, ORR_DONE_OK);
    EXPECT_EQ(cause(load(kAllocation + 12)), unsigned{ORR_TRAP_NEVER_WRITTEN});
    EXPECT_EQ(fill(kAllocation + 12, 4).status, ORR_DONE_OK);
    EXPECT_EQ(load(kAllocation + 12).status, ORR_DONE_OK);
    EXPECT_EQ(rig.run_one(copies, Rig::copy(kHostData, kAllocation + 16, 4)).status, ORR_DONE_OK);
    EXPECT_EQ(load(kAllocation + 16).status, ORR_DONE_OK);
    EXPECT_EQ(cause(load(kAllocation + 20)), unsigned{ORR_TRAP_NEVER_WRITTEN});
    memory.wrote(kDataOffset + (kAllocation + 20 - kData), 4);
    EXPECT_EQ(load(kAllocation + 20).status, ORR_DONE_OK);

    tell(ORR_TELL_FREED, kAllocation, kAllocated);
    tell(ORR_TELL_ALLOCATED, kAllocation, kAllocated);
    EXPECT_EQ(cause(load(kAllocation + 8)), unsigned{ORR_TRAP_NEVER_WRITTEN});
    // Whole pages, which need no bits.
    tell(ORR_TELL_ALLOCATED, kHeap + 4096, 4096);
    EXPECT_EQ(fill(kHeap + 4096, 4096).status, ORR_DONE_OK);
    EXPECT_EQ(load(kHeap + 8188).status, ORR_DONE_OK);
    tell(ORR_TELL_ALLOCATED, kHeap + 4096 + 256, 256);
    EXPECT_EQ(cause(load(kHeap + 4096 + 256)), unsigned{ORR_TRAP_NEVER_WRITTEN});
}

TEST_F(CheckedHeapTest, WhatIsToldIsNotTrusted) {
    constexpr std::uint64_t kEnd = std::uint64_t{1} << 47;
    EXPECT_EQ(tell(0, kHeap, 1).status, ORR_DONE_BAD_DESC);
    EXPECT_EQ(tell(ORR_TELL_FREED + 1, kHeap, 1).status, ORR_DONE_BAD_DESC);
    EXPECT_EQ(tell(ORR_TELL_HEAP, kHeap, 0).status, ORR_DONE_BAD_DESC);
    EXPECT_EQ(tell(ORR_TELL_HEAP, kEnd - 1, 2).status, ORR_DONE_BAD_DESC);
    EXPECT_EQ(tell(ORR_TELL_HEAP, ~std::uint64_t{0}, 2).status, ORR_DONE_BAD_DESC);
    // Memory that the process may not write stays as it is for others.
    const std::uint64_t code = std::uint64_t{kImageBase};
    memory.wrote(0, 16);
    const std::uint64_t before = memory.bytes();
    EXPECT_EQ(tell(ORR_TELL_ALLOCATED, code, 4096).status, ORR_DONE_OK);
    EXPECT_GT(memory.bytes(), before);
    EXPECT_EQ(load(code).status, ORR_DONE_OK);
    // Of the host's memory it takes no more than the limit.
    for (std::uint64_t i = 0; i < 20'000 && !memory.gave_up(); ++i)
        memory.wrote(i * kPageBytes, 1);
    EXPECT_TRUE(memory.gave_up());
    EXPECT_EQ(memory.bytes(), 0u);
    EXPECT_EQ(load(kAllocation + 40).status, ORR_DONE_OK);
    memory.reset();
    EXPECT_EQ(tell(ORR_TELL_HEAP, kHeap, 8192).status, ORR_DONE_OK);
    EXPECT_EQ(cause(load(kAllocation + 40)), unsigned{ORR_TRAP_OUTSIDE});
    // The next process has heaps of its own.
    ASSERT_EQ(rig.mmu.clear_root(1), 0u);
    ASSERT_EQ(rig.mmu.set_root(1, rig.root()), 0u);
    EXPECT_EQ(load(kAllocation + 40).status, ORR_DONE_OK);
}

TEST_F(CheckedHeapTest, ALargeAllocationIsTakenInPieces) {
    constexpr std::uint64_t kLarge = kData + (2 << 20), kLargeBytes = 6 << 20;
    memory.wrote(kDataOffset, kDataBytes);
    tell(ORR_TELL_HEAP, kLarge, kLargeBytes);
    const std::uint64_t before = memory.bytes();
    tell(ORR_TELL_ALLOCATED, kLarge, kLargeBytes);
    EXPECT_LT(memory.bytes(), before);
    EXPECT_EQ(cause(load(kLarge + kLargeBytes - 4)), unsigned{ORR_TRAP_NEVER_WRITTEN});
}

TEST_F(CheckedHeapTest, ATellHoldsNobodyUp) {
    const auto beside = [&](std::uint64_t va, std::uint64_t bytes) {
        rig.done.clear();
        EXPECT_TRUE(copies.start(Rig::words_of(telling(ORR_TELL_ALLOCATED, va, bytes)), 1));
        EXPECT_TRUE(unit->port(0).start(Rig::words_of(desc(kStore, kAllocation, 1, 1)), 2));
        rig.run(10'000);
        return rig.done;
    };
    // Of all addresses most are no memory, and where no table is, nobody looks.
    EXPECT_EQ(beside(0, (std::uint64_t{1} << 47) - 4096).size(), 2u);
    // Where there is memory, it takes time, in which others get on.
    const auto done = beside(kData, kDataBytes);
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].tag, 2u);
    EXPECT_EQ(done[1].tag, 1u);
    EXPECT_EQ(done[1].status, ORR_DONE_OK);
}

TEST_F(CheckedHeapTest, ATellIsStoppedAndGoesOn) {
    constexpr std::uint64_t kLarge = kData + (2 << 20), kLargeBytes = 6 << 20;
    const auto begin = [&] {
        rig.done.clear();
        EXPECT_TRUE(copies.start(Rig::words_of(telling(ORR_TELL_ALLOCATED, kLarge, kLargeBytes)), 1));
        rig.run(2);  // its descriptor, and a part of it
        EXPECT_TRUE(rig.done.empty());
    };
    tell(ORR_TELL_HEAP, kLarge, kLargeBytes);
    begin();
    copies.abort();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
    EXPECT_EQ(cause(load(kLarge)), unsigned{ORR_TRAP_OUTSIDE});

    const Completion whole = tell(ORR_TELL_ALLOCATED, kLarge, kLargeBytes);
    memory.wrote(kDataOffset, kDataBytes);
    begin();
    ASSERT_TRUE(copies.preempt(Preempt::kNow, kArea));
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    rig.done.clear();
    ASSERT_TRUE(copies.resume(kArea, 1));
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    EXPECT_LT(2 * rig.done[0].used_ps, whole.used_ps) << "not from its beginning";
    EXPECT_EQ(cause(load(kLarge + kLargeBytes - 4)), unsigned{ORR_TRAP_NEVER_WRITTEN});
}

TEST_F(CheckedHeapTest, WithoutTheCheckNothingIsTaken) {
    rig.context.checked = nullptr;
    check(kCheckRace);
    EXPECT_EQ(tell(ORR_TELL_HEAP, kHeap, 8192).status, ORR_DONE_OK);
    EXPECT_EQ(load(kAllocation).status, ORR_DONE_OK);
    EXPECT_EQ(load(kHeap).status, ORR_DONE_OK);
}

TEST_F(CheckTest, WhatACheckCostsTheHostEndsAGo) {
    const auto goes = [&](unsigned what) {
        check(what, 4096);
        data()[0] = kShared;
        data()[1] = kShared + (1 << 20);
        data()[2] = 65536;
        EXPECT_TRUE(unit->port(0).start(Rig::words_of(desc(kShareRows, kData, 8, 1)), 7));
        const std::size_t events = rig.run();
        EXPECT_EQ(next().status, what == 0 ? ORR_DONE_OK : ORR_DONE_TRAP);
        return events;
    };
    EXPECT_GT(goes(kCheckRace), goes(0) + 4);
}

TEST_F(CheckTest, TheLogHasEachPairOfPlaces) {
    std::FILE* const log = std::tmpfile();
    ASSERT_NE(log, nullptr);
    {
        Errors errors(rig.counters, log);
        rig.context.errors = &errors;
        share(kRounds);
        rig.context.errors = nullptr;
    }
    std::string text(4096, 0);
    std::rewind(log);
    text.resize(std::fread(text.data(), 1, text.size(), log));
    std::fclose(log);
    EXPECT_THAT(text, HasSubstr("race on 8 bytes at 0x"));
    EXPECT_THAT(text, HasSubstr("item 1 of group 0 writes at entry+0x"));
    EXPECT_THAT(text, HasSubstr("item 0 of group 0 reads at entry+0x"));
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
}

}  // namespace
}  // namespace orrery::emu::test
