// SPDX-License-Identifier: MIT
// A queue's place in the table of those that wait for a semaphore (wait_table.h).
#pragma once

#include <stdint.h>

namespace orrery::fw {

// The links are numbers of queues.
struct Waiter {
    uint64_t memory;    // identity of the semaphore, as SOC_MMU_RESULT gives it
    uint64_t value;     // wanted
    uint32_t sequence;  // when it came: among equal values the first to come is the first to go
    uint16_t parent, left, right;
    uint16_t chain;   // of a heap's root: root of the next semaphore in the same bucket
    uint16_t holder;  // deadlock.h: a queue whose packets hold the signal
    uint8_t rank;     // length of the shortest way down to a free place
    uint8_t marks;    // deadlock.h
};
static_assert(sizeof(Waiter) == 32);

}  // namespace orrery::fw
