// SPDX-License-Identifier: GPL-2.0
/*
 * Restarting the firmware. When the control core has stopped, or does not answer, the core alone
 * is started again: engines, doorbells, address spaces and queues stay, and the firmware finds
 * them again in its own memory. The queue that it worked for when it died fails, others go on.
 *
 * Meanwhile the mailbox is paused: commands wait, and those that have had no answer are sent again.
 */
#include <linux/dma-fence.h>
#include <linux/iopoll.h>
#include <linux/jiffies.h>
#include <linux/module.h>

#include "orr_device.h"
#include "orr_queue.h"

static unsigned int silence_timeout_ms = 5000;
module_param(silence_timeout_ms, uint, 0644);
MODULE_PARM_DESC(silence_timeout_ms, "Time after which a firmware that does not move is restarted, in milliseconds (default 5000, at least 1000)");

static unsigned int held_timeout_ms = 3600000;
module_param(held_timeout_ms, uint, 0644);
MODULE_PARM_DESC(held_timeout_ms, "Time for which a debugger may hold the card, in milliseconds (default 3600000)");

/* Less would be no time for an answer to what it is asked. */
#define ORR_SILENCE_LEAST_MS 1000u

/* Least time between two looks at the heartbeat. */
#define ORR_PULSE_PERIOD (HZ / 4)
/* At each so-manieth look that finds it standing the firmware is asked something. */
#define ORR_PULSE_ASK 2u

/* So often a minute the log says at most that a debugger holds the card. */
#define ORR_HELD_SAID 2

/* Takes microseconds, longer without CPU; a card that hangs never does it. Looks, of so long each. */
#define ORR_CORE_RESTART_LOOKS 50u
#define ORR_CORE_RESTART_LOOK_US (100 * USEC_PER_MSEC)
/* And no longer in all, however long the card takes for a look. */
#define ORR_CORE_RESTART_MOST (60 * HZ)

/**
 * orr_restart_request - restart the firmware, or give up the card if that cannot be done
 * @odev: the card
 * @reason: constant text that completes "the firmware is restarted: "
 *
 * Any context. Nothing happens while a restart is under way.
 */
void orr_restart_request(struct orr_device *odev, const char *reason)
{
	if (!READ_ONCE(odev->restart.enabled)) {
		orr_device_lost(odev, reason);
		return;
	}
	if (orr_is_lost(odev) || !orr_mbox_pause(odev))
		return;
	WRITE_ONCE(odev->restart.reason, reason);
	queue_work(odev->wq, &odev->restart.work);
}

/* Takes note of a restart. Return: whether there were too many of late. */
static bool orr_restart_too_often(struct orr_restart *restart)
{
	unsigned int slot = restart->count % ORR_RESTART_MAX;
	/* Also of one that stands still after each of them. */
	unsigned long silences = ORR_RESTART_MAX * msecs_to_jiffies(READ_ONCE(silence_timeout_ms));

	if (restart->count >= ORR_RESTART_MAX &&
	    time_before(jiffies, restart->at[slot] + ORR_RESTART_PERIOD + silences))
		return true;
	restart->at[slot] = jiffies;
	WRITE_ONCE(restart->count, restart->count + 1);
	return false;
}

