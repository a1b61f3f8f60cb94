#include "emulator/card/control_core.h"

#include <algorithm>

#include "emulator/card/boot_rom.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kMstatusMie = 1u << 3;
constexpr std::uint64_t kMstatusMpie = 1u << 7;
constexpr std::uint64_t kMstatusMpp = 3u << 11;

bool in_soc(std::uint64_t address) {
    return address - ORR_SOC_BASE < ORR_SOC_SIZE;
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
      memory_(1 + ORR_SRAM_SIZE / kPageBytes) {
    static_assert(ORR_ROM_SIZE == kPageBytes);
    std::ranges::copy(boot_rom_code(), memory_[0].bytes);
    hart_ = std::make_unique<Hart>(hart_config(), *this);
}

ControlCore::~ControlCore() = default;

void ControlCore::reset() {
    hart_->reset();
    events_.cancel(timer_event_);
    state_ = State::kReset;
    halt_ = {};
    waiting_ = external_ = timer_line_ = false;
    timer_ = kNever;
}

void ControlCore::start() {
    reset();
    hart_->flush_code();
    state_ = State::kRunning;
    cycles_ = 0;
    started_at_ = events_.now();
}

void ControlCore::halt(std::uint64_t cause) {
    if (state_ != State::kRunning) return;
    state_ = State::kHalted;
    halt_ = {cause, hart_->pc(), 0};
    events_.cancel(timer_event_);
    hart_->request_stop();
}

// --- time ---

ModelTime ControlCore::local_time() const {
    if (!in_chunk_) return events_.now();
    return chunk_start_ + (hart_->steps() - chunk_steps_) * sku_.cycle_ps + stalls_;
}

// After an access: takes its time, and ends the chunk if an event is due now or was scheduled by the access.
void ControlCore::settle(ModelTime stall) {
    stalls_ += stall;
    if (local_time() >= chunk_limit_ || events_.next_time() < chunk_limit_) hart_->request_stop();
}

void ControlCore::settle_memory(ModelTime stall) {
    counters_.add(ORR_CTR_CORE_STALL_PS, stall);
    settle(stall);
}

void ControlCore::set_timer(std::uint64_t time) {
    timer_ = time;
    events_.schedule(timer_event_, time);
    update_lines();
}

void ControlCore::update_lines() {
    const bool external = registers_.external_line();
    if (external != external_) {
        external_ = external;
        hart_->set_irq(Irq::kExternal, external);
        if (external) {
            waiting_ = false;
            counters_.add(ORR_CTR_CORE_INTERRUPTS);
        }
    }
    const bool timer = timer_ != kNever && events_.now() >= timer_;
    if (timer != timer_line_) {
        timer_line_ = timer;
        hart_->set_irq(Irq::kTimer, timer);
        if (timer) {
            waiting_ = false;
            counters_.add(ORR_CTR_CORE_INTERRUPTS);
        }
    }
}

bool ControlCore::runnable() {
    if (state_ != State::kRunning) return false;
    update_lines();
    return !waiting_;
}

void ControlCore::run_chunk() {
    chunk_start_ = events_.now();
    chunk_steps_ = hart_->steps();
    stalls_ = 0;
    chunk_limit_ = events_.next_time();
    std::uint64_t budget = kChunk;
    if (chunk_limit_ != kNever) {
        const ModelTime room = chunk_limit_ > chunk_start_ ? chunk_limit_ - chunk_start_ : 0;
        budget = std::clamp<std::uint64_t>((room + sku_.cycle_ps - 1) / sku_.cycle_ps, 1, kChunk);
    }
    sync_cycles(chunk_start_);
    in_chunk_ = true;
    const StopReason reason = hart_->run(budget);
    const ModelTime end = local_time();
    in_chunk_ = false;
    const std::uint64_t steps = hart_->steps() - chunk_steps_;
    counters_.add(ORR_CTR_CORE_INSTRUCTIONS, steps);
    cycles_ += steps;
    events_.advance_to(end);
    counters_.add(ORR_CTR_CORE_BUSY_PS, end - chunk_start_);
    sync_cycles(end);
    if (state_ != State::kRunning) return;
    if (reason == StopReason::kWfi) {
        waiting_ = true;
    } else if (reason == StopReason::kTrap) {
        take_exception();
    }
}

// mcycle follows the model clock: stalls and sleep have passed too.
void ControlCore::sync_cycles(ModelTime now) {
    const std::uint64_t cycles = (now - started_at_) / sku_.cycle_ps;
    if (cycles <= cycles_) return;
    hart_->advance_cycles(cycles - cycles_);
    cycles_ = cycles;
}

// What the hart would do by itself, but for the cases in which a real core would be lost.
void ControlCore::take_exception() {
    const Trap trap = hart_->trap();
    const auto cause = static_cast<std::uint64_t>(trap.cause);
    HartState state = hart_->state();
    const std::uint64_t handler = state.mtvec & ~std::uint64_t{3};
    const bool again = state.mepc == trap.pc && state.mcause == cause && (state.mstatus & kMstatusMie) == 0;
    if (handler == 0 || trap.pc == handler || again) {
        state_ = State::kHalted;
        halt_ = {cause, trap.pc, trap.tval};
        events_.cancel(timer_event_);
        errors_.guest("the control core halted: {} at pc {:#x} (tval {:#x}), {}", to_string(trap.cause),
                      trap.pc, trap.tval,
                      handler == 0 ? "and the firmware has set no trap handler" : "inside the trap handler");
        return;
    }
    state.mepc = trap.pc;
    state.mcause = cause;
    state.mtval = trap.tval;
    state.mstatus = (state.mstatus & ~(kMstatusMie | kMstatusMpie)) | kMstatusMpp |
                    ((state.mstatus & kMstatusMie) != 0 ? kMstatusMpie : 0);
    state.pc = handler;
    state.steps += 1;
    hart_->set_state(state);
}

// --- the bus ---

PageRef ControlCore::translate(std::uint64_t va, Access access) {
    const std::uint64_t page = va & ~(kPageBytes - 1);
    if (page - ORR_SRAM_BASE < ORR_SRAM_SIZE) {
        return PageRef::memory(sram(page - ORR_SRAM_BASE), kPageRead | kPageWrite | kPageExec);
    }
    if (page == ORR_ROM_BASE) {
        if (access == Access::kStore) return PageRef::fault();
        return PageRef::memory(memory_[0].bytes, kPageRead | kPageExec);
    }
    if (in_soc(va) || Windows::covers(va)) return PageRef::mmio();
    return PageRef::fault();
}

bool ControlCore::load(std::uint64_t va, unsigned size, std::uint64_t& value) {
    ModelTime stall = 0;
    events_.advance_to(local_time());
    if (!in_soc(va)) {
        if (!windows_.load(va, size, value, stall)) return false;
        settle_memory(stall);
        return true;
    }
    if (size != 8) return false;
    const auto offset = static_cast<std::uint32_t>(va - ORR_SOC_BASE);
    if (offset == SOC_TIME) {
        value = events_.now();
    } else if (offset == SOC_TIMER) {
        value = timer_;
    } else {
        ModelTime wait = 0;
        value = registers_.read(offset, wait);
        if (wait != 0) settle_memory(wait);
    }
    update_lines();
    settle(sku_.register_ps);
    return true;
}

bool ControlCore::store(std::uint64_t va, unsigned size, std::uint64_t value) {
    ModelTime stall = 0;
    events_.advance_to(local_time());
    if (!in_soc(va)) {
        if (!windows_.store(va, size, value, stall)) return false;
        settle_memory(stall);
        return true;
    }
    if (size != 8) return false;
    const auto offset = static_cast<std::uint32_t>(va - ORR_SOC_BASE);
    if (offset == SOC_TRACE) {
        // Instrumentation: a cycle and nothing else, so that it changes no time whether it is heard or not.
        registers_.trace(value);
        return true;
    }
    if (offset == SOC_TIMER) {
        set_timer(value);
    } else {
        registers_.write(offset, value);
    }
    update_lines();
    settle(sku_.register_ps);
    return true;
}

bool ControlCore::compare_exchange(std::uint64_t, unsigned, std::uint64_t, std::uint64_t, std::uint64_t&) {
    return false;  // atomics are for SRAM only
}

}  // namespace orrery::emu
