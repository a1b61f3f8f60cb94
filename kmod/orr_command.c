// SPDX-License-Identifier: GPL-2.0
/*
 * Commands to the firmware that have a reply, and those who wait for it. The firmware answers, or
 * is restarted and asked again, or the card is lost: each wait ends. A firmware that moves has long
 * for an answer, because a process may have given it much to do; one that stands still has not. Who
 * is killed meanwhile need not wait unless something depends on it; his slot comes back with the
 * reply, however late that is, and a work looks after it in his place.
 */
#include <linux/dma-fence.h>
#include <linux/jiffies.h>
#include <linux/module.h>

#include "orr_device.h"
#include "orr_mailbox.h"
#include "orr_restart.h"

static unsigned int mailbox_timeout_ms = 120000;
module_param(mailbox_timeout_ms, uint, 0644);
MODULE_PARM_DESC(mailbox_timeout_ms, "Time the firmware has to answer a command as long as it moves, in milliseconds (default 120000)");

/* After so long without an interrupt the ring is looked at once anyhow. */
#define ORR_MBOX_POLL_MS 100u

/* So often somebody looks after the commands of those who were killed. */
#define ORR_MBOX_ORPHAN_PERIOD (HZ / 10)

/* A command that was sent to that many firmwares, and all of them died, is the reason for it. */
#define ORR_MBOX_MAX_REPEATS 2u

static bool orr_mbox_down(struct semaphore *slots, enum orr_mbox_patience patience)
{
	if (patience != ORR_MBOX_TO_THE_END)
		return !down_killable(slots);
	down(slots);
	return true;
}

/* Whether a process decides how long the firmware needs for it. */
static bool orr_mbox_takes_long(u16 opcode)
{
	return opcode == ORR_MBOX_QUEUE_ABORT || opcode == ORR_MBOX_QUEUE_DESTROY;
}

/* Takes a slot. Return: NULL if the caller was killed before it got one. */
static struct orr_mbox_call *orr_mbox_get_call(struct orr_mailbox *mbox,
					       enum orr_mbox_patience patience, u16 opcode)
{
	bool takes_long = orr_mbox_takes_long(opcode);
	struct orr_mbox_call *call;
	unsigned long slot;

	if (takes_long && !orr_mbox_down(&mbox->long_slots, patience))
		return NULL;
	if (!orr_mbox_down(&mbox->slots, patience)) {
		if (takes_long)
			up(&mbox->long_slots);
		return NULL;
	}

	guard(spinlock_irqsave)(&mbox->lock);
	slot = find_first_zero_bit(mbox->used, ORR_MBOX_SLOTS);
	__set_bit(slot, mbox->used);
	call = &mbox->call[slot];
	memset(call, 0, sizeof(*call));
	call->slot = slot;
	call->takes_long = takes_long;
	call->command.opcode = opcode;
	init_completion(&call->done);
	return call;
}

/**
 * orr_mbox_put_call_locked - a call has ended, or never began: its slot is free again
 * @mbox: the mailbox, whose lock is held
 * @call: the call
 */
void orr_mbox_put_call_locked(struct orr_mailbox *mbox, struct orr_mbox_call *call)
{
	lockdep_assert_held(&mbox->lock);
	__clear_bit(call->slot, mbox->orphans);
	__clear_bit(call->slot, mbox->used);
	up(&mbox->slots);
	if (call->takes_long)
		up(&mbox->long_slots);
}

static void orr_mbox_put_call(struct orr_mailbox *mbox, struct orr_mbox_call *call)
{
	guard(spinlock_irqsave)(&mbox->lock);
	orr_mbox_put_call_locked(mbox, call);
}

static int orr_mbox_start(struct orr_device *odev, struct orr_mbox_call *call)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	int room;

	guard(spinlock_irqsave)(&mbox->lock);
	/* orr_mbox_abort() comes after @lost is set: what gets past here will be aborted. */
	if (orr_is_lost(odev))
		return -ENODEV;
	/* What stands in the ring of a firmware that has died means nothing. */
	room = mbox->paused ? 1 : orr_mbox_room(mbox);
	if (room <= 0)
		return -EPROTO;

	/* Never zero, and no two that can be on their way at once are the same. */
	mbox->calls++;
	call->command.sequence = (mbox->calls << ORR_MBOX_SLOT_BITS) | call->slot;
	if (!call->command.sequence)
		call->command.sequence = (++mbox->calls << ORR_MBOX_SLOT_BITS) | call->slot;
	call->held_ms = orr_restart_held_ms(odev);
	mbox->pending[call->slot] = call;
	if (!mbox->paused)
		orr_mbox_post_call(odev, call);
	return 0;
}

