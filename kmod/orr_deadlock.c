// SPDX-License-Identifier: GPL-2.0
/*
 * Cycles of waits. The firmware reports one as its edges: this queue waits, and that queue's
 * packets hold the signal. A queue waits for one thing at a time, so each queue keeps the last
 * edge that begins at it, and a report is whole once its edges lead round in a circle of the
 * length that they name. It stands while all of its queues still wait with the same packet. What
 * does not add up to such a circle is never shown to anybody.
 *
 * Nothing is stopped: a process can still signal.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/orrery_accel.h>

#include "orr_deadlock.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_queue.h"

/**
 * struct orr_cycle_edge - an edge and the queue at which it begins
 */
struct orr_cycle_edge {
	/** @queue: who waits, a reference if somebody asked for one */
	struct orr_queue *queue;
	/** @edge: what for */
	struct orr_wait_edge edge;
};

/*
 * Follows the edges from a queue until they are back at it. Return: their number, or 0 if there
 * is no such circle now. With @room edges at most in @cycle, which may be NULL.
 */
static u32 orr_cycle_walk(struct orr_device *odev, struct orr_queue *first,
			  struct orr_cycle_edge *cycle, u32 room)
{
	struct orr_queue *queue = first;
	struct orr_wait_edge edge;
	u32 report = 0, edges = 0, count = 0;

	lockdep_assert_held(&odev->queue_lock);
	do {
		if (!queue || !orr_queue_waits_locked(queue, &edge))
			return 0;
		if (!count) {
			report = edge.report;
			edges = edge.edges;
		}
		/* All of one report and one length, so that edges which form no circle end too. */
		if (edge.report != report || edge.edges != edges || count == edges)
			return 0;
		if (count < room) {
			cycle[count].queue = queue;
			cycle[count].edge = edge;
		}
		count++;
		queue = odev->queues[edge.signaller];
	} while (queue != first);
	return count == edges ? count : 0;
}

/* All edges of a report have come: wakes up those who wait for one of its queues. */
static void orr_deadlock_tell(struct orr_device *odev, struct orr_queue *first, u32 edges)
{
	struct orr_queue *queue = orr_queue_get(first);

	while (edges--) {
		u32 next;

		orr_queue_fire_deadlock(queue);
		scoped_guard(spinlock_irqsave, &queue->lock)
			next = queue->edge.signaller;
		orr_queue_put(queue);
		queue = orr_queue_by_number(odev, next);
		if (!queue)
			return;
	}
	orr_queue_put(queue);
}

/**
 * orr_deadlock_event - an edge of a cycle, as the firmware says
 * @odev: the card; any context
 * @event: ORR_EVENT_DEADLOCK
 */
void orr_deadlock_event(struct orr_device *odev, const struct orr_mbox_message *event)
{
	struct orr_wait_edge edge = {
		.report = lower_32_bits(event->arg[0]),
		.edges = event->arg[0] >> 48,
		.signaller = event->arg[1] >> 32,
		.semaphore = event->arg[2],
		.wanted = event->arg[3],
		.value = event->arg[4],
		.index = event->arg[5],
	};
	u32 number = lower_32_bits(event->arg[1]);
	u32 position = (event->arg[0] >> 32) & 0xffff;
	struct orr_queue *queue;
	u32 whole;

	if (!edge.report || !edge.edges || edge.edges > ORR_FW_QUEUES || position >= edge.edges ||
	    number >= ORR_FW_QUEUES || edge.signaller >= ORR_FW_QUEUES) {
		drm_dbg(&odev->drm, "deadlock report %u makes no sense: edge %u of %u, queues %u, %u\n",
			edge.report, position, edge.edges, number, edge.signaller);
		return;
	}
	queue = orr_queue_by_number(odev, number);
	if (!queue)
		return;
	scoped_guard(spinlock_irqsave, &queue->lock)
		queue->edge = edge;
	scoped_guard(spinlock_irqsave, &odev->queue_lock)
		whole = orr_cycle_walk(odev, queue, NULL, 0);
	if (whole) {
		drm_dbg(&odev->drm, "deadlock report %u: a cycle of %u queues, %s among them\n",
			edge.report, whole, queue->name);
		orr_deadlock_tell(odev, queue, whole);
	}
	orr_queue_put(queue);
}

/* The firmware knows better than a status line whether a queue waits at this moment. */
static bool orr_cycle_confirm(struct orr_cycle_edge *cycle, u32 count)
{
	u64 state, completed;
	u32 i;

	for (i = 0; i < count; i++)
		if (orr_queue_info(cycle[i].queue, &state, &completed) ||
		    state != ORR_QUEUE_WAITING || completed > cycle[i].edge.index)
			return false;
	return true;
}

static void orr_cycle_put(struct orr_cycle_edge *cycle, u32 count)
{
	while (count--)
		orr_queue_put(cycle[count].queue);
	kvfree(cycle);
}

