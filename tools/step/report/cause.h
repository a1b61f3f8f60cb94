// What a run failed of, out of what its cards' recordings tell and how it ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/records/history.h"
#include "tools/step/words.h"

namespace orrery::step {

// What one card's recording has to say, and what became of the card.
struct Witness {
    std::uint32_t card = 0;            // its number in the run
    std::string died;                  // how its process ended before it was told to; empty: it did not
    const History* history = nullptr;  // null: it has no recording
    std::function<Time(Time own)> system = [](Time own) { return own; };  // its clock to system time
    struct Stop {
        bool halted = false;  // by itself; else the driver started it anew
        Time time = 0;
        std::uint64_t step = 0;
    };
    std::vector<Stop> stops;  // of the core
    std::uint64_t end = 0;    // the last position
    Time end_time = 0;
};

// How the run ended, as those say who started it.
struct Ending {
    std::string kernel_report;  // of the guest's kernel; empty: none
    std::string guest_log;
    std::string text;  // empty: it ended well
};

// Something that failed, and where to look at it.
struct Cause {
    std::string kind;                   // see kinds in docs/bundle.md
    std::string text;                   // a line
    std::optional<std::uint32_t> card;  // nothing: it is of no card
    std::uint64_t step = 0;             // of that card's recording: just before it happens
    Time time = 0;                      // by system time
};

// What failed, the first cause first: a card that died, the kernel's own report, then what the cards tell of
// by their times (firmware that halted or did not answer, errors of queues but those that follow from others,
// deadlocks), the driver's first error, and what the run says of its end. Nothing: nothing failed.
std::vector<Cause> causes(const std::vector<Witness>& cards, const Ending& ending);

// The driver's first error in a log of the guest's kernel, without its time stamp; empty: there is none.
std::string driver_error(std::string_view guest_log);

}  // namespace orrery::step
