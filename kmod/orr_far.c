// SPDX-License-Identifier: GPL-2.0
/*
 * Cycles of waits over machines. A look (orr_look.c) sees the queues of this machine. Where one waits for
 * what cards of other machines may signal, their drivers are asked whether somebody there would who is not
 * stuck himself; who is asked looks at his own, and asks on. All questions of a search have its number,
 * which is random, and say by which looks they came, so a driver knows when one comes back to a look of its
 * own. What that look asked is asked no more then, and taken as stuck: if it turns out not to be, its answer
 * says so, and with one such answer nobody is told of a cycle.
 *
 * Nobody believes more of another machine than what that could do as well: one that says that it is stuck
 * may as well not signal. A search ends at its limit, whoever has not answered. Each driver looks at its own
 * at another moment, so who is told believes it when it is told twice with one stamp: what stands still in
 * both stood still in between.
 */
#include <linux/completion.h>
#include <linux/ctype.h>
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "orr_bo.h"
#include "orr_cycle.h"
#include "orr_device.h"
#include "orr_far.h"
#include "orr_foreign.h"
#include "orr_look.h"

/* How long a process waits for other machines. */
#define ORR_FAR_PATIENCE (HZ / 4)
/* How long what others have asked is kept. */
#define ORR_FAR_LIFE HZ
/* Looks for others, which are not trusted, are so far apart at least, and thrice as long as the last took. */
#define ORR_FAR_BETWEEN msecs_to_jiffies(5)
/* Questions that a look leads to; of others that are kept, also of one; waits of theirs that can be told. */
#define ORR_FAR_ASKS 16u
#define ORR_FAR_KEPT 64u
#define ORR_FAR_KEPT_OF_ONE 8u
#define ORR_FAR_HOPS 8u
/* Looks by which a question has come. */
#define ORR_FAR_PATH 6u
/* Waits behind the one of an answer that it tells of: together as many notes as a card keeps of a sender. */
#define ORR_FAR_BEYOND 3u
/* Time for the other driver to take a note, as the card may have no room for the next. */
#define ORR_FAR_PAUSE_MS 4u

static_assert(sizeof_field(struct orr_note, secret) + sizeof_field(struct orr_note, pad) ==
	      ORR_QUEUE_NAME_BYTES);
static_assert(sizeof_field(struct orr_note, epoch) + sizeof_field(struct orr_note, status) == ORR_FAR_PATH);

/**
 * enum orr_far_answer - in orr_note.status of ORR_NOTE_STUCK_BACK
 * @ORR_FAR_FREE: somebody who is not stuck would signal it, or nobody knows
 * @ORR_FAR_NONE: nobody here would
 * @ORR_FAR_HELD: all who would are stuck
 * @ORR_FAR_OPEN: there is no answer yet; not in notes
 */
enum orr_far_answer {
	ORR_FAR_FREE,
	ORR_FAR_NONE,
	ORR_FAR_HELD,
	ORR_FAR_OPEN,
};

/**
 * struct orr_far_wait - who waits on another machine
 */
struct orr_far_wait {
	/** @node: of his card */
	u32 node;
	/** @name: his */
	char name[ORR_QUEUE_NAME_BYTES];
};

/**
 * struct orr_far_ask - a question to another driver
 */
struct orr_far_ask {
	/** @odev: the card that has lent the memory; a reference */
	struct orr_device *odev;
	/** @lessee: who is asked */
	struct orr_lessee lessee;
	/** @offset: of the semaphore */
	u64 offset;
	/** @wanted: value that is waited for */
	u64 wanted;
	/** @wait: in orr_look.far */
	u32 wait;
	/** @number: of the question, among all of this driver */
	u16 number;
	/** @answer: to it; orr_far_lock */
	enum orr_far_answer answer;
	/** @stamp: that came with it */
	u64 stamp;
	/** @name: of who waits */
	char name[ORR_QUEUE_NAME_BYTES];
	/** @there: who would signal it, for whom he waits, and so on, as the answer says */
	struct orr_far_wait there[1 + ORR_FAR_BEYOND];
	/** @known: of @there; its first has a place before there is an answer */
	u32 known;
};