static int orr_mbox_status_to_errno(u32 status)
{
	switch (status) {
	case ORR_STATUS_OK:
		return 0;
	case ORR_STATUS_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	case ORR_STATUS_INVALID:
		return -EINVAL;
	case ORR_STATUS_EXISTS:
		return -EEXIST;
	case ORR_STATUS_NO_ENTRY:
		return -ENOENT;
	case ORR_STATUS_BUSY:
		return -EBUSY;
	case ORR_STATUS_NO_RESOURCE:
		return -ENOSPC;
	case ORR_STATUS_FAULT:
		return -EFAULT;
	default:
		return -EPROTO;
	}
}

/*
 * What became of a command that an earlier firmware may have carried out before it died. Numbers
 * are the driver's, so what exists or is gone is so by that command.
 */
static int orr_mbox_repeated(const struct orr_mbox_call *call, int ret)
{
	if (!call->repeats)
		return ret;
	switch (call->command.opcode) {
	case ORR_MBOX_CONTEXT_CREATE:
		return ret == -EEXIST ? 0 : ret;
	case ORR_MBOX_CONTEXT_DESTROY:
	case ORR_MBOX_QUEUE_DESTROY:
		return ret == -ENOENT ? 0 : ret;
	default:
		return ret;
	}
}

/*
 * The caller is being killed. Return: whether he may go: with a call that nobody has seen, or, if
 * its outcome does not matter, one whose end somebody else waits for now.
 */
static bool orr_mbox_leave(struct orr_device *odev, struct orr_mbox_call *call,
			   enum orr_mbox_patience patience)
{
	struct orr_mailbox *mbox = &odev->mailbox;

	guard(spinlock_irqsave)(&mbox->lock);
	if (!mbox->pending[call->slot])
		return false;
	if (!call->posted) {
		orr_mbox_finish(mbox, call->slot, -ERESTARTSYS);
		return false;
	}
	if (patience != ORR_MBOX_UNTIL_KILLED)
		return false;
	__set_bit(call->slot, mbox->orphans);
	call->left_ms = READ_ONCE(mailbox_timeout_ms);
	odev->stats.left_commands++;
	queue_delayed_work(odev->wq, &mbox->orphan_work, ORR_MBOX_ORPHAN_PERIOD);
	return true;
}

/*
 * Waits a while for the reply. Return: > 0 when the call has ended, 0 if it has not, -ERESTARTSYS if
 * the caller may leave it behind, because he is being killed.
 */
static long orr_mbox_wait_slice(struct orr_device *odev, struct orr_mbox_call *call,
				enum orr_mbox_patience *patience, unsigned int ms)
{
	long ret;

	if (*patience == ORR_MBOX_TO_THE_END)
		return wait_for_completion_timeout(&call->done, msecs_to_jiffies(ms));
	ret = wait_for_completion_killable_timeout(&call->done, msecs_to_jiffies(ms));
	if (ret >= 0)
		return ret;
	if (orr_mbox_leave(odev, call, *patience))
		return -ERESTARTSYS;
	*patience = ORR_MBOX_TO_THE_END;
	return 0;
}

/*
 * What is left of a call's time when some more has gone. A restart has its own limit, and the
 * firmware's time begins after it; that of a debugger who holds the card is counted apart.
 */
static unsigned int orr_mbox_spend(struct orr_device *odev, struct orr_mbox_call *call,
				   unsigned int left, unsigned int ms)
{
	if (READ_ONCE(odev->mailbox.paused))
		return READ_ONCE(mailbox_timeout_ms);
	if (READ_ONCE(odev->restart.held) && call->held_ms) {
		call->held_ms -= min(call->held_ms, ms);
		return left;
	}
	return left - min(left, ms);
}

/* Return: 0 when the call has ended, -ETIMEDOUT, -ERESTARTSYS as above. */
static int orr_mbox_wait(struct orr_device *odev, struct orr_mbox_call *call,
			 enum orr_mbox_patience *patience)
{
	unsigned int left = READ_ONCE(mailbox_timeout_ms);

	while (left && !orr_restart_silent(odev)) {
		unsigned int slice = min(left, ORR_MBOX_POLL_MS);
		long ret = orr_mbox_wait_slice(odev, call, patience, slice);

		if (ret)
			return ret < 0 ? ret : 0;
		/* Losing the card ends the call. */
		if (orr_health_gone(odev)) {
			wait_for_completion(&call->done);
			return 0;
		}
		left = orr_mbox_spend(odev, call, left, slice);
		/* An interrupt may be lost, or late on a busy machine. */
		if (orr_mbox_process(odev) && completion_done(&call->done))
			drm_dbg(&odev->drm, "reply to command %u found without an interrupt\n",
				call->command.opcode);
	}
	return wait_for_completion_timeout(&call->done, 1) ? 0 : -ETIMEDOUT;
}

