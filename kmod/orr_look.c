// SPDX-License-Identifier: GPL-2.0
/*
 * A look at all queues of all cards: who waits for whom. Each card's firmware finds cycles of its own
 * queues; a process reads its own rings; nobody but the driver knows whose semaphore is whose over
 * all of them. It reads what each queue waits for, and what the packets in the rings of all would
 * signal, with memory as the semaphores' names.
 *
 * Rings are memory of processes: what is read there are numbers, which decide nothing but what this
 * look says. Who writes nonsense into his own ring can be told of a cycle that is none, and so can
 * those who wait for semaphores that he was given.
 *
 * A queue is stuck if its next packet waits without a limit for what is not there, somebody's
 * packets would signal it, and all who would are stuck. What a barrier's units raise has such a set of
 * signallers for each member that has not arrived; one set is enough for being stuck. Whatever else
 * may end the wait, such as a failure of another member, makes no set, but frees. Nothing is stopped.
 *
 * What cards of other machines may signal counts as stuck here, as long as nobody of this one would signal
 * it who is not: orr_far.c asks there. Likewise may somebody wait there for what only queues of this machine
 * signal, who is the remote party of a look.
 */
#include <linux/bitmap.h>
#include <linux/hash.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <drm/drm_gem.h>
#include <drm/orrery_accel.h>

#include <orrery/fw/failure.h>
#include <orrery/fw/packet.h>

#include "orr_barrier.h"
#include "orr_bo.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_foreign.h"
#include "orr_look.h"
#include "orr_queue.h"
#include "orr_ring_view.h"
#include "orr_vm.h"

/* Who would set whom free: a look that finds more says nothing. */
#define ORR_LOOK_MAX_EDGES 16384u
/* Nor does one that has to read more: full rings of neighbours are not to make others' looks long. */
#define ORR_LOOK_MAX_PACKETS (1u << 20)

/* See orr_look.h. */
DEFINE_MUTEX(orr_look_lock);

static u32 orr_look_row(const struct orr_bo *origin, u64 offset)
{
	return hash_64((u64)(unsigned long)origin + offset, ORR_LOOK_BITS);
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
	row = &look->waiting[orr_look_row(orr_bo_origin(bo), offset)];
	party->next = *row;
	*row = number;
	party->barrier = orr_barrier_of_release(orr_bo_origin(bo), offset);
	if (party->barrier) {
		row = &look->barred[hash_64(party->barrier, ORR_LOOK_BITS)];
		party->next_barred = *row;
		*row = number;
	}
	party->stuck = true;
	/* A hint: who has it is looked up when it matters. */
	party->far = READ_ONCE(orr_bo_origin(bo)->lent.mapped);
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
		party->signals = ORR_LOOK_NONE;
		party->holder = ORR_LOOK_NONE;
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
	/** @may_fail: instead, as a wait before it has a limit */
	bool may_fail;
};

/* What a party lacks that it would have then; in @holds, as far as it lacks it for want of just that. */
static u32 orr_point_frees(const struct orr_signal_point *point, const struct orr_party *waiter,
			   u32 *holds)
{
	const bool suffices = point->value >= waiter->wanted;

	*holds = 0;
	/* The remote party. */
	if (!waiter->bo) {
		if (suffices)
			*holds = BIT(0);
		return suffices || point->may_fail ? U32_MAX : 0;
	}
	if (!point->part) {
		if (orr_bo_origin(waiter->bo) != point->origin || waiter->offset != point->offset)
			return 0;
		/* A barrier's release is its units' to raise. Who does it for them frees all the same. */
		if (suffices && !waiter->barrier)
			*holds = BIT(0);
		return suffices || point->may_fail ? U32_MAX : 0;
	}
	if (waiter->barrier != point->part->key)
		return 0;
	/* An arrival is for one round. Who has one for a later round has arrived at the earlier, or will. */
	if (point->value == waiter->wanted)
		*holds = BIT(point->part->member);
	/* A member's failure ends it for all. */
	if (point->value == U64_MAX || point->may_fail)
		return U32_MAX;
	return suffices ? BIT(point->part->member) : 0;
}

