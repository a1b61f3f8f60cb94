// SPDX-License-Identifier: GPL-2.0
/*
 * Cycles of waits over cards, processes and machines, as a process is told of them. The driver looks
 * (orr_look.c), and asks other drivers (orr_far.c), when somebody who waits asks.
 */
#include <linux/hash.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/orrery_accel.h>

#include "orr_cycle.h"
#include "orr_device.h"
#include "orr_far.h"
#include "orr_file.h"
#include "orr_look.h"
#include "orr_queue.h"
#include "orr_vm.h"

static int orr_look_find(const struct orr_look *look, const struct orr_queue *queue)
{
	u32 i;

	for (i = 0; i < look->count; i++)
		if (look->party[i].queue == queue)
			return i;
	return -ENOENT;
}

/**
 * orr_hop_take - keep a wait
 * @hop: filled in
 * @look: after orr_look_solve()
 * @number: the party that waits
 */
void orr_hop_take(struct orr_hop *hop, const struct orr_look *look, u32 number)
{
	const struct orr_look_edge *holder = orr_look_holder(look, number);
	const struct orr_party *party = &look->party[number];

	*hop = (struct orr_hop){ .uid = party->uid, .pid = party->pid, .va = party->va,
				 .wanted = party->wanted };
	if (party->queue) {
		hop->has_queue = true;
		hop->card = party->queue->odev->info.uid;
		hop->queue = party->queue->number;
		hop->index = party->completed;
		memcpy(hop->name, party->queue->name, sizeof(hop->name));
	}
	if (holder) {
		hop->signal = holder->va;
		hop->signaller_uid = look->party[holder->signaller].uid;
		hop->signaller_pid = look->party[holder->signaller].pid;
	}
}

/*
 * What a file may know of a wait. Addresses are told to the process that has them, names, numbers
 * and values to its user.
 */
static void orr_cycle_show(const struct orr_file *file, const struct orr_hop *hop,
			   struct drm_orr_cycle_edge *to)
{
	if (!uid_eq(hop->uid, file->uid))
		goto signaller;
	to->wanted = hop->wanted;
	to->node = hop->node;
	memcpy(to->name, hop->name, sizeof(to->name));
	if (hop->pid == file->pid)
		to->semaphore = hop->va;
	if (hop->has_queue) {
		struct pid *pid;

		to->device_uid = hop->card;
		to->queue = hop->queue;
		to->known = 1;
		to->index = hop->index;
		guard(rcu)();
		pid = find_pid_ns(hop->pid, &init_pid_ns);
		to->pid = pid_vnr(pid);
	}
signaller:
	if (uid_eq(hop->signaller_uid, file->uid) && hop->signaller_pid == file->pid)
		to->signal = hop->signal;
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
	return look->length && orr_look_reach(look, first) ? look->length : 0;
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

/* Return: 0, -ENOMEM, -EFAULT. */
static int orr_cycle_put(const struct orr_file *file, const struct orr_look *look,
			 const struct orr_far_cycle *far, struct drm_orr_query_cycle *args)
{
	const u32 count = look->length + far->count, room = min(args->count, count);
	struct drm_orr_cycle_edge *shown __free(kvfree) = NULL;
	struct orr_hop own;
	u32 i;

	args->count = count;
	args->lead = look->lead;
	args->stamp = far->stamp ?: orr_cycle_stamp(look);
	if (!room)
		return 0;
	shown = kvcalloc(room, sizeof(*shown), GFP_KERNEL);
	if (!shown)
		return -ENOMEM;
	for (i = 0; i < room; i++) {
		if (i < look->length)
			orr_hop_take(&own, look, look->path[i]);
		orr_cycle_show(file, i < look->length ? &own : &far->hop[i - look->length],
			       &shown[i]);
	}
	if (copy_to_user(u64_to_user_ptr(args->edges), shown, array_size(room, sizeof(*shown))))
		return -EFAULT;
	return 0;
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
	struct orr_look *look __free(orr_look) = NULL;
	struct orr_far_cycle far = {};
	int ret;

	if (mutex_lock_interruptible(&orr_look_lock))
		return -ERESTARTSYS;
	look = orr_look_begin();
	ret = IS_ERR(look) ? PTR_ERR(look) : orr_cycle_look(look, vm, queue, file, args);
	mutex_unlock(&orr_look_lock);
	/* Firmware is asked, and other drivers, which may take long, and so is nobody else's business. */
	if (ret > 0)
		ret = orr_look_stands(look);
	if (ret > 0 && look->far_count)
		ret = orr_far_search(look, &far);
	if (ret > 0) {
		ret = orr_cycle_put(file, look, &far, args);
	} else {
		args->count = 0;
		args->lead = 0;
		args->stamp = 0;
	}
	kfree(far.hop);
	return ret;
}
