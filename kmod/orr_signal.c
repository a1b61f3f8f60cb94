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
#include "orr_sem.h"
#include "orr_signal.h"
#include "orr_vm.h"

/* Attachments that end under the lock at once. */
#define ORR_DROP_BATCH 64u

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
	/** @losses: of the link to the memory before the queue was attached, if there is one between */
	u32 losses;
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

/**
 * struct orr_spares - what attaching may need, allocated before the lock is taken
 */
struct orr_spares {
	/** @signallers: by their @of_queue */
	struct list_head signallers;
	/** @sems: by their @link */
	struct list_head sems;
};

/**
 * struct orr_sem_range - semaphores side by side, as a call of user space names them
 */
struct orr_sem_range {
	/** @bo: as the queue's card sees the memory, a reference */
	struct orr_bo *bo;
	/** @va: of the first */
	u64 va;
	/** @offset: of the first, in the memory */
	u64 offset;
	/** @count: number */
	u32 count;
	/** @epoch: orr_vm.epoch when they were looked up */
	u64 epoch;
	/** @losses: of the link to them at that time */
	u32 losses;
};

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

static struct orr_sem *orr_sem_find(const struct orr_bo *origin, u64 offset)
{
	struct orr_sem *sem;

	lockdep_assert_held(&orr_sems_lock);
	hash_for_each_possible(orr_sems, sem, node, orr_sem_key(origin, offset))
		if (sem->origin == origin && sem->offset == offset)
			return sem;
	return NULL;
}

static struct orr_sem *orr_sem_of_range(const struct orr_sem_range *range, u32 i)
{
	return orr_sem_find(orr_bo_origin(range->bo),
			    range->offset + i * sizeof(struct orr_semaphore));
}

static struct orr_signaller *orr_signaller_find(struct orr_sem *sem, struct orr_queue *queue)
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

static void orr_drop_begin(struct orr_drop *drop)
{
	INIT_LIST_HEAD(&drop->signallers);
	orr_sem_dead_init(&drop->dead);
}

static void orr_signaller_drop(struct orr_signaller *signaller, u32 code, struct orr_drop *drop)
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

/* BOs may go with this, so the lock is not held. */
static void orr_drop_end(struct orr_drop *drop)
{
	struct orr_signaller *signaller, *next;

	list_for_each_entry_safe(signaller, next, &drop->signallers, of_queue) {
		orr_sem_put_bo(signaller->bo);
		kfree(signaller);
	}
	orr_sems_free(&drop->dead);
}

/* A queue has stopped: nothing more will be carried out for it. */
static bool orr_signaller_has_stopped(struct orr_queue *queue)
{
	struct orr_queue_status status;

	return orr_queue_read(queue, &status) || status.error;
}

/* Whether one of the range is being closed at this moment. */
static bool orr_range_is_closing(const struct orr_sem_range *range)
{
	u32 i;

	for (i = 0; i < range->count; i++) {
		struct orr_sem *sem = orr_sem_of_range(range, i);

		if (sem && sem->closing)
			return true;
	}
	return false;
}

/* How many of the range the queue is not attached to yet. */
static u32 orr_range_count_new(const struct orr_sem_range *range, struct orr_queue *queue)
{
	u32 i, count = 0;

	for (i = 0; i < range->count; i++) {
		struct orr_sem *sem = orr_sem_of_range(range, i);

		count += !sem || !orr_signaller_find(sem, queue);
	}
	return count;
}

/* Attaches the queue to one semaphore of the range. */
static void orr_signaller_add(struct orr_queue *queue, const struct orr_sem_range *range, u32 i,
			      struct orr_spares *spares)
{
	struct orr_sem *sem = orr_sem_of_range(range, i);
	struct orr_signaller *signaller;

	if (sem && orr_signaller_find(sem, queue))
		return;
	signaller = list_first_entry(&spares->signallers, struct orr_signaller, of_queue);
	if (!sem) {
		sem = list_first_entry(&spares->sems, struct orr_sem, link);
		list_del(&sem->link);
		INIT_LIST_HEAD(&sem->signallers);
		sem->origin = orr_bo_origin(range->bo);
		sem->offset = range->offset + i * sizeof(struct orr_semaphore);
		sem->bo = range->bo->kind == ORR_BO_KIND_PEER ? sem->origin : range->bo;
		orr_sem_get_bo(sem->bo);
		hash_add(orr_sems, &sem->node, orr_sem_key(sem->origin, sem->offset));
	}
	signaller->sem = sem;
	signaller->queue = queue;
	signaller->va = range->va + i * sizeof(struct orr_semaphore);
	signaller->epoch = range->epoch;
	signaller->losses = range->losses;
	signaller->bo = range->bo;
	orr_sem_get_bo(range->bo);
	list_add_tail(&signaller->of_sem, &sem->signallers);
	list_move_tail(&signaller->of_queue, &queue->signallers);
	rb_add(&signaller->of_vm, &queue->vm->signallers, orr_signaller_less);
	queue->signaller_count++;
}

