/* SPDX-License-Identifier: MIT */
/*
 * A queue: a ring in user memory, and a status line in kernel-owned memory that no process can
 * write. Each index is one aligned 64-bit word with one writer, counts up for ever, and
 * names packet index % entries.
 */
#ifndef ORRERY_FW_QUEUE_H
#define ORRERY_FW_QUEUE_H

#include <orrery/hw/base.h>

#define ORR_RING_MAX_ENTRIES 65536u
#define ORR_PACKET_SIZE 64u

/* In user memory, 64-byte aligned, followed at once by entries * 64 bytes of packets. */
struct orr_ring {
	uint64_t producer; /* by the process: packets written; store-release before the doorbell */
	uint64_t pad0[7];
	uint64_t consumer; /* by the firmware: all packets below it have finished, their slots are free */
	uint64_t consumer_time_ps; /* model time of the last change; stored before consumer */
	uint64_t pad1[6];
	uint64_t error; /* by the firmware, sticky: ORR_QERR_*; the queue has stopped */
	uint64_t error_index; /* packet that failed */
	uint64_t error_address; /* VA, pc or value that failed; 0 if there is none */
	uint64_t error_detail; /* ORR_FAULT_*, mcause, or offending word; see the code */
	uint64_t error_item; /* KERNEL_TRAP, BAD_DESC, and FAULT of an engine: SOC_DONE_ITEM */
	uint64_t error_other; /* the same: SOC_DONE_OTHER */
	uint64_t pad2[2];
	uint64_t reserved[8];
};
ORR_ASSERT_OFFSET(struct orr_ring, consumer, 64);
ORR_ASSERT_OFFSET(struct orr_ring, error, 128);
ORR_ASSERT_SIZE(struct orr_ring, 256);

/* In kernel-owned host memory, one a queue, written by the firmware only. */
struct orr_queue_status {
	uint64_t completed; /* as orr_ring.consumer; stored last */
	uint64_t time_ps; /* model time of the last change */
	uint64_t error; /* ORR_QERR_* */
	uint64_t error_index;
	uint64_t error_address;
	uint64_t error_detail;
	uint64_t generation;
	uint64_t reserved;
};
ORR_ASSERT_SIZE(struct orr_queue_status, 64);

/*
 * ABI 1.2: in kernel-owned host memory too, one a queue, written by the firmware only: what QUEUE_STATS
 * says, as it was when something of the queue last stopped running. It stays when the queue goes.
 */
struct orr_queue_usage {
	uint64_t vector_ps; /* vector core time used */
	uint64_t copy_ps; /* copy engine time used */
	uint64_t reserved[6];
};
ORR_ASSERT_SIZE(struct orr_queue_usage, 64);

/* State in ORR_MBOX_QUEUE_INFO. */
#define ORR_QUEUE_IDLE 0u
#define ORR_QUEUE_RUNNING 1u
#define ORR_QUEUE_WAITING 2u /* on a semaphore */
#define ORR_QUEUE_STOPPED 3u /* by an error */

/* Why a queue stopped. */
#define ORR_QERR_NONE 0u
#define ORR_QERR_BAD_OPCODE 1u /* detail: the packet's first word */
#define ORR_QERR_NOT_IMPLEMENTED 2u /* a defined packet that this firmware lacks; detail: first word */
#define ORR_QERR_BAD_PACKET 3u /* detail: number of the 64-bit word that is not valid */
#define ORR_QERR_BAD_INDEX 4u /* producer behind, or further ahead than the ring; address: producer */
#define ORR_QERR_RING_FAULT 5u /* the ring is not readable or writable; address: VA, detail: ORR_FAULT_* */
#define ORR_QERR_FAULT 6u /* address: VA, detail: ORR_FAULT_* */
#define ORR_QERR_KERNEL_TRAP 7u /* address: pc, detail: mcause; or as ORR_TRAP_* of hw/kernel_abi.h says */
#define ORR_QERR_TIMEOUT 8u /* a dispatch ran over its limit; address: 0 */
#define ORR_QERR_BAD_DESC 9u /* an engine refused the descriptor that the packet asked for */
#define ORR_QERR_FIRMWARE 10u /* the firmware crashed while it worked for this queue; detail: mcause */
#define ORR_QERR_GANG 11u /* the gang did not come together in time, to start or to resume (struct orr_packet_gang); detail: members that had come, or card that lacked << 32, also with ORR_GANG_PRECEDED, ORR_GANG_STARTED; or ORR_GANG_NO_PLACE */
#define ORR_QERR_LOST 12u /* what the firmware knew of this queue did not survive its restart */
#define ORR_QERR_POISON 13u /* waited for a semaphore that has failed; address: its VA, detail: failure word (fw/failure.h) */
#define ORR_QERR_ABORTED 14u /* somebody asked for it: QUEUE_ABORT, QUEUE_DESTROY, or the end of its process */
#define ORR_QERR_WAIT_LIMIT 15u /* a WAIT came to its limit; address: the semaphore's VA, detail: its value then */
#define ORR_QERR_ABANDONED 16u /* in failure words: nobody is left who may signal the semaphore */
#define ORR_QERR_PEER_LOST 17u /* in failure words: all who may signal the semaphore are on a card that cannot be reached */

#endif /* ORRERY_FW_QUEUE_H */
