/* SPDX-License-Identifier: MIT */
/*
 * Where the trace sink (ORR_R_SINK in bar0.h) puts records: a head, and at once behind it the ring. A record
 * there is the model time of its header in picoseconds, the header (hw/trace.h has the framing) and its
 * words, 64 bits each. Word number n of all that were written is in place n % (bytes of the ring / 8).
 */
#ifndef ORRERY_HW_TRACE_SINK_H
#define ORRERY_HW_TRACE_SINK_H

#include "base.h"

struct orr_trace_sink {
    /*
     * By the card: words of whole records written since the ring was set, stored last. A record of which a
     * word is ORR_SINK_MARGIN or less from being written over, when head is read again behind it, is not to
     * be believed.
     */
    uint64_t head;
    uint64_t reserved[7];
};
ORR_ASSERT_SIZE(struct orr_trace_sink, 64);

#define ORR_SINK_WORDS(header) (2u + (uint32_t)((header) >> 8 & 0xffu)) /* of a record in the ring */
#define ORR_SINK_MARGIN 257u                                            /* words of the longest record */

/*
 * Records of the hardware itself (ORR_R_SINK_ASK, 2.10), which stand whole between those of the firmware.
 * Types of the firmware's that are copied are below 64.
 *
 * What a job did that has ended at a port of an engine, or a part of it that was preempted: written when its
 * completion is handed to the control core, so the firmware's record of it is behind. Its time is the end.
 */
#define ORR_SINK_JOB \
    0xf0u /* a: port, b: ORR_DONE_*; 1: start ps, 2: end ps, 3: bit n: ORR_JOB_n is not 0; then these */

/*
 * The card's counters at a moment, as a snapshot has them: when the clock comes to the first event at or
 * behind each multiple of the period, before that event. While nothing happens there are none.
 */
#define ORR_SINK_SAMPLE \
    0xf1u /* b: its number, from 1 since the period was written; 1, 2: set; then these counters */

/*
 * Where a vector core was in a kernel at `count` multiples of the period, one after the other; the record's
 * time is the first of them (ORR_R_SINK_PC_PERIOD, 2.12). Written when what the core was at is over, so its
 * time may be before that of records in front of it. Cores that have no work-group, or are handed, save or
 * load one, have none.
 */
#define ORR_SINK_PC                                                                                         \
    0xf2u /* a: port, b: core | ORR_PC_* << 16; 1: start ps of the job, 2: pc, 3: group, 4: asid | count << \
             32 */
/*
 * The same of each instruction of one core (ORR_R_SINK_STEP_CORE, 2.12): `count` cycles from the record's
 * time on, those that it waits for memory before those that it executes. One of each cause.
 */
#define ORR_SINK_STEP 0xf3u /* a, b and words as ORR_SINK_PC has them */
/* What it was at: what has that counter's time. */
#define ORR_PC_ISSUE \
    0u /* what none of the others has: executes instructions, or waits for vector ones before */
#define ORR_PC_LATENCY 1u   /* VECTOR_LATENCY_PS */
#define ORR_PC_BANDWIDTH 2u /* VECTOR_BANDWIDTH_PS: the instruction asked memory for what it waits for */
#define ORR_PC_LINK 3u      /* VECTOR_LINK_PS */
#define ORR_PC_LAUNCH 4u  /* VECTOR_LAUNCH_PS: before the work-item's first instruction, or behind a barrier \
                           */
#define ORR_PC_BARRIER 5u /* comes to a barrier, VECTOR_BARRIERS */
#define ORR_PC_PAUSE 6u /* VECTOR_PAUSE_PS */
#define ORR_PC_CAUSES 7u

/*
 * X(number, NAME, "meaning"). Each is what ORR_CTR_* of that name counts, of this job alone; of a copy or
 * fill all that is not said to be its own is 0 (of kernels: all of copies). Numbers keep their meaning; new
 * ones come at the end.
 */
