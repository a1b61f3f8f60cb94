// SPDX-License-Identifier: GPL-2.0
/*
 * Ways between two cards, as long as both are there. orr_route.c makes them and changes them; who goes
 * by one keeps its version, which is another one when something may have been lost.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "orr_bo.h"
#include "orr_key.h"
#include "orr_route.h"

/* Far more than passing on takes, also if the card's process gets no time for a while. */
#define ORR_DRAIN_TIMEOUT_US (5 * USEC_PER_SEC)
/* At a switch a third card that takes nothing may be in the way: for that an import waits 5 s in all. */
#define ORR_DRAIN_SWITCH_TIMEOUT_US (2 * USEC_PER_SEC)
/* Of what waits for nobody but the card and its switch. */
#define ORR_FORCED_TIMEOUT_US (USEC_PER_SEC / 2)

/* Guards the table of pairs and what is in it. */
DEFINE_SPINLOCK(orr_pairs_lock);
static DEFINE_HASHTABLE(orr_pairs, 8);

static u32 orr_pair_key(u32 node, u32 other)
{
	return min(node, other) * ORR_NODES + max(node, other);
}

/**
 * orr_pair_find - find a pair
 * @node: of a card
 * @other: of another
 *
 * Return: the pair, or NULL; orr_routes_lock or orr_pairs_lock is held.
 */
struct orr_pair *orr_pair_find(u32 node, u32 other)
{
	u32 key = orr_pair_key(node, other);
	struct orr_pair *pair;

	hash_for_each_possible(orr_pairs, pair, node, key)
		if (orr_pair_key(pair->ends[0]->node, pair->ends[1]->node) == key)
			return pair;
	return NULL;
}

/**
 * orr_pair_first - walk over all pairs
 * @after: the last one, which is still there, or NULL
 *
 * Return: another pair or NULL; orr_routes_lock or orr_pairs_lock is held.
 */
struct orr_pair *orr_pair_first(struct orr_pair *after)
{
	unsigned int bucket = 0;

	if (after) {
		if (after->node.next)
			return hlist_entry(after->node.next, struct orr_pair, node);
		bucket = hash_min(orr_pair_key(after->ends[0]->node, after->ends[1]->node),
				  HASH_BITS(orr_pairs)) + 1;
	}
	for (; bucket < HASH_SIZE(orr_pairs); bucket++)
		if (!hlist_empty(&orr_pairs[bucket]))
			return hlist_entry(orr_pairs[bucket].first, struct orr_pair, node);
	return NULL;
}

/**
 * orr_pair_add - two cards want a way
 * @odev: one, registered
 * @other: another, registered
 *
 * Return: 0 or -ENOMEM; orr_routes_lock is held.
 */
int orr_pair_add(struct orr_device *odev, struct orr_device *other)
{
	struct orr_pair *pair;
	unsigned int i;

	lockdep_assert_held(&orr_routes_lock);
	pair = kzalloc(sizeof(*pair), GFP_KERNEL);
	if (!pair)
		return -ENOMEM;
	INIT_LIST_HEAD(&pair->changed);
	pair->ends[odev->node > other->node] = odev;
	pair->ends[odev->node < other->node] = other;
	for (i = 0; i < ARRAY_SIZE(pair->ends); i++) {
		pair->keys[i] = orr_key_make(odev, other);
		/* One that is gone sends nothing. */
		orr_key_set(pair->ends[i], pair->ends[!i]->node, pair->keys[i]);
	}
	drm_dev_get(&odev->drm);
	drm_dev_get(&other->drm);
	guard(spinlock)(&orr_pairs_lock);
	hash_add(orr_pairs, &pair->node, orr_pair_key(odev->node, other->node));
	return 0;
}

/**
 * orr_pair_remove - one of two cards has gone
 * @pair: both; is freed
 */
void orr_pair_remove(struct orr_pair *pair)
{
	unsigned int i;

	lockdep_assert_held(&orr_routes_lock);
	for (i = 0; i < ARRAY_SIZE(pair->ends); i++)
		orr_key_set(pair->ends[i], pair->ends[!i]->node, 0);
	scoped_guard(spinlock, &orr_pairs_lock)
		hash_del(&pair->node);
	orr_way_put(&pair->way);
	drm_dev_put(&pair->ends[0]->drm);
	drm_dev_put(&pair->ends[1]->drm);
	kfree(pair);
}

/**
 * orr_pair_grant_key - what requests of a card to another carry
 * @odev: the card
 * @owner: the other
 * @key: filled in
 *
 * Return: false: they have not asked for a way, or one of both is gone.
 */
