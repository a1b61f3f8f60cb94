// The machine that a replay runs: the hart, its memory, and the place in the log. Replayer moves it about.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/api/replayer.h"
#include "emulator/api/trace_reader.h"
#include "emulator/core/bus.h"
#include "emulator/core/hart.h"
#include "emulator/core/watch.h"
#include "emulator/trace/clock.h"
#include "emulator/trace/keyframes.h"
#include "emulator/trace/log.h"
#include "emulator/trace/snapshots.h"

namespace orrery::emu {

TraceNote trace_note(const orr_otrace_block& block, const LoggedNote& note);

// Told what happens while it is replayed.
class ReplayListener {
  public:
    virtual ~ReplayListener() = default;
    virtual void port_word(std::uint64_t step, std::uint64_t time_ps, std::uint64_t word) = 0;
    // The first words that come, so many, are the end of a record that began before the recording.
    virtual void started(std::uint64_t step, std::uint32_t port_words) = 0;
    virtual void noted(const TraceNote& note) = 0;
    virtual bool wants_accesses() const = 0;  // stays as it is
    virtual void accessed(const PortAccess& access) = 0;
};

class ReplayCore final : public Bus {
  public:
    explicit ReplayCore(const TraceReader& reader);
    ~ReplayCore() override;

    // All that makes a position, but the memory.
    struct Position {
        std::uint64_t step = 0;
        HartState state;
        CoreClock clock{1};
        std::uint64_t stopped_time = 0;
        std::size_t block = 0, access = 0, boundary = 0;
        std::array<std::uint64_t, kValueSlots> values{};
        std::array<std::uint64_t, kAccessClasses> stalls{};
        bool running = false;
        bool in_block = false;  // `block` has been entered
        std::size_t image = 0;
    };
    Position save() const;
    // Behind the log `block`, of a file's keyframe.
    Position position_of(std::size_t block, const Keyframe& keyframe) const;
    // Puts the memory there that the start `block` begins with. Returns the state that the core begins in.
    struct Begin {
        HartState state;
        std::uint64_t rest_ps = 0;
        std::uint32_t port_words = 0;
    };
    std::expected<Begin, const char*> load_start(std::size_t block);
    // The memory has been put back already.
    void restore(const Position& position);

    std::uint64_t step() const { return offset_ + hart_.steps(); }
    std::uint64_t time() const { return running_ ? clock_.time(hart_.steps()) : stopped_time_; }
    HartState state() const { return hart_.state(); }
    std::uint64_t pc() const { return hart_.pc(); }
    std::size_t image() const { return image_; }
    bool running() const { return running_; }
    // Position of the last start; less than 0 if the recording begins behind it.
    std::int64_t started_at() const { return static_cast<std::int64_t>(offset_); }
    std::span<std::uint8_t> sram() { return {memory_[1].bytes, ORR_SRAM_SIZE}; }
    std::span<const std::uint8_t> sram() const { return {memory_[1].bytes, ORR_SRAM_SIZE}; }
    // As much of it as the recorded card had.
    std::span<std::uint8_t> recorded_sram() { return sram().first(recorded_sram_); }
    bool read(std::uint64_t address, std::span<std::uint8_t> out) const;
    // The state hash at the end of each block is checked when a replay first gets there.
    std::uint64_t hashes_checked() const { return hashes_checked_; }
    // The accesses replayed since the begin: what a position costs besides its steps.
    std::uint64_t accesses() const { return accesses_done_; }
    // The earliest one found.
    const std::optional<Replayer::Divergence>& divergence() const { return divergence_; }
    // The log itself is unreadable; the offset is in it.
    const std::string& error() const { return error_; }

    enum class Why : std::uint8_t {
        kSteps,
        kBreakpoint,
        kWatchpoint,
        kTime,  // the first position later than the limit
        kEnd,
        kDiverged,
    };
    struct Watched {
        std::uint64_t address = 0;
        std::uint64_t pc = 0;
        bool read = false;
    };
    // Runs to `target`, or until something else. What is due at the position where it stops has been applied.
    // A breakpoint at the first position does not count.
    Why run(std::uint64_t target);
    // What is due at the position where it stands; once after construction and after restore().
    Why settle();

