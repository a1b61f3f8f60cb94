// SPDX-License-Identifier: GPL-2.0
/*
 * Multicasts: memory of several cards, to which one card writes at once, and which it reads combined.
 * The switch at that card's port copies and combines, and each member's grants judge what comes as
 * if it were for that member alone. So
 * who makes one may do nothing with it that he could not do with an import of each member's memory.
 *
 * A slot of a card has a number among those of nodes, which is no card's, and keeps it: so what the
 * switch keeps of a multicast that has ended is overwritten by the next of its slot.
 *
 * It is made for the ways to its members as they are. When something of one may have been lost it
 * is cut, for good: the card sends nothing there any more, and who writes stops. What was sent
 * before in epochs of those ways that have ended is without effect, as all else.
 */
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_grant.h"
#include "orr_ioctl.h"
#include "orr_multicast.h"
#include "orr_route.h"

#define ORR_MULTICAST_TIMEOUT_US (5 * USEC_PER_SEC)
/* How often it is tried again when too much waits at the port, and how far apart. */
#define ORR_MULTICAST_TRIES 20u
#define ORR_MULTICAST_PERIOD_MS 5u
#define ORR_MULTICASTS_OF_USER (ORR_MULTICASTS / 4 * 3)

static_assert(ORR_MULTICAST_MEMBERS == ORR_MULTICAST_MEMBERS_MAX);
static_assert(sizeof(struct drm_orr_multicast_member) == 16);
static_assert(sizeof(struct drm_orr_multicast_create) == 32);

/*
 * --- slots ---
 */

/* Return: a slot, or an error pointer: -ENOSPC: all are taken, -EDQUOT: the user has too many. */
static struct orr_multicast_slot *orr_multicast_take(struct orr_device *odev)
{
	struct orr_multicast_slot *free = NULL;
	unsigned int i, own = 0;

	guard(spinlock)(&odev->multicasts.lock);
	for (i = 0; i < ORR_MULTICASTS; i++) {
		struct orr_multicast_slot *slot = &odev->multicasts.slots[i];

		own += slot->taken && uid_eq(slot->uid, current_euid());
		if (!slot->taken && !free)
			free = slot;
	}
	if (own >= ORR_MULTICASTS_OF_USER)
		return ERR_PTR(-EDQUOT);
	if (!free)
		return ERR_PTR(-ENOSPC);
	free->taken = true;
	free->cut = false;
	free->count = 0;
	free->uid = current_euid();
	return free;
}

/**
 * orr_multicast_free - its BO is gone, and with it all that led there
 * @odev: the card
 * @multicast: is freed
 *
 * Waits for nothing: what the switch keeps is for nobody.
 */
void orr_multicast_free(struct orr_device *odev, struct orr_multicast *multicast)
{
	unsigned int i;
	int idx;

	if (multicast->slot) {
		guard(spinlock)(&odev->multicasts.lock);
		if (!orr_enter(odev, &idx)) {
			orr_write32(odev, ORR_R_ROUTE(multicast->slot->number), 0);
			orr_exit(odev, idx);
		}
		multicast->slot->taken = false;
		multicast->slot->count = 0;
	}
	for (i = 0; i < multicast->count; i++)
		if (multicast->part[i].memory)
			dma_buf_put(multicast->part[i].memory);
	kfree(multicast);
}

/* Whether all members are reached as they were when it was made. */
static bool orr_multicast_stands(const struct orr_device *odev,
				 const struct orr_multicast_slot *slot)
{
	unsigned int i;

	for (i = 0; i < slot->count; i++)
		if (!orr_way_stands(odev->node, slot->nodes[i], slot->versions[i]))
			return false;
	return true;
}

static void orr_multicast_write(struct orr_device *odev, u32 number, u32 node, u64 base)
{
	lockdep_assert_held(&orr_routes_lock);
	orr_write32(odev, ORR_R_MULTICAST_MEMBER, node);
	orr_write64(odev, ORR_R_MULTICAST_BASE, base);
	orr_write32(odev, ORR_R_MULTICAST_CMD, number);
	odev->multicasts.commands++;
}

