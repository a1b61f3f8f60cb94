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
struct drm_orr_queue_set;
struct drm_orr_queue_stats;
struct orr_device;
struct orr_file;
struct orr_vm;
struct orr_waiter;

#define ORR_QUEUE_NOT_ARMED U64_MAX

/* Of a queue's name, with the final zero: ORR_NAME_BYTES. */
#define ORR_QUEUE_NAME_BYTES 24

/* Waiters and fences that a queue can have at once. */
#define ORR_QUEUE_MAX_WAITERS 4096u

/* Waiters that are taken out under a queue's lock at once. */
#define ORR_QUEUE_FIRE_BATCH 64u

/**
 * struct orr_wait_edge - a queue's part in a cycle of waits, as the firmware reported it
 *
 * It stands until the packet that waits has completed; what comes later does not bring it back.
 */
struct orr_wait_edge {
	/** @report: of the firmware; 0: none */
	u32 report;
	/** @edges: of the cycle */
	u32 edges;
	/** @signaller: number of the queue whose packets hold the signal */
	u32 signaller;
	/** @semaphore: VA */
	u64 semaphore;
	/** @wanted: value that is waited for */
	u64 wanted;
	/** @value: of the semaphore when it was found */
	u64 value;
	/** @index: of the waiting packet */
	u64 index;
};

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
	/** @file: its owner; valid while the queue is in orr_device.queues, under queue_lock */
	struct orr_file *file;
	/** @user_number: what its owner calls it */
	u32 user_number;
	/** @name: printable, zero-padded */
	char name[ORR_QUEUE_NAME_BYTES];
	/** @number: the firmware's number */
	u32 number;
	/** @work_from: records of work before this are of another queue; orr_device.queue_lock */
	u64 work_from;
	/** @ring_va: struct orr_ring */
	u64 ring_va;
	/** @entries: of the ring, a power of two */
	u32 entries;
	/** @slot: in the file's doorbell page */
	u32 slot;
	/** @generation: for ORR_DB_VALUE() */
	u64 generation;
	/** @fence_context: of its dma_fences */
	u64 fence_context;

	/** @signallers: semaphores to which it is attached; orr_signal.c */
	struct list_head signallers;
	/** @signaller_count: in @signallers */
	unsigned int signaller_count;
	/** @closing_sems: semaphores it has left alone that are still to be closed; orr_sems_lock */
	unsigned int closing_sems;

	/** @lock: guards all below; taken in interrupts */
	spinlock_t lock;
	/** @gone: 0, or why there will be no more progress: -ECANCELED, -ENODEV, -EIO */
	int gone;
	/** @closing: it is being destroyed */
	bool closing;
	/** @priority: ORR_QUEUE_PRIORITY_* */
	u32 priority;
	/** @weight: 0: the default */
	u32 weight;
	/** @slice_us: 0: the firmware's default */
	u32 slice_us;
	/** @edge: of the last cycle of waits in which it took part */
	struct orr_wait_edge edge;
	/** @cycles: how many whole cycles were reported with it in them; waits look for a change */
	u32 cycles;
	/** @last: the status line, as it was when the queue went */
	struct orr_queue_status last;
	/** @last_usage: likewise the engine time */
	struct orr_queue_usage last_usage;
	/** @waiters: struct orr_waiter by index: those who only listen, and [1] who need interrupts */
	struct rb_root_cached waiters[2];
	/** @waiter_count: in both trees */
	unsigned int waiter_count;
	/** @sleepers: of the waiters those who want to know of a cycle of waits */
	struct list_head sleepers;
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
	/** @link: in orr_queue.sleepers, then in the list of those to fire */
	struct list_head link;
	/** @index: number of packets */
	u64 index;
	/** @wants_irq: an interrupt has to be asked for; says in which tree it is */
	bool wants_irq;
	/** @wants_deadlock: it fires also when the queue turns out to be in a cycle of waits */
	bool wants_deadlock;
	/** @fire: called once, in any context, without locks of ours; the waiter may go inside */
	void (*fire)(struct orr_waiter *waiter, int error);
};

/**
 * struct orr_scan - a look at all queues for which somebody waits
 */
struct orr_scan {
	/** @next: the first queue that is still to be looked at */
	unsigned long next;
	/** @room: for so many queues and waiters; the caller's */
	unsigned int room;
	/** @looked: at how many queues */
	unsigned int looked;
	/** @fired: how many waiters need not wait any longer */
	unsigned int fired;
};

int orr_queue_create(struct orr_file *file, struct orr_vm *vm, u32 user_number,
		     const struct drm_orr_queue_create *args, struct orr_queue **result);
void orr_queue_destroy(struct orr_file *file, struct orr_queue *queue);
void orr_queue_put(struct orr_queue *queue);

static inline struct orr_queue *orr_queue_get(struct orr_queue *queue)
{
	kref_get(&queue->ref);
	return queue;
}

int orr_queue_read_locked(struct orr_queue *queue, struct orr_queue_status *status);
int orr_queue_read(struct orr_queue *queue, struct orr_queue_status *status);
void orr_queue_engine_time(struct orr_queue *queue, u64 *vector_ps, u64 *copy_ps);
void orr_queue_all_gone(struct orr_device *odev);
void orr_queue_recheck_all(struct orr_device *odev);
struct orr_queue *orr_queue_by_number(struct orr_device *odev, u32 number);
bool orr_queue_waits_locked(struct orr_queue *queue, struct orr_wait_edge *edge);

/* orr_waiter.c */
int orr_queue_add_waiter(struct orr_queue *queue, struct orr_waiter *waiter);
bool orr_queue_remove_waiter(struct orr_queue *queue, struct orr_waiter *waiter);
void orr_queue_want_irq(struct orr_queue *queue, struct orr_waiter *waiter);
void orr_queue_scan(struct orr_queue *queue);
void orr_queue_scan_number(struct orr_device *odev, u32 number);
bool orr_queue_scan_some(struct orr_device *odev, struct orr_scan *scan);
unsigned int orr_queue_scan_armed(struct orr_device *odev);
void orr_queue_fire_deadlock(struct orr_queue *queue);
void orr_waiters_end(struct orr_queue *queue, u64 completed, int error);

/* orr_sched.c */
int orr_queue_name_check(const u8 *name);
void orr_queue_name_make(char *to, const u8 *name, u32 number);
void orr_name_send(struct orr_device *odev, u32 kind, u32 number, const char *name);
int orr_share_check(u32 priority, u32 weight, u32 slice_us);
int orr_limit_check(u32 limit_us);
int orr_queue_set(struct orr_queue *queue, const struct drm_orr_queue_set *args);
int orr_queue_stats(struct orr_queue *queue, struct drm_orr_queue_stats *args);
int orr_queue_abort(struct orr_queue *queue);
int orr_queue_info(struct orr_queue *queue, u64 *state, u64 *completed);

/* orr_fence.c */
int orr_queue_wait(struct orr_queue *queue, u64 index, s64 timeout_ns,
		   struct orr_queue_status *status);
void orr_fence_exit(void);
struct dma_fence *orr_fence_create(struct orr_queue *queue, u64 index);

#endif /* _ORR_QUEUE_H_ */
