/* SPDX-License-Identifier: GPL-2.0 */
/* Cycles of waits over cards and processes. */
#ifndef _ORR_CYCLE_H_
#define _ORR_CYCLE_H_

struct drm_orr_query_cycle;
struct orr_file;
struct orr_queue;
struct orr_vm;

int orr_cycle_query(struct orr_file *file, struct orr_vm *vm, struct orr_queue *queue,
		    struct drm_orr_query_cycle *args);

#endif /* _ORR_CYCLE_H_ */