/* Whether the queue is still attached to one of them by a link that has gone down since. */
static bool orr_range_is_stale(const struct orr_sem_range *range, struct orr_queue *queue)
{
	u32 i;

	for (i = 0; i < range->count; i++) {
		struct orr_sem *sem = orr_sem_of_range(range, i);
		struct orr_signaller *old = sem ? orr_signaller_find(sem, queue) : NULL;

		if (old && old->bo->kind == ORR_BO_KIND_PEER && old->losses != range->losses)
			return true;
	}
	return false;
}

/*
 * All or none. Return: 0, -EIO, -ENOSPC, -EAGAIN if something was unmapped since they were looked
 * up, 1: one of them is being closed, which has to be waited for, or 2: has to be closed first.
 */
static int orr_range_attach(struct orr_queue *queue, const struct orr_sem_range *range,
			    struct orr_spares *spares)
{
	u32 i;

	lockdep_assert_held(&orr_sems_lock);
	if (orr_signaller_has_stopped(queue))
		return -EIO;
	if (READ_ONCE(queue->vm->epoch) != range->epoch)
		return -EAGAIN;
	if (orr_range_is_closing(range))
		return 1;
	if (orr_range_is_stale(range, queue))
		return 2;
	if (queue->signaller_count + orr_range_count_new(range, queue) > ORR_SIGNALLERS_MAX)
		return -ENOSPC;
	for (i = 0; i < range->count; i++)
		orr_signaller_add(queue, range, i, spares);
	return 0;
}

static int orr_spares_alloc(struct orr_spares *spares, u32 count)
{
	INIT_LIST_HEAD(&spares->signallers);
	INIT_LIST_HEAD(&spares->sems);
	while (count--) {
		struct orr_signaller *signaller = kzalloc(sizeof(*signaller), GFP_KERNEL_ACCOUNT);
		struct orr_sem *sem;

		if (!signaller)
			return -ENOMEM;
		list_add(&signaller->of_queue, &spares->signallers);
		sem = kzalloc(sizeof(*sem), GFP_KERNEL_ACCOUNT);
		if (!sem)
			return -ENOMEM;
		list_add(&sem->link, &spares->sems);
	}
	return 0;
}

static void orr_spares_free(struct orr_spares *spares)
{
	struct orr_signaller *signaller, *next_signaller;
	struct orr_sem *sem, *next_sem;

	list_for_each_entry_safe(signaller, next_signaller, &spares->signallers, of_queue)
		kfree(signaller);
	list_for_each_entry_safe(sem, next_sem, &spares->sems, link)
		kfree(sem);
}

static int orr_range_find(struct orr_queue *queue, struct orr_sem_range *range, u32 flags)
{
	range->bo = orr_vm_lookup(queue->vm, range->va, range->count * sizeof(struct orr_semaphore),
				  flags, &range->offset, &range->epoch);
	return PTR_ERR_OR_ZERO(range->bo);
}

/* The port of the card that has the memory, if a link leads there. Return: whether it could be looked at. */
static bool orr_range_look(const struct orr_sem_range *range, struct orr_link_look *look)
{
	struct orr_device *owner;
	bool looked;
	int idx;

	if (range->bo->kind != ORR_BO_KIND_PEER)
		return false;
	owner = orr_bo_device(range->bo->owner);
	if (orr_enter(owner, &idx))
		return false;
	looked = orr_link_look(owner, range->bo->owner_port, look);
	orr_exit(owner, idx);
	return looked;
}

/* The link may have gone down while the queue was being attached: no change comes any more then. */
static void orr_range_check_link(const struct orr_sem_range *range)
{
	struct orr_link_look look;

	if (orr_range_look(range, &look) && (!orr_link_is_up(&look) || look.losses != range->losses))
		orr_signaller_links_changed(orr_bo_device(range->bo->owner));
}

/* Attaches, however often it takes until nobody is in the way. */
static int orr_range_attach_patient(struct orr_queue *queue, struct orr_sem_range *range,
				    struct orr_spares *spares)
{
	struct orr_link_look look;
	unsigned int closed;
	int ret;

