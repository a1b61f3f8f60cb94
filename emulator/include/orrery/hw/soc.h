/* SPDX-License-Identifier: MIT */
/*
 * What the control core sees: one RV64IMAC hart, machine mode, physical addresses.
 *
 *   0x0000_0000_0001_0000   boot ROM, 4 KiB
 *   0x0000_0000_1000_0000   registers below, 64 KiB
 *   0x0000_0000_8000_0000   SRAM, 1.25 MiB
 *   0x0000_0040_0000_0000   VRAM window, VRAM offset 0 on, 64 GiB
 *   01 asid[61:48] va[47:0] context window: an access through the MMU in that address space
 *   1  bus[62:0]            host window: memory mapped for DMA
 *
 * An access outside all of these traps (access fault). A load or store through the context or
 * host window that cannot be done does not trap: it reads as zero or is dropped, and leaves its
 * reason in SOC_WINDOW_FAULT, which is sticky; the firmware reads and clears it after a
 * burst. (Whoever supplied the address is at fault, not the firmware.) Window accesses must be
 * naturally aligned, else they fault; atomics are for SRAM only.
 */
#ifndef ORRERY_HW_SOC_H
#define ORRERY_HW_SOC_H

#include "base.h"

#define ORR_ROM_BASE 0x10000ull
#define ORR_ROM_SIZE 0x1000u
#define ORR_SOC_BASE 0x10000000ull
#define ORR_SOC_SIZE 0x10000u
#define ORR_SRAM_BASE 0x80000000ull
#define ORR_SRAM_SIZE 0x140000u
#define ORR_VRAM_WINDOW 0x4000000000ull
#define ORR_VRAM_WINDOW_SIZE 0x1000000000ull
#define ORR_CONTEXT_WINDOW(asid, va) (1ull << 62 | (uint64_t)(asid) << 48 | (va))
#define ORR_HOST_WINDOW(bus) (1ull << 63 | (bus))

/* All registers are 64 bits wide, accessed with aligned 8-byte loads and stores. */

/* --- boot and life --- */
#define SOC_BOOT_ENTRY 0x0000 /* RO: the ELF's entry; the ROM jumps there */
#define SOC_BOOT_ARG 0x0008 /* RO: ORR_R_BOOT_ARG at the time of start */
#define SOC_PROGRESS 0x0010 /* WO: shown in ORR_R_PROGRESS */
#define SOC_HEARTBEAT 0x0018 /* WO: shown in ORR_R_HEARTBEAT */
#define SOC_HALT 0x0020 /* WO: stops the core; code shown in ORR_R_HALT_CAUSE */
#define SOC_UID 0x0028 /* RO */
#define SOC_CONFIG 0x0030 /* RO: copy engines | vector ports << 16 | link ports << 32 | vector cores << 48; full: SOC_KIND has the rest */
#define SOC_VRAM_SIZE 0x0038 /* RO */
#define SOC_SAVE_BYTES 0x0040 /* RO: bytes of a save area (SOC_ENGINE_SAVE), a multiple of 4 KiB */
#define SOC_BOOT_COUNT 0x0048 /* RO: starts of the core since the card's reset; 1: SRAM was clear but for the image */

/*
 * --- what the core does (2.13): a store, of whatever value, charges the core's time from there on to ORR_CTR_CORE_*_PS of
 * this activity. Costs a cycle and no stall, as a word for the trace port. Start and restart: ORR_ACTIVITY_OTHER.
 */
#define SOC_ACTIVITY(a) (0x0080 + 8 * (a)) /* WO */
#define ORR_ACTIVITY_OTHER 0u
#define ORR_ACTIVITY_PACKETS 1u /* doorbells, and packets of queues */
#define ORR_ACTIVITY_SCHEDULING 2u /* whose turn it is, and who gets a port */
#define ORR_ACTIVITY_COMPLETIONS 3u /* of engines */
#define ORR_ACTIVITY_MAILBOX 4u /* commands of the driver */
#define ORR_ACTIVITY_LINKS 5u /* what other cards signalled */
#define ORR_ACTIVITIES 6u