/* A packet of a party would free another. Return: false: there are too many edges. */
static bool orr_look_edge(struct orr_look *look, u32 number, u32 at, u64 va,
			  const struct orr_signal_point *point)
{
	struct orr_party *waiter = &look->party[at];
	struct orr_look_edge *edge;
	u32 frees, holds;

	frees = orr_point_frees(point, waiter, &holds);
	if (waiter->holder != number) {
		waiter->holder = number;
		waiter->held = 0;
		waiter->freed = 0;
	}
	if (!(frees & ~waiter->freed) && !(holds & ~waiter->held))
		return true;
	if (look->edges == ORR_LOOK_MAX_EDGES)
		return false;
	waiter->held |= holds;
	waiter->freed |= frees;
	waiter->lacks |= holds;
	edge = &look->edge[look->edges];
	edge->waiter = at;
	edge->signaller = number;
	edge->frees = frees;
	edge->holds = holds;
	edge->va = va;
	edge->next = look->party[number].signals;
	look->party[number].signals = look->edges++;
	return true;
}

/* A packet of a party would signal this. Return: false: there are too many edges. */
static bool orr_look_signal(struct orr_look *look, u32 number, u64 va, struct orr_signal_point point)
{
	struct orr_bo *bo;
	bool good = true;
	u32 at;

	bo = orr_party_semaphore(&look->party[number], va, &point.offset);
	if (!bo)
		return true;
	point.origin = orr_bo_origin(bo);
	if (point.origin->kind == ORR_BO_KIND_BARRIER)
		point.part = point.origin->barrier;
	if (point.origin->kind == ORR_BO_KIND_FOREIGN) {
		if (look->remote != ORR_LOOK_NONE && orr_bo_device(bo) == look->import.odev &&
		    point.origin->import->at == look->import.at &&
		    point.origin->import->tag == look->import.tag &&
		    point.offset == look->import.offset)
			good = orr_look_edge(look, number, look->remote, va, &point);
	} else if (point.part) {
		at = look->barred[hash_64(point.part->key, ORR_LOOK_BITS)];
		for (; good && at != ORR_LOOK_NONE; at = look->party[at].next_barred)
			good = orr_look_edge(look, number, at, va, &point);
	} else {
		at = look->waiting[orr_look_row(point.origin, point.offset)];
		for (; good && at != ORR_LOOK_NONE; at = look->party[at].next)
			good = orr_look_edge(look, number, at, va, &point);
	}
	drm_gem_object_put(&bo->base);
	return good;
}

/* Reads what a queue's packets would signal. Return: false: they are not to be read, or too many. */
static bool orr_look_packets(struct orr_look *look, u32 number)
{
	struct orr_party *party = &look->party[number];
	struct orr_ring_view view = { .vm = party->vm };
	struct orr_signal_point point = {};
	bool good = true;
	u64 index;

	if (party->end - party->completed > ORR_LOOK_MAX_PACKETS - look->packets)
		return false;
	look->packets += party->end - party->completed;
	for (index = party->completed; good && index != party->end; index++) {
		u64 at = orr_ring_packet(party->queue, index);
		u64 header, va, limit;

		if (!(index % 64)) {
			cond_resched();
			if (signal_pending(current))
				good = false;
		}
		good = good && orr_ring_read(&view, at, &header);
		if (!good)
			break;
		switch (header & 0xffff) {
		case ORR_PKT_WAIT:
			/* If it passes, all behind it fails. */
			good = orr_ring_read(&view, at + 24, &limit);
			point.may_fail |= limit;
			break;
		case ORR_PKT_SIGNAL:
			good = orr_ring_read(&view, at + 8, &va) &&
			       orr_ring_read(&view, at + 16, &point.value) &&
			       orr_look_signal(look, number, va, point);
			break;
		case ORR_PKT_FAIL:
			point.value = U64_MAX;
			good = orr_ring_read(&view, at + 8, &va) &&
			       orr_look_signal(look, number, va, point);
			break;
		}
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
		if (!party->lacks && !party->far)
			party->stuck = false;
		if (!party->stuck)
			look->todo[todo++] = number;
	}
	while (todo) {
		u32 at = look->party[look->todo[--todo]].signals;

		for (; at != ORR_LOOK_NONE; at = look->edge[at].next) {
			struct orr_party *waiter = &look->party[look->edge[at].waiter];

			waiter->lacks &= ~look->edge[at].frees;
			if (!waiter->stuck || waiter->lacks)
				continue;
			waiter->stuck = false;
			look->todo[todo++] = look->edge[at].waiter;
		}
	}
}

