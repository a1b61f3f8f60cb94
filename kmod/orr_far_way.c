// SPDX-License-Identifier: GPL-2.0
/*
 * What follows from the answers of a search over machines (orr_far.c): whether somebody is stuck, which
 * streams the circle has, and what notes say of it.
 */
#include <linux/bits.h>
#include <linux/ctype.h>
#include <linux/slab.h>

#include "orr_device.h"
#include "orr_far.h"
#include "orr_far_search.h"

static_assert(sizeof_field(struct orr_note, secret) + sizeof_field(struct orr_note, pad) ==
	      ORR_QUEUE_NAME_BYTES);
static_assert(ORR_FAR_NAME_BYTES == ORR_QUEUE_NAME_BYTES);
static_assert(ORR_FAR_WAITS == ORR_LOOK_MAX_FAR);
/* Where in an offset, which is one in the memory of a card, the path's last mark is. */
#define ORR_FAR_OFFSET_BITS 48

static void orr_far_name_put(struct orr_note *note, const char *name)
{
	memcpy(note->secret, name, sizeof(note->secret));
	memcpy(note->pad, name + sizeof(note->secret), sizeof(note->pad));
}

/**
 * orr_far_name_get - another machine's text, which goes to terminals here
 * @note: in which it stands
 * @name: filled in, ORR_QUEUE_NAME_BYTES
 */
void orr_far_name_get(const struct orr_note *note, char *name)
{
	u32 i;

	memcpy(name, note->secret, sizeof(note->secret));
	memcpy(name + sizeof(note->secret), note->pad, sizeof(note->pad));
	name[ORR_QUEUE_NAME_BYTES - 1] = '\0';
	for (i = 0; name[i]; i++)
		if (!isascii(name[i]) || !isprint(name[i]))
			name[i] = '?';
	memset(name + i, 0, ORR_QUEUE_NAME_BYTES - i);
}

/**
 * orr_far_question - what another driver is asked
 * @search: for which
 * @i: the question
 *
 * Return: the note.
 */
struct orr_note orr_far_question(const struct orr_far_search *search, u32 i)
{
	const struct orr_far_ask *ask = &search->state.ask[i];
	const u16 *path = search->state.path;
	struct orr_note note = orr_fabric_say(ORR_NOTE_STUCK, ask->tag);

	static_assert(ORR_FAR_PATH == 6);
	note.object = cpu_to_le64(search->state.id | (u64)path[0] << 32 | (u64)path[1] << 48);
	note.status = cpu_to_le32(path[2] | (u32)path[3] << 16);
	note.epoch = cpu_to_le16(path[4]);
	note.base = cpu_to_le64(ask->offset | (u64)path[5] << ORR_FAR_OFFSET_BITS);
	note.size = cpu_to_le64(ask->wanted);
	note.number = cpu_to_le16(ask->number);
	orr_far_name_put(&note, ask->name);
	return note;
}

/**
 * orr_far_question_take - what has another driver asked?
 * @search: filled in, whose card is
 * @note: what has come
 */
void orr_far_question_take(struct orr_far_search *search, const struct orr_note *note)
{
	const u64 object = le64_to_cpu(note->object), base = le64_to_cpu(note->base);
	const u32 status = le32_to_cpu(note->status);
	const u16 path[ORR_FAR_PATH] = { object >> 32, object >> 48, status, status >> 16,
					 le16_to_cpu(note->epoch), base >> ORR_FAR_OFFSET_BITS };

	memcpy(search->state.path, path, sizeof(path));
	search->state.id = lower_32_bits(object);
	search->number = note->number;
	search->import = (struct orr_look_import){ .odev = search->from, .at = search->at,
						   .tag = le32_to_cpu(note->tag),
						   .offset = base & GENMASK_ULL(ORR_FAR_OFFSET_BITS - 1, 0) };
	search->wanted = le64_to_cpu(note->size);
	orr_far_name_get(note, search->name);
}

static u64 orr_far_stamp(const struct orr_far_search *search)
{
	u64 stamp = search->stamp;
	u32 i;

	/* A sum, as it is not always the same driver that asks first what two lead to. */
	for (i = 0; i < search->state.asks; i++)
		stamp += search->state.ask[i].stamp;
	return stamp ?: 1;
}

/**
 * orr_far_keep_hops - keep the way from a wait of another machine on
 * @search: which asks about it
 * @look: with it in the path
 */
void orr_far_keep_hops(struct orr_far_search *search, const struct orr_look *look)
{
	struct orr_hop *first = &search->hop[0];
	u32 i;

	search->hops = min(look->length, ORR_FAR_HOPS);
	for (i = 0; i < search->hops; i++)
		orr_hop_take(&search->hop[i], look, look->path[i]);
	first->node = search->node;
	first->uid = first->signaller_uid;
	memcpy(first->name, search->name, sizeof(first->name));
}

static bool orr_hop_is(const struct orr_hop *one, const struct orr_hop *other)
{
	return one->has_queue && other->has_queue && one->card == other->card &&
	       one->queue == other->queue;
}

/* Where the way meets what was looked at; ORR_LOOK_NONE: nowhere. */
static u32 orr_far_meets(const struct orr_look *look, const struct orr_hop *hop)
{
	struct orr_hop own;
	u32 i;

	for (i = 0; i < look->length; i++) {
		orr_hop_take(&own, look, look->path[i]);
		if (orr_hop_is(&own, hop))
			return i;
	}
	return ORR_LOOK_NONE;
}

