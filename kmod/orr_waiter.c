// SPDX-License-Identifier: GPL-2.0
/*
 * Those who wait for a queue's progress, and who looks whether there is any: interrupts, and works
 * in their place when there is much.
 */
#include "orr_device.h"
#include "orr_queue.h"

static struct orr_waiter *orr_waiter_first_of(struct orr_queue *queue, bool wants_irq)
{
	return rb_entry_safe(rb_first_cached(&queue->waiters[wants_irq]), struct orr_waiter, node);
}

static struct orr_waiter *orr_waiter_first(struct orr_queue *queue)
{
	struct orr_waiter *listens = orr_waiter_first_of(queue, false);
	struct orr_waiter *needs = orr_waiter_first_of(queue, true);

	if (!listens || !needs)
		return listens ?: needs;
	return needs->index < listens->index ? needs : listens;
}

static bool orr_waiter_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct orr_waiter, node)->index <
	       rb_entry(b, struct orr_waiter, node)->index;
}

static void orr_waiter_insert(struct orr_queue *queue, struct orr_waiter *waiter)
{
	rb_add_cached(&waiter->node, &queue->waiters[waiter->wants_irq], orr_waiter_less);
}

static void orr_waiter_erase(struct orr_queue *queue, struct orr_waiter *waiter)
{
	rb_erase_cached(&waiter->node, &queue->waiters[waiter->wants_irq]);
	RB_CLEAR_NODE(&waiter->node);
	list_del_init(&waiter->link);
	queue->waiter_count--;
}

/*
 * Makes the firmware raise an interrupt at the lowest index that anybody needs one for. Return:
 * whether orr_mbox_send_arms() has to follow.
 */
static bool orr_queue_update_arm(struct orr_queue *queue)
{
	struct orr_waiter *waiter = orr_waiter_first_of(queue, true);

	lockdep_assert_held(&queue->lock);
	if (!waiter) {
		/* Nobody looks for the interrupt that was asked for, so nobody may rely on it. */
		WRITE_ONCE(queue->armed_index, ORR_QUEUE_NOT_ARMED);
		clear_bit(queue->number, queue->odev->armed);
		return false;
	}
	set_bit(queue->number, queue->odev->armed);
	/* An interrupt at a lower index is on its way and will lead here again. */
	if (waiter->index >= queue->armed_index)
		return false;
	WRITE_ONCE(queue->armed_index, waiter->index);
	orr_mbox_arm(queue);
	return true;
}

/**
 * orr_queue_add_waiter - begin to wait
 * @queue: the queue
 * @waiter: with @index, @fire and what it wants set
 *
 * Return: 0, -ENOSPC if the queue has too many, or why there will be no more progress.
 */
int orr_queue_add_waiter(struct orr_queue *queue, struct orr_waiter *waiter)
{
	bool armed = false;

	scoped_guard(spinlock_irqsave, &queue->lock) {
		RB_CLEAR_NODE(&waiter->node);
		INIT_LIST_HEAD(&waiter->link);
		if (queue->gone)
			return queue->gone;
		if (queue->waiter_count >= ORR_QUEUE_MAX_WAITERS)
			return -ENOSPC;
		orr_waiter_insert(queue, waiter);
		queue->waiter_count++;
		if (waiter->wants_deadlock)
			list_add_tail(&waiter->link, &queue->sleepers);
		if (waiter->wants_irq)
			armed = orr_queue_update_arm(queue);
	}
	if (armed)
		orr_mbox_send_arms(queue->odev);
	return 0;
}

/**
 * orr_queue_remove_waiter - stop waiting
 * @queue: the queue
 * @waiter: of orr_queue_add_waiter()
 *
 * Return: false if it is too late: @fire is being called, or was.
 */
bool orr_queue_remove_waiter(struct orr_queue *queue, struct orr_waiter *waiter)
{
	bool armed = false;

	scoped_guard(spinlock_irqsave, &queue->lock) {
		if (RB_EMPTY_NODE(&waiter->node))
			return false;
		orr_waiter_erase(queue, waiter);
		if (!queue->gone)
			armed = orr_queue_update_arm(queue);
	}
	if (armed)
		orr_mbox_send_arms(queue->odev);
	return true;
}

/**
 * orr_queue_want_irq - a waiter that only listened now needs an interrupt
 * @queue: the queue
 * @waiter: of orr_queue_add_waiter(); may have fired
 *
 * Called in the path of signalling a fence: neither allocates nor sleeps.
 */
void orr_queue_want_irq(struct orr_queue *queue, struct orr_waiter *waiter)
{
	bool armed;

	scoped_guard(spinlock_irqsave, &queue->lock) {
		if (queue->gone || RB_EMPTY_NODE(&waiter->node) || waiter->wants_irq)
			return;
		rb_erase_cached(&waiter->node, &queue->waiters[false]);
		waiter->wants_irq = true;
		orr_waiter_insert(queue, waiter);
		armed = orr_queue_update_arm(queue);
	}
	if (armed)
		orr_mbox_send_arms(queue->odev);
}

/* Takes out at most @room of those who need not wait any longer. Return: their number. */
static unsigned int orr_queue_collect(struct orr_queue *queue, u64 completed, bool all,
				      unsigned int room, struct list_head *fired)
{
	struct orr_waiter *waiter;
	unsigned int count = 0;

	lockdep_assert_held(&queue->lock);
	while (count < room && (waiter = orr_waiter_first(queue)) &&
	       (all || waiter->index <= completed)) {
		orr_waiter_erase(queue, waiter);
		list_add_tail(&waiter->link, fired);
		count++;
	}
	return count;
}

