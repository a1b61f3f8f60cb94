// SPDX-License-Identifier: GPL-2.0
/*
 * Handles for cards of other machines. A process makes one of a BO in its card's memory: the card's
 * node, a number, a size, and 128 random bits. Whoever has it, on a machine with a card at the other end
 * of one of that card's links or behind a switch, has his driver ask for the memory; this one compares the
 * secret, and grants the range to that card. What it gets may be written to, and its semaphores signalled.
 *
 * It ends when the process that made the handle takes it back, closes its file or dies, when the other
 * lets go of it, when the link was lost, or with one of the drivers. If the memory is a semaphore, it is
 * closed when the last one who could signal it there is gone.
 */
#include <linux/bitops.h>
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <drm/drm_file.h>
#include <drm/orrery_accel.h>

#include <orrery/fw/failure.h>
#include <orrery/fw/queue.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_far.h"
#include "orr_file.h"
#include "orr_foreign.h"
#include "orr_ioctl.h"
#include "orr_route.h"
#include "orr_sem.h"

/* Of a card; each holds memory of its process. */
#define ORR_EXPORTS 4096u
/* Imports of a handle. Who asks for them is not trusted, and all that he makes here is of this size. */
#define ORR_LEASES_OF_EXPORT 64u
/* What was not answered is told again after this, so many of a link at once, and for so long. */
#define ORR_TELL_PERIOD (HZ / 10)
#define ORR_TELL_AT_ONCE 8u
#define ORR_TELL_LIMIT (30 * HZ)
/* After this something may be in the way at a switch; less what that takes than who revokes waits. */
#define ORR_TELL_LONG HZ
/* How long who revokes waits for another driver, where that driver alone can end it. */
#define ORR_REVOKE_TRIES 250u
#define ORR_REVOKE_PERIOD_MS 20u

static_assert(sizeof(struct drm_orr_fabric_export) == 48);
static_assert(sizeof(struct drm_orr_fabric_revoke) == 16);
static_assert(sizeof_field(struct drm_orr_fabric_export, secret) == ORR_FABRIC_SECRET_BYTES);

/**
 * orr_fabric_say - a note about memory
 * @op: what about it
 * @tag: which
 *
 * Return: the note.
 */
struct orr_note orr_fabric_say(enum orr_note_op op, u32 tag)
{
	return (struct orr_note){
		.magic = cpu_to_le16(ORR_NOTE_MAGIC),
		.version = ORR_NOTE_VERSION,
		.op = op,
		.tag = cpu_to_le32(tag),
	};
}

/**
 * orr_telling_due - is something to be told now?
 * @telling: it; if so it counts as told
 * @left: how many may be at once
 *
 * Return: whether.
 */
bool orr_telling_due(struct orr_telling *telling, unsigned int *left)
{
	if (!*left || (telling->begun && time_before(jiffies, telling->last + ORR_TELL_PERIOD)))
		return false;
	if (!telling->begun)
		telling->first = jiffies;
	telling->begun = true;
	telling->last = jiffies;
	--*left;
	return true;
}

/**
 * orr_telling_is_over - was something told for so long that nobody can be there?
 * @telling: it
 *
 * Return: whether.
 */
bool orr_telling_is_over(const struct orr_telling *telling)
{
	return telling->begun && time_after(jiffies, telling->first + ORR_TELL_LIMIT);
}

/**
 * orr_telling_is_long - is something told again for longer than an answer takes?
 * @telling: it
 *
 * Return: whether.
 */
bool orr_telling_is_long(const struct orr_telling *telling)
{
	return telling->begun && time_after(jiffies, telling->first + ORR_TELL_LONG);
}

/*
 * Has the semaphore of an export closed if nobody is left who may signal it. code: ORR_QERR_*, for those
 * who wait; uid: of the card that was the last.
 */
