// SPDX-License-Identifier: GPL-2.0
/*
 * Routes: which port of which card leads to which node. Two cards whose users ask for it (an import) get
 * a way to each other, over as few links as can be: orr_map.c. When links change, ways that lead there
 * stay as they are, and the others are made anew, or end.
 *
 * What may have been lost on a way must not leave a gap that nobody sees: a signal must never arrive
 * without the writes before it. So a way of several links gets a new epoch then, in this order:
 *
 *   1. cards on the way get routes to its ends
 *   2. its ends get the new epoch, and ORR_ROUTE_HOLD, with which they send nothing: what is left of
 *      the old epoch is without effect from now on
 *   3. attachments of queues to semaphores that were made before end, and with the last of each the
 *      semaphore; multicasts to one of its ends are cut
 *   4. cards on the way pass on again: each had stopped when it may have lost something
 *   5. its ends send again
 *
 * A link between the ends only tells its sender what it lost, and needs no 1, 2, 4 and 5 for that.
 *
 * Of the epochs of a pair each is less than half of all ahead of the one before: so switches on the way
 * know the newer.
 *
 * Where no way is left both ends get a new epoch and HOLD, with which who waits in a barrier for the other
 * end learns that it is gone, also when that is a card that is lost and whose links are up.
 *
 * A card may stand, because a debugger holds it, or another with which it keeps step. Ways for which it
 * has to take something are stuck then: they are not up, and all is tried again when nobody is held any
 * more. Others go on. If neither end of a way takes the new epoch, what is left of the old still has
 * an effect there, and no card passes on anything anew.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>

#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_route.h"
#include "orr_signal.h"

#define ORR_ROUTE_TIMEOUT_US (5 * USEC_PER_SEC)
/* Looks whether a port passes on, of so long each. */
#define ORR_FORWARD_LOOKS 50u
#define ORR_FORWARD_LOOK_US (100 * USEC_PER_MSEC)
/* How often who waits for a card that stands looks for it. */
#define ORR_JOIN_PERIOD_MS 100u

/* Guards the map, and who gets which way. Who has it waits for no debugger. */
DEFINE_MUTEX(orr_routes_lock);
static u32 orr_last_version;
static u16 orr_last_epoch;
/* Whether what is left of an older epoch may have an effect. */
static bool orr_some_gap;
static atomic_t orr_update_wanted = ATOMIC_INIT(0);
/* Whether a pair is stuck; written under the lock. */
static bool orr_some_stuck;

/*
 * --- routes ---
 */

/* Return: 0, -EBUSY: it stands, and may take it later; -ENODEV: it is lost. */
static int orr_route_command(struct orr_device *odev, u32 node, u32 route)
{
	int ret;

	orr_write32(odev, ORR_R_ROUTE(node), route);
	ret = orr_await_or_lose(odev, ORR_R_ROUTE(node), route, ORR_ROUTE_TIMEOUT_US, 0,
				"it does not take a route to another card");
	if (ret == -EBUSY)
		odev->owed_route = (struct orr_owed_route){ .node = node, .route = route };
	return ret;
}

/* Writes if it is not so, and the card does not stand. Return: as above. */
static int orr_route_write(struct orr_device *odev, u32 node, u32 route)
{
	unsigned int at = orr_map_index(odev);
	int idx, ret;

	if (at == orr_map.count)
		return -ENODEV;
	if (orr_map.card[at].stands)
		return -EBUSY;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	if (orr_read32(odev, ORR_R_ROUTE(node)) != route)
		ret = orr_route_command(odev, node, route);
	orr_exit(odev, idx);
	orr_map.card[at].stands = ret == -EBUSY;
	return ret;
}

/* Of a card on the way. It may have one as an end of another way: by the same port, then it stays. */
static int orr_route_pass(struct orr_device *odev, u32 node, u32 port)
{
	int idx, ret;
	u32 now;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	now = orr_read32(odev, ORR_R_ROUTE(node));
	orr_exit(odev, idx);
	if (now & ORR_ROUTE_VALID && (now & ORR_ROUTE_PORT) == port)
		return 0;
	return orr_route_write(odev, node, ORR_ROUTE_VALID | ORR_ROUTE_HOLD | port);
}

