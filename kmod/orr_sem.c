// SPDX-License-Identifier: GPL-2.0
/*
 * Closing semaphores that nobody is left to signal: the card that has the memory is told, and its
 * firmware stops those who still wait.
 *
 * Each card has a work of its own for this, so that one whose firmware is silent holds up nobody
 * but those who wait for its own memory. It goes round over the address spaces that have left
 * something behind, and gives the firmware several at once.
 */
#include <linux/slab.h>
#include <linux/wait.h>

#include <drm/drm_gem.h>
#include <drm/orrery_accel.h>

#include <orrery/fw/failure.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_queue.h"
#include "orr_route.h"
#include "orr_sem.h"
#include "orr_signaller.h"
#include "orr_vm.h"

/* Semaphores that a card's firmware is told of at once: as many as it takes commands in a pass. */
#define ORR_CLOSE_BATCH 16u

/* Counts those that have been closed; who found one that is being closed waits for a change. */
static unsigned int orr_sems_closed;
static DECLARE_WAIT_QUEUE_HEAD(orr_sems_wait);

/**
 * orr_sem_get_bo - keep a BO and what it needs to be used, and to end
 * @bo: the BO
 *
 * A BO does not keep its card's struct. Files, mappings and dma-bufs do, and all of them can go
 * before us.
 */
void orr_sem_get_bo(struct orr_bo *bo)
{
	drm_dev_get(bo->base.dev);
	drm_gem_object_get(&bo->base);
}

/**
 * orr_sem_put_bo - undo orr_sem_get_bo()
 * @bo: the BO; orr_sems_lock is not held
 */
void orr_sem_put_bo(struct orr_bo *bo)
{
	struct drm_device *drm = bo->base.dev;

	drm_gem_object_put(&bo->base);
	drm_dev_put(drm);
}

/* It has been closed, or there is nobody who could. */
static void orr_sem_bury(struct orr_sem *sem, struct orr_sem_dead *dead)
{
	lockdep_assert_held(&orr_sems_lock);
	hash_del(&sem->node);
	list_add_tail(&sem->link, &dead->sems);
}

/* Another of the same address space that waits for the same card, or NULL. */
static struct orr_sem *orr_closer_find(struct orr_closer *closer, struct orr_vm *vm,
				       struct orr_sem *last)
{
	struct orr_sem *sem;

	/* They come in rows. */
	if (last && last->vm == vm && &orr_bo_device(last->bo)->closer == closer)
		return last;
	list_for_each_entry(sem, &closer->turns, turn)
		if (sem->vm == vm)
			return sem;
	return NULL;
}

/**
 * orr_sem_abandon - the last queue that might have signalled a semaphore is not attached any more
 * @sem: the semaphore; orr_sems_lock is held
 * @queue: the queue, with its address space
 * @code: ORR_QERR_*, for those who wait
 * @dead: what orr_sems_free() has to look at once the lock is not held any more
 */
void orr_sem_abandon(struct orr_sem *sem, struct orr_queue *queue, u32 code,
		     struct orr_sem_dead *dead)
{
	struct orr_closer *closer = &orr_bo_device(sem->bo)->closer;
	struct orr_sem *other;

	lockdep_assert_held(&orr_sems_lock);
	sem->closing = true;
	sem->word = ORR_FAILURE_WORD(code, queue->odev->info.uid, queue->number, 0);
	sem->queue = orr_queue_get(queue);
	sem->vm = queue->vm;
	orr_vm_get(sem->vm);
	WRITE_ONCE(queue->closing_sems, queue->closing_sems + 1);
	WRITE_ONCE(sem->vm->closing_sems, sem->vm->closing_sems + 1);
	INIT_LIST_HEAD(&sem->turn);
	if (closer->ended) {
		orr_sem_bury(sem, dead);
		return;
	}
	other = orr_closer_find(closer, sem->vm, dead->last);
	if (other) {
		list_add_tail(&sem->link, &other->link);
	} else {
		INIT_LIST_HEAD(&sem->link);
		list_add_tail(&sem->turn, &closer->turns);
	}
	dead->last = sem;
	queue_work(system_long_wq, &closer->work);
}

/**
 * orr_sem_close_alone - nobody of another machine is left who may signal a semaphore
 * @sem: not in the table; @bo, a reference, and @word are filled in. It begins the BO. Freed in the end.
 *
 * Nothing happens while queues of this machine are attached to it: they are left, or the last of them
 * has closed it.
 */
void orr_sem_close_alone(struct orr_sem *sem)
{
	struct orr_closer *closer = &orr_bo_device(sem->bo)->closer;
	struct orr_sem *other;

	scoped_guard(mutex, &orr_sems_lock) {
		if (!closer->ended && !orr_sem_find(sem->bo, 0)) {
			sem->origin = sem->bo;
			sem->closing = true;
			INIT_LIST_HEAD(&sem->link);
			INIT_LIST_HEAD(&sem->turn);
			orr_sem_insert(sem);
			other = orr_closer_find(closer, NULL, NULL);
			if (other)
				list_add_tail(&sem->link, &other->link);
			else
				list_add_tail(&sem->turn, &closer->turns);
			queue_work(system_long_wq, &closer->work);
			return;
		}
	}
	orr_sem_put_bo(sem->bo);
	kfree(sem);
}

/* Tells those who wait. */
static void orr_sems_count(struct orr_sem_dead *dead)
{
	struct orr_sem *sem;

	scoped_guard(mutex, &orr_sems_lock) {
		list_for_each_entry(sem, &dead->sems, link) {
			WRITE_ONCE(orr_sems_closed, orr_sems_closed + 1);
			if (!sem->queue)
				continue;
			WRITE_ONCE(sem->queue->closing_sems, sem->queue->closing_sems - 1);
			WRITE_ONCE(sem->vm->closing_sems, sem->vm->closing_sems - 1);
		}
	}
	wake_up_all(&orr_sems_wait);
}

