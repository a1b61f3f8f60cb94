#include "emulator/engines/vector_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/engines/ahead/stretch.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kStackBottom = ORR_STACK_TOP - ORR_STACK_BYTES;
// A page of code that the hart asks for costs the host several times what another page does.
constexpr std::uint64_t kFetchLookups = 8;
constexpr std::uint64_t kLookupWork = 2;
// What a check costs for an access, for each kCheckBytes of it, and for what may order accesses.
constexpr std::uint64_t kCheckWork = 1, kCheckBytes = 16, kOrderWork = 32, kJoinWork = 2;
constexpr std::uint64_t kEcallBytes = 4;
constexpr std::uint64_t kItemStacksEnd =
    ORR_ITEM_STACKS + std::uint64_t{ORR_SAVE_ITEMS} * ORR_ITEM_STACK_STRIDE;

Config hart_config(std::uint32_t number, std::uint32_t vlen, std::uint32_t datapath,
                   const MemoryCosts& memory, bool checked, std::span<const std::uint64_t> csrs) {
    Config config;
    config.first_csr_word = ORR_CSR_GROUP_X;
    config.csr_words = csrs;
    config.hart_id = number;
    config.fp = true;
    config.vlen = vlen;
    config.vector_datapath = datapath;
    config.memory = memory;
    config.tells_accesses = checked;
    config.tells_acquires = true;
    config.pause_cycles = ORR_PAUSE_CYCLES;
    config.trap_to_host = true;
    config.has_exit_pc = true;
    config.exit_pc = ORR_KERNEL_EXIT;
    config.code_pages = 16;
    return config;
}

std::uint64_t whole_pages(std::uint64_t bytes) {
    return (bytes + ORR_PAGE_SIZE - 1) / ORR_PAGE_SIZE * ORR_PAGE_SIZE;
}

}  // namespace

struct VectorCore::OwnMemory {
    alignas(ORR_PAGE_SIZE) std::uint8_t stack[ORR_STACK_BYTES];
    alignas(ORR_PAGE_SIZE) std::uint8_t local[ORR_LOCAL_BYTES];
};

VectorCore::VectorCore(std::uint32_t number, std::uint32_t vlen, std::uint32_t datapath, std::uint64_t hz,
                       std::uint64_t item_cycles, std::uint64_t most_work, const MemoryCosts& memory,
                       bool checked, Mmu& mmu, PeerAccess& peers, CodeStore* code)
    : hz_(hz),
      item_cycles_(std::max<std::uint64_t>(item_cycles, 1)),
      most_work_(std::max<std::uint64_t>(most_work, 1)),
      mmu_(mmu),
      peers_(peers),
      memory_(std::make_unique<OwnMemory>()),
      hart_(hart_config(number, vlen, datapath, memory, checked, csrs_), *this, code) {
    csr(ORR_CSR_CORE) = number;
}

VectorCore::~VectorCore() = default;

void VectorCore::flush() {
    hart_.flush_pages();
    generation_ = mmu_.generation();
    stacks_mapped_ = {};
}

void VectorCore::take(const KernelLaunch& launch, std::uint64_t group, std::uint32_t place) {
    const bool other_space = launch.desc.asid != launch_.desc.asid;
    const std::uint64_t local = whole_pages(launch.desc.local_bytes);
    // Another process's stack must not be readable, nor its pages reachable. A new root may mean a new
    // process.
    if (other_space || stack_generation_ != mmu_.generation()) {
        std::memset(memory_->stack, 0, sizeof memory_->stack);
        stack_generation_ = mmu_.generation();
    }
    if (other_space || local < local_mapped_) {
        flush();
    } else if (launch.serial != launch_.serial) {
        // Somebody may have written new code where this core ran old one.
        hart_.flush_code();
    }
    local_mapped_ = local;
    std::memset(memory_->local, 0, local);
    enter(launch, group, place);
    if (launch_.check != nullptr) checked_ = &launch_.check->begin(group);
}

