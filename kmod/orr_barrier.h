/* SPDX-License-Identifier: GPL-2.0 */
/* Barriers of several cards: what a card has of them. */
#ifndef _ORR_BARRIER_H_
#define _ORR_BARRIER_H_

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <orrery/hw/link.h>

struct orr_bo;
struct orr_device;

/**
 * struct orr_barrier_end - a card's part in a barrier, of the BO that stands for it
 */
struct orr_barrier_end {
	/** @link: in orr_barriers.ended, once the BO is gone */
	struct list_head link;
	/** @slot: of the barrier unit */
	u32 slot;
	/** @release: the BO on the same card that has the semaphore, a reference */
	struct orr_bo *release;
	/** @offset: of the semaphore in it */
	u64 offset;
	/** @of_release: in orr_bo.releases of @release; orr_releases_lock */
	struct list_head of_release;
	/** @key: of the barrier, which all of its parts have in common; constant once a page is given out */
	u64 key;
	/** @member: its number among them; likewise */
	unsigned int member;
	/** @made: all of the barrier was, and given out; else its end touches no semaphore */
	bool made;
};

/**
 * struct orr_barrier_slot - a slot of the barrier unit
 */
struct orr_barrier_slot {
	/** @taken: some barrier has it */
	bool taken;
	/** @uid: whose it is */
	kuid_t uid;
	/** @nodes: of the other cards; 0: no more */
	u32 nodes[ORR_BARRIER_MEMBERS - 1];
};

/**
 * struct orr_barriers - the barrier unit of a card
 */
struct orr_barriers {
	/** @lock: guards its registers, @slots and @commands */
	struct mutex lock;
	/** @slots: by number; the nodes of a slot also change under it only, and are read without */
	struct orr_barrier_slot slots[ORR_BARRIER_SLOTS];
	/** @commands: written since the card's reset */
	u32 commands;
	/** @ended_lock: guards @ended and the counts */
	spinlock_t ended_lock;
	/** @ended: struct orr_barrier_end whose slots are to be cleared, by @work */
	struct list_head ended;
	/** @ended_count: that ever were in @ended */
	u32 ended_count;
	/** @cleared_count: of them, in the same order, those whose slots were cleared */
	u32 cleared_count;
	/** @cleared: woken as @cleared_count grows */
	wait_queue_head_t cleared;
	/** @work: clears them */
	struct work_struct work;
};

int orr_barriers_init(struct orr_device *odev);
bool orr_barrier_joins(const struct orr_device *odev, const struct orr_device *other);
u64 orr_barrier_of_release(struct orr_bo *bo, u64 offset);
void orr_barrier_forget(struct orr_device *odev, struct orr_barrier_end *end);

#endif /* _ORR_BARRIER_H_ */
