/* SPDX-License-Identifier: MIT */
/*
 * Link ports: their states and what crosses a link. Registers: bar0.h, ORR_R_LINK().
 *
 * Cards that reach each other know each other by numbers, their nodes. Software gives each card its own (ORR_R_NODE)
 * and says which port leads to which other (ORR_R_ROUTE); mappings and grants name nodes. A number means one card in
 * one of its lives: a card that is reset has none, and software that gives it another leaves what is left of mappings
 * of the older life without effect.
 */
#ifndef ORRERY_HW_LINK_H
#define ORRERY_HW_LINK_H

#include "base.h"

#define ORR_LINK_MAX_PORTS 8u
#define ORR_NODES 1024u /* 0 is never one */

#define ORR_LINK_DOWN 0u /* no peer */
#define ORR_LINK_TRAINING 1u
#define ORR_LINK_UP 2u
#define ORR_LINK_DEGRADED 3u /* fewer lanes than built */

/* What a grant lets its node do: ORR_R_LINK_GRANT_RIGHTS. (2.2) */
#define ORR_LINK_RIGHT_READ 1u
#define ORR_LINK_RIGHT_WRITE 2u
#define ORR_LINK_RIGHT_ATOMIC 4u
#define ORR_LINK_RIGHT_SIGNAL 8u
#define ORR_LINK_RIGHTS 15u

/* Slots of a barrier unit, and the cards that a barrier joins at most: ORR_R_BARRIER. (2.3) */
#define ORR_BARRIER_SLOTS 16u
#define ORR_BARRIER_MEMBERS 16u

/* Multicasts that a switch keeps for a card at one of its ports, and the members of one: ORR_R_MULTICAST. (2.5) */
#define ORR_MULTICASTS 16u
#define ORR_MULTICAST_MEMBERS 31u

/*
 * Functions of an atomic on one aligned word of 32 or 64 bits, whose result is the old value. Of 32 bits the operands
 * are the low halves, and the upper half of the result is 0.
 */
#define ORR_ATOMIC_ADD 1u /* wraps around */
#define ORR_ATOMIC_SWAP 2u
#define ORR_ATOMIC_COMPARE_SWAP 3u /* stores the operand if the word is `compare` */
#define ORR_ATOMIC_MIN 4u /* signed */
#define ORR_ATOMIC_MAX 5u
#define ORR_ATOMIC_UMIN 6u /* unsigned */
#define ORR_ATOMIC_UMAX 7u
#define ORR_ATOMIC_XOR 8u /* bitwise, as those behind it; all three since 2.4 */
#define ORR_ATOMIC_AND 9u
#define ORR_ATOMIC_OR 10u
#define ORR_ATOMIC_FUNCTIONS 11u

/*
 * A semaphore in memory (VRAM or host): two words, 16-byte aligned. The semaphore unit exchanges both at once, so the
 * time is that of the value that stands; who reads the value and then the time has its time or a later value's.
 *
 * A value with ORR_SEM_FAILED has failed for good: it is above all others, so it satisfies every wait. The unit, and the
 * unit of the card that owns the memory of a remote one, writes a value only if it is above the one that stands there and
 * that one has not failed: values only grow, and the first failure stays.
 */
struct orr_semaphore {
	uint64_t value; /* ORR_SEM_FAILED | failure word (orrery/fw/failure.h), or below ORR_SEM_FAILED */
	uint64_t time_ps; /* model time of the signal, on the card that signalled (+ link latency) | ORR_SEM_CLOSED */
};
ORR_ASSERT_SIZE(struct orr_semaphore, 16);

#define ORR_SEM_FAILED 0x8000000000000000ull /* in value */
#define ORR_SEM_CLOSED 0x8000000000000000ull /* in time_ps: nobody is left who may signal it; the unit keeps the bit */

#endif /* ORRERY_HW_LINK_H */
