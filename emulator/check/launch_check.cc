#include "emulator/check/launch_check.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <orrery/hw/kernel_abi.h>

namespace orrery::emu {
namespace {

constexpr std::uint64_t kOwnBase = std::uint64_t{1} << 47;
constexpr std::uint64_t kCoreStack = ORR_STACK_TOP - ORR_STACK_BYTES;

bool writes(AccessKind kind) {
    return kind == AccessKind::kStore || kind == AccessKind::kAtomic;
}
bool atomic(AccessKind kind) {
    return kind == AccessKind::kAtomic || kind == AccessKind::kAtomicLoad;
}

std::uint64_t number_in_launch(std::uint64_t group) {
    return group & ((std::uint64_t{1} << SideBySide::kGroupBits) - 1);
}

// Bounds of the stack that this address is in; {0, 0}: it is in none.
struct Range {
    std::uint64_t from = 0, to = 0;
};
Range stack_at(std::uint64_t va) {
    if (va - kCoreStack < ORR_STACK_BYTES) return {kCoreStack, ORR_STACK_TOP};
    if (va < ORR_ITEM_STACKS) return {};
    const std::uint64_t from = va - (va - ORR_ITEM_STACKS) % ORR_ITEM_STACK_STRIDE;
    return {from, from + ORR_ITEM_STACK_STRIDE - ORR_ITEM_SLOT_BYTES};
}

}  // namespace

LaunchCheck::~LaunchCheck() {
    beside_->end(launch_);
    if (room_ != nullptr) room_->used -= taken_;
}

LaunchCheck::Group& LaunchCheck::add(std::uint64_t number) {
    Group& group = groups_[number];
    group.number = launch_ << SideBySide::kGroupBits | number;
    if (gave_up()) return group;
    if (const auto first = beside_->segments.add_group(group.number, items_, 0))
        group.first_segment = *first;
    else
        give_up_all();
    count();
    return group;
}

LaunchCheck::Group& LaunchCheck::begin(std::uint64_t number) {
    groups_.erase(number);
    return add(number);
}

LaunchCheck::Group& LaunchCheck::go_on(std::uint64_t number) {
    const auto known = groups_.find(number);
    if (known != groups_.end()) return known->second;
    Group& group = add(number);
    group.complete = false;
    return group;
}

void LaunchCheck::end(Group& group) {
    settle(group, false);
    measure();
    groups_.erase(number_in_launch(group.number));
}

void LaunchCheck::start_item(Group& group, bool core_stack) {
    settle(group, false);
    if (core_stack) group.own.forget(kCoreStack, ORR_STACK_TOP);
}

void LaunchCheck::end_item(Group& group, std::uint32_t item) {
    settle(group, false);
    group.items.erase(item);
}

std::uint64_t LaunchCheck::barrier(Group& group) {
    if (gave_up()) return 0;
    settle(group, false);
    const std::uint64_t items = group.items.size();
    std::uint64_t joined = 0;
    for (auto& [item, state] : group.items) {
        const std::uint64_t entries = state.knows.entries();
        if (joined + entries <= kMostJoined) {
            group.knows.learn(state.knows, beside_->segments);
            joined += entries;
        } else {
            group.knows.learn_all(beside_->segments);
            joined = kMostJoined;
        }
        state.knows = {};
        state.segment.reset();
    }
    std::erase_if(group.items,
                  [](const auto& each) { return !each.second.fenced && each.second.read.empty(); });
    ++group.phase;
    if (const auto first = beside_->segments.add_group(group.number, items_, group.phase))
        group.first_segment = *first;
    else
        give_up_all();
    count();
    return joined + items;
}

Moment LaunchCheck::now(const Group& group, std::uint32_t item) const {
    Moment present{group.number, item, group.phase, group.first_segment + item};
    if (const auto state = group.items.find(item); state != group.items.end() && state->second.segment)
        present.segment = *state->second.segment;
    return present;
}

LaunchCheck::ItemState& LaunchCheck::state(Group& group, std::uint32_t item) {
    return group.items[item];
}

bool LaunchCheck::ordered(const Group& group, const Moment& past, const Moment& present) const {
    if (past.group == present.group && (past.item == present.item || past.phase < present.phase)) return true;
    const std::uint64_t launch = past.group >> SideBySide::kGroupBits;
    if (launch != launch_ && beside_->ordered(launch, launch_)) return true;
    if (group.knows.knows(past)) return true;
    const auto state = group.items.find(present.item);
    return state != group.items.end() && state->second.knows.knows(past);
}

Shadow& LaunchCheck::shadow_of(Group& group, std::uint64_t va) {
    return va < kOwnBase ? beside_->memory : group.own;
}

// --- order ---

Released& LaunchCheck::released_at(Group& group, std::uint64_t va) {
    return va < kOwnBase ? beside_->released : group.released;
}

// All that the item knows becomes known to who acquires at `va`.
void LaunchCheck::release(Group& group, std::uint32_t item, std::uint64_t va) {
    Clock& clock = released_at(group, va).to(va / kGranule);
    ItemState& own = state(group, item);
    clock.learn(now(group, item), beside_->segments);
    clock.learn(group.knows, beside_->segments);
    clock.learn(own.knows, beside_->segments);
    // What it does from here on is not known there.
    own.segment = beside_->segments.add_item(group.number, item, group.phase);
    if (!own.segment) no_numbers_ = true;
}

void LaunchCheck::synchronise(Group& group, std::uint32_t item, const DoneAccess& access) {
    if (const Clock* const clock = released_at(group, access.va).at(access.va / kGranule); clock != nullptr) {
        ItemState& own = state(group, item);
        (access.acquires ? own.knows : own.read).learn(*clock, beside_->segments);
    }
    if (access.kind != AccessKind::kAtomic) return;
    const auto own = group.items.find(item);
    const bool fenced = own != group.items.end() && own->second.fenced;
    if (access.releases || fenced) release(group, item, access.va);
}

void LaunchCheck::fence(Group& group, std::uint32_t item, const DoneAccess& access) {
    // `ld; fence r,rw` is what compilers make of a load that acquires.
    constexpr std::uint64_t kAcquire = 0x23;
    settle(group, access.bytes == kAcquire);
    ItemState& own = state(group, item);
    if (access.acquires) own.knows.learn(std::exchange(own.read, {}), beside_->segments);
    if (access.releases) own.fenced = true;
}

void LaunchCheck::settle(Group& group, bool is_atomic) {
    if (!group.load) return;
    const Load load = *group.load;
    group.load.reset();
    // A launch beside this one may have given up for both since.
    if (gave_up()) return;
    if (is_atomic)
        synchronise(group, load.item,
                    {.va = load.va, .bytes = load.bytes, .kind = AccessKind::kAtomicLoad, .acquires = true});
    race(group, load.item, load.pc, load.va, load.bytes,
         is_atomic ? AccessKind::kAtomicLoad : AccessKind::kLoad);
}

// --- accesses ---

void LaunchCheck::access(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t stack,
                         const DoneAccess& access) {
    if (gave_up()) {
        if (!gave_up_) give_up();
        return;
    }
    count();
    if (gave_up()) return;
    check(group, item, pc, stack, access);
    if (no_numbers_) give_up_all();
}

void LaunchCheck::check(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t stack,
                        const DoneAccess& access) {
    if (access.kind == AccessKind::kFence) {
        group.store_follows = access.releases;
        return fence(group, item, access);
    }
    settle(group, false);
    if ((what_ & kCheckMemory) != 0) memory(group, item, pc, stack, access);
    if ((what_ & kCheckRace) == 0) return;
    AccessKind kind = access.kind;
    const bool in_one =
        access.bytes <= kGranule && std::has_single_bit(access.bytes) && access.va % access.bytes == 0;
    // `fence rw,w; sd` is what compilers make of a store that releases.
    const bool released = std::exchange(group.store_follows, false);
    if (kind == AccessKind::kStore && released && in_one) kind = AccessKind::kAtomic;
    if (kind == AccessKind::kLoad && in_one) {
        group.load = Load{item, pc, access.va, access.bytes};
        return;
    }
    race(group, item, pc, access.va, access.bytes, kind);
    if (access.kind == AccessKind::kStore && kind == AccessKind::kAtomic) {
        // What was released there before is not what is read from now on.
        if (access.bytes == kGranule) released_at(group, access.va).overwrite(access.va / kGranule);
        release(group, item, access.va);
    } else if (atomic(kind)) {
        synchronise(group, item, access);
    }
}

void LaunchCheck::memory(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t stack,
                         const DoneAccess& access) {
    const std::uint64_t end = access.va + access.bytes;
    const auto tell = [&](FindingKind kind, std::uint64_t va, std::uint64_t bytes) {
        find({.kind = kind,
              .address = va,
              .bytes = static_cast<std::uint32_t>(bytes),
              .first = {},
              .second = {number_in_launch(group.number), item, pc, access.kind}});
    };
    if (access.va < kOwnBase) {
        const auto problem = memory_ == nullptr ? std::nullopt : memory_->access(asid_, access);
        if (problem)
            tell(problem->outside ? FindingKind::kOutside : FindingKind::kNeverWritten, problem->va,
                 problem->bytes);
        return;
    }
    if (access.va - ORR_LOCAL_BASE < ORR_LOCAL_BYTES) {
        const std::uint64_t limit = ORR_LOCAL_BASE + local_bytes_;
        if (end > limit)
            tell(FindingKind::kOutside, std::max(access.va, limit), end - std::max(access.va, limit));
        return;
    }
    const Range range = stack_at(access.va);
    if (access.va >= range.to) return;
    if (stack > range.from && stack <= range.to && access.va < stack)
        return tell(FindingKind::kBelowStack, access.va, access.bytes);
    if (!group.complete) return;
    const auto written = [&](std::uint64_t va) { return group.own.page(va).written[va % kPageBytes]; };
    if (writes(access.kind)) {
        for (std::uint64_t i = 0; i < access.bytes; ++i)
            written(access.va + i) = true;
        return;
    }
    if (const auto bad = never_written(access, written))
        tell(FindingKind::kNeverWritten, bad->va, bad->bytes);
}

void LaunchCheck::race(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t va,
                       std::uint64_t bytes, AccessKind kind) {
    if ((what_ & kCheckRace) == 0) return;
    const Moment present = now(group, item);
    const unsigned place = beside_->place_of(pc);
    Shadow& shadow = shadow_of(group, va);
    const std::uint64_t end = va + bytes;
    while (va != end) {
        // The largest aligned piece.
        std::uint64_t size = kGranule;
        while (va % size != 0 || size > end - va)
            size /= 2;
        const unsigned part = static_cast<unsigned>(kGranule / size + va % kGranule / size);
        race_in_granule(group, present, shadow.page(va), va, part, place, kind);
        va += size;
    }
}

void LaunchCheck::race_in_granule(Group& group, const Moment& present, PageShadow& page, std::uint64_t va,
                                  unsigned part, unsigned place, AccessKind kind) {
    auto& cells = page.cells[va % kPageBytes / kGranule];
    const Cell fresh(present.segment, part, place, writes(kind), atomic(kind));
    const std::uint8_t bytes = fresh.bytes();
    // Who races with `weak` in the future races with `strong` too, if weak came before strong.
    const auto covers = [](const Cell& strong, const Cell& weak) {
        return (weak.bytes() & ~strong.bytes()) == 0 && (strong.write() || !weak.write()) &&
               (!strong.atomic() || weak.atomic());
    };
    Cell* free = nullptr;
    bool kept = false;
    for (Cell& cell : cells) {
        if (cell.part() == 0) {
            if (free == nullptr) free = &cell;
            continue;
        }
        if ((cell.bytes() & bytes) == 0) continue;
        const bool same = cell.segment() == present.segment;
        if (same && covers(cell, fresh)) {
            kept = true;
            continue;
        }
        bool before = same;
        if (!same) {
            const Moment past = beside_->segments.of(cell.segment());
            before = ordered(group, past, present);
            if (!before && (cell.write() || fresh.write()) && !(cell.atomic() && fresh.atomic())) {
                const auto kind_of = [](const Cell& one) {
                    return one.atomic()  ? one.write() ? AccessKind::kAtomic : AccessKind::kAtomicLoad
                           : one.write() ? AccessKind::kStore
                                         : AccessKind::kLoad;
                };
                const std::uint8_t both = cell.bytes() & bytes;
                find(
                    {.kind = FindingKind::kRace,
                     .address = va / kGranule * kGranule + static_cast<unsigned>(std::countr_zero(both)),
                     .bytes = static_cast<std::uint32_t>(std::popcount(both)),
                     .beside = past.group >> SideBySide::kGroupBits != launch_,
                     .first = {number_in_launch(past.group), past.item, beside_->pc_of(cell.place()),
                               kind_of(cell)},
                     .second = {number_in_launch(present.group), present.item, beside_->pc_of(place), kind}});
            }
        }
        if (before && covers(fresh, cell)) {
            cell = Cell();
            if (free == nullptr) free = &cell;
        }
    }
    if (kept) return;
    if (free != nullptr) {
        *free = fresh;
        return;
    }
    // Of many reads some will do: the latest makes room, then whoever stands where.
    Cell* victim = nullptr;
    for (Cell& cell : cells)
        if (!cell.write()) victim = &cell;
    *(victim != nullptr ? victim : &cells[present.segment % kCells]) = fresh;
}

void LaunchCheck::find(const Finding& finding) {
    const std::uint64_t kinds = static_cast<std::uint64_t>(finding.kind) << 8 |
                                static_cast<std::uint64_t>(finding.first.kind) << 4 |
                                static_cast<std::uint64_t>(finding.second.kind);
    // Which of the two ran first is chance.
    const auto [low, high] = std::minmax(finding.first.pc, finding.second.pc);
    const bool turned = low != finding.first.pc;
    const std::uint64_t sorted = turned ? static_cast<std::uint64_t>(finding.kind) << 8 |
                                              static_cast<std::uint64_t>(finding.second.kind) << 4 |
                                              static_cast<std::uint64_t>(finding.first.kind)
                                        : kinds;
    if (told_.size() >= 16 * kMostFindings || !told_.insert({low, high, sorted}).second) return;
    ++found_;
    if (findings_.size() < kMostFindings) findings_.push_back(finding);
}

std::uint64_t LaunchCheck::shadow_bytes() const {
    return own_bytes() + (beside_->gave_up() ? 0 : beside_->bytes());
}

std::uint64_t LaunchCheck::own_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [number, group] : groups_) {
        bytes += group.own.bytes() + group.knows.bytes() + group.released.bytes();
        for (const auto& [item, state] : group.items)
            bytes += sizeof state + 64 + state.knows.bytes() + state.read.bytes();
    }
    return bytes;
}

