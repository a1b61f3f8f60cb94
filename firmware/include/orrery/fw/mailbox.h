/* SPDX-License-Identifier: MIT */
/*
 * The mailbox: two rings of 64-byte messages in host memory, one each way. Each index has a
 * cache line and one writer. The sender fills the entry, then stores the producer index
 * (release), then rings: the host ORR_R_MBOX_DOORBELL, the firmware ORR_IRQ_MAILBOX. Indices
 * count up for ever (modulo 2^64); entry = index % ORR_MBOX_ENTRIES. Neither side trusts the other's index:
 * one that is further away than ORR_MBOX_ENTRIES is a fatal protocol error of the other.
 * Every command has exactly one reply with its sequence, except those with
 * ORR_MBOX_F_NO_REPLY. Events are messages with sequence 0.
 */
#ifndef ORRERY_FW_MAILBOX_H
#define ORRERY_FW_MAILBOX_H

#include <orrery/hw/base.h>

#define ORR_MBOX_ENTRIES 256u

struct orr_mbox_message {
	uint32_t sequence; /* command: chosen by the host, never 0; reply: the command's; event: 0 */
	uint16_t opcode; /* command or reply: ORR_MBOX_*; event: ORR_EVENT_* */
	uint16_t flags; /* command: ORR_MBOX_F_*; else 0 */
	uint32_t status; /* reply: ORR_STATUS_*; else 0 */
	uint32_t detail; /* reply: which argument (0 the first), or 0 */
	uint64_t arg[6]; /* see the opcodes; those not named are 0, and checked */
};
ORR_ASSERT_SIZE(struct orr_mbox_message, 64);

struct orr_mbox_ring {
	uint64_t producer; /* written by the sender */
	uint64_t pad0[7];
	uint64_t consumer; /* written by the receiver */
	uint64_t pad1[7];
	struct orr_mbox_message entry[ORR_MBOX_ENTRIES];
};
ORR_ASSERT_OFFSET(struct orr_mbox_ring, entry, 128);

#define ORR_MBOX_F_NO_REPLY 1u

/* Commands. "→" lists what the reply carries in its args. */
#define ORR_MBOX_PING 1u /* any args; → the same */
#define ORR_MBOX_VERSION 2u /* → 0: fw_abi, 1: fw_version */
/*
 * 0: context (ASID), 1: root table's VRAM offset, 2: doorbell page, 3: quota: vector core time in 1/1000 of what the
 * card has in a period | period in microseconds << 32 (0: no limit). A context over its quota waits for the next period.
 * 4: whose it is: user | process << 32, any numbers: shares of the card go to users first, of these to their
 * processes, of these to their queues. NO_RESOURCE: more processes or users than the firmware has rows for.
 */
#define ORR_MBOX_CONTEXT_CREATE 3u
#define ORR_MBOX_CONTEXT_DESTROY 4u /* 0: context; fails with BUSY while it has queues */
/*
 * 0: queue | context << 32, 1: VA of struct orr_ring, 2: entries (power of two, 2 ..
 * ORR_RING_MAX_ENTRIES), 3: doorbell slot | priority << 32, 4: dispatch limit in microseconds
 * of model time (0: the firmware's default), 5: weight (1 .. ORR_WEIGHT_MAX, 0: ORR_WEIGHT_DEFAULT) | time slice in
 * microseconds << 32 (0: the firmware's default). → 0: generation. Starts at index 0.
 */
#define ORR_MBOX_QUEUE_CREATE 5u
/*
 * 0: queue. Aborts what is in flight. The reply means that nothing of it runs, and that the semaphores which its packets
 * would have signalled have failed (ORR_QERR_ABORTED, or why it had stopped before).
 */
#define ORR_MBOX_QUEUE_DESTROY 6u
#define ORR_MBOX_TLB_FLUSH 7u /* 0: context, 1: VA, 2: bytes (0: all) */
#define ORR_MBOX_QUEUE_ARM 8u /* 0: queue, 1: index: raise ORR_IRQ_QUEUE once completed >= index, or now */
#define ORR_MBOX_QUEUE_INFO 9u /* 0: queue → 0: state ORR_QUEUE_*, 1: completed, 2: error code, 3: packets in flight */