void VectorCore::enter(const KernelLaunch& launch, std::uint64_t group, std::uint32_t place) {
    // So that what a group asks of memory does not depend on who had the core before.
    hart_.forget_lines(launch.desc.asid);
    launch_ = launch;
    checked_ = nullptr;
    number_in_grid_ = group;
    place_ = place;
    waits_ = 0;
    ahead_ = {};
    debug_.trap_told = kNoStep;
    if (debug_.debugger != nullptr) debug_watch();
    if (stacks_mapped_ != ItemStacks{} && stacks_mapped_ != item_stacks()) flush();
    if (launch_.desc.item_stacks != 0 && stacks_named_ != item_stacks()) {
        hart_.forget_own_names();
        stacks_named_ = item_stacks();
    }
    const orr_desc_kernel& desc = launch_.desc;
    const std::uint64_t row = group < desc.grid_x ? 0 : group / desc.grid_x;
    csr(ORR_CSR_GROUP_X) = group - row * desc.grid_x;
    csr(ORR_CSR_GROUP_Y) = row < desc.grid_y ? row : row % desc.grid_y;
    csr(ORR_CSR_GROUP_Z) = row < desc.grid_y ? 0 : row / desc.grid_y;
    csr(ORR_CSR_GRID_X) = desc.grid_x;
    csr(ORR_CSR_GRID_Y) = desc.grid_y;
    csr(ORR_CSR_GRID_Z) = desc.grid_z;
    csr(ORR_CSR_BLOCK_X) = desc.block_x;
    csr(ORR_CSR_BLOCK_Y) = desc.block_y;
    csr(ORR_CSR_BLOCK_Z) = desc.block_z;
    go_to_item(0);
    in_item_ = false;
}

void VectorCore::go_to_item(std::uint32_t item) {
    const orr_desc_kernel& desc = launch_.desc;
    item_ = item;
    const std::uint32_t row = item == 0 ? 0 : item / desc.block_x;
    csr(ORR_CSR_ITEM_X) = item - row * desc.block_x;
    csr(ORR_CSR_ITEM_Y) = row == 0 ? 0 : row % desc.block_y;
    csr(ORR_CSR_ITEM_Z) = row == 0 ? 0 : row / desc.block_y;
}

void VectorCore::next_item() {
    ++item_;
    if (++csr(ORR_CSR_ITEM_X) != launch_.desc.block_x) return;
    csr(ORR_CSR_ITEM_X) = 0;
    if (++csr(ORR_CSR_ITEM_Y) != launch_.desc.block_y) return;
    csr(ORR_CSR_ITEM_Y) = 0;
    ++csr(ORR_CSR_ITEM_Z);
}

SavedGroup VectorCore::save() const {
    SavedGroup saved;
    orr_save_group& record = saved.record;
    record.group = number_in_grid_;
    record.item = item_;
    record.in_item = in_item_ ? 1 : 0;
    record.place = place_;
    record.waits = waits_;
    if (waits_ != 0) {
        saved.items = items_;
        // What will not be used again would only tell of old runs.
        const bool below = (waits_ & ORR_SAVE_WAITING) != 0, above = (waits_ & ORR_SAVE_RELEASED) != 0;
        for (std::uint32_t i = 0; i < saved.items.size(); ++i) {
            const bool used = i < item_ ? below : above && (i > item_ || !in_item_);
            if (!used) saved.items[i] = {};
        }
    }
    if ((waits_ & ORR_SAVE_WAITING) != 0) record.barrier = barrier_;
    const auto put_pages = [&](const std::uint8_t* from, std::uint64_t bytes) {
        std::uint32_t bits = 0;
        for (std::uint64_t at = 0; at < bytes; at += kSavePage) {
            // What is zero everywhere need not be kept: a core that loads a group starts from zeros.
            const std::uint8_t* const page = from + at;
            if (page[0] == 0 && std::memcmp(page, page + 1, kSavePage - 1) == 0) continue;
            bits |= 1u << (at / kSavePage);
            saved.pages.insert(saved.pages.end(), page, page + kSavePage);
        }
        return bits;
    };
    if (in_item_) {
        record.hart = saved_hart(hart_.state());
        if (hart_.vector_dirty()) saved.keep_vectors(hart_.vector_state(), hart_.config().vlen);
    }
    // Item 0 goes on using it while others wait at a barrier.
    if (in_item_ || waits_ != 0) {
        record.stack_pages = put_pages(memory_->stack, sizeof memory_->stack);
    }
    if (in_item_ || item_ != 0 || waits_ != 0) record.local_pages = put_pages(memory_->local, local_mapped_);
    return saved;
}