/* Stops the core. Return: 0 when it waits for its start. */
static int orr_restart_stop_core(struct orr_device *odev)
{
	const unsigned long end = jiffies + ORR_CORE_RESTART_MOST;
	int ret = -ETIMEDOUT;
	unsigned int i;
	u32 state;

	orr_write32(odev, ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
	for (i = 0; ret && i < ORR_CORE_RESTART_LOOKS && time_before(jiffies, end); i++)
		ret = read_poll_timeout(orr_read32, state,
					state == ORR_STATE_RESET || state == U32_MAX ||
					orr_is_lost(odev),
					100, ORR_CORE_RESTART_LOOK_US, false, odev, ORR_R_STATE);
	if (ret)
		return ret;
	if (state == U32_MAX)
		orr_device_lost(odev, ORR_LOST_GONE);
	return state == ORR_STATE_RESET ? 0 : -ENODEV;
}

static int orr_restart_core(struct orr_device *odev)
{
	int ret;

	guard(mutex)(&odev->boot_lock);
	/* What comes later finds the core stopped, for it waits for the lock. */
	if (orr_is_lost(odev))
		return -ENODEV;
	ret = orr_restart_stop_core(odev);
	if (ret)
		return ret;
	/* The last words of the one that died: its replies and events are as good as ever. */
	orr_mbox_process(odev);
	orr_mbox_empty(odev);
	ret = orr_boot_again(odev);
	if (ret)
		return ret;
	if (READ_ONCE(odev->boot_block->start_kind) != ORR_BB_START_WARM) {
		drm_err(&odev->drm, "the firmware has forgotten its queues\n");
		return -EIO;
	}
	return 0;
}

static void orr_restart_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, restart.work);
	struct orr_restart *restart = &odev->restart;
	bool cookie = dma_fence_begin_signalling();
	u32 state, resumed;
	u64 cause, pc;
	int idx;

	if (orr_enter(odev, &idx)) {
		dma_fence_end_signalling(cookie);
		return;
	}
	state = orr_read32(odev, ORR_R_STATE);
	if (state == U32_MAX) {
		orr_device_lost(odev, ORR_LOST_GONE);
		goto out;
	}
	if (orr_restart_too_often(restart)) {
		orr_device_lost(odev, "its firmware had to be restarted too often");
		goto out;
	}
	cause = orr_read64(odev, ORR_R_HALT_CAUSE);
	pc = orr_read64(odev, ORR_R_HALT_PC);
	if (orr_restart_core(odev)) {
		/* No second reason, if it was lost while we were at it. */
		orr_device_lost(odev, "its firmware cannot be restarted");
		goto out;
	}
	resumed = min(READ_ONCE(odev->boot_block->resumed_queues), ORR_FW_QUEUES);
	if (state == ORR_STATE_HALTED)
		drm_warn(&odev->drm, "the firmware was restarted, because %s (cause %#llx, pc %#llx): %u of %d queues go on\n",
			 restart->reason, cause, pc, resumed, atomic_read(&odev->queue_count));
	else
		drm_warn(&odev->drm, "the firmware was restarted, because %s: %u of %d queues go on\n",
			 restart->reason, resumed, atomic_read(&odev->queue_count));
	scoped_guard(spinlock, &restart->pulse_lock)
		WRITE_ONCE(restart->still, 0);
	orr_mbox_resume(odev);
	queue_work(odev->ask_wq, &restart->recheck_work);
out:
	orr_exit(odev, idx);
	dma_fence_end_signalling(cookie);
}

/* Not in orr_restart_work(): a firmware that dies again while we ask needs that to answer. */
static void orr_restart_recheck_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, restart.recheck_work);
	bool cookie = dma_fence_begin_signalling();
	int idx;

	if (!orr_enter(odev, &idx)) {
		orr_queue_recheck_all(odev);
		orr_exit(odev, idx);
	}
	dma_fence_end_signalling(cookie);
}

/**
 * orr_restart_held - does a debugger hold the card, by its own account?
 * @odev: the card; the caller is inside orr_enter(), or in probe
 *
 * Return: ORR_HELD_*, 0: nobody.
 */
u32 orr_restart_held(struct orr_device *odev)
{
	u32 held = orr_read32(odev, ORR_R_HELD);

	return held == U32_MAX ? 0 : held;
}

/**
 * orr_restart_held_ms - how long a debugger may hold the card
 * @odev: the card
 *
 * A card may say so for ever, and nobody can end what waits in probe: there it is no longer than
 * a boot.
 *
 * Return: the time in milliseconds.
 */
unsigned int orr_restart_held_ms(struct orr_device *odev)
{
	return READ_ONCE(odev->restart.enabled) ? READ_ONCE(held_timeout_ms) : orr_boot_timeout_ms;
}

/* Takes note of who holds the card, and says when that begins and ends. */
static void orr_pulse_note_held(struct orr_device *odev, u32 held)
{
	struct orr_restart *restart = &odev->restart;

	lockdep_assert_held(&restart->pulse_lock);
	if (held && !restart->held_said && __ratelimit(&restart->held_limit)) {
		restart->held_said = true;
		drm_info(&odev->drm, "a debugger holds %s: the card's time stands still, and all that waits for it waits, for up to %u ms\n",
			 held & ORR_HELD_KERNELS ? "kernels" : "the firmware",
			 orr_restart_held_ms(odev));
	} else if (!held && restart->held_said) {
		restart->held_said = false;
		drm_info(&odev->drm, "the debugger has let the card go on\n");
	}
	if (held)
		restart->held_looks++;
	WRITE_ONCE(restart->held, held);
}

