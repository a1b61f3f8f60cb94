// The recording for other tools.
#pragma once

#include <string>
#include <vector>

#include "tools/records/history.h"
#include "tools/step/words.h"

namespace orrery::step {

struct ExportInfo {
    std::string card;                       // "orrery-1 0000000000000001"
    std::vector<std::string> engine_names;  // by port
};

// A Perfetto trace (ui.perfetto.dev): a track each engine, queue and the core, flows from signals to those
// that they woke, counters of ready queues. Times are nanoseconds there; annotations carry the picoseconds.
std::string perfetto_trace(const History& history, const ExportInfo& info);

// Comma-separated, with heads; RFC 4180 quoting.
std::string jobs_csv(const History& history);
std::string decisions_csv(const History& history);

}  // namespace orrery::step