/* --- interrupts to the core: a pending and enabled line holds MEIP --- */
#define SOC_IRQ_PENDING 0x0100 /* RO: bit per SOC_LINE_*; levels: gone when their cause is gone */
#define SOC_IRQ_ENABLE 0x0108 /* RW: reset 0 */
#define SOC_LINE_DOORBELL 0 /* SOC_DB_POP is not empty */
#define SOC_LINE_MAILBOX 1 /* the host rang the mailbox; cleared by SOC_MBOX_ACK */
#define SOC_LINE_DONE 2 /* SOC_DONE_POP is not empty */
#define SOC_LINE_POKE 3 /* SOC_POKE_POP is not empty */
#define SOC_MBOX_ACK 0x0110 /* WO: clears SOC_LINE_MAILBOX; look at the ring after it */

/* --- time --- */
#define SOC_TIME 0x0200 /* RO: the card's own clock, picoseconds: durations and deadlines go by it */
#define SOC_TIMER 0x0208 /* RW: MTIP is pending while SOC_TIME >= this; reset: all-ones */
#define SOC_SYSTEM_TIME 0x0220 /* RO: what linked cards have in common and hosts are told: SOC_TIME plus the time that the card has skipped */

/* --- interrupts to the host --- */
#define SOC_HOST_IRQ 0x0210 /* WO: vector number, ORR_IRQ_* */

/* --- doorbells: binds (page, slot) to a tag of the firmware's choice --- */
#define SOC_DB_PAGE 0x0300 /* RW */
#define SOC_DB_SLOT 0x0308 /* RW */
#define SOC_DB_TAG 0x0310 /* RW: 32 bits */
#define SOC_DB_CMD 0x0318 /* WO: SOC_DB_BIND or SOC_DB_UNBIND of the above; at most ORR_DB_BINDINGS */
#define SOC_DB_BIND 1u /* the doorbell word as it is at this moment counts as seen */
#define SOC_DB_UNBIND 2u /* drops a pending ring of it too */
#define SOC_DB_POP 0x0320 /* RO: tag of the oldest rung doorbell, and removes it; all-ones: none */
#define SOC_DB_MORE (1ull << 32) /* in what a pop gives: others wait */
#define SOC_DB_VALUE 0x0328 /* RO: the value of the doorbell last popped, read at the pop */
#define SOC_DB_RING 0x0330 /* WO: tag: as if that doorbell had been rung */
#define ORR_DB_BINDINGS 1024u

/* --- MMU --- */
#define SOC_MMU_ASID 0x0400 /* RW */
#define SOC_MMU_ARG 0x0408 /* RW: root's VRAM offset, or VA */
#define SOC_MMU_SIZE 0x0410 /* RW: bytes, for SOC_MMU_FLUSH_RANGE */
#define SOC_MMU_CMD 0x0418 /* WO: SOC_MMU_*; done when the store retires */
#define SOC_MMU_SET_ROOT 1u
#define SOC_MMU_CLEAR_ROOT 2u /* and flushes the address space */
#define SOC_MMU_FLUSH_ASID 3u
#define SOC_MMU_FLUSH_RANGE 4u
#define SOC_MMU_TRANSLATE 5u /* of the VA in SOC_MMU_ARG for reading: answers in SOC_MMU_RESULT and SOC_MMU_FAULT */
#define SOC_WINDOW_FAULT 0x0420 /* RW: ORR_FAULT_* of the first fault since cleared; write 0 clears */
#define SOC_WINDOW_FAULT_VA 0x0428 /* RO: the window address that faulted */
/*
 * The same memory has the same result from every context and VA: its address in the VRAM window or the host
 * window; all-ones: no memory of this card or its host, or a fault.
 */
#define SOC_MMU_RESULT 0x0430 /* RO */
#define SOC_MMU_FAULT 0x0438 /* RO: ORR_FAULT_* of the last SOC_MMU_TRANSLATE */

/* --- semaphore unit: writes {value, time} to memory, local, host or on a peer --- */
#define SOC_SEM_ASID 0x0500 /* RW */
#define SOC_SEM_VA 0x0508 /* RW: 16-byte aligned struct orr_semaphore */
#define SOC_SEM_SIGNAL 0x0510 /* WO: the value; signals when the store retires, in order with link writes */
/*
 * ORR_FAULT_* of the last SIGNAL, LAUNCH or CLOSE. PEER_BUSY: the peer's inbox is full, or too much waits for SOC_POKE_POP;
 * nothing has happened, try again. A signal without a fault is on the link, and no CLOSE at its other end overtakes it.
 */
