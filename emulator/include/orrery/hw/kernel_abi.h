/* SPDX-License-Identifier: MIT */
/*
 * What a work-item sees: RV64IMAFDC (lp64d), user CSRs, a stack, work-group memory. It starts
 * at the kernel's entry with a0 = args, sp = top of its stack, ra = ORR_KERNEL_EXIT and all
 * else zero; jumping to ORR_KERNEL_EXIT (that is: returning) ends it. ecall, ebreak and every
 * exception end the whole kernel with ORR_DONE_TRAP or, for a bad address, ORR_DONE_FAULT;
 * ORR_CALL_* below are the ecalls that do not.
 */
#ifndef ORRERY_HW_KERNEL_ABI_H
#define ORRERY_HW_KERNEL_ABI_H

#include "base.h"

/* Addresses above 2^47 never reach the MMU: they belong to the vector core. */
#define ORR_KERNEL_EXIT 0xfffffffffffff000ull
#define ORR_STACK_TOP 0xffffffff00100000ull /* grows down, ORR_STACK_BYTES, not cleared */
#define ORR_STACK_BYTES 0x10000u
#define ORR_LOCAL_BASE 0xffffffff40000000ull /* work-group memory, shared by the group's items */
#define ORR_LOCAL_BYTES 0x10000u

/*
 * Stacks of items that wait at a barrier, all but that of item 0: item i has the `item_stack_pages` (engine.h) below
 * ORR_ITEM_STACKS + (i + 1) * ORR_ITEM_STACK_STRIDE. (sp starts ORR_ITEM_SLOT_BYTES below.) Nothing is mapped between two of them.
 */
#define ORR_ITEM_STACKS 0xfffffffe00000000ull
#define ORR_ITEM_STACK_STRIDE 0x100000u
#define ORR_ITEM_STACK_MAX_PAGES 128u
#define ORR_ITEM_SLOT_BYTES 32u /* the top of each of them, that of item 0 too, is left to the group's own use */

/*
 * ecall with the call's number in a7.
 *
 * BARRIER: the item goes on behind the ecall when all items of its group have come to a barrier with the same a0, in the
 * order of their numbers. pc, sp and fcsr are kept; all other registers, vl, vtype and reservations are lost. An item
 * that ends, or comes to a barrier with another a0, while others wait ends the kernel: ORR_TRAP_BARRIER_*.
 * ASSERT: ends the kernel with ORR_TRAP_ASSERT and a0 as detail.
 */
#define ORR_CALL_BARRIER 0x4f525201u
#define ORR_CALL_ASSERT 0x4f525202u

/*
 * PAUSE (Zihintpause: fence w, with nothing behind) takes so many cycles since 2.16, and stores and loads nothing: for loops
 * that look again and again whether others have come. Before, and in other harts, it takes one.
 */
#define ORR_PAUSE_CYCLES 32u

/* Causes beside those of RISC-V (mcause) in ORR_DONE_TRAP, and what stands in detail in place of the pc. */
#define ORR_TRAP_ASSERT 0x100u /* a0 */
#define ORR_TRAP_BARRIER_OTHER 0x101u /* the item is at a barrier other than that of item 0: its a0; that of item 0 in SOC_DONE_OTHER */
#define ORR_TRAP_BARRIER_ENDED 0x102u /* the item ended, those before it wait at a barrier: its a0 */
#define ORR_TRAP_BARRIER_LATE 0x103u /* the item is at a barrier, those before it have ended: its a0 */
#define ORR_TRAP_BARRIER_STACKS 0x104u /* a barrier, and the descriptor has no item_stacks: the pc */

/*
 * Causes of a card that checks kernels (orrery-card --check). The launch ran to its end and then failed with what was found
 * first. SOC_DONE_ITEM is the item that did it; of a race the later one, and `first` is the other. The words hold:
 * SOC_DONE_FAULT: cause 15:0, ORR_CHECK_* of first 17:16 and of the item 19:18, bytes 27:20, first's item 37:28 and
 * group 63:38 (all-ones: it does not fit). SOC_DONE_DETAIL: address 47:0, sign-extended; findings 63:48 (all-ones: or more).
 * SOC_DONE_OTHER: distances of pcs from the descriptor's entry, signed: the item's 31:0, first's 63:32 (ORR_CHECK_FAR: it
 * does not fit).
 */
#define ORR_TRAP_RACE 0x110u /* two items, one writes, and nothing orders them */
#define ORR_TRAP_OUTSIDE 0x111u /* work-group memory beyond local_bytes, or a heap between its allocations (struct orr_desc_tell) */
#define ORR_TRAP_BELOW_STACK 0x112u /* its stack below its stack pointer */
#define ORR_TRAP_NEVER_WRITTEN 0x113u /* a read of what the item never wrote on its stack, or nobody in an allocation */
#define ORR_TRAP_RACE_BESIDE 0x114u /* as RACE; first is of a launch that was in flight beside this one, in the same ASID */
#define ORR_CHECK_FAR 0x80000000u
#define ORR_CHECK_LOAD 0u
#define ORR_CHECK_STORE 1u
#define ORR_CHECK_ATOMIC 2u

/* Read-only user CSRs (the custom range of the privileged specification). */
#define ORR_CSR_GROUP_X 0xcc0 /* work-group number in the grid */
#define ORR_CSR_GROUP_Y 0xcc1
#define ORR_CSR_GROUP_Z 0xcc2
#define ORR_CSR_ITEM_X 0xcc3 /* work-item number in its group */
#define ORR_CSR_ITEM_Y 0xcc4
#define ORR_CSR_ITEM_Z 0xcc5
#define ORR_CSR_GRID_X 0xcc6 /* work-groups */
#define ORR_CSR_GRID_Y 0xcc7
#define ORR_CSR_GRID_Z 0xcc8
#define ORR_CSR_BLOCK_X 0xcc9 /* work-items a group */
#define ORR_CSR_BLOCK_Y 0xcca
#define ORR_CSR_BLOCK_Z 0xccb
#define ORR_CSR_CORE 0xccc /* number of the vector core */
/* cycle, time (nanoseconds of model time) and instret are readable too. */

#endif /* ORRERY_HW_KERNEL_ABI_H */
