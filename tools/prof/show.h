// What is made of a profile.
#pragma once

#include <string>

#include "tools/prof/model.h"

namespace orrery::prof {

// How often, how long: tables for a terminal.
std::string stat_text(const Model& model);
// For chrome://tracing and others: an object with traceEvents, times in microseconds from the profile's
// begin.
std::string chrome_json(const Model& model);
// For Perfetto: its Trace message, times in nanoseconds of CLOCK_MONOTONIC.
std::string perfetto_trace(const Model& model);

}  // namespace orrery::prof
