// SPDX-License-Identifier: GPL-2.0
/*
 * Links between switches, as switches tell of them (orrery/hw/switches.h). No card is at either end, so
 * when a way over them ends nobody else can name the one that went down. These are peers' words: they
 * are for people who look for a cable, and no way depends on them.
 */
#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_route.h"

/* Ends of links between switches that are remembered; what is more is not named. */
#define ORR_SWITCH_ENDS 512u
/* How often what a switch is about to change is read again. */
#define ORR_SWITCHES_TRIES 3u

/**
 * struct orr_switch_end - a port of a switch at which another one is, or was
 */
struct orr_switch_end {
	/** @uid: of the switch */
	u64 uid;
	/** @peer_uid: of the other, also while the link is down */
	u64 peer_uid;
	/** @port: of the switch */
	u32 port;
	/** @losses: how often the link has gone down */
	u32 losses;
	/** @up: it is */
	bool up;
	/** @lost: it has gone down since it is known, the last time in the look of this number; 0: not */
	u64 lost;
	/** @version: which ways were made before that: orr_last_version then */
	u32 version;
};

/**
 * struct orr_switch_word - what is said of a port of a switch
 */
struct orr_switch_word {
	/** @uid: of the switch */
	u64 uid;
	/** @peer_uid: of the switch that is there; 0: it is down */
	u64 peer_uid;
	/** @port: of the switch */
	u32 port;
	/** @losses: how often the link has gone down */
	u32 losses;
};

/* All under orr_routes_lock. */
static struct orr_switch_end orr_switch_ends[ORR_SWITCH_ENDS];
static unsigned int orr_switch_end_count;
static struct orr_switch_word orr_switch_words[ORR_SWITCH_ENDS];
static u64 orr_switches_looks;

static struct orr_switch_end *orr_switch_end_find(u64 uid, u32 port)
{
	unsigned int i;

	for (i = 0; i < orr_switch_end_count; i++)
		if (orr_switch_ends[i].uid == uid && orr_switch_ends[i].port == port)
			return &orr_switch_ends[i];
	return NULL;
}

/* @count: of words that are there before. Return: with those of one more switch. */
static unsigned int orr_switches_read_place(struct orr_device *odev, u32 place, u64 uid, unsigned int count)
{
	u32 ports = min(orr_read32(odev, place + ORR_SWITCH_PORTS), ORR_SWITCH_MAX_PORTS), q;

	for (q = 0; q < ports && count < ARRAY_SIZE(orr_switch_words); q++) {
		u32 port = place + ORR_SWITCH_PORT(q);
		u32 state = orr_read32(odev, port + ORR_SWITCH_PORT_STATE);
		bool up = state != U32_MAX && (state & ORR_SWITCH_PORT_LINK) >= ORR_LINK_UP;

		/* Of one that is down nobody says what was there. */
		if (up ? !(state & ORR_SWITCH_PORT_TO_SWITCH) : !orr_switch_end_find(uid, q))
			continue;
		orr_switch_words[count++] = (struct orr_switch_word){
			.uid = uid,
			.peer_uid = up ? orr_read64(odev, port + ORR_SWITCH_PORT_PEER) : 0,
			.port = q,
			.losses = orr_read32(odev, port + ORR_SWITCH_PORT_LOSSES),
		};
	}
	return count;
}

static unsigned int orr_switches_read(struct orr_device *odev, u32 p)
{
	unsigned int count = 0, n;

	for (n = 0; n < ORR_SWITCHES_PLACES; n++) {
		u32 place = ORR_R_SWITCHES(p) + ORR_SWITCHES_PLACE(n);
		u64 uid = orr_read64(odev, place + ORR_SWITCH_UID);

		if (!uid || uid == U64_MAX)
			break;
		count = orr_switches_read_place(odev, place, uid, count);
	}
	return count;
}