/* There is no reply in time. When it returns the call will end, or its time begins anew. */
static void orr_mbox_overdue(struct orr_device *odev, const struct orr_mbox_call *call)
{
	drm_err(&odev->drm, "the firmware did not answer command %u within %u ms, or stands still\n",
		call->command.opcode, READ_ONCE(mailbox_timeout_ms));
	/* If it cannot be restarted, this ends the call. */
	if (call->repeats < ORR_MBOX_MAX_REPEATS)
		orr_restart_request(odev, "the firmware does not answer");
	else
		orr_device_lost(odev, "the firmware does not answer");
}

/*
 * Waits for the reply, over restarts of the firmware if need be; the call ends in any case. Return:
 * 0, or -ERESTARTSYS if it is not the caller's any more.
 */
static int orr_mbox_wait_over_restarts(struct orr_device *odev, struct orr_mbox_call *call,
				       enum orr_mbox_patience patience)
{
	int ret;

	while ((ret = orr_mbox_wait(odev, call, &patience)) == -ETIMEDOUT)
		orr_mbox_overdue(odev, call);
	return ret;
}

/* The call of a killed process that has waited too long, if there is one. */
static struct orr_mbox_call *orr_mbox_find_overdue(struct orr_device *odev, bool silent)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	struct orr_mbox_call *found = NULL;
	unsigned long slot;

	guard(spinlock_irqsave)(&mbox->lock);
	for_each_set_bit(slot, mbox->orphans, ORR_MBOX_SLOTS) {
		struct orr_mbox_call *call = &mbox->call[slot];

		call->left_ms = orr_mbox_spend(odev, call, call->left_ms,
					       jiffies_to_msecs(ORR_MBOX_ORPHAN_PERIOD));
		if (mbox->paused || (call->left_ms && !silent))
			continue;
		call->left_ms = READ_ONCE(mailbox_timeout_ms);
		found = call;
	}
	return found;
}

/*
 * Looks in the place of those who were killed whether the firmware answers, so that its silence is
 * noticed all the same. Does not wait.
 */
static void orr_mbox_orphan_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, mailbox.orphan_work.work);
	struct orr_mailbox *mbox = &odev->mailbox;
	bool cookie = dma_fence_begin_signalling();
	struct orr_mbox_call *call;
	int idx;

	/* After a loss there is nothing to look for: it has ended the calls. */
	if (!orr_enter(odev, &idx)) {
		orr_mbox_process(odev);
		call = orr_mbox_find_overdue(odev, orr_restart_silent(odev));
		/* It may end at this moment, and then its number of repeats is nobody's. */
		if (call && !orr_health_gone(odev))
			orr_mbox_overdue(odev, call);
		if (!bitmap_empty(mbox->orphans, ORR_MBOX_SLOTS))
			queue_delayed_work(odev->wq, &mbox->orphan_work, ORR_MBOX_ORPHAN_PERIOD);
		orr_exit(odev, idx);
	}
	dma_fence_end_signalling(cookie);
}

/**
 * orr_command_init - prepare the part of a mailbox that belongs to this file
 * @mbox: the mailbox
 */
void orr_command_init(struct orr_mailbox *mbox)
{
	sema_init(&mbox->slots, ORR_MBOX_SLOTS);
	sema_init(&mbox->long_slots, ORR_MBOX_LONG_SLOTS);
	INIT_DELAYED_WORK(&mbox->orphan_work, orr_mbox_orphan_work);
}

/**
 * orr_command_fini - no more work of ours after this
 * @mbox: the mailbox of a card that is lost
 */
void orr_command_fini(struct orr_mailbox *mbox)
{
	disable_delayed_work_sync(&mbox->orphan_work);
}

/**
 * orr_mbox_begin - send a command that has a reply; orr_mbox_flush() and orr_mbox_end() have to follow
 * @odev: the card; the caller is inside orr_enter(), or in probe
 * @patience: what a caller who is being killed still waits for
 * @opcode: ORR_MBOX_*
 * @args: arguments
 * @count: number of arguments, at most ORR_MBOX_ARGS
 *
 * Return: the call, or an error pointer: -ENODEV when the card is lost, -ERESTARTSYS: killed.
 */
