// A vector core under a debugger (kernel_debugger.h).
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "emulator/engines/vector_core.h"

namespace orrery::emu {

namespace {

// Enough for the begin of an item.
constexpr std::uint64_t kStepBudget = std::uint64_t{1} << 32;
constexpr unsigned kStepGoes = 256;
constexpr std::uint64_t kPageMask = ORR_PAGE_SIZE - 1;
// Of an access that raised a misaligned exception the size is not known.
constexpr unsigned kWidest = 8;

template <class Word>
bool exchange(std::uint8_t* host, std::uint64_t expected, std::uint64_t desired, std::uint64_t& observed) {
    Word old = static_cast<Word>(expected);
    std::atomic_ref(*reinterpret_cast<Word*>(host)).compare_exchange_strong(old, static_cast<Word>(desired));
    observed = old;
    return true;
}

}  // namespace

void VectorCore::debug(KernelDebugger* debugger) {
    debug_ = {};
    debug_.debugger = debugger;
    debug_.trap_told = kNoStep;
    debug_resume(false);
    debug_watch();
}

void VectorCore::debug_resume(bool past_breakpoint) {
    debug_.resumed = past_breakpoint && in_item_ ? hart_.steps() : kNoStep;
}

// Costs the group its time when all go on; until then that stands in ahead_.
void VectorCore::debug_step() {
    const bool at_end = in_item_ && hart_.pc() == ORR_KERNEL_EXIT && item_ + 1 == launch_.items();
    if (at_end || debug_.trap_told == hart_.steps()) return debug_stand(KernelStop::Kind::kStep);
    debug_.step = true;
    ahead_.budget = ahead_.cycles + kStepBudget;
    // A vector load may take several goes.
    for (unsigned go = 0; go < kStepGoes && !debug_.debugger->stopped(); ++go) {
        if (hart_.full()) ahead_.accesses += hart_.take_counts();
        hart_.allow(most_work_);
        execute<false>(ahead_);
        if (ahead_.end != Quantum::End::kMore) break;
        // What goes to other cards goes when all go on: until then this is as far as it comes.
        if (!peers_.idle() && !debug_.debugger->stopped()) debug_stand(KernelStop::Kind::kStep);
    }
    debug_.step = debug_.stepped = false;
    debug_holds(ahead_);
}

void VectorCore::take_steps(Quantum& quantum) {
    quantum.cycles += ahead_.cycles;
    quantum.instructions += ahead_.instructions;
    quantum.items += ahead_.items;
    quantum.accesses += ahead_.accesses;
    quantum.counts += ahead_.counts;
    quantum.launch += ahead_.launch;
    quantum.barriers += ahead_.barriers;
    ahead_ = {};
}

void VectorCore::debug_watch() {
    std::vector<WatchRange> mine;
    if (debug_.debugger != nullptr) {
        for (const KernelWatch& each : debug_.debugger->watches()) {
            if (each.owner == debug_owner(each.range.address)) mine.push_back(each.range);
        }
    }
    if (mine.empty() && !debug_.watches.on()) return;
    debug_.watches.set(mine);
    flush();
}

// Address spaces count from 1.
std::uint32_t VectorCore::debug_owner(std::uint64_t va) const {
    return va >= kOwnBase ? static_cast<std::uint32_t>(csrs_[ORR_CSR_CORE - ORR_CSR_GROUP_X])
                          : launch_.desc.asid;
}

bool VectorCore::debug_breakpoints(std::span<const std::uint64_t> addresses) {
    return hart_.set_breakpoints(addresses);
}

void VectorCore::debug_stand(KernelStop::Kind kind) {
    KernelStop stop = kind == KernelStop::Kind::kWatchpoint ? debug_.hit : KernelStop{};
    stop.kind = kind;
    stop.core = static_cast<std::uint32_t>(csrs_[ORR_CSR_CORE - ORR_CSR_GROUP_X]);
    debug_.debugger->stand(stop);
}

// In place of hart_.run(); kRequested when the core stands still.
StopReason VectorCore::run_debugged(std::uint64_t budget) {
    KernelDebugger& debugger = *debug_.debugger;
    using Kind = KernelStop::Kind;
    const auto stand = [&](Kind kind) {
        debug_stand(kind);
        return StopReason::kRequested;
    };
    // A step is one of this core alone: what it belongs to is looked at when all go on.
    if (!debug_.step && debugger.new_launch(launch_.serial)) return stand(Kind::kLaunch);
    // The step was the last of an item, and this is where the next begins.
    if (debug_.stepped) return stand(Kind::kStep);
    // run() never stops at its first instruction.
    if (!debug_.step && debugger.at_breakpoint(hart_.pc()) && hart_.steps() != debug_.resumed)
        return stand(Kind::kBreakpoint);
    debug_.watch_hit = false;
    // An item at its end, or at a barrier, hands its turn on first.
    debug_.stepped = debug_.step;
    const std::uint64_t before = hart_.steps();
    StopReason reason = hart_.run(debug_.step ? 1 : budget);
    if (reason == StopReason::kTrap) reason = run_past_watch(reason);
    // What else the instruction met comes again when the core goes on.
    if (debug_.watch_hit) return stand(Kind::kWatchpoint);
    if (reason == StopReason::kBreakpoint) return stand(Kind::kBreakpoint);
    if (debug_.step && reason != StopReason::kTrap && hart_.steps() != before) return stand(Kind::kStep);
    return reason;
}

// A watched page refuses misaligned accesses that memory allows: such an instruction gets the page as it is.
StopReason VectorCore::run_past_watch(StopReason reason) {
    const Trap trap = hart_.trap();
    const bool load = trap.cause == Cause::kLoadMisaligned;
    if ((!load && trap.cause != Cause::kStoreMisaligned) ||
        (!debug_.watches.covers(trap.tval) && !debug_.watches.covers(trap.tval + kWidest - 1)))
        return reason;
    debug_.watches.suspend(true);
    hart_.flush_pages();
    reason = hart_.run(1);
    debug_.watches.suspend(false);
    hart_.flush_pages();
    if (reason != StopReason::kTrap) debug_look(trap.tval, kWidest, load);
    return reason;
}

void VectorCore::debug_look(std::uint64_t va, unsigned size, bool read) {
    if (!debug_.watches.hit(va, size, read)) return;
    debug_.watch_hit = true;
    debug_.hit.address = va;
    debug_.hit.read = read;
    hart_.request_stop();
}

// The core stands still, if only because the kernel would end here: its debugger sees the item first.
bool VectorCore::debug_holds(Quantum& quantum) {
    if (quantum.end != Quantum::End::kStopped) return debug_.debugger->stopped();
    if (debug_.trap_told == hart_.steps()) return false;
    debug_.trap_told = hart_.steps();
    debug_.debugger->stand({.kind = KernelStop::Kind::kTrap,
                            .core = static_cast<std::uint32_t>(csr(ORR_CSR_CORE)),
                            .status = quantum.status,
                            .fault = quantum.fault});
    quantum.end = Quantum::End::kMore;
    quantum.status = ORR_DONE_OK;
    quantum.fault = quantum.detail = quantum.other = 0;
    return true;
}

// --- accesses to watched pages ---

PageRef VectorCore::behind_watch(std::uint64_t va, Access access) {
    return va >= kOwnBase ? translate_own(va, access) : translate_card(va, access);
}

// Of a page that is not watched it is known already.
bool VectorCore::is_peer(std::uint64_t va, Access access) {
    return !debug_.watches.covers(va) || behind_watch(va, access).kind == PageKind::kMmio;
}

bool VectorCore::load(std::uint64_t va, unsigned size, std::uint64_t& value) {
    if (is_peer(va, Access::kLoad)) {
        const bool done = load_peer(va, size, value);
        if (done) debug_look(va, size, true);
        return done;
    }
    const PageRef page = behind_watch(va, Access::kLoad);
    if (page.kind != PageKind::kMemory || (page.rights & kPageRead) == 0) return false;
    value = 0;
    std::memcpy(&value, page.host + (va & kPageMask), size);
    debug_look(va, size, true);
    return true;
}

bool VectorCore::store(std::uint64_t va, unsigned size, std::uint64_t value) {
    if (is_peer(va, Access::kStore)) {
        debug_look(va, size, false);
        return store_peer(va, size, value);
    }
    const PageRef page = behind_watch(va, Access::kStore);
    if (page.kind != PageKind::kMemory || (page.rights & kPageWrite) == 0) return false;
    std::memcpy(page.host + (va & kPageMask), &value, size);
    debug_look(va, size, false);
    return true;
}

bool VectorCore::compare_exchange(std::uint64_t va, unsigned size, std::uint64_t expected,
                                  std::uint64_t desired, std::uint64_t& observed) {
    if (is_peer(va, Access::kStore)) {
        const bool done = atomic_peer(
            va, {.function = ORR_ATOMIC_COMPARE_SWAP, .bytes = size, .operand = desired, .compare = expected},
            observed);
        if (done) debug_look(va, size, true);
        if (done) debug_look(va, size, false);
        return done;
    }
    const PageRef page = behind_watch(va, Access::kStore);
    if (page.kind != PageKind::kMemory || (page.rights & kPageWrite) == 0) return false;
    if ((page.rights & kPageNoAtomics) != 0) {
        atomic_refused(va);
        return false;
    }
    std::uint8_t* const host = page.host + (va & kPageMask);
    debug_look(va, size, true);
    debug_look(va, size, false);
    return size == 4 ? exchange<std::uint32_t>(host, expected, desired, observed)
                     : exchange<std::uint64_t>(host, expected, desired, observed);
}

// --- what a debugger sees ---

KernelPlace VectorCore::debug_place() const {
    KernelPlace place{.asid = launch_.desc.asid, .entry = launch_.desc.entry};
    for (unsigned axis = 0; axis < 3; ++axis) {
        place.group[axis] = csrs_[axis];
        place.item[axis] = csrs_[ORR_CSR_ITEM_X - ORR_CSR_GROUP_X + axis];
    }
    return place;
}

HartState VectorCore::debug_state() const {
    HartState state = hart_.state();
    if (in_item_) return state;
    // As begin_item() makes it.
    state = {};
    if ((waits_ & ORR_SAVE_RELEASED) != 0) {
        state.pc = items_[item_].pc;
        state.x[kStackPointer] = items_[item_].sp;
        state.fcsr = items_[item_].fcsr;
    } else {
        state.pc = launch_.desc.entry;
        state.x[kArgs] = launch_.desc.args;
        state.x[kStackPointer] = stack_top();
        state.x[kReturnAddress] = ORR_KERNEL_EXIT;
    }
    return state;
}

VectorState VectorCore::debug_vectors() const {
    return in_item_ ? hart_.vector_state() : VectorState{};
}

std::uint64_t VectorCore::debug_csr(std::uint32_t number) const {
    return number - ORR_CSR_GROUP_X < csrs_.size() ? csrs_[number - ORR_CSR_GROUP_X] : 0;
}

bool VectorCore::set_debug_state(const HartState& state) {
    if (!in_item_) return false;
    HartState now = state;
    now.steps = hart_.steps();
    if (now.pc != hart_.pc()) peers_.forget_atomic();
    // set_state() leaves the vectors alone.
    hart_.set_state(now);
    stacks_mapped_ = {};
    debug_.trap_told = kNoStep;
    return true;
}

bool VectorCore::set_debug_vectors(const VectorState& state) {
    if (!in_item_ || hart_.config().vlen == 0) return false;
    hart_.set_vector_state(state);
    debug_.trap_told = kNoStep;
    return true;
}

bool VectorCore::debug_memory(
    std::uint64_t va, std::size_t bytes, Access access,
    const std::function<void(std::uint8_t* host, std::size_t at, std::size_t bytes)>& use) {
    if (va + bytes < va) return false;
    // Nothing is written unless all may be.
    for (const bool look_only : {true, false}) {
        for (std::size_t at = 0; at < bytes;) {
            const std::uint64_t here = va + at;
            const std::size_t some = std::min<std::size_t>(bytes - at, ORR_PAGE_SIZE - (here & kPageMask));
            const PageRef page = debug_page(here, access);
            const std::uint8_t needed = access == Access::kStore ? kPageWrite : kPageRead;
            if (page.kind != PageKind::kMemory || (page.rights & needed) == 0) return false;
            if (!look_only) use(page.host + (here & kPageMask), at, some);
            at += some;
        }
    }
    if (access == Access::kStore) hart_.flush_code();
    return true;
}

// Without a trace in counters, caches and what a fault tells.
PageRef VectorCore::debug_page(std::uint64_t va, Access access) {
    const MmuFault kept = fault_;
    const ItemStacks mapped = stacks_mapped_;
    debug_peeks_ = true;
    const PageRef page = behind_watch(va, access);
    debug_peeks_ = false;
    fault_ = kept;
    stacks_mapped_ = mapped;
    return page;
}

}  // namespace orrery::emu
