// SPDX-License-Identifier: GPL-2.0
/*
 * Cards of other machines. Their driver is another, which may be wrong or hostile: it gets a route, so
 * that it can be written to, and besides that only grants for handles whose secret it knows.
 *
 * Both drivers greet each other, with a nonce each: orr_greet.c. Both nonces make a session, which has an
 * epoch of its own for the two cards: so what was sent before one of them began anew is without effect.
 * After a loss the session ends with all that was shared in it, and nothing goes on behind a gap.
 *
 * Who is at the other end of a link is greeted when the link comes up, and who is behind a switch when a
 * process comes with a handle of that card. There are no ways over cards to another machine.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/slab.h>

#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_foreign.h"
#include "orr_key.h"
#include "orr_route.h"

/* How many notes are looked at before others get a turn. */
#define ORR_NOTES_AT_ONCE 16u
#define ORR_GREET_TRIES 50u
#define ORR_GREET_PERIOD_MS 20u

static_assert(ORR_FOREIGN_MAX <= 64 && ORR_FOREIGN_MAX > ORR_LINK_MAX_PORTS);

static void orr_foreign_end(struct orr_device *odev, u32 at)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[at];

	lockdep_assert_held(&odev->fabric.lock);
	if (!foreign->greet.session)
		return;
	foreign->greet.session = false;
	orr_fabric_end(odev, at);
	orr_foreign_unroute(odev, foreign);
}

/* What was said before counts no more. */
static void orr_foreign_begin_anew(struct orr_device *odev, u32 at)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[at];

	lockdep_assert_held(&odev->fabric.lock);
	orr_foreign_end(odev, at);
	orr_greet_anew(&foreign->greet, get_random_u64(),
		       foreign->behind ? odev->fabric.epochs[foreign->behind] : foreign->greet.epoch);
}

/**
 * orr_foreign_say - send a note to the driver of a card of another machine
 * @odev: this end's card
 * @at: who, in orr_fabric.foreign
 * @note: what to say
 */
void orr_foreign_say(struct orr_device *odev, u32 at, const struct orr_note *note)
{
	const struct orr_foreign *foreign = &odev->fabric.foreign[at];

	orr_note_send(odev, foreign->port, foreign->behind, note);
}

static void orr_foreign_say_hello(struct orr_device *odev, u32 at, enum orr_note_op op)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[at];
	struct orr_greeting said = orr_greet_say(&foreign->greet, op == ORR_NOTE_HELLO);
	struct orr_note note = orr_fabric_say(op, 0);

	note.base = cpu_to_le64(said.nonce);
	note.size = cpu_to_le64(said.known);
	note.epoch = cpu_to_le16(said.before);
	note.object = cpu_to_le64(odev->info.uid);
	orr_foreign_say(odev, at, &note);
}

/**
 * orr_foreign_greet - tell the other driver that there is a card, and ask for its answer
 * @odev: the card
 * @at: who, in orr_fabric.foreign
 */
void orr_foreign_greet(struct orr_device *odev, u32 at)
{
	orr_foreign_say_hello(odev, at, ORR_NOTE_HELLO);
}

/* The session ends; the other side shall know it. */
static void orr_foreign_say_goodbye(struct orr_device *odev, u32 at)
{
	struct orr_note note = orr_fabric_say(ORR_NOTE_GOODBYE, 0);

	note.base = cpu_to_le64(odev->fabric.foreign[at].greet.nonce);
	orr_foreign_say(odev, at, &note);
	orr_foreign_begin_anew(odev, at);
}

/**
 * orr_foreign_restart - all that is shared with who does not answer ends, on both sides
 * @odev: the card
 * @deaf: who, a bit for each of orr_fabric.foreign
 */
void orr_foreign_restart(struct orr_device *odev, u64 deaf)
{
	u32 at;

	lockdep_assert_held(&odev->fabric.lock);
	for (at = 0; at < ORR_FOREIGN_MAX; at++) {
		struct orr_foreign *foreign = &odev->fabric.foreign[at];

		if (!(deaf & BIT_ULL(at)) || !foreign->greet.session)
			continue;
		dev_warn_ratelimited(odev->drm.dev,
				     "the driver of card %016llx (number %u) at link %u does not answer: all that is shared with it ends\n",
				     foreign->uid, foreign->node, foreign->port);
		orr_foreign_say_goodbye(odev, at);
		orr_foreign_greet(odev, at);
	}
}

