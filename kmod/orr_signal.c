// SPDX-License-Identifier: GPL-2.0
/*
 * Who may signal which semaphore. Processes declare it; when the last queue that was attached to a
 * semaphore has stopped or gone, or cannot reach it any more, the semaphore is closed: orr_sem.c.
 *
 * The table is one for all cards, for a queue of one may signal in the memory of another. A
 * semaphore is known by its memory: the BO that has it, and where in there. It stands in the table
 * while queues are attached to it, and until it has been closed.
 *
 * An attachment belongs to the address with which it was made: it goes with the mapping. Nobody
 * waits for a firmware with the table's lock held.
 */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/slab.h>

#include <drm/drm_gem.h>
#include <drm/orrery_accel.h>

#include <orrery/fw/failure.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_queue.h"
#include "orr_route.h"
#include "orr_sem.h"
#include "orr_signal.h"
#include "orr_signaller.h"
#include "orr_vm.h"

/* Attachments that end under the lock at once. */
#define ORR_DROP_BATCH 64u

/*
 * Guards the table, the lists in it, closers, orr_vm.signallers, and orr_queue.signallers of all
 * queues.
 */
DEFINE_MUTEX(orr_sems_lock);
static DEFINE_HASHTABLE(orr_sems, 14);

static unsigned long orr_sem_key(const struct orr_bo *origin, u64 offset)
{
	return (unsigned long)origin + offset / sizeof(struct orr_semaphore);
}

/**
 * orr_sem_find - find a semaphore to which queues are attached, or were until now
 * @origin: the BO that has its memory
 * @offset: where in there
 *
 * Return: the semaphore, or NULL; orr_sems_lock is held.
 */
struct orr_sem *orr_sem_find(const struct orr_bo *origin, u64 offset)
{
	struct orr_sem *sem;

	lockdep_assert_held(&orr_sems_lock);
	hash_for_each_possible(orr_sems, sem, node, orr_sem_key(origin, offset))
		if (sem->origin == origin && sem->offset == offset)
			return sem;
	return NULL;
}

/**
 * orr_sem_insert - a semaphore gets its first attachment
 * @sem: with @origin, @offset and @bo; orr_sems_lock is held
 */
void orr_sem_insert(struct orr_sem *sem)
{
	lockdep_assert_held(&orr_sems_lock);
	INIT_LIST_HEAD(&sem->signallers);
	hash_add(orr_sems, &sem->node, orr_sem_key(sem->origin, sem->offset));
}

/**
 * orr_signaller_find - find an attachment
 * @sem: the semaphore
 * @queue: the queue
 *
 * Return: the attachment, or NULL; orr_sems_lock is held.
 */
struct orr_signaller *orr_signaller_find(struct orr_sem *sem, struct orr_queue *queue)
{
	struct orr_signaller *signaller;

	list_for_each_entry(signaller, &sem->signallers, of_sem)
		if (signaller->queue == queue)
			return signaller;
	return NULL;
}

static bool orr_signaller_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct orr_signaller, of_vm)->va <
	       rb_entry(b, struct orr_signaller, of_vm)->va;
}

/**
 * orr_signaller_insert - a queue is attached from now on
 * @signaller: all but its places in lists filled in, in a list of its own by @of_queue; not yet attached;
 *	orr_sems_lock is held
 */
void orr_signaller_insert(struct orr_signaller *signaller)
{
	struct orr_queue *queue = signaller->queue;

	lockdep_assert_held(&orr_sems_lock);
	list_add_tail(&signaller->of_sem, &signaller->sem->signallers);
	list_move_tail(&signaller->of_queue, &queue->signallers);
	rb_add(&signaller->of_vm, &queue->vm->signallers, orr_signaller_less);
	queue->signaller_count++;
}

/* The first at or behind an address. */
static struct orr_signaller *orr_signaller_at(struct orr_vm *vm, u64 va)
{
	struct rb_node *node = vm->signallers.rb_node;
	struct orr_signaller *found = NULL;

