// SPDX-License-Identifier: GPL-2.0
/*
 * Grants: ranges of this card's VRAM that others may use, a slot each. Slots are few, and a process
 * takes them by importing and mapping, so they are shared out: a process gets another one only while it
 * holds fewer than are free, and all processes of a user together leave some to others.
 *
 * They are not saved by granting what lies between two BOs too: a card that lies must reach nothing
 * but what was meant for it. Requests also have to carry a key: orr_key.c.
 */
#include <linux/slab.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_grant.h"
#include "orr_key.h"
#include "orr_route.h"

#define ORR_GRANT_TIMEOUT_US (5 * USEC_PER_SEC)
/* What processes of one user hold at most, so that those of another find some. */
#define ORR_GRANTS_OF_USER (ORR_LINK_GRANT_SLOTS / 4 * 3)

/**
 * struct orr_holder - a process that has mappings which need a grant
 */
struct orr_holder {
	/** @link: in orr_grant.holders */
	struct list_head link;
	/** @tenant: the process */
	struct orr_tenant tenant;
	/** @mappings: their number */
	unsigned int mappings;
};

static bool orr_tenant_is(const struct orr_tenant *a, const struct orr_tenant *b)
{
	return uid_eq(a->uid, b->uid) && a->pid == b->pid;
}

/**
 * orr_grants_init - prepare
 * @odev: the card
 */
void orr_grants_init(struct orr_device *odev)
{
	unsigned int slot;

	spin_lock_init(&odev->holders_lock);
	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++)
		INIT_LIST_HEAD(&odev->grants[slot].holders);
}

/*
 * Has all ports set or clear a grant, and waits until no access under an older one is in flight. The
 * caller is inside orr_enter() of the owner.
 */
static int orr_grant_command(struct orr_device *owner, u32 slot, const struct orr_grant *set)
{
	u32 link = ORR_R_LINK(0);
	int ret;

	lockdep_assert_held(&owner->grant_lock);
	if (set) {
		orr_write64(owner, link + ORR_R_LINK_GRANT_BASE, set->base);
		orr_write64(owner, link + ORR_R_LINK_GRANT_SIZE, set->size);
		orr_write32(owner, link + ORR_R_LINK_GRANT_NODE, set->node);
		if (orr_link_reads(owner))
			orr_write32(owner, link + ORR_R_LINK_GRANT_RIGHTS, set->rights);
		if (orr_link_keys(owner))
			orr_write64(owner, link + ORR_R_LINK_GRANT_KEY, set->key);
	}
	orr_write32(owner, link + ORR_R_LINK_GRANT_CMD,
		    slot | ORR_LINK_GRANT_ALL | (set ? ORR_LINK_GRANT_SET : ORR_LINK_GRANT_CLEAR));
	ret = orr_await_or_lose(owner, link + ORR_R_LINK_GRANT_DONE, ++owner->grant_commands,
				ORR_GRANT_TIMEOUT_US, orr_restart_held_ms(owner),
				"a link port does not carry out grants");
	if (ret == -EBUSY)
		orr_device_lost(owner, "a debugger has held some card for longer than held_timeout_ms");
	return ret ? -ENODEV : 0;
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
 * Nobody waits for a card here: who sets or clears a grant does, with grant_lock held.
 *
 * Return: whether it may, at about this time.
 */
bool orr_peer_has_grants(struct orr_device *owner, u32 node)
{
	unsigned int slot;

	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++) {
		const struct orr_grant *grant = &owner->grants[slot];

		if ((READ_ONCE(grant->users) || READ_ONCE(grant->ending)) &&
		    READ_ONCE(grant->node) == node)
			return true;
	}
	return false;
}

static struct orr_holder *orr_holder_find(const struct orr_grant *grant,
					  const struct orr_tenant *tenant)
{
	struct orr_holder *holder;

	list_for_each_entry(holder, &grant->holders, link)
		if (orr_tenant_is(&holder->tenant, tenant))
			return holder;
	return NULL;
}

static void orr_holder_free(struct orr_holder *holder)
{
	list_del(&holder->link);
	kfree(holder);
}

