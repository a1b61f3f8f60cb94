// SPDX-License-Identifier: GPL-2.0
/*
 * Is the card still there? A card that dies sends no interrupt; it reads as all-ones. So while
 * there are queues, somebody looks at it twenty times a second: one register, some microseconds,
 * and those who wait know it within 100 ms. The same look finds what an interrupt that got lost
 * would have told, and whether the firmware still moves.
 *
 * A card that is lost stays so until the driver is bound to it anew.
 *
 * Fences end in the works of this file, so those neither allocate nor wait for somebody who does;
 * dma_fence_begin_signalling() lets lockdep look after that.
 */
#include <linux/dma-fence.h>
#include <linux/jiffies.h>

#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_queue.h"
#include "orr_route.h"
#include "orr_signal.h"
#include "orr_trace.h"

#define ORR_HEALTH_PERIOD (HZ / 20)
/* Time between two looks at the links. */
#define ORR_HEALTH_LINKS HZ
/* Least time between two looks that interrupts ask for: they never put the regular one off. */
#define ORR_HEALTH_HOLDOFF (ORR_HEALTH_PERIOD / 2)
/* Time until the links are looked at for an interrupt that had another reason too. */
#define ORR_HEALTH_LINK_DELAY (HZ / 10)
/* How often it tells of links, at most. */
#define ORR_LINKS_TOLD (HZ / 10)

static void orr_health_check(struct orr_device *odev)
{
	u32 state = orr_read32(odev, ORR_R_STATE);

	switch (state) {
	case ORR_STATE_RUNNING:
		orr_mbox_process(odev);
		odev->stats.late_wakeups += orr_queue_scan_armed(odev);
		/* Is the firmware still there, or has it nothing to do? */
		if (!bitmap_empty(odev->armed, ORR_FW_QUEUES) && orr_restart_silent(odev))
			orr_restart_request(odev, "the firmware does not answer");
		/* What the links say is waited for too, and its interrupt may be lost like any. */
		if (time_after_eq(jiffies, odev->health_links_jiffies + ORR_HEALTH_LINKS)) {
			odev->health_links_jiffies = jiffies;
			orr_health_link_kick(odev, true);
		}
		break;
	case U32_MAX:
		orr_device_lost(odev, ORR_LOST_GONE);
		break;
	case ORR_STATE_HALTED:
		drm_dbg(&odev->drm, "control core halted: cause %#llx, pc %#llx, address %#llx\n",
			orr_read64(odev, ORR_R_HALT_CAUSE), orr_read64(odev, ORR_R_HALT_PC),
			orr_read64(odev, ORR_R_HALT_TVAL));
		orr_restart_request(odev, "its control core halted");
		break;
	case ORR_STATE_RESET:
	case ORR_STATE_BOOTING:
		if (READ_ONCE(odev->mailbox.paused))
			break;
		fallthrough;
	default:
		drm_err(&odev->drm, "state register reads %u\n", state);
		orr_device_lost(odev, "it was reset by somebody else");
	}
}

static void orr_health_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, health_work.work);
	bool cookie = dma_fence_begin_signalling();
	int idx;

	if (!orr_enter(odev, &idx)) {
		WRITE_ONCE(odev->health_jiffies, jiffies);
		orr_health_check(odev);
		orr_exit(odev, idx);
		if (atomic_read(&odev->queue_count) && !orr_is_lost(odev))
			orr_health_start(odev);
	}
	dma_fence_end_signalling(cookie);
}

/**
 * orr_health_start - there is a queue now
 * @odev: the card
 */
void orr_health_start(struct orr_device *odev)
{
	queue_delayed_work(odev->wq, &odev->health_work, ORR_HEALTH_PERIOD);
}

/**
 * orr_health_kick - an interrupt came without a reason that memory shows
 * @odev: the card; any context
 */
void orr_health_kick(struct orr_device *odev)
{
	unsigned long next = READ_ONCE(odev->health_jiffies) + ORR_HEALTH_HOLDOFF;

	/* Sooner than the next regular look. */
	mod_delayed_work(odev->wq, &odev->health_work,
			 time_before(jiffies, next) ? next - jiffies : 0);
}

/**
 * orr_health_gone - has the card gone, while somebody waits for it?
 * @odev: the card; the caller is inside orr_enter(), or in probe
 *
 * Return: whether it reads as all-ones. It is lost then.
 */
bool orr_health_gone(struct orr_device *odev)
{
	if (orr_read32(odev, ORR_R_STATE) != U32_MAX)
		return false;
	orr_device_lost(odev, ORR_LOST_GONE);
	return true;
}

/* Nobody trusts the card any more: it must stop before its memory is given to others. */
static void orr_lost_quiesce(struct orr_device *odev)
{
	bool there;

	/* A start of the firmware that was under way has found out by now. */
	guard(mutex)(&odev->boot_lock);
	there = orr_read32(odev, ORR_R_ID) == ORR_ID_MAGIC;
	/* Also one that does not say what it is: its engines must not go on writing to other cards. */
	if (orr_hw_reset(odev) && there)
		drm_err(&odev->drm, "the card does not reset\n");
	pci_clear_master(odev->pdev);
}

