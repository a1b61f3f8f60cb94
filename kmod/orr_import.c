// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of cards of other machines, on the side that writes there: see orr_fabric.c. What is not shared
 * any more is taken out of page tables before its owner is told that it was heard: the owner lends the
 * same range again after that, and his card looks at nodes and ranges only.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include <drm/drm_file.h>
#include <drm/orrery_accel.h>

#include "orr_answer.h"
#include "orr_bo.h"
#include "orr_device.h"
#include "orr_foreign.h"
#include "orr_ioctl.h"
#include "orr_key.h"
#include "orr_vm.h"

/* How often a driver is asked, and for how long. */
#define ORR_MAP_TRIES 5u
#define ORR_MAP_PERIOD HZ
/* How long a mapping that is being taken away is waited for. */
#define ORR_HAUNTED_TRIES 250u
#define ORR_HAUNTED_PERIOD_MS 20u
/* Imports that have ended and have not been answered, at which no more are made of one card. */
#define ORR_UNTOLD_OF_CARD 4096u
/* So often another driver is told the same before something may be in the way. */
#define ORR_SAID_AGAIN 16u

static_assert(sizeof(struct drm_orr_fabric_import) == 48);

/**
 * struct orr_asked - who waits for an answer to ORR_NOTE_MAP
 */
struct orr_asked {
	/** @link: in orr_fabric.asked */
	struct list_head link;
	/** @done: there is one */
	struct completion done;
	/** @at: from whom it comes */
	u32 at;
	/** @tag: of the mapping */
	u32 tag;
	/** @answer: written under orr_fabric.lock */
	struct orr_answer answer;
};

/**
 * orr_import_answer - ORR_NOTE_MAP_BACK has come
 * @odev: the card
 * @at: from whom, in orr_fabric.foreign
 * @note: it
 */
void orr_import_answer(struct orr_device *odev, u32 at, const struct orr_note *note)
{
	struct orr_asked *asked;
	__le64 key;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(asked, &odev->fabric.asked, link) {
		if (asked->at != at || asked->tag != le32_to_cpu(note->tag) ||
		    !orr_answer_take(&asked->answer, (int)le32_to_cpu(note->status),
				     le64_to_cpu(note->base)))
			continue;
		/* In the order of the answers: the owner has one for all, and the last counts. */
		memcpy(&key, note->secret, sizeof(key));
		if (!asked->answer.status &&
		    orr_key_set(odev, odev->fabric.foreign[at].node, le64_to_cpu(key)))
			asked->answer.status = -ENODEV;
		complete(&asked->done);
	}
}

static void orr_import_say_cut(struct orr_device *odev, u32 at, u32 tag)
{
	struct orr_note note = orr_fabric_say(ORR_NOTE_REVOKED_BACK, tag);

	/* Without room for it he says it again. */
	orr_foreign_say(odev, at, &note);
}

/**
 * orr_import_revoked - ORR_NOTE_REVOKED has come, perhaps again
 * @odev: the card
 * @at: from whom, in orr_fabric.foreign
 * @tag: what is not shared any more
 */
void orr_import_revoked(struct orr_device *odev, u32 at, u32 tag)
{
	struct orr_import *import;
	struct orr_asked *asked;
	bool cut = true;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(asked, &odev->fabric.asked, link)
		if (asked->at == at && asked->tag == tag)
			orr_answer_revoke(&asked->answer);
	list_for_each_entry(import, &odev->fabric.imports, link)
		if (import->at == at && import->tag == tag) {
			WRITE_ONCE(import->dead, true);
			cut &= import->cut;
		}
	if (!cut) {
		queue_work(system_long_wq, &odev->fabric.cut_work);
		return;
	}
	/* Few of them, if he hears the answers. */
	if (++odev->fabric.foreign[at].again >= ORR_SAID_AGAIN) {
		odev->fabric.foreign[at].again = 0;
		orr_foreign_unheard(odev, at);
	}
	orr_import_say_cut(odev, at, tag);
}

/**
 * orr_import_is_cut - does nothing lead to what was shared in an older session?
 * @odev: the card
 * @at: with whom, in orr_fabric.foreign
 *
 * Return: whether; if not, the other end is greeted once it is.
 */
