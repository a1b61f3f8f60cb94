// SPDX-License-Identifier: GPL-2.0
/*
 * Cards that others reach. Each has a number, its node. A card reaches another's VRAM only where that
 * one's driver (this one, as the owner) has granted a range to its node; by which way, orr_route.c
 * says.
 *
 * Either card can go at any time, and mappings of its memory on the other side stand until their
 * owner takes them away. They name the node that the card had in that life. Each life of a card gets
 * another, which is nobody else's as long as such a mapping may stand, so it leads nowhere then.
 *
 * Grants are the same on all ports: by which one a node may come is for its route to say.
 *
 * A BO of the owner is kept alive by its dma-buf, and its struct orr_device by the BO; the owner's
 * registers are touched inside its orr_enter() only.
 */
#include <linux/iopoll.h>

#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_route.h"

#define ORR_GRANT_TIMEOUT_US (5 * USEC_PER_SEC)
#define ORR_NODE_TIMEOUT_US (5 * USEC_PER_SEC)

static DEFINE_MUTEX(orr_registry_lock);
static LIST_HEAD(orr_registry);
static u32 orr_last_node; /* orr_registry_lock */

static void orr_peer_forget(struct drm_device *drm, void *data)
{
	struct orr_device *odev = data;

	guard(mutex)(&orr_registry_lock);
	list_del_init(&odev->registry_node);
}

/* A number that no card has, in this life or one of which mappings may stand. 0: there is none. */
static u32 orr_node_new(void)
{
	struct orr_device *other;
	u32 tries;

	lockdep_assert_held(&orr_registry_lock);
	for (tries = 1; tries < ORR_NODES; tries++) {
		bool taken = false;

		orr_last_node = orr_last_node % (ORR_NODES - 1) + 1;
		list_for_each_entry(other, &orr_registry, registry_node)
			taken |= other->node == orr_last_node;
		if (!taken)
			return orr_last_node;
	}
	return 0;
}

/* Return: 0, -EEXIST, -ENOSPC. */
static int orr_registry_add(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	struct orr_device *other;

	guard(mutex)(&orr_registry_lock);
	list_for_each_entry(other, &orr_registry, registry_node)
		if (other->registered && other->info.uid == odev->info.uid)
			return dev_err_probe(dev, -EEXIST,
					     "card number %#llx is also that of %s: give each card its own\n",
					     odev->info.uid, pci_name(other->pdev));
	odev->node = orr_node_new();
	if (!odev->node)
		return dev_err_probe(dev, -ENOSPC,
				     "processes hold memory of %u earlier lives of cards: end some\n",
				     ORR_NODES - 1);
	list_add_tail(&odev->registry_node, &orr_registry);
	odev->registered = true;
	return 0;
}

/**
 * orr_write_and_wait - write a register that reads what is in effect, and wait for that
 * @odev: the card, inside orr_enter() or in probe
 * @reg: the register
 * @value: for it
 *
 * Return: whether it came.
 */
bool orr_write_and_wait(struct orr_device *odev, u32 reg, u32 value)
{
	u32 now;

	orr_write32(odev, reg, value);
	read_poll_timeout(orr_read32, now, now == value || now == U32_MAX, 20, ORR_NODE_TIMEOUT_US,
			  false, odev, reg);
	return now == value;
}

/**
 * orr_peer_register - make a card known to the others, and give it its node
 * @odev: the card
 *
 * Return: 0, -EEXIST if there is another with its number, -ENOSPC without a free node, -EIO if the
 * card does not take it, -ENOMEM.
 */
int orr_peer_register(struct orr_device *odev)
{
	int ret;

	ret = orr_registry_add(odev);
	if (ret)
		return ret;
	/* It stays in the list as long as there can be mappings of its memory. */
	ret = drmm_add_action_or_reset(&odev->drm, orr_peer_forget, odev);
	if (ret)
		return ret;
	if (!orr_write_and_wait(odev, ORR_R_NODE, odev->node))
		return dev_err_probe(&odev->pdev->dev, -EIO,
				     "the card does not take %u for its node: start it again\n",
				     odev->node);
	return 0;
}

/**
 * orr_peer_unregister - a card goes
 * @odev: the card
 */
void orr_peer_unregister(struct orr_device *odev)
{
	guard(mutex)(&orr_registry_lock);
	odev->registered = false;
}

/**
 * orr_peer_is_registered - may others use a card?
 * @odev: the card
 *
 * Return: whether they may.
 */
bool orr_peer_is_registered(struct orr_device *odev)
{
	guard(mutex)(&orr_registry_lock);
	return odev->registered;
}

/**
 * orr_peer_collect - all cards that others may use
 * @cards: filled in, with a reference each
 * @room: at most so many
 *
 * Return: their number.
 */
unsigned int orr_peer_collect(struct orr_device *cards[], unsigned int room)
{
	struct orr_device *odev;
	unsigned int count = 0;

	guard(mutex)(&orr_registry_lock);
	list_for_each_entry(odev, &orr_registry, registry_node) {
		if (!odev->registered || count == room)
			continue;
		/* The driver is bound, and keeps it. */
		drm_dev_get(&odev->drm);
		cards[count++] = odev;
	}
	return count;
}

