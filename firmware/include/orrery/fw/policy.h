/* SPDX-License-Identifier: MIT */
/*
 * The policy's numbers, in one object of the firmware's data: constant for the firmware, but a
 * tool can find it in an image by its magic, change it and sign the image anew, and so try a policy without a
 * build (orrery-step, what-if). The firmware reads it at its start and keeps each value within sane limits of its own.
 */
#ifndef ORRERY_FW_POLICY_H
#define ORRERY_FW_POLICY_H

#include <orrery/hw/base.h>

#define ORR_POLICY_MAGIC 0x59434c4f5052524full /* "ORRPOLCY" as bytes in memory; once in an image, 8-byte aligned */
#define ORR_POLICY_VERSION 1u

struct orr_policy {
	uint64_t magic; /* ORR_POLICY_MAGIC */
	uint32_t version; /* ORR_POLICY_VERSION */
	uint32_t bytes; /* sizeof(struct orr_policy) */
	uint64_t flags; /* ORR_POLICY_F_* */
	uint64_t slice_us; /* time slice of a queue that names none */
	uint64_t bound_us; /* a lower class that was ready and unserved for so long gets one slice */
	uint64_t grace_ns; /* from PREEMPT_GROUP to PREEMPT_NOW for a higher class */
	uint64_t window; /* packets of a queue in one turn, at most */
	uint64_t turn_ns; /* charged to a queue for a turn of the control core, as engine time */
	uint64_t limit_us; /* dispatch limit of a queue that names none */
	uint64_t deadlock_us; /* between two looks for a cycle of waits while others run */
	uint64_t reserved[6]; /* 0 */
};
ORR_ASSERT_OFFSET(struct orr_policy, flags, 16);
ORR_ASSERT_SIZE(struct orr_policy, 128);

#define ORR_POLICY_F_NO_WEIGHTS 1u /* every queue has ORR_WEIGHT_DEFAULT */
#define ORR_POLICY_F_NO_PRIORITIES 2u /* every queue is ORR_PRIORITY_NORMAL */
#define ORR_POLICY_F_NO_PREEMPTION 4u /* a dispatch that runs is left alone, but for watchdog and destroy */

/* The flags by name, for tools: X(bit, "name"). */
#define ORR_POLICY_FLAG_LIST(X) \
	X(ORR_POLICY_F_NO_WEIGHTS, "no_weights") \
	X(ORR_POLICY_F_NO_PRIORITIES, "no_priorities") \
	X(ORR_POLICY_F_NO_PREEMPTION, "no_preemption")

/* The values by name, for tools: X(member, "name", "unit"). */
#define ORR_POLICY_LIST(X) \
	X(flags, "flags", "") \
	X(slice_us, "slice_us", "us") \
	X(bound_us, "bound_us", "us") \
	X(grace_ns, "grace_ns", "ns") \
	X(window, "window", "packets") \
	X(turn_ns, "turn_ns", "ns") \
	X(limit_us, "limit_us", "us") \
	X(deadlock_us, "deadlock_us", "us")

#endif /* ORRERY_FW_POLICY_H */
