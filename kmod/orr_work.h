/* SPDX-License-Identifier: GPL-2.0 */
/* What the card did for a process, and when: records of the card's trace sink. */
#ifndef _ORR_WORK_H_
#define _ORR_WORK_H_

#include <linux/mutex.h>
#include <linux/types.h>

#include "orr_sink_rule.h"

struct orr_device;
struct orr_file;
struct orr_queue;

/**
 * struct orr_sink - the card's trace sink
 */
struct orr_sink {
	/** @lock: guards what follows, and the sink's registers */
	struct mutex lock;
	/** @users: files that want records */
	unsigned int users;
	/** @sampler: of these, the one who wants samples of counters, or NULL */
	struct orr_file *sampler;
	/** @pc_sampler: of these, the one who wants to know where cores are, or NULL */
	struct orr_file *pc_sampler;
	/** @counting: of these, who want to know what jobs did */
	unsigned int counting;
	/** @commands: written since the card's reset */
	u32 commands;
	/**
	 * @ring: where the card writes while there are @users; its memory is made for the first of
	 * them, then it stays. Read inside orr_enter()
	 */
	struct orr_sink_ring ring;
	/** @dma: the bus address of its memory */
	dma_addr_t dma;
};

/* Jobs whose hardware's record was seen and whose firmware's was not; then the oldest is forgotten. */
#define ORR_WORK_JOBS 128u

/**
 * struct orr_work_job - where the sink has what a job did
 */
struct orr_work_job {
	/** @position: of its record, counted as &orr_work.next */
	u64 position;
	/** @start_ps: when its engine began */
	u64 start_ps;
	/** @end_ps: and ended */
	u64 end_ps;
	/** @port: the engine's; ORR_WORK_NO_PORT: there is no such job */
	u32 port;
};

/**
 * struct orr_work - what a file has of that
 */
struct orr_work {
	/** @lock: guards what follows */
	struct mutex lock;
	/** @wanted: it is a user of the sink */
	bool wanted;
	/** @signals: it wants to know what its queues signal */
	bool signals;
	/** @next: the first word that it has not seen, counted over all times the sink was on */
	u64 next;
	/** @jobs: ORR_WORK_JOBS of them, while it wants to know what jobs did; else NULL */
	struct orr_work_job *jobs;
	/** @next_job: which of @jobs is the oldest */
	u32 next_job;
};

/**
 * struct orr_sample - what a file has of the samples of counters
 */
struct orr_sample {
	/** @lock: guards what follows; before &orr_sink.lock */
	struct mutex lock;
	/** @wanted: it is a user of the sink, and its &orr_sink.sampler */
	bool wanted;
	/** @next: as &orr_work.next */
	u64 next;
	/** @set: counters that are in them, a bit each */
	u64 set[2];
};

/* Model time for each word of the ring that samples may take, unless one may look at the whole machine. */
#define ORR_SINK_WORD_NS 50u

/**
 * struct orr_pc - what a file has of where vector cores were
 */
struct orr_pc {
	/** @lock: guards what follows; before &orr_sink.lock */
	struct mutex lock;
	/** @wanted: it is a user of the sink, and its &orr_sink.pc_sampler */
	bool wanted;
	/** @next: as &orr_work.next */
	u64 next;
};

/**
 * struct orr_sink_reading - how what a file has of the ring is read, a batch at a time
 */
struct orr_sink_reading {
	/** @read: the next, at most @room; ORR_WORK_* into @flags. Return: how many, or an error */
	int (*read)(struct orr_file *file, void *to, u32 room, u32 *flags);
	/** @size: of one */
	size_t size;
	/** @batch: how many are read at once at most */
	u32 batch;
	/** @least: with room for fewer there may be one that does not fit */
	u32 least;
};

int orr_sink_copy(struct orr_file *file, const struct orr_sink_reading *how, void __user *to,
		  u32 *count, u32 *flags);
int orr_sink_settle(struct orr_device *odev);
int orr_sink_get(struct orr_device *odev);
void orr_sink_put(struct orr_device *odev);

u64 orr_work_now(struct orr_device *odev);
bool orr_work_owns(struct orr_file *file, u32 number, u64 position);

void orr_pc_file_init(struct orr_file *file);
void orr_pc_file_close(struct orr_file *file);
void orr_sample_file_init(struct orr_file *file);
void orr_sample_file_close(struct orr_file *file);
void orr_work_file_init(struct orr_file *file);
void orr_work_file_close(struct orr_file *file);
void orr_work_queue_begins(struct orr_queue *queue);

#endif /* _ORR_WORK_H_ */
