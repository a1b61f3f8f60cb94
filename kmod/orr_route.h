/* SPDX-License-Identifier: GPL-2.0 */
/* Ways between two cards: between who keeps them, and who goes by them. */
#ifndef _ORR_ROUTE_H_
#define _ORR_ROUTE_H_

#include <linux/list.h>
#include <linux/types.h>

#include "orr_grant.h"
#include "orr_map.h"

/**
 * struct orr_step - a card on a way
 */
struct orr_step {
	/** @odev: the card, a reference */
	struct orr_device *odev;
	/** @back: port to the card before, if there is one */
	u32 back;
	/** @onward: port to the card behind, if there is one */
	u32 onward;
	/** @losses_back: of @back, since the way is used */
	u32 losses_back;
	/** @losses_onward: of @onward */
	u32 losses_onward;
};

/**
 * struct orr_way_loss - a link that went down, with which a way ended
 */
struct orr_way_loss {
	/** @uid: card with one end, or switch; 0: there was none */
	u64 uid;
	/** @peer_uid: card or switch with the other end; 0: some switch */
	u64 peer_uid;
	/** @port: of @uid */
	u32 port;
	/** @is: ORR_LOST_* */
	u32 is;
	/** @version: of the way */
	u32 version;
};

/**
 * struct orr_way - how two cards reach each other
 */
struct orr_way {
	/** @up: they do */
	bool up;
	/** @version: another one when something on the way may have been lost; no two ways have the same */
	u32 version;
	/** @links: number of links, with a card more in @steps; 0: there never was one */
	u32 links;
	/** @fabric: 0, or that one link leads over switches and is in truth so many */
	u32 fabric;
	/** @reach: with @fabric, what switches have counted of losses: to the last card, to the first */
	u16 reach[2];
	/** @gbps: of the slowest link */
	u32 gbps;
	/** @latency_ns: of all, with what passing on takes */
	u32 latency_ns;
	/** @loss: the last between the two cards */
	struct orr_way_loss loss;
	/** @settled: what went by versions before this one has arrived or never will; 0: nobody knows */
	u32 settled;
	/** @steps: from the card with the lower node to the other */
	struct orr_step steps[ORR_WAY_LINKS + 1];
};

/**
 * struct orr_pair - two cards that have asked for a way
 */
struct orr_pair {
	/** @node: in the table; orr_routes_lock and orr_pairs_lock, as of all that is in there */
	struct hlist_node node;
	/** @ends: cards, references, that with the lower node first; constant */
	struct orr_device *ends[2];
	/** @keys: what requests of each of @ends to the other carry; constant */
	u64 keys[2];
	/** @way: between them */
	struct orr_way way;
	/** @epoch: of both routes; orr_routes_lock */
	u16 epoch;
	/** @harmed: something may have been lost that the links do not show; orr_pairs_lock */
	bool harmed;
	/** @in_use: one may write to the other's memory; orr_routes_lock */
	bool in_use;
	/** @stuck: a card that stands has not taken what it should; orr_routes_lock */
	bool stuck;
	/** @changed: in a list while it gets another way or epoch; orr_routes_lock */
	struct list_head changed;
};

/* Whether others pass on what goes there. */
static inline bool orr_way_is_far(const struct orr_way *way)
{
	return way->links > 1 || way->fabric;
}

extern struct mutex orr_routes_lock;
extern struct spinlock orr_pairs_lock;

/* orr_way.c */
struct orr_pair *orr_pair_first(struct orr_pair *after);
struct orr_pair *orr_pair_find(u32 node, u32 other);
int orr_pair_add(struct orr_device *odev, struct orr_device *other);
void orr_pair_remove(struct orr_pair *pair);
bool orr_pair_grant_key(const struct orr_device *odev, const struct orr_device *owner, u64 *key);
void orr_way_put(struct orr_way *way);
bool orr_way_get(u32 node, u32 other, struct orr_way *way);
bool orr_way_is_whole(const struct orr_way *way);
bool orr_way_stands(u32 node, u32 other, u32 version);
u32 orr_way_look(struct orr_device *odev, struct orr_device *other, bool *up);
void orr_way_drain(struct orr_device *owner, u32 node, enum orr_drain *drain);
void orr_way_drain_all(struct orr_device *owner);
/* Time until ways that are stuck are looked for again, and until a port that does not pass on is asked. */
#define ORR_HEALTH_STUCK (HZ / 2)
#define ORR_FORWARD_AGAIN (10 * HZ)

bool orr_port_drain(struct orr_device *odev, const struct orr_device *whose, u32 port, u32 how);
bool orr_port_drain_sender(struct orr_device *odev, const struct orr_device *whose, u32 port,
			   enum orr_drain *drain);

/* orr_map_make.c */
extern struct orr_map orr_map;
void orr_map_make(void);
bool orr_map_is_young(void);
u32 orr_reach_look(struct orr_device *odev, u32 port, u32 node);
unsigned int orr_map_index(const struct orr_device *odev);
bool orr_pair_has(const struct orr_pair *pair, const u8 ports[], unsigned int links);

/* orr_switches.c */
void orr_switches_look(u32 version);
bool orr_switches_find_loss(const struct orr_way *way, struct orr_way_loss *loss);

/* orr_route.c */
int orr_peer_join(struct orr_device *odev, struct orr_device *owner);
void orr_routes_update(void);
bool orr_routes_look(struct orr_device *odev);
bool orr_routes_due(void);
bool orr_routes_stuck(void);
void orr_routes_want(void);
int orr_routes_forward(struct orr_device *odev, u32 port);
int orr_way_query(struct orr_device *odev, u64 uid, struct orr_way *way, u32 *port);

#endif /* _ORR_ROUTE_H_ */
