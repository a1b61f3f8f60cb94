// What semaphore units do to a semaphore: raise it, their own or one that a peer signals, and close it.
#pragma once

#include <cstdint>

#include <orrery/hw/link.h>

namespace orrery::emu {

// `at`: a struct orr_semaphore, 16-byte aligned. Other cards may signal or close the same host memory at this
// moment, so both words change at once or not at all. Everything before it is seen by whoever sees the value.

// False: the value would have gone back, or has failed for good.
bool raise_semaphore(std::uint8_t* at, std::uint64_t value, std::uint64_t time_ps);
void close_semaphore(std::uint8_t* at);
// The value first: the time is that of this value or of a later one.
orr_semaphore look_at_semaphore(std::uint8_t* at);

}  // namespace orrery::emu
