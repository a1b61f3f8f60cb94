// SPDX-License-Identifier: GPL-2.0
/*
 * The map of all cards and links, as their registers say. What orr_map.c finds on it depends on which
 * links are used: all that are there, but a new one not while that would change the way of something
 * that is in use.
 */
#include <linux/jiffies.h>

#include "orr_bo.h"
#include "orr_route.h"

/* How old an answer to a process may be that asks for a way. */
#define ORR_MAP_AGE (HZ / 50)

struct orr_map orr_map;
static unsigned long orr_map_jiffies;
static u32 orr_last_since;

static void orr_map_forget_ports(struct orr_map_card *card)
{
	u32 p;

	memset(card->port, 0, sizeof(card->port));
	for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
		card->port[p].peer = ORR_MAP_NONE;
	card->forward_ns = 0;
}

static void orr_map_look(struct orr_map_card *card)
{
	struct orr_device *odev = card->odev;
	int idx;
	u32 p;

	orr_map_forget_ports(card);
	card->lost = orr_enter(odev, &idx);
	if (card->lost)
		return;
	for (p = 0; p < odev->info.link_ports; p++) {
		struct orr_map_port *port = &card->port[p];
		u32 link = ORR_R_LINK(p);

		/* It has just been found gone: what was read of it before that is over. */
		if (!orr_link_look(odev, p, &port->look)) {
			orr_map_forget_ports(card);
			card->lost = true;
			break;
		}
		if (!orr_link_is_up(&port->look))
			continue;
		port->peer_uid = orr_read64(odev, link + ORR_R_LINK_PEER_UID);
		port->peer_port = orr_read32(odev, link + ORR_R_LINK_PEER_PORT);
		port->gbps = orr_link_gbps(odev, p);
		port->latency_ns = orr_read32(odev, link + ORR_R_LINK_LATENCY_NS);
		card->forward_ns = orr_read32(odev, link + ORR_R_LINK_FORWARD_NS);
		port->to_switch = orr_link_to_switch(odev, p);
	}
	if (card->forward_ns == U32_MAX)
		card->forward_ns = 0;
	orr_exit(odev, idx);
}

/**
 * orr_map_index - where a card is in the map
 * @odev: the card
 *
 * Return: its index, orr_map.count: it is not there.
 */
unsigned int orr_map_index(const struct orr_device *odev)
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

/**
 * orr_reach_look - what says the switch at a port of a node? Inside orr_enter().
 * @odev: the card
 * @port: its port
 * @node: the node
 *
 * Return: ORR_REACH_HOW; 0: nothing.
 */
u32 orr_reach_look(struct orr_device *odev, u32 port, u32 node)
{
	u32 how = orr_read32(odev, ORR_R_REACH(port, node) + ORR_REACH_HOW);

	return how == U32_MAX || !(how & ORR_REACH_VALID) ? 0 : how;
}

/* The port of a card that is joined to that port of that switch. */
static u32 orr_map_joined(unsigned int i, u64 uid, u32 port)
{
	u32 p;

	for (p = 0; p < ORR_LINK_MAX_PORTS; p++) {
		const struct orr_map_port *at = &orr_map.card[i].port[p];

		if (at->to_switch && at->peer_uid == uid && at->peer_port == port)
			break;
	}
	return p;
}

/*
 * A switch says of a node behind which port of which switch it is. The card there has to have that one at
 * its port, so that nobody gets what is for another by saying that he is that one.
 */
static bool orr_map_look_one(unsigned int i, u32 p, unsigned int j, struct orr_map_fabric *found,
			     u32 *back)
{
	struct orr_device *odev = orr_map.card[i].odev;
	u32 reach = ORR_R_REACH(p, orr_map.card[j].odev->node);
	u32 how, latency, mbps;
	u64 uid;
	int idx;

	if (orr_enter(odev, &idx))
		return false;
	how = orr_reach_look(odev, p, orr_map.card[j].odev->node);
	if (how) {
		uid = orr_read64(odev, reach + ORR_REACH_FABRIC);
		latency = orr_read32(odev, reach + ORR_REACH_LATENCY_NS);
		mbps = orr_read32(odev, reach + ORR_REACH_MBPS);
	}
	orr_exit(odev, idx);
	if (!how)
		return false;
	*back = orr_map_joined(j, uid, how >> ORR_REACH_PORT_SHIFT & ORR_REACH_PORT);
	if (*back == ORR_LINK_MAX_PORTS)
		return false;
	found->links = (how >> ORR_REACH_LINKS_SHIFT & ORR_REACH_LINKS) + 1;
	found->port = p;
	found->losses = how >> ORR_REACH_LOSSES_SHIFT;
	found->gbps = min(orr_map.card[i].port[p].gbps, max(mbps / 1000, 1u));
	found->latency_ns = min((u64)orr_map.card[i].port[p].latency_ns + latency, U32_MAX);
	return true;
}

static void orr_map_look_pair(unsigned int i, unsigned int j)
{
	struct orr_map_fabric there = {}, here = {};
	u32 p, q, back;

	for (p = 0; p < ORR_LINK_MAX_PORTS; p++) {
		if (!orr_map.card[i].port[p].to_switch ||
		    !orr_map_look_one(i, p, j, &there, &q) ||
		    !orr_map_look_one(j, q, i, &here, &back) || back != p)
			continue;
		if (orr_map.fabric[i][j].links &&
		    orr_map.fabric[i][j].latency_ns <= there.latency_ns)
			continue;
		orr_map.fabric[i][j] = there;
		orr_map.fabric[j][i] = here;
	}
}