    void set_listener(ReplayListener* listener) {
        listener_ = listener;
        tells_accesses_ = listener != nullptr && listener->wants_accesses();
        hart_.flush_pages();
    }
    bool listening() const { return listener_ != nullptr; }
    void set_breakpoints(std::span<const std::uint64_t> sorted);
    void set_watchpoints(std::span<const Watchpoint> watchpoints);
    void set_time_limit(std::uint64_t time_ps) { time_limit_ = time_ps; }
    const Watched& watched() const { return watched_; }
    // pc is at a breakpoint, and what is there comes next (no interrupt before it).
    bool at_breakpoint() const;

    // --- Bus ---
    PageRef translate(std::uint64_t va, Access access) override;
    bool load(std::uint64_t va, unsigned size, std::uint64_t& value) override;
    bool store(std::uint64_t va, unsigned size, std::uint64_t value) override;
    bool compare_exchange(std::uint64_t va, unsigned size, std::uint64_t expected, std::uint64_t desired,
                          std::uint64_t& observed) override;

  private:
    struct alignas(4096) Page {
        std::uint8_t bytes[kPageBytes];
    };
    struct CachedLog {
        std::size_t block = 0;
        Log log;
    };

    std::uint8_t* host(std::uint64_t address, std::uint64_t bytes);
    const orr_otrace_block& block() const { return reader_.blocks()[block_].header; }
    bool load_log();
    void enter_block();
    bool leave_block();
    void apply(const LoggedBoundary& boundary);
    void set_lines(unsigned lines);
    void start();
    void pass(std::uint64_t ps);
    void take_trap(std::uint64_t limit);
    const LoggedAccess* next_access(unsigned kind);
    void after(const LoggedAccess& access, std::uint64_t va, std::uint64_t value);
    void look(std::uint64_t va, unsigned size, bool read);
    void diverge(const std::string& reason);
    bool check_hash(const char* otherwise);

    const TraceReader& reader_;
    std::vector<Page> memory_;                                  // page 0: ROM, then SRAM
    std::unique_ptr<Page> unheard_ = std::make_unique<Page>();  // words for the trace port, while moving
    std::vector<std::uint8_t> unpacked_;                        // of the log that was read last
    std::size_t recorded_sram_ = ORR_SRAM_SIZE;                 // bytes of SRAM of the card that was recorded
    std::vector<bool> checked_;                                 // of each block: its state hash held
    std::uint64_t hashes_checked_ = 0;
    Hart hart_;
    CoreClock clock_;
    ReplayListener* listener_ = nullptr;
    bool tells_accesses_ = false;

    std::uint64_t offset_ = 0;  // steps of the recording minus the hart's
    std::uint64_t stopped_time_ = 0;
    bool running_ = false;
    bool rom_known_ = false;
    std::size_t image_ = 0;
    std::size_t block_ = 0;
    bool in_block_ = false;
    std::size_t access_ = 0, boundary_ = 0;
    std::array<std::uint64_t, kValueSlots> values_{};
    std::array<std::uint64_t, kAccessClasses> stalls_{};
    std::uint64_t accesses_done_ = 0;
    std::uint64_t time_limit_ = ~std::uint64_t{0};

    Log* log_ = nullptr;  // of block_, if that is a log
    Log nothing_;         // stands for one that cannot be read
    std::list<CachedLog> logs_;

    std::vector<std::uint64_t> breakpoints_;  // sorted
    WatchSet watches_;
    bool fetched_watched_ = false;  // code lies in a watched page
    bool hit_ = false;
    Watched watched_;
    std::optional<Replayer::Divergence> divergence_;
    bool diverged_now_ = false;
    std::string error_;
};

}  // namespace orrery::emu
