/* SPDX-License-Identifier: GPL-2.0 */
/* Restarting the firmware while the card's engines go on. */
#ifndef _ORR_RESTART_H_
#define _ORR_RESTART_H_

#include <linux/ratelimit.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct orr_device;

/* More restarts than this within ORR_RESTART_PERIOD, and as many silences: the card is lost. */
#define ORR_RESTART_MAX 3u
#define ORR_RESTART_PERIOD (60 * HZ)

/**
 * struct orr_restart - restarts of a card's firmware
 */
struct orr_restart {
	/** @work: does one */
	struct work_struct work;
	/** @recheck_work: asks the firmware after one what has become of each queue */
	struct work_struct recheck_work;
	/** @enabled: the firmware has been up once, and card and firmware know how */
	bool enabled;
	/** @reason: of the one that is under way; constant text */
	const char *reason;
	/** @count: since the driver was bound; written by @work */
	unsigned int count;
	/** @pulse_lock: guards what follows up to @held_limit */
	spinlock_t pulse_lock;
	/** @looked: when somebody looked at the heartbeat last, in jiffies */
	unsigned long looked;
	/** @heartbeat: what he found */
	u64 heartbeat;
	/** @still: how many looks, one after the other, found it unchanged */
	unsigned int still;
	/** @held: who held the card's time at the last look, ORR_HELD_* */
	u32 held;
	/** @held_looks: how many looks found it held since the heartbeat moved last */
	unsigned int held_looks;
	/** @held_said: the log says that it is held */
	bool held_said;
	/** @held_limit: a card that is held again and again does not fill the log */
	struct ratelimit_state held_limit;
	/** @at: when the last ones were, in jiffies; @work only */
	unsigned long at[ORR_RESTART_MAX];
};

void orr_restart_init(struct orr_device *odev);
void orr_restart_fini(struct orr_device *odev);
void orr_restart_enable(struct orr_device *odev);
bool orr_restart_silent(struct orr_device *odev);
u32 orr_restart_held(struct orr_device *odev);
unsigned int orr_restart_held_ms(struct orr_device *odev);
void orr_restart_request(struct orr_device *odev, const char *reason);

#endif /* _ORR_RESTART_H_ */