/**
 * orr_multicasts_look - ways have changed: cut those that went by them
 * @odev: the card
 *
 * Before one of these is opened again: what is sent to a multicast over it is of an epoch that has
 * ended, and must not be followed by what is sent to a member alone in the new one. A card takes what
 * is written here before a route that is written later.
 */
void orr_multicasts_look(struct orr_device *odev)
{
	unsigned int i;
	int idx;

	lockdep_assert_held(&orr_routes_lock);
	guard(spinlock)(&odev->multicasts.lock);
	for (i = 0; i < ORR_MULTICASTS; i++) {
		struct orr_multicast_slot *slot = &odev->multicasts.slots[i];

		if (!slot->taken || slot->cut || orr_multicast_stands(odev, slot))
			continue;
		slot->cut = true;
		if (orr_enter(odev, &idx))
			continue;
		orr_write32(odev, ORR_R_ROUTE(slot->number), slot->route | ORR_ROUTE_HOLD);
		/* The switch lets go of reads that wait for a member. Nobody waits for it. */
		orr_multicast_write(odev, slot->number, 0, 0);
		orr_exit(odev, idx);
	}
}

/*
 * --- the beginning ---
 */

/*
 * Inside orr_enter(). Return: 0, -EXDEV: the port does not lead to a switch any more, -EAGAIN: too
 * much waits there, -EBUSY: the card stands, -ENODEV, -EIO.
 */
static int orr_multicast_command(struct orr_device *odev, u32 number, u32 node, u64 base)
{
	int ret;

	orr_multicast_write(odev, number, node, base);
	ret = orr_await_or_lose(odev, ORR_R_MULTICAST_DONE, odev->multicasts.commands,
				ORR_MULTICAST_TIMEOUT_US, 0,
				"it does not carry out commands for multicasts");
	if (ret)
		return ret;
	switch (orr_read32(odev, ORR_R_MULTICAST_FAULT)) {
	case ORR_FAULT_NONE:
		return 0;
	case ORR_FAULT_PEER_BUSY:
		return -EAGAIN;
	case ORR_FAULT_NO_ROUTE:
	case ORR_FAULT_PEER_DOWN:
		return -EXDEV;
	default:
		return -EIO;
	}
}

/* The ways to all members, which begin at one port. Return: 0, -EXDEV. */
static int orr_multicast_ways(struct orr_device *odev, const struct orr_multicast *multicast,
			      u32 *port)
{
	struct orr_multicast_slot *slot = multicast->slot;
	unsigned int i;

	for (i = 0; i < multicast->count; i++) {
		u32 node = orr_bo_device(multicast->part[i].owner)->node, first;
		struct orr_way way;
		bool good;

		if (!orr_way_get(odev->node, node, &way))
			return -EXDEV;
		good = way.up && way.fabric;
		first = good && way.steps[0].odev == odev ? way.steps[0].onward : way.steps[1].back;
		slot->nodes[i] = node;
		slot->versions[i] = way.version;
		orr_way_put(&way);
		if (!good || (i && first != *port))
			return -EXDEV;
		*port = first;
	}
	return 0;
}

/* Inside orr_enter(). The ways stay as they are as long as the lock is held. */
static int orr_multicast_tell(struct orr_device *odev, const struct orr_multicast *multicast)
{
	struct orr_multicast_slot *slot = multicast->slot;
	u32 port = 0, epoch;
	unsigned int i;
	int ret;

	ret = orr_multicast_ways(odev, multicast, &port);
	if (ret)
		return ret;
	/* The slot's last one may have had the same members. */
	epoch = ((slot->route >> ORR_ROUTE_EPOCH_SHIFT) + 1) & 0xffff ?: 1;
	slot->route = ORR_ROUTE_VALID | port | epoch << ORR_ROUTE_EPOCH_SHIFT;
	orr_write32(odev, ORR_R_ROUTE(slot->number), slot->route | ORR_ROUTE_HOLD);
	ret = orr_multicast_command(odev, slot->number, 0, 0);
	for (i = 0; i < multicast->count && !ret; i++) {
		const struct orr_multicast_part *part = &multicast->part[i];

		ret = orr_multicast_command(odev, slot->number, slot->nodes[i],
					    part->owner->node.start + part->offset);
	}
	if (ret)
		return ret;
	guard(spinlock)(&odev->multicasts.lock);
	slot->count = multicast->count;
	orr_write32(odev, ORR_R_ROUTE(slot->number), slot->route);
	return 0;
}