/*
 * Has all ports set or clear a grant, and waits until no access under an older one is in flight. The
 * caller is inside orr_enter() of the owner.
 */
static int orr_grant_command(struct orr_device *owner, u32 slot, const struct orr_grant *set)
{
	u32 link = ORR_R_LINK(0);
	u32 done, commands;
	int ret;

	lockdep_assert_held(&owner->grant_lock);
	if (set) {
		orr_write64(owner, link + ORR_R_LINK_GRANT_BASE, set->base);
		orr_write64(owner, link + ORR_R_LINK_GRANT_SIZE, set->size);
		orr_write32(owner, link + ORR_R_LINK_GRANT_NODE, set->node);
	}
	orr_write32(owner, link + ORR_R_LINK_GRANT_CMD,
		    slot | ORR_LINK_GRANT_ALL | (set ? ORR_LINK_GRANT_SET : ORR_LINK_GRANT_CLEAR));
	commands = ++owner->grant_commands;
	ret = read_poll_timeout(orr_read32, done, done == commands || done == U32_MAX, 20,
				ORR_GRANT_TIMEOUT_US, false, owner, link + ORR_R_LINK_GRANT_DONE);
	if (!ret && done == commands)
		return 0;
	if (orr_health_gone(owner))
		return -ENODEV;
	drm_err(&owner->drm, "%u grant commands done, expected %u\n", done, commands);
	orr_device_lost(owner, "a link port does not carry out grants");
	return -ENODEV;
}

static struct orr_grant *orr_grant_find(struct orr_device *owner, u32 node, u64 base)
{
	unsigned int slot;

	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++) {
		struct orr_grant *grant = &owner->grants[slot];

		if (grant->users && grant->node == node && grant->base == base)
			return grant;
	}
	return NULL;
}

/**
 * orr_peer_has_grants - may a node write to some memory of a card?
 * @owner: the card that has the memory
 * @node: the other's
 *
 * Return: whether it may.
 */
bool orr_peer_has_grants(struct orr_device *owner, u32 node)
{
	unsigned int slot;

	guard(mutex)(&owner->grant_lock);
	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++)
		if (owner->grants[slot].users && owner->grants[slot].node == node)
			return true;
	return false;
}

static struct orr_grant *orr_grant_find_free(struct orr_device *owner)
{
	unsigned int slot;

	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++)
		if (!owner->grants[slot].users)
			return &owner->grants[slot];
	return NULL;
}

/* The caller is inside orr_enter() of the owner. */
static int orr_peer_grant_locked(struct orr_device *owner, const struct orr_grant *set)
{
	struct orr_grant *grant;
	int ret;

	lockdep_assert_held(&owner->grant_lock);
	grant = orr_grant_find(owner, set->node, set->base);
	if (grant) {
		grant->users++;
		return 0;
	}
	grant = orr_grant_find_free(owner);
	if (!grant)
		return -ENOSPC;
	ret = orr_grant_command(owner, grant - owner->grants, set);
	if (!ret)
		*grant = *set;
	return ret;
}

/**
 * orr_peer_grant - let another card write to a BO
 * @owner: the card that has the memory
 * @node: the other's
 * @base: VRAM offset of the BO
 * @size: its size
 *
 * Return: 0, -ENOSPC if there is no free slot, -ENODEV if the owner is gone.
 */
int orr_peer_grant(struct orr_device *owner, u32 node, u64 base, u64 size)
{
	const struct orr_grant set = { .base = base, .size = size, .node = node, .users = 1 };
	int idx, ret;

	guard(mutex)(&owner->grant_lock);
	ret = orr_enter(owner, &idx);
	if (ret)
		return ret;
	ret = orr_peer_grant_locked(owner, &set);
	orr_exit(owner, idx);
	return ret;
}

/**
 * orr_peer_grant_again - one more user of a grant
 * @owner: the card that has the memory
 * @node: the other's
 * @base: VRAM offset of the BO, with orr_peer_grant() before
 */
void orr_peer_grant_again(struct orr_device *owner, u32 node, u64 base)
{
	struct orr_grant *grant;

	guard(mutex)(&owner->grant_lock);
	grant = orr_grant_find(owner, node, base);
	if (!WARN_ON(!grant))
		grant->users++;
}

/**
 * orr_peer_revoke - one user less; with the last, nothing of that card can write there any more
 * @owner: the card that has the memory; may be gone
 * @node: the other's
 * @base: VRAM offset of the BO, with orr_peer_grant() before
 */
void orr_peer_revoke(struct orr_device *owner, u32 node, u64 base)
{
	struct orr_grant *grant;
	int idx;

	guard(mutex)(&owner->grant_lock);
	grant = orr_grant_find(owner, node, base);
	if (WARN_ON(!grant))
		return;
	if (--grant->users)
		return;
	if (orr_enter(owner, &idx))
		return;
	/* What was sent before is carried out: it has to be here for that. */
	orr_way_drain(owner, node);
	orr_grant_command(owner, grant - owner->grants, NULL);
	orr_exit(owner, idx);
}
