// SPDX-License-Identifier: GPL-2.0
/*
 * Cards of other machines. Their driver is another, which may be wrong or hostile: it gets a route, so
 * that it can be written to, and besides that only grants for handles whose secret it knows.
 *
 * Both drivers greet each other when a link comes up, with a nonce each. Both nonces make the epoch of
 * the two cards, so what was sent before one of them began anew is without effect. After a loss the
 * session ends with all that was shared by that port, and nothing goes on behind a gap.
 *
 * Only the neighbour at a link can be greeted: there are no ways over several links to another machine.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/slab.h>

#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_foreign.h"

#define ORR_FOREIGN_ROUTE_US (2 * USEC_PER_SEC)
/* How many notes are looked at before others get a turn. */
#define ORR_NOTES_AT_ONCE 16u
#define ORR_GREET_TRIES 50u
#define ORR_GREET_PERIOD_MS 20u

/**
 * orr_foreign_epoch - what both sides put into their routes
 * @foreign: the other
 *
 * Return: the epoch.
 */
u16 orr_foreign_epoch(const struct orr_foreign *foreign)
{
	return foreign->nonce ^ foreign->peer_nonce;
}

static int orr_foreign_route(struct orr_device *odev, u32 node, u32 route)
{
	int idx, ret;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	orr_write32(odev, ORR_R_ROUTE(node), route);
	ret = orr_await(odev, ORR_R_ROUTE(node), route, ORR_FOREIGN_ROUTE_US, 0);
	orr_exit(odev, idx);
	return ret;
}

static void orr_foreign_end(struct orr_device *odev, u32 port)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[port];

	lockdep_assert_held(&odev->fabric.lock);
	if (!foreign->session)
		return;
	foreign->session = false;
	orr_fabric_end_port(odev, port);
	orr_foreign_route(odev, foreign->node, 0);
	foreign->node = 0;
}

/**
 * orr_foreign_greet - tell the other driver that there is a card, and ask for its answer
 * @odev: the card
 * @port: of the link
 */
void orr_foreign_greet(struct orr_device *odev, u32 port)
{
	struct orr_note note = {
		.magic = cpu_to_le16(ORR_NOTE_MAGIC),
		.version = ORR_NOTE_VERSION,
		.op = ORR_NOTE_HELLO,
		.nonce = cpu_to_le16(odev->fabric.foreign[port].nonce),
	};

	orr_note_send(odev, port, &note);
}

/**
 * orr_foreign_restart - all that is shared with who does not answer ends, on both sides
 * @odev: the card
 * @ports: of the links, a bit each
 */
void orr_foreign_restart(struct orr_device *odev, unsigned long ports)
{
	struct orr_note note = orr_fabric_say(ORR_NOTE_GOODBYE, 0);
	u32 port;

	lockdep_assert_held(&odev->fabric.lock);
	for_each_set_bit(port, &ports, odev->info.link_ports) {
		struct orr_foreign *foreign = &odev->fabric.foreign[port];

		if (!foreign->session)
			continue;
		dev_warn_ratelimited(odev->drm.dev,
				     "the driver of card %016llx (number %u) at link %u does not answer: all that is shared with it ends\n",
				     foreign->uid, foreign->node, port);
		orr_note_send(odev, port, &note);
		orr_foreign_end(odev, port);
		foreign->nonce = get_random_u16();
		orr_foreign_greet(odev, port);
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
		if (orr_link_is_up(look))
			uid = orr_read64(odev, ORR_R_LINK(port) + ORR_R_LINK_PEER_UID);
		orr_exit(odev, idx);
		foreign->seen = uid == U64_MAX ? 0 : uid;
		foreign->losses = look->losses;
	}
	uid = foreign->seen && !orr_peer_has_uid(foreign->seen) ? foreign->seen : 0;
	if (uid == foreign->uid && !lost)
		return;
	orr_foreign_end(odev, port);
	foreign->uid = uid;
	foreign->nonce = get_random_u16();
	if (uid)
		orr_foreign_greet(odev, port);
}

/* Somebody has greeted, or answered. */
static void orr_foreign_hello(struct orr_device *odev, u32 port, u32 node,
			      const struct orr_note *note)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[port];
	struct orr_note back = *note;
	u32 other;

	lockdep_assert_held(&odev->fabric.lock);
	for (other = 0; other < odev->info.link_ports; other++)
		if (other != port && odev->fabric.foreign[other].session &&
		    odev->fabric.foreign[other].node == node)
			return;
	if (!foreign->session || foreign->node != node ||
	    foreign->peer_nonce != le16_to_cpu(note->nonce)) {
		orr_foreign_end(odev, port);
		foreign->peer_nonce = le16_to_cpu(note->nonce);
		/* What was bound in an older session shall not come to life: greeted once it is cut. */
		if (!orr_import_is_cut(odev, port))
			return;
		if (orr_foreign_route(odev, node, ORR_ROUTE_VALID | port |
				      (u32)orr_foreign_epoch(foreign) << ORR_ROUTE_EPOCH_SHIFT))
			return;
		foreign->node = node;
		foreign->session = true;
	}
	if (note->op != ORR_NOTE_HELLO)
		return;
	back.op = ORR_NOTE_HELLO_BACK;
	back.nonce = cpu_to_le16(foreign->nonce);
	orr_note_send(odev, port, &back);
}

