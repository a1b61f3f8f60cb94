// SPDX-License-Identifier: GPL-2.0
/*
 * What the firmware's scheduler wants to know of a queue, and what it tells: names, priority,
 * weight and time slice, statistics. All of it is the firmware's since version 1.1 of its ABI.
 */
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <drm/orrery_accel.h>

#include "orr_device.h"
#include "orr_queue.h"
#include "orr_signal.h"

static_assert(ORR_QUEUE_NAME_BYTES == ORR_NAME_BYTES, "one length of names");
static_assert(sizeof_field(struct drm_orr_queue_create, name) == ORR_NAME_BYTES,
	      "one length of names");
static_assert(ORR_QUEUE_WEIGHT_MAX == ORR_WEIGHT_MAX, "one scale of weights");

/**
 * orr_queue_name_check - whether a name is terminated and zero-padded
 * @name: ORR_NAME_BYTES bytes
 *
 * Return: 0 or -EINVAL.
 */
int orr_queue_name_check(const u8 *name)
{
	size_t length = strnlen(name, ORR_NAME_BYTES);

	if (length == ORR_NAME_BYTES ||
	    memchr_inv(name + length, 0, ORR_NAME_BYTES - length))
		return -EINVAL;
	return 0;
}

/**
 * orr_queue_name_make - what a queue is called
 * @to: ORR_NAME_BYTES bytes, becomes zero-padded and printable
 * @name: what its owner wants, checked; empty: it does not care
 * @number: that its owner knows it by
 */
void orr_queue_name_make(char *to, const u8 *name, u32 number)
{
	char comm[TASK_COMM_LEN];

	memset(to, 0, ORR_NAME_BYTES);
	if (*name) {
		strscpy(to, name, ORR_NAME_BYTES);
	} else {
		get_task_comm(comm, current);
		/* The number matters more than the end of a long command. */
		snprintf(to, ORR_NAME_BYTES, "%.12s:%u", comm, number);
	}
	orr_text_sanitise(to);
}

/**
 * orr_name_send - tell the firmware a name
 * @odev: the card; the caller is inside orr_enter()
 * @kind: ORR_NAME_*
 * @number: the firmware's
 * @name: ORR_NAME_BYTES bytes, zero-padded
 */
void orr_name_send(struct orr_device *odev, u32 kind, u32 number, const char *name)
{
	u64 request[1 + ORR_NAME_BYTES / sizeof(u64)] = { number | (u64)kind << 32 };

	if (!orr_fw_schedules(odev))
		return;
	memcpy(&request[1], name, ORR_NAME_BYTES);
	orr_mbox_send(odev, ORR_MBOX_NAME, request, ARRAY_SIZE(request));
}

/**
 * orr_share_check - whether a process may ask for this
 * @priority: ORR_QUEUE_PRIORITY_*
 * @weight: inside it
 * @slice_us: 0: the firmware's
 *
 * HIGH needs no privilege: the firmware puts it before the work of other users only while its own
 * user has had no more than his share.
 *
 * Return: 0, -EINVAL, -EACCES.
 */
int orr_share_check(u32 priority, u32 weight, u32 slice_us)
{
	if (priority > ORR_QUEUE_PRIORITY_REALTIME || weight > ORR_QUEUE_WEIGHT_MAX)
		return -EINVAL;
	/* REALTIME can keep all others off the card, a long slice for as long. */
	if ((priority == ORR_QUEUE_PRIORITY_REALTIME || slice_us > ORR_QUEUE_SLICE_MAX_US) &&
	    !capable(CAP_SYS_NICE))
		return -EACCES;
	return 0;
}

/**
 * orr_limit_check - whether a process may ask for this limit of a dispatch
 * @limit_us: 0: the firmware's
 *
 * Return: 0 or -EACCES.
 */
int orr_limit_check(u32 limit_us)
{
	/* What hangs is found out no sooner. */
	if (limit_us > ORR_QUEUE_LIMIT_MAX_US && !capable(CAP_SYS_NICE))
		return -EACCES;
	return 0;
}

