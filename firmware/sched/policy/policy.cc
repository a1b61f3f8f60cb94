// SPDX-License-Identifier: MIT
#include "firmware/sched/policy/policy.h"

// What the compiler sees here need not be what the image says when it runs: see load().
extern "C" [[gnu::used]] const orr_policy orr_policy_numbers = orrery::fw::kDefaultPolicy;

namespace orrery::fw {
namespace {

uint64_t within(uint64_t value, uint64_t low, uint64_t high) {
    return value < low ? low : value > high ? high : value;
}

constexpr uint64_t kFlags = ORR_POLICY_F_NO_WEIGHTS | ORR_POLICY_F_NO_PRIORITIES | ORR_POLICY_F_NO_PREEMPTION;

}  // namespace

Policy Policy::from(const orr_policy& numbers) {
    return {
        .flags = numbers.flags & kFlags,
        .slice_ps = within(numbers.slice_us, 10, 1'000'000) * kPsPerUs,
        .bound_ps = within(numbers.bound_us, 20, 10'000'000) * kPsPerUs,
        .grace_ps = within(numbers.grace_ns, 500, 1'000'000) * kPsPerNs,
        .turn_ps = within(numbers.turn_ns, 0, 1'000'000) * kPsPerNs,
        .limit_ps = within(numbers.limit_us, 10, uint64_t{1} << 40) * kPsPerUs,
        .deadlock_ps = within(numbers.deadlock_us, 100, 10'000'000) * kPsPerUs,
        .window = static_cast<uint32_t>(within(numbers.window, 1, 16)),
    };
}

Policy Policy::load() {
    // The compiler must not know where this points, or it takes the numbers of today for constants. (Volatile
    // is not enough: clang 19 reads the words, throws them away, and uses the initialiser.)
    const orr_policy* image = &orr_policy_numbers;
    asm volatile("" : "+r"(image));
    const orr_policy numbers = *image;
    // An image that was changed by a tool of another version runs with the numbers that it was built with.
    if (numbers.version != ORR_POLICY_VERSION || numbers.bytes != sizeof(numbers))
        return Policy::from(kDefaultPolicy);
    return from(numbers);
}

}  // namespace orrery::fw
