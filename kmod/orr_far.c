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
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_far.h"
#include "orr_far_search.h"
#include "orr_foreign.h"
#include "orr_look.h"

/* How long a process waits for other machines. */
#define ORR_FAR_PATIENCE (HZ / 4)
/* How long what others have asked is kept. */
#define ORR_FAR_LIFE HZ
/* Looks for others, which are not trusted, are so far apart at least, and thrice as long as the last took. */
#define ORR_FAR_BETWEEN msecs_to_jiffies(5)
/* Questions of others that are kept, also of one. */
#define ORR_FAR_KEPT 64u
#define ORR_FAR_KEPT_OF_ONE 8u
/* Time for the other driver to take a note, as the card may have no room for the next. */
#define ORR_FAR_PAUSE_MS 4u

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

/* To whom had the place then: it may be another's by now. */
static void orr_far_say(struct orr_device *odev, u32 at, u32 node, const struct orr_note *note)
{
	guard(mutex)(&odev->fabric.lock);
	if (odev->fabric.foreign[at].greet.session && odev->fabric.foreign[at].node == node)
		orr_foreign_say(odev, at, note);
}

static void orr_far_free(struct orr_far_search *search)
{
	while (search->asks)
		drm_dev_put(&search->ask[--search->asks].odev->drm);
	if (search->from)
		drm_dev_put(&search->from->drm);
	kfree(search);
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
			ret = orr_far_tell(search, &orr_far_searches, look, cycle);
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
				notes = orr_far_notes(search, orr_far_is_own(search->id), note);
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
