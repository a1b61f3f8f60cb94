// SPDX-License-Identifier: GPL-2.0
/*
 * Address spaces: what is mapped where is kept in an interval tree. drm_gpuvm is not used: its
 * split-and-merge interface differs between the kernels we build for, and binding here is
 * synchronous and never maps over a mapping, so most of it would go unused. What its lists of each BO's
 * mappings would be for is a card that goes: then all address spaces of the others are looked through.
 */
#include <linux/interval_tree.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include <drm/drm_gem.h>
#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_pt.h"
#include "orr_queue.h"
#include "orr_sem.h"
#include "orr_signal.h"
#include "orr_trace.h"
#include "orr_vm.h"

/**
 * struct orr_mapping - a part of a BO in an address space
 */
struct orr_mapping {
	/** @it: first and last virtual address */
	struct interval_tree_node it;
	/** @bo: a reference, and for memory of a linked card a use of its grant */
	struct orr_bo *bo;
	/** @bo_offset: what of the BO is at the first address */
	u64 bo_offset;
	/** @flags: ORR_BIND_* */
	u32 flags;
	/** @dead: its page table entries lead nowhere: see orr_bo_is_dead() */
	bool dead;
};

static struct orr_mapping *orr_mapping_first(struct orr_vm *vm, u64 start, u64 last)
{
	struct interval_tree_node *it;

	it = interval_tree_iter_first(&vm->mappings, start, last);
	return it ? container_of(it, struct orr_mapping, it) : NULL;
}

static void orr_mapping_free(struct orr_vm *vm, struct orr_mapping *mapping)
{
	orr_bo_unuse(mapping->bo, &vm->tenant);
	drm_gem_object_put(&mapping->bo->base);
	kfree(mapping);
}

/* Mappings that the card has forgotten. Without the lock: the cards that have their memory are waited for. */
static void orr_mappings_free(struct orr_vm *vm, struct rb_root_cached *gone)
{
	struct interval_tree_node *it;

	while ((it = interval_tree_iter_first(gone, 0, ULONG_MAX))) {
		interval_tree_remove(it, gone);
		orr_mapping_free(vm, container_of(it, struct orr_mapping, it));
	}
}

/**
 * orr_vm_create - make an address space
 * @odev: the card
 * @file: its owner, which has a doorbell page; what runs in it is on the account of who opened it
 * @quota: as ORR_MBOX_CONTEXT_CREATE takes it, 0: none
 *
 * Return: the address space or an error pointer; -ENOSPC if the card has no context free.
 */
struct orr_vm *orr_vm_create(struct orr_device *odev, const struct orr_file *file, u64 quota)
{
	char name[ORR_NAME_BYTES];
	u64 request[5];
	struct orr_vm *vm;
	int idx, ret;

	vm = kzalloc(sizeof(*vm), GFP_KERNEL_ACCOUNT);
	if (!vm)
		return ERR_PTR(-ENOMEM);
	kref_init(&vm->ref);
	mutex_init(&vm->lock);
	vm->odev = odev;
	vm->file = file;
	/* Whoever the file is passed on to: who opened it pays. */
	vm->tenant = (struct orr_tenant){ .uid = file->uid, .pid = file->pid };
	vm->mappings = RB_ROOT_CACHED;
	vm->signallers = RB_ROOT;

