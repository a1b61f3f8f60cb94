/* SPDX-License-Identifier: MIT */
/*
 * A semaphore in host memory: the units of two cards raise it, a third closes it (emulator/memory/semaphore.h). Value v is
 * signalled at time 4 - v by one and at 4 + v by the other: the clocks of two cards have nothing to do with each other.
 * Properties: values only grow; the time is that of the value that stands, once nobody writes; CLOSED stays.
 *
 * With any of these the search must find one of them broken:
 *   TIME_FIRST (the time is stored, then the value exchanged by itself)
 *   CLOSE_BY_STORE (CLOSED is set by a load and a store of the time)
 */
byte value, time = 4;
bit closed, was_closed;
byte done;

inline raise(v, t)
{
	do
	:: d_step { seen = value; seen_time = time; seen_closed = closed };
		if
		:: v <= seen -> break
		:: else
		fi;
#ifdef TIME_FIRST
		d_step { time = t; closed = seen_closed };
		d_step {
			if
			:: value == seen -> value = v; won = 1
			:: else -> won = 0
			fi
		}
#else
		d_step {
			if
			:: value == seen && time == seen_time && closed == seen_closed -> value = v; time = t; won = 1
			:: else -> won = 0
			fi
		}
#endif
		if
		:: won -> break
		:: else
		fi
	od
}

proctype unit(bit later)
{
	byte v = 1, t, seen, seen_time;
	bit seen_closed, won;
	do
	:: v <= 2 ->
		t = (later -> 4 + v : 4 - v);
		/* One unit has only the odd values, so that values identify their times. */
		if
		:: later -> raise(v * 2, t)
		:: else -> raise(v * 2 - 1, t)
		fi;
		v++
	:: else -> break
	od;
	done++
}

active proctype closer()
{
	byte seen_time;
#ifdef CLOSE_BY_STORE
	seen_time = time;
	d_step { time = seen_time; closed = 1; was_closed = 1 };
#else
	d_step { closed = 1; was_closed = 1 };
#endif
	done++
}

active proctype watch()
{
	byte least;
	do
	:: atomic { assert(value >= least); assert(!was_closed || closed); least = value }
		if
		:: done == 3 -> break
		:: else
		fi
	od;
	assert(closed);
	/* 1: 3, 2: 5, 3: 2, 4: 6 */
	assert(value == 4 && time == 6)
}

init
{
	atomic { run unit(0); run unit(1) }
}
