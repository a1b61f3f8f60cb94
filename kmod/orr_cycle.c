// SPDX-License-Identifier: GPL-2.0
/*
 * Cycles of waits over cards and processes. Each card's firmware finds those of its own queues; a
 * process reads its own rings; nobody but the driver knows whose semaphore is whose over all of
 * them. It looks when somebody who waits asks: what each queue waits for, and what the packets in
 * the rings of all would signal, with memory as the semaphores' names.
 *
 * Rings are memory of processes: what is read there are numbers, which decide nothing but what this
 * look says. Who writes nonsense into his own ring can be told of a cycle that is none, and so can
 * those who wait for semaphores that he was given.
 *
 * A queue is stuck if its next packet waits without a limit for what is not there, somebody's
 * packets would signal it, and all who would are stuck. What a barrier's units raise has such a set of
 * signallers for each member that has not arrived; one set is enough for being stuck. Nothing is stopped.
 */
#include <linux/hash.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_gem.h>
#include <drm/orrery_accel.h>

#include <orrery/fw/failure.h>
#include <orrery/fw/packet.h>

#include "orr_barrier.h"
#include "orr_bo.h"
#include "orr_cycle.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_map.h"
#include "orr_queue.h"
#include "orr_ring_view.h"
#include "orr_vm.h"

#define ORR_CYCLE_NONE U32_MAX
/* Rows by semaphore. */
#define ORR_CYCLE_BITS 10
/* Who would set whom free: a look that finds more says nothing. */
#define ORR_CYCLE_MAX_EDGES 16384u
/* Waits of a way to a cycle, and round it: one that is longer is not told. */
#define ORR_CYCLE_MAX_PATH 256u

/**
 * struct orr_party - a queue, as a look finds it
 */
struct orr_party {
	/** @queue: a reference */
	struct orr_queue *queue;
	/** @vm: its address space, a reference */
	struct orr_vm *vm;
	/** @uid: whose it is */
	kuid_t uid;
	/** @pid: process that opened the file, in the initial namespace */
	pid_t pid;
	/** @file: only to compare */
	const struct orr_file *file;
	/** @completed: packets that it is done with */
	u64 completed;
	/** @end: packets that are in its ring */
	u64 end;
	/** @va: of what it waits for */
	u64 va;
	/** @wanted: value that it waits for */
	u64 wanted;
	/** @bo: which has the semaphore, a reference; NULL: it does not wait */
	struct orr_bo *bo;
	/** @offset: of the semaphore in its origin */
	u64 offset;
	/** @barrier: whose units raise the semaphore: its key, or 0 */
	u64 barrier;
	/** @next: other party in the same row of @orr_look.waiting */
	u32 next;
	/** @signals: first edge to those whom its packets would set free */
	u32 signals;
	/** @holder: last party whose packets were found to set this one free */
	u32 holder;
	/** @held: by whose packets @holder does: a bit for each member of @barrier; else bit 0 */
	u32 held;
	/** @lacks: members whose signals only such packets have as are stuck; bits likewise */
	u32 lacks;
	/** @stuck: as at the top of this file */
	bool stuck;
};

/**
 * struct orr_look_edge - a party's packets would set another free
 */
struct orr_look_edge {
	/** @waiter: the other */
	u32 waiter;
	/** @next: edge of the same signaller */
	u32 next;
	/** @signaller: the party */
	u32 signaller;
	/** @member: of the waiter's barrier, for which it would arrive; else 0 */
	u32 member;
	/** @va: by which its packet names the semaphore */
	u64 va;
};

/**
 * struct orr_look - a look at all queues of all cards
 */
struct orr_look {
	/** @cards: references */
	struct orr_device *cards[ORR_MAP_CARDS];
	/** @card_count: of @cards */
	unsigned int card_count;
	/** @party: by number; the last place is for somebody who waits without a queue */
	struct orr_party *party;
	/** @count: of @party */
	u32 count;
	/** @room: in @party */
	u32 room;
	/** @edge: by number */
	struct orr_look_edge *edge;
	/** @edges: of @edge */
	u32 edges;
	/** @todo: parties that have turned out not to be stuck */
	u32 *todo;
	/** @path: parties from the first on, each waits for the next */
	u32 path[ORR_CYCLE_MAX_PATH];
	/** @length: of @path */
	u32 length;
	/** @lead: of @path what is not in the cycle */
	u32 lead;
	/** @waiting: first party by what it waits for */
	u32 waiting[1 << ORR_CYCLE_BITS];
};

/* One at a time: what it takes does not grow with those who ask. */
static DEFINE_MUTEX(orr_look_lock);

static u32 orr_look_row(const struct orr_bo *origin, u64 offset, u64 barrier)
{
	return hash_64(barrier ?: (u64)(unsigned long)origin + offset, ORR_CYCLE_BITS);
}

