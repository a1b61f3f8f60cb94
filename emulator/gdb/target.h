// What a debugger can do to harts: the live control core of a card, or a replayed one, or those of its vector
// cores, which are threads to it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/api/watch_range.h"
#include "emulator/core/hart.h"

namespace orrery::emu::gdb {

enum class Watch : std::uint8_t { kWrite, kRead, kAccess };

inline WatchRange range_of(std::uint64_t address, std::uint64_t bytes, Watch kind) {
    return {.address = address,
            .bytes = bytes,
            .on_read = kind != Watch::kWrite,
            .on_write = kind != Watch::kRead};
}

// Of one live target.
inline constexpr std::size_t kMaxWatches = 64;

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
        kLibraries,     // there are others: the debugger asks for them, and goes on
        kSignal,        // an exception, as `signal` says
    };
    Kind kind = Kind::kStep;
    Watch watch = Watch::kWrite;
    std::uint64_t address = 0;  // kWatchpoint: of the watched data
    std::uint64_t thread = 0;   // of a target with threads
    unsigned signal = 0;        // gdb's number
};

// As gdb numbers them.
inline constexpr unsigned kSignalIllegal = 4, kSignalTrap = 5, kSignalAbort = 6, kSignalFloat = 8,
                          kSignalBus = 10, kSignalSegment = 11;

enum class Written : std::uint8_t { kDone, kNoSuchRegister, kWrongSize, kNotAllowed };

enum class Resume : std::uint8_t { kStep, kContinue, kReverseStep, kReverseContinue };

// All calls come from the thread that runs the server, with the target stopped (but for poll()).
class Target {
  public:
    virtual ~Target() = default;

    // --- threads; a target without any has one hart ---
    struct Thread {
        std::uint64_t id = 0;  // not 0
        std::string text;
    };
    virtual std::vector<Thread> threads() { return {}; }
    // Registers and memory are this thread's from now on; after a stop they are those of Stop::thread. false:
    // there is no such thread.
    virtual bool select([[maybe_unused]] std::uint64_t thread) { return false; }
    virtual std::uint64_t selected() const { return 0; }

    // --- registers, by gdb's numbers; x0 to x31 and pc are the first ---
    virtual const std::string& description() const;
    // Empty: there is no such register.
    virtual std::vector<std::uint8_t> read_register(std::uint64_t number);
    virtual Written write_register(std::uint64_t number, std::span<const std::uint8_t> bytes);

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
    // What else is loaded, as gdb's list of libraries; empty: this target has none ever.
    virtual std::string libraries() { return {}; }
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