	ret = ida_alloc_range(&odev->contexts, 1, odev->info.max_contexts - 1, GFP_KERNEL);
	if (ret < 0)
		goto err_free;
	vm->context = ret;
	ret = xa_reserve(&odev->vms, vm->context, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_context;

	vm->root = orr_pt_create_root(odev);
	if (IS_ERR(vm->root)) {
		ret = PTR_ERR(vm->root);
		goto err_reserved;
	}

	ret = orr_enter(odev, &idx);
	if (ret)
		goto err_root;
	request[0] = vm->context;
	request[1] = orr_pt_address(vm->root);
	request[2] = file->page;
	request[3] = quota;
	request[4] = from_kuid(&init_user_ns, vm->tenant.uid) | (u64)vm->tenant.pid << 32;
	ret = orr_mbox_command_patient(odev, ORR_MBOX_ONCE_BEGUN, ORR_MBOX_CONTEXT_CREATE, request,
				       orr_fw_has_tenants(odev) ? 5 : 4, NULL);
	if (!ret) {
		vm->work_from = orr_work_now(odev);
		orr_queue_name_make(name, "", task_tgid_nr(current));
		orr_name_send(odev, ORR_NAME_CONTEXT, vm->context, name);
	}
	orr_exit(odev, idx);
	if (ret)
		goto err_root;
	xa_store(&odev->vms, vm->context, vm, 0);
	return vm;

err_root:
	orr_pt_free_all(odev, vm->root);
err_reserved:
	xa_release(&odev->vms, vm->context);
err_context:
	ida_free(&odev->contexts, vm->context);
err_free:
	mutex_destroy(&vm->lock);
	kfree(vm);
	return ERR_PTR(ret);
}

/* Ends the card's use of the address space; when this returns, it does not look at the tables. */
static void orr_vm_detach(struct orr_vm *vm)
{
	struct orr_device *odev = vm->odev;
	u64 request[] = { vm->context, 0, 0 };
	int idx, ret;

	ret = orr_enter(odev, &idx);
	if (!ret) {
		ret = orr_mbox_command(odev, ORR_MBOX_TLB_FLUSH, request, 3, NULL);
		if (!ret)
			ret = orr_mbox_command(odev, ORR_MBOX_CONTEXT_DESTROY, request, 1, NULL);
		/* One that did not survive a restart of the firmware. */
		if (ret == -ENOENT && READ_ONCE(odev->restart.count))
			ret = 0;
		if (ret && ret != -ENODEV)
			orr_device_lost(odev, "the firmware refuses to destroy a context");
		orr_exit(odev, idx);
	}
	if (ret)
		orr_device_quiesced(odev);
}

/**
 * orr_vm_close - end an address space
 * @vm: the address space; others may hold references, but cannot use it any more
 * @force: its file is closing, and has ended its queues
 *
 * Return: 0, -EBUSY while it has queues, -ENOENT if it is closed.
 */
int orr_vm_close(struct orr_vm *vm, bool force)
{
	struct rb_root_cached gone;

	scoped_guard(mutex, &vm->lock) {
		if (!vm->root)
			return -ENOENT;
		if (vm->queues && !WARN_ON(force))
			return -EBUSY;
		orr_vm_detach(vm);
		gone = vm->mappings;
		vm->mappings = RB_ROOT_CACHED;
		orr_pt_free_all(vm->odev, vm->root);
		vm->root = NULL;
		/* Not before the card has let go of it: see orr_vms_cut_dead(). */
		xa_erase(&vm->odev->vms, vm->context);
		ida_free(&vm->odev->contexts, vm->context);
	}
	orr_mappings_free(vm, &gone);
	return 0;
}

static void orr_vm_release(struct kref *ref)
{
	struct orr_vm *vm = container_of(ref, struct orr_vm, ref);

	WARN_ON(vm->root);
	mutex_destroy(&vm->lock);
	kfree(vm);
}

/**
 * orr_vm_put - drop a reference
 * @vm: the address space
 */
void orr_vm_put(struct orr_vm *vm)
{
	kref_put(&vm->ref, orr_vm_release);
}

/**
 * orr_vm_add_queue - a queue begins to use an address space
 * @vm: the address space
 *
 * Return: 0, -ENOENT if it is closed.
 */
int orr_vm_add_queue(struct orr_vm *vm)
{
	guard(mutex)(&vm->lock);
	if (!vm->root)
		return -ENOENT;
	vm->queues++;
	orr_vm_get(vm);
	return 0;
}

/**
 * orr_vm_remove_queue - a queue of orr_vm_add_queue() does not use it any more
 * @vm: the address space
 */
void orr_vm_remove_queue(struct orr_vm *vm)
{
	scoped_guard(mutex, &vm->lock)
		vm->queues--;
	orr_vm_put(vm);
}

/**
 * orr_vm_lookup - what is mapped at an address
 * @vm: the address space
 * @va: first address
 * @size: bytes, > 0; all in one mapping
 * @flags: ORR_BIND_* that the mapping has to have
 * @bo_offset: set to what of the BO is there
 * @epoch: set to orr_vm.epoch: as long as that does not change, it is still there
 *
 * Return: the BO with a reference, or an error pointer: -EFAULT, -EACCES for want of @flags.
 */
struct orr_bo *orr_vm_lookup(struct orr_vm *vm, u64 va, u64 size, u32 flags, u64 *bo_offset,
			     u64 *epoch)
{
	struct orr_mapping *mapping;

	guard(mutex)(&vm->lock);
	mapping = orr_mapping_first(vm, va, va);
	if (!mapping || size - 1 > mapping->it.last - va)
		return ERR_PTR(-EFAULT);
	if (flags & ~mapping->flags)
		return ERR_PTR(-EACCES);
	*bo_offset = mapping->bo_offset + (va - mapping->it.start);
	*epoch = vm->epoch;
	drm_gem_object_get(&mapping->bo->base);
	return mapping->bo;
}

static u64 orr_vm_pte_flags(u32 flags)
{
	u64 pte = ORR_PTE_VALID | ORR_PTE_LEAF;

	if (flags & ORR_BIND_READ)
		pte |= ORR_PTE_READ;
	if (flags & ORR_BIND_WRITE)
		pte |= ORR_PTE_WRITE;
	if (flags & ORR_BIND_EXEC)
		pte |= ORR_PTE_EXEC;
	return pte;
}

/* Enters the pieces of a BO. The caller is inside orr_enter(). */
static int orr_vm_map_pieces(struct orr_vm *vm, struct orr_bo *bo, u64 offset, u64 va, u64 size,
			     u64 flags)
{
	struct orr_bo_cursor cursor;
	int ret = 0;

	orr_bo_cursor_init(&cursor, bo, offset);
	while (size && !ret) {
		u64 bytes = min(size, cursor.bytes);

		if (!bytes)
			return -EFAULT;
		ret = orr_pt_map(vm->odev, vm->root, va, cursor.address, bytes,
				 flags | cursor.target);
		va += bytes;
		size -= bytes;
		orr_bo_cursor_advance(&cursor, bytes);
	}
	return ret;
}

/* Makes the card forget a range. Return: 0, or -ENODEV and then the card is still. */
static int orr_vm_flush(struct orr_vm *vm, u64 va, u64 size)
{
	u64 request[] = { vm->context, va, size };
	int ret;

	ret = orr_mbox_command(vm->odev, ORR_MBOX_TLB_FLUSH, request, ARRAY_SIZE(request), NULL);
	if (ret && ret != -ENODEV)
		orr_device_lost(vm->odev, "the firmware refuses to flush a TLB");
	return ret ? -ENODEV : 0;
}

/* Takes the lock. Return: 0, -ERESTARTSYS, -ENOENT, -EEXIST, and then nothing is locked. */
static int orr_vm_lock_to_map(struct orr_vm *vm, const struct orr_mapping *mapping)
{
	int ret = 0;

	if (mutex_lock_interruptible(&vm->lock))
		return -ERESTARTSYS;
	if (!vm->root)
		ret = -ENOENT;
	else if (orr_mapping_first(vm, mapping->it.start, mapping->it.last))
		ret = -EEXIST;
	if (ret)
		mutex_unlock(&vm->lock);
	return ret;
}

/**
 * orr_vm_map - map a part of a BO
 * @vm: the address space
 * @bo: the BO
 * @bo_offset: whole pages
 * @va: whole pages
 * @size: whole pages; inside the BO and the range of addresses
 * @flags: ORR_BIND_*
 *
 * Return: 0, -EEXIST if something is mapped there, -ENOSPC without VRAM for tables, …
 */
int orr_vm_map(struct orr_vm *vm, struct orr_bo *bo, u64 bo_offset, u64 va, u64 size, u32 flags)
{
	struct orr_device *odev = vm->odev;
	struct orr_mapping *mapping;
	LIST_HEAD(unused);
	int idx, ret, dead = 0;

	mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		return -ENOMEM;
	mapping->it.start = va;
	mapping->it.last = va + size - 1;
	mapping->bo = bo;
	mapping->bo_offset = bo_offset;
	mapping->flags = flags;

	ret = orr_vm_lock_to_map(vm, mapping);
	if (ret)
		goto err_free;
	/*
	 * For memory of a linked card this asks the owner to let us in. Without the lock, which who takes
	 * that card's or another's memory away has to get.
	 */
	mutex_unlock(&vm->lock);
	ret = orr_bo_use(bo, flags, &vm->tenant);
	if (ret)
		goto err_free;
	ret = orr_vm_lock_to_map(vm, mapping);
	if (ret)
		goto err_unuse;
	ret = orr_enter(odev, &idx);
	if (ret)
		goto err_unlock;

	/* The DMA mapping must not go between the look at it and the entry in the tree. */
	mutex_lock(&odev->bo_lock);
	ret = orr_vm_map_pieces(vm, bo, bo_offset, va, size, orr_vm_pte_flags(flags));
	mutex_unlock(&odev->bo_lock);
	if (ret) {
		orr_pt_clear(odev, vm->root, va, size, &unused);
		dead = orr_vm_flush(vm, va, size);
		orr_exit(odev, idx);
		goto err_unlock;
	}
	orr_exit(odev, idx);
	if (bo->kind == ORR_BO_KIND_FOREIGN)
		WRITE_ONCE(bo->import->used, true);
	if (bo->kind == ORR_BO_KIND_FOREIGN || bo->kind == ORR_BO_KIND_PEER)
		vm->lent = true;
	drm_gem_object_get(&bo->base);
	interval_tree_insert(&mapping->it, &vm->mappings);
	trace_orr_map(odev, bo, va, size, flags);
	mutex_unlock(&vm->lock);
	return 0;

err_unlock:
	if (dead)
		orr_device_quiesced(odev);
	orr_pt_free_list(odev, &unused);
	mutex_unlock(&vm->lock);
err_unuse:
	orr_bo_unuse(bo, &vm->tenant);
err_free:
	kfree(mapping);
	return ret;
}

/* Cuts [va, last] out of a mapping; what is left stays in the tree, the rest goes to @gone. */
static void orr_vm_cut(struct orr_vm *vm, struct orr_mapping *mapping, u64 va, u64 last,
		       struct orr_mapping **spare, struct rb_root_cached *gone)
{
	u64 start = mapping->it.start, end = mapping->it.last;

