/* SPDX-License-Identifier: MIT */
/*
 * What a preempted descriptor leaves in a save area (SOC_ENGINE_SAVE): this layout of this version, whatever the engine
 * looks like inside. Software may move an area about; it has no business inside it. A resume checks all of it and refuses
 * (ORR_DONE_BAD_DESC) what it does not know.
 *
 *   page 0              struct orr_save_header
 *   then, for each work-group that was inside the kernel, up to the number of cores:
 *     one page          struct orr_save_group
 *     vector registers  v0 .. v31, each of `vlen` / 8 bytes; written if vector_bytes says so
 *     ORR_SAVE_ITEMS_BYTES  struct orr_save_item of each item of the group; written if `waits` is not 0
 *     ORR_STACK_BYTES   its stack; pages without a bit in stack_pages are not written, and mean zeros
 *     ORR_LOCAL_BYTES   its work-group memory, with local_pages
 *
 * Each part begins on a page. Bytes of a page behind its contents are not looked at. The stacks of items that wait at a
 * barrier are no part of it: they are in the memory that the descriptor names.
 */
#ifndef ORRERY_HW_SAVE_H
#define ORRERY_HW_SAVE_H

#include "base.h"
#include "engine.h"

#define ORR_SAVE_MAGIC 0x344556415352524full /* "ORRSAVE4" as bytes in memory */
#define ORR_SAVE_VERSION 4u
#define ORR_SAVE_PAGE 4096u
#define ORR_SAVE_ITEMS 1024u /* most items of a group */
#define ORR_SAVE_ITEMS_BYTES 0x6000u

struct orr_save_header {
	uint64_t magic; /* ORR_SAVE_MAGIC; written last, cleared by the resume that takes the area */
	uint32_t version; /* ORR_SAVE_VERSION */
	uint32_t kind; /* ORR_ENGINE_* */
	uint32_t cores; /* of the card's vector unit */
	uint32_t groups; /* vector: struct orr_save_group that follow; else 0 */
	uint32_t group_bytes; /* sizeof(struct orr_save_group) */
	uint32_t vlen; /* bits of a vector register of the card; 0: it has none */
	uint64_t descriptor[8];
	uint64_t next_group; /* vector: first that has not been on a core yet; else 0 */
	uint64_t row; /* copy: what is to be moved next; vector: number of the launch's check (--check); else 0 */
	uint64_t column;
	uint64_t fetched_bytes; /* copy: of what follows; 0: a long descriptor has not been fetched, or there is none */
	uint64_t fetched[ORR_DESC_LONG_BYTES / 8]; /* the long descriptor that `descriptor` points to */
};
ORR_ASSERT_SIZE(struct orr_save_header, 384);

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
	uint64_t vl, vtype, vstart; /* 0 without vector registers */
	uint32_t vcsr;
	uint32_t vector_bytes; /* 4 * vlen: the vector registers are here; 0: they are zeros */
};
ORR_ASSERT_SIZE(struct orr_save_hart, 648);

/* An item that waits at a barrier, or is to go on behind one; else zeros. */
struct orr_save_item {
	uint64_t pc, sp;
	uint32_t fcsr;
	uint32_t reserved; /* 0 */
};
ORR_ASSERT_SIZE(struct orr_save_item, 24);

#define ORR_SAVE_WAITING 1u /* items below `item` wait at the barrier `barrier` */
#define ORR_SAVE_RELEASED 2u /* items above `item`, and `item` unless in_item, go on behind a barrier; else they are to start */

struct orr_save_group {
	uint64_t group; /* linear number */
	uint32_t item;
	uint32_t in_item; /* 1: hart and stack are those of the item; 0: it is to start */
	uint32_t stack_pages; /* bit n: page n from the bottom is here */
	uint32_t local_pages;
	uint32_t place; /* of its item stacks; no two groups have the same */
	uint32_t waits; /* ORR_SAVE_WAITING, ORR_SAVE_RELEASED */
	uint64_t barrier; /* a0 of the barrier; 0 unless ORR_SAVE_WAITING */
	uint64_t owed; /* what it had on its way to other cards, as its unit knows it; 0: nothing */
	struct orr_save_hart hart; /* zeros unless in_item */
};
ORR_ASSERT_SIZE(struct orr_save_group, 696);

#endif /* ORRERY_HW_SAVE_H */
