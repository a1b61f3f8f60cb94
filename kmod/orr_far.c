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
/* How long what others have asked is kept: whoever began a search has given it up by then. */
#define ORR_FAR_LIFE (ORR_FAR_PATIENCE + HZ / 20)
/* Looks for others, which are not trusted, are so far apart at least, and thrice as long as the last took. */
#define ORR_FAR_BETWEEN msecs_to_jiffies(5)
/* Time for the other driver to take a note, as the card may have no room for the next. */
#define ORR_FAR_PAUSE_MS 4u

static void orr_far_look_work(struct work_struct *work);
static void orr_far_tell_work(struct work_struct *work);

/* Guards what follows, and all searches. Innermost of the mutexes. */
static DEFINE_MUTEX(orr_far_lock);
static LIST_HEAD(orr_far_searches);
/* What others have asked and nobody has looked at yet, by turn. */
static LIST_HEAD(orr_far_new);
/* Of the last of them at which somebody has looked. */
static u64 orr_far_turn;
/* Of the last answer that was told. */
static u64 orr_far_tells;
/* Of the last question that was asked. */
static u16 orr_far_number;
/* When the next look for others may be. */
static unsigned long orr_far_next_look;
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
	struct orr_far_state *state = &search->state;

	while (state->asks)
		drm_dev_put(&state->ask[--state->asks].odev->drm);
	if (search->from)
		drm_dev_put(&search->from->drm);
	kfree(search);
}

/* Something has become of a search. */
static void orr_far_step(struct orr_far_search *search)
{
	lockdep_assert_held(&orr_far_lock);
	switch (orr_far_next(&search->state)) {
	case ORR_FAR_WAIT:
		break;
	case ORR_FAR_END:
		complete(&search->done);
		break;
	case ORR_FAR_TELL:
	case ORR_FAR_TELL_AND_KEEP:
		queue_work(system_long_wq, &orr_far_teller);
		break;
	}
}