/* The memory behind an address of a party. Return: the BO that the party has, a reference, or NULL. */
static struct orr_bo *orr_party_semaphore(const struct orr_party *party, u64 va, u64 *offset)
{
	struct orr_bo *bo;
	u64 epoch;

	if (va < ORR_VA_START || va >= ORR_VA_END)
		return NULL;
	bo = orr_vm_lookup(party->vm, va, sizeof(struct orr_semaphore), 0, offset, &epoch);
	return IS_ERR(bo) ? NULL : bo;
}

/* Whether the value that a party waits for is not there. */
static bool orr_party_lacks(const struct orr_party *party)
{
	u64 value;

	return orr_bo_read_word(party->bo, party->offset, &value) && value < party->wanted;
}

/* Somebody waits for a semaphore. Takes the reference. */
static void orr_party_waits(struct orr_look *look, u32 number, struct orr_bo *bo, u64 offset)
{
	struct orr_party *party = &look->party[number];
	u32 *row;

	party->bo = bo;
	party->offset = offset;
	if (!orr_party_lacks(party)) {
		drm_gem_object_put(&bo->base);
		party->bo = NULL;
		return;
	}
	party->barrier = orr_barrier_of_release(orr_bo_origin(bo), offset);
	row = &look->waiting[orr_look_row(orr_bo_origin(bo), offset, party->barrier)];
	party->next = *row;
	*row = number;
	party->stuck = true;
}

/* Adds the queues of a card that have something to do. Return: false: there is no room. */
static bool orr_look_collect(struct orr_look *look, struct orr_device *odev)
{
	u32 number;

	guard(spinlock_irqsave)(&odev->queue_lock);
	for (number = 0; number < ORR_FW_QUEUES; number++) {
		struct orr_queue *queue = odev->queues[number];
		struct orr_queue_status status;
		struct orr_party *party;
		bool stopped;

		if (!queue)
			continue;
		scoped_guard(spinlock, &queue->lock)
			stopped = orr_queue_read_locked(queue, &status) || status.error;
		if (stopped)
			continue;
		/* One place is left for who waits without a queue. */
		if (look->count + 1 >= look->room)
			return false;
		party = &look->party[look->count++];
		party->queue = orr_queue_get(queue);
		party->vm = queue->vm;
		orr_vm_get(party->vm);
		party->file = queue->file;
		party->uid = queue->file->uid;
		party->pid = queue->file->pid;
		party->completed = status.completed;
		party->signals = ORR_CYCLE_NONE;
		party->holder = ORR_CYCLE_NONE;
	}
	return true;
}

/* Reads what a queue waits for. Return: false: its ring is not to be read. */
static bool orr_look_head(struct orr_look *look, u32 number)
{
	struct orr_party *party = &look->party[number];
	struct orr_queue *queue = party->queue;
	struct orr_ring_view view = { .vm = party->vm };
	u64 word[4] = {}, end = 0, offset;
	struct orr_bo *bo;
	bool read;
	u32 i;

	party->end = party->completed;
	read = orr_ring_read(&view, queue->ring_va, &end);
	/* One that claims more than there is room for is about to be stopped. */
	if (read && end - party->completed <= queue->entries)
		party->end = end;
	for (i = 0; read && party->end != party->completed && i < ARRAY_SIZE(word); i++)
		read = orr_ring_read(&view, orr_ring_packet(queue, party->completed) + 8 * i,
				     &word[i]);
	orr_ring_view_end(&view);
	if (!read)
		return false;
	/* A wait with a limit ends. */
	if ((word[0] & 0xffff) != ORR_PKT_WAIT || word[3])
		return true;
	party->va = word[1];
	party->wanted = word[2];
	bo = orr_party_semaphore(party, party->va, &offset);
	if (bo)
		orr_party_waits(look, number, bo, offset);
	return true;
}

/**
 * struct orr_signal_point - what a packet would signal
 */
struct orr_signal_point {
	/** @origin: the BO that has the semaphore */
	const struct orr_bo *origin;
	/** @offset: of the semaphore */
	u64 offset;
	/** @part: if @origin is the page of one's part in a barrier, or NULL */
	const struct orr_barrier_end *part;
	/** @value: to be signalled; U64_MAX: a failure */
	u64 value;
};

/* Whether that would set a party free, or do a member's part of it. */
static bool orr_point_frees(const struct orr_signal_point *point, const struct orr_party *waiter)
{
	/* An arrival is for one round. Who has one for a later round has arrived at the earlier. */
	if (point->part)
		return waiter->barrier == point->part->key &&
		       (point->value == waiter->wanted || point->value == U64_MAX);
	return !waiter->barrier && orr_bo_origin(waiter->bo) == point->origin &&
	       waiter->offset == point->offset && point->value >= waiter->wanted;
}