#define SOC_SEM_STATUS 0x0518 /* RO */
#define SOC_POKE_POP 0x0520 /* RO: VRAM offset of a semaphore that a peer signalled, once for all that came since it was popped last; all-ones: none */
#define SOC_SEM_MEMORY 0x0528 /* RO: where the last signal went, as SOC_MMU_RESULT; all-ones: to a peer, or nowhere */
/*
 * Done when the store retires: what linked cards have sent up to their last signal of this semaphore is carried out, before its time if
 * need be, and then ORR_SEM_CLOSED stands in its time_ps.
 */
#define SOC_SEM_CLOSE 0x0530 /* WO: VRAM or host window address of a struct orr_semaphore */
/*
 * SIGNAL of the semaphore and value that stand in words 1 and 2 of what SOC_SLOT_PACKET of the slot shows, if the words
 * behind are 0: then SLOT_NEXT moves on by one. With a fault, or another packet (STATUS is all-ones), nothing happens.
 */
#define SOC_SEM_LAUNCH 0x0538 /* WO: slot << 32 | asid; takes a cycle on top of a register's, and waits for the packet */

/* --- kinds of engines: kind k (ORR_ENGINE_*), version 1.3; all 0 for one that the card does not have --- */
#define SOC_KIND(k) (0x0800 + 0x40 * (k))
#define SOC_KIND_PORTS 0x00 /* RO: dispatch ports of this kind */
#define SOC_KIND_UNITS 0x08 /* RO: units that its ports share by priority and weight (vector: cores); 0: each port has an engine of its own */
#define SOC_KIND_DESC_BYTES 0x10 /* RO: bytes of its longest descriptor */
#define SOC_KIND_PREEMPT 0x18 /* RO: bit n: takes SOC_PREEMPT_n; 0: cannot be preempted */
#define SOC_KINDS_MAX 16u

/* --- engines: port n; ports of a kind are neighbours, kinds in the order of their numbers --- */
#define SOC_ENGINE(n) (0x1000 + 0x100 * (n))
#define SOC_ENGINE_DESC 0x00 /* RW: 64 bytes, the descriptor (engine.h) */
#define SOC_ENGINE_START 0x40 /* WO: tag (32 bits): starts; ignored and counted while busy */
#define SOC_ENGINE_BUSY 0x48 /* RO: 1 from start until its completion is in the FIFO */
#define SOC_ENGINE_KIND 0x50 /* RO: ORR_ENGINE_*; 0: no such port */
#define SOC_ENGINE_ABORT 0x58 /* WO: ends the running descriptor soon with ORR_DONE_ABORTED */
/*
 * Preemption: the running descriptor ends soon with ORR_DONE_PREEMPTED, and what it needs to go on stands in
 * the save area; or it had already come to its end, and completes as ever. Until that completion the save area
 * belongs to the engine. RESUME takes the place of START: it goes on from the save area at SOC_ENGINE_SAVE, on any port
 * of the same kind and card; times of the completion count from there. A save area that no engine wrote gives
 * ORR_DONE_BAD_DESC.
 */