bool orr_import_is_cut(struct orr_device *odev, u32 at)
{
	const struct orr_import *import;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(import, &odev->fabric.imports, link)
		if (import->at == at && import->dead && !import->cut)
			return false;
	return true;
}

static bool orr_imports_name(const struct list_head *imports, u32 at)
{
	const struct orr_import *import;

	list_for_each_entry(import, imports, link)
		if (import->at == at)
			return true;
	return false;
}

/**
 * orr_import_names - is there something that was shared by a card, or is asked of it?
 * @odev: the card
 * @at: that card, in orr_fabric.foreign
 *
 * Return: whether.
 */
bool orr_import_names(struct orr_device *odev, u32 at)
{
	const struct orr_asked *asked;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(asked, &odev->fabric.asked, link)
		if (asked->at == at)
			return true;
	guard(spinlock)(&odev->fabric.ended_lock);
	return orr_imports_name(&odev->fabric.imports, at) ||
	       orr_imports_name(&odev->fabric.ended, at) || orr_imports_name(&odev->fabric.untold, at);
}

static void orr_import_cut(struct orr_device *odev)
{
	struct orr_fabric *fabric = &odev->fabric;
	struct orr_import *import;
	u64 cut = 0;
	u32 at;

	scoped_guard(mutex, &fabric->lock)
		list_for_each_entry(import, &fabric->imports, link)
			import->cutting = import->dead && !import->cut;
	/* If the card is lost, nothing of it goes anywhere. */
	if (orr_vms_cut_dead(odev))
		return;
	guard(mutex)(&fabric->lock);
	list_for_each_entry(import, &fabric->imports, link) {
		if (!import->cutting)
			continue;
		import->cutting = false;
		import->cut = true;
		cut |= BIT_ULL(import->at);
		if (fabric->foreign[import->at].greet.session)
			orr_import_say_cut(odev, import->at, import->tag);
	}
	if (!fabric->open)
		return;
	for (at = 0; at < ORR_FOREIGN_MAX; at++)
		if (cut & BIT_ULL(at) && orr_foreign_is_there(&fabric->foreign[at]) &&
		    !fabric->foreign[at].greet.session)
			orr_foreign_greet(odev, at);
}

/**
 * orr_import_cut_work - take what is dead out of page tables, then tell other machines so
 * @work: orr_fabric.cut_work
 *
 * Not in the worker that takes notes: address spaces are locked by those who wait for the card.
 */
void orr_import_cut_work(struct work_struct *work)
{
	struct orr_fabric *fabric = container_of(work, struct orr_fabric, cut_work);
	u32 wanted = atomic_read_acquire(&fabric->cuts_wanted);

	orr_import_cut(container_of(fabric, struct orr_device, fabric));
	/* Behind what was written into page tables: pairs with orr_peer_has_cut(). */
	smp_store_release(&fabric->cuts_done, wanted);
	wake_up_all(&fabric->cut);
}

static void orr_import_free(struct orr_device *odev, struct orr_import *import)
{
	list_del(&import->link);
	odev->fabric.foreign[import->at].untold--;
	kfree(import);
}

/**
 * orr_import_told - he who has lent it knows that it is not used any more
 * @odev: the card
 * @at: who said so, in orr_fabric.foreign
 * @tag: what
 */
void orr_import_told(struct orr_device *odev, u32 at, u32 tag)
{
	struct orr_import *import, *next;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry_safe(import, next, &odev->fabric.untold, link)
		if (import->at == at && import->tag == tag)
			orr_import_free(odev, import);
}

/**
 * orr_import_end_all - a session ends
 * @odev: the card
 * @at: with whom, in orr_fabric.foreign
 */
void orr_import_end_all(struct orr_device *odev, u32 at)
{
	struct orr_import *import;
	struct orr_asked *asked;

	lockdep_assert_held(&odev->fabric.lock);
	list_for_each_entry(import, &odev->fabric.imports, link)
		if (import->at == at)
			WRITE_ONCE(import->dead, true);
	list_for_each_entry(import, &odev->fabric.untold, link)
		if (import->at == at)
			import->dead = true;
	list_for_each_entry(asked, &odev->fabric.asked, link) {
		if (asked->at == at && orr_answer_end(&asked->answer, -ENOTCONN))
			complete(&asked->done);
	}
	queue_work(system_long_wq, &odev->fabric.cut_work);
}