/* All cards on the way. Return: as above. */
static int orr_pair_pass(const struct orr_pair *pair)
{
	const struct orr_way *way = &pair->way;
	int ret = 0;
	u32 i;

	for (i = 1; i < way->links; i++) {
		const struct orr_step *step = &way->steps[i];

		ret = orr_route_pass(step->odev, way->steps[0].odev->node, step->back) ?: ret;
		ret = orr_route_pass(step->odev, way->steps[way->links].odev->node, step->onward) ?: ret;
	}
	return ret;
}

/* A node has gone: nobody sends there any more. */
static void orr_routes_clear(u32 node)
{
	unsigned int i;
	int idx;

	for (i = 0; i < orr_map.count; i++) {
		struct orr_device *odev = orr_map.card[i].odev;

		if (orr_enter(odev, &idx))
			continue;
		orr_write32(odev, ORR_R_ROUTE(node), 0);
		if (odev->owed_route.node == node)
			odev->owed_route.route = 0;
		orr_exit(odev, idx);
	}
}

/*
 * Both ends of a pair, each whatever becomes of the other: the one that is left must hear of it.
 * @took: their number, of those that did
 * Return: as above.
 */
static int orr_pair_write(const struct orr_pair *pair, u32 flags, unsigned int *took)
{
	const struct orr_step *first = &pair->way.steps[0];
	const struct orr_step *last = &pair->way.steps[pair->way.links];
	u32 route = ORR_ROUTE_VALID | flags | (u32)pair->epoch << ORR_ROUTE_EPOCH_SHIFT;
	int there, here;

	there = orr_route_write(last->odev, first->odev->node, route | last->back);
	here = orr_route_write(first->odev, last->odev->node, route | first->onward);
	if (took)
		*took = !there + !here;
	return there == -EBUSY ? there : here ?: there;
}

/*
 * Has a port pass on; it never does while its link is not up.
 * @up: filled in: whether it is, if it does not
 */
static int orr_forward_command(struct orr_device *odev, u32 port, bool *up)
{
	u32 control = ORR_R_LINK(port) + ORR_R_LINK_CONTROL;
	int ret = -ETIMEDOUT;
	unsigned int i;

	*up = true;
	orr_write32(odev, control, ORR_LINK_FORWARD);
	for (i = 0; ret == -ETIMEDOUT && *up && i < ORR_FORWARD_LOOKS; i++) {
		struct orr_link_look look;

		ret = orr_await(odev, control, ORR_LINK_FORWARD, ORR_FORWARD_LOOK_US, 0);
		if (ret == -ETIMEDOUT)
			*up = orr_link_look(odev, port, &look) && orr_link_is_up(&look);
	}
	return ret;
}

/* Return: 0, -EBUSY, another error: the port does not do it. */
static int orr_forward_port(struct orr_device *odev, u32 port)
{
	unsigned int at = orr_map_index(odev);
	struct orr_used_link *used = &odev->used_links[port];
	struct orr_map_port *seen;
	int idx, ret;
	bool up;

	if (at == orr_map.count)
		return -ENODEV;
	seen = &orr_map.card[at].port[port];
	/* What was set then and is not any more has had losses since: not before the next update. */
	if (seen->look.control & ORR_LINK_FORWARD)
		return 0;
	if (orr_map.card[at].stands)
		return -EBUSY;
	if (used->refused && time_before(jiffies, used->refused_jiffies + ORR_FORWARD_AGAIN))
		return -ETIMEDOUT;
	/* Cards of other machines that this one sends to by that port do not get what follows a loss. */
	ret = orr_foreign_hold(odev, port) ?: orr_enter(odev, &idx);
	if (ret) {
		orr_map.card[at].stands |= ret == -EBUSY;
		used->refused = ret == -ETIMEDOUT;
		used->refused_jiffies = jiffies;
		return ret;
	}
	ret = orr_forward_command(odev, port, &up);
	orr_exit(odev, idx);
	if (ret == -EBUSY)
		orr_map.card[at].stands = true;
	/* One whose link has gone down is asked again when that comes up. */
	used->refused = ret == -ETIMEDOUT && up;
	used->refused_jiffies = jiffies;
	if (!ret)
		seen->look.control = ORR_LINK_FORWARD;
	return ret;
}