#define SOC_ENGINE_SAVE 0x60 /* RW: VRAM offset of a save area, 4 KiB aligned */
#define SOC_ENGINE_PREEMPT 0x68 /* WO: SOC_PREEMPT_*; a second write may go from GROUP to NOW */
#define SOC_PREEMPT_GROUP 1u /* vector: groups on cores run to their end; copy: as NOW */
#define SOC_PREEMPT_NOW 2u /* vector: groups on cores are saved inside the kernel; at most 2 us, a piece of memory for each who uses the same, and the time to save */
#define SOC_ENGINE_RESUME 0x70 /* WO: tag */
/* "units": of ports whose kind has SOC_KIND_UNITS. */
#define SOC_ENGINE_PRIORITY 0x78 /* RW, units: 0 .. 3, reset 0: free cores go to the highest first */
#define SOC_ENGINE_WEIGHT 0x80 /* RW, units: 1 .. 65535, reset 1: shares of core time among ports of one priority */
#define SOC_ENGINE_ACTIVE 0x88 /* RO, units: work-groups on cores now */
#define SOC_ENGINE_TAG 0x90 /* RO: tag of the last START or RESUME */
#define SOC_ENGINE_USED_PS 0x98 /* RO: core time that the running descriptor has used since START or RESUME */
/*
 * LAUNCH takes the place of START for a packet that is laid out as a descriptor but for its word 0: words 1 .. 7 come from
 * what SOC_SLOT_PACKET of the slot shows, word 0 is the one that stands in SOC_ENGINE_DESC. If that makes a descriptor that the
 * engine would not refuse, it is in SOC_ENGINE_DESC now and starts, and SLOT_NEXT moves on by one; else nothing happens.
 */
#define SOC_ENGINE_LAUNCH 0xa0 /* WO: slot << 32 | tag; takes 4 cycles on top of a register's, and waits for the packet */
#define SOC_ENGINES_MAX 64u
#define SOC_LAUNCH_RESULT 0x0640 /* RO: of the last LAUNCH: groups of the kernel, or bytes of the copy or fill; all-ones: refused */

/* --- completions: a pop latches all of the entry in the registers after it --- */
#define SOC_DONE_POP 0x0600 /* RO: port << 32 | tag of the oldest completion, and removes it; all-ones: none */
#define SOC_DONE_STATUS 0x0608 /* RO: ORR_DONE_* */
#define SOC_DONE_FAULT 0x0610 /* RO: ORR_FAULT_* or mcause */
#define SOC_DONE_DETAIL 0x0618 /* RO: VA or pc */
#define SOC_DONE_START_PS 0x0620 /* RO: model time at which it started */
#define SOC_DONE_END_PS 0x0628 /* RO: model time at which it ended */
#define SOC_DONE_USED_PS 0x0630 /* RO: engine time used since START or RESUME; vector: the sum over the cores */
#define SOC_DONE_ITEM 0x0638 /* RO: group << ORR_DONE_ITEM_BITS | item of the work-item that faulted or trapped; all-ones: of none */
#define SOC_DONE_OTHER 0x0648 /* RO: of a fault of a work-item its pc; what else an ORR_TRAP_* has to say; of a list of copies that faulted or was refused the VA of the entry; else 0 */

/*
 * --- ring slots: prefetch of packets, so that the core does not wait for memory ---
 * A slot reads the packets [SLOT_NEXT, SLOT_LIMIT) of one ring ahead, up to SOC_SLOT_DEPTH of them, each with one burst.
 * SLOT_PACKET shows packet SLOT_NEXT; a read before it has arrived waits for it. One that could not be read shows
 * zeros and leaves its reason in SOC_WINDOW_FAULT when word 0 is read. A packet is read from memory once, soon after
 * SLOT_LIMIT has passed it. Writing SLOT_RING empties the slot (NEXT and LIMIT become 0).
 */
#define SOC_SLOT(n) (0x8000 + 0x200 * (n))
#define SOC_SLOTS 64u
#define SOC_SLOT_DEPTH 16u
#define SOC_SLOT_PACKET 0x000 /* RO: 64 bytes */
#define SOC_SLOT_RING 0x100 /* RW: window address of packet 0 */
#define SOC_SLOT_MASK 0x108 /* RW: entries - 1; set it before SLOT_RING */
#define SOC_SLOT_NEXT 0x110 /* RW: moving it on by one drops a packet; anywhere else empties the slot */
#define SOC_SLOT_LIMIT 0x118 /* RW: packets below it may be read; never lower it */

/*
 * --- trace port: a page of its own; an aligned store anywhere in it is a word of instrumentation, and nothing happens on
 * the card. One record: orrery/fw/trace.h. Costs a cycle and no stall, whether anybody listens or not.
 */
#define SOC_TRACE 0x7000 /* WO */
#define SOC_TRACE_BYTES 4096u
#define SOC_TRACE_1_1 0x0700 /* WO: where the port was in hardware version 1.1: a word goes there too */

#endif /* ORRERY_HW_SOC_H */