/* clang-format off */
#define ORR_JOB_COUNTER_LIST(X) \
	X(0, CORES, "different vector cores that ran it") \
	X(1, BUSY_PS, "of vector cores, VECTOR_BUSY_PS; of a copy its own, COPY_BUSY_PS") \
	X(2, VRAM_READ, "bytes of the card's memory, tables and saved state among them; with the next one VRAM_VECTOR_BYTES, of a copy its own, VRAM_COPY_BYTES") \
	X(3, VRAM_WRITTEN, "bytes of the card's memory, of a copy its own") \
	X(4, HOST_READ, "bytes of host memory, PCIE_READ_BYTES, of a copy its own") \
	X(5, HOST_WRITTEN, "bytes of host memory, PCIE_WRITE_BYTES, of a copy its own") \
	X(6, LINK_READ, "bytes that came from other cards, of a copy its own; of a kernel those that were asked for") \
	X(7, LINK_WRITTEN, "bytes that left for other cards, of a copy its own") \
	X(8, MOVED, "bytes that a copy or fill moved, COPY_BYTES") \
	X(9, QUEUED_PS, "VECTOR_QUEUED_PS") \
	X(10, GROUPS, "VECTOR_GROUPS") \
	X(11, ITEMS, "VECTOR_ITEMS") \
	X(12, INSTRUCTIONS, "VECTOR_INSTRUCTIONS") \
	X(13, LATENCY_PS, "VECTOR_LATENCY_PS") \
	X(14, BANDWIDTH_PS, "VECTOR_BANDWIDTH_PS") \
	X(15, LINK_PS, "VECTOR_LINK_PS") \
	X(16, LAUNCH_PS, "VECTOR_LAUNCH_PS") \
	X(17, BARRIERS, "VECTOR_BARRIERS") \
	X(18, SIMD_INT, "VECTOR_SIMD_INT") \
	X(19, SIMD_FP, "VECTOR_SIMD_FP") \
	X(20, SIMD_MOVES, "VECTOR_SIMD_MOVES") \
	X(21, SIMD_LOADS, "VECTOR_SIMD_LOADS") \
	X(22, SIMD_STORES, "VECTOR_SIMD_STORES") \
	X(23, SIMD_CONFIG, "VECTOR_SIMD_CONFIG") \
	X(24, LANES_ACTIVE, "VECTOR_LANES_ACTIVE") \
	X(25, LANES, "VECTOR_LANES") \
	X(26, FLOPS_F16, "VECTOR_FLOPS_F16") \
	X(27, FLOPS_F32, "VECTOR_FLOPS_F32") \
	X(28, FLOPS_F64, "VECTOR_FLOPS_F64") \
	X(29, TLB_LOOKUPS, "VECTOR_TLB_LOOKUPS") \
	X(30, TLB_MISSES, "VECTOR_TLB_MISSES") \
	X(31, TLB_WALKED, "VECTOR_TLB_WALKED") \
	X(32, COPY_SETUP_PS, "of a copy its own, COPY_SETUP_PS") \
	X(33, COPY_ROWS_PS, "COPY_ROWS_PS") \
	X(34, COPY_VRAM_PS, "COPY_VRAM_PS") \
	X(35, COPY_PCIE_PS, "COPY_PCIE_PS") \
	X(36, COPY_LATENCY_PS, "COPY_LATENCY_PS") \
	X(37, COPY_TRANSLATION_PS, "COPY_TRANSLATION_PS") \
	X(38, COPY_LINK_PS, "COPY_LINK_PS") \
	X(39, COPY_CREDIT_PS, "COPY_CREDIT_PS") \
	X(40, COPY_PEER_PS, "COPY_PEER_PS; what BUSY_PS has beside these nine is COPY_MOVE_PS") \
	X(41, LINK_PORTS, "of a copy: bit n: bytes of it went through link port n; of kernels 0") \
	X(42, PAUSE_PS, "VECTOR_PAUSE_PS")
/* clang-format on */
#define ORR_JOB_COUNTER_ENUM_(number, NAME, ...) ORR_JOB_##NAME = number,
enum orr_job_counter { ORR_JOB_COUNTER_LIST(ORR_JOB_COUNTER_ENUM_) ORR_JOB_COUNTERS };

#endif /* ORRERY_HW_TRACE_SINK_H */
