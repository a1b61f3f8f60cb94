// SPDX-License-Identifier: GPL-2.0
/*
 * Ways between cards over several links.
 *
 * A card goes by the destination only, and takes what passes by no other port than that by which it
 * reaches the source. So the ways of all pairs have to fit: each part of a way is the way of its
 * ends, there and back. Shortest ways do, if no two between the same cards are equally long. Each
 * link's length has a little of its own for that.
 *
 * Messages for other cards wait in a card until there is room in the next, so those waits must not
 * go round in a circle. The last link of a way is no part of one: what is there is for that card,
 * and waits for nobody. If a circle is left, links beyond those that it takes to join the cards
 * are made longer, until ways go over few enough of them; at last nothing but a tree is used.
 *
 * Cards that no cables join may be on switches that reach each other. Such a way begins and ends there:
 * no card passes on what goes over switches, so it is no part of another way, and no part of a circle.
 * What switches do among themselves is theirs (docs/switch.md).
 */
#include <linux/bug.h>
#include <linux/jhash.h>
#include <linux/limits.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "orr_map.h"

#define ORR_LINK_COST (1ull << 24)
#define ORR_NO_COST (U64_MAX / 4)
#define ORR_MAP_SALTS 16u

/* The older of two links joins cards, so that a new one changes as little as it can. */
static void orr_map_plant(struct orr_map *map)
{
	unsigned int joined[ORR_MAP_CARDS];
	unsigned int i, p, k;

	for (i = 0; i < map->count; i++) {
		joined[i] = i;
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
			map->card[i].port[p].tree = false;
	}
	for (;;) {
		struct orr_map_port *first = NULL;
		u32 oldest = U32_MAX;
		unsigned int from = 0, old;

		for (i = 0; i < map->count; i++) {
			for (p = 0; p < ORR_LINK_MAX_PORTS; p++) {
				struct orr_map_port *port = &map->card[i].port[p];

				if (!port->used || joined[i] == joined[port->peer] ||
				    port->since >= oldest)
					continue;
				first = port;
				oldest = port->since;
				from = i;
			}
		}
		if (!first)
			return;
		first->tree = true;
		map->card[first->peer].port[first->peer_port].tree = true;
		old = joined[first->peer];
		for (k = 0; k < map->count; k++)
			if (joined[k] == old)
				joined[k] = joined[from];
	}
}

static u64 orr_map_cost_of(const struct orr_map *map, unsigned int card, unsigned int p, u32 factor)
{
	const struct orr_map_port *port = &map->card[card].port[p];

	return ORR_LINK_COST * (port->tree ? 1 : factor) +
	       (jhash_1word(port->since, map->salt) & (ORR_LINK_COST / 16 - 1));
}

static void orr_map_shortest(struct orr_map *map, u32 factor)
{
	unsigned int i, j, k, p;

	for (i = 0; i < map->count; i++) {
		for (j = 0; j < map->count; j++) {
			map->cost[i][j] = i == j ? 0 : ORR_NO_COST;
			map->next[i][j] = ORR_MAP_NONE;
		}
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++) {
			const struct orr_map_port *port = &map->card[i].port[p];
			u64 cost;

			if (!port->used)
				continue;
			cost = orr_map_cost_of(map, i, p, factor);
			if (cost >= map->cost[i][port->peer])
				continue;
			map->cost[i][port->peer] = cost;
			map->next[i][port->peer] = (u8)p;
		}
	}
	for (k = 0; k < map->count; k++) {
		if (!map->card[k].forward_ns)
			continue;
		for (i = 0; i < map->count; i++) {
			if (map->cost[i][k] >= ORR_NO_COST || !map->card[i].forward_ns)
				continue;
			for (j = 0; j < map->count; j++) {
				u64 cost = map->cost[i][k] + map->cost[k][j];

				if (cost >= map->cost[i][j] || !map->card[j].forward_ns)
					continue;
				map->cost[i][j] = cost;
				map->next[i][j] = map->next[i][k];
			}
		}
	}
}

/**
 * orr_map_way - the way from one card to another
 * @map: computed
 * @from: index of the one
 * @to: index of the other
 * @ports: filled in: the port by which it leaves the first card, the next, …
 *
 * Return: the number of links, of which all that lead over switches are one; 0: there is no way.
 */
