/* SPDX-License-Identifier: GPL-2.0 */
/* Cycles of waits, as the firmware finds them. */
#ifndef _ORR_DEADLOCK_H_
#define _ORR_DEADLOCK_H_

#include <linux/types.h>

struct drm_orr_query_deadlock;
struct orr_device;
struct orr_file;
struct orr_mbox_message;
struct orr_queue;

void orr_deadlock_event(struct orr_device *odev, const struct orr_mbox_message *event);
bool orr_deadlock_stands(struct orr_queue *queue);
int orr_deadlock_query(struct orr_file *file, struct drm_orr_query_deadlock *args);

#endif /* _ORR_DEADLOCK_H_ */
