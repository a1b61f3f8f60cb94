// SPDX-License-Identifier: GPL-2.0
/*
 * Where a card's vector cores are in a process's kernels, at a period of its model time, by its trace sink.
 *
 * The card has one period, so one file has them. Its records name address spaces, and each file is given what
 * is about its own; the firmware's record of a job, which comes behind, says whose packet that was.
 */
#include <linux/capability.h>
#include <linux/xarray.h>

#include <drm/orrery_accel.h>

#include <orrery/fw/trace.h>
#include <orrery/hw/trace_sink.h>

#include "orr_device.h"
#include "orr_file.h"
#include "orr_ioctl.h"
#include "orr_vm.h"
#include "orr_work.h"

static_assert(sizeof(struct drm_orr_pc_record) == 48);
static_assert(sizeof(struct drm_orr_pc_read) == 40);

#define ORR_PC_BATCH 64u
/* Words of the ring that are looked at for them, and of a record that is of interest. */
#define ORR_PC_LOOK 16384u
#define ORR_PC_WORDS 6u

/* The ring is everybody's: who would fill it needs the right to look at all that the machine does. */
static bool orr_pc_bearable(const struct orr_device *odev, const struct drm_orr_pc_read *wanted)
{
	return !wanted->core &&
	       wanted->period_ns >= ORR_SINK_WORD_NS * ORR_PC_WORDS * odev->info.vector_cores;
}

static void orr_pc_write(struct orr_device *odev, const struct drm_orr_pc_read *wanted)
{
	orr_write64(odev, ORR_R_SINK_STEP_FROM, wanted->from_ps);
	orr_write64(odev, ORR_R_SINK_STEP_UNTIL, wanted->until_ps);
	orr_write32(odev, ORR_R_SINK_STEP_CORE, wanted->core);
	orr_write32(odev, ORR_R_SINK_PC_PERIOD, wanted->period_ns);
}

static void orr_pc_stop(struct orr_file *file)
{
	const struct drm_orr_pc_read none = {};
	struct orr_device *odev = file->odev;
	int idx;

	lockdep_assert_held(&file->pc.lock);
	if (!file->pc.wanted)
		return;
	file->pc.wanted = false;
	scoped_guard(mutex, &odev->sink.lock) {
		odev->sink.pc_sampler = NULL;
		if (!orr_enter(odev, &idx)) {
			orr_pc_write(odev, &none);
			orr_exit(odev, idx);
		}
	}
	orr_sink_put(odev);
}

static int orr_pc_start(struct orr_file *file, const struct drm_orr_pc_read *wanted)
{
	struct orr_device *odev = file->odev;
	const struct drm_orr_pc_read none = {};
	struct orr_pc *pc = &file->pc;
	int idx, ret = 0;

	lockdep_assert_held(&pc->lock);
	if (!orr_says_pcs(odev))
		return -EOPNOTSUPP;
	if (wanted->period_ns ? wanted->period_ns < ORR_SINK_PC_PERIOD_MIN : !wanted->core)
		return -EINVAL;
	if (wanted->core > odev->info.vector_cores ||
	    (!wanted->core && (wanted->from_ps || wanted->until_ps)))
		return -EINVAL;
	if (!orr_pc_bearable(odev, wanted) && !perfmon_capable())
		return -EACCES;
	guard(mutex)(&odev->sink.lock);
	if (odev->sink.pc_sampler && odev->sink.pc_sampler != file)
		return -EBUSY;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	/* Those of another period, if only of a process that is gone, come before. */
	orr_pc_write(odev, &none);
	ret = orr_sink_settle(odev);
	if (!ret && !pc->wanted)
		ret = orr_sink_get(odev);
	if (!ret) {
		pc->next = orr_sink_head(&odev->sink.ring);
		pc->wanted = true;
		odev->sink.pc_sampler = file;
		orr_pc_write(odev, wanted);
	}
	orr_exit(odev, idx);
	return ret;
}

/* Whether the address space is the file's, and was when the word at @position was written. */
static bool orr_pc_owns(struct orr_file *file, u32 context, u64 position)
{
	struct orr_device *odev = file->odev;
	struct orr_vm *vm;
	bool owns;

	/* It goes under this lock. */
	xa_lock(&odev->vms);
	vm = xa_load(&odev->vms, context);
	owns = vm && vm->file == file && position >= vm->work_from;
	xa_unlock(&odev->vms);
	return owns;
}

