/* SPDX-License-Identifier: MIT */
/*
 * BAR 4: 512 doorbell pages of 4 KiB (plain memory, no trap), then their 512 kick pages
 * (trapped). A page belongs to one process; what a process writes to its page can only
 * concern queues bound to that page.
 *
 * To ring: store the doorbell (release), add 1 to the summary (any change will do), then a
 * full fence, then load need_wakeup; if it is not zero, store any value to the kick page at
 * the slot's offset. The card clears need_wakeup of the page when the kick comes, and of all
 * pages when it wakes. It spins for a bounded time
 * after its last work, sets need_wakeup in every page that has bound slots, fences, looks at
 * the summaries once more, and only then blocks.
 *
 * The card never writes the summary or a doorbell, so no atomic of the guest ever races with
 * one of the card (a guest with one CPU does not lock the bus).
 */
#ifndef ORRERY_HW_DOORBELL_H
#define ORRERY_HW_DOORBELL_H

#include "base.h"

#define ORR_DB_PAGES 512u
#define ORR_DB_PAGE_SIZE 4096u
#define ORR_DB_KICK_OFFSET 0x200000u /* of kick page 0 in BAR 4; page n follows at n * 4 KiB */
#define ORR_DB_SLOTS 480u /* doorbells a page */

struct orr_doorbell_page {
	uint64_t summary; /* written by the process: changes with every ring */
	uint64_t pad0[7];
	uint64_t need_wakeup; /* written by the card: 1: kick, or it will not look */
	uint64_t pad1[7];
	uint64_t pad2[16];
	uint64_t doorbell[ORR_DB_SLOTS]; /* written by the process: ORR_DB_VALUE() */
};
ORR_ASSERT_OFFSET(struct orr_doorbell_page, need_wakeup, 64);
ORR_ASSERT_OFFSET(struct orr_doorbell_page, doorbell, 256);
ORR_ASSERT_SIZE(struct orr_doorbell_page, ORR_DB_PAGE_SIZE);

/* A doorbell: the queue's generation and its producer index, modulo 2^48. */
#define ORR_DB_INDEX_MASK 0xffffffffffffull
#define ORR_DB_VALUE(generation, index) \
	((uint64_t)(generation) << 48 | ((uint64_t)(index) & ORR_DB_INDEX_MASK))

#endif /* ORRERY_HW_DOORBELL_H */
