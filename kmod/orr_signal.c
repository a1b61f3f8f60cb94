// SPDX-License-Identifier: GPL-2.0
/*
 * Who may signal which semaphore. Processes declare it; when the last queue that was attached to a
 * semaphore has stopped or gone, or cannot reach it any more, the firmware of the card that has the
 * memory is told to close it, and stops those who still wait.
 *
 * The table is one for all cards, for a queue of one may signal in the memory of another. A
 * semaphore is known by its memory: the BO that has it, and where in there. It stands in the table
 * while queues are attached to it, and until it has been closed.
 *
 * Nobody waits for a firmware with the table's lock held: a card that does not answer holds up
 * those only who wait for this very semaphore.
 */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include <drm/drm_gem.h>
#include <drm/orrery_accel.h>

#include <orrery/fw/failure.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_queue.h"
#include "orr_signal.h"
#include "orr_vm.h"

/**
 * struct orr_sem - a semaphore to which queues are attached
 */
struct orr_sem {
	/** @node: in orr_sems */
	struct hlist_node node;
	/** @link: in the list of those to close */
	struct list_head link;
	/** @origin: the BO that has the memory; kept by @bo */
	struct orr_bo *origin;
	/** @offset: in @origin */
	u64 offset;
	/** @bo: as the card that closes it sees the memory; a reference, and one of the card's struct */
	struct orr_bo *bo;
	/** @signallers: struct orr_signaller */
	struct list_head signallers;
	/** @closing: nobody is left; it is in somebody's list of those to close */
	bool closing;
	/** @word: why, once @closing */
	u64 word;
};

/**
 * struct orr_signaller - a queue that is attached to a semaphore
 */
struct orr_signaller {
	/** @of_sem: in orr_sem.signallers */
	struct list_head of_sem;
	/** @of_queue: in orr_queue.signallers */
	struct list_head of_queue;
	/** @sem: the semaphore */
	struct orr_sem *sem;
	/** @queue: the queue; leaves before it goes */
	struct orr_queue *queue;
	/** @bo: as the queue's card sees the memory, a reference */
	struct orr_bo *bo;
};

/* Guards the table, the lists in it, and orr_queue.signallers of all queues. */
static DEFINE_MUTEX(orr_sems_lock);
static DEFINE_HASHTABLE(orr_sems, 10);

/* Counts those that have been closed; who found one that is being closed waits for a change. */
static unsigned int orr_sems_closed;
static DECLARE_WAIT_QUEUE_HEAD(orr_sems_wait);

static unsigned long orr_sem_key(const struct orr_bo *origin, u64 offset)
{
	return (unsigned long)origin + offset / sizeof(struct orr_semaphore);
}

static struct orr_sem *orr_sem_find(const struct orr_bo *origin, u64 offset)
{
	struct orr_sem *sem;

	lockdep_assert_held(&orr_sems_lock);
	hash_for_each_possible(orr_sems, sem, node, orr_sem_key(origin, offset))
		if (sem->origin == origin && sem->offset == offset)
			return sem;
	return NULL;
}

/* A BO keeps its memory, not its card's struct, which may outlive the driver there but for us. */
static void orr_sem_get_bo(struct orr_bo *bo)
{
	drm_dev_get(bo->base.dev);
	drm_gem_object_get(&bo->base);
}

static void orr_sem_put_bo(struct orr_bo *bo)
{
	struct drm_device *drm = bo->base.dev;

	drm_gem_object_put(&bo->base);
	drm_dev_put(drm);
}

static struct orr_signaller *orr_signaller_find(struct orr_sem *sem, struct orr_queue *queue)
{
	struct orr_signaller *signaller;

	list_for_each_entry(signaller, &sem->signallers, of_sem)
		if (signaller->queue == queue)
			return signaller;
	return NULL;
}

/* Nobody is left: to be closed by orr_sems_close(), without the lock. */
static void orr_sem_abandon(struct orr_sem *sem, u64 word, struct list_head *closing)
{
	lockdep_assert_held(&orr_sems_lock);
	sem->closing = true;
	sem->word = word;
	list_add_tail(&sem->link, closing);
}

