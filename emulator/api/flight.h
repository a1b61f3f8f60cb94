// What a flight recorder has kept of a card's control core (docs/trace.md).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

namespace orrery::emu {

// As one recording (orrery/hw/trace.h), which begins with the oldest that is kept. `fd` is the recorder's
// memory; the card may go on to write to it, or be dead. What is not whole is left out. The error is one
// line.
std::expected<std::vector<std::uint8_t>, std::string> flight_recording(int fd);

// MiB of memory that a recorder may be given.
inline constexpr std::uint64_t kLeastFlightMib = 16, kMostFlightMib = 4096;
// How long its segments are then (CardConfig::flight_segment), so that all of them, each with an image and a
// state to begin with, take about as much. 0: no recorder.
std::uint64_t flight_segment(std::uint64_t mib);

// Whether the file begins as such a memory does.
bool is_flight_memory(int fd);

}  // namespace orrery::emu
