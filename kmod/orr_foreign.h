/* SPDX-License-Identifier: GPL-2.0 */
/* Cards of other machines, at the other ends of links or behind switches, and memory shared with them. */
#ifndef _ORR_FOREIGN_H_
#define _ORR_FOREIGN_H_

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>

#include "orr_grant.h"
#include "orr_greet.h"

struct drm_orr_query_way;
struct orr_bo;
struct orr_device;
struct orr_file;
struct orr_sem;

#define ORR_NOTE_MAGIC 0x4e4fu
/*
 * 2: UNMAP and REVOKED are answered. 3: greetings say uid and epoch. 4: and both nonces, of 64 bits.
 * 5: looks by which ORR_NOTE_STUCK comes have marks of 16 bits. 6: MAP is answered with a key. Drivers of two
 * versions share nothing.
 */
#define ORR_NOTE_VERSION 6u
/* Cards of other machines that one card knows: those at its ports, and the rest behind switches. */
#define ORR_FOREIGN_MAX 64u
#define ORR_FABRIC_SECRET_BYTES 16u
/* Least time between two looks whether something is in the way at a switch. */
#define ORR_CLEAR_AGAIN (10 * HZ)
/* In orr_note.status of ORR_NOTE_UNMAP: nothing was ever bound, so nobody is missed as a signaller. */
#define ORR_UNMAP_UNUSED 1u
/* In that of ORR_NOTE_MAP: the asking card's requests carry keys. */
#define ORR_MAP_KEYS 1u

/**
 * enum orr_note_op - what a note between drivers is about
 * @ORR_NOTE_HELLO: here is a card; who are you?
 * @ORR_NOTE_HELLO_BACK: the answer
 * @ORR_NOTE_GOODBYE: all that was shared ends
 * @ORR_NOTE_MAP: may I write to the memory behind this handle?
 * @ORR_NOTE_MAP_BACK: the answer
 * @ORR_NOTE_UNMAP: the memory of @tag is not used any more
 * @ORR_NOTE_REVOKED: it is not shared any more; said again until it is answered
 * @ORR_NOTE_UNMAP_BACK: the answer to ORR_NOTE_UNMAP, which is said again until it comes
 * @ORR_NOTE_REVOKED_BACK: nothing there leads to the memory of @tag any more
 * @ORR_NOTE_STUCK: would somebody signal what is mapped as @tag who is not stuck himself? @object names the
 *	search, @base where in the memory, @size the value, and the name is of who waits for it. The looks by
 *	which it comes are in what is left: see orr_far_question()
 * @ORR_NOTE_STUCK_HOP: before the answer: for whom waits the one before him: @size is the node, with the name
 * @ORR_NOTE_STUCK_BACK: the answer, an enum orr_far_answer; @size is the same as long as nothing has moved,
 *	and the name is of who would signal it
 */
enum orr_note_op {
	ORR_NOTE_HELLO = 1,
	ORR_NOTE_HELLO_BACK,
	ORR_NOTE_GOODBYE,
	ORR_NOTE_MAP,
	ORR_NOTE_MAP_BACK,
	ORR_NOTE_UNMAP,
	ORR_NOTE_REVOKED,
	ORR_NOTE_UNMAP_BACK,
	ORR_NOTE_REVOKED_BACK,
	ORR_NOTE_STUCK,
	ORR_NOTE_STUCK_HOP,
	ORR_NOTE_STUCK_BACK,
};

/**
 * struct orr_note - between drivers, in the card's own registers
 */
