// SPDX-License-Identifier: GPL-2.0
/*
 * Records of work: when the card began and ended what a process's queues had for it.
 *
 * While a file wants records the card's trace sink is on, which costs the card nothing and changes
 * nothing there. All files read one ring, each at its own place, and each is given what is about its
 * own queues. The card waits for nobody: who reads too late is told that records are lost.
 *
 * What a job did is in a record of the hardware's, which knows ports and no queues; the firmware's record of
 * the job comes behind it, and says whose it was.
 */
#include <linux/dma-mapping.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/orrery_accel.h>

#include <orrery/fw/trace.h>
#include <orrery/hw/trace_sink.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_ioctl.h"
#include "orr_queue.h"
#include "orr_work.h"

static_assert(sizeof(struct drm_orr_work_record) == 48);
static_assert(sizeof(struct drm_orr_work_counters) == 384);
static_assert(sizeof(struct drm_orr_work_read) == 24);
static_assert(ARRAY_SIZE(((struct drm_orr_work_counters *)0)->value) >= ORR_JOB_COUNTERS);

#define ORR_SINK_TYPES \
	(BIT_ULL(ORR_TRACE_END_JOB) | BIT_ULL(ORR_TRACE_WAIT) | BIT_ULL(ORR_TRACE_WAKE) | \
	 BIT_ULL(ORR_TRACE_SIGNAL))
#define ORR_SINK_TIMEOUT_US (5 * USEC_PER_SEC)

/* Records that are gathered at once, and words that are looked at for them. */
#define ORR_WORK_BATCH 64u
#define ORR_WORK_LOOK 16384u

/* Of the longest record that is of interest. */
#define ORR_WORK_WORDS 6u
#define ORR_WORK_NO_PORT U32_MAX

/* Of this many queues a look remembers whose they are. */
#define ORR_WORK_OWNERS 8u

/* A queue's number, and from which word of the sink on it was the file's; U64_MAX: it is not. */
struct orr_work_owner {
	u32 queue;
	u64 from;
};

/* Inside orr_enter(). */
static int orr_sink_command(struct orr_device *odev, u32 bytes)
{
	struct orr_sink *sink = &odev->sink;
	int ret;

	lockdep_assert_held(&sink->lock);
	orr_write64(odev, ORR_R_SINK_BASE, sink->dma);
	orr_write64(odev, ORR_R_SINK_TYPES, ORR_SINK_TYPES);
	orr_write32(odev, ORR_R_SINK_BYTES, bytes);
	ret = orr_await_or_lose(odev, ORR_R_SINK_DONE, ++sink->commands, ORR_SINK_TIMEOUT_US, 0,
				"it does not switch its trace sink");
	if (ret)
		return ret;
	return orr_read32(odev, ORR_R_SINK_FAULT) == ORR_FAULT_NONE ? 0 : -EIO;
}

/**
 * orr_sink_get - have the card's sink on
 * @odev: the card
 *
 * Inside orr_enter(), with &orr_sink.lock. Return: 0, then orr_sink_put() is due, or a negative error.
 */
int orr_sink_get(struct orr_device *odev)
{
	struct orr_sink *sink = &odev->sink;
	struct orr_sink_ring *ring = &sink->ring;
	int ret;

	lockdep_assert_held(&sink->lock);
	if (!ring->memory) {
		/* Freed when the driver is unbound, after the card has been put to rest. */
		ring->memory = dmam_alloc_coherent(&odev->pdev->dev,
						   sizeof(*ring->memory) + ORR_SINK_BYTES,
						   &sink->dma, GFP_KERNEL | __GFP_NOWARN);
		if (!ring->memory)
			return -ENOMEM;
	}
	if (!sink->users) {
		ring->before += READ_ONCE(ring->memory->head);
		WRITE_ONCE(ring->memory->head, 0);
		ret = orr_sink_command(odev, ORR_SINK_BYTES);
		if (ret)
			return ret;
	}
	sink->users++;
	return 0;
}

/**
 * orr_sink_put - it is not needed any more by who got it
 * @odev: the card
 */
