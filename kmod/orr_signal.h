/* SPDX-License-Identifier: GPL-2.0 */
/* Who may signal which semaphore. */
#ifndef _ORR_SIGNAL_H_
#define _ORR_SIGNAL_H_

#include <linux/types.h>

struct orr_device;
struct orr_queue;
struct orr_vm;

int orr_signaller_attach(struct orr_queue *queue, u64 va, u32 count);
int orr_signaller_detach(struct orr_queue *queue, u64 va, u32 count);
bool orr_signaller_unmapped(struct orr_vm *vm, u64 va, u64 size, u64 epoch);
void orr_signaller_stopped(struct orr_queue *queue);
void orr_signaller_stopped_later(struct orr_device *odev, u32 number);
void orr_signaller_card_lost(struct orr_device *odev);
void orr_signaller_ways_changed(void);
void orr_signaller_init(struct orr_device *odev);
void orr_signaller_fini(struct orr_device *odev);

#endif /* _ORR_SIGNAL_H_ */
