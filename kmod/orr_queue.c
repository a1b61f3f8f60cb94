// SPDX-License-Identifier: GPL-2.0
/*
 * Queues. The firmware owns them; the driver creates and destroys them through the mailbox and
 * watches their status lines, which only the firmware writes. A ring is the process's memory:
 * whatever stands in there is not believed, and nobody looks but orr_cycle.c.
 */
#include <linux/dma-fence.h>
#include <linux/slab.h>

#include <drm/orrery_accel.h>

#include "orr_device.h"
#include "orr_file.h"
#include "orr_queue.h"
#include "orr_signal.h"
#include "orr_trace.h"
#include "orr_vm.h"

static_assert(ORR_QUEUE_PRIORITY_REALTIME == ORR_PRIORITY_REALTIME, "one scale of priorities");

static void orr_queue_release(struct kref *ref)
{
	kfree(container_of(ref, struct orr_queue, ref));
}

/**
 * orr_queue_put - drop a reference; any context
 * @queue: the queue
 */
void orr_queue_put(struct orr_queue *queue)
{
	kref_put(&queue->ref, orr_queue_release);
}

/**
 * orr_queue_by_number - look up a queue
 * @odev: the card
 * @number: the firmware's number, below ORR_FW_QUEUES
 *
 * Return: the queue with a reference, or NULL.
 */
struct orr_queue *orr_queue_by_number(struct orr_device *odev, u32 number)
{
	struct orr_queue *queue;

	guard(spinlock_irqsave)(&odev->queue_lock);
	queue = odev->queues[number];
	return queue ? orr_queue_get(queue) : NULL;
}

/**
 * orr_queue_read_locked - orr_queue_read() for who holds the queue's lock
 * @queue: the queue
 * @status: filled
 *
 * Return: 0 or why there will be no more progress.
 */
int orr_queue_read_locked(struct orr_queue *queue, struct orr_queue_status *status)
{
	const struct orr_queue_status *line;

	lockdep_assert_held(&queue->lock);
	if (queue->gone) {
		*status = queue->last;
		return queue->gone;
	}
	line = &queue->odev->status[queue->number];
	/*
	 * The error first: once it is there, the number of completed packets is final, so nothing
	 * that completed is taken for failed.
	 */
	status->error = READ_ONCE(line->error);
	dma_rmb();
	status->completed = READ_ONCE(line->completed);
	dma_rmb();
	status->time_ps = READ_ONCE(line->time_ps);
	status->error_index = READ_ONCE(line->error_index);
	status->error_address = READ_ONCE(line->error_address);
	status->error_detail = READ_ONCE(line->error_detail);
	status->generation = READ_ONCE(line->generation);
	status->reserved = 0;
	/* Of another queue that had the number: it says nothing about this one. */
	if (status->generation != queue->generation)
		*status = (struct orr_queue_status){ .generation = queue->generation };
	return 0;
}

/**
 * orr_queue_read - how far a queue is
 * @queue: the queue
 * @status: filled; for a queue that is gone, with its last state
 *
 * Return: 0, or why there will be no more progress.
 */
int orr_queue_read(struct orr_queue *queue, struct orr_queue_status *status)
{
	guard(spinlock_irqsave)(&queue->lock);
	return orr_queue_read_locked(queue, status);
}

static void orr_queue_usage_locked(struct orr_queue *queue, struct orr_queue_usage *usage)
{
	const struct orr_queue_usage *line;

	lockdep_assert_held(&queue->lock);
	if (queue->gone) {
		*usage = queue->last_usage;
		return;
	}
	line = &queue->odev->usage[queue->number];
	usage->vector_ps = READ_ONCE(line->vector_ps);
	usage->copy_ps = READ_ONCE(line->copy_ps);
}

/**
 * orr_queue_engine_time - how long a queue has used engines
 * @queue: the queue
 * @vector_ps: sum over the vector cores, model time
 * @copy_ps: sum over the copy engines
 *
 * Without asking the firmware: what runs at this moment does not count yet.
 */
void orr_queue_engine_time(struct orr_queue *queue, u64 *vector_ps, u64 *copy_ps)
{
	struct orr_queue_usage usage;

	scoped_guard(spinlock_irqsave, &queue->lock)
		orr_queue_usage_locked(queue, &usage);
	*vector_ps = usage.vector_ps;
	*copy_ps = usage.copy_ps;
}

