/* SPDX-License-Identifier: GPL-2.0 */
/* Multicasts: what a card writes once for several others. */
#ifndef _ORR_MULTICAST_H_
#define _ORR_MULTICAST_H_

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include <orrery/hw/link.h>

struct dma_buf;
struct orr_bo;
struct orr_device;
struct orr_tenant;

/**
 * struct orr_multicast_slot - a multicast of a card, as its switch and its routes have it
 */
struct orr_multicast_slot {
	/**
	 * @number: that stands for all members, this slot's as long as the card is there; 0: none
	 * yet
	 */
	u32 number;
	/** @taken: somebody has it; orr_multicasts.lock, as all below */
	bool taken;
	/** @cut: something of a member's way may have been lost: nothing is sent there any more */
	bool cut;
	/** @uid: whose it is */
	kuid_t uid;
	/** @route: as ORR_R_ROUTE has it, without ORR_ROUTE_HOLD */
	u32 route;
	/** @count: of members, from when all are there */
	unsigned int count;
	/** @nodes: of the members */
	u16 nodes[ORR_MULTICAST_MEMBERS];
	/** @versions: of the ways to them */
	u32 versions[ORR_MULTICAST_MEMBERS];
};

/**
 * struct orr_multicasts - those of a card
 */
struct orr_multicasts {
	/**
	 * @lock: guards the slots but their numbers, and their routes' registers while they are
	 * taken
	 */
	spinlock_t lock;
	/** @commands: written since the card's reset; orr_routes_lock */
	u32 commands;
	/** @slots: their numbers: orr_routes_lock */
	struct orr_multicast_slot slots[ORR_MULTICASTS];
};

/**
 * struct orr_multicast_part - a member's memory
 */
struct orr_multicast_part {
	/** @memory: a reference */
	struct dma_buf *memory;
	/** @owner: its BO, kept by @memory */
	struct orr_bo *owner;
	/** @offset: where in it the multicast begins */
	u64 offset;
};

/**
 * struct orr_multicast - what a BO of a multicast stands for; constant
 */
struct orr_multicast {
	/** @slot: of its card; NULL: none yet */
	struct orr_multicast_slot *slot;
	/** @reads: it may be read, in copies with reduction */
	bool reads;
	/** @count: of members */
	unsigned int count;
	/** @part: of each */
	struct orr_multicast_part part[] __counted_by(count);
};

void orr_multicasts_init(struct orr_device *odev);
void orr_multicasts_look(struct orr_device *odev);
int orr_multicast_use(struct orr_bo *bo, u32 rights, const struct orr_tenant *tenant);
void orr_multicast_use_again(struct orr_bo *bo, const struct orr_tenant *tenant);
void orr_multicast_unuse(struct orr_bo *bo, const struct orr_tenant *tenant);
void orr_multicast_free(struct orr_device *odev, struct orr_multicast *multicast);

#endif /* _ORR_MULTICAST_H_ */
