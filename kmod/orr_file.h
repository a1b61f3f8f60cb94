/* SPDX-License-Identifier: GPL-2.0 */
/* What belongs to an open file: address spaces, queues, a doorbell page. */
#ifndef _ORR_FILE_H_
#define _ORR_FILE_H_

#include <linux/bitmap.h>
#include <linux/mutex.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include <drm/drm_file.h>

#include <orrery/hw/doorbell.h>

#include "orr_work.h"

struct orr_device;
struct orr_queue;
struct orr_vm;

#define ORR_NO_PAGE (-1)

/**
 * struct orr_file - an open file
 */
struct orr_file {
	/** @odev: the card */
	struct orr_device *odev;
	/** @lock: guards what follows; the tables also have their own locks, for lookups */
	struct mutex lock;
	/** @page: doorbell page, for good; ORR_NO_PAGE until the first address space is made */
	int page;
	/** @slots: doorbells of @page that queues have */
	DECLARE_BITMAP(slots, ORR_DB_SLOTS);
	/** @vms: struct orr_vm by the number that user space knows, from 1 */
	struct xarray vms;
	/** @queues: struct orr_queue by the number that user space knows, from 1 */
	struct xarray queues;
	/** @uid: who opened it */
	kuid_t uid;
	/** @pid: likewise, for debugfs */
	pid_t pid;
	/** @vector_ps: vector core time that queues used which are gone; the lock of @queues */
	u64 vector_ps;
	/** @copy_ps: likewise of the copy engines */
	u64 copy_ps;
	/** @work: what it has of the records of work */
	struct orr_work work;
	/** @sample: what it has of the samples of counters */
	struct orr_sample sample;
	/** @pc: what it has of where vector cores were */
	struct orr_pc pc;
	/** @dummy_lock: guards @dummy; taken under mmap_lock */
	struct mutex dummy_lock;
	/**
	 * @dummy: what mappings of the doorbell page and of the kick page show once the card is
	 * lost; allocated by the first fault then
	 */
	struct page *dummy[2];
};

int orr_file_open(struct drm_device *drm, struct drm_file *drm_file);
void orr_file_close(struct drm_device *drm, struct drm_file *drm_file);

void orr_file_account(struct orr_file *file, struct orr_queue *queue);
void orr_file_engine_time(struct orr_file *file, u64 *vector_ps, u64 *copy_ps);

struct orr_vm *orr_file_get_vm(struct orr_file *file, u32 number);
struct orr_queue *orr_file_get_queue(struct orr_file *file, u32 number);

static inline struct orr_file *to_orr_file(struct drm_file *drm_file)
{
	return drm_file->driver_priv;
}

#endif /* _ORR_FILE_H_ */
