// What a debugger can do to a hart: the live control core of a card, or a replayed one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "emulator/core/hart.h"

namespace orrery::emu::gdb {

enum class Watch : std::uint8_t { kWrite, kRead, kAccess };

// Why the target stands still.
struct Stop {
    enum class Kind : std::uint8_t {
        kStep,          // the step is done; also: the core was told to stop
        kBreakpoint,    // pc is at a breakpoint
        kWatchpoint,    // an access to a watched range
        kInterrupt,     // the debugger asked
        kHistoryBegin,  // reverse execution came to the begin of the recording
        kHistoryEnd,    // forward execution came to its end
        kHalted,        // the core halted for good: it cannot be resumed
    };
    Kind kind = Kind::kStep;
    Watch watch = Watch::kWrite;
    std::uint64_t address = 0;  // kWatchpoint: of the watched data
};

enum class Resume : std::uint8_t { kStep, kContinue, kReverseStep, kReverseContinue };

// All calls come from the thread that runs the server, with the target stopped (but for poll()).
class Target {
  public:
    virtual ~Target() = default;

    virtual HartState state() = 0;
    // false: this target's registers cannot be changed (a replay).
    virtual bool set_state(const HartState& state) = 0;
    // Without side effects; false: nothing readable there. Registers of the SoC whose reads change
    // something are not readable.
    virtual bool read(std::uint64_t address, std::span<std::uint8_t> out) = 0;
    virtual bool write(std::uint64_t address, std::span<const std::uint8_t> in) = 0;
    // false: no more of them, or not here.
    virtual bool insert_breakpoint(std::uint64_t address) = 0;
    virtual bool remove_breakpoint(std::uint64_t address) = 0;
    virtual bool insert_watchpoint(std::uint64_t address, std::uint64_t bytes, Watch kind) = 0;
    virtual bool remove_watchpoint(std::uint64_t address, std::uint64_t bytes, Watch kind) = 0;

    virtual bool can_reverse() const { return false; }
    // The ELF of what it runs, for a debugger that has none; empty: not known.
    virtual std::span<const std::uint8_t> program() const { return {}; }
    // Lets it go. It may run on the spot or by itself; poll() tells.
    virtual void resume(Resume how) = 0;
    // Works for at most some milliseconds or waits that long; true: it stands, `stop` says why.
    virtual bool poll(Stop& stop) = 0;
    // Stands still as soon as it can, with Stop::Kind::kInterrupt.
    virtual void interrupt() = 0;
    // The debugger comes; the target stops where it is.
    virtual void attach() = 0;
    // The debugger goes: all its points are removed, and a live target runs on.
    virtual void detach() = 0;
    // For "monitor" commands: a line of text to show, or empty for an unknown command.
    virtual std::string monitor([[maybe_unused]] const std::string& command) { return {}; }
};

}  // namespace orrery::emu::gdb