static int orr_pair_forward(const struct orr_pair *pair)
{
	const struct orr_way *way = &pair->way;
	int ret = 0;
	u32 i;

	for (i = 0; i < way->links && orr_way_is_far(way) && !ret; i++) {
		ret = orr_forward_port(way->steps[i].odev, way->steps[i].onward);
		if (!ret)
			ret = orr_forward_port(way->steps[i + 1].odev, way->steps[i + 1].back);
	}
	return ret;
}

/*
 * --- pairs ---
 */

/* Has the link at a port of the map not been up all the time? */
static bool orr_port_has_lost(const struct orr_device *odev, u32 port, u32 losses)
{
	unsigned int at = orr_map_index(odev);
	const struct orr_link_look *look;

	if (at == orr_map.count || orr_map.card[at].lost)
		return true;
	look = &orr_map.card[at].port[port].look;
	return look->losses != losses || !orr_link_is_up(look);
}

/* Have the switches on a way lost something, as they say, or is it gone? */
static bool orr_way_reach_changed(const struct orr_way *way)
{
	unsigned int a = orr_map_index(way->steps[0].odev);
	unsigned int b = orr_map_index(way->steps[1].odev);

	return a == orr_map.count || b == orr_map.count || !orr_map.fabric[a][b].links ||
	       way->reach[0] != orr_map.fabric[a][b].losses ||
	       way->reach[1] != orr_map.fabric[b][a].losses;
}

/* As the map has it, so that it is the same for the whole round. */
static bool orr_pair_has_lost(const struct orr_pair *pair)
{
	return orr_map.card[orr_map_index(pair->ends[0])].lost ||
	       orr_map.card[orr_map_index(pair->ends[1])].lost;
}

/*
 * The first link of a way that was up which has gone down since; if it is none, the last one stays. A card
 * that was lost before any has is the cause: no link is, nor will be. One that is given up only now, because
 * it takes no route, is lost after its link.
 */
static void orr_pair_find_loss(const struct orr_pair *pair, struct orr_way *next)
{
	const struct orr_way *way = &pair->way;
	u32 i;

	next->loss = (struct orr_way_loss){};
	if (way->up && orr_pair_has_lost(pair))
		return;
	next->loss = way->loss;
	for (i = 0; way->up && i < way->links; i++) {
		const struct orr_step *from = &way->steps[i], *to = &way->steps[i + 1];
		bool there = orr_port_has_lost(to->odev, to->back, to->losses_back);

		if (!there && !orr_port_has_lost(from->odev, from->onward, from->losses_onward))
			continue;
		/* A link to a switch is one card's. */
		if (way->fabric && there)
			swap(from, to);
		next->loss = (struct orr_way_loss){
			.uid = from->odev->info.uid,
			.peer_uid = way->fabric ? 0 : to->odev->info.uid,
			.port = way->fabric && there ? from->back : from->onward,
			.is = way->fabric ? ORR_LOST_TO_SWITCH : 0,
			.version = way->version,
		};
		return;
	}
	/* Or one between switches. */
	if (way->up && way->fabric && orr_way_reach_changed(way) && orr_switches_find_loss(way, &next->loss))
		next->loss.version = way->version;
}

static bool orr_pair_is_harmed(const struct orr_pair *pair)
{
	const struct orr_way *way = &pair->way;
	u32 i;

	if (!way->up || pair->harmed)
		return true;
	for (i = 0; i < way->links; i++) {
		const struct orr_step *from = &way->steps[i], *to = &way->steps[i + 1];
		const struct orr_link_look *out, *back;

		if (way->fabric && orr_way_reach_changed(way))
			return true;
		out = &orr_map.card[orr_map_index(from->odev)].port[from->onward].look;
		back = &orr_map.card[orr_map_index(to->odev)].port[to->back].look;
		if (out->losses != from->losses_onward || back->losses != to->losses_back)
			return true;
		if (orr_way_is_far(way) && !(out->control & back->control & ORR_LINK_FORWARD))
			return true;
	}
	return false;
}