/*
 * The way back from another machine, as far as this one was asked about it: whose wait that was, and who of
 * this machine holds it. Return: whether it comes back to what was looked at.
 */
static bool orr_far_back(const struct orr_far_search *back, struct orr_look *look,
			 struct orr_far_cycle *cycle)
{
	struct orr_hop *last = &cycle->hop[cycle->count - 1];
	u32 i, meets;

	if (last->node == back->hop[0].node &&
	    !memcmp(last->name, back->hop[0].name, sizeof(last->name))) {
		kuid_t uid = last->uid;

		*last = back->hop[0];
		last->uid = uid;
	} else {
		cycle->hop[cycle->count++] = back->hop[0];
	}
	for (i = 1; i < back->hops; i++) {
		meets = orr_far_meets(look, &back->hop[i]);
		if (meets != ORR_LOOK_NONE) {
			look->lead = meets;
			return true;
		}
		cycle->hop[cycle->count++] = back->hop[i];
	}
	return false;
}

/* The question to which the way leads, and to which the answer is that it is held there, or NULL. */
static const struct orr_far_ask *orr_far_last(const struct orr_far_search *search)
{
	const struct orr_far_ask *ask = search->state.ask;
	u32 i;

	for (i = 0; i < search->state.asks; i++, ask++)
		if (ask->wait == search->last && ask->answer == ORR_FAR_HELD && ask->known)
			return ask;
	return NULL;
}

static void orr_far_there(const struct orr_far_search *search, const struct orr_far_ask *ask,
			  struct orr_far_cycle *cycle)
{
	const kuid_t lender = search->lender[ask - search->state.ask];

	for (cycle->count = 0; cycle->count < ask->known; cycle->count++) {
		struct orr_hop *hop = &cycle->hop[cycle->count];

		*hop = (struct orr_hop){ .node = ask->there[cycle->count].node, .uid = lender };
		memcpy(hop->name, ask->there[cycle->count].name, sizeof(hop->name));
	}
}

/**
 * orr_far_tell - how does the path of a look go on?
 * @search: of it, held
 * @searches: all, of which those by which it comes back are of interest
 * @look: it; its lead is set
 * @cycle: filled in
 *
 * Return: 1, 0: that is not known, or -ENOMEM.
 */
int orr_far_tell(const struct orr_far_search *search, const struct list_head *searches,
		 struct orr_look *look, struct orr_far_cycle *cycle)
{
	const struct orr_far_ask *ask = orr_far_last(search);
	const struct orr_far_search *back;

	cycle->stamp = orr_far_stamp(search);
	/* Its path is a circle by itself, or who said that it is held does not say by whom. */
	if (!ask)
		return look->lead < look->length;
	cycle->hop = kcalloc(1 + ORR_FAR_BEYOND + ORR_FAR_HOPS, sizeof(*cycle->hop), GFP_KERNEL);
	if (!cycle->hop)
		return -ENOMEM;
	list_for_each_entry(back, searches, link) {
		if (back->state.id != search->state.id || back == search || back->hops < 2)
			continue;
		orr_far_there(search, ask, cycle);
		if (orr_far_back(back, look, cycle))
			return 1;
	}
	/* It does not come back. */
	orr_far_there(search, ask, cycle);
	cycle->count = 1;
	return 1;
}

static struct orr_note orr_far_back_note(const struct orr_far_search *search, enum orr_note_op op,
					 const char *name)
{
	struct orr_note note = orr_fabric_say(op, search->import.tag);

	note.object = cpu_to_le64(search->state.id);
	note.number = search->number;
	if (name)
		orr_far_name_put(&note, name);
	return note;
}

/**
 * orr_far_notes - the answer, and before it, which is behind it in @note, those who come next
 * @search: what was asked, answered
 * @is_own: a process of this machine has begun it, which knows its own
 * @note: filled in, 1 + ORR_FAR_BEYOND
 *
 * Return: how many.
 */
u32 orr_far_notes(const struct orr_far_search *search, bool is_own, struct orr_note *note)
{
	const struct orr_far_ask *ask = orr_far_last(search);
	struct orr_far_wait next[ORR_FAR_BEYOND];
	u32 i, count = 0;

	note[0] = orr_far_back_note(search, ORR_NOTE_STUCK_BACK,
				    search->hops > 1 ? search->hop[1].name : NULL);
	note[0].size = cpu_to_le64(orr_far_stamp(search));
	note[0].status = cpu_to_le32(search->state.answer);
	if (search->state.answer != ORR_FAR_HELD || search->hops < 2 || is_own)
		return 1;
	for (i = 2; i < search->hops && count < ORR_FAR_BEYOND; i++) {
		next[count] = (struct orr_far_wait){ .node = search->import.odev->node };
		/* Another user's are not for whom this one has lent something. */
		if (uid_eq(search->hop[i].uid, search->hop[1].uid))
			memcpy(next[count].name, search->hop[i].name, sizeof(next->name));
		count++;
	}
	for (i = 0; ask && i < ask->known && count < ORR_FAR_BEYOND; i++)
		next[count++] = ask->there[i];
	for (i = 0; i < count; i++) {
		/* The nearest goes first. */
		note[count - i] = orr_far_back_note(search, ORR_NOTE_STUCK_HOP, next[i].name);
		note[count - i].size = cpu_to_le64(next[i].node);
	}
	note[0].epoch = cpu_to_le16(1 + count);
	return 1 + count;
}
