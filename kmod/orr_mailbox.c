// SPDX-License-Identifier: GPL-2.0
/*
 * The mailbox. The firmware is not trusted: its indices, sequence numbers and status codes are
 * checked, and what makes no sense ends the use of the card, never of the kernel.
 */
#include <linux/string.h>

#include "orr_deadlock.h"
#include "orr_device.h"
#include "orr_queue.h"
#include "orr_restart.h"
#include "orr_signal.h"
#include "orr_trace.h"

static void orr_mbox_arm_work(struct work_struct *work);

/**
 * orr_mbox_init - prepare; whatever comes before orr_mbox_alloc() finds nobody who waits
 * @odev: the card
 */
void orr_mbox_init(struct orr_device *odev)
{
	struct orr_mailbox *mbox = &odev->mailbox;

	spin_lock_init(&mbox->lock);
	INIT_LIST_HEAD(&mbox->arm_list);
	INIT_DELAYED_WORK(&mbox->arm_work, orr_mbox_arm_work);
	orr_command_init(mbox);
}

/**
 * orr_mbox_alloc - allocate the rings, empty
 * @odev: the card
 *
 * Return: 0 or -ENOMEM.
 */
int orr_mbox_alloc(struct orr_device *odev)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	struct device *dev = &odev->pdev->dev;

	mbox->command = dmam_alloc_coherent(dev, sizeof(*mbox->command), &mbox->command_dma,
					    GFP_KERNEL);
	mbox->message = dmam_alloc_coherent(dev, sizeof(*mbox->message), &mbox->message_dma,
					    GFP_KERNEL);
	return mbox->command && mbox->message ? 0 : -ENOMEM;
}

/**
 * orr_mbox_fini - no more work of ours after this
 * @odev: the card, lost or never used
 */
void orr_mbox_fini(struct orr_device *odev)
{
	disable_delayed_work_sync(&odev->mailbox.arm_work);
	orr_command_fini(&odev->mailbox);
}

/**
 * orr_mbox_room - free entries of the command ring
 * @mbox: the mailbox, whose lock is held
 *
 * Return: their number, or -EPROTO if the firmware's index is impossible.
 */
int orr_mbox_room(struct orr_mailbox *mbox)
{
	u64 used = mbox->producer - READ_ONCE(mbox->command->consumer);

	if (used > ORR_MBOX_ENTRIES)
		return -EPROTO;
	return ORR_MBOX_ENTRIES - used;
}

/* The caller has checked that there is room, and rings when all is posted. */
static void orr_mbox_post(struct orr_device *odev, const struct orr_mbox_message *message)
{
	struct orr_mailbox *mbox = &odev->mailbox;

	lockdep_assert_held(&mbox->lock);
	trace_orr_command(odev, message);
	mbox->command->entry[mbox->producer % ORR_MBOX_ENTRIES] = *message;
	mbox->producer++;
	dma_wmb(); /* the entry is there before the index says so */
	WRITE_ONCE(mbox->command->producer, mbox->producer);
}

/**
 * orr_mbox_ring - tell the firmware that something was posted
 * @odev: the card; mailbox.lock is held
 *
 * Costs as much as many commands, so it is done once for all of them.
 */
void orr_mbox_ring(struct orr_device *odev)
{
	lockdep_assert_held(&odev->mailbox.lock);
	/* writel() orders the index before the doorbell. */
	orr_write32(odev, ORR_R_MBOX_DOORBELL, 1);
}

/**
 * orr_mbox_post_call - a pending command goes out, for the first time or to a firmware that started anew
 * @odev: the card; mailbox.lock is held
 * @call: the command; orr_mbox_ring() has to follow
 */
void orr_mbox_post_call(struct orr_device *odev, struct orr_mbox_call *call)
{
	if (call->posted)
		call->repeats++;
	call->posted = true;
	orr_mbox_post(odev, &call->command);
}

/**
 * orr_mbox_finish - a command has ended
 * @mbox: the mailbox, whose lock is held
 * @slot: of a pending call
 * @result: 0 with the reply filled, or why there is none
 */
