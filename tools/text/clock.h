// The host's time, for what is shown again and again.
#pragma once

#include <string>

namespace orrery::text {

// From some moment on, steadily (CLOCK_MONOTONIC).
double seconds_now();
// Of the day, as here: "14:05:09".
std::string hour();

}  // namespace orrery::text
