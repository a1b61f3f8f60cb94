// The control core: one hart with its SRAM, ROM, registers, windows and timer, and the model time that it
// takes.
//
// An instruction takes a cycle, an access beyond SRAM what the SKU says on top of it. The core runs in
// chunks of instructions that begin before the next event of the queue. If the last of them ends after it,
// the core waits for that end as for any event: the clock never passes one, and what engines do does not
// depend on what the core does at the time.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "emulator/api/sku.h"
#include "emulator/core/bus.h"
#include "emulator/core/hart.h"
#include "emulator/core/watch.h"
#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"
#include "emulator/soc/soc_registers.h"
#include "emulator/soc/trace_sink.h"
#include "emulator/soc/windows.h"
#include "emulator/time/event_queue.h"
#include "emulator/trace/clock.h"
#include "emulator/trace/recorder.h"

namespace orrery::emu {

// Card thread only.
class ControlCore final : public Bus {
  public:
    // Why the core stopped for good.
    struct Halt {
        std::uint64_t cause = 0;  // as ORR_R_HALT_CAUSE
        std::uint64_t pc = 0;
        std::uint64_t tval = 0;
    };
    enum class State : std::uint8_t {
        kReset,    // start() has not been called
        kRunning,  // or waiting for an interrupt
        kHalted,
    };

    ControlCore(const Sku& sku, EventQueue& events, SocRegisters& registers, Windows& windows,
                Counters& counters, Errors& errors);
    ~ControlCore() override;

    std::span<std::uint8_t> sram() { return {sram(0), ORR_SRAM_SIZE}; }

    // From the boot ROM's first instruction. `warm`: SRAM stayed as it was, but for the image.
    void start(bool warm = false);
    // The core stops; before SRAM is touched. `note` says why (ORR_OTRACE_NOTE_*).
    void reset(unsigned note = ORR_OTRACE_NOTE_RESET);
    // From inside an instruction of the core (SOC_HALT), or from outside.
    void halt(std::uint64_t cause);

    State state() const { return state_; }
    const Halt& halted() const { return halt_; }

    // True if run_chunk() would execute anything.
    bool runnable();
    // The core sleeps, and all that can happen by itself is its own timer, beside so many other events.
    bool waits_for_timer_beside(std::size_t others) const {
        return state_ == State::kRunning && !debug_stopped_ && waiting_ && timer_event_.scheduled() &&
               events_.size() == 1 + others;
    }
    bool waits_for_timer_only() const { return waits_for_timer_beside(0); }
    ModelTime timer() const { return timer_; }
    // Executes up to the next event, at most kChunk instructions, and moves the clock.
    void run_chunk();

    static constexpr std::uint64_t kChunk = 2000;

    // A word of instrumentation (SOC_TRACE): whoever listens gets it with the model time of its store, and
    // changes nothing of the card. Not from inside an instruction.
    using TraceListener = std::function<void(std::uint64_t word, ModelTime now)>;
    void set_trace_listener(TraceListener listener) {
        trace_listener_ = std::move(listener);
        hart_->flush_pages();
    }

    // The same words for the host; nullptr: none. It outlives the core's use.
    void set_trace_sink(TraceSink* sink) {
        trace_sink_ = sink;
        if (sink != nullptr && state_ == State::kRunning && !waiting_) sink->wait_for_begin();
        if (sink != nullptr && (state_ != State::kRunning || waiting_)) sink->begin();
        hart_->flush_pages();
    }

    // --- recording (orrery/hw/trace.h) ---
    // Before the first start; nullptr: none. It outlives the core's use.
    void record(Recorder* recorder) { recorder_ = recorder; }
    // Something arrived at the card.
    void note(unsigned kind, std::initializer_list<std::uint64_t> fields) {
        if (recorder_ != nullptr) recorder_->note(kind, hart_->steps(), events_.now(), fields);
    }
    // Of ORR_CTR_CORE_BUSY_PS, and of the counter of what the core does: what has still to pass.
    ModelTime busy_ahead() const;
    orr_counter activity() const { return activity_; }
    // Writes what has been recorded so far; not from inside an instruction.
    void flush_recording();
    bool recording_dirty() const { return recorder_ != nullptr && recorder_->dirty(hart_->steps()); }
    bool recording_full() const { return recorder_ != nullptr && recorder_->full(hart_->steps()); }
    void finish_recording();