static void orr_way_over_fabric(unsigned int a, unsigned int b, struct orr_way *way)
{
	const struct orr_map_fabric *there = &orr_map.fabric[a][b];
	const struct orr_map_fabric *here = &orr_map.fabric[b][a];

	way->links = 1;
	way->fabric = there->links;
	way->gbps = min(there->gbps, here->gbps);
	way->latency_ns = there->latency_ns;
	way->reach[0] = there->losses;
	way->reach[1] = here->losses;
	way->steps[0] = (struct orr_step){
		.odev = orr_map.card[a].odev,
		.onward = there->port,
		.losses_onward = orr_map.card[a].port[there->port].look.losses,
	};
	way->steps[1] = (struct orr_step){
		.odev = orr_map.card[b].odev,
		.back = here->port,
		.losses_back = orr_map.card[b].port[here->port].look.losses,
	};
}

/* What the map says of the way. The cards are of the map. */
static void orr_way_of_map(unsigned int a, unsigned int b, const u8 ports[], unsigned int links,
			   struct orr_way *way)
{
	u64 latency = 0;
	unsigned int i;

	if (orr_map.fabric[a][b].used) {
		orr_way_over_fabric(a, b, way);
		return;
	}
	way->links = links;
	way->gbps = U32_MAX;
	for (i = 0; i <= links; i++) {
		struct orr_map_card *card = &orr_map.card[a];
		struct orr_step *step = &way->steps[i];
		const struct orr_map_port *port;

		step->odev = card->odev;
		if (i == links)
			break;
		port = &card->port[ports[i]];
		step->onward = ports[i];
		step->losses_onward = port->look.losses;
		way->gbps = min(way->gbps, port->gbps);
		latency += (u64)port->latency_ns + (i ? card->forward_ns : 0);
		way->steps[i + 1].back = port->peer_port;
		a = port->peer;
		way->steps[i + 1].losses_back = orr_map.card[a].port[port->peer_port].look.losses;
	}
	way->latency_ns = min(latency, U32_MAX);
}

/* 0: none; a card that does not pass on has none. Else the next is newer than @before. */
static u16 orr_epoch_after(u16 before)
{
	u16 next = ++orr_last_epoch ?: ++orr_last_epoch;

	if (before && (s16)(next - before) <= 0) {
		next = before + 1;
		next += !next;
	}
	return next;
}

/*
 * The way is another one from here on.
 * @settled: both ends deny what was sent by versions before, as they have its way's epoch no more or are
 *           lost, or a link between them has dropped it when it came up again
 */
static void orr_pair_set(struct orr_pair *pair, struct orr_way *way, bool settled)
{
	struct orr_way old = pair->way;
	u32 i;

	orr_pair_find_loss(pair, way);
	way->version = ++orr_last_version ?: ++orr_last_version;
	way->settled = settled ? way->version : old.settled;
	for (i = 0; way->links && i <= way->links; i++)
		drm_dev_get(&way->steps[i].odev->drm);
	scoped_guard(spinlock, &orr_pairs_lock) {
		pair->way = *way;
		pair->harmed = false;
	}
	orr_way_put(&old);
}

/* Both ends deny what was sent by versions before now. */
static void orr_pair_settle(struct orr_pair *pair)
{
	guard(spinlock)(&orr_pairs_lock);
	pair->way.settled = pair->way.version;
}

