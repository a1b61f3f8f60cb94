/* SPDX-License-Identifier: MIT */
/* Link ports: their states and what crosses a link. Registers: bar0.h, ORR_R_LINK(). */
#ifndef ORRERY_HW_LINK_H
#define ORRERY_HW_LINK_H

#include "base.h"

#define ORR_LINK_MAX_PORTS 8u

#define ORR_LINK_DOWN 0u /* no peer */
#define ORR_LINK_TRAINING 1u
#define ORR_LINK_UP 2u
#define ORR_LINK_DEGRADED 3u /* fewer lanes than built */

/*
 * A semaphore in memory (VRAM or host): two aligned words. The semaphore unit writes time
 * first, then value; a reader that sees the value sees at least that time.
 */
struct orr_semaphore {
	uint64_t value; /* only ever grows */
	uint64_t time_ps; /* model time of the signal, on the card that signalled (+ link latency) */
};
ORR_ASSERT_SIZE(struct orr_semaphore, 16);

#endif /* ORRERY_HW_LINK_H */
