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
 *      semaphore
 *   4. cards on the way pass on again: each had stopped when it may have lost something
 *   5. its ends send again
 *
 * A link between the ends only tells its sender what it lost, and needs no 1, 2, 4 and 5 for that.
 */
#include <linux/atomic.h>
#include <linux/iopoll.h>
#include <linux/jiffies.h>

#include "orr_bo.h"
#include "orr_route.h"
#include "orr_signal.h"

#define ORR_FORWARD_TIMEOUT_US USEC_PER_SEC
/* How old an answer to a process may be which asks for a way that is not there. */
#define ORR_ROUTES_AGE (HZ / 50)

/* Guards the map, and who gets which way. */
DEFINE_MUTEX(orr_routes_lock);
static struct orr_map orr_map;
static unsigned long orr_map_jiffies;
static u32 orr_last_since, orr_last_version;
static u16 orr_last_epoch;
static atomic_t orr_update_wanted = ATOMIC_INIT(0);

/*
 * --- the map ---
 */

static void orr_map_look(struct orr_map_card *card)
{
	struct orr_device *odev = card->odev;
	int idx;
	u32 p;

	memset(card->port, 0, sizeof(card->port));
	for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
		card->port[p].peer = ORR_MAP_NONE;
	card->forward_ns = 0;
	if (orr_enter(odev, &idx))
		return;
	for (p = 0; p < odev->info.link_ports; p++) {
		struct orr_map_port *port = &card->port[p];
		u32 link = ORR_R_LINK(p);

		if (!orr_link_look(odev, p, &port->look))
			break;
		if (!orr_link_is_up(&port->look))
			continue;
		port->peer_uid = orr_read64(odev, link + ORR_R_LINK_PEER_UID);
		port->peer_port = orr_read32(odev, link + ORR_R_LINK_PEER_PORT);
		port->gbps = orr_read32(odev, link + ORR_R_LINK_GBPS);
		port->latency_ns = orr_read32(odev, link + ORR_R_LINK_LATENCY_NS);
		card->forward_ns = orr_read32(odev, link + ORR_R_LINK_FORWARD_NS);
	}
	if (card->forward_ns == U32_MAX)
		card->forward_ns = 0;
	orr_exit(odev, idx);
}

static unsigned int orr_map_index(const struct orr_device *odev)
{
	unsigned int i;

	for (i = 0; i < orr_map.count; i++)
		if (orr_map.card[i].odev == odev)
			break;
	return i;
}

/* The card at the other end has to say so too: one that lies must not get what is meant for another. */
static u8 orr_map_peer(unsigned int i, u32 p)
{
	const struct orr_map_port *port = &orr_map.card[i].port[p];
	unsigned int j;

	if (!orr_link_is_up(&port->look) || port->peer_port >= ORR_LINK_MAX_PORTS)
		return ORR_MAP_NONE;
	for (j = 0; j < orr_map.count; j++) {
		const struct orr_map_port *back = &orr_map.card[j].port[port->peer_port];

		if (j != i && orr_map.card[j].odev->info.uid == port->peer_uid &&
		    orr_link_is_up(&back->look) && back->peer_port == p &&
		    back->peer_uid == orr_map.card[i].odev->info.uid)
			return j;
	}
	return ORR_MAP_NONE;
}

/* Is a link used that is there? What is not there any more is forgotten. */
static bool orr_map_is_used(unsigned int i, u32 p)
{
	const struct orr_map_port *port = &orr_map.card[i].port[p];
	struct orr_used_link *used = &orr_map.card[i].odev->used_links[p];

	if (used->peer && (port->peer == ORR_MAP_NONE || used->peer_port != port->peer_port ||
			   used->peer != orr_map.card[port->peer].odev->node))
		memset(used, 0, sizeof(*used));
	return used->peer;
}

static void orr_map_use(unsigned int i, u32 p, bool use)
{
	struct orr_map_card *card = &orr_map.card[i];
	struct orr_map_port *port = &card->port[p];
	struct orr_map_card *peer = &orr_map.card[port->peer];
	struct orr_used_link *used = &card->odev->used_links[p];
	struct orr_used_link *back = &peer->odev->used_links[port->peer_port];

	port->used = use;
	peer->port[port->peer_port].used = use;
	memset(used, 0, sizeof(*used));
	memset(back, 0, sizeof(*back));
	if (!use)
		return;
	*used = (struct orr_used_link){ .peer = peer->odev->node, .peer_port = port->peer_port,
					.since = ++orr_last_since };
	*back = (struct orr_used_link){ .peer = card->odev->node, .peer_port = p,
					.since = used->since };
}

