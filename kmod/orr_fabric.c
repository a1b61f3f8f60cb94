// SPDX-License-Identifier: GPL-2.0
/*
 * Handles for cards of other machines. A process makes one of a BO in its card's memory: the card's
 * node, a number, a size, and 128 random bits. Whoever has it, on a machine with a card at the other end
 * of one of that card's links, has his driver ask for the memory; this one compares the secret, and
 * grants the range to that card. What it gets may be written to, and its semaphores signalled.
 *
 * It ends when the process that made the handle takes it back, closes its file or dies, when the other
 * lets go of it, when the link was lost, or with one of the drivers. If the memory is a semaphore, it is
 * closed when the last one who could signal it there is gone.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include <drm/drm_file.h>
#include <drm/orrery_accel.h>

#include <orrery/fw/failure.h>
#include <orrery/fw/queue.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_foreign.h"
#include "orr_ioctl.h"
#include "orr_sem.h"

/* Of a card; each holds memory of its process. */
#define ORR_EXPORTS 4096u
/* Imports of a handle. Who asks for them is not trusted, and all that he makes here is of this size. */
#define ORR_LEASES_OF_EXPORT 64u
/* How often a driver is asked, and for how long. */
#define ORR_MAP_TRIES 5u
#define ORR_MAP_PERIOD HZ
/* What is not used any more is told again after this, if it was not answered; so many of them at once. */
#define ORR_UNMAP_PERIOD (HZ / 10)
#define ORR_UNMAPS_AT_ONCE 8u

static_assert(sizeof(struct drm_orr_fabric_export) == 48);
static_assert(sizeof(struct drm_orr_fabric_import) == 48);
static_assert(sizeof(struct drm_orr_fabric_revoke) == 16);
static_assert(sizeof_field(struct drm_orr_fabric_export, secret) == ORR_FABRIC_SECRET_BYTES);

/**
 * struct orr_asked - who waits for an answer to ORR_NOTE_MAP
 */
struct orr_asked {
	/** @link: in orr_fabric.asked */
	struct list_head link;
	/** @done: there is one */
	struct completion done;
	/** @port: by which it comes */
	u32 port;
	/** @tag: of the mapping */
	u32 tag;
	/** @status: 0 or a negative error */
	int status;
	/** @base: VRAM offset there */
	u64 base;
};

static struct orr_note orr_fabric_say(enum orr_note_op op, u32 tag)
{
	return (struct orr_note){
		.magic = cpu_to_le16(ORR_NOTE_MAGIC),
		.version = ORR_NOTE_VERSION,
		.op = op,
		.tag = cpu_to_le32(tag),
	};
}

/*
 * --- the side that has the memory ---
 */

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