	interval_tree_remove(&mapping->it, &vm->mappings);
	if (start < va && end > last) {
		struct orr_mapping *tail = *spare;

		*spare = NULL;
		tail->bo = mapping->bo;
		tail->bo_offset = mapping->bo_offset + (last + 1 - start);
		tail->flags = mapping->flags;
		tail->dead = mapping->dead;
		tail->it.start = last + 1;
		tail->it.last = end;
		drm_gem_object_get(&tail->bo->base);
		orr_bo_use_again(tail->bo, &vm->tenant);
		interval_tree_insert(&tail->it, &vm->mappings);
	}
	if (start < va) {
		mapping->it.last = va - 1;
		interval_tree_insert(&mapping->it, &vm->mappings);
	} else if (end > last) {
		mapping->bo_offset += last + 1 - start;
		mapping->it.start = last + 1;
		interval_tree_insert(&mapping->it, &vm->mappings);
	} else {
		/* Freed once the card has forgotten it. */
		interval_tree_insert(&mapping->it, gone);
	}
}

static int orr_vm_cut_range(struct orr_vm *vm, u64 va, u64 size, struct orr_mapping **spare,
			    struct rb_root_cached *gone, struct list_head *unused)
{
	struct orr_device *odev = vm->odev;
	u64 last = va + size - 1;
	struct orr_mapping *mapping;
	int ret;

