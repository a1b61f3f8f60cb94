/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the ring of a card's trace sink is read. The card writes there as it likes, also while it is
 * read: what is there may be nonsense. orr_sink_rule.c calls nothing of the kernel's, so that
 * tests/fuzz/kmod has it read any ring.
 */
#ifndef _ORR_SINK_RULE_H_
#define _ORR_SINK_RULE_H_

#include <linux/types.h>

#include <orrery/hw/trace_sink.h>

#define ORR_SINK_BYTES (2u << 20)
#define ORR_SINK_RING (ORR_SINK_BYTES / sizeof(u64))

/* Of ORR_SINK_JOB, before its counters. */
#define ORR_SINK_JOB_WORDS 5u

/**
 * struct orr_sink_ring - what the card writes
 */
struct orr_sink_ring {
	/** @memory: its head, and at once behind that the ring */
	struct orr_trace_sink *memory;
	/** @before: words that it wrote before it was switched on last */
	u64 before;
};

/**
 * struct orr_sink_place - how far somebody has read
 */
struct orr_sink_place {
	/** @next: the first word that he has not seen, counted over all times the sink was on */
	u64 next;
	/** @end: behind the last that the card had written when he looked */
	u64 end;
	/** @from: @next, then */
	u64 from;
	/** @at: the record that he has got */
	u64 at;
	/** @size: its words, 2 at least */
	u32 size;
};

/* What is next there. */
enum orr_sink_step {
	ORR_SINK_RECORD,
	/* All until @end have been read, or enough words at once. */
	ORR_SINK_NO_MORE,
	/* Some were written over, or make no sense: he is at the end. */
	ORR_SINK_LOST,
};

u64 orr_sink_head(const struct orr_sink_ring *ring);
void orr_sink_take(const struct orr_sink_ring *ring, u64 position, u64 *words, u32 count);
bool orr_sink_overwritten(const struct orr_sink_ring *ring, u64 position);
bool orr_sink_look(const struct orr_sink_ring *ring, struct orr_sink_place *place, u64 next);
enum orr_sink_step orr_sink_next(const struct orr_sink_ring *ring, struct orr_sink_place *place,
				 u32 most, u64 *words, u32 count);
bool orr_sink_job(const struct orr_sink_ring *ring, u64 position, u64 *values);

#endif /* _ORR_SINK_RULE_H_ */