/* Text for people, in traces and reports: 0: number | ORR_NAME_* << 32, 1..5: text, zero-padded; cut to ORR_NAME_BYTES. */
#define ORR_MBOX_NAME 10u
#define ORR_NAME_QUEUE 0u
#define ORR_NAME_CONTEXT 1u
#define ORR_NAME_BYTES 24u /* with the final zero */
#define ORR_MBOX_QUEUE_SET 11u /* 0: queue, 1: priority, 2: weight | slice << 32, as in QUEUE_CREATE */
/*
 * 0: queue → 0: vector core time used (ps), 1: copy engine time used (ps), 2: dispatches and copies finished,
 * 3: times preempted, 4: model time ready but not running (ps), 5: longest such wait (ps)
 */
#define ORR_MBOX_QUEUE_STATS 12u
#define ORR_MBOX_QUOTA_SET 13u /* 0: context, 1: quota as in CONTEXT_CREATE */
#define ORR_MBOX_QUEUE_ABORT 15u /* 0: queue. As QUEUE_DESTROY, but it stays, stopped with ORR_QERR_ABORTED, and can be asked */
/*
 * Nobody is left who may signal a semaphore: sets ORR_SEM_CLOSED there, and stops those queues of this card that
 * wait for more than its value (ORR_QERR_POISON). 0: VRAM offset or bus address, 16-byte aligned, 1: ORR_SEM_IN_*,
 * 2: failure word for those queues.
 */
#define ORR_MBOX_SEM_CLOSE 16u
#define ORR_SEM_IN_VRAM 0u
#define ORR_SEM_IN_HOST 1u
#define ORR_MBOX_CRASH 14u /* for tests of the restart: 0: queue that is to look guilty, or all-ones; no reply */

#define ORR_WEIGHT_DEFAULT 64u
#define ORR_WEIGHT_MAX 1024u

/* REALTIME is strict: it is served before all else. Of the others a lower class is never shut out: see docs/firmware.md. */
#define ORR_PRIORITY_LOW 0u
#define ORR_PRIORITY_NORMAL 1u
#define ORR_PRIORITY_HIGH 2u
#define ORR_PRIORITY_REALTIME 3u

/* Events. */
/* Behind the failure of the semaphores that the queue's packets would have signalled. */
#define ORR_EVENT_QUEUE_ERROR 0x8001u /* 0: queue, 1: code ORR_QERR_*, 2: index, 3: address, 4: model time ps */
/*
 * A cycle of waits: one event for each edge, in their order round the cycle. 0: report (counts up from 1) | edge << 32 |
 * edges << 48, 1: queue that waits | queue whose packets hold the signal that it waits for << 32, 2: VA of the
 * semaphore, 3: value wanted, 4: value now, 5: index of the waiting packet. Nothing is stopped: a process can still
 * signal. Reported once for as long as the cycle stands.
 */
#define ORR_EVENT_DEADLOCK 0x8003u
#define ORR_EVENT_LOG 0x8002u /* 0..5: 48 bytes of text, zero-padded */

/* Status of a reply. */
#define ORR_STATUS_OK 0u
#define ORR_STATUS_NOT_SUPPORTED 1u /* unknown opcode or flag */
#define ORR_STATUS_INVALID 2u /* detail: the argument */
#define ORR_STATUS_EXISTS 3u /* number in use */
#define ORR_STATUS_NO_ENTRY 4u /* no such context or queue */
#define ORR_STATUS_BUSY 5u
#define ORR_STATUS_NO_RESOURCE 6u /* out of doorbell bindings or slots */
#define ORR_STATUS_FAULT 7u /* memory named by the command is not reachable */

#endif /* ORRERY_FW_MAILBOX_H */