/* Has something changed at a port? What is foreign is so until it is known to be this driver's. */
static void orr_foreign_look(struct orr_device *odev, u32 port, const struct orr_link_look *look)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[port];
	bool lost = look->losses != foreign->losses;
	u64 uid;
	int idx;

	lockdep_assert_held(&odev->fabric.lock);
	if (lost || orr_link_is_up(look) != !!foreign->seen) {
		uid = 0;
		if (orr_enter(odev, &idx))
			return;
		/* A switch has no driver. */
		if (orr_link_is_up(look) && !orr_link_to_switch(odev, port))
			uid = orr_read64(odev, ORR_R_LINK(port) + ORR_R_LINK_PEER_UID);
		orr_exit(odev, idx);
		foreign->seen = uid == U64_MAX ? 0 : uid;
		foreign->losses = look->losses;
	}
	uid = foreign->seen && !orr_peer_has_uid(foreign->seen) ? foreign->seen : 0;
	if (uid == foreign->uid && !lost)
		return;
	orr_foreign_begin_anew(odev, port);
	foreign->uid = uid;
	if (uid)
		orr_foreign_greet(odev, port);
}

/* The same of one behind a switch: what was on the way may be lost at the link, there, or in a switch. */
static void orr_foreign_look_behind(struct orr_device *odev, u32 at,
				    const struct orr_link_look *look)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[at];
	u32 how = 0;
	int idx;

	lockdep_assert_held(&odev->fabric.lock);
	if (orr_enter(odev, &idx))
		return;
	if (orr_link_is_up(look) && look->control & ORR_LINK_FORWARD)
		how = orr_reach_look(odev, foreign->port, foreign->behind);
	orr_exit(odev, idx);
	if (how == foreign->how && look->losses == foreign->losses &&
	    !orr_foreign_is_held(odev, foreign))
		return;
	orr_foreign_begin_anew(odev, at);
	foreign->how = how;
	foreign->losses = look->losses;
	if (how)
		orr_foreign_greet(odev, at);
}

static struct orr_foreign *orr_foreign_behind(struct orr_device *odev, u32 node, u32 *at)
{
	lockdep_assert_held(&odev->fabric.lock);
	for (*at = ORR_LINK_MAX_PORTS; *at < ORR_FOREIGN_MAX; ++*at)
		if (odev->fabric.foreign[*at].behind == node)
			return &odev->fabric.foreign[*at];
	return NULL;
}

/*
 * One more card behind a switch. Return: 0, -EBUSY: there is no room, because of what processes have of so
 * many.
 */
static int orr_foreign_add(struct orr_device *odev, u32 node, u32 port, u32 *at)
{
	u8 uses[ORR_FOREIGN_MAX - ORR_LINK_MAX_PORTS];
	struct orr_foreign *foreign;
	u32 i;

	lockdep_assert_held(&odev->fabric.lock);
	for (i = 0; i < ARRAY_SIZE(uses); i++) {
		*at = ORR_LINK_MAX_PORTS + i;
		foreign = &odev->fabric.foreign[*at];
		uses[i] = !foreign->behind ? ORR_PLACE_FREE :
			  orr_import_names(odev, *at) || orr_fabric_names(odev, *at) ? ORR_PLACE_USED :
			  foreign->greet.session ? ORR_PLACE_IDLE : ORR_PLACE_GONE;
	}
	i = orr_greet_place(uses, ARRAY_SIZE(uses), &odev->fabric.last_place);
	if (i == ARRAY_SIZE(uses))
		return -EBUSY;
	*at = ORR_LINK_MAX_PORTS + i;
	foreign = &odev->fabric.foreign[*at];
	if (foreign->greet.session)
		orr_foreign_say_goodbye(odev, *at);
	*foreign = (struct orr_foreign){ .behind = node, .port = port };
	/* Its worker has the port pass on, and greets. */
	orr_health_link_kick(odev, true);
	return 0;
}