/* Whether the map has the same way, over links that have been there all the time. */
static bool orr_pair_has(const struct orr_pair *pair, const u8 ports[], unsigned int links)
{
	unsigned int i;

	if (!pair->way.links || pair->way.links != links)
		return false;
	for (i = 0; i < links; i++) {
		unsigned int at = orr_map_index(pair->way.steps[i].odev);
		const struct orr_map_port *port;

		if (at == orr_map.count || pair->way.steps[i].onward != ports[i])
			return false;
		port = &orr_map.card[at].port[ports[i]];
		if (orr_map.card[port->peer].odev != pair->way.steps[i + 1].odev ||
		    port->peer_port != pair->way.steps[i + 1].back)
			return false;
	}
	return true;
}

/* Whether all links of a pair's way are still there. */
static bool orr_pair_is_joined(const struct orr_pair *pair)
{
	unsigned int i;

	for (i = 0; i < pair->way.links; i++) {
		unsigned int at = orr_map_index(pair->way.steps[i].odev);
		const struct orr_map_port *port;

		if (at == orr_map.count)
			return false;
		port = &orr_map.card[at].port[pair->way.steps[i].onward];
		if (!port->used || orr_map.card[port->peer].odev != pair->way.steps[i + 1].odev)
			return false;
	}
	return pair->way.links;
}

/* Does the map leave all ways as they are on which there is something? */
static bool orr_map_keeps(void)
{
	struct orr_pair *pair;
	u8 ports[ORR_WAY_LINKS];

	for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair)) {
		unsigned int a = orr_map_index(pair->ends[0]);
		unsigned int b = orr_map_index(pair->ends[1]);

		if (!pair->in_use || !orr_pair_is_joined(pair))
			continue;
		if (!orr_pair_has(pair, ports, orr_map_way(&orr_map, a, b, ports)))
			return false;
	}
	return true;
}

/* New links are used as soon as that is possible without another way for what is in use. */
static void orr_map_adopt(void)
{
	struct { u8 card, port; } news[ORR_MAP_CARDS * ORR_LINK_MAX_PORTS / 8];
	unsigned int i, p, count = 0;

	for (i = 0; i < orr_map.count; i++)
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
			orr_map.card[i].port[p].used = orr_map_is_used(i, p);
	for (i = 0; i < orr_map.count; i++) {
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++) {
			const struct orr_map_port *port = &orr_map.card[i].port[p];

			if (port->peer == ORR_MAP_NONE || port->used || port->peer < i ||
			    count == ARRAY_SIZE(news))
				continue;
			news[count].card = i;
			news[count++].port = p;
		}
	}
	for (i = 0; i < count; i++)
		orr_map_use(news[i].card, news[i].port, true);
	orr_map_compute(&orr_map);
	if (!count || orr_map_keeps())
		return;
	for (i = 0; i < count; i++)
		orr_map_use(news[i].card, news[i].port, false);
	for (i = 0; i < count; i++) {
		orr_map_use(news[i].card, news[i].port, true);
		orr_map_compute(&orr_map);
		if (!orr_map_keeps())
			orr_map_use(news[i].card, news[i].port, false);
	}
	orr_map_compute(&orr_map);
}

static void orr_map_make(void)
{
	static struct orr_device *cards[ORR_MAP_CARDS];
	struct orr_pair *pair;
	unsigned int i, p;

	orr_map.count = orr_peer_collect(cards, ARRAY_SIZE(cards));
	for (i = 0; i < orr_map.count; i++) {
		orr_map.card[i].odev = cards[i];
		orr_map_look(&orr_map.card[i]);
	}
	for (i = 0; i < orr_map.count; i++)
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
			orr_map.card[i].port[p].peer = orr_map_peer(i, p);
	for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair))
		pair->in_use = orr_peer_has_grants(pair->ends[0], pair->ends[1]->node) ||
			       orr_peer_has_grants(pair->ends[1], pair->ends[0]->node);
	orr_map_adopt();
	orr_map_jiffies = jiffies;
}

static void orr_map_put(void)
{
	unsigned int i;

	for (i = 0; i < orr_map.count; i++)
		drm_dev_put(&orr_map.card[i].odev->drm);
	orr_map.count = 0;
}

/*
 * --- routes ---
 */

static bool orr_route_write(struct orr_device *odev, u32 node, u32 route)
{
	bool written = true;
	int idx;

	if (orr_enter(odev, &idx))
		return false;
	if (orr_read32(odev, ORR_R_ROUTE(node)) != route &&
	    !orr_write_and_wait(odev, ORR_R_ROUTE(node), route)) {
		if (!orr_health_gone(odev))
			orr_device_lost(odev, "it does not take a route to another card");
		written = false;
	}
	orr_exit(odev, idx);
	return written;
}

