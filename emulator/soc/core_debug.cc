// The control core under a debugger: where it stands still, and what may be changed then.
#include <algorithm>
#include <cstring>

#include "emulator/soc/control_core.h"

namespace orrery::emu {

namespace {
constexpr std::uint64_t kMstatusMie = 1u << 3;
}

void ControlCore::stand(DebugStop::Kind kind) {
    debug_stopped_ = true;
    single_step_ = false;
    debug_stop_.kind = kind;
}

void ControlCore::debug_stop() {
    if (!debug_stopped_) stand(DebugStop::Kind::kAsked);
}

bool ControlCore::debug_points(std::span<const std::uint64_t> breakpoints,
                               std::span<const WatchRange> watchpoints) {
    breakpoints_.assign(breakpoints.begin(), breakpoints.end());
    if (watches_.on() || !watchpoints.empty()) {
        watches_.set(watchpoints);
        fetched_watched_ = false;
        hart_->flush_pages();
    }
    return hart_->set_breakpoints(breakpoints_);
}

void ControlCore::debug_resume(bool single_step) {
    debug_stopped_ = false;
    single_step_ = single_step;
    resumed_steps_ = hart_->steps();
}

void ControlCore::debug_detach() {
    debug_points({}, {});
    debug_stopped_ = single_step_ = watch_hit_ = false;
}

bool ControlCore::at_breakpoint() const {
    if (breakpoints_.empty() || std::ranges::find(breakpoints_, hart_->pc()) == breakpoints_.end())
        return false;
    const HartState state = hart_->state();
    return (state.mip & state.mie) == 0 || (state.mstatus & kMstatusMie) == 0;
}

void ControlCore::look(std::uint64_t va, unsigned size, bool read) {
    if (!watches_.hit(va, size, read)) return;
    watch_hit_ = true;
    debug_stop_.address = va;
    debug_stop_.read = read;
    hart_->request_stop();
}

void ControlCore::look_for_stop(StopReason reason, std::uint64_t start_steps) {
    if (std::exchange(watch_hit_, false)) return stand(DebugStop::Kind::kWatchpoint);
    if (reason == StopReason::kBreakpoint) return stand(DebugStop::Kind::kBreakpoint);
    if (single_step_ && hart_->steps() != start_steps) stand(DebugStop::Kind::kStep);
}

// A watched page refuses misaligned accesses that SRAM allows: such an instruction gets the page as it is.
void ControlCore::take_trap() {
    const Trap trap = hart_->trap();
    const bool misaligned = trap.cause == Cause::kLoadMisaligned || trap.cause == Cause::kStoreMisaligned;
    if (!misaligned || (!watches_.covers(trap.tval) && !watches_.covers(trap.tval + 7)))
        return take_exception();
    watches_.suspend(true);
    hart_->flush_pages();
    const std::uint64_t start_steps = hart_->steps();
    const StopReason reason = hart_->run(1);
    count_instructions(start_steps);
    watches_.suspend(false);
    hart_->flush_pages();
    finish_at(clock_.time(hart_->steps()));
    if (reason == StopReason::kTrap) return take_exception();
    look(trap.tval, 8, trap.cause == Cause::kLoadMisaligned);
}

void ControlCore::set_hart_state(const HartState& state) {
    HartState now = state;
    const HartState before = hart_->state();
    now.steps = before.steps;
    now.mip = before.mip;
    // Somewhere else there is no WFI that it could be waiting in.
    if (now.pc != before.pc) {
        now.waiting = 0;
        waiting_ = false;
    }
    hart_->set_state(now);
    if (recorder_ != nullptr) recorder_->set_state(hart_->state(), events_.now());
}

bool ControlCore::read_memory(std::uint64_t address, std::span<std::uint8_t> out) const {
    const auto from = [&](std::uint64_t base, std::uint64_t size, const std::uint8_t* bytes) {
        if (address < base || address - base > size || out.size() > size - (address - base)) return false;
        std::copy_n(bytes + (address - base), out.size(), out.begin());
        return true;
    };
    return from(ORR_SRAM_BASE, ORR_SRAM_SIZE, memory_[1].bytes) ||
           from(ORR_ROM_BASE, ORR_ROM_SIZE, memory_[0].bytes);
}

bool ControlCore::write_memory(std::uint64_t address, std::span<const std::uint8_t> in) {
    const std::uint64_t offset = address - ORR_SRAM_BASE;
    if (address < ORR_SRAM_BASE || offset > ORR_SRAM_SIZE || in.size() > ORR_SRAM_SIZE - offset) return false;
    std::ranges::copy(in, memory_[1].bytes + offset);
    hart_->flush_code();
    if (recorder_ != nullptr) recorder_->set_memory(address, in, hart_->steps(), events_.now());
    return true;
}

}  // namespace orrery::emu