static void orr_export_miss(struct orr_device *odev, struct orr_export *export, u32 code, u64 uid)
{
	struct orr_lent *lent = &export->bo->lent;
	struct orr_sem *sem;

	lockdep_assert_held(&odev->fabric.lock);
	if (!export->sem || lent->closed || lent->leases || (lent->exports && !lent->missed))
		return;
	lent->closed = true;
	sem = no_free_ptr(export->sem);
	sem->word = ORR_FAILURE_WORD(code, uid, ORR_FAILURE_NO_QUEUE, 0);
	sem->bo = export->bo;
	orr_sem_get_bo(sem->bo);
	scoped_guard(spinlock, &odev->fabric.ended_lock)
		list_add_tail(&sem->link, &odev->fabric.closing);
}

/* code: likewise. used: he may have signalled what was lent, and is missed. The caller frees it. */
static void orr_lease_end(struct orr_device *odev, struct orr_lease *lease, u32 code, bool used)
{
	struct orr_export *export = lease->export;

	lockdep_assert_held(&odev->fabric.lock);
	orr_peer_revoke(odev, lease->node, export->bo->node.start, &export->tenant, NULL);
	list_del(&lease->link);
	export->leases--;
	WRITE_ONCE(export->bo->lent.mapped, export->bo->lent.mapped - 1);
	if (export->semaphore) {
		export->bo->lent.leases--;
		export->bo->lent.missed |= used;
		orr_export_miss(odev, export, code, odev->fabric.foreign[lease->at].uid);
	}
}

/**
 * orr_fabric_close_sems - have semaphores closed that nobody of another machine can signal any more
 * @odev: the card; orr_fabric.lock is not held
 */
void orr_fabric_close_sems(struct orr_device *odev)
{
	struct orr_sem *sem, *next;
	LIST_HEAD(closing);

	scoped_guard(spinlock, &odev->fabric.ended_lock)
		list_splice_init(&odev->fabric.closing, &closing);
	list_for_each_entry_safe(sem, next, &closing, link)
		orr_sem_close_alone(sem);
}

static struct orr_lease *orr_lease_find(struct list_head *leases, u32 at, u32 tag)
{
	struct orr_lease *lease;

	list_for_each_entry(lease, leases, link)
		if (lease->at == at && lease->tag == tag)
			return lease;
	return NULL;
}

/*
 * Is there a mapping of a range that its node may still write by as soon as the range is granted again?
 * Grants know nodes and ranges, and not whose mapping it is.
 */
static bool orr_range_is_haunted(struct orr_device *odev, u32 node, u64 base, u64 size)
{
	const struct orr_lease *lease;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(lease, &odev->fabric.revoked, link)
		if (lease->node == node && lease->base < base + size &&
		    base < lease->base + lease->size)
			return true;
	return false;
}

/* In the same time, whichever bits are wrong. */
static bool orr_secret_is(const struct orr_export *export, const u8 secret[])
{
	u64 mine[2], theirs[2];

	static_assert(sizeof(mine) == ORR_FABRIC_SECRET_BYTES);
	memcpy(mine, export->secret, sizeof(mine));
	memcpy(theirs, secret, sizeof(theirs));
	return !((mine[0] ^ theirs[0]) | (mine[1] ^ theirs[1]));
}

/*
 * Return: 0, -EACCES: no such handle, -EOWNERDEAD: a semaphore that is closed, -EDQUOT: imported too
 * often, -EBUSY: somebody there may have an older mapping yet, or what orr_peer_grant() says.
 */