/* Nobody is taken for another card that is known here, so that the wrong one is blamed. */
static bool orr_foreign_may_be(struct orr_device *odev, u32 at, u64 uid)
{
	u32 other;

	lockdep_assert_held(&odev->fabric.lock);
	for (other = 0; other < ORR_FOREIGN_MAX; other++)
		if (other != at && odev->fabric.foreign[other].uid == uid)
			return false;
	return uid != U64_MAX && !orr_peer_has_uid(uid);
}

/* Somebody has greeted, or answered. */
static void orr_foreign_hello(struct orr_device *odev, u32 at, u32 node,
			      const struct orr_note *note)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[at];
	const struct orr_greeting heard = {
		.nonce = le64_to_cpu(note->base),
		.known = le64_to_cpu(note->size),
		.before = le16_to_cpu(note->epoch),
		.asks = note->op == ORR_NOTE_HELLO,
	};
	u64 uid = le64_to_cpu(note->object);
	u32 other;

	lockdep_assert_held(&odev->fabric.lock);
	for (other = 0; other < ORR_FOREIGN_MAX; other++)
		if (other != at && odev->fabric.foreign[other].greet.session &&
		    odev->fabric.foreign[other].node == node)
			return;
	if (orr_greet_ends(&foreign->greet, &heard) || (foreign->greet.session && foreign->node != node))
		orr_foreign_begin_anew(odev, at);
	if (orr_greet_hear(&foreign->greet, &heard)) {
		/* What was bound in an older session shall not come to life: greeted once it is cut. */
		if (!orr_import_is_cut(odev, at) || orr_foreign_route(odev, foreign, node))
			return;
		if (foreign->behind) {
			odev->fabric.epochs[node] = foreign->greet.epoch;
			foreign->uid = orr_foreign_may_be(odev, at, uid) ? uid : 0;
		}
		foreign->key = orr_key_make(odev, NULL);
		foreign->greet.session = true;
	}
	if (orr_greet_answers(&foreign->greet, &heard))
		orr_foreign_say_hello(odev, at, ORR_NOTE_HELLO_BACK);
}

/* Who has sent a note? Return: whether he may be known. */
static bool orr_foreign_sender(struct orr_device *odev, u32 port, u32 node, bool passed,
			       const struct orr_note *note, u32 *at)
{
	struct orr_foreign *foreign;
	struct orr_link_look look;
	bool looked, to_switch;
	int idx;

	lockdep_assert_held(&odev->fabric.lock);
	/* The link may have come up since the last look. */
	if (orr_enter(odev, &idx))
		return false;
	looked = orr_link_look(odev, port, &look);
	to_switch = looked && orr_link_to_switch(odev, port);
	orr_exit(odev, idx);
	if (!looked || passed != to_switch)
		return false;
	*at = port;
	if (!to_switch) {
		orr_foreign_look(odev, port, &look);
		return true;
	}
	foreign = orr_foreign_behind(odev, node, at);
	if (!foreign &&
	    (note->op != ORR_NOTE_HELLO || orr_foreign_add(odev, node, port, at)))
		return false;
	foreign = &odev->fabric.foreign[*at];
	if (foreign->port != port &&
	    orr_greet_moves(&foreign->greet, odev->node, node, foreign->how)) {
		foreign->port = port;
		foreign->how = 0;
	}
	if (foreign->port == port)
		orr_foreign_look_behind(odev, *at, &look);
	else if (!foreign->greet.session)
		orr_foreign_greet(odev, *at);
	return foreign->port == port;
}

