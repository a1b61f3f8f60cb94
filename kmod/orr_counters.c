// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of a card, all of one moment of its model time.
 *
 * The card writes them to a page of ours when it is told to. One reader after the other has the page, so that
 * perf, sysfs and processes do not spoil what each other reads. The card is told where with a tag, and shows
 * the tag of the last that is there.
 */
#include <linux/dma-mapping.h>
#include <linux/spinlock.h>

#include "orr_counters.h"
#include "orr_device.h"

/* A read is answered after 20 ms at the latest, also before the card has come to what was written earlier. */
#define ORR_SNAPSHOT_TRIES 50

/**
 * orr_counters_init - prepare
 * @odev: the card
 */
void orr_counters_init(struct orr_device *odev)
{
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

/* With the lock held. Return: as orr_counters_read(). */
static int orr_snapshot_take(struct orr_device *odev)
{
	struct orr_snapshot *snapshot = &odev->snapshot;
	unsigned int tries;
	u32 done;

	/* Never 0, which is what the register says after a reset. */
	snapshot->tag = snapshot->tag % (ORR_SNAPSHOT_ALIGN - 1) + 1;
	orr_write64(odev, ORR_R_SNAPSHOT, snapshot->dma | snapshot->tag);
	for (tries = 0; tries < ORR_SNAPSHOT_TRIES; tries++) {
		done = orr_read32(odev, ORR_R_SNAPSHOT_DONE);
		if (done == U32_MAX)
			return -ENODEV;
		if ((done & 0xffff) == snapshot->tag)
			return done >> 16 ? -EIO : 0;
	}
	return -ETIMEDOUT;
}

/**
 * orr_counters_read - read counters as they are at one moment
 * @odev: the card; the caller is inside orr_enter()
 * @first: number of the first
 * @count: how many; all are below odev->info.counters
 * @values: room for them
 *
 * Any context. Of a card before 2.8 they are read one after the other.
 *
 * Return: 0; -ENODEV: it reads as all-ones, which is for orr_hw_answers(); -EIO: it cannot reach our memory;
 * -ETIMEDOUT: it was late.
 */
int orr_counters_read(struct orr_device *odev, u32 first, u32 count, u64 *values)
{
	struct orr_snapshot *snapshot = &odev->snapshot;
	bool ones = false;
	u32 i;
	int ret;

	if (!snapshot->words) {
		for (i = 0; i < count; i++) {
			values[i] = orr_read64(odev, ORR_R_COUNTER(first + i));
			ones |= values[i] == U64_MAX;
		}
		return ones ? -ENODEV : 0;
	}
	guard(raw_spinlock_irqsave)(&snapshot->lock);
	ret = orr_snapshot_take(odev);
	if (ret)
		return ret;
	for (i = 0; i < count; i++)
		values[i] = le64_to_cpu(READ_ONCE(snapshot->words[first + i]));
	return 0;
}
