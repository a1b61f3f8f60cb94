/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A search for a cycle of waits over machines, as it concerns one look: between orr_far.c, which asks and
 * answers, and orr_far_way.c, which knows what follows. Guarded by orr_far.c's lock once others see it.
 */
#ifndef _ORR_FAR_SEARCH_H_
#define _ORR_FAR_SEARCH_H_

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/types.h>

#include "orr_cycle.h"
#include "orr_foreign.h"
#include "orr_look.h"

struct orr_far_cycle;

/* Questions that a look leads to; waits of others that can be told. */
#define ORR_FAR_ASKS 16u
#define ORR_FAR_HOPS 8u
/* Looks by which a question has come. */
#define ORR_FAR_PATH 6u
/* Waits behind the one of an answer that it tells of: together as many notes as a card keeps of a sender. */
#define ORR_FAR_BEYOND 3u

/**
 * enum orr_far_answer - in orr_note.status of ORR_NOTE_STUCK_BACK
 * @ORR_FAR_FREE: somebody who is not stuck would signal it, or nobody knows
 * @ORR_FAR_NONE: nobody here would
 * @ORR_FAR_HELD: all who would are stuck
 * @ORR_FAR_OPEN: there is no answer yet; not in notes
 */
enum orr_far_answer {
	ORR_FAR_FREE,
	ORR_FAR_NONE,
	ORR_FAR_HELD,
	ORR_FAR_OPEN,
};

/**
 * struct orr_far_wait - who waits on another machine
 */
struct orr_far_wait {
	/** @node: of his card */
	u32 node;
	/** @name: his */
	char name[ORR_QUEUE_NAME_BYTES];
};

/**
 * struct orr_far_ask - a question to another driver
 */
struct orr_far_ask {
	/** @odev: the card that has lent the memory; a reference */
	struct orr_device *odev;
	/** @lessee: who is asked */
	struct orr_lessee lessee;
	/** @offset: of the semaphore */
	u64 offset;
	/** @wanted: value that is waited for */
	u64 wanted;
	/** @wait: in orr_look.far */
	u32 wait;
	/** @number: of the question, among all of this driver */
	u16 number;
	/** @answer: to it; orr_far_lock */
	enum orr_far_answer answer;
	/** @stamp: that came with it */
	u64 stamp;
	/** @name: of who waits */
	char name[ORR_QUEUE_NAME_BYTES];
	/** @there: who would signal it, for whom he waits, and so on, as the answer says */
	struct orr_far_wait there[1 + ORR_FAR_BEYOND];
	/** @known: of @there; its first has a place before there is an answer */
	u32 known;
};

/**
 * struct orr_far_search - a search as it concerns one look
 */
struct orr_far_search {
	/** @link: in orr_far_searches, or in orr_far_new before there was a look */
	struct list_head link;
	/** @id: the search's, for all machines */
	u64 id;
	/** @begun: jiffies */
	unsigned long begun;
	/** @from: card by which another driver has asked; a reference. NULL: a process here waits for it */
	struct orr_device *from;
	/** @at: that driver, in orr_fabric.foreign */
	u32 at;
	/** @node: its card's */
	u32 node;
	/** @number: what it calls the question */
	__le16 number;
	/** @import: what it asks about */
	struct orr_look_import import;
	/** @wanted: likewise */
	u64 wanted;
	/** @name: of who waits there */
	char name[ORR_QUEUE_NAME_BYTES];
	/** @answer: ORR_FAR_OPEN before there is one; orr_far_lock */
	enum orr_far_answer answer;
	/** @told: that it was */
	bool told;
	/** @done: there is one, for a process */
	struct completion done;
	/** @path: looks by which it came, a mark each, and at last its own; 0: the rest */
	u8 path[ORR_FAR_PATH];
	/** @stamp: of the look */
	u64 stamp;
	/** @held: by wait: packets of this machine hold it, too */
	bool held[ORR_LOOK_MAX_FAR];
	/** @waits: of @held */
	u32 waits;
	/** @ask: questions */
	struct orr_far_ask ask[ORR_FAR_ASKS];
	/** @asks: of @ask */
	u32 asks;
	/** @hop: the way from the wait of another machine on */
	struct orr_hop hop[ORR_FAR_HOPS];
	/** @hops: of @hop */
	u32 hops;
	/** @last: the wait to which that leads, ORR_LOOK_NONE: to none */
	u32 last;
};

bool orr_far_mark(struct orr_far_search *search);
bool orr_far_came_by(const struct orr_far_search *search, const struct orr_far_search *other);
bool orr_far_is_same(const struct orr_far_ask *one, const struct orr_far_ask *other);
enum orr_far_answer orr_far_sum(const struct orr_far_search *search);
void orr_far_keep_hops(struct orr_far_search *search, const struct orr_look *look);
int orr_far_tell(const struct orr_far_search *search, const struct list_head *searches,
		 struct orr_look *look, struct orr_far_cycle *cycle);
u32 orr_far_notes(const struct orr_far_search *search, bool is_own, struct orr_note *note);

void orr_far_name_put(struct orr_note *note, const char *name);
void orr_far_name_get(const struct orr_note *note, char *name);
void orr_far_path_put(struct orr_note *note, const u8 *path);
void orr_far_path_get(const struct orr_note *note, u8 *path);

#endif /* _ORR_FAR_SEARCH_H_ */
