/* SPDX-License-Identifier: GPL-2.0 */
/* Address spaces. */
#ifndef _ORR_VM_H_
#define _ORR_VM_H_

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>

#include "orr_grant.h"

struct orr_bo;
struct orr_device;
struct orr_file;
struct orr_pt;
struct seq_file;

/**
 * struct orr_vm - an address space, a context for the firmware
 */
struct orr_vm {
	/** @ref: references */
	struct kref ref;
	/** @odev: the card */
	struct orr_device *odev;
	/** @context: its number, which is its ASID */
	u32 context;
	/** @file: whose it is: a file outlives what it shows of it; not to be followed, but compared */
	const struct orr_file *file;
	/** @work_from: what the trace sink had before is not about it */
	u64 work_from;
	/** @tenant: on whose account it is; constant */
	struct orr_tenant tenant;
	/** @lock: guards what follows; who has it waits for no other card */
	struct mutex lock;
	/** @root: root table; NULL once it is closed */
	struct orr_pt *root;
	/** @mappings: struct orr_mapping, an interval tree */
	struct rb_root_cached mappings;
	/** @lent: memory of another card was mapped in it */
	bool lent;
	/** @queues: queues that use it */
	unsigned int queues;
	/** @epoch: counts what was unmapped; orr_signal.c looks at it without the lock */
	u64 epoch;

	/** @signallers: struct orr_signaller of its queues by address; orr_sems_lock */
	struct rb_root signallers;
	/** @closing_sems: semaphores its queues have left alone, likewise */
	unsigned int closing_sems;
};

struct orr_vm *orr_vm_create(struct orr_device *odev, const struct orr_file *file, u64 quota);
int orr_vm_close(struct orr_vm *vm, bool force);
void orr_vm_put(struct orr_vm *vm);

static inline void orr_vm_get(struct orr_vm *vm)
{
	kref_get(&vm->ref);
}

int orr_vm_map(struct orr_vm *vm, struct orr_bo *bo, u64 bo_offset, u64 va, u64 size, u32 flags);
int orr_vm_unmap(struct orr_vm *vm, u64 va, u64 size);
int orr_vms_cut_dead(struct orr_device *odev);
void orr_vms_show(struct orr_device *odev, struct seq_file *m);

struct orr_bo *orr_vm_lookup(struct orr_vm *vm, u64 va, u64 size, u32 flags, u64 *bo_offset,
			     u64 *epoch);

int orr_vm_add_queue(struct orr_vm *vm);
void orr_vm_remove_queue(struct orr_vm *vm);

#endif /* _ORR_VM_H_ */
