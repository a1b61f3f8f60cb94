/* SPDX-License-Identifier: MIT */
/*
 * Engine descriptors: what the firmware writes to an engine's dispatch port (soc.h). 64 bytes,
 * all addresses virtual in the descriptor's ASID; reserved fields 0, or the engine reports
 * ORR_DONE_BAD_DESC. An engine runs one descriptor at a time. A longer one stands in memory, and
 * what is written to the port says where (struct orr_desc_long).
 */
#ifndef ORRERY_HW_ENGINE_H
#define ORRERY_HW_ENGINE_H

#include "base.h"

#define ORR_ENGINE_COPY 1u /* kind: copy and fill */
#define ORR_ENGINE_VECTOR 2u /* kind: kernels; all vector ports share the card's vector cores */

/* All kinds, in order: X(NAME, "name"). */
#define ORR_ENGINE_KIND_LIST(X) \
	X(COPY, "copy") \
	X(VECTOR, "vector")

#define ORR_DESC_COPY 1u
#define ORR_DESC_FILL 2u
#define ORR_DESC_KERNEL 3u
#define ORR_DESC_PATTERN 4u /* a fill, in the layout of struct orr_desc_pattern */
#define ORR_DESC_LONG 5u /* struct orr_desc_long */
#define ORR_DESC_REDUCE 12u /* struct orr_desc_reduce */
#define ORR_DESC_COPIES 13u /* copies that a list in memory names: struct orr_desc_copies */
#define ORR_DESC_BOX 14u /* long only: struct orr_desc_box */
#define ORR_DESC_TELL 15u /* long only: struct orr_desc_tell */

/* orr_desc_kernel.flags. RESIDENT: all groups are on cores at once; it gets them together, as soon as so many are
 * free, before ports of its own priority and lower ones; more groups than cores: ORR_DONE_BAD_DESC. */
#define ORR_DESC_F_RESIDENT 1u

/*
 * Copy: `planes` planes of `rows` rows of `row_bytes`. Row r of plane p goes from
 * src + (p * src_height + r) * src_pitch to dst + (p * dst_height + r) * dst_pitch. A linear copy
 * has rows 1 and pitches 0, a 2-D one planes 0. Overlap within a copy: undefined order of bytes.
 * Fill: the low `pattern_bytes` (1, 2, 4 or 8) bytes of `pattern`, repeated from each row's
 * start; row_bytes and dst are multiples of pattern_bytes; src, src_pitch and planes are 0.
 * At most 2^40 bytes in total. Both may be peer memory (the source since 2.2): from there the engine asks for so much
 * ahead as the SKU says (link.reads).
 */
struct orr_desc_copy {
	uint16_t op; /* ORR_DESC_COPY or ORR_DESC_FILL */
	uint16_t pattern_bytes; /* fill only, else 0 */
	uint32_t asid;
	uint64_t src;
	uint64_t dst;
	uint64_t row_bytes;
	uint32_t rows; /* >= 1 */
	uint32_t planes; /* 0: as 1 */
	uint64_t src_pitch;
	uint64_t dst_pitch;
	uint64_t pattern; /* fill: the pattern; copy: src_height | dst_height << 32, 0 unless planes > 1 */
};
ORR_ASSERT_SIZE(struct orr_desc_copy, 64);

/* The same fill as of struct orr_desc_copy, its words in the order in which processes' packets have them. */
struct orr_desc_pattern {
	uint16_t op; /* ORR_DESC_PATTERN */
	uint16_t reserved0;
	uint32_t asid;
	uint64_t pattern;
	uint64_t dst;
	uint64_t row_bytes;
	uint32_t rows; /* >= 1 */
	uint32_t pattern_bytes; /* 1, 2, 4, 8 */
	uint64_t dst_pitch;
	uint64_t reserved1[2];
};
ORR_ASSERT_SIZE(struct orr_desc_pattern, 64);

/* orr_desc_reduce.type */
#define ORR_TYPE_I8 1u
#define ORR_TYPE_U8 2u
#define ORR_TYPE_I32 3u
#define ORR_TYPE_U32 4u
#define ORR_TYPE_I64 5u
#define ORR_TYPE_U64 6u
#define ORR_TYPE_F16 7u
#define ORR_TYPE_BF16 8u
#define ORR_TYPE_F32 9u
#define ORR_TYPE_F64 10u
/* orr_desc_reduce.function */
#define ORR_REDUCE_ADD 1u
#define ORR_REDUCE_MIN 2u
#define ORR_REDUCE_MAX 3u
#define ORR_REDUCE_PRODUCT 4u

