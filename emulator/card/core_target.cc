#include "emulator/card/core_target.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "emulator/card/card.h"
#include "emulator/card/stepper.h"

namespace orrery::emu {

HartState CoreTarget::state() {
    return card_.core().hart_state();
}

bool CoreTarget::set_state(const HartState& state) {
    card_.core().set_hart_state(state);
    return true;
}

bool CoreTarget::read(std::uint64_t address, std::span<std::uint8_t> out) {
    if (card_.core().read_memory(address, out)) return true;
    if (out.empty() || address < ORR_VRAM_WINDOW) return false;
    const std::uint8_t* const from = card_.vram().at(address - ORR_VRAM_WINDOW, out.size());
    if (from == nullptr) return false;
    std::copy_n(from, out.size(), out.begin());
    return true;
}

bool CoreTarget::write(std::uint64_t address, std::span<const std::uint8_t> in) {
    return card_.core().write_memory(address, in);
}

bool CoreTarget::set_points() {
    return card_.core().debug_points(breakpoints_, watches_);
}

bool CoreTarget::insert_breakpoint(std::uint64_t address) {
    if (std::ranges::find(breakpoints_, address) != breakpoints_.end()) return true;
    if (breakpoints_.size() == Hart::kMaxBreakpoints) return false;
    breakpoints_.push_back(address);
    return set_points();
}

bool CoreTarget::remove_breakpoint(std::uint64_t address) {
    std::erase(breakpoints_, address);
    return set_points();
}

bool CoreTarget::insert_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) {
    // What the core does not reach through SRAM cannot be watched.
    if (address < ORR_SRAM_BASE || bytes > ORR_SRAM_SIZE || address - ORR_SRAM_BASE > ORR_SRAM_SIZE - bytes ||
        watches_.size() == gdb::kMaxWatches)
        return false;
    watches_.push_back(gdb::range_of(address, bytes, kind));
    return set_points();
}

bool CoreTarget::remove_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) {
    const auto at = std::ranges::find(watches_, gdb::range_of(address, bytes, kind));
    if (at != watches_.end()) watches_.erase(at);
    return set_points();
}

void CoreTarget::resume(gdb::Resume how) {
    interrupted_ = false;
    card_.core().debug_resume(how == gdb::Resume::kStep);
}

bool CoreTarget::poll(gdb::Stop& stop) {
    ControlCore& core = card_.core();
    if (core.state() == ControlCore::State::kHalted) {
        core.debug_stop();
        stop.kind = gdb::Stop::Kind::kHalted;
        return true;
    }
    if (!core.debug_stopped()) return false;
    const ControlCore::DebugStop& last = core.last_debug_stop();
    switch (last.kind) {
        case ControlCore::DebugStop::Kind::kAsked:
            stop.kind = interrupted_ ? gdb::Stop::Kind::kInterrupt : gdb::Stop::Kind::kStep;
            break;
        case ControlCore::DebugStop::Kind::kStep:
            stop.kind = gdb::Stop::Kind::kStep;
            break;
        case ControlCore::DebugStop::Kind::kBreakpoint:
            stop.kind = gdb::Stop::Kind::kBreakpoint;
            break;
        case ControlCore::DebugStop::Kind::kWatchpoint:
            stop.kind = gdb::Stop::Kind::kWatchpoint;
            stop.address = last.address;
            stop.watch = last.read ? gdb::Watch::kRead : gdb::Watch::kWrite;
            for (const WatchRange& each : watches_) {
                if (last.address + 8 > each.address && last.address < each.address + each.bytes &&
                    each.on_read && each.on_write)
                    stop.watch = gdb::Watch::kAccess;
            }
            break;
    }
    return true;
}

void CoreTarget::interrupt() {
    interrupted_ = true;
    card_.core().debug_stop();
}

void CoreTarget::attach() {
    card_.errors().note("gdb is here: the control core stands still");
    card_.core().debug_stop();
}

void CoreTarget::detach() {
    breakpoints_.clear();
    watches_.clear();
    card_.core().debug_detach();
    card_.errors().note("gdb is gone: the control core runs on");
}

std::string CoreTarget::monitor(const std::string& command) {
    constexpr std::array<std::string_view, 4> kOfFirmware = {"why", "queues", "waits", "contexts"};
    if (std::ranges::find(kOfFirmware, command) != kOfFirmware.end()) {
        card_.store_recording();
        return ask_stepper(card_.config().stepper, card_.recording(), command,
                           [this] { return card_.serve_host(); });
    }
    if (command != "where") return "where | why | queues | waits | contexts\n";
    return fmt::format("{} instructions since power-on, model time {} ps\n",
                       card_.counters().get(ORR_CTR_CORE_INSTRUCTIONS), card_.events().now());
}

}  // namespace orrery::emu
