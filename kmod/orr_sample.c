// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of a card's counters at a period of its model time, by its trace sink.
 *
 * The card takes one kind at a time, so one file has them. They come by the ring that records of work
 * come by. They are of the whole card, so what a neighbour does shows in them, and when: they are for whom
 * perf gives a machine's counters to.
 */
#include <linux/capability.h>

#include <drm/orrery_accel.h>

#include <orrery/fw/trace.h>
#include <orrery/hw/trace_sink.h>

#include "orr_device.h"
#include "orr_file.h"
#include "orr_ioctl.h"
#include "orr_work.h"

static_assert(sizeof(struct drm_orr_sample_read) == 40);

/* Words that are copied at once: those of the longest sample, and more. */
#define ORR_SAMPLE_BATCH 512u
#define ORR_SAMPLE_MARGIN (2 + 2 * 64)
/* Words of the ring that are looked at for them. */
#define ORR_SAMPLE_LOOK 16384u
/* Of ORR_SINK_SAMPLE, before its counters. */
#define ORR_SAMPLE_WORDS 4u

static void orr_sample_write(struct orr_device *odev, u32 period_ns, const u64 *set)
{
	orr_write64(odev, ORR_R_SINK_SET, set[0]);
	orr_write64(odev, ORR_R_SINK_SET_HIGH, set[1]);
	orr_write32(odev, ORR_R_SINK_PERIOD, period_ns);
}

/* The card has all of these counters. */
static bool orr_sample_has(const struct orr_device *odev, const u64 *set)
{
	const u32 counters = odev->info.counters;

	if (!(set[0] | set[1]))
		return false;
	if (counters < 64)
		return !set[1] && !(set[0] >> counters);
	return counters >= 128 || !(set[1] >> (counters - 64));
}

/* The ring is everybody's: what samples take of it each time is bounded. */
static bool orr_sample_bearable(u32 period_ns, const u64 *set)
{
	const u32 words = ORR_SAMPLE_WORDS + hweight64(set[0]) + hweight64(set[1]);

	return period_ns >= ORR_SINK_PERIOD_MIN && period_ns >= ORR_SINK_WORD_NS * words;
}

/**
 * orr_sink_settle - wait until the card has taken what was written about its sink
 * @odev: the card; inside orr_enter()
 *
 * It does in order what it is told, and a snapshot is answered; but the first one may have been owed before.
 *
 * Return: 0 or a negative error.
 */
int orr_sink_settle(struct orr_device *odev)
{
	u64 ignored;
	int ret;

	ret = orr_counters_read(odev, 0, 1, &ignored);
	return ret ?: orr_counters_read(odev, 0, 1, &ignored);
}

static void orr_sample_stop(struct orr_file *file)
{
	struct orr_device *odev = file->odev;
	struct orr_sample *sample = &file->sample;
	const u64 none[2] = {};
	int idx;

	lockdep_assert_held(&sample->lock);
	if (!sample->wanted)
		return;
	sample->wanted = false;
	scoped_guard(mutex, &odev->sink.lock) {
		odev->sink.sampler = NULL;
		if (!orr_enter(odev, &idx)) {
			orr_sample_write(odev, 0, none);
			orr_exit(odev, idx);
		}
	}
	orr_sink_put(odev);
}

static int orr_sample_start(struct orr_file *file, const struct drm_orr_sample_read *args)
{
	struct orr_device *odev = file->odev;
	struct orr_sample *sample = &file->sample;
	const u64 none[2] = {};
	int idx, ret = 0;

	lockdep_assert_held(&sample->lock);
	if (!orr_counts_jobs(odev))
		return -EOPNOTSUPP;
	if (!orr_sample_bearable(args->period_ns, args->set) || !orr_sample_has(odev, args->set))
		return -EINVAL;
	if (!perfmon_capable())
		return -EACCES;
	guard(mutex)(&odev->sink.lock);
	if (odev->sink.sampler && odev->sink.sampler != file)
		return -EBUSY;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	/* All that were asked for before, if only by a process that is gone, are in the ring then. */
	orr_sample_write(odev, 0, none);
	ret = orr_sink_settle(odev);
	if (!ret && !sample->wanted)
		ret = orr_sink_get(odev);
	if (!ret) {
		sample->wanted = true;
		sample->next = orr_sink_head(&odev->sink.ring);
		memcpy(sample->set, args->set, sizeof(sample->set));
		odev->sink.sampler = file;
		orr_sample_write(odev, args->period_ns, args->set);
	}
	orr_exit(odev, idx);
	return ret;
}