void orr_mbox_finish(struct orr_mailbox *mbox, u32 slot, int result)
{
	struct orr_mbox_call *call = mbox->pending[slot];

	lockdep_assert_held(&mbox->lock);
	mbox->pending[slot] = NULL;
	call->result = result;
	if (test_bit(slot, mbox->orphans))
		orr_mbox_put_call_locked(mbox, call);
	else
		complete(&call->done);
}

/**
 * orr_mbox_send - send a command whose outcome does not matter
 * @odev: the card; the caller is inside orr_enter()
 * @opcode: ORR_MBOX_*
 * @args: arguments
 * @count: number of arguments, at most ORR_MBOX_ARGS
 *
 * Does not wait.
 *
 * Return: whether it went out; not when the ring is full, or while the firmware restarts.
 */
bool orr_mbox_send(struct orr_device *odev, u16 opcode, const u64 *args, unsigned int count)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	struct orr_mbox_message message = { .opcode = opcode, .flags = ORR_MBOX_F_NO_REPLY };

	if (WARN_ON(count > ORR_MBOX_ARGS))
		return false;
	memcpy(message.arg, args, count * sizeof(*args));

	guard(spinlock_irqsave)(&mbox->lock);
	if (orr_is_lost(odev) || mbox->paused || orr_mbox_room(mbox) <= (int)ORR_MBOX_SLOTS)
		return false;
	message.sequence = (++mbox->calls << ORR_MBOX_SLOT_BITS) | 1;
	orr_mbox_post(odev, &message);
	orr_mbox_ring(odev);
	return true;
}

static void orr_mbox_event(struct orr_device *odev, const struct orr_mbox_message *event)
{
	char text[sizeof(event->arg) + 1];

	switch (event->opcode) {
	case ORR_EVENT_QUEUE_ERROR:
		trace_orr_queue_stopped(odev, event);
		/* A program's mistake; the waiters learn of it from the status line. */
		drm_dbg(&odev->drm, "queue %llu stopped: error %llu at packet %llu, address %#llx\n",
			event->arg[0], event->arg[1], event->arg[2], event->arg[3]);
		if (event->arg[0] < ORR_FW_QUEUES) {
			orr_queue_scan_number(odev, event->arg[0]);
			orr_signaller_stopped_later(odev, event->arg[0]);
		}
		break;
	case ORR_EVENT_DEADLOCK:
		orr_deadlock_event(odev, event);
		break;
	case ORR_EVENT_LOG:
		memcpy(text, event->arg, sizeof(event->arg));
		text[sizeof(event->arg)] = '\0';
		drm_dbg(&odev->drm, "firmware: %*pE\n", (int)strlen(text), text);
		break;
	default:
		drm_dbg(&odev->drm, "firmware event %#x is not known to this driver\n",
			event->opcode);
	}
}

static int orr_mbox_reply(struct orr_device *odev, const struct orr_mbox_message *reply)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	u32 slot = reply->sequence % ORR_MBOX_SLOTS;
	struct orr_mbox_call *call = mbox->pending[slot];

	if (!call || !call->posted || call->command.sequence != reply->sequence ||
	    call->command.opcode != reply->opcode)
		return -EPROTO;
	trace_orr_reply(odev, reply);
	call->reply = *reply;
	orr_mbox_finish(mbox, slot, 0);
	return 0;
}

/*
 * Takes one message. Return: 1: an event, for the caller, which stays there if he takes replies
 * only; 0: a reply; negative: none, or error.
 */
