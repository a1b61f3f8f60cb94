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
#include "orr_far_rule.h"
#include "orr_foreign.h"
#include "orr_look.h"

struct orr_far_cycle;

/* Waits of others that can be told. */
#define ORR_FAR_HOPS 8u

/**
 * struct orr_far_search - a search as it concerns one look
 */
struct orr_far_search {
	/** @link: in orr_far_searches, or in orr_far_new before there was a look */
	struct list_head link;
	/** @begun: jiffies */
	unsigned long begun;
	/** @state: what decides */
	struct orr_far_state state;
	/** @lender: by question, user of this machine who has lent the memory */
	kuid_t lender[ORR_FAR_ASKS];
	/** @from: card by which another driver has asked; a reference. NULL: a process here waits for it */
	struct orr_device *from;
	/** @at: that driver, in orr_fabric.foreign */
	u32 at;
	/** @node: its card's */
	u32 node;
	/** @number: what it calls the question */
	__le16 number;
	/** @turn: of orr_far_new, whose first has the least */
	u64 turn;
	/** @import: what it asks about */
	struct orr_look_import import;
	/** @wanted: likewise */
	u64 wanted;
	/** @name: of who waits there */
	char name[ORR_QUEUE_NAME_BYTES];
	/** @done: there is an answer, for a process */
	struct completion done;
	/** @stamp: of the look */
	u64 stamp;
	/** @hop: the way from the wait of another machine on */
	struct orr_hop hop[ORR_FAR_HOPS];
	/** @hops: of @hop */
	u32 hops;
	/** @last: the wait to which that leads, ORR_LOOK_NONE: to none */
	u32 last;
};

void orr_far_keep_hops(struct orr_far_search *search, const struct orr_look *look);
int orr_far_tell(const struct orr_far_search *search, const struct list_head *searches,
		 struct orr_look *look, struct orr_far_cycle *cycle);

struct orr_note orr_far_question(const struct orr_far_search *search, u32 i);
void orr_far_question_take(struct orr_far_search *search, const struct orr_note *note);
u32 orr_far_notes(const struct orr_far_search *search, bool is_own, struct orr_note *note);
void orr_far_name_get(const struct orr_note *note, char *name);

#endif /* _ORR_FAR_SEARCH_H_ */
