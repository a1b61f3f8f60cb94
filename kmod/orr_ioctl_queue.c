// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of queues: what a process says about them is checked here.
 */
#include <linux/dma-fence-chain.h>
#include <linux/log2.h>

#include <drm/drm_syncobj.h>
#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_cycle.h"
#include "orr_deadlock.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_ioctl.h"
#include "orr_queue.h"
#include "orr_sem.h"
#include "orr_signal.h"
#include "orr_vm.h"

static int orr_queue_create_check(struct orr_device *odev, const struct drm_orr_queue_create *args)
{
	u64 size;

	if (args->entries < 2 || args->entries > odev->info.max_ring_entries ||
	    !is_power_of_2(args->entries))
		return -EINVAL;
	size = sizeof(struct orr_ring) + (u64)args->entries * 64;
	if (!IS_ALIGNED(args->ring_va, 64) || !orr_va_range_ok(args->ring_va, size))
		return -EINVAL;
	if (orr_queue_name_check(args->name))
		return -EINVAL;
	if ((args->weight || args->slice_us) && !orr_fw_schedules(odev))
		return -EOPNOTSUPP;
	return orr_share_check(args->priority, args->weight, args->slice_us) ?:
	       orr_limit_check(args->dispatch_limit_us);
}

static int orr_queue_create_locked(struct orr_file *file, struct drm_orr_queue_create *args)
{
	struct orr_queue *queue;
	struct orr_vm *vm;
	int ret;

	vm = xa_load(&file->vms, args->vm);
	if (!vm)
		return -ENOENT;
	/* The number first, for the name may hold it. */
	ret = xa_alloc(&file->queues, &args->queue, NULL, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	ret = orr_queue_create(file, vm, args->queue, args, &queue);
	if (ret) {
		xa_erase(&file->queues, args->queue);
		return ret;
	}
	/* Into an entry that is reserved: needs no memory. */
	xa_store(&file->queues, args->queue, queue, GFP_KERNEL_ACCOUNT);
	args->doorbell_slot = queue->slot;
	args->doorbell_offset = orr_mmap_doorbell_offset();
	args->kick_offset = orr_mmap_kick_offset();
	args->generation = queue->generation;
	args->firmware_number = queue->number;
	args->pad = 0;
	return 0;
}

int orr_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_queue_create *args = data;
	int ret;

	ret = orr_queue_create_check(odev, args);
	if (ret)
		return ret;
	ret = orr_file_lock(file);
	if (ret)
		return ret;
	ret = orr_queue_create_locked(file, args);
	mutex_unlock(&file->lock);
	return ret;
}

int orr_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_queue_destroy *args = data;
	struct orr_queue *queue;
	int ret;

	if (args->pad)
		return -EINVAL;
	ret = orr_file_lock(file);
	if (ret)
		return ret;
	queue = xa_erase(&file->queues, args->queue);
	if (queue) {
		orr_queue_get(queue);
		orr_queue_destroy(file, queue);
	}
	mutex_unlock(&file->lock);
	if (!queue)
		return -ENOENT;
	/* The memory is the process's again, unless it is being killed. */
	orr_sems_wait_queue(queue);
	orr_queue_put(queue);
	return 0;
}

int orr_queue_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_queue_wait *args = data;
	struct orr_queue_status status = {};
	struct orr_queue *queue;
	int ret;

	if (args->flags || args->pad)
		return -EINVAL;
	if (orr_is_lost(file->odev))
		return -ENODEV;
	queue = orr_file_get_queue(file, args->queue);
	if (!queue)
		return -ENOENT;
	ret = orr_queue_wait(queue, args->index, args->timeout_ns, &status);
	orr_queue_put(queue);

	args->completed = status.completed;
	args->time_ps = status.time_ps;
	args->error = status.error;
	args->error_index = status.error_index;
	args->error_address = status.error_address;
	args->error_detail = status.error_detail;
	return ret;
}

/*
 * Looks a queue up and keeps file->lock, so that its number does not go to another queue
 * meanwhile. Return: the queue; the caller unlocks.
 */
static struct orr_queue *orr_queue_lock(struct orr_file *file, u32 number)
{
	struct orr_queue *queue;
	int ret;

	ret = orr_file_lock(file);
	if (ret)
		return ERR_PTR(ret);
	queue = xa_load(&file->queues, number);
	if (queue)
		return queue;
	mutex_unlock(&file->lock);
	return ERR_PTR(-ENOENT);
}