/* @own: the switch says it of itself. What others say may be of before that. */
static void orr_switch_end_take(const struct orr_switch_word *word, bool own, u32 version)
{
	struct orr_switch_end *end = orr_switch_end_find(word->uid, word->port);

	if (!end) {
		if (!word->peer_uid || orr_switch_end_count == ARRAY_SIZE(orr_switch_ends))
			return;
		end = &orr_switch_ends[orr_switch_end_count++];
		*end = (struct orr_switch_end){ .uid = word->uid, .port = word->port,
						.losses = word->losses };
	} else if (!own && (s32)(word->losses - end->losses) < 0) {
		return;
	}
	if (word->losses != end->losses || (end->up && !word->peer_uid)) {
		end->lost = orr_switches_looks;
		end->version = version;
	}
	end->losses = word->losses;
	end->up = word->peer_uid;
	if (word->peer_uid)
		end->peer_uid = word->peer_uid;
}

static void orr_switches_look_port(struct orr_device *odev, u32 p, u64 peer_uid, u32 version)
{
	u32 at = ORR_R_SWITCHES(p) + ORR_SWITCHES_VERSION, tries;

	for (tries = 0; tries < ORR_SWITCHES_TRIES; tries++) {
		u32 before = orr_read32(odev, at);
		unsigned int count, i;

		if (before == odev->switches_seen[p])
			return;
		if (before == U32_MAX || before % 2)
			continue;
		count = orr_switches_read(odev, p);
		if (orr_read32(odev, at) != before)
			continue;
		for (i = 0; i < count; i++)
			orr_switch_end_take(&orr_switch_words[i], orr_switch_words[i].uid == peer_uid,
					    version);
		odev->switches_seen[p] = before;
		return;
	}
}

/**
 * orr_switches_look - what do the switches of the map say of the links between them?
 * @version: of the last way that was made
 */
void orr_switches_look(u32 version)
{
	unsigned int i;
	int idx;
	u32 p;

	lockdep_assert_held(&orr_routes_lock);
	orr_switches_looks++;
	for (i = 0; i < orr_map.count; i++) {
		struct orr_map_card *card = &orr_map.card[i];

		if (card->lost || orr_enter(card->odev, &idx))
			continue;
		for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
			if (card->port[p].to_switch &&
			    orr_link_switch(card->odev, p) & ORR_LINK_TELLS_SWITCHES)
				orr_switches_look_port(card->odev, p, card->port[p].peer_uid, version);
		orr_exit(card->odev, idx);
	}
}

/* How near to the ends of a way: all that lead over two levels have one at the switch of a card. */
static unsigned int orr_switch_end_rank(const struct orr_switch_end *end, const u64 leaves[2])
{
	if (end->uid == leaves[0] || end->uid == leaves[1])
		return 2;
	return end->peer_uid == leaves[0] || end->peer_uid == leaves[1];
}

/**
 * orr_switches_find_loss - which link between switches has gone down since a way was made?
 * @way: the way, over switches
 * @loss: filled in but for the version, if there is one
 *
 * Of several that of the nearest to the cards, and of these the last.
 *
 * Return: whether there is one.
 */
bool orr_switches_find_loss(const struct orr_way *way, struct orr_way_loss *loss)
{
	unsigned int a = orr_map_index(way->steps[0].odev), b = orr_map_index(way->steps[1].odev), i;
	const struct orr_switch_end *found = NULL;
	u64 leaves[2];

	lockdep_assert_held(&orr_routes_lock);
	if (a == orr_map.count || b == orr_map.count)
		return false;
	leaves[0] = orr_map.card[a].port[way->steps[0].onward].peer_uid;
	leaves[1] = orr_map.card[b].port[way->steps[1].back].peer_uid;
	for (i = 0; i < orr_switch_end_count; i++) {
		const struct orr_switch_end *end = &orr_switch_ends[i];
		unsigned int rank = orr_switch_end_rank(end, leaves);

		if (!end->lost || (s32)(end->version - way->version) < 0)
			continue;
		if (found && (rank < orr_switch_end_rank(found, leaves) ||
			      (rank == orr_switch_end_rank(found, leaves) && end->lost <= found->lost)))
			continue;
		found = end;
	}
	if (!found)
		return false;
	*loss = (struct orr_way_loss){
		.uid = found->uid,
		.peer_uid = found->peer_uid,
		.port = found->port,
		.is = ORR_LOST_AT_SWITCH | ORR_LOST_TO_SWITCH,
	};
	return true;
}
