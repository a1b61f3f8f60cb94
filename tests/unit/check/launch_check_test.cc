// The check of one launch, access by access: against an account of everything that happened before everything
// else, and what it needs of the host's memory.
#include "emulator/check/launch_check.h"

#include <gtest/gtest.h>

#include <orrery/hw/kernel_abi.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace orrery::emu {
namespace {

constexpr std::uint64_t kWords = 0x10'0000'0000;
constexpr std::uint64_t kFlags = 0x20'0000'0000;

// All accesses of a random program with what each item knew at the time: one number for each other item.
class Account {
  public:
    using Knowledge = std::map<std::uint32_t, std::uint32_t>;
    struct Event {
        std::uint32_t who, time;
        Knowledge known;
        std::uint64_t va, bytes, pc;
        bool write, atomic;
    };

    Account(std::uint32_t groups, std::uint32_t items) : items_(items), now_(groups * items) {}

    void access(std::uint32_t who, std::uint64_t pc, const DoneAccess& access) {
        const bool atomic = access.kind == AccessKind::kAtomic;
        const bool write = atomic || access.kind == AccessKind::kStore;
        if (atomic && access.acquires) join(now_[who], flags_[access.va]);
        ++now_[who][who];
        for (const Event& past : events_) {
            const bool touch = past.va < access.va + access.bytes && access.va < past.va + past.bytes;
            const auto known = now_[who].find(past.who);
            const bool ordered = past.who == who || (known != now_[who].end() && known->second >= past.time);
            if (touch && (past.write || write) && !(past.atomic && atomic) && !ordered)
                races.insert(std::minmax(past.pc, pc));
        }
        events_.push_back({who, now_[who][who], now_[who], access.va, access.bytes, pc, write, atomic});
        if (atomic && access.releases) join(flags_[access.va], now_[who]);
    }
    void barrier(std::uint32_t group) {
        Knowledge all;
        for (std::uint32_t i = 0; i < items_; ++i)
            join(all, now_[group * items_ + i]);
        for (std::uint32_t i = 0; i < items_; ++i)
            now_[group * items_ + i] = all;
    }
    std::set<std::pair<std::uint64_t, std::uint64_t>> races;

  private:
    static void join(Knowledge& mine, const Knowledge& theirs) {
        for (const auto& [who, time] : theirs)
            mine[who] = std::max(mine[who], time);
    }
    const std::uint32_t items_;
    std::vector<Knowledge> now_;
    std::map<std::uint64_t, Knowledge> flags_;
    std::vector<Event> events_;
};

TEST(LaunchCheck, AgreesWithAnAccountOfAllThatHappened) {
    std::mt19937 random(7);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    unsigned with_races = 0;
    for (unsigned program = 0; program < 3000; ++program) {
        const std::uint32_t groups = 1 + below(3), items = 1 + below(4);
        LaunchCheck check(kCheckRace, items, 0);
        Account account(groups, items);
        std::vector<LaunchCheck::Group*> group(groups);
        for (std::uint32_t i = 0; i < groups; ++i)
            group[i] = &check.begin(i);
        // So many accesses of a granule are remembered.
        std::array<unsigned, 4> room{};
        room.fill(kCells);
        std::uint64_t pc = 0x1000;
        for (std::uint32_t steps = 1 + below(25); steps != 0; --steps) {
            const std::uint32_t g = below(groups), item = below(items);
            pc += 4;
            if (below(4) == 0) {
                check.barrier(*group[g]);
                account.barrier(g);
                continue;
            }
            DoneAccess access;
            access.bytes = access.element = 1u << below(4);
            const std::uint32_t granule = below(4);
            if (below(3) == 0) {
                access = {.va = kFlags + below(2) * 8,
                          .bytes = 8,
                          .kind = AccessKind::kAtomic,
                          .acquires = below(2) == 0,
                          .releases = below(2) == 0,
                          .element = 8};
            } else if (room[granule] == 0) {
                continue;
            } else {
                --room[granule];
                access.va = kWords + granule * 8 + below(8) / access.bytes * access.bytes;
                access.kind = below(2) == 0 ? AccessKind::kLoad : AccessKind::kStore;
            }
            check.access(*group[g], item, pc, 0, access);
            account.access(g * items + item, pc, access);
        }
        for (LaunchCheck::Group* each : group)
            check.end(*each);
        std::set<std::pair<std::uint64_t, std::uint64_t>> found;
        for (const Finding& finding : check.findings()) {
            const auto pair = std::minmax(finding.first.pc, finding.second.pc);
            EXPECT_TRUE(account.races.contains(pair)) << "program " << program << ": no race";
        }
        ASSERT_EQ(check.findings().empty(), account.races.empty()) << "program " << program;
        with_races += account.races.empty() ? 0 : 1;
    }
    EXPECT_GT(with_races, 500u);
    EXPECT_LT(with_races, 2500u);
}

TEST(LaunchCheck, OneBesideItMayGiveUpForBoth) {
    CheckRoom room{.limit = 1 << 20, .spare = {}};
    const auto beside = std::make_shared<SideBySide>(&room);
    LaunchCheck other(kCheckRace, 1, 0, &room, nullptr, 1, beside);
    LaunchCheck greedy(kCheckRace, 1, 0, &room, nullptr, 1, beside);
    LaunchCheck::Group &one = other.begin(0), &two = other.begin(1), &all = greedy.begin(0);
    const auto load = [](std::uint64_t va) {
        return DoneAccess{.va = va, .bytes = 8, .kind = AccessKind::kLoad, .element = 8};
    };
    other.access(one, 0, 0x1000, 0, load(kWords));
    other.access(two, 0, 0x1000, 0, load(kWords));
    for (std::uint64_t va = kWords; !greedy.gave_up(); va += kPageBytes) {
        ASSERT_LT(va - kWords, 2 * room.limit);
        greedy.access(all, 0, 0x1000, 0, load(va));
        greedy.look();
    }
    for (LaunchCheck::Group* const group : {&one, &two}) {
        other.end_item(*group, 0);
        other.end(*group);
    }
    EXPECT_TRUE(other.gave_up());
    EXPECT_EQ(beside->memory.pages(), 0u);
}

DoneAccess store(std::uint64_t va, std::uint64_t bytes) {
    return {.va = va,
            .bytes = bytes,
            .kind = AccessKind::kStore,
            .element = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 8))};
}