static int orr_fabric_lend(struct orr_device *odev, u32 at, const struct orr_note *note,
			   u64 key, u64 *base)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[at];
	struct orr_grant set = {
		.node = foreign->node,
		.rights = ORR_LINK_RIGHT_WRITE | ORR_LINK_RIGHT_SIGNAL,
		.key = key,
	};
	struct orr_export *export;
	struct orr_lease *lease;
	int ret;

	lockdep_assert_held(&odev->fabric.lock);
	if (le16_to_cpu(note->epoch) != foreign->greet.epoch)
		return -ESTALE;
	export = xa_load(&odev->fabric.exports, le64_to_cpu(note->object));
	/* Who is wrong does not learn what. */
	if (!export || !orr_secret_is(export, note->secret) ||
	    le64_to_cpu(note->size) != export->bo->base.size) {
		u32 *forged = &odev->fabric.forged[foreign->port];

		WRITE_ONCE(*forged, *forged + 1);
		dev_warn_ratelimited(odev->drm.dev,
				     "card %016llx (number %u) at link %u came with a handle that nobody here has made, %u so far: it gets nothing\n",
				     foreign->uid, foreign->node, foreign->port, *forged);
		return -EACCES;
	}
	if (export->ending)
		return -EACCES;
	lease = orr_lease_find(&odev->fabric.leases, at, le32_to_cpu(note->tag));
	if (lease) {
		*base = lease->export->bo->node.start;
		return lease->export == export ? 0 : -EEXIST;
	}
	if (export->semaphore && export->bo->lent.closed)
		return -EOWNERDEAD;
	if (export->leases >= ORR_LEASES_OF_EXPORT)
		return -EDQUOT;
	if (orr_range_is_haunted(odev, foreign->node, export->bo->node.start,
				 export->bo->base.size))
		return -EBUSY;
	lease = kzalloc(sizeof(*lease), GFP_KERNEL);
	if (!lease)
		return -ENOMEM;
	set.base = export->bo->node.start;
	set.size = export->bo->base.size;
	ret = orr_peer_grant(odev, &set, &export->tenant);
	if (ret) {
		kfree(lease);
		return ret;
	}
	*lease = (struct orr_lease){ .export = export, .at = at, .node = foreign->node,
				     .tag = le32_to_cpu(note->tag),
				     .base = export->bo->node.start,
				     .size = export->bo->base.size };
	export->leases++;
	WRITE_ONCE(export->bo->lent.mapped, export->bo->lent.mapped + 1);
	if (export->semaphore)
		export->bo->lent.leases++;
	list_add(&lease->link, &odev->fabric.leases);
	*base = export->bo->node.start;
	return 0;
}

static void orr_fabric_map(struct orr_device *odev, u32 at, const struct orr_note *note)
{
	struct orr_note back = orr_fabric_say(ORR_NOTE_MAP_BACK, le32_to_cpu(note->tag));
	u64 base = 0, key = 0;
	__le64 told;
	int ret;

	/* A card that carries none is granted as before 2.14. */
	if (note->status == cpu_to_le32(ORR_MAP_KEYS))
		key = odev->fabric.foreign[at].key;
	ret = orr_fabric_lend(odev, at, note, key, &base);
	told = cpu_to_le64(key);
	back.status = cpu_to_le32(ret);
	back.base = cpu_to_le64(base);
	back.size = note->size;
	/* Who has shown the secret, and nobody else. */
	if (!ret)
		memcpy(back.secret, &told, sizeof(told));
	/* Without room for it he asks again. */
	orr_foreign_say(odev, at, &back);
}

/*
 * What was sent before is carried out: what switches have of it has to be here for that. Without
 * orr_fabric.lock, as a switch may have something for a third card, which takes nothing. What does not come
 * in time is refused when it does; the answer to ORR_NOTE_REVOKED comes behind it, and nobody there gets the
 * same range before that.
 *
 * only: of this export; NULL: of all of the file.
 */
static void orr_exports_drain(struct orr_file *file, const struct orr_export *only)
{
	struct orr_device *odev = file->odev;
	const struct orr_lease *lease;
	struct orr_export *export;
	unsigned long number, ports = 0;
	u32 port;

	scoped_guard(mutex, &odev->fabric.lock) {
		xa_for_each(&odev->fabric.exports, number, export)
			export->ending |= export->file == file && (!only || export == only);
		list_for_each_entry(lease, &odev->fabric.leases, link) {
			const struct orr_foreign *foreign = &odev->fabric.foreign[lease->at];

			if (lease->export->file == file && (!only || lease->export == only) &&
			    foreign->behind)
				__set_bit(foreign->port, &ports);
		}
	}
	for_each_set_bit(port, &ports, ORR_LINK_MAX_PORTS)
		orr_port_drain(odev, odev, port, 1);
}

