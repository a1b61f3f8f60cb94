// What a run came to, for people and for programs. Times are the cards' model time.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tools/scenario/runner.h"

namespace orrery::scenario {

// Both need Options::keep_history.
std::string to_text(const Scenario& scenario, const Result& result);
nlohmann::ordered_json to_json(const Scenario& scenario, const Result& result);

}  // namespace orrery::scenario
