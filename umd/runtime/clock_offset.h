// How far the clocks of two cards are apart, found as IEEE 1588 does with its delay requests.
#pragma once

#include <cstdint>
#include <span>

#include "umd/winsys/error.h"

namespace orrery::umd {

class Context;

// Time stamps of one exchange: the reference's before its signal leaves, the device's between the signals,
// the reference's when the answer has come.
struct ClockRound {
    std::uint64_t sent_ps = 0;
    std::uint64_t device_ps = 0;
    std::uint64_t answered_ps = 0;
};

struct ClockOffset {
    std::int64_t offset_ps = 0;   // device minus reference, when the device's clock was device_ps
    std::uint64_t error_ps = 0;   // the truth is at most so far from it
    std::uint64_t device_ps = 0;  // of the round that took the least time
    std::uint64_t worst_ps = 0;   // the error of the round that took the most time
};

// The device's stamp was taken when the reference's clock, which never goes back, had passed sent_ps and had
// not passed answered_ps: so nothing has to be known of ways, delays or rates. rounds: at least one. An error
// if a clock went back.
Result<ClockOffset> clock_offset(std::span<const ClockRound> rounds);

constexpr unsigned kClockRounds = 8;
constexpr std::int64_t kClockLimitNs = 10'000'000'000;

// Measures; a way over links joins the cards. limit_ns: of the host's time, then orrErrorTimeout. Thread
// safe.
Result<ClockOffset> measure_clock_offset(Context& device, Context& reference,
                                         std::int64_t limit_ns = kClockLimitNs);

}  // namespace orrery::umd
