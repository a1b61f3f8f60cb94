/* SPDX-License-Identifier: GPL-2.0 */
/* Grants: ranges of a card's VRAM that other cards may write to. */
#ifndef _ORR_GRANT_H_
#define _ORR_GRANT_H_

#include <linux/list.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct orr_device;

/**
 * struct orr_tenant - on whose account something is: who opened the file, whoever has it now
 */
struct orr_tenant {
	/** @uid: the user */
	kuid_t uid;
	/** @pid: the process */
	pid_t pid;
};

/**
 * struct orr_grant - a range of VRAM that another card may use
 */
struct orr_grant {
	/** @base: VRAM offset */
	u64 base;
	/** @size: bytes */
	u64 size;
	/** @node: the other card's */
	u32 node;
	/** @rights: ORR_LINK_RIGHT_*, what all mappings together need */
	u32 rights;
	/** @key: that requests have to carry, the same for all grants to @node; 0: any */
	u64 key;
	/** @users: mappings that need it; 0: nobody may use it any more */
	unsigned int users;
	/** @ending: @users is 0, but the slot is not free: the card still has it */
	bool ending;
	/** @holders: struct orr_holder: whose those mappings are */
	struct list_head holders;
};

/**
 * enum orr_drain - how a sender's end is drained
 * @ORR_DRAIN_PATIENT: what waits for room is waited for
 * @ORR_DRAIN_FORCED: some did not find any in time: it is lost at the switch
 * @ORR_DRAIN_GIVEN_UP: the switch does not do it either
 */
enum orr_drain {
	ORR_DRAIN_PATIENT,
	ORR_DRAIN_FORCED,
	ORR_DRAIN_GIVEN_UP,
};

void orr_grants_init(struct orr_device *odev);
bool orr_peer_has_grants(struct orr_device *owner, u32 node);
int orr_peer_grant(struct orr_device *owner, const struct orr_grant *set,
		   const struct orr_tenant *tenant);
int orr_peer_grant_own(struct orr_device *owner, struct orr_device *odev, u64 base, u64 size,
		       u32 rights, const struct orr_tenant *tenant);
void orr_peer_grant_again(struct orr_device *owner, u32 node, u64 base,
			  const struct orr_tenant *tenant);
void orr_peer_revoke(struct orr_device *owner, u32 node, u64 base,
		     const struct orr_tenant *tenant, enum orr_drain *drain);

#endif /* _ORR_GRANT_H_ */