/* Of a card on the way. It may have one as an end of another way: by the same port, then it stays. */
static void orr_route_pass(struct orr_device *odev, u32 node, u32 port)
{
	u32 now;
	int idx;

	if (orr_enter(odev, &idx))
		return;
	now = orr_read32(odev, ORR_R_ROUTE(node));
	orr_exit(odev, idx);
	if (!(now & ORR_ROUTE_VALID) || (now & ORR_ROUTE_PORT) != port)
		orr_route_write(odev, node, ORR_ROUTE_VALID | ORR_ROUTE_HOLD | port);
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
		orr_exit(odev, idx);
	}
}

/* Both ends of a pair. */
static bool orr_pair_write(const struct orr_pair *pair, u32 flags)
{
	const struct orr_step *first = &pair->way.steps[0];
	const struct orr_step *last = &pair->way.steps[pair->way.links];
	u32 route = ORR_ROUTE_VALID | flags | (u32)pair->epoch << ORR_ROUTE_EPOCH_SHIFT;

	return orr_route_write(last->odev, first->odev->node, route | last->back) &&
	       orr_route_write(first->odev, last->odev->node, route | first->onward);
}

static bool orr_forward_port(struct orr_device *odev, u32 port)
{
	u32 link = ORR_R_LINK(port);
	struct orr_map_port *seen = &orr_map.card[orr_map_index(odev)].port[port];
	u32 now = 0;
	int idx;

	/* What was set then and is not any more has had losses since: not before the next update. */
	if (seen->look.control & ORR_LINK_FORWARD)
		return true;
	if (orr_enter(odev, &idx))
		return false;
	orr_write32(odev, link + ORR_R_LINK_CONTROL, ORR_LINK_FORWARD);
	read_poll_timeout(orr_read32, now, now == ORR_LINK_FORWARD || now == U32_MAX, 20,
			  ORR_FORWARD_TIMEOUT_US, false, odev, link + ORR_R_LINK_CONTROL);
	orr_exit(odev, idx);
	if (now == ORR_LINK_FORWARD)
		seen->look.control = now;
	return now == ORR_LINK_FORWARD;
}

static bool orr_pair_forward(const struct orr_pair *pair)
{
	const struct orr_way *way = &pair->way;
	bool good = true;
	u32 i;

	for (i = 0; i < way->links; i++)
		good &= orr_forward_port(way->steps[i].odev, way->steps[i].onward) &&
			orr_forward_port(way->steps[i + 1].odev, way->steps[i + 1].back);
	return good;
}

/*
 * --- pairs ---
 */

static bool orr_pair_is_harmed(const struct orr_pair *pair)
{
	const struct orr_way *way = &pair->way;
	u32 i;

	if (!way->up || pair->harmed)
		return true;
	for (i = 0; i < way->links; i++) {
		const struct orr_step *from = &way->steps[i], *to = &way->steps[i + 1];
		const struct orr_link_look *out, *back;

		out = &orr_map.card[orr_map_index(from->odev)].port[from->onward].look;
		back = &orr_map.card[orr_map_index(to->odev)].port[to->back].look;
		if (out->losses != from->losses_onward || back->losses != to->losses_back)
			return true;
		if (way->links > 1 && !(out->control & back->control & ORR_LINK_FORWARD))
			return true;
	}
	return false;
}

/* What the map says of the way. The cards are of the map. */
static void orr_way_of_map(unsigned int a, const u8 ports[], unsigned int links,
			   struct orr_way *way)
{
	unsigned int i;

	way->links = links;
	way->gbps = U32_MAX;
	way->latency_ns = 0;
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
		way->latency_ns += port->latency_ns + (i ? card->forward_ns : 0);
		way->steps[i + 1].back = port->peer_port;
		a = port->peer;
		way->steps[i + 1].losses_back = orr_map.card[a].port[port->peer_port].look.losses;
	}
}

static void orr_pair_set(struct orr_pair *pair, struct orr_way *way)
{
	struct orr_way old = pair->way;
	u32 i;

	way->version = ++orr_last_version ?: ++orr_last_version;
	for (i = 0; way->links && i <= way->links; i++)
		drm_dev_get(&way->steps[i].odev->drm);
	scoped_guard(spinlock, &orr_pairs_lock) {
		pair->way = *way;
		pair->harmed = false;
	}
	orr_way_put(&old);
}

