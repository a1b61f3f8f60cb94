/* SPDX-License-Identifier: MIT */
/*
 * A tree of switches (docs/switch.md): three leaves with a card each, and a spine that joins them. Each card sends a message to
 * each other. A link has a channel each way with room for one message at its end; what finds no room holds up what is
 * behind it, whomever that is for.
 *
 * Ways go up and then down, so what waits waits for a link nearer to a card, and cards take what they get.
 *
 * Property: when everything has come to rest, all is there.
 *
 * With this the search must find messages that stay on the way:
 *   SAME_LEVEL: the leaves are joined to each other, in a ring, and there is no spine
 */
#define LEAVES 3
#define PAIR(from, to) ((from) * LEAVES + (to))
#define TO(message) (((message) - 1) % LEAVES)

/* What waits at the end of a link: 1 + PAIR(). At the leaf of a card, at the spine of a leaf; at a leaf, at its card. */
byte enters[LEAVES], climbs[LEAVES], falls[LEAVES], leaves[LEAVES];
bit there[9]; /* of each pair */

proctype sender(byte from; byte to)
{
	atomic { enters[from] == 0; enters[from] = 1 + PAIR(from, to) }
}

#define LEAF(channel, l) \
	:: atomic { channel[l] != 0 && TO(channel[l]) == l && leaves[l] == 0 -> leaves[l] = channel[l]; channel[l] = 0 } \
	:: atomic { channel[l] != 0 && TO(channel[l]) != l && ONWARD(l) == 0 -> ONWARD(l) = channel[l]; channel[l] = 0 }
#ifdef SAME_LEVEL
#define ONWARD(l) falls[(l + 1) % LEAVES]
#else
#define ONWARD(l) climbs[l]
#endif

proctype leaf(byte l)
{
end:	do
	LEAF(enters, l)
	LEAF(falls, l)
	:: atomic { leaves[l] != 0 -> there[leaves[l] - 1] = 1; leaves[l] = 0 }
	od
}

proctype spine(byte l)
{
end:	do
	:: atomic { climbs[l] != 0 && falls[TO(climbs[l])] == 0 -> falls[TO(climbs[l])] = climbs[l]; climbs[l] = 0 }
	od
}

/* Everything has come to rest: nobody can move. */
proctype rest()
{
	byte pair;
	timeout;
	do
	:: pair < 9 -> assert(pair / LEAVES == pair % LEAVES || there[pair]); pair++
	:: else -> break
	od
}

init {
	byte i;
	atomic {
		do
		:: i < LEAVES ->
			run sender(i, (i + 1) % LEAVES);
			run sender(i, (i + 2) % LEAVES);
			run leaf(i);
			run spine(i);
			i++
		:: else -> break
		od;
		run rest()
	}
}
