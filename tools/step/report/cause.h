// What a run failed of, out of what its cards' recordings tell and how it ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/records/history.h"
#include "tools/step/words.h"

namespace orrery::step {

// What one card's recording has to say, and what became of the card.
struct Witness {
    std::uint32_t card = 0;  // its number in the run
    std::string died;        // how its process ended before it was told to; empty: it did not
    const History* history = nullptr;
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

// The first cause, and where to look at it.
struct Cause {
    std::string kind;                   // see kinds in docs/bundle.md
    std::string text;                   // a line
    std::optional<std::uint32_t> card;  // nothing: it is of no card
    std::uint64_t step = 0;             // of that card's recording: just before it happens
    Time time = 0;
};

// What cannot follow from something else comes first: a card that died, firmware that halted, the kernel's
// own report, firmware that did not answer, a queue's error, what the driver says. Of those of a kind the
// earliest, by each card's clock. Nothing: nothing failed.
std::optional<Cause> first_cause(const std::vector<Witness>& cards, const Ending& ending);

// The driver's first error in a log of the guest's kernel, without its time stamp; empty: there is none.
std::string driver_error(std::string_view guest_log);

}  // namespace orrery::step
