/* SPDX-License-Identifier: GPL-2.0 */
/* Semaphores to which queues are attached: between who keeps the table and who closes them. */
#ifndef _ORR_SEM_H_
#define _ORR_SEM_H_

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct orr_bo;
struct orr_device;
struct orr_queue;
struct orr_vm;

/**
 * struct orr_sem - a semaphore to which queues are attached, or were until now
 */
struct orr_sem {
	/** @node: in the table */
	struct hlist_node node;
	/** @origin: the BO that has the memory; kept by @bo */
	struct orr_bo *origin;
	/** @offset: in @origin */
	u64 offset;
	/** @bo: as the card that closes it sees the memory; a reference, see orr_sem_get_bo() */
	struct orr_bo *bo;
	/** @signallers: struct orr_signaller */
	struct list_head signallers;
	/** @closing: nobody is left; what follows is for this case */
	bool closing;
	/** @word: why */
	u64 word;
	/** @queue: who was the last, a reference; NULL: somebody of another machine */
	struct orr_queue *queue;
	/** @vm: his address space, a reference; likewise */
	struct orr_vm *vm;
	/** @link: in a ring of those of the same address space; at the end in a list of dead ones */
	struct list_head link;
	/** @turn: of one of the ring, in orr_closer.turns; else empty */
	struct list_head turn;
};

/**
 * struct orr_closer - semaphores that a card is to close
 *
 * One at a time of each address space whose queues have left them alone, so that nobody waits for
 * all that another has left.
 */
struct orr_closer {
	/** @turns: a semaphore of each ring; orr_sems_lock */
	struct list_head turns;
	/** @ended: the card takes no more; orr_sems_lock */
	bool ended;
	/** @work: tells the card */
	struct work_struct work;
};

/**
 * struct orr_sem_dead - what is to be freed once the table's lock is not held any more
 */
struct orr_sem_dead {
	/** @sems: by their @link */
	struct list_head sems;
	/** @last: the last semaphore that was given to a closer under this lock, or NULL */
	struct orr_sem *last;
};

static inline void orr_sem_dead_init(struct orr_sem_dead *dead)
{
	INIT_LIST_HEAD(&dead->sems);
	dead->last = NULL;
}

extern struct mutex orr_sems_lock;

void orr_sem_get_bo(struct orr_bo *bo);
void orr_sem_put_bo(struct orr_bo *bo);
void orr_sem_abandon(struct orr_sem *sem, struct orr_queue *queue, u32 code,
		     struct orr_sem_dead *dead);
void orr_sem_close_alone(struct orr_sem *sem);
void orr_sems_free(struct orr_sem_dead *dead);
unsigned int orr_sems_count_closed(void);
int orr_sems_wait_closed(unsigned int closed);
int orr_sems_wait_queue(struct orr_queue *queue);
int orr_sems_wait_vm(struct orr_vm *vm);
void orr_closer_init(struct orr_closer *closer);
void orr_closer_fini(struct orr_closer *closer);

#endif /* _ORR_SEM_H_ */