/**
 * orr_sems_free - free semaphores that are not in the table any more
 * @dead: them; orr_sems_lock is not held
 */
void orr_sems_free(struct orr_sem_dead *dead)
{
	struct orr_sem *sem, *next;

	if (list_empty(&dead->sems))
		return;
	/* Who has waited for them finds their memory free. */
	list_for_each_entry(sem, &dead->sems, link)
		orr_sem_put_bo(sem->bo);
	orr_sems_count(dead);
	list_for_each_entry_safe(sem, next, &dead->sems, link) {
		if (sem->queue) {
			orr_queue_put(sem->queue);
			orr_vm_put(sem->vm);
		}
		kfree(sem);
	}
}

/**
 * orr_sems_count_closed - count those that have been closed, for orr_sems_wait_closed()
 *
 * Return: their number; orr_sems_lock is held.
 */
unsigned int orr_sems_count_closed(void)
{
	lockdep_assert_held(&orr_sems_lock);
	return orr_sems_closed;
}

/**
 * orr_sems_wait_closed - wait until another semaphore has been closed
 * @closed: of orr_sems_count_closed()
 *
 * Return: 0, or -ERESTARTSYS if the caller is being killed.
 */
int orr_sems_wait_closed(unsigned int closed)
{
	return wait_event_killable(orr_sems_wait, READ_ONCE(orr_sems_closed) != closed);
}

/**
 * orr_sems_wait_queue - wait until all have been closed that a queue has left alone
 * @queue: the queue
 *
 * Before that their memory may still be written to.
 *
 * Return: 0, or -ERESTARTSYS if the caller is being killed.
 */
int orr_sems_wait_queue(struct orr_queue *queue)
{
	return wait_event_killable(orr_sems_wait, !READ_ONCE(queue->closing_sems));
}

/**
 * orr_sems_wait_vm - the same of all queues of an address space
 * @vm: the address space
 *
 * Return: 0, or -ERESTARTSYS if the caller is being killed.
 */
int orr_sems_wait_vm(struct orr_vm *vm)
{
	return wait_event_killable(orr_sems_wait, !READ_ONCE(vm->closing_sems));
}

/* The next whose turn it is, with the rest of its ring behind all others. */
static struct orr_sem *orr_closer_next(struct orr_closer *closer)
{
	struct orr_sem *sem, *rest;

	lockdep_assert_held(&orr_sems_lock);
	sem = list_first_entry_or_null(&closer->turns, struct orr_sem, turn);
	if (!sem)
		return NULL;
	list_del_init(&sem->turn);
	if (!list_empty(&sem->link)) {
		rest = list_next_entry(sem, link);
		list_del_init(&sem->link);
		list_add_tail(&rest->turn, &closer->turns);
	}
	return sem;
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
static void orr_closer_tell(struct orr_device *odev, struct orr_sem *sems[], unsigned int count)
{
	struct orr_mbox_call *calls[ORR_CLOSE_BATCH];
	unsigned int i, sent = 0;
	int idx;

	/*
	 * What has been signalled by now comes first, wherever it is on its way. Cards on the way may keep us
	 * waiting, which is nothing to who leaves this one.
	 */
	if (count)
		orr_way_drain_all(odev);
	if (orr_enter(odev, &idx))
		return;
	for (i = 0; i < count; i++) {
		u64 request[3] = { [2] = sems[i]->word };

		if (!orr_sem_locate(sems[i]->bo, sems[i]->offset, request))
			continue;
		calls[sent] = orr_mbox_begin(odev, ORR_MBOX_TO_THE_END, ORR_MBOX_SEM_CLOSE,
					     request, ARRAY_SIZE(request));
		if (!IS_ERR(calls[sent]))
			sent++;
	}
	if (sent)
		orr_mbox_flush(odev);
	for (i = 0; i < sent; i++)
		if (orr_mbox_end(odev, calls[i], ORR_MBOX_TO_THE_END, NULL))
			drm_dbg(&odev->drm, "a semaphore could not be closed\n");
	orr_exit(odev, idx);
}

static void orr_closer_work(struct work_struct *work)
{
	struct orr_closer *closer = container_of(work, struct orr_closer, work);
	struct orr_device *odev = container_of(closer, struct orr_device, closer);
	struct orr_sem *sems[ORR_CLOSE_BATCH];
	unsigned int count, i;

	do {
		struct orr_sem_dead dead;

		orr_sem_dead_init(&dead);
		scoped_guard(mutex, &orr_sems_lock)
			for (count = 0; count < ARRAY_SIZE(sems); count++) {
				sems[count] = orr_closer_next(closer);
				if (!sems[count])
					break;
			}
		orr_closer_tell(odev, sems, count);
		scoped_guard(mutex, &orr_sems_lock)
			for (i = 0; i < count; i++)
				orr_sem_bury(sems[i], &dead);
		orr_sems_free(&dead);
		cond_resched();
	} while (count == ARRAY_SIZE(sems));
}

/**
 * orr_closer_init - prepare
 * @closer: of a card
 */
void orr_closer_init(struct orr_closer *closer)
{
	INIT_LIST_HEAD(&closer->turns);
	INIT_WORK(&closer->work, orr_closer_work);
}

/**
 * orr_closer_fini - the card closes nothing any more, and no work of ours runs after this
 * @closer: of a card that is lost
 */
void orr_closer_fini(struct orr_closer *closer)
{
	scoped_guard(mutex, &orr_sems_lock)
		closer->ended = true;
	flush_work(&closer->work);
}