void VectorCore::restore(const KernelLaunch& launch, const SavedGroup& saved) {
    const orr_save_group& record = saved.record;
    flush();
    stack_generation_ = mmu_.generation();
    local_mapped_ = whole_pages(launch.desc.local_bytes);
    const std::uint8_t* from = saved.pages.data();
    const auto take_pages = [&](std::uint8_t* to, std::uint64_t bytes, std::uint32_t bits) {
        for (std::uint64_t at = 0; at < bytes; at += kSavePage) {
            if ((bits >> (at / kSavePage) & 1) != 0) {
                std::memcpy(to + at, from, kSavePage);
                from += kSavePage;
            } else {
                std::memset(to + at, 0, kSavePage);
            }
        }
    };
    take_pages(memory_->stack, sizeof memory_->stack, record.stack_pages);
    take_pages(memory_->local, sizeof memory_->local, record.local_pages);
    enter(launch, record.group, record.place);
    if (launch_.check != nullptr) checked_ = &launch_.check->go_on(record.group);
    go_to_item(record.item);
    waits_ = record.waits;
    barrier_ = record.barrier;
    if (waits_ != 0) items_ = saved.items;
    in_item_ = record.in_item != 0;
    if (!in_item_) return;
    HartState state = hart_of(record.hart);
    state.steps = hart_.steps();  // this core's own history
    hart_.set_state(state);
    if (hart_.config().vlen != 0) hart_.set_vector_state(saved.vectors());
}

void VectorCore::start_item() {
    hart_.restart(launch_.desc.entry);
    hart_.set_x(kArgs, launch_.desc.args);
    if (checked_ != nullptr) launch_.check->start_item(*checked_, (waits_ & ORR_SAVE_WAITING) == 0);
    hart_.set_x(kStackPointer, stack_top());
    hart_.set_x(kReturnAddress, ORR_KERNEL_EXIT);
}

std::uint64_t VectorCore::stack_top() const {
    const bool others_wait = (waits_ & ORR_SAVE_WAITING) != 0;
    return others_wait ? ORR_ITEM_STACKS + (item_ + 1ull) * ORR_ITEM_STACK_STRIDE - ORR_ITEM_SLOT_BYTES
                       : ORR_STACK_TOP;
}

void VectorCore::begin_item() {
    in_item_ = true;
    if ((waits_ & ORR_SAVE_RELEASED) == 0) return start_item();
    const orr_save_item& item = items_[item_];
    // All that a barrier does not keep is cleared: what it is must not depend on who had the core meanwhile.
    hart_.restart(item.pc);
    hart_.set_x(kStackPointer, item.sp);
    hart_.set_fcsr(item.fcsr);
}

bool VectorCore::trap(Quantum& quantum, std::uint32_t cause, std::uint64_t detail, std::uint64_t other) {
    quantum.end = Quantum::End::kStopped;
    quantum.status = ORR_DONE_TRAP;
    quantum.fault = cause;
    quantum.detail = detail;
    quantum.other = other;
    return false;
}