static void orr_export_end(struct orr_device *odev, unsigned long number)
{
	struct orr_lease *lease, *next;
	struct orr_export *export;

	lockdep_assert_held(&odev->fabric.lock);
	export = xa_load(&odev->fabric.exports, number);
	xa_erase(&odev->fabric.exports, number);
	if (export->semaphore)
		export->bo->lent.exports--;
	list_for_each_entry_safe(lease, next, &odev->fabric.leases, link) {
		if (lease->export != export)
			continue;
		orr_lease_end(odev, lease, ORR_QERR_ABANDONED, true);
		list_add_tail(&lease->link, &odev->fabric.revoked);
		cond_resched();
	}
	/* Also if nobody has imported it yet: nobody can any more. */
	orr_export_miss(odev, export, ORR_QERR_ABANDONED, odev->info.uid);
	kfree(export->sem);
	/* By the worker of the card, which is not kept waiting here. */
	orr_health_link_kick(odev, true);
	drm_gem_object_put(&export->bo->base);
	kfree(export);
}

/**
 * orr_fabric_close - a process goes: nobody writes to its memory any more
 * @file: its file
 */
void orr_fabric_close(struct orr_file *file)
{
	struct orr_fabric *fabric = &file->odev->fabric;
	struct orr_export *export;
	unsigned long number;

	orr_exports_drain(file, NULL);
	scoped_guard(mutex, &fabric->lock)
		xa_for_each(&fabric->exports, number, export)
			if (export->file == file)
				orr_export_end(file->odev, number);
	orr_fabric_close_sems(file->odev);
}

static int orr_fabric_add(struct orr_device *odev, struct orr_export *export, u32 *number)
{
	int ret;

	guard(mutex)(&odev->fabric.lock);
	ret = xa_alloc(&odev->fabric.exports, number, export, XA_LIMIT(1, ORR_EXPORTS),
		       GFP_KERNEL_ACCOUNT);
	if (!ret && export->semaphore)
		export->bo->lent.exports++;
	return ret == -EBUSY ? -ENOSPC : ret;
}

/**
 * orr_fabric_export_ioctl - DRM_IOCTL_ORR_FABRIC_EXPORT
 * @drm: the card
 * @data: arguments
 * @drm_file: the file
 *
 * Return: 0, -ENOENT, -EINVAL for what is not memory of this card, -ENOSPC, -EOPNOTSUPP, …
 */
int orr_fabric_export_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_fabric_export *args = data;
	struct orr_export *export __free(kfree) = NULL;
	struct orr_sem *sem __free(kfree) = NULL;
	struct drm_gem_object *obj;
	u32 number;
	int ret;

	if (args->flags & ~ORR_FABRIC_SEMAPHORE)
		return -EINVAL;
	if (orr_is_lost(odev))
		return -ENODEV;
	if (!orr_has_notes(odev) || (args->flags && !orr_fw_fails(odev)))
		return -EOPNOTSUPP;
	export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	if (args->flags)
		sem = kzalloc(sizeof(*sem), GFP_KERNEL_ACCOUNT);
	if (!export || (args->flags && !sem))
		return -ENOMEM;
	obj = drm_gem_object_lookup(drm_file, args->handle);
	if (!obj)
		return -ENOENT;
	export->bo = to_orr_bo(obj);
	export->file = file;
	export->semaphore = args->flags & ORR_FABRIC_SEMAPHORE;
	export->sem = sem;
	export->tenant = (struct orr_tenant){ .uid = file->uid, .pid = file->pid };
	get_random_bytes(export->secret, sizeof(export->secret));
	memcpy(args->secret, export->secret, sizeof(args->secret));
	args->size = obj->size;
	ret = export->bo->kind == ORR_BO_KIND_VRAM ? orr_fabric_add(odev, export, &number) :
						     -EINVAL;
	if (ret) {
		drm_gem_object_put(obj);
		return ret;
	}
	/* The table has both. */
	export = NULL;
	sem = NULL;
	args->object = number;
	args->node = odev->node;
	args->pad = 0;
	return 0;
}

