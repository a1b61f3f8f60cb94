/* SPDX-License-Identifier: MIT */
/*
 * A switch (docs/switch.md) with three cards, each of which writes to both others by a multicast and reads both by one, at
 * the same time. Each way between a card and the switch has two channels with credits of their own, here for one message:
 * requests and answers. A card carries a read out when its answer has room, and takes answers at once.
 *
 * What finds no room at one member's port goes to the other, and then stays where it is, holding no room. Of the answers
 * to a read each is taken when it comes, but the last one, which stays until the answer of all has room.
 *
 * Property: when everything has come to rest, each card has what the others wrote, and the answer to what it read.
 *
 * Each macro takes away one thing that this needs; with any of them the search must find cards that wait for ever:
 *   HOLD_ROOM: a copy has its room as soon as there is some, and leaves when all have theirs
 *   HELD_ANSWERS: an answer waits in its channel for that of the member before it
 *   ONE_WAY: answers have the channels of requests
 */
#define CARDS 3
#define WRITE 1
#define READ 2
/* An answer or a part of a read is 1 + the number of the card that reads. */

/* At the switch, of the card there; at the card, of the switch. */
byte asked[CARDS], answered[CARDS]; /* WRITE or READ; whose read */
byte asks_write[CARDS], asks_read[CARDS], answers[CARDS]; /* at the card: whose */
byte room[CARDS]; /* 1 + the port that holds it */
byte got[CARDS];  /* of the read of each card: a bit of each that answered */
byte written[CARDS]; /* a bit of each that wrote there */
bit done[CARDS];

#define OTHERS(card) (7 - (1 << (card)))
#define IS_LAST(card, reader) ((got[reader] | 1 << (card)) == OTHERS(reader))
#ifdef HELD_ANSWERS
#define IN_TURN(card, reader) (((reader) + 1) % CARDS == (card) || got[reader] != 0)
#else
#define IN_TURN(card, reader) true
#endif
#ifdef ONE_WAY
#define UP_FREE(card) (asked[card] == 0 && answered[card] == 0)
#define DOWN_FREE(card) (asks_write[card] == 0 && asks_read[card] == 0 && answers[card] == 0)
#define ASK_FREE(card) UP_FREE(card)
#define ANSWER_FREE(card) UP_FREE(card)
#define SEND_FREE(card) DOWN_FREE(card)
#define REPLY_FREE(card) DOWN_FREE(card)
#else
#define ASK_FREE(card) (asked[card] == 0)
#define ANSWER_FREE(card) (answered[card] == 0)
#define SEND_FREE(card) (asks_write[card] == 0 && asks_read[card] == 0)
#define REPLY_FREE(card) (answers[card] == 0)
#endif

proctype engine(byte card; byte what)
{
	atomic { ASK_FREE(card); asked[card] = what }
}

/* What a card does with what is asked of it, and with what it is answered. */
proctype card(byte me)
{
end:	do
	:: atomic {
		asks_write[me] != 0 ->
		written[me] = written[me] | (1 << (asks_write[me] - 1));
		asks_write[me] = 0
	}
	:: atomic { asks_read[me] != 0 && ANSWER_FREE(me) -> answered[me] = asks_read[me]; asks_read[me] = 0 }
	:: atomic { answers[me] != 0 -> done[me] = 1; answers[me] = 0 }
	od
}

inline send(to)
{
	if
	:: asked[me] == WRITE -> asks_write[to] = 1 + me
	:: else -> asks_read[to] = 1 + me
	fi
}

/* Requests of one port. */
proctype requests(byte me)
{
	byte copied;
	byte first = (me + 1) % CARDS, second = (me + 2) % CARDS;
end:	do
#ifdef HOLD_ROOM
	:: atomic { asked[me] != 0 && !(copied & 1) && SEND_FREE(first) && room[first] == 0 ->
		room[first] = 1 + me; copied = copied | 1 }
	:: atomic { asked[me] != 0 && !(copied & 2) && SEND_FREE(second) && room[second] == 0 ->
		room[second] = 1 + me; copied = copied | 2 }
	:: atomic { copied == 3 -> send(first); send(second); room[first] = 0; room[second] = 0;
		copied = 0; asked[me] = 0 }
#else
	:: atomic { asked[me] != 0 && !(copied & 1) && SEND_FREE(first) -> send(first); copied = copied | 1 }
	:: atomic { asked[me] != 0 && !(copied & 2) && SEND_FREE(second) -> send(second); copied = copied | 2 }
	:: atomic { copied == 3 -> copied = 0; asked[me] = 0 }
#endif
	od
}

/* Answers of one port. */
proctype parts(byte me)
{
	byte reader;
end:	do
	:: atomic {
		answered[me] != 0 && IN_TURN(me, answered[me] - 1) &&
		(!IS_LAST(me, answered[me] - 1) || REPLY_FREE(answered[me] - 1)) ->
		reader = answered[me] - 1;
		got[reader] = got[reader] | (1 << me);
		answered[me] = 0;
		if
		:: got[reader] == OTHERS(reader) -> answers[reader] = 1
		:: else
		fi;
		reader = 0
	}
	od
}

/* Everything has come to rest: nobody can move. */
proctype rest()
{
	byte me;
	timeout;
	do
	:: me < CARDS -> assert(written[me] == OTHERS(me) && done[me]); me++
	:: else -> break
	od
}

init {
	byte i;
	atomic {
		do
		:: i < CARDS ->
			run engine(i, WRITE);
			run engine(i, READ);
			run card(i);
			run requests(i);
			run parts(i);
			i++
		:: else -> break
		od;
		run rest()
	}
}
