/* SPDX-License-Identifier: MIT */
/*
 * Requests that pass through cards, and their answers (docs/links.md): three cards in a chain, 0 - 1 - 2, each of which asks
 * each other. A link has four channels each way with room of their own, here for one message: requests for the card at its
 * end and those that it passes on, and answers likewise. A card carries a request out when its answer has room, and takes an
 * answer to its own request at once. The control core of one card, or of none, takes nothing: then what is asked of that card
 * may wait for ever behind a signal, here always.
 *
 * Property: when everything has come to rest, all who asked a card that answers have their answer.
 *
 * Each macro takes away one thing that this needs; with any of them the search must find requests that are never answered:
 *   ONE_WAY: answers have the channels of requests
 *   HELD_ANSWERS: a card whose core takes nothing takes no answers either
 */
#define CARDS 3
#define NONE CARDS
#define LINKS 4 /* 0 -> 1, 1 -> 0, 1 -> 2, 2 -> 1 */
#define PAIR(from, to) ((from) * CARDS + (to))
#define ANSWER 16 /* a message that is one, to who is first in its pair */

/* The link by which a card sends to another, and the card at its end. */
#define LINK(from, to) link_to[PAIR(from, to)]
#define END(link) end_of[link]
#define FIRST(message) (((message) % ANSWER - 1) / CARDS)
#define SECOND(message) (((message) % ANSWER - 1) % CARDS)
/* Without a condition: which of the two its bit says. */
#define TO(message) (((message) / ANSWER) * FIRST(message) + (1 - (message) / ANSWER) * SECOND(message))

/* Constant. */
byte link_to[9], end_of[LINKS];

/* What waits at the end of a link: 1 + PAIR(), + ANSWER. */
byte near[LINKS], far[LINKS], near_back[LINKS], far_back[LINKS];
byte stuck;
bit answered[9];

#ifdef ONE_WAY
#define ROOM_BACK(link, to) ROOM(link, to)
#else
#define ROOM_BACK(link, to) ((END(link) == (to) && near_back[link] == 0) || (END(link) != (to) && far_back[link] == 0))
#endif
#define ROOM(link, to) ((END(link) == (to) && near[link] == 0) || (END(link) != (to) && far[link] == 0))

inline put(link, message)
{
	if
	:: END(link) == TO(message) -> near[link] = message
	:: else -> far[link] = message
	fi
}

inline put_back(link, message)
{
#ifdef ONE_WAY
	put(link, message)
#else
	if
	:: END(link) == TO(message) -> near_back[link] = message
	:: else -> far_back[link] = message
	fi
#endif
}

/* Twice each, so that what comes is more than there is room for. */
proctype asks(byte from; byte to)
{
	byte times;
end:	do
	:: atomic {
		times < 2 && ROOM(LINK(from, to), to) ->
		put(LINK(from, to), 1 + PAIR(from, to));
		times++
	}
	:: times == 2 -> break
	od
}

#ifdef HELD_ANSWERS
#define TAKES(link) (END(link) != stuck)
#else
#define TAKES(link) 1
#endif

proctype receiver(byte link)
{
end:	do
	/* A request for this card: carried out with its answer. */
	:: atomic {
		near[link] != 0 && near[link] < ANSWER && END(link) != stuck &&
		ROOM_BACK(LINK(END(link), FIRST(near[link])), FIRST(near[link])) ->
		put_back(LINK(END(link), FIRST(near[link])), near[link] + ANSWER);
		near[link] = 0
	}
	/* An answer to this card, in whichever channel it comes. */
	:: atomic { near[link] > ANSWER && TAKES(link) -> answered[near[link] - ANSWER - 1] = 1; near[link] = 0 }
	:: atomic { near_back[link] != 0 && TAKES(link) -> answered[near_back[link] - ANSWER - 1] = 1; near_back[link] = 0 }
	/* What is passed on. */
	:: atomic {
		far[link] != 0 && ROOM(LINK(END(link), TO(far[link])), TO(far[link])) ->
		put(LINK(END(link), TO(far[link])), far[link]);
		far[link] = 0
	}
	:: atomic {
		far_back[link] != 0 && ROOM_BACK(LINK(END(link), TO(far_back[link])), TO(far_back[link])) ->
		put_back(LINK(END(link), TO(far_back[link])), far_back[link]);
		far_back[link] = 0
	}
	od
}

/* Everything has come to rest: nobody can move. */
proctype rest()
{
	byte pair;
	timeout;
	do
	:: pair < 9 ->
		assert(pair / CARDS == pair % CARDS || pair % CARDS == stuck || answered[pair]);
		pair++
	:: else -> break
	od
}

init {
	byte i;
	d_step {
		link_to[PAIR(1, 0)] = 1;
		link_to[PAIR(1, 2)] = 2;
		link_to[PAIR(2, 0)] = 3;
		link_to[PAIR(2, 1)] = 3;
		end_of[0] = 1;
		end_of[2] = 2;
		end_of[3] = 1
	}
	select(i : 0 .. NONE);
	atomic {
		stuck = i;
		run asks(0, 1);
		run asks(0, 2);
		run asks(1, 0);
		run asks(1, 2);
		run asks(2, 0);
		run asks(2, 1);
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