/*
 * Those whose card has a mapping that was revoked of a range that it may write to by another handle: it can
 * until its driver has taken the mapping away.
 */
static u64 orr_fabric_still_open(struct orr_device *odev, u64 base)
{
	const struct orr_lease *gone, *lease;
	u64 open = 0;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(gone, &odev->fabric.revoked, link) {
		if (gone->base != base)
			continue;
		list_for_each_entry(lease, &odev->fabric.leases, link)
			if (lease->node == gone->node && lease->base == base)
				open |= BIT_ULL(gone->at);
	}
	return open;
}

static void orr_fabric_await_shut(struct orr_device *odev, u64 base)
{
	unsigned int tries;

	for (tries = 0; tries < ORR_REVOKE_TRIES; tries++) {
		scoped_guard(mutex, &odev->fabric.lock)
			if (!orr_fabric_still_open(odev, base))
				return;
		if (fatal_signal_pending(current) || orr_is_lost(odev))
			return;
		msleep(ORR_REVOKE_PERIOD_MS);
	}
	scoped_guard(mutex, &odev->fabric.lock)
		orr_foreign_restart(odev, orr_fabric_still_open(odev, base));
}

/**
 * orr_fabric_revoke_ioctl - DRM_IOCTL_ORR_FABRIC_REVOKE
 * @drm: the card
 * @data: arguments
 * @drm_file: the file
 *
 * Return: 0 when nobody can write there by that handle any more, -ENOENT.
 */
int orr_fabric_revoke_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_fabric_revoke *args = data;
	struct orr_export *export;
	u64 base;

	if (args->pad)
		return -EINVAL;
	scoped_guard(mutex, &odev->fabric.lock) {
		export = xa_load(&odev->fabric.exports, args->object);
		if (!export || export->file != file)
			return -ENOENT;
	}
	/* It may end meanwhile, and is only compared. */
	orr_exports_drain(file, export);
	scoped_guard(mutex, &odev->fabric.lock) {
		export = xa_load(&odev->fabric.exports, args->object);
		if (!export || export->file != file)
			return -ENOENT;
		base = export->bo->node.start;
		orr_export_end(odev, args->object);
	}
	orr_fabric_close_sems(odev);
	orr_fabric_await_shut(odev, base);
	return 0;
}

/**
 * orr_fabric_note - a note about memory has come, in a session
 * @odev: the card
 * @at: from whom, in orr_fabric.foreign
 * @note: what it says
 */
void orr_fabric_note(struct orr_device *odev, u32 at, const struct orr_note *note)
{
	u32 tag = le32_to_cpu(note->tag);
	struct orr_note back;
	struct orr_lease *lease;

	switch (note->op) {
	case ORR_NOTE_MAP:
		orr_fabric_map(odev, at, note);
		break;
	case ORR_NOTE_MAP_BACK:
		orr_import_answer(odev, at, note);
		break;
	case ORR_NOTE_UNMAP:
		lease = orr_lease_find(&odev->fabric.leases, at, tag);
		if (lease) {
			orr_lease_end(odev, lease, ORR_QERR_ABANDONED,
				      note->status != cpu_to_le32(ORR_UNMAP_UNUSED));
			kfree(lease);
		}
		back = orr_fabric_say(ORR_NOTE_UNMAP_BACK, tag);
		orr_foreign_say(odev, at, &back);
		break;
	case ORR_NOTE_UNMAP_BACK:
		orr_import_told(odev, at, tag);
		break;
	case ORR_NOTE_REVOKED:
		orr_import_revoked(odev, at, tag);
		break;
	case ORR_NOTE_REVOKED_BACK:
		lease = orr_lease_find(&odev->fabric.revoked, at, tag);
		if (lease) {
			list_del(&lease->link);
			kfree(lease);
		}
		break;
	case ORR_NOTE_STUCK:
		orr_far_asked(odev, at, note);
		break;
	case ORR_NOTE_STUCK_HOP:
	case ORR_NOTE_STUCK_BACK:
		orr_far_answered(odev, at, note);
		break;
	}
}

