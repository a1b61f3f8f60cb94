/* SPDX-License-Identifier: GPL-2.0 */
/* Attachments of queues to semaphores: between who makes them and who keeps them. */
#ifndef _ORR_SIGNALLER_H_
#define _ORR_SIGNALLER_H_

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#include "orr_sem.h"

struct orr_bo;
struct orr_queue;

/**
 * struct orr_signaller - a queue that is attached to a semaphore
 */
struct orr_signaller {
	/** @of_sem: in orr_sem.signallers */
	struct list_head of_sem;
	/** @of_queue: in orr_queue.signallers; before that, and after, in a list of somebody's */
	struct list_head of_queue;
	/** @of_vm: in orr_vm.signallers, by @va */
	struct rb_node of_vm;
	/** @va: where the queue sees the semaphore */
	u64 va;
	/** @epoch: orr_vm.epoch when that was looked up */
	u64 epoch;
	/** @sem: the semaphore */
	struct orr_sem *sem;
	/** @queue: the queue; leaves before it goes */
	struct orr_queue *queue;
	/** @bo: as the queue's card sees the memory; a reference, see orr_sem_get_bo() */
	struct orr_bo *bo;
	/** @way: PEER: version of the way to the memory before the queue was attached, 0: none */
	u32 way;
};

/**
 * struct orr_drop - attachments that end, and what is to be done once the lock is not held any more
 */
struct orr_drop {
	/** @signallers: by their @of_queue */
	struct list_head signallers;
	/** @dead: semaphores that nobody can close */
	struct orr_sem_dead dead;
};

/* All with orr_sems_lock held, but for orr_drop_end(). */
struct orr_sem *orr_sem_find(const struct orr_bo *origin, u64 offset);
void orr_sem_insert(struct orr_sem *sem);
struct orr_signaller *orr_signaller_find(struct orr_sem *sem, struct orr_queue *queue);
bool orr_signaller_has_stopped(struct orr_queue *queue);
void orr_signaller_insert(struct orr_signaller *signaller);
void orr_drop_begin(struct orr_drop *drop);
void orr_signaller_drop(struct orr_signaller *signaller, u32 code, struct orr_drop *drop);
void orr_drop_end(struct orr_drop *drop);

#endif /* _ORR_SIGNALLER_H_ */