/* There is no way any more: both ends are told so, where a link that is down would not tell. */
static void orr_pair_cut(struct orr_pair *pair)
{
	struct orr_way way = { .up = false };

	if (!pair->way.up && !pair->harmed)
		return;
	if (pair->way.links > 1) {
		pair->epoch = ++orr_last_epoch ?: ++orr_last_epoch;
		orr_pair_write(pair, ORR_ROUTE_HOLD);
	} else {
		way = pair->way;
		way.up = false;
	}
	orr_pair_set(pair, &way);
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
	orr_way_of_map(a, ports, links, &way);
	if (same && links == 1) {
		way.up = true;
	} else {
		/* A card that does not pass on has no epochs. */
		pair->epoch = 0;
		if (orr_map.card[a].forward_ns && orr_map.card[b].forward_ns)
			pair->epoch = ++orr_last_epoch ?: ++orr_last_epoch;
		list_add_tail(&pair->changed, changed);
	}
	orr_pair_set(pair, &way);
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

/* In the order at the top of this file. */
static void orr_pairs_begin_anew(struct list_head *changed, bool lost)
{
	struct orr_pair *pair, *next;
	unsigned int i;

	list_for_each_entry(pair, changed, changed) {
		const struct orr_way *way = &pair->way;

		for (i = 1; i < way->links; i++) {
			const struct orr_step *step = &way->steps[i];

			orr_route_pass(step->odev, way->steps[0].odev->node, step->back);
			orr_route_pass(step->odev, way->steps[way->links].odev->node, step->onward);
		}
	}
	list_for_each_entry(pair, changed, changed)
		if (pair->epoch)
			orr_pair_write(pair, ORR_ROUTE_HOLD);
	if (lost)
		orr_signaller_ways_changed();
	list_for_each_entry_safe(pair, next, changed, changed) {
		bool up = (pair->way.links == 1 || orr_pair_forward(pair)) &&
			  orr_pair_write(pair, 0);

		list_del_init(&pair->changed);
		guard(spinlock)(&orr_pairs_lock);
		pair->way.up = up;
	}
}

/* The map stays until orr_map_put(). */
static void orr_routes_make(void)
{
	LIST_HEAD(changed);
	struct orr_pair *pair;
	bool lost;

	lockdep_assert_held(&orr_routes_lock);
	atomic_set(&orr_update_wanted, 0);
	orr_map_make();
	lost = orr_pairs_forget_gone();
	for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair))
		lost |= orr_pair_judge(pair, &changed);
	orr_pairs_begin_anew(&changed, lost);
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
	orr_map_put();
}

/**
 * orr_routes_want - have it done by whoever looks at the links next; any context
 */
void orr_routes_want(void)
{
	atomic_set(&orr_update_wanted, 1);
}

/**
 * orr_routes_wanted - was it asked for?
 *
 * Return: whether it was.
 */
bool orr_routes_wanted(void)
{
	return atomic_read(&orr_update_wanted);
}

/**
 * orr_peer_join - two cards get a way to each other
 * @odev: the card that wants to write
 * @owner: the card that has the memory
 *
 * Return: 0, -EXDEV if there is no way over links that are up, -ENODEV if a card is gone, -ENOMEM.
 */
int orr_peer_join(struct orr_device *odev, struct orr_device *owner)
{
	struct orr_way way;
	int ret = 0;

	if (orr_way_get(odev->node, owner->node, &way)) {
		bool whole = orr_way_is_whole(&way);

		orr_way_put(&way);
		if (whole)
			return 0;
	}
	guard(mutex)(&orr_routes_lock);
	if (!orr_peer_is_registered(odev) || !orr_peer_is_registered(owner))
		return -ENODEV;
	if (!orr_pair_find(odev->node, owner->node))
		ret = orr_pair_add(odev, owner);
	if (ret)
		return ret;
	orr_routes_make();
	orr_map_put();
	if (orr_way_get(odev->node, owner->node, &way)) {
		if (!way.up)
			ret = orr_is_lost(odev) || orr_is_lost(owner) ? -ENODEV : -EXDEV;
		orr_way_put(&way);
		return ret;
	}
	return -ENODEV;
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
	if (orr_way_is_whole(way) ||
	    (!way->up && time_before(jiffies, READ_ONCE(orr_map_jiffies) + ORR_ROUTES_AGE)))
		return true;
	orr_way_put(way);
	orr_routes_update();
	return orr_way_get(odev->node, node, way);
}

/**
 * orr_way_query - which way is there to a card, or would be there?
 * @odev: the card that asks
 * @uid: of the other
 * @way: filled in but for its cards
 * @port: filled in: the first port
 *
 * Return: 0, -ENODEV if the card that asks is gone.
 */
int orr_way_query(struct orr_device *odev, u64 uid, struct orr_way *way, u32 *port)
{
	u8 ports[ORR_WAY_LINKS];
	unsigned int a, b, links;

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
	guard(mutex)(&orr_routes_lock);
	orr_routes_make();
	a = orr_map_index(odev);
	for (b = 0; b < orr_map.count; b++)
		if (orr_map.card[b].odev->info.uid == uid)
			break;
	links = a < orr_map.count && b < orr_map.count && a != b ?
			orr_map_way(&orr_map, a, b, ports) : 0;
	if (links) {
		orr_way_of_map(a, ports, links, way);
		way->up = true;
		*port = ports[0];
	}
	orr_map_put();
	return 0;
}