/*
 * Copy with reduction: each element of dst becomes dst `function` src, in rows as in a copy. src, dst, row_bytes
 * and, with several rows, the pitches are multiples of the element's size. dst is read too, so it needs both
 * rights, and must not be peer memory (ORR_FAULT_PEER_READ). src may be a multicast (ORR_R_MULTICAST, 2.6): its
 * element is that of the first member, `function` that of the second, and so on. Overlap, other than src = dst with equal
 * pitches: undefined. Results are the same bits always: integers wrap around; floating-point ones are rounded to
 * nearest, ties to even, at each element and with subnormals; a NaN result is the type's quiet NaN without
 * payload and sign. MIN and MAX are those of vfmin and vfmax: a NaN loses against a number, -0 is less than +0.
 */
struct orr_desc_reduce {
	uint16_t op; /* ORR_DESC_REDUCE */
	uint16_t reserved0;
	uint32_t asid;
	uint64_t src;
	uint64_t dst;
	uint64_t row_bytes;
	uint32_t rows; /* >= 1 */
	uint16_t type; /* ORR_TYPE_* */
	uint16_t function; /* ORR_REDUCE_* */
	uint64_t src_pitch;
	uint64_t dst_pitch;
	uint64_t reserved1;
};
ORR_ASSERT_OFFSET(struct orr_desc_reduce, type, 36);
ORR_ASSERT_SIZE(struct orr_desc_reduce, 64);

/* One linear copy of a list. */
struct orr_copy_entry {
	uint64_t src;
	uint64_t dst;
	uint64_t bytes;
	uint64_t reserved;
};
ORR_ASSERT_SIZE(struct orr_copy_entry, 32);

/*
 * Scatter and gather: `entries` copies, one after the other, of struct orr_copy_entry at `list`. The engine reads an
 * entry when it comes to it, once (and again when it resumes in the middle of it). An entry whose reserved word is not 0 or that
 * asks for more than is left of `bytes`, or a sum of entries that is not `bytes`: ORR_DONE_BAD_DESC, with all before it done.
 */
struct orr_desc_copies {
	uint16_t op; /* ORR_DESC_COPIES */
	uint16_t reserved0;
	uint32_t asid;
	uint64_t list; /* VA, 32-byte aligned; not peer memory */
	uint64_t reserved1;
	uint64_t bytes; /* of all entries together; at most 2^40 */
	uint32_t entries; /* >= 1 */
	uint32_t reserved2;
	uint64_t reserved3[3];
};
ORR_ASSERT_OFFSET(struct orr_desc_copies, entries, 32);
ORR_ASSERT_SIZE(struct orr_desc_copies, 64);

/*
 * A descriptor in memory. The engine fetches it when it starts, once: what is written there later changes nothing, also
 * not for one that is preempted and goes on. Its word 0 is {op, 16 bits that the op names, asid 0}: it runs in the ASID
 * of what points to it. No descriptor of a kind of engine that SOC_KIND_DESC_BYTES says is shorter: ORR_DONE_BAD_DESC.
 */
struct orr_desc_long {
	uint16_t op; /* ORR_DESC_LONG */
	uint16_t reserved0;
	uint32_t asid;
	uint64_t descriptor; /* VA, 8-byte aligned; not peer memory */
	uint32_t bytes; /* of the descriptor; a multiple of 8 up to ORR_DESC_LONG_BYTES */
	uint32_t reserved1;
	uint64_t reserved2[5];
};
#define ORR_DESC_LONG_BYTES 256u
ORR_ASSERT_OFFSET(struct orr_desc_long, bytes, 16);
ORR_ASSERT_SIZE(struct orr_desc_long, 64);

/*
 * Copy of a box in up to five dimensions: rows of row_bytes, the first of them at src and dst; row (i, j, ..) is
 * i * stride[0] + j * stride[1] + .. behind that, i below count[0], j below count[1]. At most 2^40 rows and 2^40 bytes.
 * Otherwise as a copy.
 */