/**
 * orr_fabric_lessees - who of other machines may write to a BO?
 * @odev: its card
 * @bo: the BO
 * @lessee: filled in
 * @room: in @lessee
 *
 * Return: how many there are, maybe more than there is room for.
 */
u32 orr_fabric_lessees(struct orr_device *odev, const struct orr_bo *bo, struct orr_lessee *lessee,
		       u32 room)
{
	const struct orr_lease *lease;
	u32 count = 0;

	guard(mutex)(&odev->fabric.lock);
	list_for_each_entry(lease, &odev->fabric.leases, link) {
		if (lease->export->bo != bo)
			continue;
		if (count < room)
			lessee[count] = (struct orr_lessee){ .at = lease->at, .node = lease->node,
							     .tag = lease->tag,
							     .uid = lease->export->tenant.uid };
		count++;
	}
	return count;
}

/**
 * orr_fabric_end - a session ends, with all that was shared in it
 * @odev: the card
 * @at: with whom, in orr_fabric.foreign
 */
void orr_fabric_end(struct orr_device *odev, u32 at)
{
	struct orr_lease *lease, *next;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry_safe(lease, next, &odev->fabric.leases, link)
		if (lease->at == at) {
			orr_lease_end(odev, lease, ORR_QERR_PEER_LOST, true);
			kfree(lease);
		}
	/* He begins no other session before he has taken his mappings away. */
	list_for_each_entry_safe(lease, next, &odev->fabric.revoked, link)
		if (lease->at == at) {
			list_del(&lease->link);
			kfree(lease);
		}
	orr_import_end_all(odev, at);
}

static bool orr_leases_name(const struct list_head *leases, u32 at)
{
	const struct orr_lease *lease;

	list_for_each_entry(lease, leases, link)
		if (lease->at == at)
			return true;
	return false;
}

/**
 * orr_fabric_names - has a card something that is shared here, or has it not yet heard that it has not?
 * @odev: the card
 * @at: that card, in orr_fabric.foreign
 *
 * Return: whether.
 */
bool orr_fabric_names(struct orr_device *odev, u32 at)
{
	lockdep_assert_held(&odev->fabric.lock);
	return orr_leases_name(&odev->fabric.leases, at) || orr_leases_name(&odev->fabric.revoked, at);
}

/**
 * orr_fabric_tell - tell other drivers what has ended here
 * @odev: the card
 *
 * A note for which there is no room over there is lost, and somebody may wait for what it says: it is
 * sent again until it is answered, or the session ends. That of who never answers does.
 */
void orr_fabric_tell(struct orr_device *odev)
{
	unsigned int left[ORR_FOREIGN_MAX];
	struct orr_lease *lease, *next;
	u64 deaf = 0;
	bool again;
	u32 at;

	lockdep_assert_held(&odev->fabric.lock);
	for (at = 0; at < ARRAY_SIZE(left); at++)
		left[at] = ORR_TELL_AT_ONCE;
	list_for_each_entry_safe(lease, next, &odev->fabric.revoked, link) {
		struct orr_note note = orr_fabric_say(ORR_NOTE_REVOKED, lease->tag);

		if (orr_telling_is_over(&lease->telling))
			deaf |= BIT_ULL(lease->at);
		else if (orr_telling_is_long(&lease->telling))
			orr_foreign_unheard(odev, lease->at);
		if (!orr_telling_due(&lease->telling, &left[lease->at]))
			continue;
		/* Behind those that wait for their turn. */
		list_move_tail(&lease->link, &odev->fabric.revoked);
		orr_foreign_say(odev, lease->at, &note);
	}
	again = orr_import_tell(odev, left, &deaf);
	orr_foreign_restart(odev, deaf);
	if (again || !list_empty(&odev->fabric.revoked))
		orr_health_link_kick(odev, false);
}
