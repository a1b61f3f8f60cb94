/* SPDX-License-Identifier: MIT */
/*
 * How a queue that waits for a semaphore wakes up: parked in a table by the memory that it waits for; woken by a signal of
 * another queue of this card, or by one of a linked card (SOC_POKE_POP).
 *
 * The firmware is one thread that looks at interrupt lines and sleeps in WFI. The link receiver is hardware: it
 * writes the semaphore and then puts its address into the poke FIFO, whose line is a level. A second queue of this card
 * signals the same semaphore with a lower and a higher value. Property: at rest nobody waits for a value that stands.
 *
 * With any of these the search must find a waiter that nobody wakes:
 *   POKE_FIRST (the FIFO before the memory), EDGE_LINE (the line tells only of a change while the core sleeps),
 *   DRAIN_EARLY (the FIFO is emptied between the look at the value and the parking)
 */
#define WANTED 2

byte value;
byte pokes; /* entries in the FIFO */
bit parked, woken; /* the waiting queue */
bit line; /* EDGE_LINE: the event */
bit local_ready = 1; /* the signalling queue has packets */
byte local_next = 1;

#ifdef EDGE_LINE
bit sleeping;
#define raise_line() if :: sleeping -> line = 1 :: else fi
#define line_up line
#else
#define raise_line() skip
#define line_up (pokes > 0)
#endif

/* The receiver of the link: two signals of the peer. */
active proctype link()
{
	byte v = 1;
	do
	:: v <= WANTED ->
#ifdef POKE_FIRST
		pokes++;
		raise_line();
		if :: value < v -> value = v :: else fi;
#else
		/* The semaphore only grows. */
		d_step { if :: value < v -> value = v :: else fi }
		pokes++;
		raise_line();
#endif
		v++
	:: else -> break
	od
}

inline wake_waiters()
{
	/* The entry in the table is looked up by memory; its value is read again. */
	if
	:: parked && value >= WANTED -> parked = 0; woken = 1
	:: else
	fi
}

inline drain_pokes()
{
	do
	:: pokes > 0 -> pokes--; wake_waiters()
	:: pokes == 0 -> break
	od
}

active proctype firmware()
{
	byte seen;
	bit waiting_started = 0;
	bit work;
pass:
	work = 0;
	if
	:: line_up ->
		work = 1;
#ifdef EDGE_LINE
		line = 0;
#endif
		drain_pokes()
	:: else
	fi;
	/* One queue gets its turn: the waiting one ... */
	if
	:: !waiting_started ->
		waiting_started = 1;
		work = 1;
		seen = value;
#ifdef DRAIN_EARLY
		drain_pokes();
#endif
		if
		:: seen >= WANTED -> woken = 1
		:: else -> parked = 1
		fi
	:: else
	fi;
	/* ... or the one that signals, if its process submitted something at all. */
	if
	:: local_ready && local_next < WANTED ->
		work = 1;
		d_step { if :: value < local_next -> value = local_next :: else fi }
		local_next++;
		wake_waiters()
	:: local_ready -> local_ready = 0
	:: else
	fi;
	if
	:: work -> goto pass
	:: else
	fi;
#ifdef EDGE_LINE
	sleeping = 1;
#endif
end_wfi:	line_up;
#ifdef EDGE_LINE
	sleeping = 0;
#endif
	goto pass
}

active proctype rest()
{
	timeout;
	assert(value >= WANTED);
	assert(woken && !parked)
}
