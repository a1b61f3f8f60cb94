// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for a queue: a process in QUEUE_WAIT, and dma_fences for syncobjs.
 *
 * Whether a fence is signalled is decided by the queue's status line, which no process can
 * write. All that signalling needs is allocated when the fence is made.
 *
 * The index of a fence may lie beyond what the process has submitted, and it may never submit
 * it; the fence then ends with the queue. Nothing in this driver makes memory management wait for
 * these fences; a process can, with another driver's dma-buf.
 */
#include <linux/completion.h>
#include <linux/dma-fence.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include <drm/drm_utils.h>

#include "orr_deadlock.h"
#include "orr_device.h"
#include "orr_queue.h"

/**
 * struct orr_fence - signals when a queue has completed a number of packets
 */
struct orr_fence {
	/** @base: base; its references include one of @waiter while that waits */
	struct dma_fence base;
	/** @lock: of @base; here, because a fence can outlive its queue and its card */
	spinlock_t lock;
	/** @queue: a reference */
	struct orr_queue *queue;
	/** @waiter: waits for the index */
	struct orr_waiter waiter;
};

static struct orr_fence *to_orr_fence(struct dma_fence *base)
{
	return container_of(base, struct orr_fence, base);
}

static const char *orr_fence_driver_name(struct dma_fence *base)
{
	return ORR_DRIVER_NAME;
}

static const char *orr_fence_timeline_name(struct dma_fence *base)
{
	return to_orr_fence(base)->queue->name;
}

static bool orr_fence_enable_signaling(struct dma_fence *base)
{
	struct orr_fence *fence = to_orr_fence(base);

	orr_queue_want_irq(fence->queue, &fence->waiter);
	return true;
}

static bool orr_fence_signaled(struct dma_fence *base)
{
	struct orr_fence *fence = to_orr_fence(base);
	struct orr_queue_status status;

	/* Of a queue that is gone or stopped: it is about to be signalled, with its error. */
	if (orr_queue_read(fence->queue, &status))
		return false;
	return status.completed >= fence->waiter.index;
}

/* The module waits in orr_fence_exit() until this has returned. */
static void orr_fence_free(struct rcu_head *rcu)
{
	struct orr_fence *fence = container_of(rcu, struct orr_fence, base.rcu);

	orr_queue_put(fence->queue);
	kfree(fence);
	module_put(THIS_MODULE);
}

static void orr_fence_release(struct dma_fence *base)
{
	call_rcu(&base->rcu, orr_fence_free);
}

/**
 * orr_fence_exit - the module goes: no code of it is needed for a fence any more after this
 */
void orr_fence_exit(void)
{
	rcu_barrier();
}

static const struct dma_fence_ops orr_fence_ops = {
	.get_driver_name = orr_fence_driver_name,
	.get_timeline_name = orr_fence_timeline_name,
	.enable_signaling = orr_fence_enable_signaling,
	.signaled = orr_fence_signaled,
	.release = orr_fence_release,
#ifndef ORR_HAVE_DMA_FENCE_INIT64
	.use_64bit_seqno = true,
#endif
};

static void orr_fence_init(struct orr_fence *fence, u64 context, u64 index)
{
#ifdef ORR_HAVE_DMA_FENCE_INIT64
	dma_fence_init64(&fence->base, &orr_fence_ops, &fence->lock, context, index);
#else
	dma_fence_init(&fence->base, &orr_fence_ops, &fence->lock, context, index);
#endif
}

static void orr_fence_fire(struct orr_waiter *waiter, int error)
{
	struct orr_fence *fence = container_of(waiter, struct orr_fence, waiter);

	scoped_guard(spinlock_irqsave, &fence->lock) {
		if (test_bit(DMA_FENCE_FLAG_SIGNALED_BIT, &fence->base.flags))
			break;
		if (error)
			dma_fence_set_error(&fence->base, error);
		dma_fence_signal_locked(&fence->base);
	}
	dma_fence_put(&fence->base);
}

/**
 * orr_fence_create - make a fence that signals when a queue has completed @index packets
 * @queue: the queue
 * @index: number of packets
 *
 * Return: the fence or an error pointer.
 */
struct dma_fence *orr_fence_create(struct orr_queue *queue, u64 index)
{
	struct orr_fence *fence;
	int ret;