bool VectorCore::call(Quantum& quantum) {
    quantum.cycles += hart_.finish_vectors();
    const std::uint64_t number = hart_.x(kCallNumber);
    if (number == ORR_CALL_BARRIER) return wait_at_barrier(quantum);
    if (number == ORR_CALL_ASSERT) return trap(quantum, ORR_TRAP_ASSERT, hart_.x(kArgs));
    return trap(quantum, static_cast<std::uint32_t>(Cause::kEcall), hart_.pc());
}

bool VectorCore::wait_at_barrier(Quantum& quantum) {
    const std::uint64_t barrier = hart_.x(kArgs);
    const std::uint32_t items = launch_.items();
    const bool first = item_ == 0;
    if (!first && (waits_ & ORR_SAVE_WAITING) == 0) return trap(quantum, ORR_TRAP_BARRIER_LATE, barrier);
    if (!first && barrier != barrier_) return trap(quantum, ORR_TRAP_BARRIER_OTHER, barrier, barrier_);
    acquired();
    const std::uint64_t behind = hart_.pc() + kEcallBytes;
    ++quantum.cycles;
    ++quantum.instructions;
    ++quantum.counts.of(ScalarClass::kSystem);
    ++quantum.barriers;
    hart_.advance_cycles(1);
    if (items == 1) {
        hart_.set_pc(behind);
        return true;
    }
    if (launch_.desc.item_stacks == 0) return trap(quantum, ORR_TRAP_BARRIER_STACKS, hart_.pc());
    if (first) {
        items_.resize(items);
        barrier_ = barrier;
        waits_ |= ORR_SAVE_WAITING;
    }
    items_[item_] = {behind, hart_.x(kStackPointer), hart_.fcsr(), 0};
    in_item_ = false;
    if (item_ + 1 < items) {
        next_item();
    } else {
        waits_ = ORR_SAVE_RELEASED;
        if (checked_ != nullptr) hart_.spend(kOrderWork + launch_.check->barrier(*checked_) * kJoinWork);
        go_to_item(0);
    }
    return true;
}

bool VectorCore::end_item(Quantum& quantum) {
    quantum.cycles += hart_.finish_vectors();
    if ((waits_ & ORR_SAVE_WAITING) != 0) return trap(quantum, ORR_TRAP_BARRIER_ENDED, barrier_);
    in_item_ = false;
    ++quantum.items;
    if (checked_ != nullptr) launch_.check->end_item(*checked_, item_);
    if (item_ + 1 == launch_.items()) {
        if (checked_ != nullptr) launch_.check->end(*std::exchange(checked_, nullptr));
        quantum.end = Quantum::End::kGroupDone;
        return false;
    }
    next_item();
    return true;
}

bool VectorCore::compute(Quantum& quantum) {
    hart_.follow(mmu_.invalidations());
    if (generation_ != mmu_.generation()) flush();
    if (ahead_.cycles != 0) take_steps(quantum);
    began_ = quantum.began;
    stood_cycles_ = 0;
    lookups_ = 0;
    hart_.allow(most_work_);
    held_ = false;
    const bool sampled = sampler_ != nullptr && debug_.debugger == nullptr;
    bool whole = sampled ? execute<true>(quantum) : execute<false>(quantum);
    if (sampled) hart_.stop_for_memory(false);
    stood_cycles_ = quantum.cycles;
    if (debug_.debugger != nullptr && debug_holds(quantum)) whole = false;
    if (whole) {
        quantum.accesses += hart_.take_counts();
        quantum.counts += hart_.take_work();
    }
    quantum.lookups += lookups_;
    quantum.work += hart_.spent();
    return whole;
}

void VectorCore::sample(ModelTime first, ModelTime period) {
    if (period == 0) return sampler_.reset();
    if (sampler_ == nullptr) sampler_ = std::make_unique<PcSampler>();
    sampler_->begin(first, period, hz_);
}

void VectorCore::sample_cycles(ModelTime first, ModelTime last) {
    if (sampler_ == nullptr) sampler_ = std::make_unique<PcSampler>();
    sampler_->begin_cycles(first, last, hz_);
}

