#include "emulator/gdb/replay_target.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace orrery::emu::gdb {

namespace {

// A debugger sets few; a hostile one must not fill memory.
constexpr std::size_t kMaxPoints = 4096;

bool same(const Watchpoint& each, std::uint64_t address, std::uint64_t bytes, Watch kind) {
    return each.address == address && each.bytes == bytes && each.on_read == (kind != Watch::kWrite) &&
           each.on_write == (kind != Watch::kRead);
}

}  // namespace

bool ReplayTarget::insert_breakpoint(std::uint64_t address) {
    if (limits_.breakpoints.size() == kMaxPoints) return false;
    if (std::ranges::find(limits_.breakpoints, address) == limits_.breakpoints.end())
        limits_.breakpoints.push_back(address);
    return true;
}

bool ReplayTarget::remove_breakpoint(std::uint64_t address) {
    std::erase(limits_.breakpoints, address);
    return true;
}

bool ReplayTarget::insert_watchpoint(std::uint64_t address, std::uint64_t bytes, Watch kind) {
    std::uint8_t byte = 0;
    if (limits_.watchpoints.size() == kMaxPoints || !replayer_.read(address, {&byte, 1})) return false;
    limits_.watchpoints.push_back({.address = address,
                                   .bytes = bytes,
                                   .on_read = kind != Watch::kWrite,
                                   .on_write = kind != Watch::kRead});
    return true;
}

bool ReplayTarget::remove_watchpoint(std::uint64_t address, std::uint64_t bytes, Watch kind) {
    const auto at = std::ranges::find_if(
        limits_.watchpoints, [&](const Watchpoint& each) { return same(each, address, bytes, kind); });
    if (at != limits_.watchpoints.end()) limits_.watchpoints.erase(at);
    return true;
}

void ReplayTarget::detach() {
    limits_ = {};
    interrupted_ = false;
}

void ReplayTarget::resume(Resume how) {
    how_ = how;
    interrupted_ = false;
}

// The debugger knows the address that it watches, not that of the access.
Watch ReplayTarget::kind_of(const ReplayStopInfo& info) const {
    for (const Watchpoint& each : limits_.watchpoints) {
        if (info.watch_address + 8 <= each.address || info.watch_address >= each.address + each.bytes)
            continue;
        if (each.on_read && each.on_write) return Watch::kAccess;
    }
    return info.watch_read ? Watch::kRead : Watch::kWrite;
}

bool ReplayTarget::poll(Stop& stop) {
    if (interrupted_) {
        interrupted_ = false;
        stop.kind = Stop::Kind::kInterrupt;
        return true;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    limits_.progress = [&](std::uint64_t) { return std::chrono::steady_clock::now() < end; };
    ReplayStopInfo info;
    switch (how_) {
        case Resume::kStep:
            info = replayer_.step_forward();
            break;
        case Resume::kReverseStep:
            info = replayer_.step_back();
            break;
        case Resume::kContinue:
            info = replayer_.run_until(~std::uint64_t{0}, limits_);
            break;
        case Resume::kReverseContinue:
            info = replayer_.run_back_until(0, limits_);
            break;
    }
    limits_.progress = {};
    switch (info.stop) {
        case ReplayStop::kCancelled:
            return false;
        case ReplayStop::kBegin:
            stop.kind = Stop::Kind::kHistoryBegin;
            return true;
        case ReplayStop::kEnd:
        case ReplayStop::kDiverged:
            stop.kind = Stop::Kind::kHistoryEnd;
            return true;
        case ReplayStop::kBreakpoint:
            stop.kind = Stop::Kind::kBreakpoint;
            return true;
        case ReplayStop::kWatchpoint:
            stop.kind = Stop::Kind::kWatchpoint;
            stop.address = info.watch_address;
            stop.watch = kind_of(info);
            return true;
        case ReplayStop::kTarget:
        case ReplayStop::kCondition:
            stop.kind = Stop::Kind::kStep;
            return true;
    }
    return true;
}

std::string ReplayTarget::monitor(const std::string& command) {
    const auto argument = [&](std::string_view name, std::uint64_t& value) {
        if (!command.starts_with(name)) return false;
        const char* const first = command.data() + name.size();
        const char* const last = command.data() + command.size();
        const auto [end, error] = std::from_chars(first, last, value);
        return error == std::errc() && end == last;
    };
    const auto here = [&] {
        return fmt::format("step {} of {}, model time {} ps\n", replayer_.step(), replayer_.end(),
                           replayer_.time());
    };
    std::uint64_t value = 0;
    ReplayStopInfo info;
    if (command == "where") return here();
    if (argument("seek ", value)) {
        info = replayer_.seek(value);
    } else if (argument("time ", value)) {
        info = replayer_.seek_time(value);
    } else if (command == "record next") {
        info = replayer_.next_record();
    } else if (command == "record previous") {
        info = replayer_.previous_record();
    } else if (const auto known = monitor_ ? monitor_(command) : std::nullopt) {
        return *known;
    } else {
        return "where | seek STEP | time PS | record next | record previous; then: maintenance flush "
               "register-cache. orrery-step --gdb also knows why | queues | waits | contexts | engines | "
               "timeline | "
               "events | summary | bt | list\n";
    }
    if (info.stop == ReplayStop::kDiverged) {
        return fmt::format("replay does NOT make what was recorded: {}. The recording ends before it now\n",
                           replayer_.divergence()->reason) +
               here();
    }
    return here();
}

}  // namespace orrery::emu::gdb
