/* SPDX-License-Identifier: MIT */
/*
 * The way of a job into a sleeping card: ring, doorbell, summary, need_wakeup, kick (orrery/hw/doorbell.h).
 *
 * Two threads of one process submit to a queue each; the queues share a doorbell page. The card polls, runs its firmware,
 * goes to sleep and is woken by kicks. Property: when everything has come to rest, every packet has been taken.
 *
 * Memory: a thread's plain and release stores wait in its store buffer and reach memory in any order, except that
 * a release store reaches it after the stores before it. An atomic addition is done in memory at once, but
 * says nothing about the buffer; a seq_cst fence empties the buffer. Loads come from memory, in program order. This is weaker
 * than x86, and as weak as C++ allows for the code in question (docs/memory-order.md tells which line is which).
 *
 * Each macro takes away one thing that the protocol needs; with any of them the search must find a lost job:
 *   NO_RELEASE, NO_SUBMIT_FENCE, NO_CARD_FENCE, NO_RECHECK, PLAIN_SUMMARY, LATE_CLEAR
 */
#define THREADS 2
#define JOBS 2

/* Ring and doorbell page in shared memory. */
byte producer[THREADS];
byte doorbell[THREADS];
byte summary;
bit need_wakeup;

/* Store buffers: of the submitters (their ring's producer and doorbell), ... */
byte buf_producer[THREADS]; /* 0: empty */
byte buf_doorbell[THREADS];
bit buf_summary[THREADS]; /* PLAIN_SUMMARY or NO_SUBMIT_FENCE: a sum that has not reached memory */
byte sum[THREADS];
/* ... of the card's thread, ... */
bit buf_need, buf_need_value;
bit buf_sleeping, buf_sleeping_value;

/* The card: kick flag, eventfd, the word that says that its thread sleeps. */
bit kicked, wake_fd, sleeping;
/* Trapped writes to the kick page that the I/O thread has not carried out. */
byte kicks;

/* The doorbell unit and the firmware. */
byte seen_summary;
byte seen[THREADS];
bit fifo[THREADS];
byte consumed[THREADS];
byte i;

#define submit_buffer_empty(t) (buf_producer[t] == 0 && buf_doorbell[t] == 0 && !buf_summary[t])
#define card_buffer_empty (!buf_need && !buf_sleeping)

active [THREADS] proctype submitter()
{
	byte job = 0;
	do
	:: job < JOBS ->
		job++;
		/* One store a word is in flight at most: a second one to the same word waits for the first (coherence). */
		atomic { buf_producer[_pid] == 0 -> buf_producer[_pid] = job }
		atomic { buf_doorbell[_pid] == 0 -> buf_doorbell[_pid] = job }
#ifdef PLAIN_SUMMARY
		/* An addition in two steps. */
		sum[_pid] = summary + 1;
		summary = sum[_pid];
#else
#ifdef NO_SUBMIT_FENCE
		/* What is left without the fence: the addition too may become visible after the load below. */
		atomic { !buf_summary[_pid] -> buf_summary[_pid] = 1 }
#else
		/* seq_cst, so also release: it follows the stores before it. */
		atomic { buf_producer[_pid] == 0 && buf_doorbell[_pid] == 0 -> summary++ }
#endif
#endif
#ifndef NO_SUBMIT_FENCE
		submit_buffer_empty(_pid); /* the fence */
#endif
		if
		:: need_wakeup -> kicks++
		:: !need_wakeup
		fi
	:: else -> break
	od
}