/* There is no way any more: both ends are told so, whatever their links tell them. */
static void orr_pair_cut(struct orr_pair *pair)
{
	struct orr_way way = { .up = false };
	bool settled = false, epochs = pair->epoch;

	if (!pair->way.up && !pair->harmed && !pair->stuck)
		return;
	pair->stuck = false;
	/* Who has no epochs has no barriers either. */
	if (pair->way.links && (pair->epoch || orr_way_is_far(&pair->way))) {
		pair->epoch = orr_epoch_after(pair->epoch);
		pair->stuck = orr_pair_write(pair, ORR_ROUTE_HOLD, NULL) == -EBUSY;
		settled = epochs && !pair->stuck;
	}
	if (pair->stuck) {
		way = pair->way;
		way.up = false;
	}
	orr_pair_set(pair, &way, settled);
}

/* Return: whether something that went by its way may have been lost. */
static bool orr_pair_judge(struct orr_pair *pair, struct list_head *changed)
{
	unsigned int a = orr_map_index(pair->ends[0]), b = orr_map_index(pair->ends[1]);
	struct orr_way way = { .up = false };
	u8 ports[ORR_WAY_LINKS];
	unsigned int links;
	u32 before = pair->way.version;
	bool same;

	links = orr_map_way(&orr_map, a, b, ports);
	if (!links) {
		orr_pair_cut(pair);
		return pair->way.version != before;
	}
	same = orr_pair_has(pair, ports, links);
	if (same && !orr_pair_is_harmed(pair))
		return false;
	orr_way_of_map(a, b, ports, links, &way);
	/* One that was cut has to have its hold taken away. */
	if (same && pair->way.up && !orr_way_is_far(&way)) {
		way.up = true;
	} else {
		/* A card that does not pass on has no epochs. */
		pair->epoch = orr_map.card[a].forward_ns && orr_map.card[b].forward_ns ?
				      orr_epoch_after(pair->epoch) : 0;
		list_add_tail(&pair->changed, changed);
	}
	orr_pair_set(pair, &way, way.up && pair->epoch);
	return before;
}

/* Return: whether there were any. */
static bool orr_pairs_forget_gone(void)
{
	struct orr_pair *pair, *next;
	bool gone = false;

	for (pair = orr_pair_first(NULL); pair; pair = next) {
		unsigned int end;

		next = orr_pair_first(pair);
		for (end = 0; end < 2; end++)
			if (orr_map_index(pair->ends[end]) == orr_map.count)
				break;
		if (end == 2)
			continue;
		orr_routes_clear(pair->ends[end]->node);
		orr_pair_remove(pair);
		gone = true;
	}
	return gone;
}

/* The last two steps of the order. Return: whether the way is up. */
static bool orr_pair_open(struct orr_pair *pair, bool gap)
{
	int ret = -EBUSY;

	/* Over one link nothing of others goes on. */
	if (!pair->stuck && (!gap || !orr_way_is_far(&pair->way)))
		ret = orr_pair_forward(pair) ?: orr_pair_write(pair, 0, NULL);
	pair->stuck = ret == -EBUSY;
	return !ret;
}

/* In the order at the top of this file. */
static void orr_pairs_begin_anew(struct list_head *changed, bool lost)
{
	struct orr_pair *pair, *next;
	bool gap = false;
	unsigned int at;

	list_for_each_entry(pair, changed, changed)
		pair->stuck = orr_pair_pass(pair) == -EBUSY;
	list_for_each_entry(pair, changed, changed) {
		unsigned int took;

		if (!pair->epoch)
			continue;
		if (orr_pair_write(pair, ORR_ROUTE_HOLD, &took) == -EBUSY)
			pair->stuck = true;
		else
			orr_pair_settle(pair);
		gap |= !took;
	}
	orr_some_gap = gap;
	if (lost)
		orr_signaller_ways_changed();
	for (at = 0; lost && at < orr_map.count; at++)
		orr_multicasts_look(orr_map.card[at].odev);
	list_for_each_entry_safe(pair, next, changed, changed) {
		bool up = orr_pair_open(pair, gap);

		list_del_init(&pair->changed);
		guard(spinlock)(&orr_pairs_lock);
		pair->way.up = up;
	}
}