/* The questions to which a look leads. Return: false: there are too many. */
static bool orr_far_collect(struct orr_far_search *search, struct orr_look *look)
{
	struct orr_far_state *state = &search->state;
	struct orr_lessee lessee[ORR_FAR_ASKS];
	u32 i, j, count, room;

	search->stamp = look->stamp;
	state->waits = look->far_count;
	search->last = ORR_LOOK_NONE;
	for (i = 0; i < look->far_count; i++) {
		const struct orr_party *party = &look->party[look->far[i]];
		struct orr_bo *origin = orr_bo_origin(party->bo);
		struct orr_device *odev = orr_bo_device(origin);

		if (look->lead == look->length && look->path[look->length - 1] == look->far[i])
			search->last = i;
		state->held[i] = party->lacks;
		room = ORR_FAR_ASKS - state->asks;
		count = orr_fabric_lessees(odev, origin, lessee, room);
		if (count > room)
			return false;
		for (j = 0; j < count; j++) {
			struct orr_far_ask *ask = &state->ask[state->asks];

			drm_dev_get(&odev->drm);
			search->lender[state->asks++] = lessee[j].uid;
			*ask = (struct orr_far_ask){ .odev = odev, .at = lessee[j].at,
						     .node = lessee[j].node, .tag = lessee[j].tag,
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

/* Asks, once the search is in the list. Nobody lets go of it meanwhile. */
static void orr_far_ask_all(struct orr_far_search *search)
{
	u32 i;

	for (i = 0; i < search->state.asks; i++) {
		const struct orr_far_ask *ask = &search->state.ask[i];
		const struct orr_note note = orr_far_question(search, i);
		bool asks;

		if (signal_pending(current) || time_after(jiffies, search->begun + ORR_FAR_PATIENCE))
			break;
		scoped_guard(mutex, &orr_far_lock)
			asks = orr_far_asks_now(&search->state, i);
		if (!asks)
			continue;
		if (orr_far_pauses(&search->state, i))
			msleep(ORR_FAR_PAUSE_MS);
		/* If it is lost there is no answer, and whoever waits looks again. */
		orr_far_say(ask->odev, ask->at, ask->node, &note);
	}
}

/* Puts a search among the others, and asks. */
static void orr_far_begin(struct orr_far_search *search)
{
	const struct orr_far_search *other;
	u32 i;

	scoped_guard(mutex, &orr_far_lock) {
		for (i = 0; i < search->state.asks; i++)
			search->state.ask[i].number = ++orr_far_number;
		list_for_each_entry(other, &orr_far_searches, link)
			orr_far_assume(&search->state, &other->state);
		orr_far_start(&search->state, get_random_u32_inclusive(1, U16_MAX));
		list_add_tail(&search->link, &orr_far_searches);
		orr_far_step(search);
	}
	orr_far_ask_all(search);
	guard(mutex)(&orr_far_lock);
	orr_far_asked_all(&search->state);
	orr_far_step(search);
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
	unsigned long until = jiffies + ORR_FAR_PATIENCE;
	long left;
	int ret = 0;

	if (!search)
		return -ENOMEM;
	if (!orr_far_collect(search, look)) {
		orr_far_free(search);
		return 0;
	}
	search->begun = until - ORR_FAR_PATIENCE;
	search->state.id = get_random_u32();
	search->state.answer = ORR_FAR_OPEN;
	init_completion(&search->done);
	orr_far_begin(search);
	left = max_t(long, until - jiffies, 0);
	left = wait_for_completion_interruptible_timeout(&search->done, left);
	scoped_guard(mutex, &orr_far_lock) {
		list_del(&search->link);
		if (left < 0)
			ret = -ERESTARTSYS;
		else if (search->state.answer == ORR_FAR_HELD)
			ret = orr_far_tell(search, &orr_far_searches, look, cycle);
	}
	orr_far_free(search);
	return ret;
}

/**
 * orr_far_answered - ORR_NOTE_STUCK_BACK has come, or ORR_NOTE_STUCK_HOP before it
 * @odev: the card
 * @at: from whom, in orr_fabric.foreign
 * @note: it
 */
void orr_far_answered(struct orr_device *odev, u32 at, const struct orr_note *note)
{
	struct orr_far_search *search;

	guard(mutex)(&orr_far_lock);
	list_for_each_entry(search, &orr_far_searches, link) {
		struct orr_far_ask *ask;
		struct orr_far_wait *hop;

		if (search->state.id != le64_to_cpu(note->object))
			continue;
		ask = orr_far_find(&search->state, odev, at, le32_to_cpu(note->tag),
				   le16_to_cpu(note->number));
		if (!ask)
			continue;
		if (note->op == ORR_NOTE_STUCK_HOP) {
			hop = orr_far_take_hop(ask);
			if (!hop)
				return;
			hop->node = le64_to_cpu(note->size);
			orr_far_name_get(note, hop->name);
			return;
		}
		orr_far_take_answer(ask, le32_to_cpu(note->status), le16_to_cpu(note->epoch),
				    le64_to_cpu(note->size));
		orr_far_name_get(note, ask->there[0].name);
		/* Who has an answer already has been through this. */
		if (search->state.answer == ORR_FAR_OPEN) {
			orr_far_settle(&search->state);
			orr_far_step(search);
		}
		return;
	}
}

static bool orr_far_is_of(const struct orr_far_search *search, const struct orr_far_search *other)
{
	return search->from == other->from && search->at == other->at;
}

/* Whether one more is taken. */
static bool orr_far_may_ask(const struct orr_far_search *search)
{
	const struct orr_far_search *other;
	u32 kept = 0, kept_of_one = 0;

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry(other, &orr_far_new, link) {
		kept++;
		kept_of_one += orr_far_is_of(search, other);
	}
	list_for_each_entry(other, &orr_far_searches, link) {
		if (!other->from || other->state.told)
			continue;
		kept++;
		kept_of_one += orr_far_is_of(search, other);
	}
	return orr_far_has_room(kept, kept_of_one);
}

/* Each one who asks has his turn: behind his own that wait, and not before those of others of that turn. */
static void orr_far_queue(struct orr_far_search *search)
{
	struct orr_far_search *other;
	struct list_head *at = &orr_far_new;

	lockdep_assert_held(&orr_far_lock);
	search->turn = orr_far_turn;
	list_for_each_entry(other, &orr_far_new, link)
		if (orr_far_is_of(search, other))
			search->turn = other->turn;
	search->turn++;
	list_for_each_entry(other, &orr_far_new, link)
		if (other->turn > search->turn) {
			at = &other->link;
			break;
		}
	list_add_tail(&search->link, at);
}

static void orr_far_drop(struct orr_far_search *search)
{
	lockdep_assert_held(&orr_far_lock);
	list_del(&search->link);
	orr_far_free(search);
}

static void orr_far_sweep_list(struct list_head *searches, unsigned long life)
{
	struct orr_far_search *search, *next;

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry_safe(search, next, searches, link)
		if (search->from && !search->state.asking &&
		    time_after_eq(jiffies, search->begun + life))
			orr_far_drop(search);
}

/* What nobody waits for any more. */
static void orr_far_sweep(void)
{
	orr_far_sweep_list(&orr_far_new, ORR_FAR_PATIENCE);
	orr_far_sweep_list(&orr_far_searches, ORR_FAR_LIFE);
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
	search = kzalloc(sizeof(*search), GFP_KERNEL);
	if (!search)
		return;
	drm_dev_get(&odev->drm);
	search->from = odev;
	search->at = at;
	search->node = odev->fabric.foreign[at].node;
	search->state.is_others = true;
	search->state.answer = ORR_FAR_OPEN;
	search->begun = now;
	orr_far_question_take(search, note);
	guard(mutex)(&orr_far_lock);
	orr_far_sweep();
	if (!orr_far_may_ask(search)) {
		orr_far_free(search);
		return;
	}
	orr_far_queue(search);
	mod_delayed_work(system_long_wq, &orr_far_looker,
			 time_before(now, orr_far_next_look) ? orr_far_next_look - now : 0);
}

/* A process of this machine has begun it. */
static bool orr_far_is_own(u32 id)
{
	const struct orr_far_search *search;

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry(search, &orr_far_searches, link)
		if (search->state.id == id && !search->from)
			return true;
	return false;
}

static u64 *orr_far_told_of(const struct orr_far_search *search)
{
	return &search->from->fabric.foreign[search->at].far_told;
}

static struct orr_far_search *orr_far_find_due(void)
{
	struct orr_far_search *search;
	struct orr_far_due due = {};

	lockdep_assert_held(&orr_far_lock);
	list_for_each_entry(search, &orr_far_searches, link)
		if (search->from)
			orr_far_due_of(&due, &search->state, *orr_far_told_of(search));
	return due.state ? container_of(due.state, struct orr_far_search, state) : NULL;
}

/* Tells who has asked. Not under the lock: a card may keep it waiting. */
static void orr_far_tell_work(struct work_struct *work)
{
	struct orr_note note[1 + ORR_FAR_BEYOND];
	struct orr_far_search *search;
	struct orr_device *odev;
	enum orr_far_step step;
	u32 at, node, notes;

	do {
		odev = NULL;
		scoped_guard(mutex, &orr_far_lock) {
			search = orr_far_find_due();
			if (!search)
				break;
			*orr_far_told_of(search) = ++orr_far_tells;
			step = orr_far_next(&search->state);
			search->state.told = true;
			odev = search->from;
			drm_dev_get(&odev->drm);
			at = search->at;
			node = search->node;
			notes = orr_far_notes(search, orr_far_is_own(search->state.id), note);
			if (step == ORR_FAR_TELL)
				orr_far_drop(search);
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

	if (IS_ERR(look))
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

static void orr_far_look_work(struct work_struct *work)
{
	struct orr_far_search *search;
	unsigned long took, pause;

	scoped_guard(mutex, &orr_far_lock) {
		orr_far_sweep();
		search = list_first_entry_or_null(&orr_far_new, struct orr_far_search, link);
		if (search) {
			orr_far_turn = search->turn;
			list_del(&search->link);
		}
	}
	took = jiffies;
	if (search)
		search->state.answer = orr_far_look(search);
	took = jiffies - took;
	if (search)
		orr_far_begin(search);
	pause = max(ORR_FAR_BETWEEN, 3 * took);
	guard(mutex)(&orr_far_lock);
	orr_far_next_look = jiffies + pause;
	/* Also if somebody has asked meanwhile, to whom the pause before this look was over. */
	if (!list_empty(&orr_far_new))
		mod_delayed_work(system_long_wq, &orr_far_looker, pause);
	else if (!list_empty(&orr_far_searches))
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
	orr_far_sweep_list(&orr_far_new, 0);
	orr_far_sweep_list(&orr_far_searches, 0);
}
