/* SPDX-License-Identifier: MIT */
/*
 * Messages that pass through cards (docs/links.md): four cards in a ring, 0 - 1 - 2 - 3 - 0, each of which sends to each
 * other. A link has two channels each way with credits of their own, here for one message: near, for the card at its
 * end, and far, for what that card passes on. The control core of one card, or of none, never takes what it gets.
 *
 * Routes go up and then down: towards card 0 first, and never towards it again once they have gone away from it.
 *
 * Property: when everything has come to rest, all is there that was for a card whose core takes what it gets.
 *
 * Each macro takes away one thing that this needs; with any of them the search must find messages that stay on the way:
 *   ONE_CHANNEL: near and far messages have one channel in common
 *   ANY_ROUTE: routes may go round the ring
 */
#define CARDS 4
#define NONE CARDS
#define LINKS 8 /* from card c clockwise is 2 * c, the other way 2 * c + 1 */
#define PAIR(from, to) ((from) * CARDS + (to))

/* Constant: the link by which a card sends to another, and the card at the end of a link. */
byte link_to[16];
byte end_of[LINKS];

/* What waits at the end of a link: 1 + PAIR(). */
byte near[LINKS], far[LINKS];
byte stuck;   /* whose core takes nothing */
bit there[16]; /* of each pair */

#define TO(message) (((message) - 1) % CARDS)
#ifdef ONE_CHANNEL
#define FREE(channel, link) (near[link] == 0 && far[link] == 0)
#else
#define FREE(channel, link) (channel[link] == 0)
#endif
#define ROOM(link, to) \
	((end_of[link] == (to) && FREE(near, link)) || (end_of[link] != (to) && FREE(far, link)))

inline put(link, message)
{
	if
	:: end_of[link] == TO(message) -> near[link] = message
	:: else -> far[link] = message
	fi
}

/* Each pair of cards has a sender of its own: engines do not wait for one another. */
proctype sender(byte from; byte to)
{
	/* It may wait for ever for one that is stuck. */
end:	atomic {
		ROOM(link_to[PAIR(from, to)], to);
		put(link_to[PAIR(from, to)], 1 + PAIR(from, to))
	}
}

/* What the card at the end of a link does. */
proctype receiver(byte link)
{
	byte next;
end:	do
	:: atomic { near[link] != 0 && end_of[link] != stuck -> there[near[link] - 1] = 1; near[link] = 0 }
	/* Whatever its core does. */
	:: atomic {
		far[link] != 0 && ROOM(link_to[PAIR(end_of[link], TO(far[link]))], TO(far[link])) ->
		next = link_to[PAIR(end_of[link], TO(far[link]))];
		put(next, far[link]);
		far[link] = 0;
		next = 0
	}
	od
}

/* Everything has come to rest: nobody can move. */
proctype rest()
{
	byte pair;
	timeout;
	do
	:: pair < 16 ->
		assert(pair / CARDS == pair % CARDS || pair % CARDS == stuck || there[pair]);
		pair++
	:: else -> break
	od
}

inline layout()
{
	byte card, other;
	do
	:: card < CARDS ->
		end_of[2 * card] = (card + 1) % CARDS;
		end_of[2 * card + 1] = (card + CARDS - 1) % CARDS;
		other = 0;
		do
		:: other < CARDS ->
			link_to[PAIR(card, other)] = 2 * card;
#ifndef ANY_ROUTE
			if
			:: (other + 1) % CARDS == card -> link_to[PAIR(card, other)] = 2 * card + 1
			:: else
			fi;
#endif
			other++
		:: else -> break
		od;
		card++
	:: else -> break
	od;
#ifndef ANY_ROUTE
	/* Of those at opposite corners: 1 and 3 by 0, never by 2; 0 and 2 by 1. */
	link_to[PAIR(1, 3)] = 3;
	link_to[PAIR(3, 1)] = 6;
	link_to[PAIR(0, 2)] = 0;
	link_to[PAIR(2, 0)] = 5;
#endif
	card = 0;
	other = 0
}

init {
	byte i;
	d_step { layout() }
	select(i : 0 .. NONE);
	atomic {
		stuck = i;
		i = 0;
		do
		:: i < CARDS ->
			run sender(i, (i + 1) % CARDS);
			run sender(i, (i + 2) % CARDS);
			run sender(i, (i + 3) % CARDS);
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < LINKS ->
			run receiver(i);
			i++
		:: else -> break
		od;
		run rest()
	}
}