static int orr_multicast_take_numbered(struct orr_device *odev, struct orr_multicast *multicast)
{
	struct orr_multicast_slot *slot = orr_multicast_take(odev);

	lockdep_assert_held(&orr_routes_lock);
	if (IS_ERR(slot))
		return PTR_ERR(slot);
	if (!slot->number)
		slot->number = orr_number_new();
	if (!slot->number) {
		guard(spinlock)(&odev->multicasts.lock);
		slot->taken = false;
		return -ENOSPC;
	}
	/* From now on its end frees the slot. */
	multicast->slot = slot;
	return 0;
}

static int orr_multicast_make_locked(struct orr_device *odev, struct orr_multicast *multicast)
{
	int idx, ret = 0;

	lockdep_assert_held(&orr_routes_lock);
	if (!multicast->slot)
		ret = orr_multicast_take_numbered(odev, multicast);
	ret = ret ?: orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_multicast_tell(odev, multicast);
	orr_exit(odev, idx);
	return ret;
}

/*
 * Return: 0, -EINVAL: that is no memory of another card, or too little, or of one that is a member
 * already.
 */
static int orr_multicast_part_init(struct orr_device *odev, struct orr_multicast *multicast,
				   unsigned int at, const struct drm_orr_multicast_member *member,
				   u64 size)
{
	struct orr_multicast_part *part = &multicast->part[at];
	struct dma_buf *memory;
	unsigned int i;
	u64 end;

	memory = dma_buf_get(member->memory);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	part->memory = memory;
	part->owner = orr_bo_of_dma_buf(memory);
	part->offset = member->offset;
	if (member->pad || !part->owner || part->owner->kind != ORR_BO_KIND_VRAM ||
	    orr_bo_device(part->owner) == odev || !IS_ALIGNED(member->offset, ORR_PAGE_SIZE) ||
	    check_add_overflow(member->offset, size, &end) || end > part->owner->base.size)
		return -EINVAL;
	for (i = 0; i < at; i++)
		if (orr_bo_device(multicast->part[i].owner) == orr_bo_device(part->owner))
			return -EINVAL;
	return orr_peer_join(odev, orr_bo_device(part->owner));
}

/* Between tries others have the lock, and ways may change: each begins anew. */
static int orr_multicast_make(struct orr_device *odev, struct orr_multicast *multicast)
{
	unsigned int tries;
	int ret;

	for (tries = 0; tries < ORR_MULTICAST_TRIES; tries++) {
		if (tries && msleep_interruptible(ORR_MULTICAST_PERIOD_MS))
			return -ERESTARTSYS;
		if (mutex_lock_interruptible(&orr_routes_lock))
			return -ERESTARTSYS;
		ret = orr_multicast_make_locked(odev, multicast);
		mutex_unlock(&orr_routes_lock);
		if (ret != -EAGAIN)
			return ret;
	}
	return -EBUSY;
}

/**
 * orr_multicast_create_ioctl - DRM_IOCTL_ORR_MULTICAST_CREATE
 * @drm: the card that is to write
 * @data: arguments
 * @drm_file: the file
 *
 * Return: 0, -EINVAL, -EBADF, -EOPNOTSUPP: the card knows none, -EBUSY: too much waits at its port,
 * or it stands, -EDQUOT: this user has too many, -ENOSPC: the card has as many as it can, or no number
 * is free, -EXDEV: a member is not reached over the one switch at the one port, -ENODEV, -ENOMEM,
 * -ERESTARTSYS, …
 */