static u64 orr_signaller_word(const struct orr_queue *queue, u32 code)
{
	return ORR_FAILURE_WORD(code, queue->odev->info.uid, queue->number, 0);
}

static void orr_signaller_drop(struct orr_signaller *signaller, u32 code,
			       struct list_head *closing)
{
	struct orr_sem *sem = signaller->sem;
	struct orr_queue *queue = signaller->queue;

	lockdep_assert_held(&orr_sems_lock);
	list_del(&signaller->of_sem);
	list_del(&signaller->of_queue);
	queue->signaller_count--;
	if (list_empty(&sem->signallers) && !sem->closing)
		orr_sem_abandon(sem, orr_signaller_word(queue, code), closing);
	orr_sem_put_bo(signaller->bo);
	kfree(signaller);
}

/* Where the card that owns @bo sees a semaphore. Return: false if it does not any more. */
static bool orr_sem_locate(struct orr_bo *bo, u64 offset, u64 request[])
{
	struct orr_device *odev = orr_bo_device(bo);
	struct orr_bo_cursor cursor;

	guard(mutex)(&odev->bo_lock);
	if (bo->kind != ORR_BO_KIND_VRAM && !bo->sgt)
		return false;
	orr_bo_cursor_init(&cursor, bo, offset);
	if (!cursor.bytes)
		return false;
	request[0] = cursor.address;
	request[1] = bo->kind == ORR_BO_KIND_VRAM ? ORR_SEM_IN_VRAM : ORR_SEM_IN_HOST;
	return true;
}

/* Tells the card, if it is there, that nobody will signal. */
static void orr_sem_close(struct orr_sem *sem)
{
	struct orr_device *odev = orr_bo_device(sem->bo);
	u64 request[3];
	int idx;

	if (orr_enter(odev, &idx))
		return;
	request[2] = sem->word;
	if (orr_sem_locate(sem->bo, sem->offset, request) &&
	    orr_mbox_command(odev, ORR_MBOX_SEM_CLOSE, request, ARRAY_SIZE(request), NULL))
		drm_dbg(&odev->drm, "a semaphore could not be closed\n");
	orr_exit(idx);
}

static void orr_sems_close(struct list_head *closing)
{
	struct orr_sem *sem, *next;

	if (list_empty(closing))
		return;
	list_for_each_entry(sem, closing, link)
		orr_sem_close(sem);
	scoped_guard(mutex, &orr_sems_lock) {
		list_for_each_entry(sem, closing, link)
			hash_del(&sem->node);
		WRITE_ONCE(orr_sems_closed, orr_sems_closed + 1);
	}
	wake_up_all(&orr_sems_wait);
	list_for_each_entry_safe(sem, next, closing, link) {
		orr_sem_put_bo(sem->bo);
		kfree(sem);
	}
}

/* A queue has stopped: nothing more will be carried out for it. */
static bool orr_signaller_has_stopped(struct orr_queue *queue)
{
	struct orr_queue_status status;

	return orr_queue_read(queue, &status) || status.error;
}

/*
 * What one semaphore needs, allocated before the lock is taken. Return: 1 if it is being closed
 * at this moment, so that the caller has to wait, 0, or -EIO.
 */
static int orr_signaller_add(struct orr_queue *queue, struct orr_bo *bo, u64 offset,
			     struct orr_sem **sem, struct orr_signaller **signaller)
{
	struct orr_bo *origin = orr_bo_origin(bo);
	struct orr_sem *known;

	lockdep_assert_held(&orr_sems_lock);
	if (orr_signaller_has_stopped(queue))
		return -EIO;
	known = orr_sem_find(origin, offset);
	if (known && known->closing)
		return 1;
	if (known && orr_signaller_find(known, queue))
		return 0;
	if (queue->signaller_count >= ORR_SIGNALLERS_MAX)
		return -ENOSPC;
	if (!known) {
		known = *sem;
		*sem = NULL;
		INIT_LIST_HEAD(&known->signallers);
		known->origin = origin;
		known->offset = offset;
		known->bo = bo->kind == ORR_BO_KIND_PEER ? origin : bo;
		orr_sem_get_bo(known->bo);
		hash_add(orr_sems, &known->node, orr_sem_key(origin, offset));
	}
	(*signaller)->sem = known;
	(*signaller)->queue = queue;
	(*signaller)->bo = bo;
	orr_sem_get_bo(bo);
	list_add_tail(&(*signaller)->of_sem, &known->signallers);
	list_add_tail(&(*signaller)->of_queue, &queue->signallers);
	queue->signaller_count++;
	*signaller = NULL;
	return 0;
}

