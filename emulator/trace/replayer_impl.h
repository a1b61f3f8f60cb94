// The inside of a Replayer: opening.cc opens it, replayer.cc moves it about.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/api/replayer.h"
#include "emulator/trace/port_log.h"
#include "emulator/trace/replay_core.h"

namespace orrery::emu {

// Between two looks at the clock, or two snapshots.
inline constexpr std::uint64_t kSlice = 256 << 10;

// Says how far a long run is, now and then.
class Pace {
  public:
    bool due() {
        const Clock::time_point now = Clock::now();
        if (now - last_ < kPeriod) return false;
        last_ = now;
        return true;
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr auto kPeriod = std::chrono::milliseconds(50);
    Clock::time_point last_ = Clock::now();
};

struct Replayer::Impl final : ReplayListener {
    explicit Impl(TraceReader from) : reader(std::move(from)), core(reader), begin(core.save()) {}

    struct Snapshot {
        std::uint64_t step = 0, time_ps = 0;
        std::unique_ptr<ReplayCore::Position> position;
        std::unique_ptr<MemoryHistory::Index> memory;
        bool told = false;  // by the file: it is a keyframe, or was replayed from one
    };

    // --- opening ---
    std::expected<void, std::string> open(const Progress& progress, Opening opening);
    std::expected<void, std::string> replay_all(const Progress& progress);
    std::expected<void, std::string> load_keyframes(const Progress& progress);
    bool listen_to_all(const Progress& progress);
    void compare_with_file(const RecordedSpeech& file);
    void take_speech(RecordedSpeech speech);
    void add_snapshot(ReplayCore::Position position, std::uint64_t time_ps, bool from_keyframe);
    // Those that the file tells, from there to where the core stands.
    void drop_told(std::uint64_t from);
    void thin_out();
    void end_at_divergence();

    void port_word(std::uint64_t step, std::uint64_t time_ps, std::uint64_t word) override {
        heard.port.word(step, time_ps, word);
    }
    void started(std::uint64_t, std::uint32_t port_words) override { heard.port.start(port_words); }
    void noted(const TraceNote& note) override { heard.notes.push_back(note); }
    bool wants_accesses() const override { return observer != nullptr; }
    void accessed(const PortAccess& access) override { observer(access); }

    // --- moving ---
    // Index of the last snapshot at or before a position.
    std::size_t snapshot_before(std::uint64_t step) const {
        const auto after = std::ranges::upper_bound(snapshots, step, {}, &Snapshot::step);
        return static_cast<std::size_t>(after - snapshots.begin()) - 1;
    }
    void restore(const Snapshot& snapshot) {
        history.restore(*snapshot.memory, core.sram());
        core.restore(*snapshot.position);
        told = snapshot.told;
    }
    // As the core's, and leaves snapshots where none are near.
    ReplayCore::Why run(std::uint64_t target);
    ReplayStop go(std::uint64_t step);
    void set_limits(const ReplayLimits& limits);
    void clear_limits() {
        core.set_breakpoints({});
        core.set_watchpoints({});
    }
    ReplayStopInfo stop_info(ReplayStop stop) const;
    ReplayStopInfo forward(std::uint64_t target, const ReplayLimits& limits);
    std::optional<std::pair<std::uint64_t, ReplayStopInfo>> last_stop_in(std::uint64_t low,
                                                                         std::uint64_t upper,
                                                                         const ReplayLimits& limits);
    ReplayStopInfo records_forward(std::uint64_t target, const ReplayLimits& limits, const Replayer& self);
    bool halted() const;
    std::uint64_t snapshot_bytes() const {
        return history.bytes() + snapshots.size() * (sizeof(Snapshot) + sizeof(ReplayCore::Position) +
                                                     sizeof(MemoryHistory::Index));
    }

    // A snapshot after this many steps; an access costs as much as some steps.
    static constexpr std::uint64_t kSnapshotCost = 3 << 20;
    static constexpr std::uint64_t kAccessCost = 16;

    TraceReader reader;
    ReplayCore core;
    const ReplayCore::Position begin;  // before anything was applied
    MemoryHistory history;
    std::vector<Snapshot> snapshots;
    bool told = false;  // as Snapshot::told, of where the core stands
    std::uint64_t snapshot_cost = kSnapshotCost;
    // The snapshot last passed, and the accesses done there.
    std::uint64_t passed_step = 0, passed_accesses = 0;
    PortLog port;
    std::vector<TraceNote> notes;
    RecordedSpeech heard;  // while all is replayed
    AccessObserver observer;
    std::vector<std::uint64_t> halts;  // steps
    std::uint64_t end = 0, end_time = 0;
    std::optional<Divergence> divergence;
    bool verified = false;  // all was replayed
};

}  // namespace orrery::emu