int orr_multicast_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct drm_orr_multicast_member members[ORR_MULTICAST_MEMBERS];
	struct orr_device *odev = to_orr_device(drm);
	struct drm_orr_multicast_create *args = data;
	struct orr_multicast *multicast;
	struct orr_bo *bo;
	unsigned int i;
	int ret = 0;

	if (args->flags & ~ORR_MULTICAST_READ || args->pad || !args->count ||
	    args->count > ORR_MULTICAST_MEMBERS || !args->size || !PAGE_ALIGNED(args->size))
		return -EINVAL;
	if (!(args->flags ? orr_has_multicast_reads(odev) : orr_has_multicasts(odev)))
		return -EOPNOTSUPP;
	if (copy_from_user(members, u64_to_user_ptr(args->members),
			   args->count * sizeof(members[0])))
		return -EFAULT;
	multicast = kzalloc(struct_size(multicast, part, args->count), GFP_KERNEL_ACCOUNT);
	if (!multicast)
		return -ENOMEM;
	multicast->count = args->count;
	multicast->reads = args->flags & ORR_MULTICAST_READ;
	bo = orr_bo_alloc(odev, ORR_BO_KIND_MULTICAST);
	if (!bo) {
		kfree(multicast);
		return -ENOMEM;
	}
	bo->multicast = multicast;
	drm_gem_private_object_init(&odev->drm, &bo->base, args->size);
	for (i = 0; i < args->count && !ret; i++)
		ret = orr_multicast_part_init(odev, multicast, i, &members[i], args->size);
	ret = ret ?: orr_multicast_make(odev, multicast);
	ret = ret ?: drm_gem_handle_create(drm_file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base);
	return ret;
}

/*
 * --- grants ---
 */

static void orr_multicast_revoke(struct orr_bo *bo, unsigned int count,
				 const struct orr_tenant *tenant)
{
	enum orr_drain drain = ORR_DRAIN_PATIENT;

	while (count--) {
		struct orr_bo *owner = bo->multicast->part[count].owner;

		orr_peer_revoke(orr_bo_device(owner), orr_bo_device(bo)->node, owner->node.start,
				tenant, &drain);
	}
}

/**
 * orr_multicast_use - a mapping is about to be made: each member lets the card in
 * @bo: of the multicast
 * @rights: ORR_LINK_RIGHT_*
 * @tenant: who pays
 *
 * Return: as orr_peer_grant().
 */
int orr_multicast_use(struct orr_bo *bo, u32 rights, const struct orr_tenant *tenant)
{
	unsigned int i;
	int ret;

	for (i = 0; i < bo->multicast->count; i++) {
		struct orr_bo *owner = bo->multicast->part[i].owner;

		ret = orr_peer_grant_own(orr_bo_device(owner), orr_bo_device(bo),
					 owner->node.start, owner->base.size, rights, tenant);
		if (ret) {
			orr_multicast_revoke(bo, i, tenant);
			return ret;
		}
	}
	return 0;
}

/**
 * orr_multicast_use_again - a mapping became two
 * @bo: of the multicast
 * @tenant: of orr_multicast_use()
 */
void orr_multicast_use_again(struct orr_bo *bo, const struct orr_tenant *tenant)
{
	unsigned int i;

	for (i = 0; i < bo->multicast->count; i++) {
		struct orr_bo *owner = bo->multicast->part[i].owner;

		orr_peer_grant_again(orr_bo_device(owner), orr_bo_device(bo)->node,
				     owner->node.start, tenant);
	}
}

/**
 * orr_multicast_unuse - a mapping is gone, and the card has forgotten it
 * @bo: of the multicast
 * @tenant: of orr_multicast_use()
 */
void orr_multicast_unuse(struct orr_bo *bo, const struct orr_tenant *tenant)
{
	orr_multicast_revoke(bo, bo->multicast->count, tenant);
}

/**
 * orr_multicasts_init - prepare
 * @odev: the card
 */
void orr_multicasts_init(struct orr_device *odev)
{
	spin_lock_init(&odev->multicasts.lock);
}