/* Somebody looks again when no card is held any more. */
static void orr_pairs_note_stuck(void)
{
	struct orr_pair *pair;
	bool stuck = false;

	for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair)) {
		if (!pair->stuck)
			continue;
		stuck = true;
		orr_health_link_kick(pair->ends[0], false);
		orr_health_link_kick(pair->ends[1], false);
	}
	WRITE_ONCE(orr_some_stuck, stuck);
}

static void orr_routes_make(void)
{
	LIST_HEAD(changed);
	struct orr_pair *pair;
	bool lost;

	lockdep_assert_held(&orr_routes_lock);
	atomic_set(&orr_update_wanted, 0);
	orr_map_make();
	orr_switches_look(orr_last_version);
	lost = orr_pairs_forget_gone();
	/* A card that is lost goes first: it is the cause of what becomes of ways through it. */
	for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair))
		if (orr_pair_has_lost(pair))
			lost |= orr_pair_judge(pair, &changed);
	for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair))
		if (!orr_pair_has_lost(pair))
			lost |= orr_pair_judge(pair, &changed);
	orr_pairs_begin_anew(&changed, lost);
	orr_pairs_note_stuck();
}

/**
 * orr_routes_update - cards or links have changed: find out what that means for all ways
 *
 * May take as long as cards need to take routes.
 */
void orr_routes_update(void)
{
	guard(mutex)(&orr_routes_lock);
	orr_routes_make();
}

/**
 * orr_routes_look - have the map and all ways as new as somebody wants them who only asks
 * @odev: the card that he asks
 *
 * Anybody may ask, as often as he likes.
 *
 * Return: whether the card is in the map.
 */
bool orr_routes_look(struct orr_device *odev)
{
	lockdep_assert_held(&orr_routes_lock);
	if (!orr_map_is_young())
		orr_routes_make();
	return orr_map_index(odev) < orr_map.count;
}

/**
 * orr_routes_want - have it done by whoever looks at the links next; any context
 */
void orr_routes_want(void)
{
	atomic_set(&orr_update_wanted, 1);
}

/**
 * orr_routes_stuck - is there a way that waits for cards which stand?
 *
 * Return: whether there is.
 */
bool orr_routes_stuck(void)
{
	return READ_ONCE(orr_some_stuck);
}

/**
 * orr_routes_due - was an update asked for, or may it help who is stuck?
 *
 * Return: whether it was.
 */
bool orr_routes_due(void)
{
	return atomic_read(&orr_update_wanted) || (orr_routes_stuck() && !orr_peer_any_held());
}

/**
 * orr_routes_forward - have a port pass on what is for cards of other machines behind a switch
 * @odev: the card
 * @port: to the switch
 *
 * Ways of this driver's own cards that go by that port, and may have lost something, begin anew before that.
 *
 * Return: 0, -EBUSY: it is to be tried again, -ENODEV, -ETIMEDOUT: the card does not do it.
 */
int orr_routes_forward(struct orr_device *odev, u32 port)
{
	guard(mutex)(&orr_routes_lock);
	orr_routes_make();
	/* Ways that wait for a card which stands hold up nobody else. */
	return orr_some_gap ? -EBUSY : orr_forward_port(odev, port);
}

static int orr_peer_join_locked(struct orr_device *odev, struct orr_device *owner)
{
	struct orr_pair *pair;
	int ret = 0;

	lockdep_assert_held(&orr_routes_lock);
	if (!orr_peer_is_registered(odev) || !orr_peer_is_registered(owner))
		return -ENODEV;
	if (!orr_pair_find(odev->node, owner->node))
		ret = orr_pair_add(odev, owner);
	if (ret)
		return ret;
	orr_routes_make();
	pair = orr_pair_find(odev->node, owner->node);
	if (!pair || orr_is_lost(odev) || orr_is_lost(owner))
		return -ENODEV;
	if (pair->way.up)
		return 0;
	return pair->stuck ? -EBUSY : -EXDEV;
}