void LaunchCheck::count() {
    if (++events_ < kLook) return;
    events_ = 0;
    look();
}

void LaunchCheck::look() {
    if (room_ == nullptr || gave_up()) return;
    room_->used -= std::exchange(taken_, own_bytes());
    room_->used += taken_;
    beside_->look();
    while (room_->used > room_->limit) {
        if (room_->spare && room_->spare()) continue;
        return give_up_all();
    }
}

void LaunchCheck::give_up_all() {
    beside_->give_up();
    give_up();
}

void LaunchCheck::give_up() {
    gave_up_ = true;
    if (beside_.use_count() == 1) beside_->give_up();
    told_.clear();
    for (auto& [number, group] : groups_) {
        group.own = {};
        group.knows = {};
        group.items.clear();
        group.load.reset();
        group.released = {};
    }
    if (room_ != nullptr) room_->used -= std::exchange(taken_, 0);
}

std::uint64_t LaunchCheck::touched_bytes() const {
    std::uint64_t pages = beside_->memory.pages();
    for (const auto& [number, group] : groups_)
        pages += group.own.pages();
    return pages * kPageBytes;
}

void LaunchCheck::measure() {
    const std::uint64_t bytes = shadow_bytes();
    if (bytes <= most_bytes_) return;
    most_bytes_ = bytes;
    most_touched_ = touched_bytes();
}

}  // namespace orrery::emu