/**
 * orr_import_tell - tell those who have lent what is not used any more
 * @odev: the card
 * @left: how many notes each of orr_fabric.foreign may get
 * @deaf: gets those who do not answer, a bit each
 *
 * Return: whether there is something to be told again.
 */
bool orr_import_tell(struct orr_device *odev, unsigned int left[], u64 *deaf)
{
	struct orr_fabric *fabric = &odev->fabric;
	struct orr_import *import, *next;
	LIST_HEAD(ended);

	lockdep_assert_held(&fabric->lock);
	scoped_guard(spinlock, &fabric->ended_lock)
		list_splice_init(&fabric->ended, &ended);
	list_for_each_entry(import, &ended, link)
		fabric->foreign[import->at].untold++;
	list_splice_tail(&ended, &fabric->untold);
	list_for_each_entry_safe(import, next, &fabric->untold, link) {
		struct orr_note note = orr_fabric_say(ORR_NOTE_UNMAP, import->tag);

		if (!import->used)
			note.status = cpu_to_le32(ORR_UNMAP_UNUSED);
		if (orr_telling_is_over(&import->telling))
			*deaf |= BIT_ULL(import->at);
		else if (orr_telling_is_long(&import->telling))
			orr_foreign_unheard(odev, import->at);
		if (import->dead || !fabric->foreign[import->at].greet.session) {
			orr_import_free(odev, import);
		} else if (orr_telling_due(&import->telling, &left[import->at])) {
			/* Behind those that wait for their turn. */
			list_move_tail(&import->link, &fabric->untold);
			orr_foreign_say(odev, import->at, &note);
		}
	}
	return !list_empty(&fabric->untold);
}

/* Who ends it must not wait for a card. */
static void orr_import_end(struct orr_device *odev, struct orr_import *import)
{
	scoped_guard(spinlock, &odev->fabric.ended_lock)
		list_add_tail(&import->link, &odev->fabric.ended);
	orr_health_link_kick(odev, true);
}

/**
 * orr_import_forget - a BO of another machine's memory is gone, and out of page tables
 * @odev: the card
 * @import: of it
 */
void orr_import_forget(struct orr_device *odev, struct orr_import *import)
{
	scoped_guard(mutex, &odev->fabric.lock)
		list_del_init(&import->link);
	orr_import_end(odev, import);
}

/*
 * How is the card reached that has it? Nobody takes its place once it is asked. Return: as
 * orr_foreign_find(), -EBUSY: too many imports that have ended have not been answered.
 */
static int orr_import_begin(struct orr_device *odev, struct orr_asked *asked, u32 node)
{
	struct orr_foreign *foreign;
	int ret;

	while (!(ret = orr_foreign_find(odev, node, &asked->at))) {
		guard(mutex)(&odev->fabric.lock);
		foreign = &odev->fabric.foreign[asked->at];
		if (foreign->untold >= ORR_UNTOLD_OF_CARD)
			return -EBUSY;
		if (!foreign->greet.session || foreign->node != node)
			continue;
		asked->tag = ++odev->fabric.last_tag;
		list_add(&asked->link, &odev->fabric.asked);
		break;
	}
	return ret;
}

/* Asks once. Return: the answer, -ETIMEDOUT, -ERESTARTSYS. */
static int orr_import_ask(struct orr_device *odev, struct orr_asked *asked,
			  const struct drm_orr_fabric_import *args)
{
	struct orr_note note = orr_fabric_say(ORR_NOTE_MAP, asked->tag);
	long left;

	if (orr_link_keys(odev))
		note.status = cpu_to_le32(ORR_MAP_KEYS);
	note.object = cpu_to_le64(args->object);
	note.size = cpu_to_le64(args->size);
	memcpy(note.secret, args->secret, sizeof(note.secret));
	scoped_guard(mutex, &odev->fabric.lock) {
		const struct orr_foreign *foreign = &odev->fabric.foreign[asked->at];

		if (!foreign->greet.session || foreign->node != args->node)
			return -ENOTCONN;
		note.epoch = cpu_to_le16(foreign->greet.epoch);
		orr_answer_ask(&asked->answer);
		reinit_completion(&asked->done);
	}
	orr_foreign_say(odev, asked->at, &note);
	left = wait_for_completion_interruptible_timeout(&asked->done, ORR_MAP_PERIOD);
	if (left < 0)
		return -ERESTARTSYS;
	return left ? asked->answer.status : -ETIMEDOUT;
}