	/* All that can fail comes before the first change. */
	ret = orr_pt_split(odev, vm->root, va);
	if (!ret)
		ret = orr_pt_split(odev, vm->root, last + 1);
	if (ret)
		return ret;
	if (!orr_mapping_first(vm, va, last))
		return 0;
	while ((mapping = orr_mapping_first(vm, va, last)))
		orr_vm_cut(vm, mapping, va, last, spare, gone);
	orr_pt_clear(odev, vm->root, va, size, unused);
	return orr_vm_flush(vm, va, size);
}

static int orr_vm_unmap_locked(struct orr_vm *vm, u64 va, u64 size, struct orr_mapping **spare,
			       struct rb_root_cached *gone)
{
	LIST_HEAD(unused);
	int idx, ret;

	lockdep_assert_held(&vm->lock);
	if (!vm->root)
		return -ENOENT;
	ret = orr_enter(vm->odev, &idx);
	if (ret)
		return ret;
	ret = orr_vm_cut_range(vm, va, size, spare, gone, &unused);
	WRITE_ONCE(vm->epoch, vm->epoch + 1);
	orr_exit(vm->odev, idx);
	if (ret == -ENODEV)
		orr_device_quiesced(vm->odev);

	orr_pt_free_list(vm->odev, &unused);
	return ret;
}

/**
 * orr_vm_unmap - remove what is mapped in a range, whole mappings or parts
 * @vm: the address space
 * @va: whole pages
 * @size: whole pages; holes are fine
 *
 * Return: 0 when the card cannot reach anything through the range any more, and the semaphores
 * there that only queues of this address space might have signalled have been closed (or the caller
 * is being killed), -ENOMEM or -ENOSPC with nothing changed, -ENODEV when the card is lost.
 */
int orr_vm_unmap(struct orr_vm *vm, u64 va, u64 size)
{
	struct orr_mapping *spare __free(kfree) = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	struct rb_root_cached gone = RB_ROOT_CACHED;
	u64 epoch;
	int ret;

	if (!spare)
		return -ENOMEM;
	if (mutex_lock_interruptible(&vm->lock))
		return -ERESTARTSYS;
	ret = orr_vm_unmap_locked(vm, va, size, &spare, &gone);
	if (!ret)
		trace_orr_unmap(vm->odev, va, size);
	epoch = vm->epoch;
	mutex_unlock(&vm->lock);
	orr_mappings_free(vm, &gone);
	/* As it is for the process: who is attached there cannot signal any more. */
	if (!ret && orr_signaller_unmapped(vm, va, size, epoch))
		orr_sems_wait_vm(vm);
	return ret;
}

/* The caller is inside orr_enter(). Return: whether anything was changed, so that a flush is due. */
static bool orr_vm_cut_dead_locked(struct orr_vm *vm)
{
	struct orr_mapping *mapping;
	bool changed = false;
	u64 va = 0;

	lockdep_assert_held(&vm->lock);
	while ((mapping = orr_mapping_first(vm, va, U64_MAX))) {
		u64 start = mapping->it.start;

		va = mapping->it.last + 1;
		if (mapping->dead || !orr_bo_is_dead(mapping->bo))
			continue;
		mapping->dead = true;
		changed = true;
		orr_pt_to_no_card(vm->odev, vm->root, start, va - start);
	}
	return changed;
}

static int orr_vm_cut_dead(struct orr_vm *vm)
{
	int idx, ret;

	guard(mutex)(&vm->lock);
	if (!vm->root || !vm->lent)
		return 0;
	ret = orr_enter(vm->odev, &idx);
	if (ret)
		return ret;
	if (orr_vm_cut_dead_locked(vm))
		ret = orr_vm_flush(vm, 0, 0);
	orr_exit(vm->odev, idx);
	if (ret)
		orr_device_quiesced(vm->odev);
	return ret;
}

/* The next address space from a number on, with a reference, or NULL. */
static struct orr_vm *orr_vm_next(struct orr_device *odev, unsigned long *context)
{
	struct orr_vm *vm;

