// SPDX-License-Identifier: GPL-2.0
/*
 * Reading of the trace sink's ring. Whatever the card writes: reading is within the ring, it comes to an
 * end, and who has missed something hears of it.
 */
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <asm/barrier.h>

#include "orr_sink_rule.h"

/**
 * orr_sink_head - words of whole records so far, of all times
 * @ring: the ring
 *
 * Return: how many, as the card has it.
 */
u64 orr_sink_head(const struct orr_sink_ring *ring)
{
	u64 head = READ_ONCE(ring->memory->head);

	dma_rmb();
	return ring->before + head;
}

/**
 * orr_sink_take - read words
 * @ring: the ring
 * @position: of the first, counted as orr_sink_head()
 * @words: filled
 * @count: with so many
 *
 * What it reads is to be believed only if orr_sink_overwritten() denies it behind that.
 */
void orr_sink_take(const struct orr_sink_ring *ring, u64 position, u64 *words, u32 count)
{
	const u64 *from = (const u64 *)(ring->memory + 1);
	u32 place = (position - ring->before) % ORR_SINK_RING;
	u32 i;

	for (i = 0; i < count; i++) {
		words[i] = READ_ONCE(from[place]);
		place = (place + 1) % ORR_SINK_RING;
	}
}

/**
 * orr_sink_overwritten - whether words that were read before may have been written over then
 * @ring: the ring
 * @position: of the record that they are of
 *
 * Return: whether; also if the card has not come there.
 */
bool orr_sink_overwritten(const struct orr_sink_ring *ring, u64 position)
{
	dma_rmb();
	return orr_sink_head(ring) + ORR_SINK_MARGIN - position > ORR_SINK_RING;
}

/**
 * orr_sink_look - see how far the card is
 * @ring: the ring
 * @place: filled
 * @next: the first word that has not been read
 *
 * Return: whether it is there or further; if not, which is nonsense, @place is where it says to be.
 */
bool orr_sink_look(const struct orr_sink_ring *ring, struct orr_sink_place *place, u64 next)
{
	const u64 end = orr_sink_head(ring);

	place->end = end;
	place->next = min(next, end);
	place->from = place->next;
	return next <= end;
}

/**
 * orr_sink_next - the next record
 * @ring: the ring
 * @place: goes on
 * @most: words that are looked at since orr_sink_look()
 * @words: filled
 * @count: with so many words of it; behind its last one they are anything
 *
 * Return: what it is.
 */
enum orr_sink_step orr_sink_next(const struct orr_sink_ring *ring, struct orr_sink_place *place,
				 u32 most, u64 *words, u32 count)
{
	if (place->next >= place->end || place->next - place->from >= most)
		return ORR_SINK_NO_MORE;
	orr_sink_take(ring, place->next, words, count);
	place->size = ORR_SINK_WORDS(words[1]);
	if (orr_sink_overwritten(ring, place->next) || place->size > place->end - place->next) {
		place->next = place->end;
		return ORR_SINK_LOST;
	}
	place->at = place->next;
	place->next += place->size;
	return ORR_SINK_RECORD;
}

/**
 * orr_sink_job - what a job did
 * @ring: the ring
 * @position: of its record, which was there once
 * @values: ORR_JOB_COUNTERS, filled: what the record does not have is 0
 *
 * Return: whether it is there still, and makes sense; if not, @values are nothing.
 */
bool orr_sink_job(const struct orr_sink_ring *ring, u64 position, u64 *values)
{
	u64 words[ORR_SINK_JOB_WORDS + ORR_JOB_COUNTERS];
	u32 size, from = ORR_SINK_JOB_WORDS;
	u64 there;

	memset(values, 0, ORR_JOB_COUNTERS * sizeof(*values));
	orr_sink_take(ring, position, words, from);
	/* A card may count more than is known here, behind these. */
	size = min_t(u32, ORR_SINK_WORDS(words[1]), from + ORR_JOB_COUNTERS);
	if (size < from)
		return false;
	orr_sink_take(ring, position + from, words + from, size - from);
	if (orr_sink_overwritten(ring, position))
		return false;
	for (there = words[4] & GENMASK_ULL(ORR_JOB_COUNTERS - 1, 0); there; there &= there - 1) {
		if (from == size)
			return false;
		values[__ffs64(there)] = words[from++];
	}
	return true;
}