/* Return: 0 with orr_asked.answer, or a negative error. */
static int orr_import_ask_all(struct orr_device *odev, struct orr_asked *asked,
			      const struct drm_orr_fabric_import *args)
{
	unsigned int tries, waits = 0;
	int ret = -ETIMEDOUT;

	for (tries = 0; tries < ORR_MAP_TRIES; tries++) {
		ret = orr_import_ask(odev, asked, args);
		/* A mapping that was revoked is being taken away, on this side. */
		if (ret == -EBUSY && waits++ < ORR_HAUNTED_TRIES) {
			tries--;
			if (msleep_interruptible(ORR_HAUNTED_PERIOD_MS))
				return -ERESTARTSYS;
			continue;
		}
		if (ret != -ETIMEDOUT && ret != -ESTALE)
			break;
		if (ret != -ESTALE)
			continue;
		scoped_guard(mutex, &odev->fabric.lock)
			orr_foreign_greet(odev, asked->at);
	}
	return orr_answer_judge(&asked->answer, ret, args->size);
}

/* The BO of what has been answered. Return: with @import, or an error pointer. */
static struct orr_bo *orr_import_bo(struct orr_device *odev, struct orr_import *import,
				    const struct orr_asked *asked)
{
	const struct orr_foreign *foreign = &odev->fabric.foreign[import->at];
	struct orr_bo *bo = orr_bo_alloc(odev, ORR_BO_KIND_FOREIGN);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->import = import;
	drm_gem_private_object_init(&odev->drm, &bo->base, import->size);
	guard(mutex)(&odev->fabric.lock);
	import->uid = foreign->uid;
	/* It may have ended since the answer came. */
	import->dead = asked->answer.ended;
	import->cut = asked->answer.ended;
	list_add(&import->link, &odev->fabric.imports);
	return bo;
}

/**
 * orr_fabric_import_ioctl - DRM_IOCTL_ORR_FABRIC_IMPORT
 * @drm: the card
 * @data: arguments
 * @drm_file: the file
 *
 * Return: 0, -EXDEV if neither a link nor a switch leads to that card, -EACCES: it does not know the
 * handle, -ETIMEDOUT: its driver does not answer, -ENOTCONN: it has gone, -ESTALE, -EPROTO, -ENOSPC and
 * -EDQUOT: it has no grants left, or the handle was imported too often, -EBUSY: an older mapping of it has
 * not been taken away for seconds, or too many imports that have ended have not been answered, -EOWNERDEAD:
 * a semaphore that is closed, …
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
	import = kzalloc(sizeof(*import), GFP_KERNEL_ACCOUNT);
	if (!import)
		return -ENOMEM;
	init_completion(&asked.done);
	ret = orr_import_begin(odev, &asked, args->node);
	if (ret) {
		kfree(import);
		return ret;
	}
	ret = orr_import_ask_all(odev, &asked, args);
	ret = ret ?: orr_keys_await(odev);
	*import = (struct orr_import){ .at = asked.at, .node = args->node, .base = asked.answer.base,
				       .size = args->size, .tag = asked.tag };
	if (ret == -EACCES)
		dev_warn_ratelimited(odev->drm.dev,
				     "process %d came with a handle that the card with the number %u does not know: it gets nothing\n",
				     task_tgid_nr(current), args->node);
	bo = ret ? ERR_PTR(ret) : orr_import_bo(odev, import, &asked);
	scoped_guard(mutex, &odev->fabric.lock)
		list_del(&asked.link);
	if (IS_ERR(bo)) {
		/* The answer may only be late. */
		orr_import_end(odev, import);
		return PTR_ERR(bo);
	}
	ret = drm_gem_handle_create(drm_file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base);
	return ret;
}