static void orr_foreign_note(struct orr_device *odev, u32 port, u32 node, bool passed,
			     const struct orr_note *note)
{
	struct orr_foreign *foreign;
	u32 at;

	lockdep_assert_held(&odev->fabric.lock);
	if (le16_to_cpu(note->magic) != ORR_NOTE_MAGIC || !node)
		return;
	if (note->version != ORR_NOTE_VERSION) {
		dev_warn_ratelimited(odev->drm.dev,
				     "the driver of card number %u at link %u sends notes of version %u, this one of version %u: nothing is shared with it, use drivers of one version\n",
				     node, port, note->version, ORR_NOTE_VERSION);
		return;
	}
	if (orr_node_is_own(node)) {
		dev_warn_ratelimited(odev->drm.dev,
				     "a card %s link %u, which is not this driver's, says that its number is %u, which is: give each driver numbers of its own (first_node=, nodes=)\n",
				     passed ? "behind the switch at" : "at the other end of", port, node);
		return;
	}
	if (!orr_foreign_sender(odev, port, node, passed, note, &at))
		return;
	foreign = &odev->fabric.foreign[at];
	if (!orr_foreign_is_there(foreign))
		return;
	switch (note->op) {
	case ORR_NOTE_HELLO:
	case ORR_NOTE_HELLO_BACK:
		orr_foreign_hello(odev, at, node, note);
		break;
	case ORR_NOTE_GOODBYE:
		if (foreign->greet.session && foreign->node == node &&
		    foreign->greet.peer == le64_to_cpu(note->base))
			orr_foreign_begin_anew(odev, at);
		break;
	default:
		if (foreign->greet.session && foreign->node == node)
			orr_fabric_note(odev, at, note);
		else if (!foreign->greet.session)
			/* He believes that there is one. */
			orr_foreign_greet(odev, at);
	}
}

static void orr_foreign_work_locked(struct orr_device *odev)
{
	unsigned int left = ORR_NOTES_AT_ONCE;
	struct orr_note note;
	u32 at, port, node;
	bool passed;

	lockdep_assert_held(&odev->fabric.lock);
	for (port = 0; port < odev->info.link_ports; port++)
		orr_foreign_look(odev, port, &odev->link_looks[port]);
	for (at = ORR_LINK_MAX_PORTS; at < ORR_FOREIGN_MAX; at++)
		if (odev->fabric.foreign[at].behind)
			orr_foreign_look_behind(odev, at,
						&odev->link_looks[odev->fabric.foreign[at].port]);
	while (left && orr_note_take(odev, &port, &node, &passed, &note)) {
		orr_foreign_note(odev, port, node, passed, &note);
		left--;
	}
	orr_fabric_tell(odev);
	/* Others of this machine wait for a turn, too. */
	if (!left)
		orr_health_link_kick(odev, false);
}

/**
 * orr_foreign_work - look at links and notes; by one worker of the card
 * @odev: the card
 */
void orr_foreign_work(struct orr_device *odev)
{
	if (!orr_has_notes(odev) || orr_is_lost(odev))
		return;
	orr_foreign_open_ports(odev);
	scoped_guard(mutex, &odev->fabric.lock)
		if (odev->fabric.open)
			orr_foreign_work_locked(odev);
	orr_fabric_close_sems(odev);
}

/**
 * orr_foreign_open - the card has its number: greet those at the other ends of its links
 * @odev: the card
 */
void orr_foreign_open(struct orr_device *odev)
{
	scoped_guard(mutex, &odev->fabric.lock)
		odev->fabric.open = true;
	orr_health_link_kick(odev, true);
}

/**
 * orr_foreign_goodbye - the driver leaves the card
 * @odev: the card, which still works
 */
void orr_foreign_goodbye(struct orr_device *odev)
{
	u32 at;

	if (!orr_has_notes(odev))
		return;
	scoped_guard(mutex, &odev->fabric.lock) {
		odev->fabric.open = false;
		for (at = 0; at < ORR_FOREIGN_MAX; at++) {
			if (odev->fabric.foreign[at].greet.session)
				orr_foreign_say_goodbye(odev, at);
		}
	}
	orr_fabric_close_sems(odev);
}

static bool orr_foreign_find_locked(struct orr_device *odev, u32 node, u32 *at)
{
	lockdep_assert_held(&odev->fabric.lock);
	for (*at = 0; *at < ORR_FOREIGN_MAX; ++*at)
		if (odev->fabric.foreign[*at].greet.session && odev->fabric.foreign[*at].node == node)
			return true;
	return false;
}