static int orr_peer_join_once(struct orr_device *odev, struct orr_device *owner)
{
	struct orr_way way;
	int ret;

	if (orr_way_get(odev->node, owner->node, &way)) {
		bool whole = orr_way_is_whole(&way);

		orr_way_put(&way);
		if (whole)
			return 0;
	}
	if (mutex_lock_interruptible(&orr_routes_lock))
		return -ERESTARTSYS;
	ret = orr_peer_join_locked(odev, owner);
	mutex_unlock(&orr_routes_lock);
	return ret;
}

/**
 * orr_peer_join - two cards get a way to each other
 * @odev: the card that wants to write
 * @owner: the card that has the memory
 *
 * Waits for cards that stand, without the lock.
 *
 * Return: 0, -EXDEV if there is no way over links that are up, -ENODEV if a card is gone, -EBUSY if a
 * debugger has held one of those that it takes for too long, -ENOMEM, -ERESTARTSYS.
 */
int orr_peer_join(struct orr_device *odev, struct orr_device *owner)
{
	unsigned int left_ms = orr_restart_held_ms(owner);
	int ret;

	while ((ret = orr_peer_join_once(odev, owner)) == -EBUSY && left_ms) {
		do {
			if (msleep_interruptible(ORR_JOIN_PERIOD_MS))
				return -ERESTARTSYS;
			left_ms -= min(left_ms, ORR_JOIN_PERIOD_MS);
		} while (left_ms && orr_peer_any_held() && !orr_is_lost(odev) && !orr_is_lost(owner));
	}
	return ret;
}

static bool orr_way_query_pair(struct orr_device *odev, u64 uid, struct orr_way *way)
{
	struct orr_pair *pair;
	bool found = false;
	u32 node = 0;

	scoped_guard(spinlock, &orr_pairs_lock) {
		for (pair = orr_pair_first(NULL); pair && !found; pair = orr_pair_first(pair)) {
			int end = pair->ends[1] == odev;

			found = pair->ends[end] == odev && pair->ends[!end]->info.uid == uid;
			if (found)
				node = pair->ends[!end]->node;
		}
	}
	if (!found || !orr_way_get(odev->node, node, way))
		return false;
	if (orr_way_is_whole(way) || (!way->up && orr_map_is_young()))
		return true;
	orr_way_put(way);
	orr_routes_update();
	return orr_way_get(odev->node, node, way);
}

/* Which way would there be to a card to which nobody has asked for one yet? */
static void orr_way_query_map(struct orr_device *odev, u64 uid, struct orr_way *way, u32 *port)
{
	u8 ports[ORR_WAY_LINKS];
	unsigned int a, b, links;

	lockdep_assert_held(&orr_routes_lock);
	orr_routes_look(odev);
	a = orr_map_index(odev);
	for (b = 0; b < orr_map.count; b++)
		if (orr_map.card[b].odev->info.uid == uid)
			break;
	links = a < orr_map.count && b < orr_map.count && a != b ?
			orr_map_way(&orr_map, a, b, ports) : 0;
	if (!links)
		return;
	orr_way_of_map(a, b, ports, links, way);
	way->up = true;
	*port = ports[0];
}

/**
 * orr_way_query - which way is there to a card, or would be there?
 * @odev: the card that asks
 * @uid: of the other
 * @way: filled in but for its cards
 * @port: filled in: the first port
 *
 * Return: 0, -ENODEV if the card that asks is gone, -ERESTARTSYS.
 */
int orr_way_query(struct orr_device *odev, u64 uid, struct orr_way *way, u32 *port)
{
	if (orr_is_lost(odev))
		return -ENODEV;
	memset(way, 0, sizeof(*way));
	if (orr_way_query_pair(odev, uid, way)) {
		u32 count = way->links;

		if (count)
			*port = way->steps[0].odev == odev ? way->steps[0].onward :
							     way->steps[count].back;
		orr_way_put(way);
		way->links = way->up ? count : 0;
		return 0;
	}
	if (mutex_lock_interruptible(&orr_routes_lock))
		return -ERESTARTSYS;
	orr_way_query_map(odev, uid, way, port);
	mutex_unlock(&orr_routes_lock);
	return 0;
}