struct orr_note {
	/** @magic: ORR_NOTE_MAGIC */
	__le16 magic;
	/** @version: ORR_NOTE_VERSION */
	u8 version;
	/** @op: enum orr_note_op */
	u8 op;
	/** @tag: of the one who maps: what it calls this mapping, the same when it asks again */
	__le32 tag;
	/** @object: of the one who has the memory; in a greeting the sender's uid, as it says */
	__le64 object;
	/** @base: VRAM offset, in an answer; in a greeting and ORR_NOTE_GOODBYE the sender's nonce */
	__le64 base;
	/** @size: of the memory; in a greeting the other's nonce, as the sender knows it */
	__le64 size;
	/**
	 * @secret: that came with the handle; of ORR_NOTE_MAP_BACK the key that requests have to carry, in
	 * the first eight; of ORR_NOTE_STUCK and its answer the name
	 */
	u8 secret[ORR_FABRIC_SECRET_BYTES];
	/** @number: of ORR_NOTE_STUCK and its answers which of the search's questions it is; else 0 */
	__le16 number;
	/**
	 * @epoch: in which the sender believes to be; in a greeting of the last session, 0: none. Of
	 * ORR_NOTE_STUCK_BACK how many waits it tells of, with those of ORR_NOTE_STUCK_HOP
	 */
	__le16 epoch;
	/**
	 * @status: 0 or a negative error, in an answer; ORR_UNMAP_UNUSED in ORR_NOTE_UNMAP, ORR_MAP_KEYS in
	 * ORR_NOTE_MAP
	 */
	__le32 status;
	/** @pad: 0; of ORR_NOTE_STUCK and its answers the end of the name */
	u8 pad[8];
};

static_assert(sizeof(struct orr_note) == ORR_NOTE_BYTES);

/**
 * struct orr_foreign - what is known of a card of another machine
 *
 * The first ORR_LINK_MAX_PORTS of a card are those at the other ends of its ports.
 */
struct orr_foreign {
	/** @port: by which it is reached */
	u32 port;
	/** @behind: of one behind a switch: its number; 0: nobody has asked, or it is at the end of a link */
	u32 behind;
	/** @how: what the switch says of it, as ORR_R_REACH; 0: it is not reached */
	u32 how;
	/** @seen: of one at the end of a link: what it says that it is; 0: the link is down */
	u64 seen;
	/** @uid: the same; 0: it is this driver's own. Of one behind a switch: as its driver says */
	u64 uid;
	/** @node: its number, while there is a session */
	u32 node;
	/** @losses: of the link, when that was found out */
	u32 losses;
	/** @key: that its requests have to carry in this session */
	u64 key;
	/** @greet: whether there is a session with it, and a route */
	struct orr_greet greet;
	/** @routed: the card has a route there, by @port; orr_fabric.route_lock */
	bool routed;
	/** @held: nothing goes there any more, for something may have been lost; orr_fabric.route_lock */
	bool held;
	/** @untold: imports that have ended and are in orr_fabric.untold */
	unsigned int untold;
	/** @again: times that it has said that something is revoked which is cut, since the last look */
	unsigned int again;
	/** @far_told: when its driver was last told an answer, in such answers; orr_far_lock */
	u64 far_told;
};

/**
 * struct orr_fabric - what a card shares with cards of other machines
 */
struct orr_fabric {
	/** @lock: guards all of it */
	struct mutex lock;
	/** @open: the card has its number, and greets */
	bool open;
	/** @foreign: cards of other machines */
	struct orr_foreign foreign[ORR_FOREIGN_MAX];
	/** @forged: handles with a wrong secret that came by each port */
	u32 forged[ORR_LINK_MAX_PORTS];
	/** @last_place: that was given away, in orr_greet_place() */
	u32 last_place;
	/** @epochs: of the last session with a node behind a switch; 0: there was none */
	u16 epochs[ORR_NODES];
	/** @route_lock: guards routes to other machines' cards; innermost, no wait for debuggers in it */
	struct mutex route_lock;
	/** @exports: struct orr_export by number, from 1 */
	struct xarray exports;
	/** @leases: struct orr_lease: who may write here */
	struct list_head leases;
	/** @revoked: those of them who may not any more, and have not said yet that they know */
	struct list_head revoked;
	/** @imports: struct orr_import: where this card may write */
	struct list_head imports;
	/** @asked: struct orr_asked: who waits for an answer */
	struct list_head asked;
	/** @last_tag: of imports */
	u32 last_tag;
	/** @ended: struct orr_import that are to be told of; @ended_lock */
	struct list_head ended;
	/** @untold: those of them that have not been answered yet */
	struct list_head untold;
	/** @cut_work: takes out of page tables what orr_bo_is_dead() */
	struct work_struct cut_work;
	/** @cuts_wanted: how often it was asked for by who waits for it */
	atomic_t cuts_wanted;
	/** @cuts_done: what it had come to when @cut_work began for the last time; behind that it is over */
	u32 cuts_done;
	/** @cut: who waits for @cuts_done */
	wait_queue_head_t cut;
	/** @closing: struct orr_sem that are to be closed; @ended_lock */
	struct list_head closing;
	/** @ended_lock: guards @ended and @closing */
	spinlock_t ended_lock;
	/** @forward_next: jiffies until which a port is not asked to pass on again; by the card's worker */
	unsigned long forward_next[ORR_LINK_MAX_PORTS];
	/** @forward_work: has that worker look then */
	struct delayed_work forward_work;
	/** @clogged: ports by which what is said here may not get through, a bit each */
	unsigned long clogged;
	/** @cleared: jiffies when each port was cleared the last time */
	unsigned long cleared[ORR_LINK_MAX_PORTS];
	/** @clear_work: clears them */
	struct work_struct clear_work;
};

