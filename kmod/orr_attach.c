// SPDX-License-Identifier: GPL-2.0
/*
 * Attaching queues to semaphores, and detaching them, as user space asks for it: a range at a time,
 * all or none. Who may signal which semaphore, and until when, is in orr_signal.c.
 */
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

/* Times that an older attachment of the same queue is found to be by another way. */
#define ORR_ATTACH_TRIES 10u

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
	/** @way: PEER: version of the way there, at that time; 0: none */
	u32 way;
};

static struct orr_sem *orr_sem_of_range(const struct orr_sem_range *range, u32 i)
{
	return orr_sem_find(orr_bo_origin(range->bo),
			    range->offset + i * sizeof(struct orr_semaphore));
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
		sem->origin = orr_bo_origin(range->bo);
		sem->offset = range->offset + i * sizeof(struct orr_semaphore);
		sem->bo = range->bo->kind == ORR_BO_KIND_PEER ? sem->origin : range->bo;
		orr_sem_get_bo(sem->bo);
		orr_sem_insert(sem);
	}
	signaller->sem = sem;
	signaller->queue = queue;
	signaller->va = range->va + i * sizeof(struct orr_semaphore);
	signaller->epoch = range->epoch;
	signaller->way = range->way;
	signaller->bo = range->bo;
	orr_sem_get_bo(range->bo);
	orr_signaller_insert(signaller);
}

/* Whether the queue is still attached to one of them by a way on which something was lost since. */
static bool orr_range_is_stale(const struct orr_sem_range *range, struct orr_queue *queue)
{
	u32 i;

	for (i = 0; i < range->count; i++) {
		struct orr_sem *sem = orr_sem_of_range(range, i);
		struct orr_signaller *old = sem ? orr_signaller_find(sem, queue) : NULL;

		if (old && old->bo->kind == ORR_BO_KIND_PEER && old->way != range->way)
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
	if (IS_ERR(range->bo))
		return PTR_ERR(range->bo);
	/*
	 * Whether a barrier's members can still come is for the cards to see; a multicast is no one
	 * memory.
	 */
	if (range->bo->kind == ORR_BO_KIND_BARRIER || range->bo->kind == ORR_BO_KIND_MULTICAST) {
		drm_gem_object_put(&range->bo->base);
		return -EINVAL;
	}
	return 0;
}

/* The way to the memory as it is now. Return: whether the queue's card reaches it. */
static bool orr_range_look(const struct orr_sem_range *range, u32 *way)
{
	bool up = true;

	*way = 0;
	if (range->bo->kind == ORR_BO_KIND_PEER)
		*way = orr_way_look(orr_bo_device(range->bo), orr_bo_device(range->bo->owner), &up);
	return up;
}

/* Something may have been lost while the queue was being attached: no change comes any more then. */
static void orr_range_check_way(const struct orr_sem_range *range)
{
	u32 way;

	if (!orr_range_look(range, &way) || way != range->way)
		orr_signaller_ways_changed();
}

/* Attaches, however often it takes until nobody is in the way. */
static int orr_range_attach_patient(struct orr_queue *queue, struct orr_sem_range *range,
				    struct orr_spares *spares)
{
	unsigned int closed, tries = 0;
	int ret;

	do {
		ret = orr_range_find(queue, range, ORR_BIND_WRITE);
		if (ret)
			return ret;
		orr_range_look(range, &range->way);
		scoped_guard(mutex, &orr_sems_lock) {
			ret = orr_range_attach(queue, range, spares);
			closed = orr_sems_count_closed();
		}
		if (!ret)
			orr_range_check_way(range);
		if (ret == 1)
			ret = orr_sems_wait_closed(closed) ?: -EAGAIN;
		/*
		 * What it said before the loss is lost; what it says from now on is another attachment's. A
		 * card whose links change all the time is not waited for.
		 */
		if (ret == 2) {
			orr_signaller_ways_changed();
			ret = ++tries < ORR_ATTACH_TRIES ? -EAGAIN : -ENODEV;
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
 * not to be written to, -EIO if the queue has stopped, -ENOSPC, -ENOMEM, -ENODEV: its way there changes
 * all the time, -ERESTARTSYS: killed.
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
