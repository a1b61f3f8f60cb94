/* SPDX-License-Identifier: MIT */
/*
 * What a work-item sees: RV64IMAFDC (lp64d), user CSRs, a stack, work-group memory. It starts
 * at the kernel's entry with a0 = args, sp = top of its stack, ra = ORR_KERNEL_EXIT and all
 * else zero; jumping to ORR_KERNEL_EXIT (that is: returning) ends it. ecall, ebreak and every
 * exception end the whole kernel with ORR_DONE_TRAP or, for a bad address, ORR_DONE_FAULT.
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
