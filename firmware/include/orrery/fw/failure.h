/* SPDX-License-Identifier: MIT */
/*
 * How failure travels. A queue that stops fails every semaphore that its packets, from the first unfinished one on, would
 * have signalled, also those that are submitted later: its value becomes ORR_SEM_FAILED (orrery/hw/link.h) | a failure
 * word, which says what the first cause was and where. Whoever waits for it stops with ORR_QERR_POISON, has the word as
 * its error_detail, and passes the same word on. The first failure of a semaphore stays.
 *
 * A limit of a wait (orr_packet_semaphore) is a clock, not a verdict on the signaller: the firmware does not know who may
 * signal, the driver does. When the last that may is gone it closes the semaphore (ORR_MBOX_SEM_CLOSE); one that hangs is
 * ended by the watchdog of its dispatch or the driver's; the limit is for what neither sees.
 *
 * The words are for people and for error codes. They stand in memory of processes, so nothing may depend on their truth.
 */
#ifndef ORRERY_FW_FAILURE_H
#define ORRERY_FW_FAILURE_H

#include <orrery/hw/base.h>
#include <orrery/hw/link.h>

/* Parts of a failure word; bit 63 does not count, so a semaphore's value can be given as it is. */
#define ORR_FAILURE_CODE(word) ((uint32_t)((word) >> 56 & 0x7fu)) /* ORR_QERR_* of orrery/fw/queue.h */
#define ORR_FAILURE_NODE(word) ((uint32_t)((word) >> 48 & 0xffu)) /* low 8 bits of the card's uid */
#define ORR_FAILURE_QUEUE(word) ((uint32_t)((word) >> 36 & 0xfffu)) /* the firmware's number */
#define ORR_FAILURE_INDEX(word) ((word) & 0xfffffffffull) /* of the packet, low 36 bits */

#define ORR_FAILURE_NO_QUEUE 0xfffu
#define ORR_FAILURE_MAX_CODE 0x7fu

#define ORR_FAILURE_WORD(code, node, queue, index) \
	(((uint64_t)(code) & 0x7fu) << 56 | ((uint64_t)(node) & 0xffu) << 48 | ((uint64_t)(queue) & 0xfffu) << 36 | \
	 ((uint64_t)(index) & 0xfffffffffull))

/* Of a semaphore's value. */
#define ORR_SEM_HAS_FAILED(value) (((value) & ORR_SEM_FAILED) != 0)
#define ORR_SEM_FAILURE(value) ((value) & ~ORR_SEM_FAILED)

static_assert(ORR_FAILURE_CODE(ORR_SEM_FAILED | ORR_FAILURE_WORD(13, 0xab, 0xffe, 0x123456789ull)) == 13 &&
	      ORR_FAILURE_NODE(ORR_FAILURE_WORD(13, 0xab, 0xffe, 0x123456789ull)) == 0xab &&
	      ORR_FAILURE_QUEUE(ORR_FAILURE_WORD(13, 0xab, 0xffe, 0x123456789ull)) == 0xffe &&
	      ORR_FAILURE_INDEX(ORR_FAILURE_WORD(13, 0xab, 0xffe, 0x123456789ull)) == 0x123456789ull,
	      "parts of a failure word");

#endif /* ORRERY_FW_FAILURE_H */
