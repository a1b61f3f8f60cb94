/* SPDX-License-Identifier: MIT */
/*
 * The MMU: one address space a context (ASID), 48-bit virtual addresses, four levels of
 * 4 KiB tables in VRAM with 512 entries each, pages of 4 KiB (level 0) and 2 MiB (level 1).
 * Level 3 is the root; the index at level n is VA bits [12 + 9n + 8 : 12 + 9n].
 *
 * The card does not trust a table: an entry with a reserved bit set, a table or a page
 * outside VRAM, or a host page that is not mapped for DMA is a fault of the access.
 */
#ifndef ORRERY_HW_MMU_H
#define ORRERY_HW_MMU_H

#include "base.h"

#define ORR_VA_BITS 48
#define ORR_MMU_LEVELS 4
#define ORR_PAGE_SIZE 4096u
#define ORR_HUGE_PAGE_SIZE 0x200000u
#define ORR_ASIDS 1024u /* 0 is never valid */

#define ORR_PTE_VALID (1ull << 0)
#define ORR_PTE_LEAF (1ull << 1) /* at level 0 always set, at level 1 a 2 MiB page */
#define ORR_PTE_READ (1ull << 2) /* leaf only, as all below */
#define ORR_PTE_WRITE (1ull << 3)
#define ORR_PTE_EXEC (1ull << 4) /* vector cores may fetch */
#define ORR_PTE_TARGET_SHIFT 5   /* 2 bits: ORR_TARGET_* */
#define ORR_PTE_ADDR_MASK \
    0x000ffffffffff000ull /* table or page: VRAM offset, bus address, peer's VRAM offset, slot << 12 */
#define ORR_PTE_NODE_SHIFT 52 /* 10 bits: the card that has the memory, for ORR_TARGET_PEER; else zero */
#define ORR_PTE_NODE_MASK 0x3ff0000000000000ull
#define ORR_PTE_RESERVED 0xc000000000000f80ull /* must be zero */

#define ORR_TARGET_VRAM 0u
#define ORR_TARGET_HOST 1u
#define ORR_TARGET_PEER 2u /* copies, signals, and since 2.4 a kernel's loads, stores and atomics; all else faults */
/* 4 KiB pages only: page n is slot n of the barrier unit (ORR_R_BARRIER), for signals; all else faults (2.3) */
#define ORR_TARGET_BARRIER 3u

/* Fault codes: engine completions, window faults and the semaphore unit report these. */
#define ORR_FAULT_NONE 0u
#define ORR_FAULT_NO_CONTEXT 1u    /* the ASID has no root */
#define ORR_FAULT_NON_CANONICAL 2u /* VA beyond 48 bits, or a range that wraps */
#define ORR_FAULT_NOT_MAPPED 3u
#define ORR_FAULT_PERMISSION 4u
#define ORR_FAULT_RESERVED_BIT 5u /* malformed entry */
#define ORR_FAULT_TABLE_RANGE 6u  /* table outside VRAM */
#define ORR_FAULT_PAGE_RANGE 7u   /* page outside VRAM, or host memory not mapped for DMA */
#define ORR_FAULT_PEER_READ 8u    /* a fetch from another card, or a load by who does not read there */
#define ORR_FAULT_PEER_DOWN 9u    /* port absent or link not up */
#define ORR_FAULT_PEER_DENIED 10u /* the owner has not granted the range to this node */
#define ORR_FAULT_MISALIGNED 11u
#define ORR_FAULT_PEER_BUSY \
    12u /* the peer takes no more signals now: not a fault of the address, try again */
#define ORR_FAULT_ATOMIC \
    13u /* an atomic on host memory, which the function must not do: see ORR_R_PLATFORM */
#define ORR_FAULT_PEER_KEY 15u /* the owner has granted the range to this node, with another key (2.2) */
#define ORR_FAULT_NO_ROUTE 14u /* no port leads to the node, or the card behind it is another */

#endif /* ORRERY_HW_MMU_H */
