/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The links between this driver's cards, and the ways over them. orr_map.c knows cards by their place in the
 * map only, so that tests/unit/kmod has it look for ways in any system.
 */
#ifndef _ORR_MAP_H_
#define _ORR_MAP_H_

#include <linux/types.h>

#include <orrery/hw/link.h>

#include "orr_link_look.h"

struct orr_device;

/* Cards that get ways to each other. */
#define ORR_MAP_CARDS 64u
/* Links of a way: a message ends before it goes over more. */
#define ORR_WAY_LINKS 8u
#define ORR_MAP_NONE 0xffu

/**
 * struct orr_map_port - a port, as it was found
 */
struct orr_map_port {
	/** @look: state, losses, control */
	struct orr_link_look look;
	/** @peer_uid: card at the other end, if the link is up */
	u64 peer_uid;
	/** @peer_port: port there */
	u32 peer_port;
	/** @gbps: rate */
	u32 gbps;
	/** @latency_ns: one way */
	u32 latency_ns;
	/** @peer: index of the card at the other end, which says so too; else ORR_MAP_NONE */
	u8 peer;
	/** @used: ways may go here */
	bool used;
	/** @since: of one that is used: says which of two has been so for longer; the same at both ends */
	u32 since;
	/** @tree: one of as few links as join the cards */
	bool tree;
	/** @to_switch: the other end is a switch */
	bool to_switch;
	/** @waits: ports of @peer for which what leaves here may wait */
	u8 waits;
};

/**
 * struct orr_map_card - a card
 */
struct orr_map_card {
	/** @odev: the card, a reference */
	struct orr_device *odev;
	/** @forward_ns: what passing on takes; 0: the card does not pass on */
	u32 forward_ns;
	/** @stands: it takes nothing at present, because a debugger holds it or another */
	bool stands;
	/** @lost: to the driver, whatever its links say */
	bool lost;
	/** @port: by number */
	struct orr_map_port port[ORR_LINK_MAX_PORTS];
};

/**
 * struct orr_map_fabric - a way from one card to another over switches, as both of them see it
 */
struct orr_map_fabric {
	/** @links: number; 0: there is none */
	u8 links;
	/** @port: of the one, by which it leaves */
	u8 port;
	/** @used: it is what @next says: no cables between cards lead there */
	bool used;
	/** @losses: on the way there, as the switches count them */
	u16 losses;
	/** @gbps: of the slowest link */
	u32 gbps;
	/** @latency_ns: one way, with what passing on takes */
	u32 latency_ns;
};

/**
 * struct orr_map - all cards
 */
struct orr_map {
	/** @count: of @card */
	unsigned int count;
	/** @card: those that are registered, or as many as there is room for */
	struct orr_map_card card[ORR_MAP_CARDS];
	/** @salt: of what makes two ways of one length differ */
	u32 salt;
	/** @cost: from, to */
	u64 cost[ORR_MAP_CARDS][ORR_MAP_CARDS];
	/** @next: from, to: the port, or ORR_MAP_NONE */
	u8 next[ORR_MAP_CARDS][ORR_MAP_CARDS];
	/** @fabric: from, to */
	struct orr_map_fabric fabric[ORR_MAP_CARDS][ORR_MAP_CARDS];
};

void orr_map_compute(struct orr_map *map);
unsigned int orr_map_way(const struct orr_map *map, unsigned int from, unsigned int to,
			 u8 ports[ORR_WAY_LINKS]);

#endif /* _ORR_MAP_H_ */