    // --- a debugger; not from inside an instruction. While the core stands still, its time does too ---
    struct DebugStop {
        enum class Kind : std::uint8_t { kAsked, kStep, kBreakpoint, kWatchpoint };
        Kind kind = Kind::kAsked;
        std::uint64_t address = 0;  // kWatchpoint: of the access
        bool read = false;
    };
    void debug_stop();
    // At most Hart::kMaxBreakpoints; false: too many.
    bool debug_points(std::span<const std::uint64_t> breakpoints, std::span<const WatchRange> watchpoints);
    void debug_resume(bool single_step);
    // Without points: as if there had been none.
    void debug_detach();
    bool debug_stopped() const { return debug_stopped_; }
    const DebugStop& last_debug_stop() const { return debug_stop_; }
    HartState hart_state() const { return hart_->state(); }
    void set_hart_state(const HartState& state);
    // SRAM and ROM; false: not all of it lies there. Only SRAM can be written.
    bool read_memory(std::uint64_t address, std::span<std::uint8_t> out) const;
    bool write_memory(std::uint64_t address, std::span<const std::uint8_t> in);

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
    std::uint8_t* sram(std::uint64_t offset) {
        return memory_[1 + offset / kPageBytes].bytes + offset % kPageBytes;
    }

    ModelTime local_time() const;
    // Own time of the core: the clock, or the end of the instruction that it is in the middle of.
    ModelTime own_time() const;
    // The core has executed up to `end`.
    void finish_at(ModelTime end);
    // What the hart has done since it had so many steps.
    void count_instructions(std::uint64_t since);
    // Its time so far goes to what it did.
    void charge_activity(ModelTime now);
    void settle(ModelTime stall);
    std::uint64_t steps_within(ModelTime time) const;
    // The same for memory that the core had to wait for.
    void settle_memory(ModelTime stall);
    bool fault(bool store);
    void update_lines() {
        if (registers_.external_line() != external_ || timer_due() != timer_line_) lines_changed();
    }
    bool timer_due() const { return timer_ != kNever && events_.now() >= timer_; }
    void lines_changed();
    void set_timer(std::uint64_t time);
    void take_exception();
    void take_trap();
    // The chunk is over; whether the debugger wants the core to stand now.
    void look_for_stop(StopReason reason, std::uint64_t start_steps);
    bool at_breakpoint() const;
    void stand(DebugStop::Kind kind);
    void look(std::uint64_t va, unsigned size, bool read);
    unsigned lines() const {
        return (external_ ? ORR_OTRACE_LINE_EXTERNAL : 0) | (timer_line_ ? ORR_OTRACE_LINE_TIMER : 0);
    }
    // Between steps: the core's clock follows the card's.
    void catch_up();
    void timer_fired(ModelTime) {}  // the event only makes the clock stop there

    const Sku& sku_;
    EventQueue& events_;
    SocRegisters& registers_;
    Windows& windows_;
    Counters& counters_;
    Errors& errors_;
    std::vector<Page> memory_;  // page 0: ROM, then SRAM
    // Where words for the trace port go while nobody listens: an ordinary page, which costs no call.
    std::unique_ptr<Page> unheard_ = std::make_unique<Page>();
    TraceListener trace_listener_;
    TraceSink* trace_sink_ = nullptr;
    Event end_event_ = Event::stop();
    Event timer_event_ = Event::of<&ControlCore::timer_fired>(this);
    std::unique_ptr<Hart> hart_;

    State state_ = State::kReset;
    Halt halt_;
    bool waiting_ = false;  // the hart is in WFI
    bool external_ = false;
    bool timer_line_ = false;
    std::uint64_t timer_ = kNever;

    orr_counter activity_ = ORR_CTR_CORE_OTHER_PS;
    ModelTime charged_ = 0;  // in a chunk: up to there

    CoreClock clock_;
    bool in_chunk_ = false;
    ModelTime chunk_limit_ = 0;
    std::uint64_t chunk_end_ = 0;  // steps at which the chunk's budget ends
    Recorder* recorder_ = nullptr;

    // Of a debugger.
    bool debug_stopped_ = false;
    bool single_step_ = false;
    bool watch_hit_ = false;
    bool fetched_watched_ = false;     // code lies in a watched page
    std::uint64_t resumed_steps_ = 0;  // a breakpoint there does not count
    std::vector<std::uint64_t> breakpoints_;
    WatchSet watches_;
    DebugStop debug_stop_;
};

}  // namespace orrery::emu
