/* SPDX-License-Identifier: MIT */
/*
 * How a debugger finds its way in the firmware's memory: tables of records, and their fields by
 * name. ORR_TRACE_START carries the address of struct orr_inspect; it is constant data. Every
 * build has the tables and fields named here; more may be there, and are shown as they are.
 *
 * Table "queue" (row n is queue n): exists, context, priority, weight, slice_us, state (ORR_TSTATE_*),
 * producer, next, retired, in_flight, vtime (what RULE_SHARE compares), used_ps, ready_since_ps, wait_memory,
 * wait_value, wait_va (valid in ORR_TSTATE_SEMAPHORE), error, generation, slot (ring slot, 0xff: none), name.
 * Table "context" (row n is context n): exists, queues, quota, used_ps (in this period), throttled, name.
 * Table "port" (row n is SOC_ENGINE(n)): kind, busy, queue, index, started_ps, deadline_ps, preempting.
 */
#ifndef ORRERY_FW_INSPECT_H
#define ORRERY_FW_INSPECT_H

#include <orrery/hw/base.h>

#define ORR_INSPECT_MAGIC 0x5450534e4952524full /* "ORRINSPT" as bytes in memory */

struct orr_inspect_field {
	char name[24]; /* zero-padded */
	uint32_t offset; /* in a row */
	uint16_t bytes; /* 1, 2, 4, 8; text: any */
	uint16_t format; /* ORR_FORMAT_* */
};
ORR_ASSERT_SIZE(struct orr_inspect_field, 32);

#define ORR_FORMAT_UNSIGNED 0u
#define ORR_FORMAT_SIGNED 1u
#define ORR_FORMAT_HEX 2u
#define ORR_FORMAT_BOOL 3u
#define ORR_FORMAT_TEXT 4u
#define ORR_FORMAT_TIME 5u /* picoseconds */
#define ORR_FORMAT_STATE 6u /* ORR_TSTATE_* */

struct orr_inspect_table {
	char name[16]; /* zero-padded */
	uint64_t base; /* address of row 0 */
	uint32_t stride; /* bytes from row to row */
	uint32_t rows;
	uint64_t fields; /* address of struct orr_inspect_field[field_count] */
	uint32_t field_count;
	uint32_t reserved;
};
ORR_ASSERT_SIZE(struct orr_inspect_table, 48);

struct orr_inspect {
	uint64_t magic;
	uint32_t version; /* 1 */
	uint32_t table_count;
	uint64_t tables; /* address of struct orr_inspect_table[table_count] */
};
ORR_ASSERT_SIZE(struct orr_inspect, 24);

#endif /* ORRERY_FW_INSPECT_H */
