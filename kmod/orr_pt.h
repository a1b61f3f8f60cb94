/* SPDX-License-Identifier: GPL-2.0 */
/* Page tables: see orrery/hw/mmu.h. The caller serialises. */
#ifndef _ORR_PT_H_
#define _ORR_PT_H_

#include <linux/list.h>
#include <linux/types.h>

struct orr_device;
struct orr_pt;

struct orr_pt *orr_pt_create_root(struct orr_device *odev);
u64 orr_pt_address(const struct orr_pt *pt);
u64 orr_pt_entry(const struct orr_pt *root, u64 va);
int orr_pt_map(struct orr_device *odev, struct orr_pt *root, u64 va, u64 address, u64 size,
	       u64 flags);
void orr_pt_to_no_card(struct orr_device *odev, struct orr_pt *root, u64 va, u64 size);
int orr_pt_split(struct orr_device *odev, struct orr_pt *root, u64 va);
void orr_pt_clear(struct orr_device *odev, struct orr_pt *root, u64 va, u64 size,
		  struct list_head *unused);
void orr_pt_free_list(struct orr_device *odev, struct list_head *unused);
void orr_pt_free_all(struct orr_device *odev, struct orr_pt *root);

#endif /* _ORR_PT_H_ */