/* Which cards reach each other over switches? Those that number no cards have no part in it. */
static void orr_map_look_at_fabrics(void)
{
	unsigned int i, j;

	for (i = 0; i < orr_map.count; i++)
		for (j = 0; j < orr_map.count; j++)
			orr_map.fabric[i][j] = (struct orr_map_fabric){};
	for (i = 0; i < orr_map.count; i++)
		for (j = i + 1; j < orr_map.count; j++)
			if (orr_map.card[i].forward_ns && orr_map.card[j].forward_ns)
				orr_map_look_pair(i, j);
}

/* Is a link used that is there? What is not there any more is forgotten. */
static bool orr_map_is_used(unsigned int i, u32 p)
{
	struct orr_map_port *port = &orr_map.card[i].port[p];
	struct orr_used_link *used = &orr_map.card[i].odev->used_links[p];

	if (used->peer && (port->peer == ORR_MAP_NONE || used->peer_port != port->peer_port ||
			   used->peer != orr_map.card[port->peer].odev->node))
		memset(used, 0, sizeof(*used));
	port->since = used->since;
	return used->peer;
}

static void orr_map_use(unsigned int i, u32 p, bool use)
{
	struct orr_map_card *card = &orr_map.card[i];
	struct orr_map_port *port = &card->port[p];
	struct orr_map_card *peer = &orr_map.card[port->peer];
	struct orr_map_port *peer_port = &peer->port[port->peer_port];
	struct orr_used_link *used = &card->odev->used_links[p];
	struct orr_used_link *back = &peer->odev->used_links[port->peer_port];

	port->used = use;
	peer_port->used = use;
	memset(used, 0, sizeof(*used));
	memset(back, 0, sizeof(*back));
	if (!use)
		return;
	*used = (struct orr_used_link){ .peer = peer->odev->node, .peer_port = port->peer_port,
					.since = ++orr_last_since };
	*back = (struct orr_used_link){ .peer = card->odev->node, .peer_port = p,
					.since = used->since };
	port->since = used->since;
	peer_port->since = used->since;
}

/**
 * orr_pair_has - has the map the way that a pair goes, over links that have been there all the time?
 * @pair: the pair
 * @ports: of the map's
 * @links: their number
 *
 * Return: whether it has.
 */
bool orr_pair_has(const struct orr_pair *pair, const u8 ports[], unsigned int links)
{
	unsigned int i;

	if (!pair->way.links || pair->way.links != links)
		return false;
	if (links == 1) {
		unsigned int a = orr_map_index(pair->ends[0]);
		unsigned int b = orr_map_index(pair->ends[1]);
		const struct orr_map_fabric *fabric = &orr_map.fabric[a][b];

		if (pair->way.fabric != (fabric->used ? fabric->links : 0))
			return false;
		if (fabric->used)
			return pair->way.steps[0].onward == ports[0] &&
			       pair->way.steps[1].back == orr_map.fabric[b][a].port;
	}
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

	if (pair->way.fabric) {
		unsigned int a = orr_map_index(pair->ends[0]);
		unsigned int b = orr_map_index(pair->ends[1]);

		return a < orr_map.count && b < orr_map.count && orr_map.fabric[a][b].links &&
		       orr_map.fabric[a][b].port == pair->way.steps[0].onward &&
		       orr_map.fabric[b][a].port == pair->way.steps[1].back;
	}
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

static void orr_map_put(void)
{
	unsigned int i;

	for (i = 0; i < orr_map.count; i++)
		drm_dev_put(&orr_map.card[i].odev->drm);
	orr_map.count = 0;
}

/* Does it take again what it did not take in time? */
static bool orr_map_stands(struct orr_device *odev)
{
	const struct orr_owed_route *owed = &odev->owed_route;
	bool stands = false;
	int idx;

	if (!owed->node || orr_enter(odev, &idx))
		return false;
	stands = orr_read32(odev, ORR_R_ROUTE(owed->node)) != owed->route;
	orr_exit(odev, idx);
	/* Nobody is held, so the limit of all others holds for it again. */
	if (stands && !orr_peer_any_held())
		stands = false;
	if (!stands)
		odev->owed_route.node = 0;
	return stands;
}

/**
 * orr_map_make - look at all cards and links, and find all ways
 *
 * What it found stays, with its cards, until the next time: who goes has it made anew.
 */
void orr_map_make(void)
{
	static struct orr_device *cards[ORR_MAP_CARDS];
	struct orr_pair *pair;
	unsigned int i, p;

	lockdep_assert_held(&orr_routes_lock);
	orr_map_put();
	orr_map.count = orr_peer_collect(cards, ARRAY_SIZE(cards));
	for (i = 0; i < orr_map.count; i++) {
		orr_map.card[i].odev = cards[i];
		orr_map.card[i].stands = orr_map_stands(cards[i]);
		orr_map_look(&orr_map.card[i]);
	}
	for (i = 0; i < orr_map.count; i++)
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
			orr_map.card[i].port[p].peer = orr_map_peer(i, p);
	orr_map_look_at_fabrics();
	for (pair = orr_pair_first(NULL); pair; pair = orr_pair_first(pair))
		pair->in_use = orr_peer_has_grants(pair->ends[0], pair->ends[1]->node) ||
			       orr_peer_has_grants(pair->ends[1], pair->ends[0]->node) ||
			       orr_barrier_joins(pair->ends[0], pair->ends[1]);
	orr_map_adopt();
	WRITE_ONCE(orr_map_jiffies, jiffies);
}

/**
 * orr_map_is_young - is what was found as good as new, for somebody who only asks?
 *
 * Return: whether it is.
 */
bool orr_map_is_young(void)
{
	return time_before(jiffies, READ_ONCE(orr_map_jiffies) + ORR_MAP_AGE);
}
