/* SPDX-License-Identifier: MIT */
/*
 * Records that the firmware writes to its trace port (SOC_TRACE), a word at a time: a header,
 * then its words. They exist in recordings and replays only; the time of a record is that
 * of its header. A reader skips types that it does not know. "queue" is a queue's number; "memory" of
 * a semaphore is its address as SOC_MMU_RESULT gives it, all-ones for one on a peer.
 */
#ifndef ORRERY_FW_TRACE_H
#define ORRERY_FW_TRACE_H

#include <orrery/hw/base.h>

/* type[7:0] words[15:8] a[31:16] b[63:32] */
#define ORR_TRACE_HEADER(type, words, a, b) \
	((uint64_t)(type) | (uint64_t)(words) << 8 | (uint64_t)((a) & 0xffffu) << 16 | (uint64_t)((b) & 0xffffffffu) << 32)
#define ORR_TRACE_TYPE(header) ((uint32_t)((header) & 0xffu))
#define ORR_TRACE_WORDS(header) ((uint32_t)((header) >> 8 & 0xffu))
#define ORR_TRACE_A(header) ((uint32_t)((header) >> 16 & 0xffffu))
#define ORR_TRACE_B(header) ((uint32_t)((header) >> 32))
#define ORR_TRACE_NONE 0xffffu /* a queue: none */

#define ORR_TRACE_START 1u /* b: ABI; 1: address of struct orr_inspect, 2: ORR_BB_START_* | guilty queue << 32 */
#define ORR_TRACE_MAIL 2u /* a: opcode, b: sequence; 1: status */
#define ORR_TRACE_CONTEXT 3u /* a: context, b: 1 created, 0 destroyed */
#define ORR_TRACE_QUEUE 4u /* a: queue, b: context, all-ones: destroyed; 1: priority | weight << 16 | slice us << 32 */
#define ORR_TRACE_DOORBELL 5u /* a: queue; 1: producer */
#define ORR_TRACE_STATE 6u /* a: queue, b: ORR_TSTATE_* from now on */
/*
 * A decision: a resource goes to a queue (none: nobody may have it). The state of all queues at the header's
 * moment, as struct orr_inspect shows it, is the state on which it was taken. a: queue, b: ORR_RULE_* |
 * ORR_RESOURCE_* << 8 | candidates << 16 (at most 65535); 1: index of the packet
 */
#define ORR_TRACE_DECISION 7u
#define ORR_TRACE_START_JOB 8u /* a: queue, b: port | opcode << 16; 1: index, 2: groups or bytes */
#define ORR_TRACE_END_JOB 9u /* a: queue, b: port | ORR_DONE_* << 16; 1: index, 2: start ps, 3: end ps, 4: used ps */
#define ORR_TRACE_PREEMPT 10u /* a: victim, b: port | SOC_PREEMPT_* << 8 | queue that it is for << 16; 1: index */
#define ORR_TRACE_RESUME 11u /* a: queue, b: port; 1: index */
#define ORR_TRACE_WAIT 12u /* a: queue, b: 0; 1: memory, 2: value wanted, 3: VA, 4: index */
#define ORR_TRACE_WAKE 13u /* a: queue, b: ORR_WAKE_*; 1: memory, 2: value seen */
#define ORR_TRACE_SIGNAL 14u /* a: queue, b: waiters woken; 1: memory, 2: value, 3: VA */
#define ORR_TRACE_POKE 15u /* b: waiters woken; 1: memory */
#define ORR_TRACE_RETIRE 16u /* a: queue; 1: packets finished in all */
#define ORR_TRACE_ERROR 17u /* a: queue, b: ORR_QERR_*; 1: index, 2: address, 3: detail */
#define ORR_TRACE_DEADLOCK 18u /* a: waits, b: whose packets hold the signal | edge << 16 | edges << 24; 1: memory, 2: value, 3: now */
#define ORR_TRACE_QUOTA 19u /* a: context, b: 1 over its quota, 0 again within; 1: used ps in the period */
#define ORR_TRACE_GANG 20u /* a: queue, b: ORR_GANG_*; 1: round, 2: memory of the board */
#define ORR_TRACE_SLOT 21u /* a: queue that gets it, b: slot | queue that loses it << 16 */
#define ORR_TRACE_NAME 22u /* a: number, b: ORR_NAME_*; 1..3: text */

/* State of a queue. */
#define ORR_TSTATE_IDLE 0u /* nothing to do */
#define ORR_TSTATE_READY 1u /* waits for its turn */
#define ORR_TSTATE_TURN 2u /* the core works for it */
#define ORR_TSTATE_COPY_PORT 3u /* waits for a copy engine */
#define ORR_TSTATE_VECTOR_PORT 4u /* waits for a vector port */
#define ORR_TSTATE_SEMAPHORE 5u
#define ORR_TSTATE_OWN 6u /* its own packets are in flight */
#define ORR_TSTATE_SUSPENDED 7u /* its dispatch was preempted, and waits to go on */
#define ORR_TSTATE_QUOTA 8u /* its context is over its quota */
#define ORR_TSTATE_GANG 9u /* waits for the other members */
#define ORR_TSTATE_STOPPED 10u

/* Why this queue. */
#define ORR_RULE_ONLY 1u /* the only candidate */
#define ORR_RULE_PRIORITY 2u /* the only one of the highest class */
#define ORR_RULE_SHARE 3u /* least time used for its weight, in the highest class */
#define ORR_RULE_BOUND 4u /* a lower class whose bound on waiting has come */
#define ORR_RULE_RESUME 5u /* was preempted, and is first of its class again */
#define ORR_RULE_GANG 6u /* its gang is complete */
#define ORR_RULE_PREEMPT 7u /* takes the place of a lower class */
#define ORR_RULE_SLICE 8u /* takes the place of one whose time slice is over */
#define ORR_RULE_NOBODY 9u /* candidates are all over their quota, or a gang holds the resource */

#define ORR_RESOURCE_TURN 1u /* the control core's attention */
#define ORR_RESOURCE_COPY 2u /* a copy engine */
#define ORR_RESOURCE_VECTOR 3u /* a vector port */
#define ORR_RESOURCE_SLOT 4u /* a ring slot */

/* How traces show the kinds of engines (ORR_ENGINE_*): X(NAME, ORR_RESOURCE_*, ORR_TSTATE_* of who waits for a port). */
#define ORR_TRACE_ENGINE_LIST(X) \
	X(COPY, ORR_RESOURCE_COPY, ORR_TSTATE_COPY_PORT) \
	X(VECTOR, ORR_RESOURCE_VECTOR, ORR_TSTATE_VECTOR_PORT)

#define ORR_WAKE_LOCAL 1u /* a signal of a queue of this card */
#define ORR_WAKE_PEER 2u
#define ORR_WAKE_MAP 3u /* the context's mappings changed: it looked again */
#define ORR_WAKE_CLOSED 4u /* nobody is left who may signal */

#define ORR_GANG_JOINED 1u
#define ORR_GANG_HELD 2u /* this card's ports and cores are set aside for it */
#define ORR_GANG_GO 3u
#define ORR_GANG_FAILED 4u
#define ORR_GANG_OFF 5u /* it has started, and is preempted as a whole */

#endif /* ORRERY_FW_TRACE_H */