bool orr_pair_grant_key(const struct orr_device *odev, const struct orr_device *owner, u64 *key)
{
	const struct orr_pair *pair;

	guard(spinlock)(&orr_pairs_lock);
	pair = orr_pair_find(odev->node, owner->node);
	if (pair)
		*key = pair->keys[pair->ends[1] == odev];
	return pair;
}

/**
 * orr_way_put - let go of the cards on a way
 * @way: the way; has no links after this
 */
void orr_way_put(struct orr_way *way)
{
	u32 i;

	for (i = 0; way->links && i <= way->links; i++)
		drm_dev_put(&way->steps[i].odev->drm);
	way->links = 0;
}

/**
 * orr_way_get - the way between two cards
 * @node: of one
 * @other: of the other
 * @way: filled in, for orr_way_put()
 *
 * Return: whether they have asked for one and are there.
 */
bool orr_way_get(u32 node, u32 other, struct orr_way *way)
{
	struct orr_pair *pair;
	u32 i;

	guard(spinlock)(&orr_pairs_lock);
	pair = orr_pair_find(node, other);
	if (!pair)
		return false;
	*way = pair->way;
	for (i = 0; way->links && i <= way->links; i++)
		drm_dev_get(&way->steps[i].odev->drm);
	return true;
}

static bool orr_way_port_is_whole(struct orr_device *odev, u32 port, u32 losses, bool far)
{
	struct orr_link_look look;

	return orr_link_look(odev, port, &look) && orr_link_is_up(&look) &&
	       look.losses == losses && (!far || look.control & ORR_LINK_FORWARD);
}

static bool orr_way_step_is_whole(const struct orr_way *way, u32 i)
{
	const struct orr_step *step = &way->steps[i];
	bool far = orr_way_is_far(way), whole = true;
	int idx;

	if (orr_enter(step->odev, &idx))
		return false;
	if (i > 0)
		whole = orr_way_port_is_whole(step->odev, step->back, step->losses_back, far);
	if (whole && i < way->links)
		whole = orr_way_port_is_whole(step->odev, step->onward, step->losses_onward, far);
	if (whole && way->fabric) {
		u32 how = orr_reach_look(step->odev, i ? step->back : step->onward,
					 way->steps[!i].odev->node);

		whole = how && (u16)(how >> ORR_REACH_LOSSES_SHIFT) == way->reach[i];
	}
	orr_exit(step->odev, idx);
	return whole;
}

/**
 * orr_way_is_whole - do the cards on a way say that nothing has been lost on it?
 * @way: of orr_way_get()
 *
 * Return: whether they do.
 */
bool orr_way_is_whole(const struct orr_way *way)
{
	u32 i;

	if (!way->up)
		return false;
	for (i = 0; i <= way->links; i++)
		if (!orr_way_step_is_whole(way, i))
			return false;
	return true;
}

/**
 * orr_way_stands - is it still the same way, with nothing lost on it, as far as the driver knows?
 * @node: of a card
 * @other: of another
 * @version: of the way
 *
 * Return: whether it is.
 */
bool orr_way_stands(u32 node, u32 other, u32 version)
{
	struct orr_pair *pair;

	guard(spinlock)(&orr_pairs_lock);
	pair = orr_pair_find(node, other);
	return pair && pair->way.up && pair->way.version == version;
}

/**
 * orr_way_look - look at the way between two cards, and have it made anew if something was lost
 * @odev: one card
 * @other: the other
 * @up: filled in: whether there is a way
 *
 * Return: the version that counts from now on, 0: there is none.
 */
u32 orr_way_look(struct orr_device *odev, struct orr_device *other, bool *up)
{
	struct orr_way way;
	bool known;

	known = orr_way_get(odev->node, other->node, &way);
	if (known && !orr_way_is_whole(&way)) {
		orr_way_put(&way);
		orr_routes_update();
		known = orr_way_get(odev->node, other->node, &way);
	}
	*up = known && way.up;
	if (!known)
		return 0;
	orr_way_put(&way);
	return way.version;
}

/**
 * orr_port_drain - have all pass on that came by a port, or at a switch all that is on its way
 * @odev: the card
 * @whose: the card to which it goes, or @odev: once that one is lost, nobody waits for it
 * @port: the port
 * @how: 1, ORR_LINK_DRAIN_FORCED
 *
 * Nobody else has to wait until it has.
 *
 * Return: whether it has.
 */
