// SPDX-License-Identifier: GPL-2.0
/*
 * Each side has a nonce, another one for each session, and says it with the nonce of the other that it knows.
 * Who hears his own has been heard: both nonces are a session then. Who hears another nonce than the
 * session's knows that the other side has begun anew, ends the session, and begins anew, too. So no two
 * sessions have both sides' epochs before them in common, and each session's epoch is ahead of all that
 * either side remembers.
 */
#include "orr_greet.h"

/**
 * orr_epoch_of - what both sides put into their routes
 * @before: of this side's last session with the other; 0: it knows of none
 * @peer_before: of the other's
 * @nonces: what both have of this session alone
 *
 * By less than half of all ahead of both, so that switches know the newer.
 *
 * Return: the epoch, the same on both sides; not 0.
 */
u16 orr_epoch_of(u16 before, u16 peer_before, u64 nonces)
{
	s16 ahead = peer_before - before;
	u16 last = before;

	if (!before || (peer_before && (ahead > 0 || (ahead == -0x8000 && peer_before > before))))
		last = peer_before;
	if (!last)
		last = (u16)(nonces ^ nonces >> 16 ^ nonces >> 32 ^ nonces >> 48);
	return last == 0xffff ? 1 : last + 1;
}

/**
 * orr_greet_anew - what was said before counts no more
 * @greet: this side; its session has ended
 * @nonce: a new one, by chance
 * @before: epoch of the last session
 */
void orr_greet_anew(struct orr_greet *greet, u64 nonce, u16 before)
{
	greet->session = false;
	greet->nonce = nonce && nonce != greet->nonce ? nonce : greet->nonce + 1 ?: 1;
	greet->before = before;
	greet->told = 0;
}

/**
 * orr_greet_ends - has the other side begun anew?
 * @greet: this side
 * @heard: what it says
 *
 * Return: whether, in a session: it ends, and the caller begins anew before orr_greet_hear().
 */
bool orr_greet_ends(const struct orr_greet *greet, const struct orr_greeting *heard)
{
	return greet->session && greet->peer != heard->nonce;
}

/**
 * orr_greet_hear - the other side has said something
 * @greet: this side
 * @heard: what
 *
 * Return: whether a session may begin, of @greet's epoch: then the caller sets @greet's session.
 */
bool orr_greet_hear(struct orr_greet *greet, const struct orr_greeting *heard)
{
	if (greet->peer != heard->nonce)
		greet->told = 0;
	greet->peer = heard->nonce;
	if (greet->session || !greet->nonce || heard->known != greet->nonce)
		return false;
	greet->epoch = orr_epoch_of(greet->before, heard->before, greet->nonce ^ greet->peer);
	return true;
}

/**
 * orr_greet_answers - after that, is there something to be said?
 * @greet: this side
 * @heard: what was heard
 *
 * Return: whether: it was asked for, or the other does not know yet that it was heard.
 */
bool orr_greet_answers(const struct orr_greet *greet, const struct orr_greeting *heard)
{
	return heard->asks || greet->told != greet->peer;
}

/**
 * orr_greet_say - what this side says
 * @greet: it
 * @asks: for an answer in any case
 *
 * Return: the greeting.
 */
struct orr_greeting orr_greet_say(struct orr_greet *greet, bool asks)
{
	greet->told = greet->peer;
	return (struct orr_greeting){ .nonce = greet->nonce, .known = greet->peer,
				      .before = greet->before, .asks = asks };
}

/**
 * orr_greet_moves - a greeting has come by another port than it is answered by: is that the right one?
 * @greet: this side
 * @node: this side's card
 * @peer_node: the other's
 * @reached: the other is reached by the port by which it is greeted
 *
 * Both must not give way. The card of the lower number decides.
 *
 * Return: whether it is.
 */
bool orr_greet_moves(const struct orr_greet *greet, u32 node, u32 peer_node, bool reached)
{
	return !greet->session && (!reached || peer_node < node);
}

/**
 * orr_greet_place - where can one more card be kept?
 * @uses: enum orr_place_use of each place
 * @count: of places
 * @last: the one that was found the last time; filled in
 *
 * Of those that are as good the next one, so that who has just been met stays for longest.
 *
 * Return: the place, @count: all are used.
 */
u32 orr_greet_place(const u8 uses[], u32 count, u32 *last)
{
	u32 i, best = count;

	for (i = 1; i <= count; i++) {
		u32 place = (*last + i) % count;

		if (uses[place] != ORR_PLACE_USED && (best == count || uses[place] < uses[best]))
			best = place;
	}
	if (best != count)
		*last = best;
	return best;
}