/**
 * struct orr_far_search - a search as it concerns one look
 */
struct orr_far_search {
	/** @link: in orr_far_searches, or in orr_far_new before there was a look */
	struct list_head link;
	/** @id: the search's, for all machines */
	u64 id;
	/** @begun: jiffies */
	unsigned long begun;
	/** @from: card by which another driver has asked; a reference. NULL: a process here waits for it */
	struct orr_device *from;
	/** @at: that driver, in orr_fabric.foreign */
	u32 at;
	/** @node: its card's */
	u32 node;
	/** @number: what it calls the question */
	__le16 number;
	/** @import: what it asks about */
	struct orr_look_import import;
	/** @wanted: likewise */
	u64 wanted;
	/** @name: of who waits there */
	char name[ORR_QUEUE_NAME_BYTES];
	/** @answer: ORR_FAR_OPEN before there is one; orr_far_lock */
	enum orr_far_answer answer;
	/** @told: that it was */
	bool told;
	/** @done: there is one, for a process */
	struct completion done;
	/** @path: looks by which it came, a mark each, and at last its own; 0: the rest */
	u8 path[ORR_FAR_PATH];
	/** @stamp: of the look */
	u64 stamp;
	/** @held: by wait: packets of this machine hold it, too */
	bool held[ORR_LOOK_MAX_FAR];
	/** @waits: of @held */
	u32 waits;
	/** @ask: questions */
	struct orr_far_ask ask[ORR_FAR_ASKS];
	/** @asks: of @ask */
	u32 asks;
	/** @hop: the way from the wait of another machine on */
	struct orr_hop hop[ORR_FAR_HOPS];
	/** @hops: of @hop */
	u32 hops;
	/** @last: the wait to which that leads, ORR_LOOK_NONE: to none */
	u32 last;
};

static void orr_far_look_work(struct work_struct *work);
static void orr_far_tell_work(struct work_struct *work);

/* Guards what follows, and all searches. Innermost of the mutexes. */
static DEFINE_MUTEX(orr_far_lock);
static LIST_HEAD(orr_far_searches);
static LIST_HEAD(orr_far_new);
/* Of those that others have asked, in both lists. */
static unsigned int orr_far_kept;
/* Of the last question that was asked. */
static u16 orr_far_number;
/* When the next look for others may be. */
static unsigned long orr_far_next;
static DECLARE_DELAYED_WORK(orr_far_looker, orr_far_look_work);
static DECLARE_WORK(orr_far_teller, orr_far_tell_work);

static void orr_far_name_put(struct orr_note *note, const char *name)
{
	memcpy(note->secret, name, sizeof(note->secret));
	memcpy(note->pad, name + sizeof(note->secret), sizeof(note->pad));
}

static void orr_far_path_put(struct orr_note *note, const u8 *path)
{
	memcpy(&note->epoch, path, sizeof(note->epoch));
	memcpy(&note->status, path + sizeof(note->epoch), sizeof(note->status));
}

static void orr_far_path_get(const struct orr_note *note, u8 *path)
{
	memcpy(path, &note->epoch, sizeof(note->epoch));
	memcpy(path + sizeof(note->epoch), &note->status, sizeof(note->status));
}

/* Puts the look's own mark behind those before. Return: false: it came by too many. */
static bool orr_far_mark(struct orr_far_search *search)
{
	u8 *end = memchr(search->path, 0, sizeof(search->path));

	if (!end)
		return false;
	memset(end, 0, search->path + sizeof(search->path) - end);
	*end = get_random_u32_inclusive(1, U8_MAX);
	return true;
}

/* Did the question come by that look of this driver? */
static bool orr_far_came_by(const struct orr_far_search *search, const struct orr_far_search *other)
{
	const u8 *last = memchr(other->path, 0, sizeof(other->path));
	const u32 at = (last ? last - other->path : sizeof(other->path)) - 1;

	return other->id == search->id && !memcmp(search->path, other->path, at + 1);
}