/* One more mapping. Takes what is in *@spare if it is the first of that process. */
static void orr_grant_hold(struct orr_device *owner, struct orr_grant *grant,
			   const struct orr_tenant *tenant, struct orr_holder **spare)
{
	struct orr_holder *holder;

	lockdep_assert_held(&owner->holders_lock);
	holder = orr_holder_find(grant, tenant);
	if (!holder) {
		holder = no_free_ptr(*spare);
		holder->tenant = *tenant;
		list_add(&holder->link, &grant->holders);
	}
	holder->mappings++;
	WRITE_ONCE(grant->users, grant->users + 1);
}

/* What somebody holds of a card's slots already. Return: 0, -ENOSPC, -EDQUOT. */
static int orr_grant_allowed(struct orr_device *owner, const struct orr_tenant *tenant)
{
	unsigned int slot, all = 0, of_user = 0, of_process = 0;

	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++) {
		const struct orr_grant *grant = &owner->grants[slot];
		bool user = false, process = false;
		struct orr_holder *holder;

		all += !grant->users && !grant->ending;
		list_for_each_entry(holder, &grant->holders, link) {
			user |= uid_eq(holder->tenant.uid, tenant->uid);
			process |= orr_tenant_is(&holder->tenant, tenant);
		}
		of_user += user;
		of_process += process;
	}
	if (!all)
		return -ENOSPC;
	if (of_process < all && of_user < ORR_GRANTS_OF_USER)
		return 0;
	drm_dbg(&owner->drm, "process %d holds %u grants, its user %u, and %u are free\n",
		tenant->pid, of_process, of_user, all);
	return -EDQUOT;
}

static struct orr_grant *orr_grant_find_free(struct orr_device *owner)
{
	unsigned int slot;

	for (slot = 0; slot < ORR_LINK_GRANT_SLOTS; slot++)
		if (!owner->grants[slot].users && !owner->grants[slot].ending)
			return &owner->grants[slot];
	return NULL;
}

/* The caller is inside orr_enter() of the owner. */
static int orr_peer_grant_locked(struct orr_device *owner, const struct orr_grant *set,
				 const struct orr_tenant *tenant, struct orr_holder **spare)
{
	struct orr_grant *grant;
	int ret;

	lockdep_assert_held(&owner->grant_lock);
	grant = orr_grant_find(owner, set->node, set->base);
	if (!grant) {
		ret = orr_grant_allowed(owner, tenant);
		if (ret)
			return ret;
		grant = orr_grant_find_free(owner);
		ret = orr_grant_command(owner, grant - owner->grants, set);
		if (ret)
			return ret;
		grant->base = set->base;
		grant->size = set->size;
		grant->rights = set->rights;
		grant->key = set->key;
		WRITE_ONCE(grant->node, set->node);
	} else if (set->rights & ~grant->rights) {
		const struct orr_grant more = {
			.base = grant->base,
			.size = grant->size,
			.node = grant->node,
			.rights = grant->rights | set->rights,
			.key = grant->key,
		};

		/* Which mapping may do what is for the other card's page tables to say. */
		ret = orr_grant_command(owner, grant - owner->grants, &more);
		if (ret)
			return ret;
		grant->rights = more.rights;
	}
	guard(spinlock)(&owner->holders_lock);
	orr_grant_hold(owner, grant, tenant, spare);
	return 0;
}

/**
 * orr_peer_grant - let another card use a BO
 * @owner: the card that has the memory
 * @set: which range, to which node, with which rights (a card before 2.2 grants write and signal) and key
 * @tenant: on whose account it is
 *
 * Return: 0, -ENOSPC if there is no free slot, -EDQUOT if @tenant holds too many, -ENODEV if the owner
 * is gone, -ENOMEM, -ERESTARTSYS: killed.
 */
int orr_peer_grant(struct orr_device *owner, const struct orr_grant *set,
		   const struct orr_tenant *tenant)
{
	struct orr_holder *spare __free(kfree) = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	int idx, ret;

	if (!spare)
		return -ENOMEM;
	if (mutex_lock_killable(&owner->grant_lock))
		return -ERESTARTSYS;
	ret = orr_enter(owner, &idx);
	if (!ret) {
		ret = orr_peer_grant_locked(owner, set, tenant, &spare);
		orr_exit(owner, idx);
	}
	mutex_unlock(&owner->grant_lock);
	return ret;
}