/**
 * orr_look_holder - why is a party stuck?
 * @look: after orr_look_solve()
 * @number: of the party
 *
 * Return: the first edge by which it would be set free, of a party that is stuck as well; NULL: only another
 * machine would.
 */
const struct orr_look_edge *orr_look_holder(const struct orr_look *look, u32 number)
{
	u32 at;

	for (at = 0; at < look->edges; at++)
		if (look->edge[at].waiter == number &&
		    look->party[number].lacks & look->edge[at].holds)
			return &look->edge[at];
	return NULL;
}

/**
 * orr_look_is_held - has a packet of this machine what a party waits for?
 * @look: after orr_look_solve()
 * @number: of the party
 *
 * Return: whether, or one that fails it.
 */
bool orr_look_is_held(const struct orr_look *look, u32 number)
{
	u32 at;

	for (at = 0; at < look->edges; at++)
		if (look->edge[at].waiter == number)
			return true;
	return false;
}

/* Who would set free @number, or any who would set them free. Return: false: too many of them are far. */
static bool orr_look_spread_back(struct orr_look *look, u32 number, unsigned long *reached)
{
	u32 todo = 0, at;

	__set_bit(number, reached);
	look->todo[todo++] = number;
	while (todo) {
		struct orr_party *party;

		number = look->todo[--todo];
		party = &look->party[number];
		if (party->far) {
			if (look->far_count == ORR_LOOK_MAX_FAR)
				return false;
			look->far[look->far_count++] = number;
		}
		for (at = 0; at < look->edges; at++)
			if (look->edge[at].waiter == number &&
			    look->party[look->edge[at].signaller].stuck &&
			    !__test_and_set_bit(look->edge[at].signaller, reached))
				look->todo[todo++] = look->edge[at].signaller;
		cond_resched();
	}
	return true;
}

/**
 * orr_look_reach - of whom does it depend that a party is stuck?
 * @look: after orr_look_solve(); its far and stamp are filled in
 * @number: the party, which is stuck
 *
 * Return: whether all of them are known.
 */
bool orr_look_reach(struct orr_look *look, u32 number)
{
	unsigned long *reached __free(bitmap) = bitmap_zalloc(look->count, GFP_KERNEL);
	bool all;
	u32 i;

	look->far_count = 0;
	look->stamp = 1;
	if (!reached)
		return false;
	all = orr_look_spread_back(look, number, reached);
	for_each_set_bit(i, reached, look->count)
		if (look->party[i].queue)
			look->stamp = hash_64(look->stamp ^ look->party[i].queue->fence_context, 64) +
				      look->party[i].completed;
	return all;
}

/**
 * orr_look_walk - follow those who hold what is waited for, until they come round, or to another machine
 * @look: after orr_look_solve(); its path is filled in
 * @number: the party to begin with, which is stuck
 */
void orr_look_walk(struct orr_look *look, u32 number)
{
	const struct orr_look_edge *holder;

	look->length = 0;
	while (look->length < ORR_LOOK_MAX_PATH) {
		u32 i;

		for (i = 0; i < look->length; i++) {
			if (look->path[i] != number)
				continue;
			look->lead = i;
			return;
		}
		look->path[look->length++] = number;
		holder = orr_look_holder(look, number);
		if (!holder) {
			look->lead = look->length;
			return;
		}
		number = holder->signaller;
	}
	look->length = 0;
}