void orr_sink_put(struct orr_device *odev)
{
	struct orr_sink *sink = &odev->sink;
	int idx;

	guard(mutex)(&sink->lock);
	if (--sink->users || orr_enter(odev, &idx))
		return;
	orr_sink_command(odev, 0);
	orr_exit(odev, idx);
}

static void orr_work_forget_jobs(struct orr_work *work)
{
	u32 i;

	for (i = 0; i < ORR_WORK_JOBS; i++)
		work->jobs[i].port = ORR_WORK_NO_PORT;
	work->next_job = 0;
}

/* What jobs did is wanted too. Inside orr_enter(), which the caller is for the sink. */
static void orr_work_count(struct orr_file *file, struct orr_work_job *jobs)
{
	struct orr_sink *sink = &file->odev->sink;
	struct orr_work *work = &file->work;

	lockdep_assert_held(&work->lock);
	lockdep_assert_held(&sink->lock);
	work->jobs = jobs;
	orr_work_forget_jobs(work);
	if (!sink->counting++)
		orr_write32(file->odev, ORR_R_SINK_ASK, ORR_SINK_ASK_JOBS);
}

static void orr_work_uncount(struct orr_file *file)
{
	struct orr_device *odev = file->odev;
	int idx;

	lockdep_assert_held(&file->work.lock);
	lockdep_assert_held(&odev->sink.lock);
	kfree(file->work.jobs);
	file->work.jobs = NULL;
	if (--odev->sink.counting || orr_enter(odev, &idx))
		return;
	orr_write32(odev, ORR_R_SINK_ASK, 0);
	orr_exit(odev, idx);
}

static int orr_work_start(struct orr_file *file, u32 flags)
{
	struct orr_device *odev = file->odev;
	struct orr_work *work = &file->work;
	bool counters = flags & ORR_WORK_COUNTERS;
	int idx, ret;

	lockdep_assert_held(&work->lock);
	if (odev->info.sink_bytes < ORR_SINK_BYTES || (counters && !orr_counts_jobs(odev)))
		return -EOPNOTSUPP;
	if (work->wanted && counters == !!work->jobs) {
		work->signals = flags & ORR_WORK_SIGNALS;
		return 0;
	}

	struct orr_work_job *jobs __free(kfree) =
		counters ? kcalloc(ORR_WORK_JOBS, sizeof(*jobs), GFP_KERNEL_ACCOUNT) : NULL;

	if (counters && !jobs)
		return -ENOMEM;
	guard(mutex)(&odev->sink.lock);
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	/* Before the sink, whose command is answered: then both are known to be on. */
	if (jobs)
		orr_work_count(file, no_free_ptr(jobs));
	if (!work->wanted) {
		ret = orr_sink_get(odev);
		if (!ret) {
			work->wanted = true;
			work->next = orr_sink_head(&odev->sink.ring);
		}
	}
	orr_exit(odev, idx);
	if (work->jobs && (ret || !counters))
		orr_work_uncount(file);
	if (!ret)
		work->signals = flags & ORR_WORK_SIGNALS;
	return ret;
}

static void orr_work_stop(struct orr_file *file)
{
	struct orr_device *odev = file->odev;

	lockdep_assert_held(&file->work.lock);
	if (!file->work.wanted)
		return;
	if (file->work.jobs) {
		guard(mutex)(&odev->sink.lock);
		orr_work_uncount(file);
	}
	file->work.wanted = false;
	orr_sink_put(odev);
}

/* The hardware says what a job did. */
static void orr_work_see_job(struct orr_work *work, u64 position, const u64 *words)
{
	work->jobs[work->next_job] = (struct orr_work_job){
		.position = position,
		.start_ps = words[2],
		.end_ps = words[3],
		.port = ORR_TRACE_A(words[1]),
	};
	work->next_job = (work->next_job + 1) % ORR_WORK_JOBS;
}