// In place of hart_.run(): no further than the next moment at which somebody wants to know where the core is.
StopReason VectorCore::run_sampled(const Quantum& quantum) {
    const std::uint64_t at = quantum.cycles, due = std::max(sampler_->due(), at), pc = hart_.pc();
    hart_.stop_for_memory(true);
    const StopReason reason =
        hart_.run(std::min(quantum.budget - at, due == at ? std::uint64_t{1} : due - at));
    const std::uint64_t end = at + (hart_.cycles() - began_hart_cycles_);
    if (end > due) {
        const Hart::Last last = hart_.last();
        const std::uint64_t which = due == at ? pc : last.pc;
        // It waits first.
        if (last.waited) sampler_->stay(end - 1, which, ORR_PC_LATENCY);
        if (last.paused) sampler_->stay(end - 1, which, ORR_PC_PAUSE);
        sampler_->stay(end, which, ORR_PC_ISSUE);
    }
    sampler_->asked(hart_.counts(), hart_.asked_at());
    return reason;
}

template <bool kSampled>
bool VectorCore::execute(Quantum& quantum) {
    const Hart::Burst burst(hart_);
    while (quantum.cycles < quantum.budget) {
        // What goes to other cards goes at its time.
        quantum.full = hart_.full() || !peers_.idle();
        if (quantum.full) return true;
        if (!hart_.may_go_on()) return false;
        if (!in_item_) {
            begin_item();
            quantum.cycles += item_cycles_;
            quantum.launch += item_cycles_;
            if constexpr (kSampled) sampler_->stay(quantum.cycles, hart_.pc(), ORR_PC_LAUNCH);
            if (quantum.cycles >= quantum.budget) break;
        }
        began_cycles_ = quantum.cycles;
        began_hart_cycles_ = hart_.cycles();
        const std::uint64_t began_steps = hart_.steps();
        const std::uint64_t left = quantum.budget - quantum.cycles;
        const StopReason reason = kSampled                     ? run_sampled(quantum)
                                  : debug_.debugger == nullptr ? hart_.run(left)
                                                               : run_debugged(left);
        quantum.cycles += hart_.cycles() - began_hart_cycles_;
        quantum.instructions += hart_.steps() - began_steps;
        if (debug_.debugger != nullptr && debug_.debugger->stopped()) return false;
        if (reason == StopReason::kHeld && !peers_.idle()) {
            ++quantum.cycles;
            hart_.advance_cycles(1);
            if constexpr (kSampled) sampler_->stay(quantum.cycles, hart_.pc(), ORR_PC_ISSUE);
            continue;
        }
        if (reason == StopReason::kHeld) {
            held_ = true;
            return false;
        }
        // An item that ends with the instruction at which a go ends has ended all the same.
        const bool exit = reason == StopReason::kExit ||
                          (reason == StopReason::kRequested && hart_.pc() == ORR_KERNEL_EXIT);
        if (exit) {
            const bool goes_on = end_item(quantum);
            if constexpr (kSampled) sampler_->stay(quantum.cycles, hart_.jumped_from(), ORR_PC_ISSUE);
            if (!goes_on) return true;
        } else if (reason == StopReason::kBudget || reason == StopReason::kRequested) {
            continue;
        } else if (reason == StopReason::kTrap && hart_.trap().cause == Cause::kEcall) {
            const std::uint64_t at = hart_.pc(), arrived = quantum.barriers;
            const bool goes_on = call(quantum);
            if constexpr (kSampled) {
                // Its own cycle is the last.
                sampler_->stay(quantum.cycles - (quantum.barriers - arrived), at, ORR_PC_ISSUE);
                sampler_->stay(quantum.cycles, at, ORR_PC_BARRIER);
            }
            if (!goes_on) return true;
        } else {
            stop(quantum, reason);
            return true;
        }
    }
    return true;
}

template bool VectorCore::execute<false>(Quantum& quantum);