TEST(LaunchCheck, ShadowIsAtMostFourTimesWhatWasTouched) {
    // A million words, each by an item of its own; the same in vectors; single words far from each other.
    LaunchCheck items(kCheckRace | kCheckMemory, 256, 0);
    LaunchCheck vectors(kCheckRace | kCheckMemory, 1, 0);
    for (std::uint64_t group = 0; group < 4096; ++group) {
        LaunchCheck::Group& one = items.begin(group);
        for (std::uint32_t item = 0; item < 256; ++item) {
            items.start_item(one, true);
            items.access(one, item, 0x1000, 0, store(kWords + (group * 256 + item) * 4, 4));
        }
        items.end(one);
        LaunchCheck::Group& row = vectors.begin(group);
        for (unsigned part = 0; part < 4; ++part)
            vectors.access(row, 0, 0x1000, 0, store(kWords + group * 1024 + part * 256, 256));
        vectors.end(row);
    }
    for (const LaunchCheck* check : {&items, &vectors}) {
        EXPECT_EQ(check->findings().size(), 0u);
        EXPECT_EQ(check->most_touched_bytes(), 4u << 20);
        EXPECT_LE(check->most_shadow_bytes(), 4 * check->most_touched_bytes());
    }
    // Barriers: a group's phases are few beside its stacks.
    LaunchCheck barriers(kCheckRace, 64, 4096);
    LaunchCheck::Group& group = barriers.begin(0);
    for (unsigned phase = 0; phase < 100; ++phase) {
        for (std::uint32_t item = 0; item < 64; ++item)
            barriers.access(group, item, 0x1000, 0,
                            store(ORR_ITEM_STACKS + (item + 1) * ORR_ITEM_STACK_STRIDE - 64, 8));
        barriers.barrier(group);
    }
    EXPECT_EQ(barriers.touched_bytes(), 64u * 4096);
    EXPECT_LE(barriers.shadow_bytes(), 4 * barriers.touched_bytes());
}

DoneAccess load(std::uint64_t va, std::uint64_t bytes) {
    DoneAccess access = store(va, bytes);
    access.kind = AccessKind::kLoad;
    return access;
}