struct orr_mbox_call *orr_mbox_begin(struct orr_device *odev, enum orr_mbox_patience patience,
				     u16 opcode, const u64 *args, unsigned int count)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	struct orr_mbox_call *call;
	int ret;

	if (WARN_ON(count > ORR_MBOX_ARGS))
		return ERR_PTR(-EINVAL);
	call = orr_mbox_get_call(mbox, patience, opcode);
	if (!call)
		return ERR_PTR(-ERESTARTSYS);
	memcpy(call->command.arg, args, count * sizeof(*args));
	ret = orr_mbox_start(odev, call);
	if (!ret)
		return call;
	orr_mbox_put_call(mbox, call);
	if (ret == -EPROTO) {
		orr_device_lost(odev, "the firmware breaks the mailbox protocol");
		ret = -ENODEV;
	}
	return ERR_PTR(ret);
}

/**
 * orr_mbox_flush - tell the firmware of commands that were begun
 * @odev: the card; the caller is inside orr_enter(), or in probe
 */
void orr_mbox_flush(struct orr_device *odev)
{
	guard(spinlock_irqsave)(&odev->mailbox.lock);
	/* orr_mbox_resume() does it after a restart. */
	if (!odev->mailbox.paused && !orr_is_lost(odev))
		orr_mbox_ring(odev);
}

/**
 * orr_mbox_end - wait for a command's reply
 * @odev: the card; the caller is still inside orr_enter(), or in probe
 * @call: of orr_mbox_begin(); not the caller's any more
 * @patience: what a caller who is being killed still waits for
 * @reply: ORR_MBOX_ARGS words for the reply's arguments, or NULL
 *
 * The firmware has to answer in time, and to move while it does not, else it is restarted and asked
 * again, or the card is lost.
 *
 * Return: 0, the reply's status as an error, -ENODEV when the card is lost, or -ERESTARTSYS: killed,
 * and @patience says what may have become of the command.
 */
int orr_mbox_end(struct orr_device *odev, struct orr_mbox_call *call,
		 enum orr_mbox_patience patience, u64 *reply)
{
	int ret;

	if (orr_mbox_wait_over_restarts(odev, call, patience))
		return -ERESTARTSYS;
	ret = call->result;
	if (!ret) {
		ret = orr_mbox_status_to_errno(call->reply.status);
		if (ret && ret != -EPROTO)
			drm_dbg(&odev->drm, "command %u: status %u, detail %u\n",
				call->command.opcode, call->reply.status, call->reply.detail);
		ret = orr_mbox_repeated(call, ret);
	}
	if (!ret && reply)
		memcpy(reply, call->reply.arg, sizeof(call->reply.arg));
	orr_mbox_put_call(&odev->mailbox, call);
	if (ret == -EPROTO) {
		orr_device_lost(odev, "the firmware breaks the mailbox protocol");
		ret = -ENODEV;
	}
	return ret;
}

/**
 * orr_mbox_command_patient - send a command and wait for its reply
 * @odev: the card; the caller is inside orr_enter(), or in probe
 * @patience: what a caller who is being killed still waits for
 * @opcode: ORR_MBOX_*
 * @args: arguments
 * @count: number of arguments, at most ORR_MBOX_ARGS
 * @reply: ORR_MBOX_ARGS words for the reply's arguments, or NULL
 *
 * Return: as orr_mbox_begin() and orr_mbox_end().
 */
int orr_mbox_command_patient(struct orr_device *odev, enum orr_mbox_patience patience, u16 opcode,
			     const u64 *args, unsigned int count, u64 *reply)
{
	struct orr_mbox_call *call;

	call = orr_mbox_begin(odev, patience, opcode, args, count);
	if (IS_ERR(call))
		return PTR_ERR(call);
	orr_mbox_flush(odev);
	return orr_mbox_end(odev, call, patience, reply);
}

/**
 * orr_mbox_command - send a command and wait for its reply, even while being killed
 * @odev: the card; the caller is inside orr_enter(), or in probe
 * @opcode: ORR_MBOX_*
 * @args: arguments
 * @count: number of arguments, at most ORR_MBOX_ARGS
 * @reply: ORR_MBOX_ARGS words for the reply's arguments, or NULL
 *
 * For what frees something: nobody may free it before the firmware has let go of it.
 *
 * Return: 0, the reply's status as an error, or -ENODEV when the card is lost.
 */
int orr_mbox_command(struct orr_device *odev, u16 opcode, const u64 *args, unsigned int count,
		     u64 *reply)
{
	return orr_mbox_command_patient(odev, ORR_MBOX_TO_THE_END, opcode, args, count, reply);
}