static int orr_signaller_attach_one(struct orr_queue *queue, struct orr_bo *bo, u64 offset)
{
	struct orr_signaller *signaller __free(kfree) = kzalloc(sizeof(*signaller),
								GFP_KERNEL_ACCOUNT);
	struct orr_sem *sem __free(kfree) = kzalloc(sizeof(*sem), GFP_KERNEL_ACCOUNT);
	unsigned int closed;
	int ret;

	if (!signaller || !sem)
		return -ENOMEM;
	for (;;) {
		scoped_guard(mutex, &orr_sems_lock) {
			ret = orr_signaller_add(queue, bo, offset, &sem, &signaller);
			closed = orr_sems_closed;
		}
		if (ret <= 0)
			return ret;
		ret = wait_event_killable(orr_sems_wait, READ_ONCE(orr_sems_closed) != closed);
		if (ret)
			return ret;
	}
}

static void orr_signaller_detach_bo(struct orr_queue *queue, struct orr_bo *bo, u64 offset,
				    u32 count)
{
	struct orr_bo *origin = orr_bo_origin(bo);
	LIST_HEAD(closing);
	u32 i;

	scoped_guard(mutex, &orr_sems_lock) {
		for (i = 0; i < count; i++) {
			struct orr_signaller *signaller = NULL;
			struct orr_sem *sem;

			sem = orr_sem_find(origin, offset + i * sizeof(struct orr_semaphore));
			if (sem)
				signaller = orr_signaller_find(sem, queue);
			if (signaller)
				orr_signaller_drop(signaller, ORR_QERR_ABANDONED, &closing);
		}
	}
	orr_sems_close(&closing);
}

/**
 * orr_signaller_attach - a queue may signal semaphores
 * @queue: the queue, which its file holds
 * @va: of the first, in the queue's address space; aligned
 * @count: semaphores, at most 256
 *
 * Return: 0, -EFAULT if they are not in one mapping, -EIO if the queue has stopped, -ENOSPC,
 * -ENOMEM, -EINTR.
 */
int orr_signaller_attach(struct orr_queue *queue, u64 va, u32 count)
{
	struct orr_bo *bo;
	u64 offset;
	int ret = 0;
	u32 i;

	bo = orr_vm_lookup(queue->vm, va, count * sizeof(struct orr_semaphore), &offset);
	if (!bo)
		return -EFAULT;
	for (i = 0; i < count && !ret; i++)
		ret = orr_signaller_attach_one(queue, bo,
					       offset + i * sizeof(struct orr_semaphore));
	drm_gem_object_put(&bo->base);
	return ret;
}

/**
 * orr_signaller_detach - a queue will not signal semaphores any more
 * @queue: the queue, which its file holds
 * @va: of the first, in the queue's address space; aligned
 * @count: semaphores, at most 256
 *
 * Return: 0, -EFAULT if they are not in one mapping.
 */
int orr_signaller_detach(struct orr_queue *queue, u64 va, u32 count)
{
	struct orr_bo *bo;
	u64 offset;

	bo = orr_vm_lookup(queue->vm, va, count * sizeof(struct orr_semaphore), &offset);
	if (!bo)
		return -EFAULT;
	orr_signaller_detach_bo(queue, bo, offset, count);
	drm_gem_object_put(&bo->base);
	return 0;
}

static void orr_signaller_drop_all(struct orr_queue *queue, u32 code)
{
	struct orr_signaller *signaller, *next;
	LIST_HEAD(closing);

	scoped_guard(mutex, &orr_sems_lock)
		list_for_each_entry_safe(signaller, next, &queue->signallers, of_queue)
			orr_signaller_drop(signaller, code, &closing);
	orr_sems_close(&closing);
}

