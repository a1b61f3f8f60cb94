/* SPDX-License-Identifier: GPL-2.0 */
/* The mailbox: commands to the firmware, and what it says. See orrery/fw/mailbox.h. */
#ifndef _ORR_MAILBOX_H_
#define _ORR_MAILBOX_H_

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include <orrery/fw/mailbox.h>

struct orr_device;
struct orr_queue;

/* Commands that wait for a reply at once. The rest of the ring is for those without one. */
#define ORR_MBOX_SLOTS 64u
#define ORR_MBOX_SLOT_BITS ilog2(ORR_MBOX_SLOTS)
/* Of them those for commands that may take long, so that there is always one for the others. */
#define ORR_MBOX_LONG_SLOTS 32u

#define ORR_MBOX_ARGS ARRAY_SIZE(((struct orr_mbox_message *)0)->arg)

/**
 * enum orr_mbox_patience - what a caller who is being killed waits for
 * @ORR_MBOX_TO_THE_END: for the reply all the same
 * @ORR_MBOX_ONCE_BEGUN: for the reply, unless the firmware has not been given the command yet; for
 *	what makes something, which has to be undone if the caller does not take it
 * @ORR_MBOX_UNTIL_KILLED: for nothing; for questions, and what does no harm if nobody knows of it
 */
enum orr_mbox_patience {
	ORR_MBOX_TO_THE_END,
	ORR_MBOX_ONCE_BEGUN,
	ORR_MBOX_UNTIL_KILLED,
};

/**
 * struct orr_mbox_call - a command that waits for its reply
 *
 * Not on the stack of who waits, because he may be killed before it comes.
 */
struct orr_mbox_call {
	/** @command: as it is sent; its sequence is the call's */
	struct orr_mbox_message command;
	/** @slot: its number */
	unsigned int slot;
	/** @takes_long: it has one of orr_mailbox.long_slots too */
	bool takes_long;
	/** @left_ms: once its caller was killed: the time it still has */
	unsigned int left_ms;
	/** @held_ms: the time for which a debugger may still hold the card meanwhile */
	unsigned int held_ms;
	/** @posted: it stood in the ring, so that the firmware may have carried it out */
	bool posted;
	/** @repeats: how often a restarted firmware got it again, after it had been posted */
	unsigned int repeats;
	/** @result: 0 with @reply filled, or a negative error */
	int result;
	/** @reply: as the firmware sent it */
	struct orr_mbox_message reply;
	/** @done: completed once @result is set */
	struct completion done;
};

/**
 * struct orr_mailbox - both rings, and who waits for what
 *
 * While the firmware restarts, nothing is posted: commands wait in @pending, ARMs in @arm_list.
 */
struct orr_mailbox {
	/** @lock: guards all below but the semaphores; taken in interrupts */
	spinlock_t lock;
	/** @slots: counts free entries of @call */
	struct semaphore slots;
	/** @long_slots: how many of them commands that may take long can still have */
	struct semaphore long_slots;
	/** @call: those that @used says have a caller, who gives it back, or of @orphans the reply */
	struct orr_mbox_call call[ORR_MBOX_SLOTS];
	/** @used: of @call */
	DECLARE_BITMAP(used, ORR_MBOX_SLOTS);
	/** @orphans: of @call those whose caller was killed */
	DECLARE_BITMAP(orphans, ORR_MBOX_SLOTS);
	/** @orphan_work: sees to it that their replies come */
	struct delayed_work orphan_work;
	/** @command: host to firmware */
	struct orr_mbox_ring *command;
	/** @command_dma: its bus address */
	dma_addr_t command_dma;
	/** @message: firmware to host; nothing in it is trusted */
	struct orr_mbox_ring *message;
	/** @message_dma: its bus address */
	dma_addr_t message_dma;
	/** @producer: our index of @command; the copy in shared memory is written, never read */
	u64 producer;
	/** @consumer: our index of @message; likewise */
	u64 consumer;
	/** @calls: counts commands, upper bits of their sequence numbers */
	u32 calls;
	/** @paused: the firmware restarts */
	bool paused;
	/** @pending: those without a reply yet, by the lower bits of the sequence */
	struct orr_mbox_call *pending[ORR_MBOX_SLOTS];
	/** @arm_list: queues whose ARM command is still to be sent */
	struct list_head arm_list;
	/** @arm_work: tries again when the ring was full */
	struct delayed_work arm_work;
};

void orr_mbox_init(struct orr_device *odev);
int orr_mbox_alloc(struct orr_device *odev);
void orr_mbox_fini(struct orr_device *odev);
bool orr_mbox_send(struct orr_device *odev, u16 opcode, const u64 *args, unsigned int count);
bool orr_mbox_process(struct orr_device *odev);
void orr_mbox_inject(struct orr_device *odev, const struct orr_mbox_message *message);
bool orr_mbox_process_replies(struct orr_device *odev, bool *found);
bool orr_mbox_pause(struct orr_device *odev);
void orr_mbox_empty(struct orr_device *odev);
void orr_mbox_resume(struct orr_device *odev);
void orr_mbox_abort(struct orr_device *odev);
void orr_mbox_arm(struct orr_queue *queue);
void orr_mbox_send_arms(struct orr_device *odev);
void orr_mbox_disarm(struct orr_queue *queue);

/* For orr_command.c, under the lock. */
int orr_mbox_room(struct orr_mailbox *mbox);
void orr_mbox_ring(struct orr_device *odev);
void orr_mbox_post_call(struct orr_device *odev, struct orr_mbox_call *call);
void orr_mbox_finish(struct orr_mailbox *mbox, u32 slot, int result);
/* For orr_mailbox.c, likewise. */
void orr_mbox_put_call_locked(struct orr_mailbox *mbox, struct orr_mbox_call *call);

/* orr_command.c */
void orr_command_init(struct orr_mailbox *mbox);
void orr_command_fini(struct orr_mailbox *mbox);
struct orr_mbox_call *orr_mbox_begin(struct orr_device *odev, enum orr_mbox_patience patience,
				     u16 opcode, const u64 *args, unsigned int count);
void orr_mbox_flush(struct orr_device *odev);
int orr_mbox_end(struct orr_device *odev, struct orr_mbox_call *call,
		 enum orr_mbox_patience patience, u64 *reply);
int orr_mbox_command(struct orr_device *odev, u16 opcode, const u64 *args, unsigned int count,
		     u64 *reply);
int orr_mbox_command_patient(struct orr_device *odev, enum orr_mbox_patience patience, u16 opcode,
			     const u64 *args, unsigned int count, u64 *reply);

#endif /* _ORR_MAILBOX_H_ */
