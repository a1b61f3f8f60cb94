/* SPDX-License-Identifier: GPL-2.0 */
/* A look at all queues of all cards: who waits for whom. */
#ifndef _ORR_LOOK_H_
#define _ORR_LOOK_H_

#include <linux/err.h>
#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "orr_map.h"

struct orr_bo;
struct orr_device;
struct orr_file;
struct orr_queue;
struct orr_vm;

#define ORR_LOOK_NONE U32_MAX
/* Rows by semaphore, and by barrier. */
#define ORR_LOOK_BITS 10
/* Waits of a way to a cycle, and round it: one that is longer is not told. */
#define ORR_LOOK_MAX_PATH 256u
/* Waits that other machines may end, which a look finds on the ways from one queue. */
#define ORR_LOOK_MAX_FAR 8u

/**
 * struct orr_party - a queue, as a look finds it
 */
struct orr_party {
	/** @queue: a reference */
	struct orr_queue *queue;
	/** @vm: its address space, a reference */
	struct orr_vm *vm;
	/** @uid: whose it is */
	kuid_t uid;
	/** @pid: process that opened the file, in the initial namespace */
	pid_t pid;
	/** @file: only to compare */
	const struct orr_file *file;
	/** @completed: packets that it is done with */
	u64 completed;
	/** @end: packets that are in its ring */
	u64 end;
	/** @va: of what it waits for */
	u64 va;
	/** @wanted: value that it waits for */
	u64 wanted;
	/** @bo: which has the semaphore, a reference; NULL: it does not wait */
	struct orr_bo *bo;
	/** @offset: of the semaphore in its origin */
	u64 offset;
	/** @barrier: whose units raise the semaphore: its key, or 0 */
	u64 barrier;
	/** @next: other party in the same row of &orr_look.waiting */
	u32 next;
	/** @next_barred: and of &orr_look.barred, with a @barrier */
	u32 next_barred;
	/** @signals: first edge to those whom its packets would set free */
	u32 signals;
	/** @holder: last party whose packets were found to set this one free */
	u32 holder;
	/** @held: by whose packets @holder does: a bit for each member of @barrier; else bit 0 */
	u32 held;
	/** @freed: by whose packets @holder may free it, not all of which hold it; bits likewise */
	u32 freed;
	/** @lacks: members whose signals only such packets have as are stuck; bits likewise */
	u32 lacks;
	/** @stuck: as at the top of orr_look.c */
	bool stuck;
	/** @far: cards of other machines may signal what it waits for; it counts as stuck */
	bool far;
};

/**
 * struct orr_look_import - memory of another machine's card
 */
struct orr_look_import {
	/** @odev: the card that may write there; only to compare */
	const struct orr_device *odev;
	/** @at: who has lent it, in orr_fabric.foreign */
	u32 at;
	/** @tag: what that is called in its notes */
	u32 tag;
	/** @offset: of a semaphore in it */
	u64 offset;
};

/**
 * struct orr_look_edge - a party's packets would set another free
 */
struct orr_look_edge {
	/** @waiter: the other */
	u32 waiter;
	/** @next: edge of the same signaller */
	u32 next;
	/** @signaller: the party */
	u32 signaller;
	/** @frees: bits of what the waiter lacks that it would have then */
	u32 frees;
	/** @holds: of @frees those that it lacks until then, as far as that packet goes */
	u32 holds;
	/** @va: by which its packet names the semaphore */
	u64 va;
};

/**
 * struct orr_look - a look at all queues of all cards
 */
struct orr_look {
	/** @cards: references */
	struct orr_device *cards[ORR_MAP_CARDS];
	/** @card_count: of @cards */
	unsigned int card_count;
	/** @party: by number; the last place is for somebody who waits without a queue */
	struct orr_party *party;
	/** @count: of @party */
	u32 count;
	/** @room: in @party */
	u32 room;
	/** @edge: by number */
	struct orr_look_edge *edge;
	/** @edges: of @edge */
	u32 edges;
	/** @packets: that were read */
	u32 packets;
	/** @todo: parties that have turned out not to be stuck */
	u32 *todo;
	/** @path: parties from the first on, each waits for the next */
	u32 path[ORR_LOOK_MAX_PATH];
	/** @length: of @path */
	u32 length;
	/** @lead: of @path what is not in the cycle; @length: it leads to another machine */
	u32 lead;
	/** @remote: party that waits on another machine, or ORR_LOOK_NONE */
	u32 remote;
	/** @import: what @remote waits for */
	struct orr_look_import import;
	/** @far: of @path's first, see orr_look_reach() */
	u32 far[ORR_LOOK_MAX_FAR];
	/** @far_count: of @far */
	u32 far_count;
	/** @stamp: the same for as long as all of them wait with the same packets */
	u64 stamp;
	/** @waiting: first party by the semaphore that it waits for */
	u32 waiting[1 << ORR_LOOK_BITS];
	/** @barred: and by the key of its barrier */
	u32 barred[1 << ORR_LOOK_BITS];
};

/* One look at a time: what it takes does not grow with those who ask. */
extern struct mutex orr_look_lock;

struct orr_look *orr_look_begin(void);
void orr_look_end(struct orr_look *look);
bool orr_look_at_all(struct orr_look *look);
int orr_look_add_wait(struct orr_look *look, struct orr_vm *vm, u64 va, u64 value);
u32 orr_look_add_remote(struct orr_look *look, const struct orr_look_import *import, u64 value);
bool orr_look_solve(struct orr_look *look);
bool orr_look_is_held(const struct orr_look *look, u32 number);
bool orr_look_reach(struct orr_look *look, u32 number);
void orr_look_walk(struct orr_look *look, u32 number);
bool orr_look_stands(struct orr_look *look);
const struct orr_look_edge *orr_look_holder(const struct orr_look *look, u32 number);

DEFINE_FREE(orr_look, struct orr_look *, orr_look_end(_T))

#endif /* _ORR_LOOK_H_ */