static void orr_waiters_fire(struct list_head *fired, u64 completed, int error)
{
	struct orr_waiter *waiter, *next;

	list_for_each_entry_safe(waiter, next, fired, link) {
		list_del_init(&waiter->link);
		waiter->fire(waiter, waiter->index <= completed ? 0 : error);
	}
}

/*
 * Looks at a queue's status line and wakes up at most @room of those whom it concerns. When all
 * have been, *@armed says whether orr_mbox_send_arms() has to follow. Return: how many.
 */
static unsigned int orr_queue_scan_batch(struct orr_queue *queue, unsigned int room, bool *armed)
{
	struct orr_queue_status status;
	LIST_HEAD(fired);
	unsigned int count;

	scoped_guard(spinlock_irqsave, &queue->lock) {
		if (orr_queue_read_locked(queue, &status))
			return 0;
		count = orr_queue_collect(queue, status.completed, status.error, room, &fired);
		if (queue->armed_index <= status.completed || status.error)
			WRITE_ONCE(queue->armed_index, ORR_QUEUE_NOT_ARMED);
		/* Not for one who is about to be woken up. */
		if (count < room)
			*armed |= orr_queue_update_arm(queue);
	}
	orr_waiters_fire(&fired, status.completed, -EIO);
	return count;
}

/**
 * orr_queue_scan - look at a queue's status line and wake up whom it concerns
 * @queue: the queue
 *
 * Any context, but it takes its time; neither allocates nor sleeps, nor reads a register.
 */
void orr_queue_scan(struct orr_queue *queue)
{
	bool armed = false;

	while (orr_queue_scan_batch(queue, ORR_QUEUE_FIRE_BATCH, &armed) == ORR_QUEUE_FIRE_BATCH)
		;
	if (armed)
		orr_mbox_send_arms(queue->odev);
}

/**
 * orr_queue_scan_number - the same by number, if there is such a queue
 * @odev: the card
 * @number: below ORR_FW_QUEUES
 */
void orr_queue_scan_number(struct orr_device *odev, u32 number)
{
	struct orr_queue *queue = orr_queue_by_number(odev, number);

	if (!queue)
		return;
	orr_queue_scan(queue);
	orr_queue_put(queue);
}

/**
 * orr_queue_scan_some - look at queues for which somebody waits, and wake up those whom it concerns
 * @odev: the card
 * @scan: where to begin, and how far to go
 *
 * For interrupts: does no more than there is room for. The firmware hears of all of it at once.
 *
 * Return: whether there are none left; if not, @scan says where to go on.
 */
bool orr_queue_scan_some(struct orr_device *odev, struct orr_scan *scan)
{
	bool armed = false;
	bool done = true;

	for_each_set_bit_from(scan->next, odev->armed, ORR_FW_QUEUES) {
		struct orr_queue *queue;
		unsigned int count;

		if (scan->room < 2) {
			done = false;
			break;
		}
		scan->room--;
		scan->looked++;
		queue = orr_queue_by_number(odev, scan->next);
		if (!queue)
			continue;
		count = orr_queue_scan_batch(queue, scan->room, &armed);
		orr_queue_put(queue);
		scan->room -= count;
		scan->fired += count;
		if (!scan->room) {
			/* There may be more of the same. */
			done = false;
			break;
		}
	}
	if (armed)
		orr_mbox_send_arms(odev);
	return done;
}

/**
 * orr_queue_scan_armed - look at all queues for which somebody waits
 * @odev: the card
 *
 * May sleep, but neither allocates nor waits.
 *
 * Return: how many waiters need not wait any longer.
 */
unsigned int orr_queue_scan_armed(struct orr_device *odev)
{
	struct orr_scan scan = {};
	bool done;

	do {
		scan.room = ORR_QUEUE_FIRE_BATCH;
		done = orr_queue_scan_some(odev, &scan);
		cond_resched();
	} while (!done);
	return scan.fired;
}

/**
 * orr_queue_fire_deadlock - a queue is in a cycle of waits: wake up those who want to know
 * @queue: the queue; any context
 */
void orr_queue_fire_deadlock(struct orr_queue *queue)
{
	struct orr_waiter *waiter;
	bool armed = false;
	LIST_HEAD(fired);

	scoped_guard(spinlock_irqsave, &queue->lock) {
		if (queue->gone)
			return;
		queue->cycles++;
		while ((waiter = list_first_entry_or_null(&queue->sleepers, struct orr_waiter,
							  link))) {
			orr_waiter_erase(queue, waiter);
			list_add_tail(&waiter->link, &fired);
		}
		armed = orr_queue_update_arm(queue);
	}
	if (armed)
		orr_mbox_send_arms(queue->odev);
	orr_waiters_fire(&fired, 0, -EDEADLK);
}

/**
 * orr_waiters_end - end all waits for a queue that is gone
 * @queue: the queue; nobody can begin to wait for it any more
 * @completed: how many packets it has completed
 * @error: for those who wait for more
 */
void orr_waiters_end(struct orr_queue *queue, u64 completed, int error)
{
	unsigned int count;
	LIST_HEAD(fired);

	do {
		scoped_guard(spinlock_irqsave, &queue->lock)
			count = orr_queue_collect(queue, completed, true, ORR_QUEUE_FIRE_BATCH,
						  &fired);
		orr_waiters_fire(&fired, completed, error);
	} while (count == ORR_QUEUE_FIRE_BATCH);
}