/* Nothing of the queue will change any more: ends all waits. */
static void orr_queue_end(struct orr_queue *queue, int error)
{
	struct orr_queue_status status;

	scoped_guard(spinlock_irqsave, &queue->lock) {
		if (orr_queue_read_locked(queue, &status))
			return;
		/* The firmware did not say what became of it. */
		if (error == -EIO && !status.error)
			status.error = ORR_QERR_LOST;
		queue->last = status;
		orr_queue_usage_locked(queue, &queue->last_usage);
		queue->gone = error;
		WRITE_ONCE(queue->armed_index, ORR_QUEUE_NOT_ARMED);
		clear_bit(queue->number, queue->odev->armed);
	}
	orr_waiters_end(queue, status.completed, status.error ? -EIO : error);
}

/**
 * orr_queue_all_gone - the card is lost: end the waits of all queues
 * @odev: the card
 */
void orr_queue_all_gone(struct orr_device *odev)
{
	unsigned int number;

	for (number = 0; number < ORR_FW_QUEUES; number++) {
		struct orr_queue *queue = orr_queue_by_number(odev, number);

		if (!queue)
			continue;
		orr_queue_end(queue, -ENODEV);
		orr_queue_put(queue);
	}
}

/* The firmware was restarted: is the queue still there, and what of our wishes? */
static void orr_queue_recheck(struct orr_queue *queue)
{
	u64 state, completed;
	bool closing;

	if (orr_queue_info(queue, &state, &completed) == -ENOENT) {
		scoped_guard(spinlock_irqsave, &queue->lock)
			closing = queue->closing;
		if (!closing) {
			orr_queue_end(queue, -EIO);
			orr_signaller_stopped_later(queue->odev, queue->number);
		}
		return;
	}
	/* What it was armed for may be forgotten. */
	scoped_guard(spinlock_irqsave, &queue->lock)
		WRITE_ONCE(queue->armed_index, ORR_QUEUE_NOT_ARMED);
	orr_queue_scan(queue);
}

/**
 * orr_queue_recheck_all - after a restart of the firmware: which queues are left
 * @odev: the card; the caller is inside orr_enter()
 */
void orr_queue_recheck_all(struct orr_device *odev)
{
	unsigned int number;

	for (number = 0; number < ORR_FW_QUEUES; number++) {
		struct orr_queue *queue = orr_queue_by_number(odev, number);

		if (!queue)
			continue;
		orr_queue_recheck(queue);
		orr_queue_put(queue);
	}
}

/**
 * orr_queue_waits_locked - whether a queue still waits as the firmware reported it
 * @queue: the queue; orr_device.queue_lock is held
 * @edge: filled with the report, if so
 *
 * Return: whether it does.
 */
bool orr_queue_waits_locked(struct orr_queue *queue, struct orr_wait_edge *edge)
{
	struct orr_queue_status status;

	guard(spinlock)(&queue->lock);
	if (!queue->edge.report || orr_queue_read_locked(queue, &status) || status.error ||
	    status.completed > queue->edge.index)
		return false;
	*edge = queue->edge;
	return true;
}

static int orr_queue_start(struct orr_queue *queue, const struct drm_orr_queue_create *args)
{
	struct orr_device *odev = queue->odev;
	u64 request[] = {
		queue->number | (u64)queue->vm->context << 32,
		args->ring_va,
		args->entries,
		queue->slot | (u64)args->priority << 32,
		args->dispatch_limit_us,
		args->weight | (u64)args->slice_us << 32,
	};
	u64 reply[ORR_MBOX_ARGS];
	int idx, ret;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_mbox_command_patient(odev, ORR_MBOX_ONCE_BEGUN, ORR_MBOX_QUEUE_CREATE, request,
				       ARRAY_SIZE(request), reply);
	if (ret == -EEXIST) {
		/* Made by a firmware that died before it could say so. */
		ret = orr_mbox_command(odev, ORR_MBOX_QUEUE_DESTROY, request, 1, NULL) ?:
		      orr_mbox_command(odev, ORR_MBOX_QUEUE_CREATE, request, ARRAY_SIZE(request),
				       reply);
	}
	if (!ret) {
		queue->generation = reply[0];
		orr_work_queue_begins(queue);
		orr_name_send(odev, ORR_NAME_QUEUE, queue->number, queue->name);
	}
	orr_exit(odev, idx);
	return ret;
}