/* A packet of a party would signal this. Return: false: there are too many edges. */
static bool orr_look_signal(struct orr_look *look, u32 number, u64 va, u64 value)
{
	struct orr_party *party = &look->party[number];
	struct orr_signal_point point = { .value = value };
	u32 at, member = 0, row;
	struct orr_bo *bo;

	bo = orr_party_semaphore(party, va, &point.offset);
	if (!bo)
		return true;
	point.origin = orr_bo_origin(bo);
	if (point.origin->kind == ORR_BO_KIND_BARRIER && point.origin->barrier) {
		point.part = point.origin->barrier;
		member = point.part->member;
	}
	row = orr_look_row(point.origin, point.offset, point.part ? point.part->key : 0);
	for (at = look->waiting[row]; at != ORR_CYCLE_NONE; at = look->party[at].next) {
		struct orr_party *waiter = &look->party[at];
		struct orr_look_edge *edge;

		if (!orr_point_frees(&point, waiter))
			continue;
		if (waiter->holder != number)
			waiter->held = 0;
		if (waiter->held & BIT(member))
			continue;
		if (look->edges == ORR_CYCLE_MAX_EDGES)
			break;
		waiter->holder = number;
		waiter->held |= BIT(member);
		waiter->lacks |= BIT(member);
		edge = &look->edge[look->edges];
		edge->waiter = at;
		edge->signaller = number;
		edge->member = member;
		edge->va = va;
		edge->next = party->signals;
		party->signals = look->edges++;
	}
	drm_gem_object_put(&bo->base);
	return look->edges < ORR_CYCLE_MAX_EDGES;
}

/* Reads what a queue's packets would signal. Return: false: they are not to be read, or too many. */
static bool orr_look_packets(struct orr_look *look, u32 number)
{
	struct orr_party *party = &look->party[number];
	struct orr_ring_view view = { .vm = party->vm };
	bool good = true;
	u64 index;

	for (index = party->completed; good && index != party->end; index++) {
		u64 at = orr_ring_packet(party->queue, index);
		u64 header, va, value;
		bool fails;

		if (!(index % 64))
			cond_resched();
		good = orr_ring_read(&view, at, &header);
		/* FAIL sets everybody free. */
		fails = (header & 0xffff) == ORR_PKT_FAIL;
		if (!good || (!fails && (header & 0xffff) != ORR_PKT_SIGNAL))
			continue;
		good = orr_ring_read(&view, at + 8, &va) &&
		       orr_ring_read(&view, at + 16, &value) &&
		       orr_look_signal(look, number, va, fails ? U64_MAX : value);
	}
	orr_ring_view_end(&view);
	return good;
}

/* Who is not stuck sets free those whom it would signal, who set others free. */
static void orr_look_spread(struct orr_look *look)
{
	u32 number, todo = 0;

	for (number = 0; number < look->count; number++) {
		struct orr_party *party = &look->party[number];

		/* Nobody's packets hold what it waits for: somebody else is expected to signal. */
		if (!party->lacks)
			party->stuck = false;
		if (!party->stuck)
			look->todo[todo++] = number;
	}
	while (todo) {
		u32 at = look->party[look->todo[--todo]].signals;

		for (; at != ORR_CYCLE_NONE; at = look->edge[at].next) {
			struct orr_party *waiter = &look->party[look->edge[at].waiter];

			waiter->lacks &= ~BIT(look->edge[at].member);
			if (!waiter->stuck || waiter->lacks)
				continue;
			waiter->stuck = false;
			look->todo[todo++] = look->edge[at].waiter;
		}
	}
}

/* The first edge by which a party that is stuck would be set free. */
static const struct orr_look_edge *orr_look_holder(const struct orr_look *look, u32 number)
{
	u32 at;

	for (at = 0; at < look->edges; at++)
		if (look->edge[at].waiter == number &&
		    look->party[number].lacks & BIT(look->edge[at].member))
			return &look->edge[at];
	return NULL;
}

/* Follows those who hold what is waited for, until they come round. */
static void orr_look_walk(struct orr_look *look, u32 number)
{
	look->length = 0;
	while (look->length < ORR_CYCLE_MAX_PATH) {
		u32 i;

		for (i = 0; i < look->length; i++) {
			if (look->path[i] != number)
				continue;
			look->lead = i;
			return;
		}
		look->path[look->length++] = number;
		number = orr_look_holder(look, number)->signaller;
	}
	look->length = 0;
}