/* To whom had the place then: it may be another's by now. */
static void orr_far_say(struct orr_device *odev, u32 at, u32 node, const struct orr_note *note)
{
	guard(mutex)(&odev->fabric.lock);
	if (odev->fabric.foreign[at].greet.session && odev->fabric.foreign[at].node == node)
		orr_foreign_say(odev, at, note);
}

/* Another machine's text, which goes to terminals here. */
static void orr_far_name_get(const struct orr_note *note, char *name)
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

static void orr_far_free(struct orr_far_search *search)
{
	while (search->asks)
		drm_dev_put(&search->ask[--search->asks].odev->drm);
	if (search->from)
		drm_dev_put(&search->from->drm);
	kfree(search);
}

/* What its answers say so far. */
static enum orr_far_answer orr_far_sum(const struct orr_far_search *search)
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

static void orr_far_settle(struct orr_far_search *search)
{
	lockdep_assert_held(&orr_far_lock);
	if (search->answer != ORR_FAR_OPEN)
		return;
	search->answer = orr_far_sum(search);
	if (search->answer == ORR_FAR_OPEN)
		return;
	if (search->from)
		queue_work(system_long_wq, &orr_far_teller);
	else
		complete(&search->done);
}

/* The questions to which a look leads. Return: false: there are too many. */
static bool orr_far_collect(struct orr_far_search *search, struct orr_look *look)
{
	struct orr_lessee lessee[ORR_FAR_ASKS];
	u32 i, j, count, room;

	search->stamp = look->stamp;
	search->waits = look->far_count;
	search->last = ORR_LOOK_NONE;
	for (i = 0; i < look->far_count; i++) {
		const struct orr_party *party = &look->party[look->far[i]];
		struct orr_bo *origin = orr_bo_origin(party->bo);
		struct orr_device *odev = orr_bo_device(origin);

		if (look->lead == look->length && look->path[look->length - 1] == look->far[i])
			search->last = i;
		search->held[i] = party->lacks;
		room = ORR_FAR_ASKS - search->asks;
		count = orr_fabric_lessees(odev, origin, lessee, room);
		if (count > room)
			return false;
		for (j = 0; j < count; j++) {
			struct orr_far_ask *ask = &search->ask[search->asks++];

			drm_dev_get(&odev->drm);
			*ask = (struct orr_far_ask){ .odev = odev, .lessee = lessee[j],
						     .offset = party->offset,
						     .wanted = party->wanted, .wait = i,
						     .answer = ORR_FAR_OPEN, .known = 1 };
			ask->there[0].node = lessee[j].node;
			/* A name is for who has lent it, to whom it will be told that it is borrowed. */
			if (party->queue && uid_eq(party->uid, lessee[j].uid))
				memcpy(ask->name, party->queue->name, sizeof(ask->name));
		}
	}
	return true;
}

static bool orr_far_is_same(const struct orr_far_ask *one, const struct orr_far_ask *other)
{
	return one->odev == other->odev && one->lessee.at == other->lessee.at &&
	       one->lessee.tag == other->lessee.tag && one->offset == other->offset &&
	       one->wanted == other->wanted;
}

/* What has been asked on the way here is not asked again. */
static void orr_far_assume(struct orr_far_search *search)
{
	const struct orr_far_search *other;
	u32 i, j;

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry(other, &orr_far_searches, link) {
		if (!orr_far_came_by(search, other))
			continue;
		for (i = 0; i < search->asks; i++)
			for (j = 0; j < other->asks; j++)
				if (orr_far_is_same(&search->ask[i], &other->ask[j])) {
					search->ask[i].answer = ORR_FAR_HELD;
					search->ask[i].known = 0;
				}
	}
}

/* Asks, once the search is in the list. The caller keeps it there. */
static void orr_far_ask_all(struct orr_far_search *search)
{
	u32 i;

	for (i = 0; i < search->asks; i++) {
		const struct orr_far_ask *ask = &search->ask[i];
		struct orr_note note = orr_fabric_say(ORR_NOTE_STUCK, ask->lessee.tag);
		bool open;

		scoped_guard(mutex, &orr_far_lock)
			open = search->answer == ORR_FAR_OPEN && ask->answer == ORR_FAR_OPEN;
		if (!open)
			continue;
		orr_far_name_put(&note, ask->name);
		orr_far_path_put(&note, search->path);
		note.object = cpu_to_le64(search->id);
		note.base = cpu_to_le64(ask->offset);
		note.size = cpu_to_le64(ask->wanted);
		note.number = cpu_to_le16(ask->number);
		/* Without room for it there is no answer, and whoever waits looks again. */
		orr_far_say(ask->odev, ask->lessee.at, ask->lessee.node, &note);
	}
}

