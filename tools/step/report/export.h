// The recording for other tools.
#pragma once

#include <string>
#include <vector>

#include "tools/records/history.h"
#include "tools/step/report/links.h"
#include "tools/step/report/messages.h"
#include "tools/step/words.h"

namespace orrery::step {

struct ExportCard : CardHistory {
    std::string name;                       // "card orrery-1 0000000000000001"
    std::vector<std::string> engine_names;  // by port
    std::uint64_t uid = 0;
    const std::vector<LinkBurst>* bursts = nullptr;  // outlives this; null: none
};

// A Perfetto trace (ui.perfetto.dev): a process each card, with a track each engine, queue and the core,
// flows from signals to those that they woke, also on another card, counters of ready queues. Each port has a
// track of what was on the wire from here, and one of what came, and flows lead from the one to the other; of
// each link and direction at most `most_crossings` (find_links()). Times are nanoseconds of the common time
// line there; annotations carry the picoseconds, of the card's own clock, and of links system time.
constexpr std::size_t kMostCrossings = 20'000;
std::string perfetto_trace(const std::vector<ExportCard>& cards, std::size_t most_crossings = kMostCrossings);

// Comma-separated, with heads; RFC 4180 quoting.
std::string jobs_csv(const History& history);
std::string decisions_csv(const History& history);

}  // namespace orrery::step