	while (node) {
		struct orr_signaller *signaller = rb_entry(node, struct orr_signaller, of_vm);

		if (signaller->va >= va) {
			found = signaller;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/**
 * orr_drop_begin - prepare
 * @drop: for attachments that end
 */
void orr_drop_begin(struct orr_drop *drop)
{
	INIT_LIST_HEAD(&drop->signallers);
	orr_sem_dead_init(&drop->dead);
}

/**
 * orr_signaller_drop - an attachment ends
 * @signaller: the attachment; orr_sems_lock is held
 * @code: ORR_QERR_*, for those who wait, if it was the last
 * @drop: takes it
 */
void orr_signaller_drop(struct orr_signaller *signaller, u32 code, struct orr_drop *drop)
{
	struct orr_sem *sem = signaller->sem;
	struct orr_queue *queue = signaller->queue;

	lockdep_assert_held(&orr_sems_lock);
	list_del(&signaller->of_sem);
	rb_erase(&signaller->of_vm, &queue->vm->signallers);
	list_move_tail(&signaller->of_queue, &drop->signallers);
	queue->signaller_count--;
	if (list_empty(&sem->signallers))
		orr_sem_abandon(sem, queue, code, &drop->dead);
}

/**
 * orr_drop_end - free attachments that have ended
 * @drop: them; BOs may go with them, so orr_sems_lock is not held
 */
void orr_drop_end(struct orr_drop *drop)
{
	struct orr_signaller *signaller, *next;

	list_for_each_entry_safe(signaller, next, &drop->signallers, of_queue) {
		orr_sem_put_bo(signaller->bo);
		kfree(signaller);
	}
	orr_sems_free(&drop->dead);
}

/**
 * orr_signaller_has_stopped - has a queue stopped, so that nothing more will be carried out for it?
 * @queue: the queue
 *
 * Return: whether it has.
 */
bool orr_signaller_has_stopped(struct orr_queue *queue)
{
	struct orr_queue_status status;

	return orr_queue_read(queue, &status) || status.error;
}

/**
 * orr_signaller_unmapped - what was attached at addresses that are not mapped any more is not
 * @vm: the address space; its lock is not held
 * @va: first address
 * @size: bytes
 * @epoch: orr_vm.epoch since they are not; what was attached later stays
 *
 * Return: whether orr_sems_wait_vm() has something to wait for.
 */
bool orr_signaller_unmapped(struct orr_vm *vm, u64 va, u64 size, u64 epoch)
{
	struct orr_signaller *signaller;
	struct orr_drop drop;
	struct rb_node *next;

	orr_drop_begin(&drop);
	scoped_guard(mutex, &orr_sems_lock) {
		signaller = orr_signaller_at(vm, va);
		while (signaller && signaller->va - va < size) {
			next = rb_next(&signaller->of_vm);
			if (signaller->epoch < epoch)
				orr_signaller_drop(signaller, ORR_QERR_ABANDONED, &drop);
			signaller = rb_entry_safe(next, struct orr_signaller, of_vm);
		}
	}
	if (list_empty(&drop.signallers))
		return false;
	orr_drop_end(&drop);
	return true;
}

/* Some of those of a queue. Return: whether there are more. */
static bool orr_signaller_drop_some(struct orr_queue *queue)
{
	u32 code = orr_is_lost(queue->odev) ? ORR_QERR_PEER_LOST : ORR_QERR_ABANDONED;
	struct orr_signaller *signaller, *next;
	struct orr_drop drop;
	u32 left = ORR_DROP_BATCH;
	bool more;

	orr_drop_begin(&drop);
	scoped_guard(mutex, &orr_sems_lock) {
		list_for_each_entry_safe(signaller, next, &queue->signallers, of_queue) {
			if (!left--)
				break;
			orr_signaller_drop(signaller, code, &drop);
		}
		more = !list_empty(&queue->signallers);
	}
	orr_drop_end(&drop);
	cond_resched();
	return more;
}

/**
 * orr_signaller_stopped - a queue has stopped or is going: it will not signal any more
 * @queue: the queue; the firmware has failed what its packets would have signalled
 *
 * Does not wait until they have been closed: see orr_sems_wait_queue().
 */
void orr_signaller_stopped(struct orr_queue *queue)
{
	while (orr_signaller_drop_some(queue))
		;
}

/**
 * orr_signaller_stopped_later - the same, by a work
 * @odev: the card; any context
 * @number: of the queue, below ORR_FW_QUEUES
 */
void orr_signaller_stopped_later(struct orr_device *odev, u32 number)
{
	set_bit(number, odev->stopped);
	queue_work(system_long_wq, &odev->stopped_work);
}

/* One queue's turn. Return: whether it needs another. */
static bool orr_signaller_turn(struct orr_device *odev, u32 number)
{
	struct orr_queue *queue = orr_queue_by_number(odev, number);
	bool more;

	if (!queue)
		return false;
	/* The number may be another queue's by now. */
	more = orr_signaller_has_stopped(queue) && orr_signaller_drop_some(queue);
	orr_queue_put(queue);
	return more;
}

/* Goes round, so that a queue with many does not hold up the others. */
static void orr_signaller_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, stopped_work);
	unsigned long number;

	while (!bitmap_empty(odev->stopped, ORR_FW_QUEUES)) {
		for_each_set_bit(number, odev->stopped, ORR_FW_QUEUES) {
			clear_bit(number, odev->stopped);
			if (orr_signaller_turn(odev, number))
				set_bit(number, odev->stopped);
		}
	}
}

/**
 * orr_signaller_card_lost - none of a card's queues will signal any more
 * @odev: the card, lost; its queues have been told
 */
void orr_signaller_card_lost(struct orr_device *odev)
{
	bitmap_fill(odev->stopped, ORR_FW_QUEUES);
	queue_work(system_long_wq, &odev->stopped_work);
}

/*
 * Whether a queue reaches the semaphore, and has done so all the time: what was on a way when a link of
 * it went down is lost, and he who sent it does not know.
 */
static bool orr_signaller_reaches(const struct orr_signaller *signaller)
{
	struct orr_bo *bo = signaller->bo;

	return bo->kind != ORR_BO_KIND_PEER ||
	       orr_way_stands(orr_bo_device(bo)->node, orr_bo_device(bo->owner)->node,
			      signaller->way);
}

/**
 * orr_signaller_ways_changed - ways between cards came or ended
 *
 * The caller may sleep.
 */
void orr_signaller_ways_changed(void)
{
	struct orr_signaller *signaller, *next;
	struct orr_drop drop;
	struct hlist_node *following;
	struct orr_sem *sem;
	int bucket;

	orr_drop_begin(&drop);
	scoped_guard(mutex, &orr_sems_lock) {
		hash_for_each_safe(orr_sems, bucket, following, sem, node) {
			if (sem->closing)
				continue;
			/* Not only if they were the last: nobody looks again when the others stop. */
			list_for_each_entry_safe(signaller, next, &sem->signallers, of_sem)
				if (!orr_signaller_reaches(signaller))
					orr_signaller_drop(signaller, ORR_QERR_PEER_LOST, &drop);
		}
	}
	orr_drop_end(&drop);
}

/*
 * Its work is not in the card's own queues: it waits for those who allocate under the table's lock,
 * and what fences depend on must not wait behind that.
 */

/**
 * orr_signaller_init - prepare
 * @odev: the card
 */
void orr_signaller_init(struct orr_device *odev)
{
	INIT_WORK(&odev->stopped_work, orr_signaller_work);
	orr_closer_init(&odev->closer);
}

/**
 * orr_signaller_fini - no more work of ours after this
 * @odev: the card, lost
 */
void orr_signaller_fini(struct orr_device *odev)
{
	flush_work(&odev->stopped_work);
	orr_closer_fini(&odev->closer);
}