/*
 * Not by drm_dev_wedged_event(): up to 7.2 at least it takes for granted that a device has a
 * primary node, which those with an accel node do not.
 */
static void orr_lost_tell(struct orr_device *odev)
{
	if (!odev->unbinding)
		sysfs_notify(&odev->pdev->dev.kobj, NULL, "state");
}

/* The registers are there: orr_health_fini() waits for this, whoever was first to lose the card. */
static void orr_lost_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, lost_work);
	bool cookie = dma_fence_begin_signalling();

	orr_lost_quiesce(odev);
	complete_all(&odev->quiesced);
	orr_queue_all_gone(odev);
	dma_fence_end_signalling(cookie);
	orr_signaller_card_lost(odev);
	orr_peers_cut(odev, false);
	/* For ways that go through it. */
	orr_routes_want();
	orr_health_link_kick(odev, true);

	/* After the fences: page faults, which this waits for, allocate and so may wait for them. */
	orr_mmap_zap(odev);
	orr_lost_tell(odev);
}

/**
 * orr_device_lost - give up a card
 * @odev: the card
 * @reason: constant text that completes "the card is lost: "
 *
 * Any context. Commands under way end at once, the rest follows: see orr_device_quiesced().
 */
void orr_device_lost(struct orr_device *odev, const char *reason)
{
	/*
	 * Of several reasons the first counts. It is there before the bit, and so is the line in the log:
	 * whose wait ends, or who asks for something, may look for the cause at once. Only a second who
	 * finds it lost does not wait for that line, for whoever returns from here relies on the bit.
	 */
	if (!cmpxchg(&odev->lost_reason, NULL, reason) && !odev->unbinding)
		drm_err(&odev->drm, "the card is lost: %s. Its users get -ENODEV; unbind and bind the driver to start it again\n",
			reason);
	if (test_and_set_bit(0, &odev->lost))
		return;
	trace_orr_lost(odev, odev->lost_reason);
	queue_work(odev->wq, &odev->lost_work);
	orr_mbox_abort(odev);
}

/**
 * orr_device_quiesced - wait until a lost card does no DMA any more
 * @odev: the card
 *
 * Who frees memory that the card could reach has to wait for this, however it learnt of the loss:
 * the work that ends the card's DMA may not even have been queued then.
 */
void orr_device_quiesced(struct orr_device *odev)
{
	wait_for_completion(&odev->quiesced);
}

/**
 * orr_links_look - look at all link ports
 * @odev: the card
 * @looks: one for each of its ports
 *
 * Return: whether they are worth anything; if not, the card is lost.
 */
bool orr_links_look(struct orr_device *odev, struct orr_link_look looks[])
{
	bool looked = true;
	int idx;
	u32 i;

	if (orr_enter(odev, &idx))
		return false;
	for (i = 0; i < odev->info.link_ports && looked; i++) {
		looked = orr_link_look(odev, i, &looks[i]);
		if (looked && orr_link_is_up(&looks[i]) && orr_link_to_switch(odev, i))
			looks[i].reach = orr_read32(odev,
						    ORR_R_LINK(i) + ORR_R_LINK_REACH_VERSION);
	}
	orr_exit(odev, idx);
	return looked;
}

/*
 * Whether a link has changed since the last look.
 * @told: ports of which users can see it
 */
static bool orr_link_changed(struct orr_device *odev, unsigned long *told)
{
	struct orr_link_look looks[ORR_LINK_MAX_PORTS];
	bool changed = false;
	u32 i;

	if (!orr_links_look(odev, looks))
		return false;
	for (i = 0; i < odev->info.link_ports; i++) {
		if (looks[i].state != odev->link_looks[i].state ||
		    looks[i].losses != odev->link_looks[i].losses) {
			trace_orr_link(odev, i, looks[i].state, looks[i].losses);
			__set_bit(i, told);
		}
		changed |= looks[i].control != odev->link_looks[i].control ||
			   looks[i].reach != odev->link_looks[i].reach;
		odev->link_looks[i] = looks[i];
	}
	return changed || *told;
}

/* What a port has refused for its key, and what others have refused of this card's. */
static void orr_link_count(struct orr_device *odev, u32 i, bool tell)
{
	u32 bad_keys = orr_read32(odev, ORR_R_LINK(i) + ORR_R_LINK_BAD_KEYS);
	u32 refused = orr_read32(odev, ORR_R_LINK(i) + ORR_R_LINK_REFUSED);
	struct orr_link_port *port = odev->links[i];
	u32 by;

	/* A card that is gone. */
	if (bad_keys == U32_MAX || refused == U32_MAX)
		return;
	if (tell && bad_keys != port->bad_keys) {
		by = orr_read32(odev, ORR_R_LINK(i) + ORR_R_LINK_BAD_KEY_BY);
		dev_warn_ratelimited(odev->drm.dev,
				     "link %u: %u requests came with a wrong key, the last as of card number %u: nothing of them was done; somebody there forges, or holds on to what is not shared any more\n",
				     i, bad_keys - port->bad_keys, by);
	}
	if (tell && refused != port->refused) {
		by = orr_read32(odev, ORR_R_LINK(i) + ORR_R_LINK_REFUSED_BY);
		if (by >> 16 == ORR_FAULT_PEER_KEY)
			dev_warn_ratelimited(odev->drm.dev,
					     "link %u: card number %u has refused %u writes or signals of this card, the last for its key: bind this card's driver again if it goes on\n",
					     i, by & 0xffff, refused - port->refused);
	}
	port->bad_keys = bad_keys;
	port->refused = refused;
}