	xa_lock(&odev->vms);
	vm = xa_find(&odev->vms, context, ULONG_MAX, XA_PRESENT);
	if (vm)
		orr_vm_get(vm);
	xa_unlock(&odev->vms);
	return vm;
}

/**
 * orr_vms_cut_dead - what orr_bo_is_dead() says is out of all page tables
 * @odev: the card whose page tables they are
 *
 * Waits for the card, so not where fences end.
 *
 * Return: 0 when nothing that a process does reaches what was dead before, by what was bound then; -ENODEV:
 * the card is lost.
 */
int orr_vms_cut_dead(struct orr_device *odev)
{
	unsigned long context = 0;
	struct orr_vm *vm;
	int ret;

	for (; (vm = orr_vm_next(odev, &context)); context++) {
		ret = orr_vm_cut_dead(vm);
		orr_vm_put(vm);
		if (ret)
			return ret;
	}
	return 0;
}

static void orr_vm_show(struct seq_file *m, struct orr_vm *vm)
{
	struct orr_mapping *mapping;
	u64 va = 0;

	guard(mutex)(&vm->lock);
	while (vm->root && (mapping = orr_mapping_first(vm, va, U64_MAX))) {
		va = mapping->it.last + 1;
		seq_printf(m, "%7u %14lx %14llx %16llx %s\n", vm->context, mapping->it.start,
			   va - mapping->it.start, orr_pt_entry(vm->root, mapping->it.start),
			   mapping->dead ? "dead" : "-");
	}
}

/**
 * orr_vms_show - all mappings of a card, with what its page tables have at the first address of each
 * @odev: the card
 * @m: where to
 */
void orr_vms_show(struct orr_device *odev, struct seq_file *m)
{
	unsigned long context = 0;
	struct orr_vm *vm;

	seq_printf(m, "%7s %14s %14s %16s %s\n", "context", "address", "bytes", "entry", "owner");
	for (; (vm = orr_vm_next(odev, &context)); context++) {
		orr_vm_show(m, vm);
		orr_vm_put(vm);
	}
}
