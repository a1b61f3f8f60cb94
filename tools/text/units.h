// Model time and other quantities, as people read and type them. Time is in picoseconds throughout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/text/result.h"

namespace orrery::text {

using Time = std::uint64_t;
inline constexpr Time kNever = ~Time{0};

// A moment: always microseconds, so that columns of them can be compared: "1234.567 us". Nothing is rounded
// away down to the nanosecond, which is a cycle of the control core.
std::string moment(Time time);
// A duration in the unit that suits it, three digits after the point: "1.500 ms".
std::string duration(Time time);
// "12.5us", "3 ms", "700ns", "5ps", "1s"; a number without unit is not a time.
Result<Time> parse_time(std::string_view text);
// Decimal, or hexadecimal with 0x.
Result<std::uint64_t> parse_number(std::string_view text);

std::string percent(double share);     // 0.1234: "12.3 %"
std::string grouped(std::uint64_t n);  // 1234567: "1 234 567"

}  // namespace orrery::text
