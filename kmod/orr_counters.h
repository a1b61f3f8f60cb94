/* SPDX-License-Identifier: GPL-2.0 */
/* The counters of a card, all of one moment. */
#ifndef _ORR_COUNTERS_H_
#define _ORR_COUNTERS_H_

#include <linux/types.h>

#include <orrery/hw/bar0.h>

struct orr_device;

/* As many as a snapshot has room for; the driver knows no more of a card. */
#define ORR_COUNTERS_MAX (ORR_SNAPSHOT_ALIGN / sizeof(u64))

void orr_counters_init(struct orr_device *odev);
int orr_counters_alloc(struct orr_device *odev);
int orr_counters_read(struct orr_device *odev, u32 first, u32 count, u64 *values);
int orr_counters_read_atomic(struct orr_device *odev, u32 first, u32 count, u64 *values);

#endif