/**
 * orr_look_stands - are all who are stuck still so?
 * @look: after orr_look_walk()
 *
 * Return: true: no packet has completed, and no value has come.
 */
bool orr_look_stands(struct orr_look *look)
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
		if (party->bo && !orr_party_lacks(party))
			return false;
		if (party->queue && (orr_queue_read(party->queue, &status) || status.error ||
				     status.completed != party->completed))
			return false;
	}
	return true;
}

/**
 * orr_look_end - let go of all that was looked at
 * @look: it, or NULL, or an error
 */
void orr_look_end(struct orr_look *look)
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

/**
 * orr_look_begin - make room for a look
 *
 * Return: it, without anybody, or -ENOMEM.
 */
struct orr_look *orr_look_begin(void)
{
	struct orr_look *look = kvzalloc(sizeof(*look), GFP_KERNEL);
	u32 i;

	if (!look)
		return ERR_PTR(-ENOMEM);
	memset(look->waiting, 0xff, sizeof(look->waiting));
	memset(look->barred, 0xff, sizeof(look->barred));
	look->remote = ORR_LOOK_NONE;
	look->card_count = orr_peer_collect(look->cards, ARRAY_SIZE(look->cards));
	look->room = 1;
	for (i = 0; i < look->card_count; i++)
		/* Some may come meanwhile. */
		look->room += atomic_read(&look->cards[i]->queue_count) + 16;
	look->party = kvcalloc(look->room, sizeof(*look->party), GFP_KERNEL);
	look->todo = kvcalloc(look->room, sizeof(*look->todo), GFP_KERNEL);
	look->edge = kvcalloc(ORR_LOOK_MAX_EDGES, sizeof(*look->edge), GFP_KERNEL);
	if (!look->party || !look->todo || !look->edge) {
		orr_look_end(look);
		return ERR_PTR(-ENOMEM);
	}
	return look;
}

/**
 * orr_look_at_all - see what all queues of all cards wait for
 * @look: without anybody
 *
 * Return: false: that says nothing.
 */
bool orr_look_at_all(struct orr_look *look)
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

/**
 * orr_look_add_wait - somebody waits for a semaphore without a queue
 * @look: after orr_look_at_all(); there is room for one
 * @vm: whose address it is
 * @va: of the semaphore
 * @value: that is waited for
 *
 * Return: the party's number, or -EFAULT: nothing is there.
 */
int orr_look_add_wait(struct orr_look *look, struct orr_vm *vm, u64 va, u64 value)
{
	struct orr_party *party = &look->party[look->count];
	struct orr_bo *bo;
	u64 offset;

	orr_vm_get(vm);
	party->vm = vm;
	party->va = va;
	party->wanted = value;
	party->signals = ORR_LOOK_NONE;
	party->holder = ORR_LOOK_NONE;
	look->count++;
	bo = orr_party_semaphore(party, party->va, &offset);
	if (!bo)
		return -EFAULT;
	orr_party_waits(look, look->count - 1, bo, offset);
	return look->count - 1;
}

/**
 * orr_look_add_remote - somebody of another machine waits
 * @look: after orr_look_at_all(); there is room for one
 * @import: of this machine, for what he waits
 * @value: that is waited for
 *
 * Return: the party's number.
 */
u32 orr_look_add_remote(struct orr_look *look, const struct orr_look_import *import, u64 value)
{
	struct orr_party *party = &look->party[look->count];

	party->wanted = value;
	party->signals = ORR_LOOK_NONE;
	party->holder = ORR_LOOK_NONE;
	party->stuck = true;
	look->import = *import;
	look->remote = look->count++;
	return look->remote;
}

/**
 * orr_look_solve - read what all would signal, and find who is stuck
 * @look: with everybody who waits
 *
 * Return: false: that says nothing.
 */
bool orr_look_solve(struct orr_look *look)
{
	u32 i;

	for (i = 0; i < look->count; i++)
		if (look->party[i].queue && !orr_look_packets(look, i))
			return false;
	orr_look_spread(look);
	return true;
}
