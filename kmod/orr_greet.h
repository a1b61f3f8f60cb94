/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How two drivers agree about a session: what each makes of the other's greetings. Without calls of the
 * kernel, so that tests/unit/kmod goes through all orders of them.
 */
#ifndef _ORR_GREET_H_
#define _ORR_GREET_H_

#include <linux/types.h>

/**
 * struct orr_greeting - what one says
 */
struct orr_greeting {
	/** @nonce: of who says it; not 0 */
	u64 nonce;
	/** @known: the other's that he knows; 0: none */
	u64 known;
	/** @before: epoch of his last session with the other when he made @nonce; 0: there was none */
	u16 before;
	/** @asks: for an answer in any case */
	bool asks;
};

/**
 * struct orr_greet - one side of a session, or of none yet
 *
 * A nonce is of one session at most. Both sides' make the session, and @before of both its epoch.
 */
struct orr_greet {
	/** @nonce: this side's */
	u64 nonce;
	/** @peer: the other's, as it said last; 0: it has said nothing */
	u64 peer;
	/** @told: which of the other's it knows to be known, with @nonce; 0: none */
	u64 told;
	/** @before: epoch of the last session when @nonce was made; 0: there was none */
	u16 before;
	/** @epoch: of this session, or the last */
	u16 epoch;
	/** @session: both know each other's nonce */
	bool session;
};

/**
 * enum orr_place_use - what a place for a card is used for
 * @ORR_PLACE_FREE: nothing
 * @ORR_PLACE_GONE: a card with which there is no session, and of which nobody has anything
 * @ORR_PLACE_IDLE: likewise, with a session
 * @ORR_PLACE_USED: somebody here or there has something
 */
enum orr_place_use {
	ORR_PLACE_FREE,
	ORR_PLACE_GONE,
	ORR_PLACE_IDLE,
	ORR_PLACE_USED,
};

u16 orr_epoch_of(u16 before, u16 peer_before, u64 nonces);
void orr_greet_anew(struct orr_greet *greet, u64 nonce, u16 before);
bool orr_greet_ends(const struct orr_greet *greet, const struct orr_greeting *heard);
bool orr_greet_hear(struct orr_greet *greet, const struct orr_greeting *heard);
bool orr_greet_answers(const struct orr_greet *greet, const struct orr_greeting *heard);
struct orr_greeting orr_greet_say(struct orr_greet *greet, bool asks);
bool orr_greet_moves(const struct orr_greet *greet, u32 node, u32 peer_node, bool reached);
u32 orr_greet_place(const u8 uses[], u32 count, u32 *last);

#endif /* _ORR_GREET_H_ */
