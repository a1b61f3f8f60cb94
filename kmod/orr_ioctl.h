/* SPDX-License-Identifier: GPL-2.0 */
/* The ioctls of drm/orrery_accel.h, and what their checks share. */
#ifndef _ORR_IOCTL_H_
#define _ORR_IOCTL_H_

#include <drm/drm_ioctl.h>
#include <drm/orrery_accel.h>

#include "orr_device.h"
#include "orr_file.h"

extern const struct drm_ioctl_desc orr_ioctls[];
extern const int orr_ioctl_count;

/* A range of addresses that user space may use. */
static inline bool orr_va_range_ok(u64 va, u64 size)
{
	return va >= ORR_VA_START && size && va < ORR_VA_END && size <= ORR_VA_END - va;
}

/*
 * Whoever holds it may wait for the firmware: a process with a signal need not wait for that, and
 * nobody for a card that is lost.
 */
static inline int orr_file_lock(struct orr_file *file)
{
	if (orr_is_lost(file->odev))
		return -ENODEV;
	return mutex_lock_interruptible(&file->lock) ? -ERESTARTSYS : 0;
}

/* orr_ioctl_queue.c */
int orr_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_queue_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_queue_set_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_queue_abort_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_signaller_attach_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_signaller_detach_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_queue_stats_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_query_deadlock_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_query_cycle_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_queue_fence_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

/* orr_barrier.c */
int orr_multicast_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_barrier_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

/* orr_work.c */
int orr_work_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_pc_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_sample_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

/* orr_fabric.c */
int orr_fabric_export_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_fabric_import_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int orr_fabric_revoke_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

#endif /* _ORR_IOCTL_H_ */
