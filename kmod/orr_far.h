/* SPDX-License-Identifier: GPL-2.0 */
/* Cycles of waits over machines. */
#ifndef _ORR_FAR_H_
#define _ORR_FAR_H_

#include <linux/types.h>

struct orr_device;
struct orr_hop;
struct orr_look;
struct orr_note;

/**
 * struct orr_far_cycle - how it goes on from a wait that only another machine would end
 */
struct orr_far_cycle {
	/** @hop: behind those that were looked at; the caller frees it */
	struct orr_hop *hop;
	/** @count: of @hop */
	u32 count;
	/** @stamp: the same for as long as nothing moves there */
	u64 stamp;
};

int orr_far_search(struct orr_look *look, struct orr_far_cycle *cycle);
void orr_far_asked(struct orr_device *odev, u32 at, const struct orr_note *note);
void orr_far_answered(struct orr_device *odev, u32 at, const struct orr_note *note);
void orr_far_exit(void);

#endif /* _ORR_FAR_H_ */
