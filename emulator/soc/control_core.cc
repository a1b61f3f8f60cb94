#include "emulator/soc/control_core.h"

#include <algorithm>
#include <cstring>

#include "emulator/core/trap_entry.h"
#include "emulator/soc/boot_rom.h"

namespace orrery::emu {

namespace {

bool in_soc(std::uint64_t address) {
    return address - ORR_SOC_BASE < ORR_SOC_SIZE;
}

orr_counter counter_of(std::uint64_t activity_port) {
    static_assert(ORR_CTR_CORE_OTHER_PS + ORR_ACTIVITY_LINKS == ORR_CTR_CORE_LINKS_PS);
    return static_cast<orr_counter>(ORR_CTR_CORE_OTHER_PS +
                                    (activity_port - (ORR_SOC_BASE + SOC_ACTIVITY(0))) / 8);
}

Config hart_config() {
    Config config;
    config.reset_pc = ORR_ROM_BASE;
    // Exceptions come to us first: a core that traps in its trap handler is to halt, not to spin.
    config.trap_to_host = true;
    return config;
}

}  // namespace

ControlCore::ControlCore(const Sku& sku, EventQueue& events, SocRegisters& registers, Windows& windows,
                         Counters& counters, Errors& errors)
    : sku_(sku),
      events_(events),
      registers_(registers),
      windows_(windows),
      counters_(counters),
      errors_(errors),
      memory_(1 + ORR_SRAM_SIZE / kPageBytes),
      clock_(sku.cycle_ps) {
    static_assert(ORR_ROM_SIZE == kPageBytes);
    std::ranges::copy(boot_rom_code(), memory_[0].bytes);
    hart_ = std::make_unique<Hart>(hart_config(), *this);
}

ControlCore::~ControlCore() = default;

void ControlCore::reset(unsigned note) {
    if (recorder_ != nullptr && state_ != State::kReset) {
        catch_up();
        recorder_->stop(hart_->state(), sram(), own_time(), note);
    }
    // What it was in the middle of takes no more time.
    counters_.take_back(ORR_CTR_CORE_BUSY_PS, busy_ahead());
    counters_.take_back(activity_, busy_ahead());
    activity_ = ORR_CTR_CORE_OTHER_PS;
    if (trace_sink_ != nullptr) trace_sink_->begin();
    hart_->reset();
    events_.cancel(end_event_);
    events_.cancel(timer_event_);
    state_ = State::kReset;
    halt_ = {};
    waiting_ = external_ = timer_line_ = false;
    timer_ = kNever;
}

void ControlCore::start(bool warm) {
    reset();
    hart_->flush_code();
    state_ = State::kRunning;
    clock_.start(events_.now());
    if (recorder_ != nullptr) {
        recorder_->start({.warm = warm,
                          .time = events_.now(),
                          .reset_pc = ORR_ROM_BASE,
                          .rom = {memory_[0].bytes, kPageBytes},
                          .sram = sram(),
                          .state = hart_->state()});
    }
}

void ControlCore::halt(std::uint64_t cause) {
    if (state_ != State::kRunning) return;
    state_ = State::kHalted;
    halt_ = {cause, hart_->pc(), 0};
    note(ORR_OTRACE_NOTE_HALT, {halt_.cause, halt_.pc, halt_.tval});
    events_.cancel(timer_event_);
    hart_->request_stop();
}

void ControlCore::flush_recording() {
    if (recorder_ == nullptr) return;
    if (state_ != State::kReset) catch_up();
    recorder_->flush(hart_->state(), sram(), own_time(), clock_.rest());
}

void ControlCore::finish_recording() {
    if (recorder_ == nullptr) return;
    if (state_ != State::kReset) catch_up();
    recorder_->finish(hart_->state(), sram(), own_time());
}

// --- time ---

ModelTime ControlCore::local_time() const {
    return in_chunk_ ? clock_.time(hart_->steps()) : events_.now();
}

ModelTime ControlCore::own_time() const {
    return state_ == State::kReset ? events_.now() : std::max(events_.now(), clock_.time(hart_->steps()));
}

ModelTime ControlCore::busy_ahead() const {
    return own_time() - events_.now();
}

void ControlCore::charge_activity(ModelTime now) {
    counters_.add(activity_, now - charged_);
    charged_ = now;
}

void ControlCore::finish_at(ModelTime end) {
    if (end > events_.next_time() && state_ == State::kRunning) events_.schedule(end_event_, end);
    events_.advance_to(end);
}

// After an access: takes its time, and ends the chunk where the next event is, which the access may have
// scheduled.
void ControlCore::settle(ModelTime stall) {
    // mcycle follows the model clock: stalls have passed too.
    if (const std::uint64_t cycles = clock_.pass(stall); cycles != 0) hart_->advance_cycles(cycles);
    chunk_limit_ = std::min(chunk_limit_, events_.next_time());
    if (chunk_limit_ == kNever) return;
    const ModelTime next = later(local_time(), sku_.cycle_ps);  // when the next instruction begins
    if (next >= chunk_limit_) {
        hart_->request_stop();
    } else if (const std::uint64_t room = steps_within(chunk_limit_ - next);
               hart_->steps() + 1 + room < chunk_end_) {
        hart_->limit(room);
    }
}

// Instructions that begin in the next `time`.
std::uint64_t ControlCore::steps_within(ModelTime time) const {
    return (time + sku_.cycle_ps - 1) / sku_.cycle_ps;
}

void ControlCore::settle_memory(ModelTime stall) {
    counters_.add(ORR_CTR_CORE_STALL_PS, stall);
    settle(stall);
}

void ControlCore::catch_up() {
    const ModelTime now = events_.now();
    const ModelTime own = clock_.time(hart_->steps());
    const ModelTime slept = now > own ? now - own : 0;
    if (recorder_ != nullptr) recorder_->boundary(hart_->steps(), slept, lines());
    if (slept == 0) return;
    if (const std::uint64_t cycles = clock_.pass(slept); cycles != 0) hart_->advance_cycles(cycles);
}

void ControlCore::set_timer(std::uint64_t time) {
    timer_ = time;
    events_.schedule(timer_event_, time);
    update_lines();
}

void ControlCore::lines_changed() {
    const bool external = registers_.external_line();
    if (external != external_) {
        external_ = external;
        hart_->set_irq(Irq::kExternal, external);
        if (external) {
            waiting_ = false;
            counters_.add(ORR_CTR_CORE_INTERRUPTS);
        }
    }
    if (const bool timer = timer_due(); timer != timer_line_) {
        timer_line_ = timer;
        hart_->set_irq(Irq::kTimer, timer);
        if (timer) {
            waiting_ = false;
            counters_.add(ORR_CTR_CORE_INTERRUPTS);
        }
    }
}

bool ControlCore::runnable() {
    if (state_ != State::kRunning || debug_stopped_ || end_event_.scheduled()) return false;
    update_lines();
    return !waiting_;
}

void ControlCore::run_chunk() {
    catch_up();
    if (recording_full()) flush_recording();
    if (hart_->steps() != resumed_steps_ && at_breakpoint()) return stand(DebugStop::Kind::kBreakpoint);
    const ModelTime start = events_.now();
    const std::uint64_t start_steps = hart_->steps();
    chunk_limit_ = events_.next_time();
    std::uint64_t budget = kChunk;
    if (chunk_limit_ != kNever) {
        const ModelTime room = chunk_limit_ > start ? chunk_limit_ - start : 0;
        budget = std::clamp<std::uint64_t>(steps_within(room), 1, kChunk);
    }
    if (single_step_) budget = 1;
    chunk_end_ = start_steps + budget;
    in_chunk_ = true;
    charged_ = start;
    const StopReason reason = hart_->run(budget);
    const ModelTime end = local_time();
    in_chunk_ = false;
    count_instructions(start_steps);
    finish_at(end);
    counters_.add(ORR_CTR_CORE_BUSY_PS, end - start);
    charge_activity(end);
    if (state_ != State::kRunning) return;
    if (reason == StopReason::kWfi) {
        waiting_ = true;
        if (trace_sink_ != nullptr) trace_sink_->begin();
    } else if (reason == StopReason::kTrap) {
        take_trap();
    }
    look_for_stop(reason, start_steps);
}

void ControlCore::count_instructions(std::uint64_t since) {
    counters_.add(ORR_CTR_CORE_INSTRUCTIONS, hart_->steps() - since);
    const WorkCounts did = hart_->take_work();
    const auto add = [&](orr_counter counter, ScalarClass kind) {
        counters_.add(counter, did.scalar[static_cast<std::size_t>(kind)]);
    };
    add(ORR_CTR_CORE_INT, ScalarClass::kInt);
    add(ORR_CTR_CORE_MULDIV, ScalarClass::kMulDiv);
    add(ORR_CTR_CORE_LOADS, ScalarClass::kLoads);
    add(ORR_CTR_CORE_STORES, ScalarClass::kStores);
    add(ORR_CTR_CORE_JUMPS, ScalarClass::kJumps);
    add(ORR_CTR_CORE_ATOMICS, ScalarClass::kAtomics);
    add(ORR_CTR_CORE_SYSTEM, ScalarClass::kSystem);
}

// What the hart would do by itself, but for the cases in which a real core would be lost.
void ControlCore::take_exception() {
    const Trap trap = hart_->trap();
    HartState state = hart_->state();
    if (!enter_trap(state, trap)) {
        state_ = State::kHalted;
        halt_ = {static_cast<std::uint64_t>(trap.cause), trap.pc, trap.tval};
        note(ORR_OTRACE_NOTE_HALT, {halt_.cause, halt_.pc, halt_.tval});
        events_.cancel(timer_event_);
        const bool no_handler = (state.mtvec & ~std::uint64_t{3}) == 0;
        errors_.guest("the control core halted: {} at pc {:#x} (tval {:#x}), {}", to_string(trap.cause),
                      trap.pc, trap.tval,
                      no_handler ? "and the firmware has set no trap handler" : "inside the trap handler");
        return;
    }
    hart_->set_state(state);
    clock_.step_without_time();
}

// --- the bus ---

PageRef ControlCore::translate(std::uint64_t va, Access access) {
    const std::uint64_t page = va & ~(kPageBytes - 1);
    if (page - ORR_SRAM_BASE < ORR_SRAM_SIZE) {
        if (watches_.covers(page)) {
            if (access != Access::kFetch) return PageRef::mmio();
            fetched_watched_ = true;
        }
        return PageRef::memory(sram(page - ORR_SRAM_BASE), kPageRead | kPageWrite | kPageExec);
    }
    if (page == ORR_ROM_BASE) {
        if (access == Access::kStore) return PageRef::fault();
        return PageRef::memory(memory_[0].bytes, kPageRead | kPageExec);
    }
    if (page == ORR_SOC_BASE + SOC_TRACE && access == Access::kStore && !trace_listener_ &&
        trace_sink_ == nullptr && recorder_ == nullptr)
        return PageRef::memory(unheard_->bytes, kPageWrite | kPageStrict);
    if (in_soc(va) || Windows::covers(va)) return PageRef::mmio();
    return PageRef::fault();
}

bool ControlCore::load(std::uint64_t va, unsigned size, std::uint64_t& value) {
    if (va - ORR_SRAM_BASE < ORR_SRAM_SIZE) {  // a watched page
        std::memcpy(&value, sram(va - ORR_SRAM_BASE), size);
        look(va, size, true);
        return true;
    }
    ModelTime stall = 0;
    events_.advance_to(local_time());
    if (!in_soc(va)) {
        if (!windows_.load(va, size, value, stall)) return fault(false);
        if (size < 8) value &= (std::uint64_t{1} << (8 * size)) - 1;
        settle_memory(stall);
        if (recorder_ != nullptr) recorder_->load(va, value, stall, lines());
        return true;
    }
    if (size != 8) return fault(false);
    const auto offset = static_cast<std::uint32_t>(va - ORR_SOC_BASE);
    if (offset == SOC_TIME) {
        value = events_.now();
    } else if (offset == SOC_SYSTEM_TIME) {
        value = events_.system_now();
    } else if (offset == SOC_TIMER) {
        value = timer_;
    } else {
        value = registers_.read(offset, stall);
        if (stall != 0) settle_memory(stall);
    }
    update_lines();
    settle(sku_.register_ps);
    if (recorder_ != nullptr) recorder_->load(va, value, stall + sku_.register_ps, lines());
    return true;
}

bool ControlCore::store(std::uint64_t va, unsigned size, std::uint64_t value) {
    if (va - ORR_SRAM_BASE < ORR_SRAM_SIZE) {  // a watched page
        std::memcpy(sram(va - ORR_SRAM_BASE), &value, size);
        if (fetched_watched_) hart_->flush_code();
        look(va, size, false);
        return true;
    }
    if (is_trace_port(va)) {
        // Instrumentation: a cycle and nothing else, so that it changes no time whether it is heard or not.
        if (recorder_ != nullptr) recorder_->port_word(hart_->steps(), local_time(), value);
        if (trace_listener_) trace_listener_(value, local_time());
        if (trace_sink_ != nullptr) trace_sink_->word(value, local_time());
        return true;
    }
    if (is_activity(va)) {
        charge_activity(local_time());
        activity_ = counter_of(va);
        return true;
    }
    ModelTime stall = 0;
    events_.advance_to(local_time());
    if (!in_soc(va)) {
        if (!windows_.store(va, size, value, stall)) return fault(true);
        settle_memory(stall);
        if (recorder_ != nullptr) recorder_->store(va, stall, lines());
        return true;
    }
    if (size != 8) return fault(true);
    const auto offset = static_cast<std::uint32_t>(va - ORR_SOC_BASE);
    if (offset == SOC_TIMER) {
        set_timer(value);
    } else {
        registers_.write(offset, value, stall);
        if (stall != 0) settle_memory(stall);
    }
    update_lines();
    settle(sku_.register_ps);
    if (recorder_ != nullptr) recorder_->store(va, stall + sku_.register_ps, lines());
    return true;
}

bool ControlCore::fault(bool store) {
    if (recorder_ != nullptr) recorder_->fault(store);
    return false;
}

// Atomics are for SRAM only; here they come for watched pages.
bool ControlCore::compare_exchange(std::uint64_t va, unsigned size, std::uint64_t expected,
                                   std::uint64_t desired, std::uint64_t& observed) {
    if (va - ORR_SRAM_BASE >= ORR_SRAM_SIZE) return false;
    observed = 0;
    std::memcpy(&observed, sram(va - ORR_SRAM_BASE), size);
    const std::uint64_t mask = size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size)) - 1;
    return observed != (expected & mask) || store(va, size, desired);
}

}  // namespace orrery::emu
