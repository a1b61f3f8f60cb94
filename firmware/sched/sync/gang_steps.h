// SPDX-License-Identifier: MIT
// What gang.cc and gang_turn.cc have in common.
#pragma once

#include "firmware/sched/sync/gang.h"

namespace orrery::fw {

// What a card says on the boards of the others: round * kRound + attempt * kAttempt + step, so it only grows.
inline constexpr uint64_t kArrived = 1;
inline constexpr uint64_t kLocked = 2;
inline constexpr uint64_t kHeld = 3;
inline constexpr uint64_t kAttempt = 8;
inline constexpr uint64_t kRound = ORR_GANG_ROUND;
inline constexpr uint64_t kFailed = kRound - 1;  // of whatever attempt
inline constexpr uint64_t kLate = kRound - 2;    // failed: what goes first kept the card
inline constexpr uint64_t kDone = kRound - 3;    // all members have ended: as good as any step of any attempt
inline constexpr uint32_t kMostAttempts = kLate / kAttempt - 1;
static_assert(kDone > kMostAttempts * kAttempt + kHeld);

// Three days, for a longer limit too: a time and seventeen of them are less than 2^64 ps.
inline constexpr uint64_t kGangMostLimitPs = 1ull << 58;

constexpr uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

inline uint64_t entry_of(const Gang& gang, uint64_t step) {
    return gang.round * kRound + (step < kAttempt ? gang.attempt * kAttempt : 0) + step;
}

// For how long at most ports are held for it, and the lock, if others wait.
inline uint64_t most_hold_of(const Gang& gang) {
    return gang.cards > 1 ? kGangCrossHoldPs : kGangHoldPs;
}
inline uint64_t turn_of(const Gang& gang) {
    return least(kGangTurnPs << least(gang.attempt - gang.base, 8), kGangCrossHoldPs);
}

}  // namespace orrery::fw
