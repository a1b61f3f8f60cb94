// SPDX-License-Identifier: GPL-2.0
/* Opening and closing the node: what a process owns goes with its file, whatever is in flight. */
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <drm/orrery_accel.h>

#include "orr_device.h"
#include "orr_file.h"
#include "orr_queue.h"
#include "orr_vm.h"

/**
 * orr_file_open - a process opens the node
 * @drm: the card
 * @drm_file: its file
 *
 * Return: 0, -ENODEV if the card is lost, -ENOMEM.
 */
int orr_file_open(struct drm_device *drm, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct orr_file *file;

	if (orr_is_lost(odev))
		return -ENODEV;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	file->odev = odev;
	file->page = ORR_NO_PAGE;
	file->uid = current_euid();
	file->pid = task_tgid_nr(current);
	mutex_init(&file->lock);
	mutex_init(&file->dummy_lock);
	orr_work_file_init(file);
	orr_sample_file_init(file);
	orr_pc_file_init(file);
	xa_init_flags(&file->vms, XA_FLAGS_ALLOC1);
	xa_init_flags(&file->queues, XA_FLAGS_ALLOC1);
	drm_file->driver_priv = file;
	return 0;
}

/**
 * orr_file_close - the last reference to a file is gone, and with it every mapping through it
 * @drm: the card
 * @drm_file: the file
 *
 * Queues go first, so that nothing of the process runs when its address spaces go; those end the
 * card's way to the BOs, which the core drops after.
 */
void orr_file_close(struct drm_device *drm, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct orr_queue *queue;
	unsigned long number;
	struct orr_vm *vm;

	orr_fabric_close(file);
	orr_pc_file_close(file);
	orr_sample_file_close(file);
	orr_work_file_close(file);
	scoped_guard(mutex, &file->lock) {
		xa_for_each(&file->queues, number, queue)
			orr_queue_destroy(file, queue);
		xa_for_each(&file->vms, number, vm) {
			orr_vm_close(vm, true);
			orr_vm_put(vm);
		}
	}
	xa_destroy(&file->queues);
	xa_destroy(&file->vms);
	if (file->page != ORR_NO_PAGE)
		orr_doorbell_page_put(file->odev, file->page);
	for (number = 0; number < ARRAY_SIZE(file->dummy); number++)
		if (file->dummy[number])
			__free_page(file->dummy[number]);
	mutex_destroy(&file->dummy_lock);
	mutex_destroy(&file->lock);
	kfree(file);
}

/**
 * orr_file_account - a queue has gone: keep what it has used
 * @file: its owner, who holds file->lock
 * @queue: the queue, out of the file's table
 */
void orr_file_account(struct orr_file *file, struct orr_queue *queue)
{
	u64 vector_ps, copy_ps;

	lockdep_assert_held(&file->lock);
	orr_queue_engine_time(queue, &vector_ps, &copy_ps);
	xa_lock(&file->queues);
	file->vector_ps += vector_ps;
	file->copy_ps += copy_ps;
	xa_unlock(&file->queues);
}

/**
 * orr_file_engine_time - how long the file's queues, also those that are gone, have used engines
 * @file: the file
 * @vector_ps: sum over the vector cores, model time
 * @copy_ps: sum over the copy engines
 *
 * For whoever looks at processes: neither asks the firmware nor waits for one who does. A queue that
 * is being destroyed may be missing for a moment.
 */
void orr_file_engine_time(struct orr_file *file, u64 *vector_ps, u64 *copy_ps)
{
	struct orr_queue *queue;
	unsigned long number;

	xa_lock(&file->queues);
	*vector_ps = file->vector_ps;
	*copy_ps = file->copy_ps;
	xa_for_each(&file->queues, number, queue) {
		u64 vector, copy;

		orr_queue_engine_time(queue, &vector, &copy);
		*vector_ps += vector;
		*copy_ps += copy;
	}
	xa_unlock(&file->queues);
}

/**
 * orr_file_get_vm - look up an address space
 * @file: who asks
 * @number: what it calls it
 *
 * Return: the address space with a reference, or NULL.
 */
struct orr_vm *orr_file_get_vm(struct orr_file *file, u32 number)
{
	struct orr_vm *vm;

	xa_lock(&file->vms);
	vm = xa_load(&file->vms, number);
	if (vm)
		orr_vm_get(vm);
	xa_unlock(&file->vms);
	return vm;
}

/**
 * orr_file_get_queue - look up a queue
 * @file: who asks
 * @number: what it calls it
 *
 * Return: the queue with a reference, or NULL.
 */
struct orr_queue *orr_file_get_queue(struct orr_file *file, u32 number)
{
	struct orr_queue *queue;

	xa_lock(&file->queues);
	queue = xa_load(&file->queues, number);
	if (queue)
		orr_queue_get(queue);
	xa_unlock(&file->queues);
	return queue;
}