/**
 * orr_signaller_stopped - a queue has stopped or is going: it will not signal any more
 * @queue: the queue; the firmware has failed what its packets would have signalled
 *
 * May wait for the firmware of any card.
 */
void orr_signaller_stopped(struct orr_queue *queue)
{
	orr_signaller_drop_all(queue, orr_is_lost(queue->odev) ? ORR_QERR_PEER_LOST :
								 ORR_QERR_ABANDONED);
}

/**
 * orr_signaller_stopped_later - the same, by a work
 * @odev: the card; any context
 * @number: of the queue, below ORR_FW_QUEUES
 */
void orr_signaller_stopped_later(struct orr_device *odev, u32 number)
{
	set_bit(number, odev->stopped);
	queue_work(system_long_wq, &odev->stopped_work);
}

static void orr_signaller_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, stopped_work);
	unsigned long number;

	for_each_set_bit(number, odev->stopped, ORR_FW_QUEUES) {
		struct orr_queue *queue;

		clear_bit(number, odev->stopped);
		queue = orr_queue_by_number(odev, number);
		if (!queue)
			continue;
		/* The number may be another queue's by now. */
		if (orr_signaller_has_stopped(queue))
			orr_signaller_stopped(queue);
		orr_queue_put(queue);
	}
}

/**
 * orr_signaller_card_lost - none of a card's queues will signal any more
 * @odev: the card, lost; its queues have been told
 */
void orr_signaller_card_lost(struct orr_device *odev)
{
	bitmap_fill(odev->stopped, ORR_FW_QUEUES);
	queue_work(system_long_wq, &odev->stopped_work);
}

/* Whether a queue can reach its semaphore, over the ports of the owner that are up. */
static bool orr_signaller_reaches(const struct orr_signaller *signaller, unsigned long ports)
{
	const struct orr_bo *bo = signaller->bo;

	return bo->kind != ORR_BO_KIND_PEER || test_bit(bo->owner_port, &ports);
}

/**
 * orr_signaller_links_changed - links of a card came up or went down
 * @odev: the card; the caller may sleep
 */
void orr_signaller_links_changed(struct orr_device *odev)
{
	unsigned long ports = 0;
	struct orr_sem *sem;
	LIST_HEAD(closing);
	int idx, bucket;
	u32 i;

	if (orr_enter(odev, &idx))
		return;
	for (i = 0; i < odev->info.link_ports; i++) {
		u32 state = orr_read32(odev, ORR_R_LINK(i) + ORR_R_LINK_STATE);

		if (state == ORR_LINK_UP || state == ORR_LINK_DEGRADED)
			__set_bit(i, &ports);
	}
	orr_exit(idx);

	scoped_guard(mutex, &orr_sems_lock) {
		hash_for_each(orr_sems, bucket, sem, node) {
			struct orr_signaller *signaller, *last = NULL;
			bool reached = sem->closing || orr_bo_device(sem->origin) != odev;

			list_for_each_entry(signaller, &sem->signallers, of_sem) {
				reached |= orr_signaller_reaches(signaller, ports);
				last = signaller;
			}
			if (!reached && last)
				orr_sem_abandon(sem, orr_signaller_word(last->queue,
									ORR_QERR_PEER_LOST),
						&closing);
		}
		/* Those behind the link are attached to nothing any more. */
		list_for_each_entry(sem, &closing, link) {
			struct orr_signaller *signaller, *next;

			list_for_each_entry_safe(signaller, next, &sem->signallers, of_sem)
				orr_signaller_drop(signaller, ORR_QERR_PEER_LOST, &closing);
		}
	}
	orr_sems_close(&closing);
}

/*
 * Its work is not in the card's own queues: it waits for other cards, and for those who allocate
 * under the table's lock, and what fences depend on must not wait behind that.
 */

/**
 * orr_signaller_init - prepare
 * @odev: the card
 */
void orr_signaller_init(struct orr_device *odev)
{
	INIT_WORK(&odev->stopped_work, orr_signaller_work);
}

/**
 * orr_signaller_fini - no more work of ours after this
 * @odev: the card, lost
 */
void orr_signaller_fini(struct orr_device *odev)
{
	flush_work(&odev->stopped_work);
}