/* Greets all who have not answered, and him behind a switch who has that number. Return: 0, -EBUSY. */
static int orr_foreign_look_for(struct orr_device *odev, u32 node)
{
	struct orr_foreign *behind;
	u32 at, port;
	int ret = 0;

	lockdep_assert_held(&odev->fabric.lock);
	behind = orr_foreign_behind(odev, node, &at);
	if (!behind) {
		if (orr_foreign_reach(odev, node, 0, &port))
			ret = orr_foreign_add(odev, node, port, &at);
	} else if (!behind->how && orr_foreign_reach(odev, node, behind->port, &port)) {
		behind->port = port;
		orr_health_link_kick(odev, true);
	}
	for (at = 0; at < ORR_FOREIGN_MAX; at++) {
		struct orr_foreign *foreign = &odev->fabric.foreign[at];

		if (orr_foreign_is_there(foreign) && !foreign->greet.session &&
		    (!foreign->behind || foreign->behind == node))
			orr_foreign_greet(odev, at);
	}
	return ret;
}

/**
 * orr_foreign_find - how is a card of another machine reached?
 * @odev: the card that wants to reach it
 * @node: of the other
 * @at: filled in: which of orr_fabric.foreign it is
 *
 * Who has not answered yet is greeted again, for a second.
 *
 * Return: 0, -EXDEV if there is none, -EBUSY: too many others are in use, -EOPNOTSUPP, -ENODEV,
 * -ERESTARTSYS.
 */
int orr_foreign_find(struct orr_device *odev, u32 node, u32 *at)
{
	unsigned int tries;
	int ret;

	if (!orr_has_notes(odev))
		return -EOPNOTSUPP;
	for (tries = 0; tries < ORR_GREET_TRIES; tries++) {
		if (orr_is_lost(odev))
			return -ENODEV;
		scoped_guard(mutex, &odev->fabric.lock) {
			if (orr_foreign_find_locked(odev, node, at))
				return 0;
			ret = tries % 10 == 0 ? orr_foreign_look_for(odev, node) : 0;
			if (ret)
				return ret;
		}
		if (msleep_interruptible(ORR_GREET_PERIOD_MS))
			return -ERESTARTSYS;
	}
	return -EXDEV;
}

/**
 * orr_foreign_fini - nobody is told any more
 * @odev: the card; its worker has ended
 */
void orr_foreign_fini(struct orr_device *odev)
{
	struct orr_import *import, *next;
	struct orr_lease *lease, *after;

	list_for_each_entry_safe(lease, after, &odev->fabric.revoked, link)
		kfree(lease);
	list_splice_init(&odev->fabric.ended, &odev->fabric.untold);
	list_for_each_entry_safe(import, next, &odev->fabric.untold, link)
		kfree(import);
	xa_destroy(&odev->fabric.exports);
}

/**
 * orr_foreign_init - prepare
 * @odev: the card
 *
 * Return: 0 or -ENOMEM.
 */
int orr_foreign_init(struct orr_device *odev)
{
	struct orr_fabric *fabric = &odev->fabric;
	int ret;
	u32 port;

	for (port = 0; port < ORR_LINK_MAX_PORTS; port++) {
		fabric->foreign[port].port = port;
		fabric->cleared[port] = jiffies - ORR_CLEAR_AGAIN;
		fabric->forward_next[port] = jiffies;
	}
	xa_init_flags(&fabric->exports, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&fabric->leases);
	INIT_LIST_HEAD(&fabric->revoked);
	INIT_LIST_HEAD(&fabric->imports);
	INIT_LIST_HEAD(&fabric->asked);
	INIT_LIST_HEAD(&fabric->ended);
	INIT_LIST_HEAD(&fabric->untold);
	INIT_LIST_HEAD(&fabric->closing);
	spin_lock_init(&fabric->ended_lock);
	INIT_WORK(&fabric->cut_work, orr_import_cut_work);
	init_waitqueue_head(&fabric->cut);
	INIT_WORK(&fabric->clear_work, orr_foreign_clear_work);
	INIT_DELAYED_WORK(&fabric->forward_work, orr_foreign_forward_work);
	fabric->last_tag = get_random_u32();
	ret = drmm_mutex_init(&odev->drm, &fabric->lock);
	ret = ret ?: drmm_mutex_init(&odev->drm, &fabric->route_lock);
	return ret ?: drmm_mutex_init(&odev->drm, &odev->note_lock);
}
