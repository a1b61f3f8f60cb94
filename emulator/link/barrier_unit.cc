#include "emulator/link/barrier_unit.h"

#include <algorithm>
#include <span>
#include <utility>

#include "emulator/memory/semaphore.h"

namespace orrery::emu {

namespace {

// Words to a member that its way may lose while it stands. After that it is told no more: a limit of its
// waits ends them.
constexpr unsigned kMostLost = 16;

}  // namespace

BarrierUnit::BarrierUnit(EventQueue& events, Vram& vram, const Peers& peers, Counters& counters, Hooks hooks)
    : events_(events), vram_(vram), peers_(peers), counters_(counters), hooks_(std::move(hooks)) {
    for (Slot& slot : slots_) {
        for (Member& member : slot.member) {
            member.unit = this;
            member.slot = &slot;
        }
    }
}

void BarrierUnit::set_state(Slot& slot, std::uint32_t state) {
    if (std::exchange(slot.state, state) != state && hooks_.changed) hooks_.changed();
}

std::uint64_t BarrierUnit::states() const {
    std::uint64_t all = 0;
    for (unsigned n = 0; n < slots_.size(); ++n)
        all |= std::uint64_t{slots_[n].state} << 4 * n;
    return all;
}

// --- commands ---

std::uint32_t BarrierUnit::add(std::uint32_t number, std::uint32_t member, std::uint64_t word) {
    const std::uint32_t node = member & (ORR_NODES - 1), there = member >> ORR_BARRIER_SLOT_SHIFT;
    if (number >= slots_.size() || node == 0 || (member & 0xffffu) != node || there >= ORR_BARRIER_SLOTS)
        return ORR_FAULT_PERMISSION;
    Slot& slot = slots_[number];
    const auto members = std::span(slot.member).first(slot.members);
    if (slot.state != ORR_BARRIER_FREE || slot.members == slot.member.size() ||
        std::ranges::find(members, node, &Member::node) != members.end())
        return ORR_FAULT_PERMISSION;
    Member& added = slot.member[slot.members++];
    added.node = node;
    added.there = there;
    added.word = word;
    return ORR_FAULT_NONE;
}

std::uint32_t BarrierUnit::arm(std::uint32_t number, std::uint64_t key, std::uint64_t release,
                               std::uint64_t word) {
    if (number >= slots_.size()) return ORR_FAULT_PERMISSION;
    Slot& slot = slots_[number];
    if (slot.state != ORR_BARRIER_FREE || slot.members == 0) return ORR_FAULT_PERMISSION;
    if (release % sizeof(orr_semaphore) != 0) return ORR_FAULT_MISALIGNED;
    if (!vram_.contains(release, sizeof(orr_semaphore))) return ORR_FAULT_PAGE_RANGE;
    if (hooks_.room_to_arm && !hooks_.room_to_arm()) return ORR_FAULT_PEER_BUSY;
    for (Member& member : std::span(slot.member).first(slot.members)) {
        member.port = peers_.towards(member.node);
        if (member.port == nullptr) return peers_.fault_of(member.node);
        member.route = peers_.route(member.node);
        member.session = member.port->session();
    }
    slot.key = key;
    slot.release = release;
    slot.word = word;
    set_state(slot, ORR_BARRIER_ARMED);
    return ORR_FAULT_NONE;
}

std::uint32_t BarrierUnit::clear(std::uint32_t number, std::uint64_t word) {
    if (number >= slots_.size()) return ORR_FAULT_PERMISSION;
    Slot& slot = slots_[number];
    if (slot.state == ORR_BARRIER_ARMED && word != 0) fail(slot, word, events_.system_now());
    if (slot.state == ORR_BARRIER_ARMED || slot.state == ORR_BARRIER_LOST) raise(slot);
    if (word == 0 || slot.state == ORR_BARRIER_FREE) {
        empty(slot);
        return ORR_FAULT_NONE;
    }
    set_state(slot, ORR_BARRIER_LEAVING);
    tell_all(slot);
    return ORR_FAULT_NONE;
}

void BarrierUnit::reset(bool tell) {
    for (Slot& slot : slots_) {
        if (tell && slot.state == ORR_BARRIER_ARMED) {
            fail(slot, slot.word, events_.system_now());
            tell_all(slot);
        }
        empty(slot);
    }
    events_.cancel(work_);
    events_.cancel(ways_);
}

void BarrierUnit::empty(Slot& slot) {
    for (Member& member : std::span(slot.member).first(slot.members)) {
        stop_waiting(member);
        static_cast<MemberState&>(member) = {};
    }
    static_cast<SlotState&>(slot) = {};
    set_state(slot, ORR_BARRIER_FREE);
}

void BarrierUnit::end_leaving(Slot& slot) {
    const auto members = std::span(slot.member).first(slot.members);
    if (slot.state == ORR_BARRIER_LEAVING && std::ranges::none_of(members, &Member::owes_leave)) empty(slot);
}

// --- arrivals ---

std::uint32_t BarrierUnit::arrive(std::uint64_t number, std::uint64_t value) {
    if (number >= slots_.size()) return ORR_FAULT_PAGE_RANGE;
    Slot& slot = slots_[number];
    if (slot.state != ORR_BARRIER_ARMED && slot.state != ORR_BARRIER_LOST) return ORR_FAULT_PAGE_RANGE;
    // Who waits for the release learns the first cause.
    if (slot.state == ORR_BARRIER_LOST) return ORR_FAULT_NONE;
    const ModelTime now = events_.system_now();
    if ((value & ORR_SEM_FAILED) != 0) {
        fail(slot, value, now);
        return ORR_FAULT_NONE;
    }
    if (value <= slot.arrived) return ORR_FAULT_NONE;
    slot.arrived = value;
    tell_all(slot);
    if (slot.state == ORR_BARRIER_ARMED) count_up(slot, now);
    check(slot, now);
    return ORR_FAULT_NONE;
}

link::Status BarrierUnit::take(const link::Message& message) {
    const auto denied = [this](link::Status why) {
        counters_.add(ORR_CTR_BARRIER_DENIED);
        return why;
    };
    if (message.offset >= slots_.size()) return denied(link::kDenied);
    Slot& slot = slots_[message.offset];
    const auto members = std::span(slot.member).first(slot.members);
    const auto member = std::ranges::find(members, message.source, &Member::node);
    if (slot.state != ORR_BARRIER_ARMED && slot.state != ORR_BARRIER_LOST) {
        // Members that end at about the same time tell each other so when there is nobody to be told any
        // more.
        return message.op == link::kOpLeave ? link::kDone : denied(link::kDenied);
    }
    if (member == members.end()) return denied(link::kDenied);
    if (message.key != slot.key) return denied(link::kBadKey);
    if (message.op == link::kOpLeave) {
        // It knows.
        member->owes_leave = false;
        if (!std::exchange(member->gone, true)) {
            note_order(slot, *member);
            member->cause = message.value;
            member->last = message.compare;
        }
        check(slot, message.arrival_ps);
    } else if (slot.state == ORR_BARRIER_LOST) {
        // It may have been armed after this one had told it.
        member->owes_leave = !member->gone;
        events_.schedule(work_, events_.now());
    } else if (message.value > member->seen) {
        member->seen = message.value;
        count_up(slot, message.arrival_ps);
    }
    return link::kDone;
}

void BarrierUnit::count_up(Slot& slot, ModelTime at) {
    std::uint64_t lowest = slot.arrived;
    for (const Member& member : std::span(slot.member).first(slot.members))
        lowest = std::min(lowest, member.seen);
    if (lowest <= slot.released) return;
    slot.released = lowest;
    slot.released_at = std::max(slot.released_at, at);
    events_.schedule(work_, events_.now());
}

void BarrierUnit::check(Slot& slot, ModelTime at) {
    if (slot.state != ORR_BARRIER_ARMED) return;
    const Member* first = nullptr;
    for (const Member& member : std::span(slot.member).first(slot.members)) {
        const bool missing = member.gone && member.last < slot.arrived;
        if (missing && (first == nullptr || member.order < first->order)) first = &member;
    }
    if (first != nullptr) fail(slot, first->cause, at);
}

void BarrierUnit::fail(Slot& slot, std::uint64_t word, ModelTime at) {
    counters_.add(ORR_CTR_BARRIER_FAILURES);
    slot.cause = word | ORR_SEM_FAILED;
    slot.released_at = std::max(slot.released_at, at);
    set_state(slot, ORR_BARRIER_LOST);
    for (Member& member : std::span(slot.member).first(slot.members))
        member.owes_leave = !member.gone;
    events_.schedule(work_, events_.now());
}

void BarrierUnit::raise(Slot& slot) {
    std::uint8_t* const at = vram_.at(slot.release, sizeof(orr_semaphore));
    const bool higher = slot.released > std::exchange(slot.raised, slot.released);
    if (higher) {
        counters_.add(ORR_CTR_BARRIER_RELEASES);
        raise_semaphore(at, slot.released, slot.released_at);
    }
    const bool failed = slot.cause != 0 && !std::exchange(slot.cause_raised, true);
    if (failed) raise_semaphore(at, slot.cause, slot.released_at);
    if (higher || failed) hooks_.poke(slot.release);
}

void BarrierUnit::on_work(ModelTime) {
    for (Slot& slot : slots_) {
        if (slot.state == ORR_BARRIER_ARMED || slot.state == ORR_BARRIER_LOST) raise(slot);
        tell_all(slot);
    }
}

// --- ways ---

bool BarrierUnit::has_way(const Member& member) const {
    return peers_.route(member.node) == member.route && peers_.towards(member.node) == member.port &&
           member.port->session() == member.session;
}

// By the clock several may be acted on at once: what came first is seen here.
void BarrierUnit::ways_changed() {
    bool any = false;
    for (Slot& slot : slots_) {
        if (slot.state == ORR_BARRIER_FREE) continue;
        for (Member& member : std::span(slot.member).first(slot.members)) {
            if (member.gone || has_way(member)) continue;
            note_order(slot, member);
            any = true;
        }
    }
    if (any) events_.schedule(ways_, hooks_.act_at ? hooks_.act_at() : events_.now());
}

void BarrierUnit::on_ways(ModelTime) {
    for (Slot& slot : slots_) {
        if (slot.state == ORR_BARRIER_FREE) continue;
        for (Member& member : std::span(slot.member).first(slot.members)) {
            if (!member.gone && member.order != 0) lose(slot, member);
        }
        check(slot, events_.system_now());
        end_leaving(slot);
    }
}

void BarrierUnit::note_order(Slot& slot, Member& member) {
    if (member.order == 0) member.order = ++slot.last_order;
}

void BarrierUnit::lose(Slot& slot, Member& member) {
    note_order(slot, member);
    if (!std::exchange(member.gone, true)) {
        member.cause = member.word;
        member.last = slot.released;
    }
    member.owes_leave = false;
}

void BarrierUnit::lost(Slot& slot, Member& member) {
    lose(slot, member);
    check(slot, events_.system_now());
}

void BarrierUnit::tell_all(Slot& slot) {
    for (Member& member : std::span(slot.member).first(slot.members))
        tell(slot, member);
    end_leaving(slot);
}

// First where this card has arrived, which others may need to go on, and then that it goes no further. Once
// it has failed no arrival at a round is told that did not end well here: it would release the others, for as
// long as the word of failure takes to come behind it.
void BarrierUnit::tell(Slot& slot, Member& member) {
    if (slot.state == ORR_BARRIER_FREE || member.waits) return;
    for (;;) {
        const std::uint64_t round = slot.cause == 0 ? slot.arrived : std::max(member.told, slot.released);
        const bool fails = member.told == round;
        if (member.gone || (fails && !member.owes_leave)) return;
        if (!has_way(member)) return lost(slot, member);
        const LinkTold told = member.port->tell(member.node, {.fails = fails,
                                                              .slot = member.there,
                                                              .value = fails ? slot.cause : round,
                                                              .last = fails ? slot.released : 0,
                                                              .key = slot.key});
        if (told.fault != ORR_FAULT_NONE) {
            // That it has lost something is known here only, if the way still stands, so the member is told
            // that the barrier has failed, some times.
            if (!has_way(member) || ++member.lost_words == kMostLost) return lost(slot, member);
            if (slot.state == ORR_BARRIER_ARMED) fail(slot, member.word, events_.system_now());
        } else if (!told.sent) {
            member.waits = true;
            return member.port->wait_for_room(member.node, member.room);
        } else if (fails) {
            member.owes_leave = false;
        } else {
            member.told = round;
        }
    }
}

void BarrierUnit::stop_waiting(Member& member) {
    if (std::exchange(member.waits, false)) member.port->forget(member.room);
    events_.cancel(member.room);
}

void BarrierUnit::Member::on_room(ModelTime) {
    waits = false;
    unit->tell(*slot, *this);
    unit->end_leaving(*slot);
}

}  // namespace orrery::emu
