/* SPDX-License-Identifier: MIT */
/*
 * What a preempted descriptor leaves in a save area (SOC_ENGINE_SAVE): this layout of this version, whatever the engine
 * looks like inside. Software may move an area about; it has no business inside it. A resume checks all of it and refuses
 * (ORR_DONE_BAD_DESC) what it does not know.
 *
 *   page 0              struct orr_save_header
 *   then, for each work-group that was inside the kernel, up to the number of cores:
 *     one page          struct orr_save_group
 *     ORR_STACK_BYTES   its stack; pages without a bit in stack_pages are not written, and mean zeros
 *     ORR_LOCAL_BYTES   its work-group memory, with local_pages
 *
 * Bytes of a page behind its struct are not looked at.
 */
#ifndef ORRERY_HW_SAVE_H
#define ORRERY_HW_SAVE_H

#include "base.h"

#define ORR_SAVE_MAGIC 0x324556415352524full /* "ORRSAVE2" as bytes in memory */
#define ORR_SAVE_VERSION 2u
#define ORR_SAVE_PAGE 4096u

struct orr_save_header {
	uint64_t magic; /* ORR_SAVE_MAGIC; written last, cleared by the resume that takes the area */
	uint32_t version; /* ORR_SAVE_VERSION */
	uint32_t kind; /* ORR_ENGINE_* */
	uint32_t cores; /* of the card's vector unit */
	uint32_t groups; /* vector: struct orr_save_group that follow; else 0 */
	uint32_t group_bytes; /* sizeof(struct orr_save_group) */
	uint32_t reserved; /* 0 */
	uint64_t descriptor[8];
	uint64_t next_group; /* vector: first that has not been on a core yet; else 0 */
	uint64_t row; /* copy: what is to be moved next; else 0 */
	uint64_t column;
};
ORR_ASSERT_SIZE(struct orr_save_header, 120);

/* Registers of the item that a core was in. */
struct orr_save_hart {
	uint64_t x[32];
	uint64_t f[32]; /* NaN-boxed singles */
	uint64_t pc;
	uint64_t minstret, mcycle;
	uint64_t mstatus, mie, mtvec, mscratch, mepc, mcause, mtval;
	uint64_t reservation_address, reservation_value;
	uint32_t reservation_size; /* 0: none; 4 or 8 */
	uint32_t fcsr;
};
ORR_ASSERT_SIZE(struct orr_save_hart, 616);

struct orr_save_group {
	uint64_t group; /* linear number */
	uint32_t item;
	uint32_t in_item; /* 1: hart and stack are those of the item; 0: it is to start */
	uint32_t stack_pages; /* bit n: page n from the bottom is here */
	uint32_t local_pages;
	struct orr_save_hart hart; /* zeros unless in_item */
};
ORR_ASSERT_SIZE(struct orr_save_group, 640);

#endif /* ORRERY_HW_SAVE_H */
