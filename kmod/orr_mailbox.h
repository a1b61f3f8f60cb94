/* SPDX-License-Identifier: GPL-2.0 */
/* The mailbox: commands to the firmware, and what it says. See orrery/fw/mailbox.h. */
#ifndef _ORR_MAILBOX_H_
#define _ORR_MAILBOX_H_

#include <linux/list.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include <orrery/fw/mailbox.h>

struct orr_device;
struct orr_mbox_call;
struct orr_queue;

/* Commands that wait for a reply at once. The rest of the ring is for those without one. */
#define ORR_MBOX_SLOTS 64u

#define ORR_MBOX_ARGS ARRAY_SIZE(((struct orr_mbox_message *)0)->arg)

/**
 * struct orr_mailbox - both rings, and who waits for what
 *
 * While the firmware restarts, nothing is posted: commands wait in @pending, ARMs in @arm_list.
 */
struct orr_mailbox {
	/** @lock: guards all below but @slots; taken in interrupts */
	spinlock_t lock;
	/** @slots: counts free entries of @pending */
	struct semaphore slots;
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
	/** @pending: by the lower bits of the sequence */
	struct orr_mbox_call *pending[ORR_MBOX_SLOTS];
	/** @arm_list: queues whose ARM command is still to be sent */
	struct list_head arm_list;
	/** @arm_work: tries again when the ring was full */
	struct delayed_work arm_work;
};

void orr_mbox_init(struct orr_device *odev);
int orr_mbox_alloc(struct orr_device *odev);
void orr_mbox_fini(struct orr_device *odev);
int orr_mbox_command(struct orr_device *odev, u16 opcode, const u64 *args, unsigned int count,
		     u64 *reply);
bool orr_mbox_send(struct orr_device *odev, u16 opcode, const u64 *args, unsigned int count);
bool orr_mbox_process(struct orr_device *odev);
bool orr_mbox_process_replies(struct orr_device *odev, bool *found);
bool orr_mbox_pause(struct orr_device *odev);
void orr_mbox_empty(struct orr_device *odev);
void orr_mbox_resume(struct orr_device *odev);
void orr_mbox_abort(struct orr_device *odev);
void orr_mbox_arm(struct orr_queue *queue);
void orr_mbox_send_arms(struct orr_device *odev);
void orr_mbox_disarm(struct orr_queue *queue);

#endif /* _ORR_MAILBOX_H_ */
