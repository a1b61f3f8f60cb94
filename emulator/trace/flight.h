// A flight recorder's memory: segments, each a recording of its own that begins where the one before it ends,
// in slots that are used in turn. So it holds the last of a recording that has no end. It is a file, mostly
// one that has no name (memfd): whoever else holds it has it also when the card is gone.
//
// The card writes it and whoever reads it is of the same build: it is no format for keeping.
// flight_recording() makes a recording of it (emulator/api/flight.h).
#pragma once

#include <array>
#include <cstdint>

#include <orrery/hw/trace.h>

namespace orrery::emu {

inline constexpr std::uint64_t kFlightMagic = 0x314b5448474c4652;  // "RFLGHTK1" as bytes in memory
inline constexpr std::uint32_t kFlightSlots = 8;
inline constexpr std::uint64_t kFlightHead = 4096;  // bytes before the first slot
// A segment is followed by the next one when so much of it is full; what comes at once fits all the same.
inline constexpr std::uint64_t kFlightSlack = 48 << 20;
inline constexpr std::uint64_t kMostFlightStride = (std::uint64_t{4} << 30) + kFlightSlack;

struct FlightHead {
    std::uint64_t magic = kFlightMagic;
    std::uint64_t stride = 0;  // bytes from slot to slot; mostly a hole
    // Of the segment in each slot, from 1; 0: none, or one that is being begun.
    std::array<std::uint64_t, kFlightSlots> number{};
};

}  // namespace orrery::emu