/**
 * orr_links_count - look at what was refused for a wrong key, here and of this card's
 * @odev: the card
 * @tell: log what is new
 */
void orr_links_count(struct orr_device *odev, bool tell)
{
	int idx;
	u32 i;

	if (!orr_link_keys(odev) || orr_enter(odev, &idx))
		return;
	for (i = 0; i < odev->info.link_ports; i++)
		if (!tell || orr_link_is_up(&odev->link_looks[i]))
			orr_link_count(odev, i, tell);
	orr_exit(odev, idx);
}

static void orr_link_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, link_work.work);
	unsigned long told = 0;

	if (orr_link_changed(odev, &told) || orr_routes_due())
		orr_routes_update();
	orr_links_count(odev, true);
	orr_foreign_work(odev);
	/* Not as often as a peer likes to come and go: all who listen to the kernel hear of it. */
	odev->links_told |= told;
	if (odev->links_told && time_before(jiffies, odev->links_told_jiffies + ORR_LINKS_TOLD)) {
		queue_delayed_work(system_long_wq, &odev->link_work, ORR_LINKS_TOLD);
	} else if (odev->links_told) {
		odev->links_told_jiffies = jiffies;
		orr_sysfs_links_notify(odev, odev->links_told);
		odev->links_told = 0;
	}
	if (orr_routes_stuck())
		queue_delayed_work(system_long_wq, &odev->link_work, ORR_HEALTH_STUCK);
}

/**
 * orr_health_link_kick - a link may have changed
 * @odev: the card; any context
 * @now: it is likely; else somebody looks in a while, so that a message which all vectors share does
 *	not cost a look each time
 */
void orr_health_link_kick(struct orr_device *odev, bool now)
{
	if (now)
		mod_delayed_work(system_long_wq, &odev->link_work, 0);
	else
		queue_delayed_work(system_long_wq, &odev->link_work, ORR_HEALTH_LINK_DELAY);
}

static void orr_health_free(struct drm_device *drm, void *data)
{
	struct orr_device *odev = data;

	destroy_workqueue(odev->wq);
	destroy_workqueue(odev->ask_wq);
}

/**
 * orr_health_init - prepare
 * @odev: the card
 *
 * Return: 0 or -ENOMEM.
 */
int orr_health_init(struct orr_device *odev)
{
	init_rwsem(&odev->reset_lock);
	init_completion(&odev->quiesced);
	INIT_WORK(&odev->lost_work, orr_lost_work);
	odev->links_told_jiffies = jiffies - ORR_LINKS_TOLD;
	INIT_DELAYED_WORK(&odev->link_work, orr_link_work);
	INIT_DELAYED_WORK(&odev->health_work, orr_health_work);
	disable_delayed_work(&odev->link_work);
	disable_delayed_work(&odev->health_work);
	orr_restart_init(odev);
	orr_signaller_init(odev);

	odev->wq = alloc_ordered_workqueue("orrery-%s", WQ_MEM_RECLAIM, pci_name(odev->pdev));
	if (!odev->wq)
		return -ENOMEM;
	odev->ask_wq = alloc_ordered_workqueue("orrery-ask-%s", WQ_MEM_RECLAIM,
					       pci_name(odev->pdev));
	if (!odev->ask_wq) {
		destroy_workqueue(odev->wq);
		return -ENOMEM;
	}
	return drmm_add_action_or_reset(&odev->drm, orr_health_free, odev);
}

/**
 * orr_health_enable - the card is up: from now on it is looked after
 * @odev: the card
 */
void orr_health_enable(struct orr_device *odev)
{
	enable_delayed_work(&odev->health_work);
	/* There may have been a reason for it. */
	orr_health_kick(odev);
}

/**
 * orr_health_fini - no more work of ours after this
 * @odev: the card, lost, with no interrupts any more
 *
 * Processes with the node open may still ask for works; they are not done.
 */
void orr_health_fini(struct orr_device *odev)
{
	disable_delayed_work_sync(&odev->health_work);
	orr_restart_fini(odev);
	disable_delayed_work_sync(&odev->link_work);
	disable_work_sync(&odev->fabric.cut_work);
	disable_work_sync(&odev->fabric.clear_work);
	disable_delayed_work_sync(&odev->fabric.forward_work);
	flush_work(&odev->lost_work);
	orr_signaller_fini(odev);
}