/**
 * struct orr_telling - something that another driver is told until it answers
 */
struct orr_telling {
	/** @begun: it has been told */
	bool begun;
	/** @first: jiffies then */
	unsigned long first;
	/** @last: the last time */
	unsigned long last;
};

/**
 * struct orr_lent - what other machines have of a BO, and who may signal the semaphore with which it begins;
 * orr_fabric.lock
 */
struct orr_lent {
	/** @mapped: mappings of it over there, also of memory that is no semaphore; read without the lock */
	unsigned int mapped;
	/** @exports: handles of it */
	unsigned int exports;
	/** @leases: imports of all of them */
	unsigned int leases;
	/** @missed: somebody had it and has gone */
	bool missed;
	/** @closed: after the last of them; nobody gets it any more */
	bool closed;
};

/**
 * struct orr_export - memory that who knows the secret may write to
 */
struct orr_export {
	/** @bo: a reference */
	struct orr_bo *bo;
	/** @file: whose it is */
	struct orr_file *file;
	/** @tenant: who pays for grants */
	struct orr_tenant tenant;
	/** @secret: that goes into the handle */
	u8 secret[ORR_FABRIC_SECRET_BYTES];
	/** @semaphore: it begins with one, which is closed when nobody is left who may signal it */
	bool semaphore;
	/** @sem: to close it with; NULL: that was done, or there is none */
	struct orr_sem *sem;
	/** @leases: how many have it */
	unsigned int leases;
	/** @ending: it is being taken back: nobody gets it any more */
	bool ending;
};

/**
 * struct orr_lease - somebody else's mapping of an export
 */
struct orr_lease {
	/** @link: in orr_fabric.leases or .revoked */
	struct list_head link;
	/** @export: of what; not once it is revoked */
	struct orr_export *export;
	/** @base: VRAM offset */
	u64 base;
	/** @size: bytes */
	u64 size;
	/** @at: who, in orr_fabric.foreign */
	u32 at;
	/** @node: his */
	u32 node;
	/** @tag: what he calls it */
	u32 tag;
	/** @telling: that it is revoked */
	struct orr_telling telling;
};

/**
 * struct orr_import - memory of a card of another machine, of a BO of this one
 */
struct orr_import {
	/** @link: in orr_fabric.imports, then in orr_fabric.ended, at last in orr_fabric.untold */
	struct list_head link;
	/** @at: who has it, in orr_fabric.foreign */
	u32 at;
	/** @node: of the card that has it */
	u32 node;
	/** @uid: likewise */
	u64 uid;
	/** @base: VRAM offset there */
	u64 base;
	/** @size: bytes */
	u64 size;
	/** @tag: what it is called in notes */
	u32 tag;
	/** @used: it was bound once, with orr_vm.lock of somebody held */
	bool used;
	/** @dead: nothing is there any more */
	bool dead;
	/** @cutting: it was dead when page tables began to be looked through */
	bool cutting;
	/** @cut: dead, and in no page table */
	bool cut;
	/** @telling: that it is not used any more */
	struct orr_telling telling;
};

