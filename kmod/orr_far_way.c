// SPDX-License-Identifier: GPL-2.0
/*
 * What follows from the answers of a search over machines (orr_far.c): whether somebody is stuck, which
 * streams the circle has, and what notes say of it.
 */
#include <linux/ctype.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "orr_device.h"
#include "orr_far.h"
#include "orr_far_search.h"

static_assert(sizeof_field(struct orr_note, secret) + sizeof_field(struct orr_note, pad) ==
	      ORR_QUEUE_NAME_BYTES);
static_assert(sizeof_field(struct orr_note, epoch) + sizeof_field(struct orr_note, status) == ORR_FAR_PATH);

/**
 * orr_far_name_put - say a name
 * @note: in which
 * @name: ORR_QUEUE_NAME_BYTES
 */
void orr_far_name_put(struct orr_note *note, const char *name)
{
	memcpy(note->secret, name, sizeof(note->secret));
	memcpy(note->pad, name + sizeof(note->secret), sizeof(note->pad));
}

/**
 * orr_far_path_put - say by which looks a question comes
 * @note: in which
 * @path: the looks
 */
void orr_far_path_put(struct orr_note *note, const u8 *path)
{
	memcpy(&note->epoch, path, sizeof(note->epoch));
	memcpy(&note->status, path + sizeof(note->epoch), sizeof(note->status));
}

/**
 * orr_far_path_get - by which looks has a question come?
 * @note: it
 * @path: filled in
 */
void orr_far_path_get(const struct orr_note *note, u8 *path)
{
	memcpy(path, &note->epoch, sizeof(note->epoch));
	memcpy(path + sizeof(note->epoch), &note->status, sizeof(note->status));
}

/**
 * orr_far_mark - put the look's own mark behind those by which it came
 * @search: it
 *
 * Return: false: it came by too many.
 */
bool orr_far_mark(struct orr_far_search *search)
{
	u8 *end = memchr(search->path, 0, sizeof(search->path));

	if (!end)
		return false;
	memset(end, 0, search->path + sizeof(search->path) - end);
	*end = get_random_u32_inclusive(1, U8_MAX);
	return true;
}

/**
 * orr_far_came_by - did the question come by that look of this driver?
 * @search: the question's
 * @other: the look's
 *
 * Return: whether.
 */
bool orr_far_came_by(const struct orr_far_search *search, const struct orr_far_search *other)
{
	const u8 *last = memchr(other->path, 0, sizeof(other->path));
	const u32 at = (last ? last - other->path : sizeof(other->path)) - 1;

	return other->id == search->id && !memcmp(search->path, other->path, at + 1);
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
 * orr_far_is_same - do two questions ask for the same?
 * @one: a question
 * @other: another
 *
 * Return: whether.
 */
bool orr_far_is_same(const struct orr_far_ask *one, const struct orr_far_ask *other)
{
	return one->odev == other->odev && one->lessee.at == other->lessee.at &&
	       one->lessee.tag == other->lessee.tag && one->offset == other->offset &&
	       one->wanted == other->wanted;
}

/**
 * orr_far_sum - what the answers to its questions say so far
 * @search: it
 *
 * Return: ORR_FAR_OPEN, ORR_FAR_FREE or ORR_FAR_HELD.
 */
enum orr_far_answer orr_far_sum(const struct orr_far_search *search)
{
	bool held[ORR_LOOK_MAX_FAR];
	bool open = false;
	u32 i;

	memcpy(held, search->held, sizeof(held));
	for (i = 0; i < search->asks; i++) {
		const struct orr_far_ask *ask = &search->ask[i];

		if (ask->answer == ORR_FAR_FREE)
			return ORR_FAR_FREE;
		open |= ask->answer == ORR_FAR_OPEN;
		held[ask->wait] |= ask->answer == ORR_FAR_HELD;
	}
	if (open)
		return ORR_FAR_OPEN;
	/* What nobody has in his packets, a process may yet give. */
	for (i = 0; i < search->waits; i++)
		if (!held[i])
			return ORR_FAR_FREE;
	return ORR_FAR_HELD;
}

static u64 orr_far_stamp(const struct orr_far_search *search)
{
	u64 stamp = search->stamp;
	u32 i;

	/* A sum, as it is not always the same driver that asks first what two lead to. */
	for (i = 0; i < search->asks; i++)
		stamp += search->ask[i].stamp;
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
	u32 i;

	for (i = 0; i < search->asks; i++)
		if (search->ask[i].wait == search->last && search->ask[i].answer == ORR_FAR_HELD &&
		    search->ask[i].known)
			return &search->ask[i];
	return NULL;
}

static void orr_far_there(const struct orr_far_ask *ask, struct orr_far_cycle *cycle)
{
	for (cycle->count = 0; cycle->count < ask->known; cycle->count++) {
		struct orr_hop *hop = &cycle->hop[cycle->count];

		*hop = (struct orr_hop){ .node = ask->there[cycle->count].node, .uid = ask->lessee.uid };
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
		if (back->id != search->id || back == search || back->hops < 2)
			continue;
		orr_far_there(ask, cycle);
		if (orr_far_back(back, look, cycle))
			return 1;
	}
	/* It does not come back. */
	orr_far_there(ask, cycle);
	cycle->count = 1;
	return 1;
}

static struct orr_note orr_far_back_note(const struct orr_far_search *search, enum orr_note_op op,
					 const char *name)
{
	struct orr_note note = orr_fabric_say(op, search->import.tag);

	note.object = cpu_to_le64(search->id);
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
	note[0].status = cpu_to_le32(search->answer);
	if (search->answer != ORR_FAR_HELD || search->hops < 2 || is_own)
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