DoneAccess atomic(std::uint64_t va, std::uint64_t bytes, bool acquires, bool releases) {
    return {.va = va,
            .bytes = bytes,
            .kind = AccessKind::kAtomic,
            .acquires = acquires,
            .releases = releases,
            .element = static_cast<std::uint32_t>(bytes)};
}

TEST(LaunchCheck, OrderTakesLittleRoom) {
    // An item that releases for ever.
    LaunchCheck check(kCheckRace, 1, 0);
    LaunchCheck::Group& group = check.begin(0);
    for (std::uint64_t page = 0; page < 8; ++page)
        check.access(group, 0, 0x1000, 0, store(kWords + page * 4096, 8));
    for (unsigned i = 0; i < 100'000; ++i)
        check.access(group, 0, 0x1004, 0, atomic(kWords, 8, true, true));
    EXPECT_EQ(check.touched_bytes(), 8u * 4096);
    EXPECT_LE(check.shadow_bytes(), 4 * check.touched_bytes());
    // Many items one after another: what one of them knew goes with it.
    LaunchCheck items(kCheckRace, 1024, 0);
    LaunchCheck::Group& one = items.begin(0);
    for (std::uint32_t item = 0; item < 1024; ++item) {
        items.access(one, item, 0x1004, 0, atomic(kWords, 8, true, true));
        items.end_item(one, item);
    }
    EXPECT_LE(items.shadow_bytes(), 128u << 10);
    // At the same time they need more, and that counts.
    LaunchCheck all(kCheckRace, 200, 0);
    LaunchCheck::Group& side = all.begin(0);
    for (std::uint32_t item = 0; item < 200; ++item)
        all.access(side, item, 0x1004, 0, atomic(kWords, 8, true, true));
    EXPECT_GT(all.shadow_bytes(), 200u * 90 * 64);
}

TEST(LaunchCheck, WithoutRoomItGivesUpAndKeepsWhatItFound) {
    CheckRoom room{.limit = 16 << 20, .used = 0, .spare = {}};
    const auto touch = [](LaunchCheck& check, std::uint64_t pages) {
        LaunchCheck::Group& group = check.begin(0);
        check.access(group, 0, 0x1000, 0, store(kWords, 8));
        check.access(group, 1, 0x1004, 0, store(kWords, 8));
        for (std::uint64_t page = 0; page < pages; ++page)
            check.access(group, 0, 0x1008, 0, store(kFlags + page * 4096, 8));
        check.look();
        return &group;
    };
    {
        LaunchCheck parked(kCheckRace, 2, 0, &room);
        touch(parked, 512);
        EXPECT_FALSE(parked.gave_up());
        EXPECT_EQ(room.used, parked.shadow_bytes());
        room.spare = [&] {
            if (parked.gave_up()) return false;
            parked.give_up();
            return true;
        };
        LaunchCheck check(kCheckRace, 2, 0, &room);
        touch(check, 768);
        EXPECT_TRUE(parked.gave_up());
        EXPECT_FALSE(check.gave_up());
        EXPECT_EQ(room.used, check.shadow_bytes());
        LaunchCheck::Group* const group = touch(check, 3 * LaunchCheck::kLook);
        EXPECT_TRUE(check.gave_up());
        EXPECT_EQ(room.used, 0u);
        EXPECT_LE(check.shadow_bytes(), 4096u);
        check.barrier(*group);
        check.access(*group, 0, 0x100c, 0, atomic(kFlags, 8, true, true));
        check.start_item(*group, true);
        check.end_item(*group, 0);
        check.end(*group);
        check.end(check.go_on(5));
        EXPECT_EQ(check.found(), 1u);
        EXPECT_EQ(parked.found(), 1u);
    }
    EXPECT_EQ(room.used, 0u);
}

// Padding goes with the rest of a structure, byte by byte.
TEST(LaunchCheck, ABytewiseCopyOfPaddingIsNoRead) {
    LaunchCheck check(kCheckMemory, 1, 0);
    LaunchCheck::Group& group = check.begin(0);
    constexpr std::uint64_t kTop = ORR_STACK_TOP - 64;
    check.access(group, 0, 0x1000, kTop, store(kTop, 1));
    check.access(group, 0, 0x1004, kTop, store(kTop + 4, 4));
    for (std::uint64_t i = 0; i < 8; ++i)
        check.access(group, 0, 0x1008, kTop, load(kTop + i, 1));
    EXPECT_EQ(check.found(), 0u);
    check.access(group, 0, 0x100c, kTop, load(kTop + 8, 1));
    EXPECT_EQ(check.found(), 1u);
    check.access(group, 0, 0x1010, kTop, load(kTop + 2, 2));
    EXPECT_EQ(check.found(), 2u);
}

TEST(LaunchCheck, AFenceIsThereForAllAtomicsBehindItAndSizesMayDiffer) {
    const DoneAccess fence{.bytes = 0x33, .kind = AccessKind::kFence, .acquires = true, .releases = true};
    const auto races = [&](auto&& between, std::uint64_t seen, std::uint64_t bytes) {
        LaunchCheck check(kCheckRace, 1, 0);
        LaunchCheck::Group& first = check.begin(0);
        LaunchCheck::Group& second = check.begin(1);
        check.access(first, 0, 0x1000, 0, store(kWords, 8));
        between(check, first);
        check.access(second, 0, 0x2000, 0, atomic(seen, bytes, true, false));
        check.access(second, 0, 0x2004, 0, load(kWords, 8));
        check.end(second);
        return check.found();
    };
    const auto count = [](LaunchCheck& check, LaunchCheck::Group& group) {
        check.access(group, 0, 0x1004, 0, atomic(kFlags, 8, false, false));
    };
    const auto flag = [](LaunchCheck& check, LaunchCheck::Group& group) {
        check.access(group, 0, 0x1008, 0, atomic(kFlags + 64, 8, false, false));
    };
    const auto fenced = [&](LaunchCheck& check, LaunchCheck::Group& group) {
        check.access(group, 0, 0x1002, 0, fence);
        count(check, group);
        flag(check, group);
    };
    const auto with_barrier = [&](LaunchCheck& check, LaunchCheck::Group& group) {
        check.access(group, 0, 0x1002, 0, fence);
        check.barrier(group);
        flag(check, group);
    };
    EXPECT_EQ(races(flag, kFlags + 64, 8), 1u) << "without a fence";
    EXPECT_EQ(races(fenced, kFlags + 64, 8), 0u);
    EXPECT_EQ(races(with_barrier, kFlags + 64, 8), 0u);
    const auto wide = [](LaunchCheck& check, LaunchCheck::Group& group) {
        check.access(group, 0, 0x1004, 0, atomic(kFlags, 8, false, true));
    };
    EXPECT_EQ(races(wide, kFlags + 4, 4), 0u);
    EXPECT_EQ(races(wide, kFlags + 8, 4), 1u) << "another place";
}

// Launches of one address space: those that met are in no order but that of what they release and acquire.
TEST(LaunchCheck, LaunchesThatMetAreInNoOrder) {
    const auto all = std::make_shared<SideBySide>(nullptr);
    const auto launch = [&](std::uint32_t items) {
        return std::make_unique<LaunchCheck>(kCheckRace, items, 0, nullptr, nullptr, 1, all);
    };
    const auto found = [](LaunchCheck& check, std::uint64_t pc, const DoneAccess& access) {
        const std::uint64_t before = check.found();
        LaunchCheck::Group& group = check.go_on(0);
        check.access(group, 0, pc, 0, access);
        check.start_item(group, false);  // a load is looked at when the next comes
        return check.found() - before;
    };
    const auto first = launch(2);
    first->access(first->begin(3), 1, 0x1000, 0, store(kWords, 8));
    auto second = launch(5);
    EXPECT_EQ(found(*second, 0x2000, store(kWords + 64, 8)), 0u);
    ASSERT_EQ(found(*second, 0x2004, load(kWords, 8)), 1u);
    const Finding finding = second->findings().front();
    EXPECT_TRUE(finding.beside);
    EXPECT_EQ(finding.first.group, 3u);
    EXPECT_EQ(finding.first.item, 1u);
    EXPECT_EQ(finding.first.pc, 0x1000u);
    EXPECT_EQ(finding.second.group, 0u);
    EXPECT_EQ(finding.second.pc, 0x2004u);
    second.reset();
    // It began when the second had ended, and not the first.
    const auto third = launch(1);
    EXPECT_EQ(found(*third, 0x3000, store(kWords + 64, 8)), 0u);
    EXPECT_EQ(found(*third, 0x3004, store(kWords, 8)), 1u);
    // What one releases the other may acquire.
    found(*first, 0x1004, store(kWords + 128, 8));
    found(*first, 0x1008, atomic(kFlags, 8, false, true));
    EXPECT_EQ(found(*third, 0x3008, atomic(kFlags, 8, true, false)), 0u);
    EXPECT_EQ(found(*third, 0x300c, load(kWords + 128, 8)), 0u);
    // One that is saved may never go on.
    found(*first, 0x100c, store(kWords + 256, 8));
    first->pause();
    const auto fourth = launch(1);
    EXPECT_EQ(found(*fourth, 0x4000, load(kWords + 256, 8)), 0u);
    first->go_on();
    EXPECT_EQ(found(*launch(1), 0x5000, load(kWords + 256, 8)), 1u);
}

// Each of many items has learned of the same many others: a barrier joins no more of that than it may, misses
// a race then, and invents none.
TEST(LaunchCheck, ABarrierOfManyItemsThatKnowMuchCostsNoMoreThanItMay) {
    constexpr std::uint32_t kItems = 1000, kOthers = 200;
    LaunchCheck check(kCheckRace, kItems, 0);
    LaunchCheck::Group& first = check.begin(0);
    LaunchCheck::Group& second = check.begin(1);
    for (std::uint32_t item = 0; item < kOthers; ++item) {
        check.access(first, item, 0x1000, 0, store(kWords + item * 8, 8));
        check.access(first, item, 0x1004, 0, atomic(kFlags, 8, true, true));
    }
    for (std::uint32_t item = 0; item < kItems; ++item)
        check.access(second, item, 0x2000, 0, atomic(kFlags, 8, true, false));
    const std::uint64_t cost = check.barrier(second);
    EXPECT_GT(cost, kItems);
    EXPECT_LE(cost, LaunchCheck::kMostJoined + kItems);
    for (std::uint32_t item = 0; item < kOthers; ++item)
        check.access(second, 0, 0x2004, 0, load(kWords + item * 8, 8));
    check.access(second, 0, 0x2008, 0, load(kWords, 8));
    EXPECT_EQ(check.found(), 0u);
    // What comes behind the barrier is no more known than ever.
    check.access(first, 0, 0x1008, 0, store(kWords, 8));
    EXPECT_EQ(check.found(), 1u);
}

TEST(LaunchCheck, EachPairOfPlacesIsToldOnceAndNotTooMany) {
    LaunchCheck check(kCheckRace, 2, 4096);
    LaunchCheck::Group& group = check.begin(0);
    for (std::uint64_t round = 0; round < 3; ++round)
        for (std::uint64_t place = 0; place < 100; ++place)
            for (std::uint32_t item = 0; item < 2; ++item)
                check.access(group, item, 0x1000 + place * 8 + item * 4, 0,
                             store(ORR_LOCAL_BASE + (round * 100 + place) * 8, 8));
    EXPECT_EQ(check.found(), 100u);
    EXPECT_EQ(check.findings().size(), LaunchCheck::kMostFindings);
}

TEST(LaunchCheck, GivesUpWhereThereAreTooManySegments) {
    LaunchCheck check(kCheckRace, 1024, 0);
    LaunchCheck::Group& group = check.begin(0);
    for (std::uint64_t phase = 0; !check.gave_up(); ++phase) {
        ASSERT_LE(phase, Segments::kMost / 1024);
        check.barrier(group);
    }
    check.access(group, 0, 0x1000, 0, store(kWords, 8));
    check.access(group, 1, 0x1004, 0, store(kWords, 8));
    EXPECT_TRUE(check.findings().empty());
}

// With more items that synchronise than a clock has room for, races may be missed, and none is invented.
TEST(LaunchCheck, ManyItemsThatSynchroniseAreNoRace) {
    LaunchCheck check(kCheckRace, 1, 0);
    for (std::uint64_t number = 0; number < 700; ++number) {
        LaunchCheck::Group& group = check.begin(number);
        const DoneAccess lock{.va = kFlags,
                              .bytes = 8,
                              .kind = AccessKind::kAtomic,
                              .acquires = true,
                              .releases = true,
                              .element = 8};
        check.access(group, 0, 0x1000, 0, lock);
        check.access(group, 0, 0x1004, 0, store(kWords, 8));
        check.access(group, 0, 0x1008, 0, lock);
        check.end(group);
    }
    EXPECT_EQ(check.found(), 0u);
}

}  // namespace
}  // namespace orrery::emu
