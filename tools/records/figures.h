// Statistics as people and as programs read them.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tools/records/statistics.h"

namespace orrery::records {

// Two tables, by queue, and a line for all.
std::string to_text(const History& history, const Statistics& statistics);
nlohmann::ordered_json to_json(const History& history, const Statistics& statistics);

// "8.347 ms", or "> 8.347 ms" of work that was not done.
std::string makespan_text(const Statistics& statistics);

}  // namespace orrery::records
