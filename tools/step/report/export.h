// The recording for other tools.
#pragma once

#include <string>
#include <vector>

#include "tools/records/history.h"
#include "tools/step/report/messages.h"
#include "tools/step/words.h"

namespace orrery::step {

struct ExportCard : CardHistory {
    std::string name;                       // "card orrery-1 0000000000000001"
    std::vector<std::string> engine_names;  // by port
};

// A Perfetto trace (ui.perfetto.dev): a process each card, with a track each engine, queue and the core,
// flows from signals to those that they woke, also on another card, counters of ready queues. Times are
// nanoseconds of the common time line there; annotations carry the picoseconds of the card's own clock.
std::string perfetto_trace(const std::vector<ExportCard>& cards);

// Comma-separated, with heads; RFC 4180 quoting.
std::string jobs_csv(const History& history);
std::string decisions_csv(const History& history);

}  // namespace orrery::step