/* Return: whether a debugger has held the card for too long. Only a heartbeat begins that anew. */
static bool orr_pulse_held_too_long(struct orr_device *odev)
{
	u64 looks = READ_ONCE(odev->restart.held_looks);

	return READ_ONCE(odev->restart.held) &&
	       looks * jiffies_to_msecs(ORR_PULSE_PERIOD) > orr_restart_held_ms(odev);
}

static void orr_pulse_give_up_held(struct orr_device *odev)
{
	orr_device_lost(odev, READ_ONCE(odev->restart.enabled) ?
			"a debugger has held it for longer than held_timeout_ms" :
			"a debugger has held it at its start for longer than boot_timeout_ms");
}

/*
 * A look at the heartbeat, if it is time for one. It advances with the commands that the firmware
 * takes too, so one that stands although a PING is among them stands still.
 */
static void orr_pulse_look(struct orr_device *odev)
{
	struct orr_restart *restart = &odev->restart;
	u64 ping[] = { odev->info.uid };
	unsigned long gap;
	bool ask = false;
	u64 heartbeat;
	u32 held = 0;

	if (time_before(jiffies, READ_ONCE(restart->looked) + ORR_PULSE_PERIOD))
		return;
	heartbeat = orr_read64(odev, ORR_R_HEARTBEAT);
	if (heartbeat == U64_MAX && !orr_hw_answers(odev, true))
		return;
	/* A debugger that holds the card's time makes it stand, and that is not the firmware's fault. */
	if (heartbeat == READ_ONCE(restart->heartbeat))
		held = orr_restart_held(odev);
	scoped_guard(spinlock, &restart->pulse_lock) {
		gap = jiffies - restart->looked;
		if (gap < ORR_PULSE_PERIOD)
			return;
		WRITE_ONCE(restart->looked, jiffies);
		/* If nobody has looked for a while, that is not the firmware's fault. */
		if (heartbeat != restart->heartbeat || held)
			WRITE_ONCE(restart->still, 0);
		else if (gap <= 4 * ORR_PULSE_PERIOD)
			WRITE_ONCE(restart->still, restart->still + 1);
		if (heartbeat != restart->heartbeat)
			WRITE_ONCE(restart->held_looks, 0);
		restart->heartbeat = heartbeat;
		orr_pulse_note_held(odev, held);
		ask = restart->still && restart->still % ORR_PULSE_ASK == 0;
	}
	if (orr_pulse_held_too_long(odev))
		orr_pulse_give_up_held(odev);
	else if (ask)
		orr_mbox_send(odev, ORR_MBOX_PING, ping, ARRAY_SIZE(ping));
}

/**
 * orr_restart_silent - does the firmware stand still?
 * @odev: the card; the caller is inside orr_enter(), or in probe, and comes again and again
 *
 * Neither waits nor allocates. Looks are counted, not time: of a machine that stood still itself
 * there are none.
 *
 * Return: whether its heartbeat has not moved for silence_timeout_ms, although it was asked.
 */
bool orr_restart_silent(struct orr_device *odev)
{
	struct orr_restart *restart = &odev->restart;

	/* It is being restarted, and begins anew. */
	if (READ_ONCE(odev->mailbox.paused))
		return false;
	orr_pulse_look(odev);
	return READ_ONCE(restart->still) * jiffies_to_msecs(ORR_PULSE_PERIOD) >=
	       max(READ_ONCE(silence_timeout_ms), ORR_SILENCE_LEAST_MS);
}

/**
 * orr_restart_init - prepare
 * @odev: the card
 */
void orr_restart_init(struct orr_device *odev)
{
	INIT_WORK(&odev->restart.work, orr_restart_work);
	INIT_WORK(&odev->restart.recheck_work, orr_restart_recheck_work);
	spin_lock_init(&odev->restart.pulse_lock);
	ratelimit_state_init(&odev->restart.held_limit, 60 * HZ, ORR_HELD_SAID);
	ratelimit_set_flags(&odev->restart.held_limit, RATELIMIT_MSG_ON_RELEASE);
}

/**
 * orr_restart_enable - the firmware is up: from now on it can be restarted, if it knows how
 * @odev: the card
 */
void orr_restart_enable(struct orr_device *odev)
{
	if (orr_fw_schedules(odev))
		WRITE_ONCE(odev->restart.enabled, true);
}

/**
 * orr_restart_fini - no more work of ours after this
 * @odev: the card, lost
 */
void orr_restart_fini(struct orr_device *odev)
{
	disable_work_sync(&odev->restart.work);
	disable_work_sync(&odev->restart.recheck_work);
}