unsigned int orr_map_way(const struct orr_map *map, unsigned int from, unsigned int to,
			 u8 ports[ORR_WAY_LINKS])
{
	unsigned int links = 0;

	while (from != to) {
		u8 port = map->next[from][to];

		if (!links && map->fabric[from][to].used) {
			ports[0] = port;
			return 1;
		}
		if (port == ORR_MAP_NONE || links == ORR_WAY_LINKS)
			return 0;
		ports[links++] = port;
		from = map->card[from].port[port].peer;
	}
	return links;
}

/* Is the way back the same, and so by each card on it? */
static bool orr_map_fits(const struct orr_map *map)
{
	unsigned int from, to, at, link, links;
	u8 ports[ORR_WAY_LINKS];

	for (from = 0; from < map->count; from++) {
		for (to = 0; to < map->count; to++) {
			links = orr_map_way(map, from, to, ports);
			at = from;
			for (link = 0; link < links; link++) {
				const struct orr_map_port *port = &map->card[at].port[ports[link]];

				if (map->next[port->peer][from] != port->peer_port)
					return false;
				at = port->peer;
			}
		}
	}
	return true;
}

static void orr_map_find_waits(struct orr_map *map)
{
	unsigned int from, to, at, link, links, p;
	u8 ports[ORR_WAY_LINKS];

	for (from = 0; from < map->count; from++)
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
			map->card[from].port[p].waits = 0;
	for (from = 0; from < map->count; from++) {
		for (to = 0; to < map->count; to++) {
			links = orr_map_way(map, from, to, ports);
			at = from;
			for (link = 0; link + 2 < links; link++) {
				struct orr_map_port *port = &map->card[at].port[ports[link]];

				port->waits |= 1u << ports[link + 1];
				at = port->peer;
			}
		}
	}
}

/* Takes away what waits for nobody, again and again. Return: whether nothing is left. */
static bool orr_map_waits_end(struct orr_map *map)
{
	bool changed = true, left = false;
	unsigned int i, p, q;

	while (changed) {
		changed = false;
		left = false;
		for (i = 0; i < map->count; i++) {
			for (p = 0; p < ORR_LINK_MAX_PORTS; p++) {
				struct orr_map_port *port = &map->card[i].port[p];

				for (q = 0; q < ORR_LINK_MAX_PORTS; q++) {
					if (!(port->waits & 1u << q))
						continue;
					if (map->card[port->peer].port[q].waits) {
						left = true;
						continue;
					}
					port->waits &= ~(1u << q);
					changed = true;
				}
			}
		}
	}
	return !left;
}

static void orr_map_over_cables(struct orr_map *map)
{
	u32 factor, salts;

	orr_map_plant(map);
	for (salts = 0; salts < ORR_MAP_SALTS; salts++) {
		/* Beyond the number of cards only the tree is left. */
		for (factor = 1; factor <= map->count + 1; factor++) {
			cond_resched();
			orr_map_shortest(map, factor);
			if (!orr_map_fits(map))
				break;
			orr_map_find_waits(map);
			if (orr_map_waits_end(map))
				return;
		}
		map->salt++;
	}
	/* It would take sums of random numbers that are equal again and again. */
	WARN_ONCE(1, "no ways between cards that fit");
	for (factor = 0; factor < map->count; factor++)
		memset(map->next[factor], ORR_MAP_NONE, sizeof(map->next[factor]));
}

/**
 * orr_map_compute - find all ways over the links that are used
 * @map: the map; gets @next
 */
void orr_map_compute(struct orr_map *map)
{
	unsigned int i, j;

	for (i = 0; i < map->count; i++)
		for (j = 0; j < map->count; j++)
			map->fabric[i][j].used = false;
	orr_map_over_cables(map);
	for (i = 0; i < map->count; i++) {
		for (j = 0; j < map->count; j++) {
			struct orr_map_fabric *fabric = &map->fabric[i][j];

			if (i == j || !fabric->links || map->next[i][j] != ORR_MAP_NONE)
				continue;
			fabric->used = true;
			map->next[i][j] = fabric->port;
		}
	}
}