/* Whether all who are stuck still are: no packet has completed, and no value has come. */
static bool orr_look_stands(struct orr_look *look)
{
	struct orr_queue_status status;
	u64 state, completed;
	u32 i;

	/* A card that a debugger holds passes nothing on: a signal may be on its way. */
	if (orr_peer_any_held())
		return false;
	/* A card whose firmware answers has seen what has arrived. */
	for (i = 0; i < look->length; i++) {
		const struct orr_party *party = &look->party[look->path[i]];

		if (!party->queue)
			continue;
		if (orr_queue_info(party->queue, &state, &completed) ||
		    state != ORR_QUEUE_WAITING || completed != party->completed)
			return false;
	}
	for (i = 0; i < look->count; i++) {
		const struct orr_party *party = &look->party[i];

		if (!party->stuck)
			continue;
		if (!orr_party_lacks(party))
			return false;
		if (party->queue && (orr_queue_read(party->queue, &status) || status.error ||
				     status.completed != party->completed))
			return false;
	}
	return true;
}

static void orr_look_end(struct orr_look *look)
{
	u32 i;

	if (IS_ERR_OR_NULL(look))
		return;
	for (i = 0; i < look->count; i++) {
		struct orr_party *party = &look->party[i];

		if (party->bo)
			drm_gem_object_put(&party->bo->base);
		if (party->vm)
			orr_vm_put(party->vm);
		if (party->queue)
			orr_queue_put(party->queue);
	}
	for (i = 0; i < look->card_count; i++)
		drm_dev_put(&look->cards[i]->drm);
	kvfree(look->party);
	kvfree(look->edge);
	kvfree(look->todo);
	kvfree(look);
}

DEFINE_FREE(orr_look, struct orr_look *, orr_look_end(_T))

static struct orr_look *orr_look_begin(void)
{
	struct orr_look *look = kvzalloc(sizeof(*look), GFP_KERNEL);
	u32 i;

	if (!look)
		return ERR_PTR(-ENOMEM);
	memset(look->waiting, 0xff, sizeof(look->waiting));
	look->card_count = orr_peer_collect(look->cards, ARRAY_SIZE(look->cards));
	look->room = 1;
	for (i = 0; i < look->card_count; i++)
		/* Some may come meanwhile. */
		look->room += atomic_read(&look->cards[i]->queue_count) + 16;
	look->party = kvcalloc(look->room, sizeof(*look->party), GFP_KERNEL);
	look->todo = kvcalloc(look->room, sizeof(*look->todo), GFP_KERNEL);
	look->edge = kvcalloc(ORR_CYCLE_MAX_EDGES, sizeof(*look->edge), GFP_KERNEL);
	if (!look->party || !look->todo || !look->edge) {
		orr_look_end(look);
		return ERR_PTR(-ENOMEM);
	}
	return look;
}

/* Reads all rings. Return: false: that says nothing. */
static bool orr_look_at_all(struct orr_look *look)
{
	u32 i, queues;

	for (i = 0; i < look->card_count; i++)
		if (!orr_look_collect(look, look->cards[i]))
			return false;
	queues = look->count;
	for (i = 0; i < queues; i++)
		if (!orr_look_head(look, i))
			return false;
	return true;
}

/* Somebody waits for a semaphore without a queue. Return: its party, or a negative error. */
static int orr_look_host_wait(struct orr_look *look, struct orr_vm *vm,
			      const struct drm_orr_query_cycle *args)
{
	struct orr_party *party = &look->party[look->count];
	struct orr_bo *bo;
	u64 offset;

	orr_vm_get(vm);
	party->vm = vm;
	party->va = args->semaphore;
	party->wanted = args->value;
	party->signals = ORR_CYCLE_NONE;
	party->holder = ORR_CYCLE_NONE;
	look->count++;
	bo = orr_party_semaphore(party, party->va, &offset);
	if (!bo)
		return -EFAULT;
	orr_party_waits(look, look->count - 1, bo, offset);
	return look->count - 1;
}

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

/* Return: the edges that are to be told, 0: there is no cycle, or an error. */
static int orr_cycle_look(struct orr_look *look, struct orr_vm *vm, struct orr_queue *queue,
			  const struct orr_file *file, const struct drm_orr_query_cycle *args)
{
	int first;
	u32 i;

	if (!orr_look_at_all(look))
		return 0;
	if (queue) {
		first = orr_look_find(look, queue);
		if (first < 0)
			return 0;
	} else {
		first = orr_look_host_wait(look, vm, args);
		if (first < 0)
			return first;
		look->party[first].uid = file->uid;
		look->party[first].pid = file->pid;
	}
	if (!look->party[first].stuck)
		return 0;
	for (i = 0; i < look->count; i++)
		if (look->party[i].queue && !orr_look_packets(look, i))
			return 0;
	orr_look_spread(look);
	if (!look->party[first].stuck)
		return 0;
	orr_look_walk(look, first);
	return orr_look_stands(look) ? look->length : 0;
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