#define ORR_BOX_DIMENSIONS 4u
struct orr_desc_box {
	uint16_t op; /* ORR_DESC_BOX */
	uint16_t dimensions; /* beside that of a row: 1 .. ORR_BOX_DIMENSIONS; all of those behind them is 0 */
	uint32_t asid; /* 0 */
	uint64_t src;
	uint64_t dst;
	uint64_t row_bytes;
	uint32_t count[ORR_BOX_DIMENSIONS]; /* >= 1 */
	uint64_t src_stride[ORR_BOX_DIMENSIONS];
	uint64_t dst_stride[ORR_BOX_DIMENSIONS];
};
ORR_ASSERT_OFFSET(struct orr_desc_box, src_stride, 48);
ORR_ASSERT_SIZE(struct orr_desc_box, 112);

/*
 * What a process uses its addresses for, for copy engines of a card that checks kernels' use of memory (ORR_R_CHECKS); others
 * complete it and do nothing. In a heap kernels may touch allocations only, and read of them in VRAM only what was written
 * since. Nothing is known of addresses outside of heaps. Other processes' findings depend on it only for memory they share.
 */
#define ORR_TELL_HEAP 1u /* the range is a heap, without allocations */
#define ORR_TELL_NO_HEAP 2u /* it is none any more */
#define ORR_TELL_ALLOCATED 3u /* an allocation, of which nothing is written */
#define ORR_TELL_FREED 4u /* allocations that begin in the range are none any more */
struct orr_desc_tell {
	uint16_t op; /* ORR_DESC_TELL */
	uint16_t what; /* ORR_TELL_* */
	uint32_t asid; /* 0 */
	uint64_t va;
	uint64_t bytes; /* > 0; the range ends at 2^47 at the latest */
};
ORR_ASSERT_SIZE(struct orr_desc_tell, 24);

/*
 * Kernel: grid_x * grid_y * grid_z work-groups of block_x * block_y * block_z work-items. A
 * work-group runs on one vector core, its work-items one after the other in order of their
 * linear number (x fastest); groups run in any order. See kernel_abi.h for what an item sees.
 * Items that wait at a barrier, all but item 0, need stacks of their own: item i of a group in
 * place p (0 .. min(cores, groups) - 1, as the engine likes) has the pages from
 * item_stacks + (p * items + i) * item_stack_pages * ORR_PAGE_SIZE on, to read and write.
 */
struct orr_desc_kernel {
	uint16_t op; /* ORR_DESC_KERNEL */
	uint16_t flags; /* ORR_DESC_F_* */
	uint32_t asid;
	uint64_t entry; /* VA of the first instruction; 2-byte aligned, executable */
	uint64_t args; /* VA, given to every work-item in a0; may be 0 */
	uint32_t grid_x, grid_y, grid_z; /* >= 1; the product <= 2^31 */
	uint16_t block_x, block_y, block_z; /* >= 1; the product <= 1024 */
	uint16_t item_stack_pages; /* <= ORR_ITEM_STACK_MAX_PAGES; 0: no item waits at a barrier */
	uint32_t local_bytes; /* work-group memory wanted, <= ORR_LOCAL_BYTES; zeroed for each group */
	uint64_t item_stacks; /* VA below 2^47, page aligned; 0 exactly if item_stack_pages is */
	uint64_t reserved;
};
ORR_ASSERT_OFFSET(struct orr_desc_kernel, grid_x, 24);
ORR_ASSERT_OFFSET(struct orr_desc_kernel, block_x, 36);
ORR_ASSERT_OFFSET(struct orr_desc_kernel, local_bytes, 44);
ORR_ASSERT_OFFSET(struct orr_desc_kernel, item_stacks, 48);
ORR_ASSERT_SIZE(struct orr_desc_kernel, 64);

/* SOC_DONE_ITEM: linear numbers of a work-group and of a work-item in it. */
#define ORR_DONE_ITEM_BITS 16

/* Status of a completion. */
#define ORR_DONE_OK 0u
#define ORR_DONE_BAD_DESC 1u /* detail: 0 */
#define ORR_DONE_FAULT 2u /* detail: the VA; fault code in SOC_DONE_FAULT */
#define ORR_DONE_TRAP 3u /* a work-item trapped: detail: its pc; cause in SOC_DONE_FAULT (mcause, or ORR_TRAP_* of kernel_abi.h) */
#define ORR_DONE_ABORTED 4u /* by the dispatch port's abort register */
#define ORR_DONE_PREEMPTED 5u /* saved, SOC_ENGINE_RESUME goes on; detail: bytes saved */

#endif /* ORRERY_HW_ENGINE_H */