static void orr_foreign_note(struct orr_device *odev, u32 port, u32 node,
			     const struct orr_note *note)
{
	struct orr_foreign *foreign = &odev->fabric.foreign[port];
	struct orr_link_look look;
	bool looked;
	int idx;

	lockdep_assert_held(&odev->fabric.lock);
	if (le16_to_cpu(note->magic) != ORR_NOTE_MAGIC)
		return;
	if (note->version != ORR_NOTE_VERSION) {
		dev_warn_ratelimited(odev->drm.dev,
				     "the driver at the other end of link %u sends notes of version %u, this one of version %u: nothing is shared with it, use drivers of one version\n",
				     port, note->version, ORR_NOTE_VERSION);
		return;
	}
	/* The link may have come up since the last look. */
	if (orr_enter(odev, &idx))
		return;
	looked = orr_link_look(odev, port, &look);
	orr_exit(odev, idx);
	if (!looked)
		return;
	orr_foreign_look(odev, port, &look);
	if (!foreign->uid || !node)
		return;
	if (orr_node_is_own(node)) {
		dev_warn_ratelimited(odev->drm.dev,
				     "the card at the other end of link %u, which is not this driver's, says that its number is %u, which is: give each driver numbers of its own (first_node=, nodes=)\n",
				     port, node);
		return;
	}
	switch (note->op) {
	case ORR_NOTE_HELLO:
	case ORR_NOTE_HELLO_BACK:
		orr_foreign_hello(odev, port, node, note);
		break;
	case ORR_NOTE_GOODBYE:
		if (foreign->node == node)
			orr_foreign_end(odev, port);
		break;
	default:
		if (foreign->session && foreign->node == node)
			orr_fabric_note(odev, port, note);
	}
}

static void orr_foreign_work_locked(struct orr_device *odev)
{
	unsigned int left = ORR_NOTES_AT_ONCE;
	struct orr_note note;
	u32 port, node;

	lockdep_assert_held(&odev->fabric.lock);
	for (port = 0; port < odev->info.link_ports; port++)
		orr_foreign_look(odev, port, &odev->link_looks[port]);
	while (left && orr_note_take(odev, &port, &node, &note)) {
		orr_foreign_note(odev, port, node, &note);
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
	struct orr_note note = orr_fabric_say(ORR_NOTE_GOODBYE, 0);
	u32 port;

	if (!orr_has_notes(odev))
		return;
	scoped_guard(mutex, &odev->fabric.lock) {
		odev->fabric.open = false;
		for (port = 0; port < odev->info.link_ports; port++) {
			if (!odev->fabric.foreign[port].session)
				continue;
			orr_note_send(odev, port, &note);
			orr_foreign_end(odev, port);
		}
	}
	orr_fabric_close_sems(odev);
}

static bool orr_foreign_find_locked(struct orr_device *odev, u32 node, u32 *port)
{
	lockdep_assert_held(&odev->fabric.lock);
	for (*port = 0; *port < odev->info.link_ports; (*port)++)
		if (odev->fabric.foreign[*port].session &&
		    odev->fabric.foreign[*port].node == node)
			return true;
	return false;
}

/**
 * orr_foreign_find - by which port is a card of another machine reached?
 * @odev: the card that wants to reach it
 * @node: of the other
 * @port: filled in
 *
 * Who has not answered yet is greeted again, for a second.
 *
 * Return: 0, -EXDEV if there is none, -EOPNOTSUPP, -ENODEV, -ERESTARTSYS.
 */
int orr_foreign_find(struct orr_device *odev, u32 node, u32 *port)
{
	unsigned int tries;
	u32 p;

	if (!orr_has_notes(odev))
		return -EOPNOTSUPP;
	for (tries = 0; tries < ORR_GREET_TRIES; tries++) {
		if (orr_is_lost(odev))
			return -ENODEV;
		scoped_guard(mutex, &odev->fabric.lock) {
			if (orr_foreign_find_locked(odev, node, port))
				return 0;
			for (p = 0; p < odev->info.link_ports && tries % 10 == 0; p++)
				if (odev->fabric.foreign[p].uid && !odev->fabric.foreign[p].session)
					orr_foreign_greet(odev, p);
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
	fabric->last_tag = get_random_u32();
	ret = drmm_mutex_init(&odev->drm, &fabric->lock);
	return ret ?: drmm_mutex_init(&odev->drm, &odev->note_lock);
}
