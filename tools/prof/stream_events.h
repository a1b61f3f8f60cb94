// What happens in streams between work: signals of semaphores, and marks of the program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/prof/model.h"

namespace orrery::prof {

// Signals by what waits say of who ended them. The activity outlives it.
class SignalIndex {
  public:
    explicit SignalIndex(const Activity& activity);

    // nullptr: none that is here.
    const SignalRecord* ender_of(const Work& wait) const;

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, const SignalRecord*> by_packet_;  // stream, index
    // The host's, of each semaphore in the order in which they came, with values that only grow.
    std::map<std::uint64_t, std::vector<const SignalRecord*>> by_semaphore_;
};

// Of one device, of one semaphore's name, by whom.
struct SignalSums {
    std::string semaphore;  // as the program named it; "": it has no name, as those of events
    std::string by;         // a stream's name, or the host
    std::uint64_t count = 0, failed = 0;
    std::uint64_t over_links = 0;  // of these, to memory of other cards
    std::uint64_t ended = 0;       // waits that are here
};
// The most frequent first.
std::vector<SignalSums> signal_sums(const Activity& activity, std::uint32_t device);

struct MarkRow {
    const StreamMarkRecord* mark = nullptr;
    // Since the mark before in the same stream; nothing: it is the first, or one of the two has no time.
    std::optional<std::uint64_t> since_ps;
};
// Of a device: stream by stream, in the order in which the streams came there.
std::vector<MarkRow> mark_rows(const Activity& activity, std::uint32_t device);

// Where they stand on a timeline of the host; nothing: their card's time is not known there. A mark with
// nothing before it stands where it was made.
std::optional<std::uint64_t> moment_ns(const Activity& activity, const SignalRecord& signal);
std::optional<std::uint64_t> moment_ns(const Activity& activity, const StreamMarkRecord& mark);

// "signal 'gate' 7", "signal 7": what timelines call it.
std::string title_of(const Activity& activity, const SignalRecord& signal);

}  // namespace orrery::prof
