/* SPDX-License-Identifier: GPL-2.0 */
/* Queues, and those who wait for their progress. */
#ifndef _ORR_QUEUE_H_
#define _ORR_QUEUE_H_

#include <linux/kref.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include <orrery/fw/queue.h>

struct dma_fence;
struct drm_orr_queue_create;
struct orr_device;
struct orr_file;
struct orr_vm;
struct orr_waiter;

#define ORR_QUEUE_NOT_ARMED U64_MAX

/* Waiters and fences that a queue can have at once. */
#define ORR_QUEUE_MAX_WAITERS 4096u

/**
 * struct orr_queue - a queue
 *
 * Referenced by its file, by orr_device.queues, and by its fences.
 */
struct orr_queue {
	/** @ref: references */
	struct kref ref;
	/** @odev: the card; valid while @gone is 0 */
	struct orr_device *odev;
	/** @vm: its address space, a reference and one of vm->queues until it is destroyed */
	struct orr_vm *vm;
	/** @number: the firmware's number */
	u32 number;
	/** @slot: in the file's doorbell page */
	u32 slot;
	/** @generation: for ORR_DB_VALUE() */
	u64 generation;
	/** @fence_context: of its dma_fences */
	u64 fence_context;

	/** @lock: guards all below; taken in interrupts */
	spinlock_t lock;
	/** @gone: 0, or why there will be no more progress: -ECANCELED, -ENODEV */
	int gone;
	/** @last: the status line, as it was when the queue went */
	struct orr_queue_status last;
	/** @waiters: struct orr_waiter by index */
	struct rb_root_cached waiters;
	/** @waiter_count: in the tree */
	unsigned int waiter_count;
	/** @armed_index: for which the firmware was last armed, or ORR_QUEUE_NOT_ARMED */
	u64 armed_index;
	/** @arm_node: in mailbox.arm_list; mailbox.lock */
	struct list_head arm_node;
};

/**
 * struct orr_waiter - somebody who waits until a queue has completed @index packets
 */
struct orr_waiter {
	/** @node: in orr_queue.waiters; empty: not in there */
	struct rb_node node;
	/** @link: in the list of those to fire */
	struct list_head link;
	/** @index: number of packets */
	u64 index;
	/** @wants_irq: an interrupt has to be asked for */
	bool wants_irq;
	/** @fire: called once, in any context, without locks of ours; the waiter may go inside */
	void (*fire)(struct orr_waiter *waiter, int error);
};

int orr_queue_create(struct orr_file *file, struct orr_vm *vm,
		     const struct drm_orr_queue_create *args, struct orr_queue **result);
void orr_queue_destroy(struct orr_file *file, struct orr_queue *queue);
void orr_queue_put(struct orr_queue *queue);

static inline struct orr_queue *orr_queue_get(struct orr_queue *queue)
{
	kref_get(&queue->ref);
	return queue;
}

int orr_queue_add_waiter(struct orr_queue *queue, struct orr_waiter *waiter);
bool orr_queue_remove_waiter(struct orr_queue *queue, struct orr_waiter *waiter);
void orr_queue_want_irq(struct orr_queue *queue, struct orr_waiter *waiter);
int orr_queue_read(struct orr_queue *queue, struct orr_queue_status *status);
void orr_queue_scan(struct orr_queue *queue);
void orr_queue_scan_number(struct orr_device *odev, u32 number);
bool orr_queue_scan_armed(struct orr_device *odev);
void orr_queue_all_gone(struct orr_device *odev);

/* orr_fence.c */
int orr_queue_wait(struct orr_queue *queue, u64 index, s64 timeout_ns,
		   struct orr_queue_status *status);
struct dma_fence *orr_fence_create(struct orr_queue *queue, u64 index);

#endif /* _ORR_QUEUE_H_ */