/* Words of the next samples, as user space gets them; inside orr_enter(). Return: how many. */
static u32 orr_sample_gather(struct orr_file *file, u64 *to, u32 room, u32 *flags)
{
	const struct orr_sink_ring *ring = &file->odev->sink.ring;
	struct orr_sample *sample = &file->sample;
	const u32 counters = hweight64(sample->set[0]) + hweight64(sample->set[1]);
	struct orr_sink_place place;
	u64 words[ORR_SAMPLE_WORDS];
	bool lost;
	u32 count = 0;

	lockdep_assert_held(&sample->lock);
	lost = !orr_sink_look(ring, &place, sample->next);
	while (!lost && room - count >= 2 + counters) {
		enum orr_sink_step step =
			orr_sink_next(ring, &place, ORR_SAMPLE_LOOK, words, ARRAY_SIZE(words));

		lost = step == ORR_SINK_LOST;
		if (step != ORR_SINK_RECORD)
			break;
		/* Others may be those that were asked for before. */
		if (ORR_TRACE_TYPE(words[1]) != ORR_SINK_SAMPLE ||
		    place.size != ORR_SAMPLE_WORDS + counters || words[2] != sample->set[0] ||
		    words[3] != sample->set[1])
			continue;
		orr_sink_take(ring, place.at + ORR_SAMPLE_WORDS, to + count + 2, counters);
		/* The card may have come there only now. */
		lost = orr_sink_overwritten(ring, place.at);
		if (lost) {
			place.next = place.end;
			break;
		}
		to[count] = words[0];
		to[count + 1] = ORR_TRACE_B(words[1]);
		count += 2 + counters;
	}
	sample->next = place.next;
	if (lost)
		*flags |= ORR_WORK_LOST;
	if (place.next < place.end)
		*flags |= ORR_WORK_MORE;
	return count;
}

static int orr_sample_read(struct orr_file *file, void *to, u32 room, u32 *flags)
{
	int idx, ret;

	guard(mutex)(&file->sample.lock);
	if (!file->sample.wanted)
		return -EINVAL;
	ret = orr_enter(file->odev, &idx);
	if (ret)
		return ret;
	ret = orr_sample_gather(file, to, room, flags);
	orr_exit(file->odev, idx);
	return ret;
}

static const struct orr_sink_reading orr_sample_reading = {
	.read = orr_sample_read,
	.size = sizeof(u64),
	.batch = ORR_SAMPLE_BATCH,
	.least = ORR_SAMPLE_MARGIN,
};

/**
 * orr_sample_read_ioctl - DRM_IOCTL_ORR_SAMPLE_READ
 * @drm: the card
 * @data: struct drm_orr_sample_read
 * @drm_file: who asks
 *
 * Return: 0 or a negative error, see the uAPI.
 */
int orr_sample_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_sample_read *args = data;

	if (args->pad)
		return -EINVAL;
	if (args->flags) {
		if (args->count || args->values)
			return -EINVAL;
		guard(mutex)(&file->sample.lock);
		if (args->flags == ORR_WORK_START)
			return orr_sample_start(file, args);
		if (args->flags != ORR_WORK_STOP)
			return -EINVAL;
		orr_sample_stop(file);
		return 0;
	}
	if (args->period_ns || args->set[0] || args->set[1])
		return -EINVAL;
	return orr_sink_copy(file, &orr_sample_reading, u64_to_user_ptr(args->values), &args->count,
			     &args->flags);
}

/**
 * orr_sample_file_init - a file is made
 * @file: the file
 */
void orr_sample_file_init(struct orr_file *file)
{
	mutex_init(&file->sample.lock);
}

/**
 * orr_sample_file_close - it goes
 * @file: the file
 */
void orr_sample_file_close(struct orr_file *file)
{
	scoped_guard(mutex, &file->sample.lock)
		orr_sample_stop(file);
	mutex_destroy(&file->sample.lock);
}