int orr_queue_set_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	const struct drm_orr_queue_set *args = data;
	struct orr_queue *queue;
	int ret;

	ret = orr_share_check(args->priority, args->weight, args->slice_us);
	if (ret)
		return ret;
	queue = orr_queue_lock(file, args->queue);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	ret = orr_queue_set(queue, args);
	mutex_unlock(&file->lock);
	return ret;
}

int orr_queue_abort_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	const struct drm_orr_queue_abort *args = data;
	struct orr_queue *queue;
	int ret;

	if (args->flags)
		return -EINVAL;
	queue = orr_queue_lock(file, args->queue);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	orr_queue_get(queue);
	ret = orr_queue_abort(queue);
	mutex_unlock(&file->lock);
	if (!ret)
		ret = orr_sems_wait_queue(queue);
	orr_queue_put(queue);
	return ret;
}

static int orr_signaller_ioctl(struct drm_file *drm_file, const struct drm_orr_signaller *args,
			       int (*act)(struct orr_queue *queue, u64 va, u32 count))
{
	struct orr_file *file = to_orr_file(drm_file);
	struct orr_queue *queue;
	int ret;

	if (args->flags || args->pad || !args->count || args->count > ORR_SIGNALLERS_AT_ONCE ||
	    !IS_ALIGNED(args->semaphore, sizeof(struct orr_semaphore)) ||
	    !orr_va_range_ok(args->semaphore, args->count * sizeof(struct orr_semaphore)))
		return -EINVAL;
	if (orr_is_lost(file->odev))
		return -ENODEV;
	if (!orr_fw_fails(file->odev))
		return -EOPNOTSUPP;
	queue = orr_queue_lock(file, args->queue);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	ret = act(queue, args->semaphore, args->count);
	mutex_unlock(&file->lock);
	return ret;
}

int orr_signaller_attach_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	return orr_signaller_ioctl(drm_file, data, orr_signaller_attach);
}

int orr_signaller_detach_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	return orr_signaller_ioctl(drm_file, data, orr_signaller_detach);
}

int orr_queue_stats_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_queue_stats *args = data;
	struct orr_queue *queue;
	int ret;

	if (args->pad)
		return -EINVAL;
	queue = orr_queue_lock(file, args->queue);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	ret = orr_queue_stats(queue, args);
	mutex_unlock(&file->lock);
	return ret;
}

int orr_query_deadlock_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);

	if (orr_is_lost(file->odev))
		return -ENODEV;
	return orr_deadlock_query(file, data);
}

int orr_query_cycle_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_query_cycle *args = data;
	struct orr_queue *queue = NULL;
	struct orr_vm *vm = NULL;
	int ret = -ENOENT;

	if (orr_is_lost(file->odev))
		return -ENODEV;
	if (args->queue ? args->semaphore || args->value || args->vm :
			  args->semaphore % sizeof(struct orr_semaphore) || !args->semaphore)
		return -EINVAL;
	if (args->queue)
		queue = orr_file_get_queue(file, args->queue);
	else
		vm = orr_file_get_vm(file, args->vm);
	if (queue || vm)
		ret = orr_cycle_query(file, vm, queue, args);
	if (queue)
		orr_queue_put(queue);
	if (vm)
		orr_vm_put(vm);
	return ret;
}

int orr_queue_fence_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	const struct drm_orr_queue_fence *args = data;
	struct dma_fence_chain *chain = NULL;
	struct drm_syncobj *syncobj;
	struct orr_queue *queue;
	struct dma_fence *fence;
	int ret = 0;

	if (orr_is_lost(file->odev))
		return -ENODEV;
	queue = orr_file_get_queue(file, args->queue);
	if (!queue)
		return -ENOENT;
	syncobj = drm_syncobj_find(drm_file, args->syncobj);
	if (!syncobj) {
		ret = -ENOENT;
		goto out_queue;
	}
	if (args->point) {
		chain = dma_fence_chain_alloc();
		if (!chain) {
			ret = -ENOMEM;
			goto out_syncobj;
		}
	}
	fence = orr_fence_create(queue, args->index);
	if (IS_ERR(fence)) {
		ret = PTR_ERR(fence);
		dma_fence_chain_free(chain);
		goto out_syncobj;
	}
	if (chain)
		drm_syncobj_add_point(syncobj, chain, fence, args->point);
	else
		drm_syncobj_replace_fence(syncobj, fence);
	dma_fence_put(fence);
out_syncobj:
	drm_syncobj_put(syncobj);
out_queue:
	orr_queue_put(queue);
	return ret;
}