bool orr_port_drain(struct orr_device *odev, const struct orr_device *whose, u32 port, u32 how)
{
	unsigned int limit_us = ORR_DRAIN_TIMEOUT_US;
	u32 link = ORR_R_LINK(port);
	int idx, ret;
	u32 wanted;

	if (orr_enter(odev, &idx))
		return false;
	if (how == ORR_LINK_DRAIN_FORCED)
		limit_us = ORR_FORCED_TIMEOUT_US;
	else if (orr_link_to_switch(odev, port))
		limit_us = ORR_DRAIN_SWITCH_TIMEOUT_US;
	scoped_guard(mutex, &odev->drain_lock) {
		orr_write32(odev, link + ORR_R_LINK_DRAIN, how);
		wanted = ++odev->drains[port];
	}
	ret = orr_await_count(odev, whose, link + ORR_R_LINK_DRAINED, wanted, limit_us,
			      orr_restart_held_ms(odev));
	orr_exit(odev, idx);
	return !ret;
}

/**
 * orr_port_drain_sender - the same at the sender's end
 * @odev: the card
 * @whose: as of orr_port_drain()
 * @port: the port
 * @drain: how; filled in for the next time
 *
 * What waits there may be for another card, which takes nothing: then that is lost to that one, and what
 * goes to others passes.
 *
 * Return: whether all has arrived, or is lost.
 */
bool orr_port_drain_sender(struct orr_device *odev, const struct orr_device *whose, u32 port,
			   enum orr_drain *drain)
{
	if (*drain == ORR_DRAIN_PATIENT) {
		if (orr_port_drain(odev, whose, port, 1))
			return true;
		*drain = orr_link_drains_forced(odev) ? ORR_DRAIN_FORCED : ORR_DRAIN_GIVEN_UP;
	}
	if (*drain == ORR_DRAIN_FORCED && !orr_port_drain(odev, whose, port, ORR_LINK_DRAIN_FORCED))
		*drain = ORR_DRAIN_GIVEN_UP;
	return *drain != ORR_DRAIN_GIVEN_UP;
}

static bool orr_fabric_drain(const struct orr_way *way, const struct orr_device *owner, u32 node,
			     enum orr_drain *drain)
{
	u32 first = way->steps[0].odev->node != node;
	u32 ports[] = { way->steps[0].onward, way->steps[1].back };

	if (!orr_port_drain_sender(way->steps[first].odev, owner, ports[first], drain))
		return false;
	/* Over one switch that was all; else from the top of the fabric down. */
	return way->fabric <= 2 ||
	       orr_port_drain(way->steps[!first].odev, owner, ports[!first], 1);
}

/**
 * orr_way_drain - have all arrive at a card that another has sent by now
 * @owner: the card
 * @node: of the other
 * @drain: how, NULL: patiently; filled in for the next of the same sender, so that a card that takes
 *         nothing is waited for once
 *
 * What does not in time counts as lost, and nothing that follows is carried out. Ends at once when the
 * owner is lost: a card on the way that a debugger holds keeps nobody from leaving another.
 */
void orr_way_drain(struct orr_device *owner, u32 node, enum orr_drain *drain)
{
	enum orr_drain patient = ORR_DRAIN_PATIENT;
	bool drained = true, harmed = false;
	struct orr_pair *pair;
	struct orr_way way;
	u32 version, i;

	scoped_guard(spinlock, &orr_pairs_lock) {
		pair = orr_pair_find(owner->node, node);
		/* One card that does not is waited for once. */
		harmed = pair && pair->harmed;
	}
	if (harmed || !orr_way_get(owner->node, node, &way))
		return;
	version = way.version;
	if (way.fabric && way.up)
		drained = orr_fabric_drain(&way, owner, node, drain ?: &patient);
	for (i = 1; i < way.links && way.up && drained; i++) {
		/* From the sender on. */
		bool ahead = owner->node > node;
		const struct orr_step *step = &way.steps[ahead ? i : way.links - i];

		drained = orr_port_drain(step->odev, owner, ahead ? step->back : step->onward, 1);
	}
	orr_way_put(&way);
	if (drained || orr_is_lost(owner))
		return;
	scoped_guard(spinlock, &orr_pairs_lock) {
		pair = orr_pair_find(owner->node, node);
		/* It may have another by now, or none. */
		if (pair && pair->way.up && pair->way.version == version)
			pair->harmed = true;
	}
	orr_routes_want();
	orr_health_link_kick(owner, true);
}

/**
 * orr_way_drain_all - the same of all cards
 * @owner: the card
 */
void orr_way_drain_all(struct orr_device *owner)
{
	u32 nodes[ORR_MAP_CARDS];
	struct orr_pair *pair;
	unsigned int count = 0;

	scoped_guard(spinlock, &orr_pairs_lock) {
		for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair)) {
			int end = pair->ends[1] == owner;

			if (pair->ends[end] == owner && orr_way_is_far(&pair->way) &&
			    count < ARRAY_SIZE(nodes))
				nodes[count++] = pair->ends[!end]->node;
		}
	}
	while (count && !orr_is_lost(owner))
		orr_way_drain(owner, nodes[--count], NULL);
}
