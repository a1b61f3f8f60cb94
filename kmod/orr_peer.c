// SPDX-License-Identifier: GPL-2.0
/*
 * Links between cards. A card reaches its peer's VRAM only where the peer's driver (this one, as
 * the owner) has granted a range to the port that the link ends at.
 *
 * Either card can go at any time, and mappings of its memory on the other side stand until their
 * owner takes them away. A grant concerns a whole link, so as long as a mapping of a card's earlier
 * life stands, that link gets no new grants: it would let the old mapping into somebody else's memory.
 *
 * A BO of the owner is kept alive by its dma-buf, and its struct orr_device by the BO; the owner's
 * registers are touched inside its orr_enter() only.
 */
#include <linux/iopoll.h>

#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"

#define ORR_GRANT_TIMEOUT_US (5 * USEC_PER_SEC)

static DEFINE_MUTEX(orr_registry_lock);
static LIST_HEAD(orr_registry);

static void orr_peer_forget(struct drm_device *drm, void *data)
{
	struct orr_device *odev = data;

	guard(mutex)(&orr_registry_lock);
	list_del_init(&odev->registry_node);
}

/**
 * orr_peer_register - make a card known to the others
 * @odev: the card
 *
 * Return: 0, -EEXIST if there is another with its number, -ENOMEM.
 */
int orr_peer_register(struct orr_device *odev)
{
	struct orr_device *other;

	scoped_guard(mutex, &orr_registry_lock) {
		list_for_each_entry(other, &orr_registry, registry_node)
			if (other->registered && other->info.uid == odev->info.uid)
				return dev_err_probe(&odev->pdev->dev, -EEXIST,
						     "card number %#llx is also that of %s: give each card its own\n",
						     odev->info.uid, pci_name(other->pdev));
		list_add_tail(&odev->registry_node, &orr_registry);
		odev->registered = true;
	}
	/* It stays in the list as long as there can be mappings of its memory. */
	return drmm_add_action_or_reset(&odev->drm, orr_peer_forget, odev);
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

static bool orr_peer_is_registered(struct orr_device *odev)
{
	guard(mutex)(&orr_registry_lock);
	return odev->registered;
}

static bool orr_port_in_use(struct orr_device *odev, u32 port)
{
	unsigned int slot;

	guard(mutex)(&odev->grant_lock);
	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++)
		if (odev->links[port]->grant[slot].users)
			return true;
	return false;
}

/* Does a mapping stand that somebody made through this port in an earlier life of the card? */
static bool orr_peer_port_is_stale(struct orr_device *owner, u32 port)
{
	struct orr_device *other;

	guard(mutex)(&orr_registry_lock);
	list_for_each_entry(other, &orr_registry, registry_node)
		if (other != owner && other->info.uid == owner->info.uid &&
		    port < other->info.link_ports && orr_port_in_use(other, port))
			return true;
	return false;
}

/* Is this port of @odev up, and joined to the card @uid? */
static bool orr_peer_port_leads_to(struct orr_device *odev, u32 port, u64 uid, u32 *peer_port)
{
	u32 link = ORR_R_LINK(port);
	u32 state = orr_read32(odev, link + ORR_R_LINK_STATE);

	if (state != ORR_LINK_UP && state != ORR_LINK_DEGRADED)
		return false;
	if (orr_read64(odev, link + ORR_R_LINK_PEER_UID) != uid)
		return false;
	*peer_port = orr_read32(odev, link + ORR_R_LINK_PEER_PORT);
	return true;
}

/* Which port of @odev leads to the card @uid, and to which of that card's? Return: 0, -EXDEV, -ENODEV. */
static int orr_peer_look_for(struct orr_device *odev, u64 uid, u32 *port, u32 *peer_port)
{
	int idx, ret;
	u32 i;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = -EXDEV;
	for (i = 0; i < odev->info.link_ports && ret; i++) {
		if (orr_peer_port_leads_to(odev, i, uid, peer_port)) {
			*port = i;
			ret = 0;
		}
	}
	orr_exit(odev, idx);
	return ret;
}

/* Does the other card say so too? One that lies must not get a grant that is meant for another. */
static int orr_peer_confirm(struct orr_device *owner, u32 owner_port, u64 uid, u32 port)
{
	u32 back = U32_MAX;
	int idx, ret;

	/* The port number comes over the link and is checked like anything else. */
	if (owner_port >= owner->info.link_ports)
		return -EXDEV;
	ret = orr_enter(owner, &idx);
	if (ret)
		return ret;
	if (!orr_peer_port_leads_to(owner, owner_port, uid, &back) || back != port)
		ret = -EXDEV;
	orr_exit(owner, idx);
	return ret;
}

/**
 * orr_peer_find_port - which link joins two cards
 * @odev: the card that wants to write
 * @owner: the card that has the memory
 * @port: set to the port of @odev
 * @owner_port: set to the port of @owner
 *
 * Return: 0, -EXDEV if no link between them is up, -ENODEV if a card is gone.
 */