	do {
		ret = orr_range_find(queue, range, ORR_BIND_WRITE);
		if (ret)
			return ret;
		if (orr_range_look(range, &look))
			range->losses = look.losses;
		scoped_guard(mutex, &orr_sems_lock) {
			ret = orr_range_attach(queue, range, spares);
			closed = orr_sems_count_closed();
		}
		if (!ret)
			orr_range_check_link(range);
		if (ret == 1)
			ret = orr_sems_wait_closed(closed) ?: -EAGAIN;
		/* What it said before the loss is lost; what it says from now on is another attachment's. */
		if (ret == 2) {
			orr_signaller_links_changed(orr_bo_device(range->bo->owner));
			ret = -EAGAIN;
		}
		drm_gem_object_put(&range->bo->base);
	} while (ret == -EAGAIN && !fatal_signal_pending(current));
	return ret == -EAGAIN ? -ERESTARTSYS : ret;
}

/**
 * orr_signaller_attach - a queue may signal semaphores
 * @queue: the queue, which its file holds
 * @va: of the first, in the queue's address space; aligned
 * @count: semaphores, at most ORR_SIGNALLERS_AT_ONCE
 *
 * Return: 0, or with nothing changed -EFAULT if they are not in one mapping, -EACCES if that is
 * not to be written to, -EIO if the queue has stopped, -ENOSPC, -ENOMEM, -ERESTARTSYS: killed.
 */
int orr_signaller_attach(struct orr_queue *queue, u64 va, u32 count)
{
	struct orr_sem_range range = { .va = va, .count = count };
	struct orr_spares spares;
	int ret;

	ret = orr_spares_alloc(&spares, count);
	if (!ret)
		ret = orr_range_attach_patient(queue, &range, &spares);
	orr_spares_free(&spares);
	return ret;
}

/**
 * orr_signaller_detach - a queue will not signal semaphores any more
 * @queue: the queue, which its file holds
 * @va: of the first, in the queue's address space; aligned
 * @count: semaphores, at most ORR_SIGNALLERS_AT_ONCE
 *
 * Return: 0 when none of them is being closed any more, -EFAULT if they are not in one mapping,
 * -ERESTARTSYS: killed while it waited for that.
 */
int orr_signaller_detach(struct orr_queue *queue, u64 va, u32 count)
{
	struct orr_sem_range range = { .va = va, .count = count };
	struct orr_drop drop;
	bool closing = true;
	int ret;
	u32 i;

	ret = orr_range_find(queue, &range, 0);
	if (ret)
		return ret;
	orr_drop_begin(&drop);
	scoped_guard(mutex, &orr_sems_lock) {
		for (i = 0; i < count; i++) {
			struct orr_signaller *signaller = NULL;
			struct orr_sem *sem = orr_sem_of_range(&range, i);

			if (sem)
				signaller = orr_signaller_find(sem, queue);
			if (signaller)
				orr_signaller_drop(signaller, ORR_QERR_ABANDONED, &drop);
		}
	}
	orr_drop_end(&drop);
	while (closing && !ret) {
		unsigned int closed;

		scoped_guard(mutex, &orr_sems_lock) {
			closing = orr_range_is_closing(&range);
			closed = orr_sems_count_closed();
		}
		if (closing)
			ret = orr_sems_wait_closed(closed);
	}
	drm_gem_object_put(&range.bo->base);
	return ret;
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
 * Whether a queue reaches the semaphore, and has done so all the time: what was on a link that went
 * down is lost, and he who sent it does not know.
 */
static bool orr_signaller_reaches(const struct orr_signaller *signaller,
				  const struct orr_link_look looks[])
{
	const struct orr_bo *bo = signaller->bo;

	return bo->kind != ORR_BO_KIND_PEER || (orr_link_is_up(&looks[bo->owner_port]) &&
						looks[bo->owner_port].losses == signaller->losses);
}

/**
 * orr_signaller_links_changed - links of a card came up or went down
 * @odev: the card; the caller may sleep
 */
void orr_signaller_links_changed(struct orr_device *odev)
{
	struct orr_signaller *signaller, *next;
	struct orr_drop drop;
	struct orr_link_look looks[ORR_LINK_MAX_PORTS];
	struct hlist_node *following;
	struct orr_sem *sem;
	int bucket;

	orr_drop_begin(&drop);
	scoped_guard(mutex, &orr_sems_lock) {
		/* Under the lock: who attaches after a link has come up again is not meant. */
		if (!orr_links_look(odev, looks))
			break;
		hash_for_each_safe(orr_sems, bucket, following, sem, node) {
			if (sem->closing || orr_bo_device(sem->origin) != odev)
				continue;
			/* Not only if they were the last: nobody looks again when the others stop. */
			list_for_each_entry_safe(signaller, next, &sem->signallers, of_sem)
				if (!orr_signaller_reaches(signaller, looks))
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