/* The firmware says that a job has ended. Return: the place of what it did; U64_MAX: not known. */
static u64 orr_work_take_job(struct orr_work *work, const u64 *words)
{
	const u32 port = ORR_TRACE_B(words[1]) & 0xffff;
	u32 i;

	/* The newest first: most are there. */
	for (i = 1; i <= ORR_WORK_JOBS; i++) {
		struct orr_work_job *job =
			&work->jobs[(work->next_job + ORR_WORK_JOBS - i) % ORR_WORK_JOBS];

		if (job->port != port || job->start_ps != words[3] || job->end_ps != words[4])
			continue;
		job->port = ORR_WORK_NO_PORT;
		return job->position;
	}
	return U64_MAX;
}

/* Which of a job's counters the card counts: copies' time and ports since 2.15, pauses since 2.16. */
static u64 orr_work_known(const struct orr_device *odev)
{
	const u32 minor = odev->info.hw_version & 0xffff;

	if (minor >= 16)
		return GENMASK_ULL(ORR_JOB_PAUSE_PS, 0);
	return minor == 15 ? GENMASK_ULL(ORR_JOB_LINK_PORTS, 0) :
			     GENMASK_ULL(ORR_JOB_TLB_WALKED, 0);
}

/* What the job did whose record is at @position, if that is still there. */
static void orr_work_fill(const struct orr_device *odev, u64 position,
			  struct drm_orr_work_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	if (position != U64_MAX && orr_sink_job(&odev->sink.ring, position, counters->value))
		counters->known = orr_work_known(odev);
}

/* From which word of the sink on a queue was the file's; U64_MAX: it is not. */
static u64 orr_work_from(struct orr_file *file, u32 number)
{
	struct orr_device *odev = file->odev;
	struct orr_queue *queue;

	if (number >= ORR_FW_QUEUES)
		return U64_MAX;
	guard(spinlock_irqsave)(&odev->queue_lock);
	queue = odev->queues[number];
	return queue && queue->file == file ? queue->work_from : U64_MAX;
}

/**
 * orr_work_owns - whether a queue is a file's, and was when a word of the sink was written
 * @file: the file
 * @number: the queue's
 * @position: of the word
 *
 * Return: whether.
 */
bool orr_work_owns(struct orr_file *file, u32 number, u64 position)
{
	const u64 from = orr_work_from(file, number);

	return from != U64_MAX && position >= from;
}

/*
 * The same for all words before an end that the card had come to before the first of them was asked for: a
 * queue that is the file's then has been so since its first word.
 */
static bool orr_work_owned(struct orr_file *file, struct orr_work_owner *owners, u32 number,
			   u64 position)
{
	struct orr_work_owner *owner = &owners[number % ORR_WORK_OWNERS];

	if (owner->queue != number)
		*owner = (struct orr_work_owner){ number, orr_work_from(file, number) };
	return owner->from != U64_MAX && position >= owner->from;
}

/*
 * A record of the firmware's, of @size words. Return: whether it is one for user space, which is told no
 * addresses of the card's, if the queue is its.
 */
static bool orr_work_make(bool signals, const u64 *words, u32 size,
			  struct drm_orr_work_record *record)
{
	u64 header = words[1];
	u32 b = ORR_TRACE_B(header);

	*record = (struct drm_orr_work_record){
		.time_ps = words[0],
		.queue = ORR_TRACE_A(header),
	};
	switch (ORR_TRACE_TYPE(header)) {
	case ORR_TRACE_END_JOB:
		record->kind = ORR_WORK_JOB;
		record->status = b >> 16;
		record->index = words[2];
		record->start_ps = words[3];
		record->end_ps = words[4];
		record->used_ps = words[5];
		return size >= 6;
	case ORR_TRACE_WAIT:
		record->kind = ORR_WORK_WAIT;
		record->index = words[5];
		return size >= 6;
	case ORR_TRACE_WAKE:
		record->kind = ORR_WORK_WAKE;
		record->status = b;
		return size >= 4;
	case ORR_TRACE_SIGNAL:
		record->kind = ORR_WORK_SIGNAL;
		record->status = min_t(u32, b, U16_MAX);
		record->value = words[3];
		record->va = words[4];
		return signals && size >= 5;
	default:
		return false;
	}
}

