/* SPDX-License-Identifier: MIT */
/*
 * Two gangs over the same two cards, preempted as wholes: firmware/sched/sync/gang.h.
 *
 * Each card is a thread of its own, and hears what the other says over a link that takes its time and keeps the order.
 * A gang's part is a kernel that waits for the other part: it ends only when both have run at the same time. So a gang of
 * which one part alone resumes never ends, and holds its card. A card asks a gang to leave whenever the other one waits
 * there; a part may fail at any moment. Times are no part of this: nobody gives up here because he has waited for long.
 * Property: at rest every part has ended, or has failed and so has the other or it had ended before.
 *
 * With any of these the search must find parts that never end:
 *   SILENT_END (a part that has ended does not say so), DEAF (a card that runs does not hear of a further attempt),
 *   ANY_ORDER (cards lock without waiting for those of lower numbers), SILENT_FAILURE (a part that fails does not say so)
 */
#define GANGS 2
#define CARDS 2
#define MOST 2 /* attempts; slices are long enough to come to an end by then */

#define LOCKED 2
#define HELD 3
#define SAID(a, s) ((a) * 8 + (s))
#define ARRIVED 1
#define DONE 250
#define FAILED 251

#define NOBODY GANGS

/* A part's step. */
#define WAITS 0
#define LOCKS 1
#define HOLDS 2
#define RUNS 3
#define SAVES 4
#define ENDED 5
#define LOST 6

byte step[GANGS * CARDS];
byte attempt[GANGS * CARDS];
byte heard[GANGS * CARDS]; /* of the other card, by this one */
byte lock[CARDS] = NOBODY;
byte runs[CARDS] = NOBODY;
bit met[GANGS]; /* both parts have run at the same time */
bit failures; /* that may still come */

chan link[CARDS] = [6] of { byte, byte };

#define PART(g, c) ((g) * CARDS + (c))
#define say(value) link[1 - c]!g, value

/* The other card has begun a further attempt. */
#define further (heard[p] < DONE && heard[p] / 8 > attempt[p])
#ifdef SILENT_FAILURE
#define tell_failure() skip
#else
#define tell_failure() say(FAILED)
#endif
#ifdef SILENT_END
#define tell_end() skip
#else
#define tell_end() say(DONE)
#endif
#ifdef ANY_ORDER
#define lower_locked 1
#else
#define lower_locked (c == 0 || heard[p] >= SAID(attempt[p], LOCKED))
#endif
#define all_held (heard[p] >= SAID(attempt[p], HELD))
#ifdef DEAF
#define hears 0
#else
#define hears further
#endif

inline leave_card()
{
	if :: lock[c] == g -> lock[c] = NOBODY :: else fi;
	if :: runs[c] == g -> runs[c] = NOBODY :: else fi
}

inline meet()
{
	if :: step[PART(g, 0)] == RUNS && step[PART(g, 1)] == RUNS -> met[g] = 1 :: else fi
}

proctype part(byte g; byte c)
{
	byte p = PART(g, c);
	byte other = PART(1 - g, c);
	do
	:: atomic { step[p] == WAITS && heard[p] != FAILED && further -> attempt[p] = heard[p] / 8 }
	:: atomic {
		step[p] == WAITS && heard[p] != FAILED && !further && lock[c] == NOBODY && runs[c] == NOBODY && lower_locked ->
		lock[c] = g;
		step[p] = LOCKS;
		say(SAID(attempt[p], LOCKED))
	}
	:: atomic {
		(step[p] == LOCKS || step[p] == HOLDS) && heard[p] != FAILED && further ->
		attempt[p] = heard[p] / 8;
		leave_card();
		step[p] = WAITS
	}
	:: atomic {
		step[p] == LOCKS && heard[p] != FAILED && !further && heard[p] >= SAID(attempt[p], LOCKED) ->
		step[p] = HOLDS;
		say(SAID(attempt[p], HELD))
	}
	:: atomic {
		step[p] == HOLDS && heard[p] != FAILED && !further && all_held ->
		lock[c] = NOBODY;
		runs[c] = g;
		step[p] = RUNS;
		meet()
	}
	/* REALTIME has come, or its turn is over: all give back what they have locked. */
	:: atomic {
		step[p] == LOCKS && attempt[p] < MOST && !further ->
		attempt[p]++;
		leave_card();
		step[p] = WAITS;
		say(SAID(attempt[p], ARRIVED))
	}
	/* Another one waits for what it has, or somebody else asks. */
	:: atomic {
		step[p] == RUNS && step[other] == WAITS && attempt[p] < MOST && !further ->
		attempt[p]++;
		step[p] = SAVES;
		say(SAID(attempt[p], ARRIVED))
	}
	:: atomic { step[p] == RUNS && hears -> attempt[p] = heard[p] / 8; step[p] = SAVES }
	:: atomic { step[p] == SAVES -> runs[c] = NOBODY; step[p] = WAITS }
	/* It may end before it has been saved. */
	:: atomic {
		(step[p] == RUNS || step[p] == SAVES) && met[g] ->
		runs[c] = NOBODY;
		step[p] = ENDED;
		tell_end();
		break
	}
	/* Its queue stops, wherever it is. */
	:: atomic {
		failures > 0 && g == 0 ->
		failures--;
		leave_card();
		step[p] = LOST;
		tell_failure();
		break
	}
	/* The other part will never come: who has stopped is told, who runs comes to his own limit. */
	:: atomic { heard[p] == FAILED -> leave_card(); step[p] = LOST; break }
	od
}

/* The links: what was said is on the board some time later. */
active [CARDS] proctype board()
{
	byte g, v;
end:	do
	:: atomic {
		link[_pid]?g, v ->
		if :: heard[PART(g, _pid)] < v -> heard[PART(g, _pid)] = v :: else fi;
		g = 0;
		v = 0
	}
	od
}

active proctype rest()
{
	if :: failures = 0 :: failures = 1 fi;
	atomic {
		run part(0, 0);
		run part(0, 1);
		run part(1, 0);
		run part(1, 1)
	}
	timeout;
	assert(step[0] >= ENDED && step[1] >= ENDED && step[2] >= ENDED && step[3] >= ENDED);
	assert(lock[0] == NOBODY && lock[1] == NOBODY && runs[0] == NOBODY && runs[1] == NOBODY)
}
