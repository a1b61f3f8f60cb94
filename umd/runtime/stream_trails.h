// What a stream's trail (work_trail.h) has beside its work: signals of semaphores, which the card's records
// name by address and value, and moments that the program has marked. Whoever has them guards them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <orrery/prof.h>

namespace orrery::umd {

struct SignalNote {
    std::uint64_t index = 0, correlation = 0, external = 0, thread = 0, submitted_ns = 0;
    std::uint64_t va = 0, value = 0;
    std::uint64_t semaphore = 0;  // as orrProfSignal has it
    std::int32_t memory = orrProfPlaceUnknown;
    bool told = false;
};

// A queue carries its signals out in order, so a record is of the first one of that address and value that
// has had none yet.
class SignalTrail {
  public:
    // False: there is no memory for it, or the oldest one had to go, and might have been told.
    bool add(const SignalNote& note) noexcept;
    // `failed`: whatever value it was to have.
    std::optional<SignalNote> take(std::uint64_t va, std::uint64_t value, bool failed);
    // Forgets those of packets below. How many of them had no record, of packets below `lost_below`.
    std::uint64_t drop(std::uint64_t below, std::uint64_t lost_below);
    bool empty() const { return notes_.empty(); }
    bool all_told() const { return std::ranges::all_of(notes_, &SignalNote::told); }

  private:
    static constexpr std::size_t kMost = std::size_t{1} << 18;

    std::deque<SignalNote> notes_;  // by index
    std::size_t next_ = 0;          // behind the one that was taken last
};

// A moment in a stream that the program has given a name (orrProfMarkStream).
struct StreamMarkNote {
    std::uint64_t index = 0;  // behind the packets below
    std::uint64_t correlation = 0, external = 0, thread = 0, submitted_ns = 0;
    std::uint64_t life = 0;        // see WorkLog::life()
    const char* domain = nullptr;  // lives as long as the process
    std::string text;
    std::uint64_t time_ps = 0;  // 0: not known
    std::uint64_t stream = 0;
    std::string stream_name;
};

// A mark's time is when the last packet before it ended, of which the card tells in the order of ends.
class MarkTrail {
  public:
    void add(StreamMarkNote note) noexcept;
    // A packet has ended. In place: it is one of each record, and mostly there are no marks.
    void ended(std::uint64_t index, std::uint64_t end_ps) {
        if (index < begin_) return;
        if (entries_.empty())
            behind_ps_ = std::max(behind_ps_, end_ps);
        else
            ended_between(index, end_ps);
    }
    // Ends are missing.
    void lose();
    // Of packets below nobody wanted to know: what ends are there of them were others'.
    void begin(std::uint64_t index);
    // All ends of packets below are known: those of marks before go behind `marks`.
    void take(std::uint64_t below, std::deque<StreamMarkNote>& marks);

  private:
    void ended_between(std::uint64_t index, std::uint64_t end_ps);

    static constexpr std::size_t kMost = std::size_t{1} << 16;

    struct Entry {
        StreamMarkNote note;
        bool lost = false;
        bool first = false;  // nothing is known of what was before the ends that it has
    };
    std::deque<Entry> entries_;    // by index; time_ps: of ends between the mark before and this one
    std::uint64_t before_ps_ = 0;  // of ends before the first of these
    bool before_known_ = true;     // none of them is missing
    std::uint64_t behind_ps_ = 0;  // and behind the last
    bool behind_lost_ = false, behind_first_ = false;
    std::uint64_t begin_ = 0;
};

}  // namespace orrery::umd
