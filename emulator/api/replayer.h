// Replays a recording: the control core, its SRAM and the log, forward and backward, bit-exactly.
//
// Positions are steps (orrery/hw/trace.h): position n is the moment before the step number n is executed,
// with everything applied that the card did by then (interrupt lines, time that passed in sleep). Position 0
// is the core before it was ever started; end() is the last one. A start of the core takes a step of its own.
//
// Of a long recording open() takes the records of the trace port, the notes and the keyframes from the file,
// and every state hash is checked when a replay first gets there. It replays a short one from end to end, and
// one from before format 1.3, which has none of these. Any position is reached from the nearest snapshot.
//
// One thread at a time. Spans and references stay valid until the next call that is not const.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/api/hart_state.h"
#include "emulator/api/trace_reader.h"
#include "emulator/api/watch_range.h"

namespace orrery::emu {

// A record that the firmware wrote to SOC_TRACE.
struct PortRecord {
    std::uint64_t step = 0;     // of the store of its header: position `step` is just before it
    std::uint64_t time_ps = 0;  // the same moment
    std::uint64_t header = 0;
    std::span<const std::uint64_t> words;  // those that follow the header
};

// What came in from outside or happened to the core (ORR_OTRACE_NOTE_*). Replay does not depend on notes.
struct TraceNote {
    std::uint64_t step = 0;     // position at which it happened
    std::uint64_t time_ps = 0;  // as the card saw it
    std::uint32_t kind = 0;
    std::uint64_t field[ORR_OTRACE_NOTE_FIELDS] = {};
    bool operator==(const TraceNote&) const = default;
};

using Watchpoint = WatchRange;  // in SRAM

// Why a run ended.
enum class ReplayStop : std::uint8_t {
    kTarget,      // the position asked for
    kBreakpoint,  // pc is at a breakpoint; nothing there has been executed
    kWatchpoint,  // forward: the access is done; backward: it is about to be done
    kCondition,   // the predicate held
    kEnd,         // end()
    kBegin,       // position 0, going backward
    kDiverged,    // see divergence()
    kCancelled,   // the progress callback said so
};
const char* to_string(ReplayStop stop);

struct ReplayStopInfo {
    ReplayStop stop = ReplayStop::kTarget;
    std::uint64_t breakpoint = 0;     // address
    std::uint64_t watch_address = 0;  // of the access
    std::uint64_t watch_pc = 0;       // of the instruction that made it
    bool watch_read = false;
};

// What ends a run besides its target. Empty: nothing does.
struct ReplayLimits {
    std::vector<std::uint64_t> breakpoints;  // at any number
    std::vector<Watchpoint> watchpoints;
    // Asked at every position after the first (slow: some 10 million a second)...
    std::function<bool()> condition;
    // ... or only at the positions of port records.
    bool condition_at_records = false;
    // Called now and then; false cancels.
    std::function<bool(std::uint64_t step)> progress;
};

// An access of the core beyond SRAM and ROM.
struct PortAccess {
    std::uint64_t step = 0;
    std::uint64_t time_ps = 0;
    std::uint64_t address = 0, value = 0;
    std::uint64_t stall_ps = 0;  // that it took on top of its cycle
    bool store = false;
};

// What open() does.
enum class Opening : std::uint8_t {
    kUsual,  // see above
    kWhole,  // replays all, and checks all
    kIndex,  // replays nothing, if the recording is one from which that can be had
};

class Replayer {
  public:
    // Called for every access of the recording, in order, while it is opened: which is kWhole then. Not for
    // stores to SOC_TRACE.
    using AccessObserver = std::function<void(const PortAccess&)>;
    // Called with the part that is done, 0 to 1, about every 50 ms of host time. false cancels.
    using Progress = std::function<bool(double done)>;

    // Refuses what TraceReader refuses, and a log that does not fit its recording (offset and reason). A
    // state that differs from the recorded hash is no error here: see divergence().
    static std::expected<std::unique_ptr<Replayer>, std::string> open(const std::filesystem::path& file,
                                                                      const Progress& progress = {},
                                                                      Opening opening = Opening::kUsual);
    static std::expected<std::unique_ptr<Replayer>, std::string> open(TraceReader reader,
                                                                      const Progress& progress = {},
                                                                      Opening opening = Opening::kUsual,
                                                                      AccessObserver observer = {});
    ~Replayer();
    Replayer(const Replayer&) = delete;
    Replayer& operator=(const Replayer&) = delete;

    // --- the recording ---
    const TraceInfo& info() const;
    const TraceReader& reader() const;
    std::span<const TraceImage> images() const;
    // The image that runs at the current position; nullptr: none (SRAM was filled by other means).
    const TraceImage* image() const;
    std::uint64_t end() const;       // last position
    std::uint64_t end_time() const;  // model time there
    // So many state hashes held by now; whether all was replayed; the first that did not hold. A move that
    // finds one ends with kDiverged, and the recording ends before it from then on.
    std::uint64_t hashes_checked() const;
    bool verified() const;
    // Replays all, if open() did not, and holds the records and notes that the file has against those of the
    // firmware: divergence() tells what it found. The position stays, if the recording still has it.
    // false: the progress callback said so.
    bool verify(const Progress& progress = {});
    struct Divergence {
        std::uint64_t step =
            0;  // at which the hash was taken; the deviation lies between it and the one before
        std::uint64_t offset = 0;  // of the block in the file
        std::string reason;
        bool operator==(const Divergence&) const = default;
    };
    const std::optional<Divergence>& divergence() const;

    // --- what the firmware said, and what came in ---
    std::size_t record_count() const;
    PortRecord record(std::size_t index) const;
    std::span<const TraceNote> notes() const;
    // Index of the first record at or after a position; record_count(): none.
    std::size_t record_at(std::uint64_t step) const;

    // --- where we are ---
    std::uint64_t step() const;
    std::uint64_t time() const;  // model time, ps
    HartState state() const;
    std::span<const std::uint8_t> sram() const;
    std::uint64_t sram_base() const;
    // SRAM or ROM. false: not all of it lies there; registers and windows are not part of a replay.
    bool read(std::uint64_t address, std::span<std::uint8_t> out) const;
    bool read64(std::uint64_t address, std::uint64_t& value) const;
    bool running() const;   // the core was started, and has not halted or been reset
    bool sleeping() const;  // in WFI

    // --- moving; steps beyond the ends stop there ---
    ReplayStopInfo seek(std::uint64_t step);
    ReplayStopInfo step_forward(std::uint64_t count = 1);
    ReplayStopInfo step_back(std::uint64_t count = 1);
    // The last position whose time is <= time_ps.
    ReplayStopInfo seek_time(std::uint64_t time_ps);
    // To the position of the next record (header store) after the current position, or the one before it;
    // kEnd or kBegin if there is none.
    ReplayStopInfo next_record();
    ReplayStopInfo previous_record();
    // Forward to `target` or until a limit.
    ReplayStopInfo run_until(std::uint64_t target, const ReplayLimits& limits);
    // Backward: to the last position before this one, not before `target`, at which run_until() would have
    // stopped.
    ReplayStopInfo run_back_until(std::uint64_t target, const ReplayLimits& limits);

    // Model time of any position, without moving (costs as much as going there).
    std::uint64_t time_of(std::uint64_t step);

    // Memory that snapshots take. They are thinned out beyond 1 GiB.
    std::uint64_t snapshot_bytes() const;
    std::size_t snapshots() const;

  private:
    struct Impl;
    explicit Replayer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::emu
