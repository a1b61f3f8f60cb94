// A stream's packets of which the card may still have something to say: what is to be told of them, found
// again by the card's records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <orrery/prof.h>

#include "umd/prof/range_work.h"
#include "umd/prof/steps.h"
#include "umd/runtime/mutex.h"
#include "umd/runtime/ring.h"
#include "umd/runtime/stream_trails.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

// What is to be told of a packet, beside when it ran.
struct WorkNote {
    orrProfOperation operation = orrProfOperationOther;
    const char* name = nullptr;  // as OpNote has it
    bool reduces = false;
    std::uint64_t bytes = 0;
    std::int32_t source = orrProfPlaceUnknown, destination = orrProfPlaceUnknown;
    std::uint64_t groups = 0;
    std::uint32_t items = 0;
    std::uint64_t semaphore = 0, generation = 0, value = 0;  // of waits
};

// Of one stream. Threads: any.
class WorkTrail {
  public:
    WorkTrail() = default;
    ~WorkTrail() { end_ranges(); }
    WorkTrail(const WorkTrail&) = delete;
    WorkTrail& operator=(const WorkTrail&) = delete;
    // Of this thread's call, in that life of the log.
    void add(std::uint64_t index, const WorkNote& note, std::uint64_t life) noexcept;
    // What to tell of a record, of which host_ns is known. False: nothing, as nobody wanted it, or it is half
    // of a wait. *semaphore: that it waited for, or 0. *ranges: those it was submitted in; null: it will not
    // be told as work.
    bool find(const drm_orr_work_record& record, orrProfRecord& told, orrProfWork& work,
              std::uint64_t& semaphore, HeldRanges* ranges);
    // The host has seen that the card is done with packets below, now.
    void see(std::uint64_t below) noexcept;
    void add_signal(std::uint64_t index, std::uint64_t va, std::uint64_t value, std::uint64_t semaphore,
                    std::int32_t memory, std::uint64_t life) noexcept;
    // The same of a record of a signal; false: nobody wanted it.
    bool find_signal(const drm_orr_work_record& record, orrProfRecord& told, orrProfSignal& signal);
    void add_mark(StreamMarkNote note) noexcept;
    // Of packets below, of which the card has said all, the marks with their times go behind `marks`.
    void take_marks(std::uint64_t below, std::deque<StreamMarkNote>& marks);
    // Records were lost, maybe some of what is here now. False: all of it was told.
    bool lose();
    // The card has said all of all work and signals, and it was told.
    bool empty();
    // The card has said all that it will of packets below. How many of them were lost, since the last one.
    std::uint64_t drop(std::uint64_t below);
    // The card will say no more of what is here: its ranges need not wait for it.
    void end_ranges() noexcept;
    // These packets are a step, the first of the submission at `index`; before the card can come to them.
    void add_step(std::uint64_t index, const StepNote& note, std::uint64_t life) noexcept;
    // Of packets below, of which the card has said all, the steps with their times go behind `steps`.
    void take_steps(std::uint64_t below, std::deque<StepNote>& steps);
    std::uint64_t number() const { return number_; }

  private:
    static constexpr std::size_t kMost = std::size_t{1} << 20;  // then the oldest go
    static constexpr std::size_t kMostSteps = std::size_t{1} << 18;
    static constexpr std::size_t kMostSeen = std::size_t{1} << 12;  // from look to look

    struct Seen {
        std::uint64_t below = 0, ns = 0;
    };

    struct Entry {
        std::uint64_t index = 0, correlation = 0, external = 0, thread = 0, submitted_ns = 0;
        WorkNote note;
        bool told = false;    // its end
        HeldRanges ranges{};  // that it was submitted in; null: none, or its end is told with them
    };
    static std::uint64_t next_number();
    // What comes at this index is wanted in that life.
    void live(std::uint64_t index, std::uint64_t life);
    void forget_first() noexcept;  // which is lost if it is below, and was not told
    void note_step(const drm_orr_work_record& record);
    // Of the first entry that is not below.
    std::size_t place_of(std::uint64_t index) const;

    const std::uint64_t number_ = next_number();
    Mutex mutex_;
    Ring<Entry> entries_;         // by index
    bool has_ranges_ = false;     // some of them may
    std::size_t next_ = 0;        // behind the one that was found last: most come in that order
    std::vector<Seen> seen_;      // each below more, and later, than the one before
    std::deque<StepNote> steps_;  // by index, too: none has a packet of another one
    std::optional<drm_orr_work_record> wait_;
    SignalTrail signals_;
    MarkTrail marks_;
    std::uint64_t life_ = 0;        // of what was added last
    std::uint64_t last_index_ = 0;  // that was noted, plus 1
    std::uint64_t lost_below_ = 0, lost_ = 0;
};

}  // namespace orrery::umd