static int orr_queue_command(struct orr_queue *queue, u16 opcode, const u64 *request,
			     unsigned int count, u64 *reply)
{
	struct orr_device *odev = queue->odev;
	int idx, ret;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	/* Whoever is killed does not need to know. */
	ret = orr_mbox_command_patient(odev, ORR_MBOX_UNTIL_KILLED, opcode, request, count, reply);
	orr_exit(odev, idx);
	return ret;
}

/**
 * orr_queue_set - change how a queue is scheduled
 * @queue: the queue, which its file holds
 * @args: checked
 *
 * Return: 0, -EOPNOTSUPP, -ENODEV, …
 */
int orr_queue_set(struct orr_queue *queue, const struct drm_orr_queue_set *args)
{
	u64 request[] = {
		queue->number,
		args->priority,
		args->weight | (u64)args->slice_us << 32,
	};
	int ret;

	if (!orr_fw_schedules(queue->odev))
		return -EOPNOTSUPP;
	ret = orr_queue_command(queue, ORR_MBOX_QUEUE_SET, request, ARRAY_SIZE(request), NULL);
	if (ret)
		return ret;
	guard(spinlock_irqsave)(&queue->lock);
	queue->priority = args->priority;
	queue->weight = args->weight;
	queue->slice_us = args->slice_us;
	return 0;
}

/**
 * orr_queue_stats - what the firmware has counted for a queue
 * @queue: the queue, which its file holds
 * @args: filled, but for the queue's number
 *
 * Return: 0, -EOPNOTSUPP, -ENODEV, …
 */
int orr_queue_stats(struct orr_queue *queue, struct drm_orr_queue_stats *args)
{
	u64 request[] = { queue->number };
	u64 reply[ORR_MBOX_ARGS];
	int ret;

	if (!orr_fw_schedules(queue->odev))
		return -EOPNOTSUPP;
	ret = orr_queue_command(queue, ORR_MBOX_QUEUE_STATS, request, ARRAY_SIZE(request), reply);
	if (ret)
		return ret;
	args->vector_ps = reply[0];
	args->copy_ps = reply[1];
	args->jobs = reply[2];
	args->preemptions = reply[3];
	args->waited_ps = reply[4];
	args->longest_wait_ps = reply[5];
	return 0;
}

/**
 * orr_queue_abort - stop a queue now; it can still be asked
 * @queue: the queue, which its file holds
 *
 * Return: 0 when nothing of it runs and what it would have signalled has failed, -EOPNOTSUPP,
 * -ENODEV.
 */
int orr_queue_abort(struct orr_queue *queue)
{
	u64 request[] = { queue->number };
	int ret;

	if (!orr_fw_fails(queue->odev))
		return -EOPNOTSUPP;
	ret = orr_queue_command(queue, ORR_MBOX_QUEUE_ABORT, request, ARRAY_SIZE(request), NULL);
	/* One that did not survive a restart of the firmware. */
	if (ret == -ENOENT && READ_ONCE(queue->odev->restart.count))
		ret = 0;
	if (ret)
		return ret;
	orr_queue_scan(queue);
	orr_signaller_stopped(queue);
	return 0;
}

/**
 * orr_queue_info - ask the firmware about a queue
 * @queue: the queue
 * @state: ORR_QUEUE_* of orrery/fw/queue.h
 * @completed: packets
 *
 * Return: 0, -ENOENT if the firmware does not know it, -ENODEV.
 */
int orr_queue_info(struct orr_queue *queue, u64 *state, u64 *completed)
{
	u64 request[] = { queue->number };
	u64 reply[ORR_MBOX_ARGS];
	int ret;

	ret = orr_queue_command(queue, ORR_MBOX_QUEUE_INFO, request, ARRAY_SIZE(request), reply);
	if (ret)
		return ret;
	*state = reply[0];
	*completed = reply[1];
	return 0;
}