// Why a kernel ends before its time.
void VectorCore::stop(Quantum& quantum, StopReason reason) {
    quantum.end = Quantum::End::kStopped;
    quantum.status = ORR_DONE_TRAP;
    if (reason != StopReason::kTrap) {
        // WFI: a work-item has nothing to wait for.
        quantum.fault = static_cast<std::uint64_t>(Cause::kIllegal);
        quantum.detail = hart_.pc();
        return;
    }
    const Trap& trap = hart_.trap();
    const auto fault = [&](std::uint64_t code) {
        quantum.status = ORR_DONE_FAULT;
        quantum.fault = code;
        quantum.detail = trap.tval;
        quantum.other = trap.pc;
    };
    switch (trap.cause) {
        case Cause::kFetchAccess:
        case Cause::kLoadAccess:
        case Cause::kStoreAccess:
            return fault(fault_.code);
        case Cause::kLoadMisaligned:
        case Cause::kStoreMisaligned:
            return fault(ORR_FAULT_MISALIGNED);
        default:
            quantum.fault = static_cast<std::uint64_t>(trap.cause);
            quantum.detail = trap.pc;
            return;
    }
}

PageRef VectorCore::translate_own(std::uint64_t va, Access access) {
    if (access == Access::kFetch) {
        fault_ = {ORR_FAULT_PERMISSION, va};
        return PageRef::fault();
    }
    const std::uint64_t page = va & ~std::uint64_t{ORR_PAGE_SIZE - 1};
    const std::uint8_t rights = kPageRead | kPageWrite;
    if (page - kStackBottom < ORR_STACK_BYTES) {
        return PageRef::memory(memory_->stack + (page - kStackBottom), rights);
    }
    if (page - ORR_LOCAL_BASE < whole_pages(launch_.desc.local_bytes)) {
        return PageRef::memory(memory_->local + (page - ORR_LOCAL_BASE), rights);
    }
    if (va >= ORR_ITEM_STACKS && va < kItemStacksEnd) return translate_item_stack(va, access);
    fault_ = {va >> ORR_VA_BITS == 0 ? ORR_FAULT_NOT_MAPPED : ORR_FAULT_NON_CANONICAL, va};
    return PageRef::fault();
}

VectorCore::ItemStacks VectorCore::item_stacks() const {
    const std::uint32_t items = launch_.items(), pages = launch_.desc.item_stack_pages;
    return {launch_.desc.item_stacks + place_ * std::uint64_t{items} * pages * ORR_PAGE_SIZE, items, pages};
}

PageRef VectorCore::translate_item_stack(std::uint64_t va, Access access) {
    const std::uint64_t bytes = std::uint64_t{launch_.desc.item_stack_pages} * ORR_PAGE_SIZE;
    const std::uint64_t item = (va - ORR_ITEM_STACKS) / ORR_ITEM_STACK_STRIDE;
    const std::uint64_t below_top = ORR_ITEM_STACK_STRIDE - (va - ORR_ITEM_STACKS) % ORR_ITEM_STACK_STRIDE;
    if (item >= launch_.items() || below_top > bytes) {
        fault_ = {ORR_FAULT_NOT_MAPPED, va};
        return PageRef::fault();
    }
    stacks_mapped_ = item_stacks();
    PageRef page = translate_card(stacks_mapped_.va + (item + 1) * bytes - below_top, access);
    if (page.kind == PageKind::kMmio) {
        fault_ = {ORR_FAULT_PERMISSION, va};
        return PageRef::fault();
    }
    page.rights &= kPageRead | kPageWrite | kPageNoAtomics;
    page.huge = page.whole = false;  // of these addresses
    return page;
}

PageRef VectorCore::translate(std::uint64_t va, Access access) {
    const std::uint64_t lookups = access == Access::kFetch ? kFetchLookups : 1;
    lookups_ += lookups;
    hart_.spend(lookups * kLookupWork);
    if (debug_.watches.covers(va) && access != Access::kFetch) return PageRef::mmio();
    return va >= kOwnBase ? translate_own(va, access) : translate_card(va, access);
}

