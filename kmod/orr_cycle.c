// SPDX-License-Identifier: GPL-2.0
/*
 * Cycles of waits over cards and processes, as a process is told of them. The driver looks (orr_look.c)
 * when somebody who waits asks.
 */
#include <linux/hash.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/orrery_accel.h>

#include "orr_cycle.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_look.h"
#include "orr_queue.h"
#include "orr_vm.h"

/* One at a time: what it takes does not grow with those who ask. */
static DEFINE_MUTEX(orr_look_lock);

static int orr_look_find(const struct orr_look *look, const struct orr_queue *queue)
{
	u32 i;

	for (i = 0; i < look->count; i++)
		if (look->party[i].queue == queue)
			return i;
	return -ENOENT;
}

/*
 * What a file may know of a wait. Addresses are told to the process that has them, names, numbers
 * and values to its user.
 */
static void orr_cycle_show(const struct orr_file *file, const struct orr_look *look, u32 at,
			   struct drm_orr_cycle_edge *to)
{
	const struct orr_party *party = &look->party[look->path[at]];
	const struct orr_look_edge *edge = orr_look_holder(look, look->path[at]);
	const struct orr_party *signaller = &look->party[edge->signaller];

	if (!uid_eq(party->uid, file->uid))
		goto signaller;
	to->wanted = party->wanted;
	if (party->pid == file->pid)
		to->semaphore = party->va;
	if (party->queue) {
		struct pid *pid;

		to->device_uid = party->queue->odev->info.uid;
		to->queue = party->queue->number;
		to->known = 1;
		to->index = party->completed;
		memcpy(to->name, party->queue->name, sizeof(to->name));
		guard(rcu)();
		pid = find_pid_ns(party->pid, &init_pid_ns);
		to->pid = pid_vnr(pid);
	}
signaller:
	if (uid_eq(signaller->uid, file->uid) && signaller->pid == file->pid)
		to->signal = edge->va;
}

/* Return: the edges from the caller on, 0: there is no cycle, or an error. */
static int orr_cycle_look(struct orr_look *look, struct orr_vm *vm, struct orr_queue *queue,
			  const struct orr_file *file, const struct drm_orr_query_cycle *args)
{
	int first;

	if (!orr_look_at_all(look))
		return 0;
	if (queue) {
		first = orr_look_find(look, queue);
		if (first < 0)
			return 0;
	} else {
		first = orr_look_add_wait(look, vm, args->semaphore, args->value);
		if (first < 0)
			return first;
		look->party[first].uid = file->uid;
		look->party[first].pid = file->pid;
	}
	if (!look->party[first].stuck || !orr_look_solve(look) || !look->party[first].stuck)
		return 0;
	orr_look_walk(look, first);
	return look->length;
}

/* The same for as long as the same queues wait with the same packets. */
static u64 orr_cycle_stamp(const struct orr_look *look)
{
	u64 stamp = 1;
	u32 i;

	for (i = 0; i < look->length; i++) {
		const struct orr_party *party = &look->party[look->path[i]];

		if (party->queue)
			stamp = hash_64(stamp ^ party->queue->fence_context, 64) +
				party->completed;
	}
	return stamp ?: 1;
}

/**
 * orr_cycle_query - show a process the cycle of waits that it cannot leave
 * @file: who asks
 * @vm: of @file, for a wait without a queue
 * @queue: of @file, or NULL
 * @args: of the ioctl
 *
 * Return: 0, -ENOMEM, -EFAULT, -ERESTARTSYS.
 */
int orr_cycle_query(struct orr_file *file, struct orr_vm *vm, struct orr_queue *queue,
		    struct drm_orr_query_cycle *args)
{
	struct drm_orr_cycle_edge *shown __free(kvfree) = NULL;
	struct orr_look *look __free(orr_look) = NULL;
	u32 room = args->count, i;
	int length;

	if (mutex_lock_interruptible(&orr_look_lock))
		return -ERESTARTSYS;
	look = orr_look_begin();
	length = IS_ERR(look) ? PTR_ERR(look) : orr_cycle_look(look, vm, queue, file, args);
	mutex_unlock(&orr_look_lock);
	if (length < 0)
		return length;
	/* Firmware is asked, which may take long, and so is nobody else's business. */
	if (length && !orr_look_stands(look))
		length = 0;
	args->count = length;
	args->lead = length ? look->lead : 0;
	args->stamp = length ? orr_cycle_stamp(look) : 0;
	room = min_t(u32, room, length);
	if (!room)
		return 0;
	shown = kvcalloc(room, sizeof(*shown), GFP_KERNEL);
	if (!shown)
		return -ENOMEM;
	for (i = 0; i < room; i++)
		orr_cycle_show(file, look, i, &shown[i]);
	if (copy_to_user(u64_to_user_ptr(args->edges), shown, array_size(room, sizeof(*shown))))
		return -EFAULT;
	return 0;
}
