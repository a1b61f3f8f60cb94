// SPDX-License-Identifier: MIT
// Gangs: dispatches of several queues that start together or not at all, on one card or on several.
//
// A member's GANG packet attaches its queue to the record of its gang (same context, board and round); the
// dispatch behind it joins. When all members of this card have joined, a gang of several cards goes through
// three steps, each told to the others on their boards (board[card] = round * 8 + step):
//   arrived   all members of this card are there. Nothing is held before all cards have arrived.
//   locked    no other gang may take this card's vector ports. Cards lock in order of their numbers, and a
//             card that runs a gang of several cards is not locked: so gangs cannot deadlock.
//   held      ports and cores are free for it: what ran there has been preempted. This takes microseconds,
//             since all cards have locked.
// When all hold, all start. A gang of one card locks, holds and starts. A card that gives up says `failed`.
#pragma once

#include <orrery/fw/packet.h>

#include "firmware/sched/queue/queue.h"

namespace orrery::fw {

inline constexpr uint32_t kGangs = 16;
inline constexpr uint32_t kGangsOfAContext = 4;
// How long ports may stay idle for a gang, and, in multiples of that, how long gangs are kept from them after
// one that failed to start. Cards have no common clock, so waiting for another card takes the longer limit.
inline constexpr uint64_t kGangHoldPs = 1'000'000'000;
inline constexpr uint64_t kGangCrossHoldPs = 100'000'000'000;
inline constexpr uint64_t kGangPause = 20;  // times the hold
// An idle card moves its clock to the next alarm, at once or after about the same time of the host. In small
// steps the other cards have the time that the limits promise.
inline constexpr uint64_t kGangLookPs = 1'000'000'000;

enum class GangStep : uint8_t {
    kFree,     // the record is nobody's
    kGather,   // not all members of this card are there
    kArrived,  // waits for the other cards
    kWaits,    // waits for its turn to lock the card
    kLocked,   // waits for the others' locks
    kHolds,    // waits for what runs to make room
    kHeld,     // waits for the others
};

struct Gang {
    uint64_t board, peers, round;
    uint64_t memory;      // of the board, for traces
    uint64_t deadline;    // model time; kNever: none
    uint64_t not_before;  // it pauses until then
    uint64_t limit_ps;
    uint32_t order;  // of arrival
    uint32_t cores;  // that its dispatches need
    uint16_t context;
    uint16_t card, cards, members;
    uint16_t attached, joined;
    uint16_t queue[ORR_GANG_MAX_MEMBERS];  // attached; those that have joined wait in Place::kGang
    GangStep step;
    bool parked;  // queue[0] stands in the wait table for a value on the board
};

}  // namespace orrery::fw