/**
 * struct orr_lessee - who of another machine may write to a BO
 */
struct orr_lessee {
	/** @at: who, in orr_fabric.foreign */
	u32 at;
	/** @node: his */
	u32 node;
	/** @tag: what he calls it */
	u32 tag;
	/** @uid: of this machine's user who has lent it */
	kuid_t uid;
};

/* orr_note.c */
int orr_note_send(struct orr_device *odev, u32 port, u32 node, const struct orr_note *note);
bool orr_note_take(struct orr_device *odev, u32 *port, u32 *node, bool *passed, struct orr_note *note);

/* orr_foreign.c */
int orr_foreign_init(struct orr_device *odev);
void orr_foreign_fini(struct orr_device *odev);
void orr_foreign_work(struct orr_device *odev);
void orr_foreign_open(struct orr_device *odev);
void orr_foreign_goodbye(struct orr_device *odev);
int orr_foreign_find(struct orr_device *odev, u32 node, u32 *at);
void orr_foreign_say(struct orr_device *odev, u32 at, const struct orr_note *note);
void orr_foreign_greet(struct orr_device *odev, u32 at);
void orr_foreign_restart(struct orr_device *odev, u64 deaf);

/* Whether its link is up, and it has a driver that is not this one. */
static inline bool orr_foreign_is_there(const struct orr_foreign *foreign)
{
	return foreign->behind ? foreign->how : foreign->uid;
}

/* orr_foreign_way.c */
int orr_foreign_route(struct orr_device *odev, struct orr_foreign *foreign, u32 node);
void orr_foreign_unroute(struct orr_device *odev, struct orr_foreign *foreign);
int orr_foreign_hold(struct orr_device *odev, u32 port);
bool orr_foreign_is_held(struct orr_device *odev, const struct orr_foreign *foreign);
void orr_foreign_open_ports(struct orr_device *odev);
void orr_foreign_forward_work(struct work_struct *work);
u32 orr_foreign_reach(struct orr_device *odev, u32 node, u32 first, u32 *port);
int orr_foreign_query(struct orr_device *odev, struct drm_orr_query_way *args);
void orr_foreign_unheard(struct orr_device *odev, u32 at);
void orr_foreign_clear_work(struct work_struct *work);

/* orr_fabric.c: the side that has the memory */
struct orr_note orr_fabric_say(enum orr_note_op op, u32 tag);
void orr_fabric_note(struct orr_device *odev, u32 at, const struct orr_note *note);
void orr_fabric_end(struct orr_device *odev, u32 at);
bool orr_fabric_names(struct orr_device *odev, u32 at);
void orr_fabric_tell(struct orr_device *odev);
void orr_fabric_close_sems(struct orr_device *odev);
u32 orr_fabric_lessees(struct orr_device *odev, const struct orr_bo *bo, struct orr_lessee *lessee,
		       u32 room);
void orr_fabric_close(struct orr_file *file);
bool orr_telling_due(struct orr_telling *telling, unsigned int *left);
bool orr_telling_is_over(const struct orr_telling *telling);
bool orr_telling_is_long(const struct orr_telling *telling);

/* orr_import.c: the side that writes */
void orr_import_answer(struct orr_device *odev, u32 at, const struct orr_note *note);
void orr_import_revoked(struct orr_device *odev, u32 at, u32 tag);
void orr_import_told(struct orr_device *odev, u32 at, u32 tag);
void orr_import_end_all(struct orr_device *odev, u32 at);
bool orr_import_is_cut(struct orr_device *odev, u32 at);
bool orr_import_names(struct orr_device *odev, u32 at);
void orr_import_cut_work(struct work_struct *work);
bool orr_import_tell(struct orr_device *odev, unsigned int left[], u64 *deaf);
void orr_import_forget(struct orr_device *odev, struct orr_import *import);

#endif /* _ORR_FOREIGN_H_ */