/* Store buffers of the submitters reach memory when they like. */
active proctype memory_of_submitters()
{
	byte t;
end:	do
	:: atomic { buf_producer[0] != 0 -> producer[0] = buf_producer[0]; buf_producer[0] = 0 }
	:: atomic { buf_producer[1] != 0 -> producer[1] = buf_producer[1]; buf_producer[1] = 0 }
#ifdef NO_RELEASE
	:: atomic { buf_doorbell[0] != 0 -> doorbell[0] = buf_doorbell[0]; buf_doorbell[0] = 0 }
	:: atomic { buf_doorbell[1] != 0 -> doorbell[1] = buf_doorbell[1]; buf_doorbell[1] = 0 }
#else
	:: atomic { buf_doorbell[0] != 0 && buf_producer[0] == 0 -> doorbell[0] = buf_doorbell[0]; buf_doorbell[0] = 0 }
	:: atomic { buf_doorbell[1] != 0 && buf_producer[1] == 0 -> doorbell[1] = buf_doorbell[1]; buf_doorbell[1] = 0 }
#endif
	:: atomic { buf_summary[0] && buf_doorbell[0] == 0 -> summary++; buf_summary[0] = 0 }
	:: atomic { buf_summary[1] && buf_doorbell[1] == 0 -> summary++; buf_summary[1] = 0 }
	od
}

active proctype memory_of_card()
{
end:	do
	:: atomic { buf_need -> need_wakeup = buf_need_value; buf_need = 0 }
	:: atomic { buf_sleeping -> sleeping = buf_sleeping_value; buf_sleeping = 0 }
	od
}

/* The card's I/O thread: Doorbells::kick(), then Card::wake(). */
active proctype io()
{
end:	do
	:: atomic { kicks > 0 -> kicks-- }
#ifdef LATE_CLEAR
		kicked = 1;
		need_wakeup = 0;
#else
		need_wakeup = 0; /* the next store releases it */
		kicked = 1; /* seq_cst, and a fence follows */
#endif
		if
		:: sleeping -> wake_fd = 1
		:: else
		fi
	od
}

/* Doorbells::scan(): which doorbells have another value than when they were last looked at. */
inline scan()
{
	d_step {
		i = 0;
		do
		:: i < THREADS ->
			if
			:: doorbell[i] != seen[i] -> seen[i] = doorbell[i]; fifo[i] = 1
			:: else
			fi;
			i++
		:: else -> i = 0; break
		od
	}
}

/* The firmware: pop the doorbell, then take what the ring's producer says until it says nothing new. */
inline serve(q)
{
	if
	:: fifo[q] ->
		d_step { fifo[q] = 0; seen[q] = doorbell[q] }
		do
		:: consumed[q] != producer[q] -> consumed[q] = producer[q]
		:: consumed[q] == producer[q] -> break
		od
	:: else
	fi
}

active proctype card()
{
	bit idle;
poll:
	/* Doorbells::poll(): remember the summary, then look at the doorbells. */
	if
	:: summary != seen_summary -> seen_summary = summary; scan()
	:: else
	fi;
	if
	:: kicked -> kicked = 0; scan()
	:: else
	fi;
	serve(0);
	serve(1);
	/* It spins for a while: here for as long as it likes. */
	if
	:: goto poll
	:: summary == seen_summary && !kicked && !fifo[0] && !fifo[1] -> skip
	fi;

	/* Card::sleep() */
	atomic { !buf_need -> buf_need = 1; buf_need_value = 1 }
	atomic { !buf_sleeping -> buf_sleeping = 1; buf_sleeping_value = 1 }
#ifndef NO_CARD_FENCE
	card_buffer_empty;
#endif
#ifdef NO_RECHECK
	idle = 1;
#else
	/* Two loads, in any order with what others do in between. */
	idle = (summary == seen_summary);
	idle = idle && !kicked;
#endif
	if
	:: idle ->
end_asleep:	wake_fd
	:: else
	fi;
	atomic { !buf_sleeping -> buf_sleeping = 1; buf_sleeping_value = 0 }
	wake_fd = 0;
	atomic { !buf_need -> buf_need = 1; buf_need_value = 0 }
	goto poll
}

/* Everything has come to rest: nobody can move but to wait. */
active proctype rest()
{
	timeout;
	assert(producer[0] == JOBS && producer[1] == JOBS);
	assert(consumed[0] == JOBS && consumed[1] == JOBS)
}