/* Return: whether it is one for the file. */
static bool orr_pc_make(struct orr_file *file, u64 position, const u64 *words,
			struct drm_orr_pc_record *record)
{
	const u64 header = words[1];

	*record = (struct drm_orr_pc_record){ .time_ps = words[0] };
	switch (ORR_TRACE_TYPE(header)) {
	case ORR_SINK_PC:
	case ORR_SINK_STEP:
		record->kind = ORR_TRACE_TYPE(header) == ORR_SINK_PC ? ORR_PC_AT : ORR_PC_STEP;
		record->port = ORR_TRACE_A(header);
		record->core = ORR_TRACE_B(header) & 0xffff;
		record->cause = ORR_TRACE_B(header) >> 16;
		record->start_ps = words[2];
		record->pc = words[3];
		record->group = words[4];
		record->count = words[5] >> 32;
		return orr_pc_owns(file, (u32)words[5], position);
	case ORR_TRACE_END_JOB:
		record->kind = ORR_PC_JOB;
		record->queue = ORR_TRACE_A(header);
		record->port = ORR_TRACE_B(header) & 0xffff;
		record->group = words[2];
		record->start_ps = words[3];
		record->time_ps = words[4];
		return orr_work_owns(file, record->queue, position);
	default:
		return false;
	}
}

/* The next records; inside orr_enter(). Return: how many. */
static u32 orr_pc_gather(struct orr_file *file, struct drm_orr_pc_record *records, u32 room, u32 *flags)
{
	const struct orr_sink_ring *ring = &file->odev->sink.ring;
	struct orr_pc *pc = &file->pc;
	struct orr_sink_place place;
	u64 words[ORR_PC_WORDS];
	bool lost;
	u32 count = 0;

	lockdep_assert_held(&pc->lock);
	lost = !orr_sink_look(ring, &place, pc->next);
	while (!lost && count < room) {
		enum orr_sink_step step =
			orr_sink_next(ring, &place, ORR_PC_LOOK, words, ARRAY_SIZE(words));

		lost = step == ORR_SINK_LOST;
		if (step != ORR_SINK_RECORD)
			break;
		if (place.size >= ORR_PC_WORDS &&
		    orr_pc_make(file, place.at, words, &records[count]))
			count++;
	}
	pc->next = place.next;
	if (lost)
		*flags |= ORR_WORK_LOST;
	if (place.next < place.end)
		*flags |= ORR_WORK_MORE;
	return count;
}

static int orr_pc_read(struct orr_file *file, void *records, u32 room, u32 *flags)
{
	int idx, ret;

	guard(mutex)(&file->pc.lock);
	if (!file->pc.wanted)
		return -EINVAL;
	ret = orr_enter(file->odev, &idx);
	if (ret)
		return ret;
	ret = orr_pc_gather(file, records, room, flags);
	orr_exit(file->odev, idx);
	return ret;
}

static const struct orr_sink_reading orr_pc_reading = {
	.read = orr_pc_read,
	.size = sizeof(struct drm_orr_pc_record),
	.batch = ORR_PC_BATCH,
	.least = 1,
};

/**
 * orr_pc_read_ioctl - DRM_IOCTL_ORR_PC_READ
 * @drm: the card
 * @data: struct drm_orr_pc_read
 * @drm_file: who asks
 *
 * Return: 0 or a negative error, see the uAPI.
 */
int orr_pc_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_pc_read *args = data;
	const bool asks = args->period_ns || args->core || args->from_ps || args->until_ps;

	if (args->flags) {
		if (args->count || args->records)
			return -EINVAL;
		guard(mutex)(&file->pc.lock);
		if (args->flags == ORR_WORK_START)
			return orr_pc_start(file, args);
		if (args->flags != ORR_WORK_STOP || asks)
			return -EINVAL;
		orr_pc_stop(file);
		return 0;
	}
	if (asks)
		return -EINVAL;
	return orr_sink_copy(file, &orr_pc_reading, u64_to_user_ptr(args->records), &args->count,
			     &args->flags);
}

/**
 * orr_pc_file_init - a file is made
 * @file: the file
 */
void orr_pc_file_init(struct orr_file *file)
{
	mutex_init(&file->pc.lock);
}

/**
 * orr_pc_file_close - it goes
 * @file: the file
 */
void orr_pc_file_close(struct orr_file *file)
{
	scoped_guard(mutex, &file->pc.lock)
		orr_pc_stop(file);
	mutex_destroy(&file->pc.lock);
}
