// SPDX-License-Identifier: MIT
// The policy's numbers as the scheduler uses them: those of the image's struct orr_policy, within sane
// limits.
#pragma once

#include <orrery/fw/policy.h>

#include <stdint.h>

namespace orrery::fw {

inline constexpr uint64_t kPsPerNs = 1'000;
inline constexpr uint64_t kPsPerUs = 1'000'000;

struct Policy {
    uint64_t flags;
    uint64_t slice_ps;
    uint64_t bound_ps;
    uint64_t grace_ps;
    uint64_t turn_ps;
    uint64_t limit_ps;
    uint64_t deadlock_ps;
    uint32_t window;

    // What the image says.
    static Policy load();
    static Policy from(const orr_policy& numbers);

    bool has(uint64_t flag) const { return (flags & flag) != 0; }
};

// docs/firmware.md gives the reasons.
inline constexpr orr_policy kDefaultPolicy{
    .magic = ORR_POLICY_MAGIC,
    .version = ORR_POLICY_VERSION,
    .bytes = sizeof(orr_policy),
    .flags = 0,
    .slice_us = 1'000,
    .bound_us = 5'000,
    .grace_ns = 2'000,
    .window = 16,
    .turn_ns = 200,
    .limit_us = 1'000'000,
    .deadlock_us = 10'000,
    .reserved = {},
};

}  // namespace orrery::fw
