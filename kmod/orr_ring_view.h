/* SPDX-License-Identifier: GPL-2.0 */
/* Rings as the driver reads them. */
#ifndef _ORR_RING_VIEW_H_
#define _ORR_RING_VIEW_H_

#include <linux/types.h>

struct orr_bo;
struct orr_queue;
struct orr_vm;

/**
 * struct orr_ring_view - where a ring is read
 */
struct orr_ring_view {
	/** @vm: the address space */
	struct orr_vm *vm;
	/** @bo: which has the page at @va, a reference, or NULL */
	struct orr_bo *bo;
	/** @va: of the page */
	u64 va;
	/** @offset: of the page in @bo */
	u64 offset;
};

bool orr_bo_read_word(struct orr_bo *bo, u64 offset, u64 *value);
u64 orr_ring_packet(const struct orr_queue *queue, u64 index);
bool orr_ring_read(struct orr_ring_view *view, u64 va, u64 *value);
void orr_ring_view_end(struct orr_ring_view *view);

#endif