PageRef VectorCore::translate_card(std::uint64_t va, Access access) {
    if (stretch_ != nullptr) {
        const PageRef page = translate_ahead(va, access);
        // Computed once more, a group may take another way: the host may have written what it reads.
        if (computes_ahead_ || page.kind != PageKind::kFault) return page;
    }
    const Access kind = access == Access::kLoad ? Access::kPull : access;
    const auto found = debug_peeks_ ? mmu_.peek_page(launch_.desc.asid, va, kind)
                                    : mmu_.translate_page(launch_.desc.asid, va, kind);
    if (!found) {
        fault_ = found.error();
        return PageRef::fault();
    }
    if (found->target == ORR_TARGET_PEER) return PageRef::mmio();
    const bool vram = found->target != ORR_TARGET_HOST;
    return PageRef::memory(found->host, found->rights, vram ? PagePlace::kVram : PagePlace::kHost,
                           found->huge, vram && found->huge && debug_.debugger == nullptr);
}

bool VectorCore::comes_of_peer(PeerAccess::Got got) {
    if (got == PeerAccess::Got::kNotYet) hart_.hold();
    if (got == PeerAccess::Got::kFault) fault_ = peers_.fault();
    return got == PeerAccess::Got::kHere;
}

bool VectorCore::load_peer(std::uint64_t va, unsigned size, std::uint64_t& value) {
    const bool here = comes_of_peer(peers_.load(hart_.steps(), va, size, value));
    // It was asked for ahead, and so is what follows, at its time.
    if (here && !peers_.idle()) hart_.limit(0);
    return here;
}

bool VectorCore::atomic_peer(std::uint64_t va, const LinkAtomic& what, std::uint64_t& old) {
    return comes_of_peer(peers_.atomic(hart_.steps(), va, what, old));
}

bool VectorCore::store_peer(std::uint64_t va, unsigned size, std::uint64_t value) {
    peers_.store(va, size, value, hart_.pc());
    hart_.limit(0);
    return true;
}

std::optional<bool> VectorCore::amo(std::uint64_t va, unsigned size, AmoFunction function,
                                    std::uint64_t operand, std::uint64_t& old) {
    if (!is_peer(va, Access::kStore)) return std::nullopt;
    static constexpr std::array<std::uint32_t, 9> kFunctions = {
        ORR_ATOMIC_SWAP, ORR_ATOMIC_ADD, ORR_ATOMIC_XOR,  ORR_ATOMIC_AND, ORR_ATOMIC_OR,
        ORR_ATOMIC_MIN,  ORR_ATOMIC_MAX, ORR_ATOMIC_UMIN, ORR_ATOMIC_UMAX};
    static_assert(kFunctions.size() == std::to_underlying(AmoFunction::kMaxu) + 1);
    const LinkAtomic what{
        .function = kFunctions[std::to_underlying(function)], .bytes = size, .operand = operand};
    const bool done = atomic_peer(va, what, old);
    if (done) debug_look(va, size, true);
    if (done) debug_look(va, size, false);
    return done;
}

bool VectorCore::foresee(std::uint64_t va, std::uint64_t bytes, bool row) {
    return va >= kOwnBase || peers_.foresee(va, bytes, row);
}

void VectorCore::acquired() {
    // Who computes ahead has begun with nothing that came from other cards, and gets nothing there.
    if (!computes_ahead_) peers_.acquire();
}

bool VectorCore::releases() {
    // Who computes ahead has stored to no other card.
    return computes_ahead_ || comes_of_peer(peers_.release(hart_.pc()));
}

void VectorCore::atomic_refused(std::uint64_t va) {
    fault_ = {ORR_FAULT_ATOMIC, va};
}