/* Makes the firmware forget the queue; when this returns, nothing of it runs. */
static void orr_queue_stop(struct orr_queue *queue)
{
	struct orr_device *odev = queue->odev;
	u64 request[] = { queue->number };
	int idx, ret;

	ret = orr_enter(odev, &idx);
	if (!ret) {
		ret = orr_mbox_command(odev, ORR_MBOX_QUEUE_DESTROY, request, ARRAY_SIZE(request),
				       NULL);
		/* One that did not survive a restart of the firmware. */
		if (ret == -ENOENT && READ_ONCE(odev->restart.count))
			ret = 0;
		if (ret && ret != -ENODEV)
			orr_device_lost(odev, "the firmware refuses to destroy a queue");
		orr_exit(odev, idx);
	}
	if (ret)
		orr_device_quiesced(odev);
}

/**
 * orr_queue_create - make a queue
 * @file: its owner, who holds file->lock
 * @vm: its address space
 * @user_number: what the owner calls it
 * @args: checked as far as they do not concern the firmware
 * @result: the queue, with a reference
 *
 * Return: 0, -ENOSPC without a free number or slot, -EFAULT if the ring is not mapped, …
 */
int orr_queue_create(struct orr_file *file, struct orr_vm *vm, u32 user_number,
		     const struct drm_orr_queue_create *args, struct orr_queue **result)
{
	struct orr_device *odev = file->odev;
	struct orr_queue *queue;
	int ret;

	lockdep_assert_held(&file->lock);
	queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return -ENOMEM;
	kref_init(&queue->ref);
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->arm_node);
	INIT_LIST_HEAD(&queue->signallers);
	INIT_LIST_HEAD(&queue->sleepers);
	queue->waiters[false] = RB_ROOT_CACHED;
	queue->waiters[true] = RB_ROOT_CACHED;
	queue->armed_index = ORR_QUEUE_NOT_ARMED;
	queue->work_from = U64_MAX;
	queue->odev = odev;
	queue->file = file;
	queue->user_number = user_number;
	queue->ring_va = args->ring_va;
	queue->entries = args->entries;
	queue->priority = args->priority;
	queue->weight = args->weight;
	queue->slice_us = args->slice_us;
	orr_queue_name_make(queue->name, args->name, user_number);
	queue->fence_context = dma_fence_context_alloc(1);

	queue->slot = find_first_zero_bit(file->slots, ORR_DB_SLOTS);
	if (queue->slot >= ORR_DB_SLOTS) {
		ret = -ENOSPC;
		goto err_free;
	}
	ret = ida_alloc_max(&odev->queue_numbers, odev->info.max_queues - 1, GFP_KERNEL);
	if (ret < 0)
		goto err_free;
	queue->number = ret;

	ret = orr_vm_add_queue(vm);
	if (ret)
		goto err_number;
	queue->vm = vm;

	ret = orr_queue_start(queue, args);
	if (ret)
		goto err_vm;

	__set_bit(queue->slot, file->slots);
	scoped_guard(spinlock_irqsave, &odev->queue_lock)
		odev->queues[queue->number] = orr_queue_get(queue);
	atomic_inc(&odev->queue_count);
	trace_orr_queue_create(queue);
	orr_health_start(odev);
	/* If the card was lost before it stood in the table, nobody else will end it. */
	if (orr_is_lost(odev))
		orr_queue_end(queue, -ENODEV);
	*result = queue;
	return 0;

err_vm:
	orr_vm_remove_queue(vm);
err_number:
	ida_free(&odev->queue_numbers, queue->number);
err_free:
	kfree(queue);
	return ret;
}

/**
 * orr_queue_destroy - end a queue: nothing of it runs any more, its waits end
 * @file: its owner, who holds file->lock
 * @queue: the queue, out of the file's table; the reference goes
 */
void orr_queue_destroy(struct orr_file *file, struct orr_queue *queue)
{
	struct orr_device *odev = queue->odev;

	lockdep_assert_held(&file->lock);
	scoped_guard(spinlock_irqsave, &queue->lock)
		queue->closing = true;
	orr_queue_stop(queue);
	orr_queue_end(queue, -ECANCELED);
	trace_orr_queue_destroy(queue);
	orr_signaller_stopped(queue);
	orr_file_account(file, queue);
	/* Before the number goes to another, whom our ARM would concern. */
	orr_mbox_disarm(queue);
	scoped_guard(spinlock_irqsave, &odev->queue_lock)
		odev->queues[queue->number] = NULL;
	atomic_dec(&odev->queue_count);
	__clear_bit(queue->slot, file->slots);
	ida_free(&odev->queue_numbers, queue->number);
	orr_vm_remove_queue(queue->vm);
	queue->vm = NULL;
	orr_queue_put(queue); /* the table's */
	orr_queue_put(queue); /* the file's */
}