	fence = kzalloc(sizeof(*fence), GFP_KERNEL_ACCOUNT);
	if (!fence)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&fence->lock);
	fence->queue = orr_queue_get(queue);
	fence->waiter.index = index;
	fence->waiter.fire = orr_fence_fire;
	/* A fence can outlive every file of ours, and its functions must not go before it. */
	__module_get(THIS_MODULE);
	orr_fence_init(fence, queue->fence_context, index);

	dma_fence_get(&fence->base);
	ret = orr_queue_add_waiter(queue, &fence->waiter);
	if (ret == -ENOSPC) {
		/* Fences that nobody looked at stay until somebody does. */
		orr_queue_scan(queue);
		ret = orr_queue_add_waiter(queue, &fence->waiter);
	}
	if (ret) {
		/* Nobody has seen it, but it must not go unsignalled. */
		orr_fence_fire(&fence->waiter, ret);
		dma_fence_put(&fence->base);
		return ERR_PTR(ret);
	}
	/* If the queue is that far, or has stopped, nobody else may come to say so. */
	orr_queue_scan(queue);
	return &fence->base;
}

/**
 * struct orr_sleeper - a process that waits, on its stack
 */
struct orr_sleeper {
	/** @waiter: waits for the index */
	struct orr_waiter waiter;
	/** @done: completed when it need not wait any longer */
	struct completion done;
};

static void orr_sleeper_fire(struct orr_waiter *waiter, int error)
{
	struct orr_sleeper *sleeper = container_of(waiter, struct orr_sleeper, waiter);

	/* Why does not matter: it reads the status line itself. */
	complete(&sleeper->done);
}

static bool orr_queue_reached(const struct orr_queue_status *status, u64 index)
{
	return status->completed >= index || status->error;
}

/* Not the report's number: that comes with the first edge, when the cycle is not whole yet. */
static u32 orr_queue_cycles(struct orr_queue *queue)
{
	guard(spinlock_irqsave)(&queue->lock);
	return queue->cycles;
}

/*
 * Sleeps, unless a deadlock was reported after @cycles. Return: 0 when there is something to see,
 * -ETIME, -ERESTARTSYS, or why it did not begin.
 */
static int orr_queue_sleep(struct orr_queue *queue, u64 index, s64 timeout_ns, u32 cycles)
{
	struct orr_sleeper sleeper = {
		.waiter = {
			.index = index,
			.wants_irq = true,
			.wants_deadlock = true,
			.fire = orr_sleeper_fire,
		},
	};
	long left;
	int ret;

	init_completion(&sleeper.done);
	ret = orr_queue_add_waiter(queue, &sleeper.waiter);
	if (ret)
		return ret;
	/* From here on a report wakes us up; one that came before did not. */
	if (orr_queue_cycles(queue) != cycles) {
		if (!orr_queue_remove_waiter(queue, &sleeper.waiter))
			wait_for_completion(&sleeper.done);
		return 0;
	}
	left = drm_timeout_abs_to_jiffies(timeout_ns);
	left = wait_for_completion_interruptible_timeout(&sleeper.done, left);
	if (left <= 0 && !orr_queue_remove_waiter(queue, &sleeper.waiter))
		wait_for_completion(&sleeper.done); /* it is on its way */
	if (left < 0)
		return -ERESTARTSYS;
	return left ? 0 : -ETIME;
}

/**
 * orr_queue_wait - sleep until a queue has completed packets, or stopped
 * @queue: the queue
 * @index: number of packets
 * @timeout_ns: absolute CLOCK_MONOTONIC, or <= 0 to look only
 * @status: filled with the state of the queue at the end
 *
 * Return: 0, -ETIME, -ERESTARTSYS, -ECANCELED (destroyed), -ENODEV (lost), -ENOSPC, -EDEADLK (in a
 * cycle of waits that stands).
 */
int orr_queue_wait(struct orr_queue *queue, u64 index, s64 timeout_ns,
		   struct orr_queue_status *status)
{
	int ret, slept;
	u32 cycles;

	for (;;) {
		cycles = orr_queue_cycles(queue);
		ret = orr_queue_read(queue, status);
		if (orr_queue_reached(status, index))
			return 0;
		if (ret)
			return ret;
		if (orr_deadlock_stands(queue))
			return -EDEADLK;
		if (timeout_ns <= 0)
			return -ETIME;
		slept = orr_queue_sleep(queue, index, timeout_ns, cycles);
		if (slept)
			break;
		/* There, or gone, or in a deadlock, or in one that is over already. */
	}

	/* What the queue says counts, not how the sleep ended. */
	ret = orr_queue_read(queue, status);
	if (orr_queue_reached(status, index))
		return 0;
	return ret ?: slept;
}