/**
 * orr_work_gather - take the next records of a file
 * @file: the file
 * @records: filled
 * @counters: filled as well, if not NULL
 * @room: for so many
 * @flags: ORR_WORK_LOST and ORR_WORK_MORE are added
 *
 * Inside orr_enter(). Return: how many.
 */
static u32 orr_work_gather(struct orr_file *file, struct drm_orr_work_record *records,
			   struct drm_orr_work_counters *counters, u32 room, u32 *flags)
{
	const struct orr_sink_ring *ring = &file->odev->sink.ring;
	struct orr_work_owner owners[ORR_WORK_OWNERS];
	struct orr_work *work = &file->work;
	struct orr_sink_place place;
	u64 words[ORR_WORK_WORDS];
	bool lost;
	u32 count = 0, i;

	lockdep_assert_held(&work->lock);
	for (i = 0; i < ORR_WORK_OWNERS; i++)
		owners[i].queue = U32_MAX;
	lost = !orr_sink_look(ring, &place, work->next);
	while (!lost && count < room) {
		enum orr_sink_step step = orr_sink_next(ring, &place, ORR_WORK_LOOK, words,
							ARRAY_SIZE(words));
		u64 job = U64_MAX;
		u32 type;

		lost = step == ORR_SINK_LOST;
		if (step != ORR_SINK_RECORD)
			break;
		type = ORR_TRACE_TYPE(words[1]);
		if (work->jobs && type == ORR_SINK_JOB && place.size >= ORR_SINK_JOB_WORDS)
			orr_work_see_job(work, place.at, words);
		if (work->jobs && type == ORR_TRACE_END_JOB)
			job = orr_work_take_job(work, words);
		if (!orr_work_make(work->signals, words, place.size, &records[count]) ||
		    !orr_work_owned(file, owners, records[count].queue, place.at))
			continue;
		if (counters)
			orr_work_fill(file->odev, job, &counters[count]);
		count++;
	}
	work->next = place.next;
	/* What was found of jobs before may be of others. */
	if (lost && work->jobs)
		orr_work_forget_jobs(work);
	if (lost)
		*flags |= ORR_WORK_LOST;
	if (place.next < place.end)
		*flags |= ORR_WORK_MORE;
	return count;
}

static int orr_work_read(struct orr_file *file, struct drm_orr_work_record *records,
			 struct drm_orr_work_counters *counters, u32 room, u32 *flags)
{
	int idx, ret;

	guard(mutex)(&file->work.lock);
	if (!file->work.wanted)
		return -EINVAL;
	ret = orr_enter(file->odev, &idx);
	if (ret)
		return ret;
	ret = orr_work_gather(file, records, counters, room, flags);
	orr_exit(file->odev, idx);
	return ret;
}

/* Has it seen all that there is? Most who ask have, dozens of times a second, and need no memory then. */
static bool orr_work_has_all(struct orr_file *file)
{
	struct orr_sink_place place;
	bool all;
	int idx;

	guard(mutex)(&file->work.lock);
	if (!file->work.wanted || orr_enter(file->odev, &idx))
		return false;
	all = orr_sink_look(&file->odev->sink.ring, &place, file->work.next) && place.next == place.end;
	orr_exit(file->odev, idx);
	return all;
}

static int orr_work_switch(struct orr_file *file, u32 flags)
{
	guard(mutex)(&file->work.lock);
	if (flags & ORR_WORK_START)
		return orr_work_start(file, flags);
	orr_work_stop(file);
	return 0;
}

/**
 * orr_work_read_ioctl - DRM_IOCTL_ORR_WORK_READ
 * @drm: the card
 * @data: struct drm_orr_work_read
 * @drm_file: who asks
 *
 * Return: 0 or a negative error, see the uAPI.
 */