static int orr_mbox_take(struct orr_device *odev, struct orr_mbox_message *message, bool events)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	u64 ready;

	guard(spinlock_irqsave)(&mbox->lock);
	if (orr_is_lost(odev))
		return -EAGAIN;
	ready = READ_ONCE(mbox->message->producer) - mbox->consumer;
	if (!ready)
		return -EAGAIN;
	if (ready > ORR_MBOX_ENTRIES)
		return -EPROTO;
	dma_rmb(); /* the entry is read after the index that announces it */
	/* A copy, so that the firmware cannot change it between check and use. */
	*message = mbox->message->entry[mbox->consumer % ORR_MBOX_ENTRIES];
	if (!message->sequence && !events)
		return 1;
	mbox->consumer++;
	dma_mb(); /* and before it may be overwritten */
	WRITE_ONCE(mbox->message->consumer, mbox->consumer);
	return message->sequence ? orr_mbox_reply(odev, message) : 1;
}

/**
 * orr_mbox_inject - take in a message as if the firmware had sent it
 * @odev: the card; the caller is inside orr_enter()
 * @message: whatever it is
 *
 * For tests of what the driver does with a firmware that is wrong or hostile.
 */
void orr_mbox_inject(struct orr_device *odev, const struct orr_mbox_message *message)
{
	int ret;

	if (!message->sequence) {
		orr_mbox_event(odev, message);
		return;
	}
	scoped_guard(spinlock_irqsave, &odev->mailbox.lock)
		ret = orr_mbox_reply(odev, message);
	if (ret)
		orr_device_lost(odev, "the firmware breaks the mailbox protocol");
}

/**
 * orr_mbox_process - take in what the firmware has sent
 * @odev: the card
 *
 * Not in interrupts: events take their time. A firmware that never stops sending is stopped after
 * one ring's length.
 *
 * Return: whether there was anything.
 */
bool orr_mbox_process(struct orr_device *odev)
{
	struct orr_mbox_message message;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ORR_MBOX_ENTRIES && ret >= 0; i++) {
		ret = orr_mbox_take(odev, &message, true);
		if (ret > 0)
			orr_mbox_event(odev, &message);
	}
	if (ret == -EPROTO)
		orr_device_lost(odev, "the firmware breaks the mailbox protocol");
	return i > 1;
}

/**
 * orr_mbox_process_replies - take in the replies that the firmware has sent
 * @odev: the card; any context
 * @found: set if there was anything
 *
 * Return: whether orr_mbox_process() has something to do, because there is an event.
 */
bool orr_mbox_process_replies(struct orr_device *odev, bool *found)
{
	struct orr_mbox_message message;
	unsigned int i;
	int ret = 0;

	/* There are no more of them at once. */
	for (i = 0; i < ORR_MBOX_SLOTS && !ret; i++) {
		ret = orr_mbox_take(odev, &message, false);
		*found |= ret >= 0;
	}
	if (ret == -EPROTO)
		orr_device_lost(odev, "the firmware breaks the mailbox protocol");
	return ret >= 0;
}

/**
 * orr_mbox_abort - end all calls, because the card is lost
 * @odev: the card, with its lost bit set
 */
void orr_mbox_abort(struct orr_device *odev)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	u32 slot;

	guard(spinlock_irqsave)(&mbox->lock);
	for (slot = 0; slot < ORR_MBOX_SLOTS; slot++)
		if (mbox->pending[slot])
			orr_mbox_finish(mbox, slot, -ENODEV);
}

/**
 * orr_mbox_pause - the firmware is about to be restarted: nothing goes to it any more
 * @odev: the card
 *
 * Return: false if that has been so already.
 */
bool orr_mbox_pause(struct orr_device *odev)
{
	struct orr_mailbox *mbox = &odev->mailbox;

	guard(spinlock_irqsave)(&mbox->lock);
	if (mbox->paused)
		return false;
	WRITE_ONCE(mbox->paused, true);
	return true;
}

/**
 * orr_mbox_empty - make both rings as they are before the firmware's first look
 * @odev: the card, with a paused mailbox and a control core that stands still
 */
void orr_mbox_empty(struct orr_device *odev)
{
	struct orr_mailbox *mbox = &odev->mailbox;

	guard(spinlock_irqsave)(&mbox->lock);
	memset(mbox->command, 0, sizeof(*mbox->command));
	memset(mbox->message, 0, sizeof(*mbox->message));
	mbox->producer = 0;
	mbox->consumer = 0;
}

