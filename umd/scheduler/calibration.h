// What transfers between two memories take, measured by copies of two sizes on the card that does them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "umd/runtime/runtime.h"
#include "umd/scheduler/machine.h"

namespace orrery::umd {

// Bytes that the memories of a Way have at least.
constexpr std::uint64_t kCalibrationBytes = 1 << 20;

struct Way {
    std::uint64_t dst = 0, src = 0;
    Context* peer = nullptr;  // whose memory dst is, if it is another card's
};

// In model time of `card`, way by way; nothing where the times make no sense.
Result<std::vector<std::optional<Channel>>> measure(Runtime& runtime, Context& card,
                                                    std::span<const Way> ways);

}  // namespace orrery::umd
