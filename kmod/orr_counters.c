// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of a card, all of one moment of its model time.
 *
 * The card writes them to a page of ours when it is told to. One reader after the other has the page, so that
 * perf, sysfs and processes do not spoil what each other reads. The card is told where with a tag, and shows
 * the tag of the last that is there.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "orr_counters.h"
#include "orr_device.h"

/* A busy host's card may be late. */
#define ORR_SNAPSHOT_TIMEOUT HZ
/* See orr_left_after_look(). */
#define ORR_SNAPSHOT_LOOK msecs_to_jiffies(5)
/* With all who were before him a reader waits no longer, but he has looked so often. */
#define ORR_SNAPSHOT_IN_ALL (5 * HZ)
#define ORR_SNAPSHOT_LEAST 5u
/* Reads of a register, each of which takes 20 ms at the most: perf waits no longer with interrupts off. */
#define ORR_SNAPSHOT_TRIES 2

/**
 * orr_counters_init - prepare
 * @odev: the card
 */
void orr_counters_init(struct orr_device *odev)
{
	mutex_init(&odev->snapshot.readers);
	raw_spin_lock_init(&odev->snapshot.lock);
}

/**
 * orr_counters_alloc - make the page that the card writes to, if it can
 * @odev: the card, identified
 *
 * Return: 0 or -ENOMEM.
 */
int orr_counters_alloc(struct orr_device *odev)
{
	struct orr_snapshot *snapshot = &odev->snapshot;

	if (!orr_has_snapshots(odev))
		return 0;
	snapshot->words = dmam_alloc_coherent(&odev->pdev->dev, ORR_SNAPSHOT_ALIGN, &snapshot->dma,
					      GFP_KERNEL);
	return snapshot->words ? 0 : -ENOMEM;
}

/* Whether the last one that was asked for is there. Return: -EAGAIN: not yet; else as orr_counters_read(). */
static int orr_snapshot_look(struct orr_device *odev)
{
	struct orr_snapshot *snapshot = &odev->snapshot;
	const u32 done = orr_read32(odev, ORR_R_SNAPSHOT_DONE);

	lockdep_assert_held(&snapshot->lock);
	if (done == U32_MAX)
		return -ENODEV;
	if ((done & 0xffff) != snapshot->tag)
		return -EAGAIN;
	snapshot->pending = false;
	return done >> 16 ? -EIO : 0;
}

/*
 * Asks for one, unless the card owes one: that will be of a moment after this, too, and commands are
 * not to pile up at a card that takes none. After a reset it owes it for ever. One that has come since
 * nobody waited for it any more is of a moment before this.
 *
 * Return: how often it has been looked at in vain.
 */
static unsigned int orr_snapshot_ask(struct orr_device *odev)
{
	struct orr_snapshot *snapshot = &odev->snapshot;

	lockdep_assert_held(&snapshot->lock);
	if (snapshot->pending && orr_snapshot_look(odev) == -EAGAIN &&
	    time_before(jiffies, snapshot->asked + ORR_SNAPSHOT_TIMEOUT))
		return 1;
	/* Never 0, which is what the register says after a reset. */
	snapshot->tag = snapshot->tag % (ORR_SNAPSHOT_ALIGN - 1) + 1;
	snapshot->pending = true;
	snapshot->asked = jiffies;
	orr_write64(odev, ORR_R_SNAPSHOT, snapshot->dma | snapshot->tag);
	return 0;
}

static void orr_snapshot_copy(const struct orr_snapshot *snapshot, u32 first, u32 count, u64 *values)
{
	u32 i;

	for (i = 0; i < count; i++)
		values[i] = le64_to_cpu(READ_ONCE(snapshot->words[first + i]));
}

static int orr_counters_read_each(struct orr_device *odev, u32 first, u32 count, u64 *values)
{
	bool ones = false;
	u32 i;

	for (i = 0; i < count; i++) {
		values[i] = orr_read64(odev, ORR_R_COUNTER(first + i));
		ones |= values[i] == U64_MAX;
	}
	return ones ? -ENODEV : 0;
}

/**
 * orr_counters_read - read counters as they are at one moment
 * @odev: the card; the caller is inside orr_enter()
 * @first: number of the first
 * @count: how many; all are below odev->info.counters
 * @values: room for them
 *
 * Sleeps, a second at most once it is his turn, counted in looks, and some five with all readers before him.
 * Of a card before 2.8 they are read one after the other.
 *
 * Return: 0; -ENODEV: it is lost, or reads as all-ones, which is for orr_hw_answers(); -EIO: it cannot reach
 * our memory; -ETIMEDOUT: it was late; -ERESTARTSYS.
 */
int orr_counters_read(struct orr_device *odev, u32 first, u32 count, u64 *values)
{
	struct orr_snapshot *snapshot = &odev->snapshot;
	const unsigned long until = jiffies + ORR_SNAPSHOT_IN_ALL;
	unsigned long looked, left = ORR_SNAPSHOT_TIMEOUT;
	unsigned int looks;
	int ret;

	if (!snapshot->words)
		return orr_counters_read_each(odev, first, count, values);
	ret = mutex_lock_interruptible(&snapshot->readers);
	if (ret)
		return -ERESTARTSYS;
	looked = jiffies;
	for (looks = 0;; looks++) {
		scoped_guard(raw_spinlock_irqsave, &snapshot->lock) {
			if (!looks)
				orr_snapshot_ask(odev);
			ret = orr_snapshot_look(odev);
			if (!ret)
				orr_snapshot_copy(snapshot, first, count, values);
		}
		if (ret != -EAGAIN)
			break;
		left = orr_left_after_look(left, &looked, ORR_SNAPSHOT_LOOK);
		if (orr_is_lost(odev))
			ret = -ENODEV;
		else if (fatal_signal_pending(current))
			ret = -ERESTARTSYS;
		else if (!left || (looks >= ORR_SNAPSHOT_LEAST && time_after(jiffies, until)))
			ret = -ETIMEDOUT;
		if (ret != -EAGAIN)
			break;
		usleep_range(50, 500);
	}
	mutex_unlock(&snapshot->readers);
	return ret;
}

/**
 * orr_counters_read_atomic - the same in any context but NMI
 * @odev: the card; the caller is inside orr_enter()
 * @first: number of the first
 * @count: how many
 * @values: room for them
 *
 * Return: as orr_counters_read(), but -ETIMEDOUT after a moment: that counts in @odev->stats.
 */
int orr_counters_read_atomic(struct orr_device *odev, u32 first, u32 count, u64 *values)
{
	struct orr_snapshot *snapshot = &odev->snapshot;
	unsigned int tries;
	int ret = -EAGAIN;

	if (!snapshot->words)
		return orr_counters_read_each(odev, first, count, values);
	guard(raw_spinlock_irqsave)(&snapshot->lock);
	for (tries = orr_snapshot_ask(odev); ret == -EAGAIN && tries < ORR_SNAPSHOT_TRIES; tries++)
		ret = orr_snapshot_look(odev);
	if (!ret)
		orr_snapshot_copy(snapshot, first, count, values);
	if (ret != -EAGAIN)
		return ret;
	WRITE_ONCE(odev->stats.late_snapshots, odev->stats.late_snapshots + 1);
	return -ETIMEDOUT;
}