/* Puts a search among the others, and asks. */
static void orr_far_begin(struct orr_far_search *search)
{
	u32 i;

	scoped_guard(mutex, &orr_far_lock) {
		for (i = 0; i < search->asks; i++)
			search->ask[i].number = ++orr_far_number;
		orr_far_assume(search);
		list_add_tail(&search->link, &orr_far_searches);
		orr_far_settle(search);
	}
	orr_far_ask_all(search);
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

/* How the path of the look goes on. Return: 1, 0: that is not known, or -ENOMEM. */
static int orr_far_tell(const struct orr_far_search *search, struct orr_look *look,
			struct orr_far_cycle *cycle)
{
	const struct orr_far_ask *ask = orr_far_last(search);
	const struct orr_far_search *back;

	lockdep_assert_held(&orr_far_lock);
	cycle->stamp = orr_far_stamp(search);
	/* Its path is a circle by itself, or who said that it is held does not say by whom. */
	if (!ask)
		return look->lead < look->length;
	cycle->hop = kcalloc(1 + ORR_FAR_BEYOND + ORR_FAR_HOPS, sizeof(*cycle->hop), GFP_KERNEL);
	if (!cycle->hop)
		return -ENOMEM;
	list_for_each_entry(back, &orr_far_searches, link) {
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

/**
 * orr_far_search - is what other machines hold stuck there, too?
 * @look: after orr_look_reach(), with somebody of this machine in its path
 * @cycle: filled in with how its path goes on, whose lead is set
 *
 * Waits for the answers of other drivers, for ORR_FAR_PATIENCE at most.
 *
 * Return: 1: yes, 0: no, or that is not known, -ENOMEM, -ERESTARTSYS.
 */
int orr_far_search(struct orr_look *look, struct orr_far_cycle *cycle)
{
	struct orr_far_search *search = kzalloc(sizeof(*search), GFP_KERNEL);
	long left;
	int ret = 0;

	if (!search)
		return -ENOMEM;
	if (!orr_far_collect(search, look)) {
		orr_far_free(search);
		return 0;
	}
	search->id = get_random_u64();
	orr_far_mark(search);
	search->answer = ORR_FAR_OPEN;
	init_completion(&search->done);
	orr_far_begin(search);
	left = wait_for_completion_interruptible_timeout(&search->done, ORR_FAR_PATIENCE);
	scoped_guard(mutex, &orr_far_lock) {
		list_del(&search->link);
		if (left < 0)
			ret = -ERESTARTSYS;
		else if (search->answer == ORR_FAR_HELD)
			ret = orr_far_tell(search, look, cycle);
	}
	orr_far_free(search);
	return ret;
}

static struct orr_far_ask *orr_far_find(struct orr_far_search *search, u16 number)
{
	u32 i;

	for (i = 0; i < search->asks; i++)
		if (search->ask[i].number == number)
			return &search->ask[i];
	return NULL;
}

/* How many questions of one are kept. */
static unsigned int orr_far_kept_of(const struct list_head *searches, const struct orr_device *odev, u32 at)
{
	const struct orr_far_search *search;
	unsigned int count = 0;

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry(search, searches, link)
		count += search->from == odev && search->at == at;
	return count;
}

/**
 * orr_far_answered - ORR_NOTE_STUCK_BACK has come, or ORR_NOTE_STUCK_HOP before it
 * @odev: the card
 * @at: from whom, in orr_fabric.foreign
 * @note: it
 */
void orr_far_answered(struct orr_device *odev, u32 at, const struct orr_note *note)
{
	const u32 status = le32_to_cpu(note->status);
	struct orr_far_search *search;

	guard(mutex)(&orr_far_lock);
	list_for_each_entry(search, &orr_far_searches, link) {
		struct orr_far_ask *ask = orr_far_find(search, le16_to_cpu(note->number));

		if (!ask || search->id != le64_to_cpu(note->object) || ask->odev != odev ||
		    ask->lessee.at != at || ask->answer != ORR_FAR_OPEN ||
		    ask->lessee.tag != le32_to_cpu(note->tag))
			continue;
		if (note->op == ORR_NOTE_STUCK_HOP) {
			if (ask->known == ARRAY_SIZE(ask->there))
				return;
			ask->there[ask->known].node = le64_to_cpu(note->size);
			orr_far_name_get(note, ask->there[ask->known++].name);
			return;
		}
		ask->answer = status == ORR_FAR_HELD || status == ORR_FAR_NONE ? status : ORR_FAR_FREE;
		ask->stamp = le64_to_cpu(note->size);
		orr_far_name_get(note, ask->there[0].name);
		if (!note->epoch)
			ask->known = 0;
		/* Some of it was lost, so it counts as if nobody had answered: whoever waits looks again. */
		if (ask->known != le16_to_cpu(note->epoch))
			ask->answer = ORR_FAR_FREE;
		orr_far_settle(search);
		return;
	}
}

/**
 * orr_far_asked - ORR_NOTE_STUCK has come
 * @odev: the card
 * @at: from whom, in orr_fabric.foreign
 * @note: it
 *
 * Whoever asks more than there is room for asks in vain: his processes look again.
 */
void orr_far_asked(struct orr_device *odev, u32 at, const struct orr_note *note)
{
	struct orr_far_search *search;
	unsigned long now = jiffies;

	lockdep_assert_held(&odev->fabric.lock);
	guard(mutex)(&orr_far_lock);
	if (orr_far_kept >= ORR_FAR_KEPT ||
	    orr_far_kept_of(&orr_far_new, odev, at) + orr_far_kept_of(&orr_far_searches, odev, at) >=
		    ORR_FAR_KEPT_OF_ONE)
		return;
	search = kzalloc(sizeof(*search), GFP_KERNEL);
	if (!search)
		return;
	drm_dev_get(&odev->drm);
	search->from = odev;
	search->at = at;
	search->node = odev->fabric.foreign[at].node;
	search->id = le64_to_cpu(note->object);
	search->number = note->number;
	search->import = (struct orr_look_import){ .odev = odev, .tag = le32_to_cpu(note->tag),
						   .offset = le64_to_cpu(note->base) };
	search->wanted = le64_to_cpu(note->size);
	search->answer = ORR_FAR_OPEN;
	search->begun = now;
	orr_far_name_get(note, search->name);
	orr_far_path_get(note, search->path);
	list_add_tail(&search->link, &orr_far_new);
	orr_far_kept++;
	mod_delayed_work(system_long_wq, &orr_far_looker,
			 time_before(now, orr_far_next) ? orr_far_next - now : 0);
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

/* A process of this machine has begun it. */
static bool orr_far_is_own(u64 id)
{
	const struct orr_far_search *search;

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry(search, &orr_far_searches, link)
		if (search->id == id && !search->from)
			return true;
	return false;
}

/* The answer, and before it, which is behind it in @note, those who come next. Return: how many. */
static u32 orr_far_notes(const struct orr_far_search *search, struct orr_note *note)
{
	const struct orr_far_ask *ask = orr_far_last(search);
	struct orr_far_wait next[ORR_FAR_BEYOND];
	u32 i, count = 0;

	note[0] = orr_far_back_note(search, ORR_NOTE_STUCK_BACK,
				    search->hops > 1 ? search->hop[1].name : NULL);
	note[0].size = cpu_to_le64(orr_far_stamp(search));
	note[0].status = cpu_to_le32(search->answer);
	/* He who began it knows his own. */
	if (search->answer != ORR_FAR_HELD || search->hops < 2 || orr_far_is_own(search->id))
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

static void orr_far_drop(struct orr_far_search *search)
{
	lockdep_assert_held(&orr_far_lock);
	list_del(&search->link);
	orr_far_kept--;
	orr_far_free(search);
}

/* Tells who has asked. Not under the lock: a card may keep it waiting. */
static void orr_far_tell_work(struct work_struct *work)
{
	struct orr_note note[1 + ORR_FAR_BEYOND];
	struct orr_far_search *search;
	struct orr_device *odev;
	u32 at, node, notes;

	do {
		odev = NULL;
		scoped_guard(mutex, &orr_far_lock) {
			list_for_each_entry(search, &orr_far_searches, link) {
				if (!search->from || search->told || search->answer == ORR_FAR_OPEN)
					continue;
				search->told = true;
				odev = search->from;
				drm_dev_get(&odev->drm);
				at = search->at;
				node = search->node;
				notes = orr_far_notes(search, note);
				/* On what is held others may rest. */
				if (search->answer != ORR_FAR_HELD)
					orr_far_drop(search);
				break;
			}
		}
		if (odev) {
			while (notes) {
				orr_far_say(odev, at, node, &note[--notes]);
				if (notes)
					msleep(ORR_FAR_PAUSE_MS);
			}
			drm_dev_put(&odev->drm);
		}
	} while (odev);
}

/* The way from a wait of another machine on. */
static void orr_far_keep_hops(struct orr_far_search *search, const struct orr_look *look)
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

/* Looks for another machine. Return: the answer, as far as this one's questions are not needed for it. */
static enum orr_far_answer orr_far_look(struct orr_far_search *search)
{
	struct orr_look *look __free(orr_look) = orr_look_begin();
	u32 number = ORR_LOOK_NONE;
	bool known;

	if (IS_ERR(look) || !orr_far_mark(search))
		return ORR_FAR_FREE;
	scoped_guard(mutex, &orr_look_lock) {
		known = orr_look_at_all(look);
		if (known)
			number = orr_look_add_remote(look, &search->import, search->wanted);
		known = known && orr_look_solve(look);
		if (known && look->party[number].stuck) {
			orr_look_walk(look, number);
			known = look->length && orr_look_reach(look, number);
		}
	}
	if (!known)
		return ORR_FAR_FREE;
	/* Of a card that a debugger holds something may be on its way. */
	if (!look->party[number].stuck)
		return orr_look_is_held(look, number) || orr_peer_any_held() ? ORR_FAR_FREE :
									       ORR_FAR_NONE;
	if (!orr_look_stands(look) || !orr_far_collect(search, look))
		return ORR_FAR_FREE;
	orr_far_keep_hops(search, look);
	return ORR_FAR_OPEN;
}

static void orr_far_sweep(bool all)
{
	struct orr_far_search *search, *next;

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry_safe(search, next, &orr_far_searches, link) {
		if (!search->from || (!all && time_before(jiffies, search->begun + ORR_FAR_LIFE)))
			continue;
		orr_far_drop(search);
	}
}

static void orr_far_look_work(struct work_struct *work)
{
	struct orr_far_search *search;
	unsigned long took = jiffies, pause;

	scoped_guard(mutex, &orr_far_lock) {
		orr_far_sweep(false);
		search = list_first_entry_or_null(&orr_far_new, struct orr_far_search, link);
		if (search)
			list_del(&search->link);
	}
	if (search) {
		search->answer = orr_far_look(search);
		orr_far_begin(search);
	}
	took = jiffies - took;
	pause = max(ORR_FAR_BETWEEN, 3 * took);
	guard(mutex)(&orr_far_lock);
	orr_far_next = jiffies + pause;
	if (!list_empty(&orr_far_new))
		queue_delayed_work(system_long_wq, &orr_far_looker, pause);
	else if (orr_far_kept)
		queue_delayed_work(system_long_wq, &orr_far_looker, ORR_FAR_LIFE);
}

/**
 * orr_far_exit - there are no cards any more
 */
void orr_far_exit(void)
{
	cancel_delayed_work_sync(&orr_far_looker);
	cancel_work_sync(&orr_far_teller);
	guard(mutex)(&orr_far_lock);
	list_splice_init(&orr_far_new, &orr_far_searches);
	orr_far_sweep(true);
}