/* code: likewise. used: he may have signalled what was lent, and is missed. */
static void orr_lease_end(struct orr_device *odev, struct orr_lease *lease, u32 code, bool used)
{
	struct orr_export *export = lease->export;

	lockdep_assert_held(&odev->fabric.lock);
	orr_peer_revoke(odev, lease->node, export->bo->node.start, &export->tenant);
	list_del(&lease->link);
	export->leases--;
	if (export->semaphore) {
		export->bo->lent.leases--;
		export->bo->lent.missed |= used;
		orr_export_miss(odev, export, code, odev->fabric.foreign[lease->port].uid);
	}
	kfree(lease);
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

static struct orr_lease *orr_lease_find(struct orr_device *odev, u32 port, u32 tag)
{
	struct orr_lease *lease;

	list_for_each_entry(lease, &odev->fabric.leases, link)
		if (lease->port == port && lease->tag == tag)
			return lease;
	return NULL;
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
 * often, or what orr_peer_grant() says.
 */
static int orr_fabric_lend(struct orr_device *odev, u32 port, const struct orr_note *note,
			   u64 *base)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[port];
	struct orr_export *export;
	struct orr_lease *lease;
	int ret;

	lockdep_assert_held(&odev->fabric.lock);
	if (le16_to_cpu(note->epoch) != orr_foreign_epoch(foreign))
		return -ESTALE;
	export = xa_load(&odev->fabric.exports, le64_to_cpu(note->object));
	/* Who is wrong does not learn what. */
	if (!export || !orr_secret_is(export, note->secret) ||
	    le64_to_cpu(note->size) != export->bo->base.size) {
		WRITE_ONCE(foreign->forged, foreign->forged + 1);
		dev_warn_ratelimited(odev->drm.dev,
				     "card %016llx (number %u) at link %u came with a handle that nobody here has made, %u so far: it gets nothing\n",
				     foreign->uid, foreign->node, port, foreign->forged);
		return -EACCES;
	}
	lease = orr_lease_find(odev, port, le32_to_cpu(note->tag));
	if (lease) {
		*base = lease->export->bo->node.start;
		return lease->export == export ? 0 : -EEXIST;
	}
	if (export->semaphore && export->bo->lent.closed)
		return -EOWNERDEAD;
	if (export->leases >= ORR_LEASES_OF_EXPORT)
		return -EDQUOT;
	lease = kzalloc(sizeof(*lease), GFP_KERNEL);
	if (!lease)
		return -ENOMEM;
	ret = orr_peer_grant(odev, foreign->node, export->bo->node.start, export->bo->base.size,
			     ORR_LINK_RIGHT_WRITE | ORR_LINK_RIGHT_SIGNAL, &export->tenant);
	if (ret) {
		kfree(lease);
		return ret;
	}
	*lease = (struct orr_lease){ .export = export, .port = port, .node = foreign->node,
				     .tag = le32_to_cpu(note->tag) };
	export->leases++;
	if (export->semaphore)
		export->bo->lent.leases++;
	list_add(&lease->link, &odev->fabric.leases);
	*base = export->bo->node.start;
	return 0;
}

static void orr_fabric_map(struct orr_device *odev, u32 port, const struct orr_note *note)
{
	struct orr_note back = orr_fabric_say(ORR_NOTE_MAP_BACK, le32_to_cpu(note->tag));
	u64 base = 0;

	back.status = cpu_to_le32(orr_fabric_lend(odev, port, note, &base));
	back.base = cpu_to_le64(base);
	back.size = note->size;
	/* Without room for it he asks again. */
	orr_note_send(odev, port, &back);
}

static void orr_export_end(struct orr_device *odev, unsigned long number)
{
	struct orr_lease *lease, *next;
	struct orr_export *export;

	lockdep_assert_held(&odev->fabric.lock);
	export = xa_erase(&odev->fabric.exports, number);
	if (export->semaphore)
		export->bo->lent.exports--;
	list_for_each_entry_safe(lease, next, &odev->fabric.leases, link) {
		struct orr_note note = orr_fabric_say(ORR_NOTE_REVOKED, lease->tag);
		u32 port = lease->port;

		if (lease->export != export)
			continue;
		orr_lease_end(odev, lease, ORR_QERR_ABANDONED, true);
		orr_note_send(odev, port, &note);
	}
	/* Also if nobody has imported it yet: nobody can any more. */
	orr_export_miss(odev, export, ORR_QERR_ABANDONED, odev->info.uid);
	kfree(export->sem);
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
	struct drm_orr_fabric_revoke *args = data;
	struct orr_export *export;

	if (args->pad)
		return -EINVAL;
	scoped_guard(mutex, &odev->fabric.lock) {
		export = xa_load(&odev->fabric.exports, args->object);
		if (!export || export->file != to_orr_file(drm_file))
			return -ENOENT;
		orr_export_end(odev, args->object);
	}
	orr_fabric_close_sems(odev);
	return 0;
}

/*
 * --- the side that writes ---
 */

static void orr_fabric_answer(struct orr_device *odev, u32 port, const struct orr_note *note)
{
	struct orr_asked *asked;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(asked, &odev->fabric.asked, link) {
		if (asked->port != port || asked->tag != le32_to_cpu(note->tag) ||
		    completion_done(&asked->done))
			continue;
		asked->status = (int)le32_to_cpu(note->status);
		asked->base = le64_to_cpu(note->base);
		complete(&asked->done);
	}
}

static void orr_fabric_taken_back(struct orr_device *odev, u32 port, u32 tag)
{
	struct orr_import *import;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(import, &odev->fabric.imports, link)
		if (import->port == port && import->tag == tag)
			WRITE_ONCE(import->dead, true);
}

/* He who has lent it knows that it is not used any more. */
static void orr_fabric_told(struct orr_device *odev, u32 port, u32 tag)
{
	struct orr_import *import, *next;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry_safe(import, next, &odev->fabric.untold, link)
		if (import->port == port && import->tag == tag) {
			list_del(&import->link);
			kfree(import);
		}
}

/**
 * orr_fabric_note - a note about memory has come, in a session
 * @odev: the card
 * @port: by which
 * @note: what it says
 */
void orr_fabric_note(struct orr_device *odev, u32 port, const struct orr_note *note)
{
	u32 tag = le32_to_cpu(note->tag);
	struct orr_note back;
	struct orr_lease *lease;

	switch (note->op) {
	case ORR_NOTE_MAP:
		orr_fabric_map(odev, port, note);
		break;
	case ORR_NOTE_MAP_BACK:
		orr_fabric_answer(odev, port, note);
		break;
	case ORR_NOTE_UNMAP:
		lease = orr_lease_find(odev, port, tag);
		if (lease)
			orr_lease_end(odev, lease, ORR_QERR_ABANDONED,
				      note->status != cpu_to_le32(ORR_UNMAP_UNUSED));
		back = orr_fabric_say(ORR_NOTE_UNMAP_BACK, tag);
		orr_note_send(odev, port, &back);
		break;
	case ORR_NOTE_UNMAP_BACK:
		orr_fabric_told(odev, port, tag);
		break;
	case ORR_NOTE_REVOKED:
		orr_fabric_taken_back(odev, port, tag);
		break;
	}
}

/**
 * orr_fabric_end_port - a session ends, with all that was shared in it
 * @odev: the card
 * @port: of the link
 */
void orr_fabric_end_port(struct orr_device *odev, u32 port)
{
	struct orr_lease *lease, *next;
	struct orr_import *import;
	struct orr_asked *asked;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry_safe(lease, next, &odev->fabric.leases, link)
		if (lease->port == port)
			orr_lease_end(odev, lease, ORR_QERR_PEER_LOST, true);
	list_for_each_entry(import, &odev->fabric.imports, link)
		if (import->port == port)
			WRITE_ONCE(import->dead, true);
	list_for_each_entry(import, &odev->fabric.untold, link)
		if (import->port == port)
			import->dead = true;
	list_for_each_entry(asked, &odev->fabric.asked, link) {
		if (asked->port != port || completion_done(&asked->done))
			continue;
		asked->status = -ENOTCONN;
		complete(&asked->done);
	}
}

/**
 * orr_fabric_tell_ended - tell those who have lent what is not used any more
 * @odev: the card
 *
 * A note for which there is no room over there is lost, and somebody may wait for what it says: it is
 * sent again until it is answered, or the session ends.
 */
void orr_fabric_tell_ended(struct orr_device *odev)
{
	struct orr_fabric *fabric = &odev->fabric;
	unsigned int left = ORR_UNMAPS_AT_ONCE;
	struct orr_import *import, *next;

	lockdep_assert_held(&fabric->lock);
	scoped_guard(spinlock, &fabric->ended_lock)
		list_splice_tail_init(&fabric->ended, &fabric->untold);
	list_for_each_entry_safe(import, next, &fabric->untold, link) {
		struct orr_note note = orr_fabric_say(ORR_NOTE_UNMAP, import->tag);

		if (!import->used)
			note.status = cpu_to_le32(ORR_UNMAP_UNUSED);
		if (import->dead || !fabric->foreign[import->port].session) {
			list_del(&import->link);
			kfree(import);
		} else if (left && (!import->told ||
				    time_after_eq(jiffies, import->told_jiffies + ORR_UNMAP_PERIOD))) {
			left--;
			import->told = true;
			import->told_jiffies = jiffies;
			/* Behind those that wait for their turn. */
			list_move_tail(&import->link, &fabric->untold);
			orr_note_send(odev, import->port, &note);
		}
	}
	if (!list_empty(&fabric->untold))
		orr_health_link_kick(odev, false);
}

/* Who ends it must not wait for a card. */
static void orr_fabric_end_import(struct orr_device *odev, struct orr_import *import)
{
	scoped_guard(spinlock, &odev->fabric.ended_lock)
		list_add_tail(&import->link, &odev->fabric.ended);
	orr_health_link_kick(odev, true);
}

/**
 * orr_fabric_forget - a BO of another machine's memory is gone
 * @odev: the card
 * @import: of it
 */
void orr_fabric_forget(struct orr_device *odev, struct orr_import *import)
{
	scoped_guard(mutex, &odev->fabric.lock)
		list_del_init(&import->link);
	orr_fabric_end_import(odev, import);
}

/* Asks once. Return: the answer, -ETIMEDOUT, -ERESTARTSYS. */
static int orr_fabric_ask(struct orr_device *odev, struct orr_asked *asked,
			  const struct drm_orr_fabric_import *args)
{
	struct orr_note note = orr_fabric_say(ORR_NOTE_MAP, asked->tag);
	long left;

	note.object = cpu_to_le64(args->object);
	note.size = cpu_to_le64(args->size);
	memcpy(note.secret, args->secret, sizeof(note.secret));
	scoped_guard(mutex, &odev->fabric.lock) {
		const struct orr_foreign *foreign = &odev->fabric.foreign[asked->port];

		if (!foreign->session || foreign->node != args->node)
			return -ENOTCONN;
		note.epoch = cpu_to_le16(orr_foreign_epoch(foreign));
		reinit_completion(&asked->done);
	}
	orr_note_send(odev, asked->port, &note);
	left = wait_for_completion_interruptible_timeout(&asked->done, ORR_MAP_PERIOD);
	if (left < 0)
		return -ERESTARTSYS;
	return left ? asked->status : -ETIMEDOUT;
}

/* Return: 0 with orr_asked.base, or a negative error. */
static int orr_fabric_ask_all(struct orr_device *odev, struct orr_asked *asked,
			      const struct drm_orr_fabric_import *args)
{
	unsigned int tries;
	int ret = -ETIMEDOUT;

	for (tries = 0; tries < ORR_MAP_TRIES; tries++) {
		ret = orr_fabric_ask(odev, asked, args);
		if (ret != -ETIMEDOUT && ret != -ESTALE)
			break;
		if (ret != -ESTALE)
			continue;
		scoped_guard(mutex, &odev->fabric.lock)
			orr_foreign_greet(odev, asked->port);
	}
	/* Another driver's numbers go to a process as they are only if they make sense here. */
	if (ret > 0 || ret < -MAX_ERRNO)
		ret = -EPROTO;
	if (!ret && (!PAGE_ALIGNED(asked->base) ||
		     (asked->base + args->size) & ~(ORR_PTE_ADDR_MASK | ~PAGE_MASK) ||
		     asked->base + args->size < asked->base))
		ret = -EPROTO;
	return ret;
}

/* The BO of what has been answered. Return: with @import, or an error pointer. */
static struct orr_bo *orr_fabric_bo(struct orr_device *odev, struct orr_import *import)
{
	const struct orr_foreign *foreign = &odev->fabric.foreign[import->port];
	struct orr_bo *bo = orr_bo_alloc(odev, ORR_BO_KIND_FOREIGN);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->import = import;
	drm_gem_private_object_init(&odev->drm, &bo->base, import->size);
	guard(mutex)(&odev->fabric.lock);
	import->uid = foreign->uid;
	/* It may have ended since the answer came. */
	import->dead = !foreign->session || foreign->node != import->node;
	list_add(&import->link, &odev->fabric.imports);
	return bo;
}

/**
 * orr_fabric_import_ioctl - DRM_IOCTL_ORR_FABRIC_IMPORT
 * @drm: the card
 * @data: arguments
 * @drm_file: the file
 *
 * Return: 0, -EXDEV if no link leads to that card, -EACCES: it does not know the handle, -ETIMEDOUT: its
 * driver does not answer, -ENOTCONN: it has gone, -ESTALE, -EPROTO, -ENOSPC and -EDQUOT: it has no grants
 * left, or the handle was imported too often, -EOWNERDEAD: a semaphore that is closed, …
 */
int orr_fabric_import_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct drm_orr_fabric_import *args = data;
	struct orr_asked asked = {};
	struct orr_import *import;
	struct orr_bo *bo;
	int ret;

	if (args->flags || args->pad || !args->size || !PAGE_ALIGNED(args->size) || args->size > ORR_VA_END ||
	    !args->node || args->node >= ORR_NODES || orr_node_is_own(args->node))
		return -EINVAL;
	ret = orr_foreign_find(odev, args->node, &asked.port);
	if (ret)
		return ret;
	import = kzalloc(sizeof(*import), GFP_KERNEL_ACCOUNT);
	if (!import)
		return -ENOMEM;
	init_completion(&asked.done);
	scoped_guard(mutex, &odev->fabric.lock) {
		asked.tag = ++odev->fabric.last_tag;
		list_add(&asked.link, &odev->fabric.asked);
	}
	ret = orr_fabric_ask_all(odev, &asked, args);
	scoped_guard(mutex, &odev->fabric.lock)
		list_del(&asked.link);
	*import = (struct orr_import){ .port = asked.port, .node = args->node, .base = asked.base,
				       .size = args->size, .tag = asked.tag };
	if (ret == -EACCES)
		dev_warn_ratelimited(odev->drm.dev,
				     "process %d came with a handle that the card with the number %u does not know: it gets nothing\n",
				     task_tgid_nr(current), args->node);
	bo = ret ? ERR_PTR(ret) : orr_fabric_bo(odev, import);
	if (IS_ERR(bo)) {
		/* The answer may only be late. */
		orr_fabric_end_import(odev, import);
		return PTR_ERR(bo);
	}
	ret = drm_gem_handle_create(drm_file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base);
	return ret;
}