int orr_peer_find_port(struct orr_device *odev, struct orr_device *owner, u32 *port,
		       u32 *owner_port)
{
	int ret;

	if (!orr_peer_is_registered(owner))
		return -ENODEV;
	ret = orr_peer_look_for(odev, owner->info.uid, port, owner_port);
	if (ret)
		return ret;
	return orr_peer_confirm(owner, *owner_port, odev->info.uid, *port);
}

/* Writes a grant command and waits until no access under an older grant is in flight. */
static int orr_grant_command(struct orr_device *owner, struct orr_link_port *port, u32 command)
{
	u32 link = ORR_R_LINK(port->index);
	u32 done;
	int ret;

	lockdep_assert_held(&owner->grant_lock);
	orr_write32(owner, link + ORR_R_LINK_GRANT_CMD, command);
	port->commands++;
	ret = read_poll_timeout(orr_read32, done, done == port->commands || done == U32_MAX, 20,
				ORR_GRANT_TIMEOUT_US, false, owner, link + ORR_R_LINK_GRANT_DONE);
	if (!ret && done == port->commands)
		return 0;
	if (orr_health_gone(owner))
		return -ENODEV;
	drm_err(&owner->drm, "link port %u: %u grant commands done, expected %u\n", port->index,
		done, port->commands);
	orr_device_lost(owner, "a link port does not carry out grants");
	return -ENODEV;
}

static struct orr_grant *orr_grant_find(struct orr_link_port *port, u64 base)
{
	unsigned int slot;

	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++)
		if (port->grant[slot].users && port->grant[slot].base == base)
			return &port->grant[slot];
	return NULL;
}

static struct orr_grant *orr_grant_find_free(struct orr_link_port *port)
{
	unsigned int slot;

	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++)
		if (!port->grant[slot].users)
			return &port->grant[slot];
	return NULL;
}

/* The caller is inside orr_enter() of the owner. */
static int orr_peer_grant_locked(struct orr_device *owner, struct orr_link_port *port, u64 base,
				 u64 size)
{
	u32 link = ORR_R_LINK(port->index);
	struct orr_grant *grant;
	int ret;

	lockdep_assert_held(&owner->grant_lock);
	grant = orr_grant_find(port, base);
	if (grant) {
		grant->users++;
		return 0;
	}
	grant = orr_grant_find_free(port);
	if (!grant)
		return -ENOSPC;
	orr_write64(owner, link + ORR_R_LINK_GRANT_BASE, base);
	orr_write64(owner, link + ORR_R_LINK_GRANT_SIZE, size);
	ret = orr_grant_command(owner, port, (u32)(grant - port->grant) | ORR_LINK_GRANT_SET);
	if (!ret)
		*grant = (struct orr_grant){ .base = base, .size = size, .users = 1 };
	return ret;
}

/**
 * orr_peer_grant - let the card behind a link write to a BO
 * @owner: the card that has the memory
 * @port: its port
 * @base: VRAM offset of the BO
 * @size: its size
 *
 * Return: 0, -ENOSPC if the port has no free slot, -EBUSY as long as somebody behind the link maps
 * memory of an earlier life of the owner, -ENODEV if the owner is gone.
 */
int orr_peer_grant(struct orr_device *owner, u32 port, u64 base, u64 size)
{
	int idx, ret;

	/* Once there is none there will be none: that life gives no grants any more. */
	if (orr_peer_port_is_stale(owner, port))
		return -EBUSY;
	guard(mutex)(&owner->grant_lock);
	ret = orr_enter(owner, &idx);
	if (ret)
		return ret;
	ret = orr_peer_grant_locked(owner, owner->links[port], base, size);
	orr_exit(owner, idx);
	return ret;
}

/**
 * orr_peer_grant_again - one more user of a grant
 * @owner: the card that has the memory
 * @port: its port
 * @base: VRAM offset of the BO, with orr_peer_grant() before
 */
void orr_peer_grant_again(struct orr_device *owner, u32 port, u64 base)
{
	struct orr_grant *grant;

	guard(mutex)(&owner->grant_lock);
	grant = orr_grant_find(owner->links[port], base);
	if (!WARN_ON(!grant))
		grant->users++;
}

/**
 * orr_peer_revoke - one user less; with the last, nothing of the peer can write there any more
 * @owner: the card that has the memory; may be gone
 * @port: its port
 * @base: VRAM offset of the BO, with orr_peer_grant() before
 */
void orr_peer_revoke(struct orr_device *owner, u32 port, u64 base)
{
	struct orr_link_port *p = owner->links[port];
	struct orr_grant *grant;
	int idx;

	guard(mutex)(&owner->grant_lock);
	grant = orr_grant_find(p, base);
	if (WARN_ON(!grant))
		return;
	if (--grant->users)
		return;
	if (orr_enter(owner, &idx))
		return;
	orr_grant_command(owner, p, (u32)(grant - p->grant) | ORR_LINK_GRANT_CLEAR);
	orr_exit(owner, idx);
}
