/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What decides in a search for a cycle of waits over machines (orr_far.c): what has to be asked, what follows
 * from answers, when somebody is told. Without calls of the kernel, so that tests/unit/kmod goes through all
 * orders of questions and answers.
 */
#ifndef _ORR_FAR_RULE_H_
#define _ORR_FAR_RULE_H_

#include <linux/types.h>

struct orr_device;

/* Questions that a look leads to, and waits that they are about. */
#define ORR_FAR_ASKS 16u
#define ORR_FAR_WAITS 8u
/* Looks by which a question has come. A circle over as many machines is found. */
#define ORR_FAR_PATH 6u
/* Waits behind the one of an answer that it tells of: together as many notes as a card keeps of a sender. */
#define ORR_FAR_BEYOND 3u
#define ORR_FAR_NAME_BYTES 24
/* Notes to one driver before it is given time to take them: one less than its card keeps. */
#define ORR_FAR_IN_A_ROW 3u
/* Questions of others that have no answer yet, also of one. */
#define ORR_FAR_KEPT 128u
#define ORR_FAR_KEPT_OF_ONE 16u

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
 * enum orr_far_step - what is to be done with a search
 * @ORR_FAR_WAIT: nothing, now
 * @ORR_FAR_END: a process waits for it, which is woken
 * @ORR_FAR_TELL: another driver is told, and then nothing rests on it
 * @ORR_FAR_TELL_AND_KEEP: likewise, and other answers may rest on what it has asked
 */
enum orr_far_step {
	ORR_FAR_WAIT,
	ORR_FAR_END,
	ORR_FAR_TELL,
	ORR_FAR_TELL_AND_KEEP,
};

/**
 * struct orr_far_wait - who waits on another machine
 */
struct orr_far_wait {
	/** @node: of his card */
	u32 node;
	/** @name: his */
	char name[ORR_FAR_NAME_BYTES];
};

/**
 * struct orr_far_ask - a question to another driver
 */
struct orr_far_ask {
	/** @odev: the card that has lent the memory; a reference */
	struct orr_device *odev;
	/** @at: who is asked, in orr_fabric.foreign */
	u32 at;
	/** @node: his card's */
	u32 node;
	/** @tag: what he calls the memory */
	u32 tag;
	/** @offset: of the semaphore */
	u64 offset;
	/** @wanted: value that is waited for */
	u64 wanted;
	/** @wait: in orr_look.far */
	u32 wait;
	/** @number: of the question, among all of this driver */
	u16 number;
	/** @answer: to it */
	enum orr_far_answer answer;
	/** @stamp: that came with it */
	u64 stamp;
	/** @name: of who waits */
	char name[ORR_FAR_NAME_BYTES];
	/** @there: who would signal it, for whom he waits, and so on, as the answer says */
	struct orr_far_wait there[1 + ORR_FAR_BEYOND];
	/** @known: of @there; its first has a place before there is an answer */
	u32 known;
};

/**
 * struct orr_far_state - how far a search is, as it concerns one look
 */
struct orr_far_state {
	/** @id: the search's, for all machines */
	u32 id;
	/** @is_others: another driver has asked; else a process here waits for it */
	bool is_others;
	/** @path: looks by which it came, a mark each, and at last its own if it is @marked; 0: the rest */
	u16 path[ORR_FAR_PATH];
	/** @marked: it has a mark of its own, as it asks on */
	bool marked;
	/** @answer: ORR_FAR_OPEN before there is one */
	enum orr_far_answer answer;
	/** @asking: its questions are being sent, by somebody who goes on to use it */
	bool asking;
	/** @told: whoever has asked was told the answer */
	bool told;
	/** @held: by wait: packets of this machine hold it, too */
	bool held[ORR_FAR_WAITS];
	/** @waits: of @held */
	u32 waits;
	/** @ask: questions */
	struct orr_far_ask ask[ORR_FAR_ASKS];
	/** @asks: of @ask */
	u32 asks;
};

/**
 * struct orr_far_due - whose answer is told next, of the searches that were looked at
 */
struct orr_far_due {
	/** @state: of the search; NULL: none is due */
	const struct orr_far_state *state;
	/** @told: when its driver was last told an answer, in such answers */
	u64 told;
};

bool orr_far_mark(struct orr_far_state *state, u16 mark);
bool orr_far_came_by(const struct orr_far_state *state, const struct orr_far_state *other);
bool orr_far_is_same(const struct orr_far_ask *one, const struct orr_far_ask *other);
enum orr_far_answer orr_far_sum(const struct orr_far_state *state);

void orr_far_assume(struct orr_far_state *state, const struct orr_far_state *other);
void orr_far_start(struct orr_far_state *state, u16 mark);
bool orr_far_asks_now(const struct orr_far_state *state, u32 i);
bool orr_far_pauses(const struct orr_far_state *state, u32 i);
void orr_far_asked_all(struct orr_far_state *state);

struct orr_far_ask *orr_far_find(struct orr_far_state *state, const struct orr_device *odev, u32 at,
				 u32 tag, u16 number);
struct orr_far_wait *orr_far_take_hop(struct orr_far_ask *ask);
void orr_far_take_answer(struct orr_far_ask *ask, u32 status, u32 known, u64 stamp);
void orr_far_settle(struct orr_far_state *state);
enum orr_far_step orr_far_next(const struct orr_far_state *state);
void orr_far_due_of(struct orr_far_due *due, const struct orr_far_state *state, u64 told);
bool orr_far_has_room(u32 kept, u32 kept_of_one);

#endif /* _ORR_FAR_RULE_H_ */
