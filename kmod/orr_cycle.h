/* SPDX-License-Identifier: GPL-2.0 */
/* Cycles of waits over cards and processes. */
#ifndef _ORR_CYCLE_H_
#define _ORR_CYCLE_H_

#include <linux/types.h>
#include <linux/uidgid.h>

#include "orr_queue.h"

struct drm_orr_query_cycle;
struct orr_file;
struct orr_look;
struct orr_vm;

/**
 * struct orr_hop - a wait on the way to a cycle, or round it, as it was when it was looked at
 */
struct orr_hop {
	/** @uid: whose it is; of another machine's wait, to whom of this machine it may be told */
	kuid_t uid;
	/** @pid: process that opened the file, in the initial namespace */
	pid_t pid;
	/** @node: of the card on another machine; 0: it is of this one */
	u32 node;
	/** @has_queue: a queue of this machine waits, which the next four are of */
	bool has_queue;
	/** @card: uid of its card */
	u64 card;
	/** @queue: the firmware's number */
	u32 queue;
	/** @index: of the packet */
	u64 index;
	/** @name: its name; also of another machine's */
	char name[ORR_QUEUE_NAME_BYTES];
	/** @va: of the semaphore, as who waits sees it; 0: not of this machine */
	u64 va;
	/** @wanted: value that is waited for */
	u64 wanted;
	/** @signal: the semaphore as who would signal it sees it; 0: not of this machine */
	u64 signal;
	/** @signaller_uid: whose that is */
	kuid_t signaller_uid;
	/** @signaller_pid: likewise */
	pid_t signaller_pid;
};

void orr_hop_take(struct orr_hop *hop, const struct orr_look *look, u32 number);
int orr_cycle_query(struct orr_file *file, struct orr_vm *vm, struct orr_queue *queue,
		    struct drm_orr_query_cycle *args);

#endif /* _ORR_CYCLE_H_ */