/**
 * orr_mbox_resume - the firmware serves its mailbox again
 * @odev: the card
 *
 * Commands without a reply are repeated: see orr_mbox_repeated().
 */
void orr_mbox_resume(struct orr_device *odev)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	u32 slot;

	guard(spinlock_irqsave)(&mbox->lock);
	WRITE_ONCE(mbox->paused, false);
	if (orr_is_lost(odev))
		return;
	for (slot = 0; slot < ORR_MBOX_SLOTS; slot++)
		if (mbox->pending[slot])
			orr_mbox_post_call(odev, mbox->pending[slot]);
	orr_mbox_ring(odev);
	queue_delayed_work(odev->wq, &mbox->arm_work, 0);
}

/* Sends the ARM commands that fit; the ring keeps room for those who wait for a reply. */
static void orr_mbox_flush_arms(struct orr_device *odev)
{
	struct orr_mailbox *mbox = &odev->mailbox;
	struct orr_queue *queue, *next;
	bool posted = false;

	lockdep_assert_held(&mbox->lock);
	if (mbox->paused)
		return;
	list_for_each_entry_safe(queue, next, &mbox->arm_list, arm_node) {
		struct orr_mbox_message message = {
			.opcode = ORR_MBOX_QUEUE_ARM,
			.flags = ORR_MBOX_F_NO_REPLY,
			.arg = { queue->number, READ_ONCE(queue->armed_index) },
		};

		if (orr_mbox_room(mbox) <= (int)ORR_MBOX_SLOTS) {
			queue_delayed_work(odev->wq, &mbox->arm_work, 1);
			break;
		}
		list_del_init(&queue->arm_node);
		/* Reached in the meantime. */
		if (message.arg[1] == ORR_QUEUE_NOT_ARMED)
			continue;
		message.sequence = (++mbox->calls << ORR_MBOX_SLOT_BITS) | 1;
		orr_mbox_post(odev, &message);
		posted = true;
	}
	if (posted)
		orr_mbox_ring(odev);
}

static void orr_mbox_arm_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, mailbox.arm_work.work);
	bool broken;
	int idx;

	if (orr_enter(odev, &idx))
		return;
	scoped_guard(spinlock_irqsave, &odev->mailbox.lock) {
		broken = orr_mbox_room(&odev->mailbox) < 0;
		if (!broken)
			orr_mbox_flush_arms(odev);
	}
	if (broken)
		orr_device_lost(odev, "the firmware breaks the mailbox protocol");
	orr_exit(odev, idx);
}

/**
 * orr_mbox_arm - ask for an interrupt once a queue reaches its armed_index
 * @queue: the queue, whose lock is held
 *
 * orr_mbox_send_arms() has to follow, once for as many queues as there are.
 */
void orr_mbox_arm(struct orr_queue *queue)
{
	struct orr_mailbox *mbox = &queue->odev->mailbox;

	lockdep_assert_held(&queue->lock);
	guard(spinlock)(&mbox->lock);
	if (list_empty(&queue->arm_node))
		list_add_tail(&queue->arm_node, &mbox->arm_list);
}

/**
 * orr_mbox_send_arms - send what orr_mbox_arm() asked for
 * @odev: the card
 *
 * Any context; neither allocates nor sleeps. What the ring has no room for goes out later.
 */
void orr_mbox_send_arms(struct orr_device *odev)
{
	int idx;

	if (orr_enter(odev, &idx))
		return;
	scoped_guard(spinlock_irqsave, &odev->mailbox.lock)
		orr_mbox_flush_arms(odev);
	orr_exit(odev, idx);
}

/**
 * orr_mbox_disarm - forget an ARM command that has not gone out yet
 * @queue: the queue, which will not be armed any more
 */
void orr_mbox_disarm(struct orr_queue *queue)
{
	guard(spinlock_irqsave)(&queue->odev->mailbox.lock);
	list_del_init(&queue->arm_node);
}