void VectorCore::accessed(const DoneAccess& access) {
    if (checked_ == nullptr) return;
    const bool orders = access.kind != AccessKind::kLoad && access.kind != AccessKind::kStore;
    hart_.spend(orders ? kOrderWork : kCheckWork + access.bytes / kCheckBytes);
    launch_.check->access(*checked_, item_, hart_.pc(), hart_.x(kStackPointer), access);
}

// A fault is told, and counted, when its time has come.
PageRef VectorCore::translate_ahead(std::uint64_t va, Access access) {
    const std::uint8_t needed = access == Access::kLoad    ? kPageRead
                                : access == Access::kStore ? kPageWrite
                                                           : kPageExec;
    if (const PageRef known = stretch_->translation(va); known.kind != PageKind::kFault)
        return (known.rights & needed) != 0 ? known : PageRef::fault();
    const auto found = computes_ahead_ ? mmu_.page_ahead(launch_.desc.asid, va, access) : std::nullopt;
    if (!found) return PageRef::fault();
    const bool vram = found->target != ORR_TARGET_HOST;
    const PageRef page =
        PageRef::memory(found->host, found->rights, vram ? PagePlace::kVram : PagePlace::kHost, found->huge,
                        vram && found->huge);
    return stretch_->remember(va, page) ? page : PageRef::fault();
}

void VectorCore::set_mark(Mark& mark) const {
    hart_.take_snapshot(mark.hart);
    mark.csrs = csrs_;
    mark.item = item_;
    mark.waits = waits_;
    mark.in_item = in_item_;
    mark.barrier = barrier_;
    if (waits_ != 0) mark.items = items_;
}

void VectorCore::go_to(const Mark& mark) {
    hart_.go_back(mark.hart);
    csrs_ = mark.csrs;
    item_ = mark.item;
    waits_ = mark.waits;
    in_item_ = mark.in_item;
    barrier_ = mark.barrier;
    if (waits_ != 0) items_ = mark.items;
}

bool VectorCore::begin_next(Mark& mark, const KernelLaunch& launch, std::uint64_t group) {
    // Then take() would clear the stack, which is the present group's until all of it is played.
    if (launch.serial != launch_.serial || stack_generation_ != mmu_.generation()) return false;
    end_ahead();
    set_mark(mark);
    mark.group = number_in_grid_;
    mark.local.assign(memory_->local, memory_->local + local_mapped_);
    take(launch, group, place_);
    return true;
}

void VectorCore::leave_next(const Mark& mark, Stretch* stretch) {
    end_ahead();
    go_to(mark);
    if (stretch != nullptr) stretch->restore_own();
    number_in_grid_ = mark.group;
    std::ranges::copy(mark.local, memory_->local);
}

void VectorCore::begin_ahead(Mark& mark, Stretch& stretch) {
    set_mark(mark);
    if (generation_ != mmu_.generation()) flush();
    hart_.set_overlay(&stretch);
    if (!hart_.knows_overlay() || !stretch.renew([this](std::uint64_t va) { hart_.forget_page(va); })) {
        hart_.forget_pages();
        stretch.clear();
    }
    stretch_ = &stretch;
    computes_ahead_ = true;
}

void VectorCore::end_ahead() {
    hart_.set_overlay(nullptr);
    stretch_ = nullptr;
    computes_ahead_ = false;
}

void VectorCore::go_back(const Mark& mark, Stretch& stretch) {
    go_to(mark);
    stretch.restore_own();
    stretch_ = &stretch;
}

void VectorCore::forget_stretch() {
    stretch_ = nullptr;
    hart_.set_overlay(nullptr);
}

bool VectorCore::read_csr(std::uint32_t number, std::uint64_t& value) {
    constexpr std::uint32_t kTime = 0xc01;
    if (number != kTime) return false;
    if (computes_ahead_) {
        hart_.hold();
        return false;
    }
    const std::uint64_t cycles = stood_cycles_ + began_cycles_ + (hart_.cycles() - began_hart_cycles_);
    value = later(began_, duration_ps(cycles, hz_)) / kPsPerNs;
    return true;
}

}  // namespace orrery::emu
