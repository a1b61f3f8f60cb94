// Time in a guest.
#pragma once

#include <cstdint>
#include <optional>

namespace orrery::bench {

std::int64_t now_ns();

// Seconds of real time in a second of the guest's clock, measured against the battery-backed clock over three
// of its seconds. A guest that calibrates its clock while the host is busy can be wrong by a factor. Nothing
// if there is no such clock.
std::optional<double> clock_factor();

}  // namespace orrery::bench