int orr_work_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_work_read *args = data;
	struct drm_orr_work_record __user *to = u64_to_user_ptr(args->records);
	struct drm_orr_work_counters __user *counters_to = u64_to_user_ptr(args->counters);
	u32 room = args->count, flags = args->flags, out = 0;
	int ret;

	if (flags) {
		u32 what = flags & ~(ORR_WORK_COUNTERS | ORR_WORK_SIGNALS);

		if (what != ORR_WORK_START && flags != ORR_WORK_STOP)
			return -EINVAL;
		if (args->count || args->records || args->counters)
			return -EINVAL;
		return orr_work_switch(file, flags);
	}
	args->count = 0;
	if (orr_work_has_all(file))
		return 0;

	struct drm_orr_work_record *batch __free(kfree) =
		kmalloc_array(ORR_WORK_BATCH, sizeof(*batch), GFP_KERNEL);

	struct drm_orr_work_counters *did __free(kvfree) =
		args->counters ? kvmalloc_array(ORR_WORK_BATCH, sizeof(*did), GFP_KERNEL) : NULL;

	if (!batch || (args->counters && !did))
		return -ENOMEM;
	do {
		out &= ~ORR_WORK_MORE;
		ret = orr_work_read(file, batch, did, min(room, ORR_WORK_BATCH), &out);
		if (ret < 0)
			return ret;
		if (copy_to_user(to + args->count, batch, ret * sizeof(*batch)))
			return -EFAULT;
		if (did && copy_to_user(counters_to + args->count, did, ret * sizeof(*did)))
			return -EFAULT;
		args->count += ret;
		room -= ret;
		if (signal_pending(current))
			break;
		cond_resched();
	} while (room && out & ORR_WORK_MORE);
	args->flags = out;
	return 0;
}

/**
 * orr_sink_copy - read what a file has of the ring into user memory
 * @file: the file
 * @how: what
 * @to: where
 * @count: room there; how many there are then
 * @flags: filled in: ORR_WORK_LOST, behind which nothing is read, and ORR_WORK_MORE
 *
 * Return: 0 or a negative error.
 */
int orr_sink_copy(struct orr_file *file, const struct orr_sink_reading *how, void __user *to,
		  u32 *count, u32 *flags)
{
	void *batch __free(kfree) = kmalloc_array(how->batch, how->size, GFP_KERNEL);
	u32 room = *count;
	int ret;

	*count = 0;
	*flags = 0;
	if (!batch)
		return -ENOMEM;
	do {
		*flags &= ~ORR_WORK_MORE;
		ret = how->read(file, batch, min(room, how->batch), flags);
		if (ret < 0)
			return ret;
		if (copy_to_user(to + *count * how->size, batch, ret * how->size))
			return -EFAULT;
		*count += ret;
		room -= ret;
		if (signal_pending(current))
			break;
		cond_resched();
	} while (room >= how->least && *flags & ORR_WORK_MORE && !(*flags & ORR_WORK_LOST));
	return 0;
}

/**
 * orr_work_now - how much the card has said so far
 * @odev: the card; inside orr_enter()
 *
 * Return: as orr_sink_head(); 0: nothing was asked of it yet.
 */
u64 orr_work_now(struct orr_device *odev)
{
	guard(mutex)(&odev->sink.lock);
	return odev->sink.ring.memory ? orr_sink_head(&odev->sink.ring) : 0;
}

/**
 * orr_work_queue_begins - what the card has said so far is not about this queue
 * @queue: it has just got its number from the firmware; the caller is inside orr_enter()
 */
void orr_work_queue_begins(struct orr_queue *queue)
{
	struct orr_sink *sink = &queue->odev->sink;

	guard(mutex)(&sink->lock);
	scoped_guard(spinlock_irqsave, &queue->odev->queue_lock)
		queue->work_from = sink->ring.memory ? orr_sink_head(&sink->ring) : 0;
}

/**
 * orr_work_file_init - a file is made
 * @file: the file
 */
void orr_work_file_init(struct orr_file *file)
{
	mutex_init(&file->work.lock);
}

/**
 * orr_work_file_close - it goes
 * @file: the file
 */
void orr_work_file_close(struct orr_file *file)
{
	scoped_guard(mutex, &file->work.lock)
		orr_work_stop(file);
	mutex_destroy(&file->work.lock);
}