/**
 * orr_peer_grant_own - the same to a card of this driver's, with the key of both
 * @owner: the card that has the memory
 * @odev: the other, which has been joined with it
 * @base: VRAM offset of the BO
 * @size: its size
 * @rights: ORR_LINK_RIGHT_*
 * @tenant: on whose account it is
 *
 * Return: as orr_peer_grant(); -ENODEV also if the other is gone.
 */
int orr_peer_grant_own(struct orr_device *owner, struct orr_device *odev, u64 base, u64 size,
		       u32 rights, const struct orr_tenant *tenant)
{
	struct orr_grant set = {
		.base = base,
		.size = size,
		.node = odev->node,
		.rights = rights,
	};
	int ret;

	if (!orr_pair_grant_key(odev, owner, &set.key))
		return -ENODEV;
	/* Before anything is granted to who carries it. */
	ret = orr_keys_await(odev);
	return ret ?: orr_peer_grant(owner, &set, tenant);
}

/**
 * orr_peer_grant_again - one more mapping of who has one already
 * @owner: the card that has the memory
 * @node: the other's
 * @base: VRAM offset of the BO, with orr_peer_grant() before
 * @tenant: as there
 *
 * Waits for nobody: the caller has an address space locked, and who has grant_lock may wait for a card.
 */
void orr_peer_grant_again(struct orr_device *owner, u32 node, u64 base,
			  const struct orr_tenant *tenant)
{
	struct orr_grant *grant;

	/* The caller's own mapping keeps both. */
	guard(spinlock)(&owner->holders_lock);
	grant = orr_grant_find(owner, node, base);
	if (!WARN_ON(!grant || !orr_holder_find(grant, tenant)))
		orr_grant_hold(owner, grant, tenant, NULL);
}

/* One mapping less. Return: the grant, if it was the last: its slot is the caller's. */
static struct orr_grant *orr_grant_let_go(struct orr_device *owner, u32 node, u64 base,
					  const struct orr_tenant *tenant)
{
	struct orr_holder *holder = NULL;
	struct orr_grant *grant;

	guard(mutex)(&owner->grant_lock);
	guard(spinlock)(&owner->holders_lock);
	grant = orr_grant_find(owner, node, base);
	if (grant)
		holder = orr_holder_find(grant, tenant);
	if (WARN_ON(!holder))
		return NULL;
	holder->mappings--;
	if (grant->users > 1) {
		WRITE_ONCE(grant->users, grant->users - 1);
		if (!holder->mappings)
			orr_holder_free(holder);
		return NULL;
	}
	/* The slot is on the last one's account until it is free. */
	WRITE_ONCE(grant->ending, true);
	WRITE_ONCE(grant->users, 0);
	return grant;
}

/**
 * orr_peer_revoke - one mapping less; with the last, nothing of that card can write there any more
 * @owner: the card that has the memory; may be gone
 * @node: the other's
 * @base: VRAM offset of the BO, with orr_peer_grant() before
 * @tenant: as there
 * @drain: as of orr_way_drain()
 */
void orr_peer_revoke(struct orr_device *owner, u32 node, u64 base,
		     const struct orr_tenant *tenant, enum orr_drain *drain)
{
	struct orr_grant *grant = orr_grant_let_go(owner, node, base, tenant);
	int idx;

	if (!grant)
		return;
	/*
	 * What was sent before is carried out: it has to be here for that. Without the lock, because a card
	 * on the way may keep us waiting, which is nothing to those who come by another.
	 */
	orr_way_drain(owner, node, drain);
	guard(mutex)(&owner->grant_lock);
	if (!orr_enter(owner, &idx)) {
		orr_grant_command(owner, grant - owner->grants, NULL);
		orr_exit(owner, idx);
	}
	guard(spinlock)(&owner->holders_lock);
	orr_holder_free(list_first_entry(&grant->holders, struct orr_holder, link));
	WRITE_ONCE(grant->ending, false);
}