/* The cycle in which a queue is. Return: its length, 0: in none, or -ENOMEM. */
static int orr_cycle_get(struct orr_queue *queue, struct orr_cycle_edge **result)
{
	struct orr_device *odev = queue->odev;
	struct orr_cycle_edge *cycle;
	u32 room, count, i;

	scoped_guard(spinlock_irqsave, &odev->queue_lock)
		room = orr_cycle_walk(odev, queue, NULL, 0);
	if (!room)
		return 0;
	cycle = kvcalloc(room, sizeof(*cycle), GFP_KERNEL);
	if (!cycle)
		return -ENOMEM;
	scoped_guard(spinlock_irqsave, &odev->queue_lock) {
		count = orr_cycle_walk(odev, queue, cycle, room);
		/* A newer and longer one: whoever asks again will see it. */
		if (count > room)
			count = 0;
		for (i = 0; i < count; i++)
			orr_queue_get(cycle[i].queue);
	}
	if (count && orr_cycle_confirm(cycle, count)) {
		*result = cycle;
		return count;
	}
	orr_cycle_put(cycle, count);
	return 0;
}

/**
 * orr_deadlock_stands - whether a queue is in a cycle of waits now
 * @queue: the queue
 *
 * Asks the firmware, if there was a report, so that a signal that has just gone out counts.
 *
 * Return: whether it is.
 */
bool orr_deadlock_stands(struct orr_queue *queue)
{
	struct orr_cycle_edge *cycle;
	int count;

	count = orr_cycle_get(queue, &cycle);
	if (count <= 0)
		return false;
	orr_cycle_put(cycle, count);
	return true;
}

/*
 * What a file may know of an edge. Of another file's queue it gets no number, no address and no
 * index; if that belongs to another user, no name and no values either.
 */
static void orr_edge_show(struct orr_file *file, struct orr_device *odev,
			  const struct orr_cycle_edge *from, struct drm_orr_wait_edge *to)
{
	const struct orr_wait_edge *edge = &from->edge;
	struct orr_queue *signaller;

	guard(spinlock_irqsave)(&odev->queue_lock);
	if (odev->queues[from->queue->number] == from->queue) {
		struct orr_file *owner = from->queue->file;

		if (owner == file) {
			to->queue = from->queue->user_number;
			to->semaphore = edge->semaphore;
			to->index = edge->index;
		}
		if (owner == file || uid_eq(owner->uid, file->uid)) {
			to->wanted = edge->wanted;
			to->value = edge->value;
			memcpy(to->queue_name, from->queue->name, sizeof(to->queue_name));
		}
	}
	signaller = odev->queues[edge->signaller];
	if (signaller) {
		if (signaller->file == file)
			to->signaller = signaller->user_number;
		if (signaller->file == file || uid_eq(signaller->file->uid, file->uid))
			memcpy(to->signaller_name, signaller->name, sizeof(to->signaller_name));
	}
}

/* The newest report that stands and has a queue of the file in it. Return: as orr_cycle_get(). */
static int orr_cycle_of_file(struct orr_file *file, struct orr_cycle_edge **result)
{
	struct orr_cycle_edge *cycle, *best = NULL;
	struct orr_queue *queue;
	unsigned long number;
	int count, length = 0;

	lockdep_assert_held(&file->lock);
	xa_for_each(&file->queues, number, queue) {
		u32 report;

		scoped_guard(spinlock_irqsave, &queue->lock)
			report = queue->edge.report;
		if (!report || (best && report <= best[0].edge.report))
			continue;
		count = orr_cycle_get(queue, &cycle);
		if (!count)
			continue;
		if (best)
			orr_cycle_put(best, length);
		if (count < 0)
			return count;
		best = cycle;
		length = count;
	}
	*result = best;
	return length;
}

/**
 * orr_deadlock_query - show a process the cycle of waits in which it is
 * @file: who asks
 * @args: of the ioctl
 *
 * Return: 0, -ENOMEM, -EFAULT.
 */
int orr_deadlock_query(struct orr_file *file, struct drm_orr_query_deadlock *args)
{
	struct drm_orr_wait_edge __user *user = u64_to_user_ptr(args->edges);
	struct drm_orr_wait_edge *shown __free(kvfree) = NULL;
	struct orr_cycle_edge *cycle = NULL;
	u32 room = args->count, report = 0;
	int length, i;

	if (mutex_lock_interruptible(&file->lock))
		return -ERESTARTSYS;
	length = orr_cycle_of_file(file, &cycle);
	mutex_unlock(&file->lock);
	if (length < 0)
		return length;
	room = min_t(u32, room, length);
	if (room) {
		shown = kvcalloc(room, sizeof(*shown), GFP_KERNEL);
		if (shown)
			for (i = 0; i < room; i++)
				orr_edge_show(file, file->odev, &cycle[i], &shown[i]);
	}
	if (length) {
		report = cycle[0].edge.report;
		orr_cycle_put(cycle, length);
	}
	if (room && !shown)
		return -ENOMEM;
	if (room && copy_to_user(user, shown, array_size(room, sizeof(*shown))))
		return -EFAULT;
	args->count = length;
	args->report = report;
	return 0;
}
