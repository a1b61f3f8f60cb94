/* SPDX-License-Identifier: MIT */
/*
 * BAR 0: the trapped register file. Access with aligned 4- or 8-byte reads and writes; a
 * register marked 64 takes both halves or one 8-byte access, and a 64-bit write takes effect
 * with its upper half. Anything else reads as zero, is ignored, and counts in
 * ORR_CTR_GUEST_ERRORS. A removed card reads as all-ones.
 *
 * Writes are posted: they take effect in order, soon, at a model time of the card's choosing.
 * A trapped access costs 10-80 us of host time, so nothing here is on a hot path.
 */
#ifndef ORRERY_HW_BAR0_H
#define ORRERY_HW_BAR0_H

#include "base.h"

/* --- identity, all read-only --- */
#define ORR_R_ID 0x0000             /* ORR_ID_MAGIC */
#define ORR_R_HW_VERSION 0x0004     /* major << 16 | minor */
#define ORR_R_UID 0x0008            /* 64: unique card number, neither 0 nor all ones */
#define ORR_R_VRAM_SIZE 0x0010      /* 64: bytes */
#define ORR_R_COPY_ENGINES 0x0018   /* number */
#define ORR_R_VECTOR_PORTS 0x001c   /* kernels that can be in flight at once */
#define ORR_R_VECTOR_CORES 0x0020   /* number */
#define ORR_R_LINK_PORTS 0x0024     /* number, at most ORR_LINK_MAX_PORTS */
#define ORR_R_DOORBELL_PAGES 0x0028 /* number, at most ORR_DB_PAGES */
#define ORR_R_COUNTERS 0x002c       /* number of 64-bit counters from ORR_R_COUNTER(0) on */
#define ORR_R_CORE_HZ 0x0030        /* 64: model frequency of the control core */
#define ORR_R_VECTOR_HZ 0x0038      /* 64: model frequency of the vector cores */
#define ORR_R_SKU_NAME 0x0040       /* 32 bytes, zero-padded ASCII */
#define ORR_R_SAVE_BYTES \
    0x0060 /* bytes of a save area (SOC_SAVE_BYTES), a multiple of 4 KiB; 0: no preemption inside kernels */
#define ORR_R_SKU_BYTES 0x0064   /* bytes of text at ORR_R_SKU, at most ORR_SKU_MAX_BYTES */
#define ORR_R_VECTOR_VLEN 0x0068 /* bits of a vector register of the vector cores; 0: they have none */

#define ORR_ID_MAGIC 0x5952524fu /* "ORRY" */
#define ORR_HW_VERSION_MAJOR 2u
#define ORR_HW_VERSION_MINOR 16u
#define ORR_HW_VERSION ((ORR_HW_VERSION_MAJOR << 16) | ORR_HW_VERSION_MINOR)

/* --- life of the card --- */
#define ORR_R_MODEL_TIME 0x0080     /* 64, RO: picoseconds since power-on */
#define ORR_R_STATE 0x0088          /* RO: ORR_STATE_*, reset: ORR_STATE_RESET */
#define ORR_R_RESET 0x008c          /* WO: ORR_RESET_MAGIC resets all but PCIe and VRAM's contents */
#define ORR_R_RESET_COUNT 0x0090    /* RO: resets done since power-on */
#define ORR_RESET_MAGIC 0x54455352u /* "RSET" */
/*
 * Restart of the control core alone: it stops and waits for ORR_R_BOOT_START in ORR_STATE_RESET. SRAM,
 * doorbell bindings, MMU, engines (they go on) and unread completions stay; the ROM then loads the image's
 * segments and nothing else.
 */
#define ORR_R_CORE_RESTART 0x0094     /* WO: ORR_RESTART_MAGIC */
#define ORR_RESTART_MAGIC 0x54524f43u /* "CORT" */

/* Who holds the card's model time, so that nothing on it moves, the heartbeat neither: ORR_HELD_*, 0: nobody.
 */
#define ORR_R_HELD 0x0098    /* RO: reset: 0 */
#define ORR_HELD_FIRMWARE 1u /* a debugger at the firmware */
#define ORR_HELD_KERNELS 2u  /* a debugger at kernels */

/* What the card checks of kernels (orrery-card --check): ORR_CHECKS_*. 0 also from a card that does not know
 * the register. */
#define ORR_R_CHECKS 0x009c  /* RO */
#define ORR_CHECKS_RACE 1u   /* accesses that nothing orders */
#define ORR_CHECKS_MEMORY 2u /* use of memory; copy engines take struct orr_desc_tell (engine.h) */

/*
 * What the card knows of the platform between it and host memory, and around it: ORR_PLATFORM_*. 0 also from
 * a card that does not know the register. Kernels' atomics on host memory are AtomicOps: they need the bit
 * for them in PCIe Device Control 2, and a platform that completes them. Without one of the two they are
 * ORR_FAULT_ATOMIC.
 */
#define ORR_R_PLATFORM 0x00a0 /* RO */
#define ORR_PLATFORM_ATOMICS \
    1u /* completes AtomicOps of 32 and 64 bits, whatever the ports above the card declare */
#define ORR_PLATFORM_IN_STEP \
    2u /* the card's model time keeps step with that of the cards that it is linked to (2.2) */

/*
 * The card's number among those that it reaches, 0: none, then it sends nothing to peers and takes nothing
 * from them. Reads what is in effect.
 */
#define ORR_R_NODE 0x00a4       /* RW: below ORR_NODES; reset: 0 */
#define ORR_R_ROUTE_KEYS 0x00a8 /* RO: writes of ORR_R_ROUTE_KEY in effect since reset (2.14) */

#define ORR_STATE_RESET 0u       /* waiting for ORR_R_BOOT_START */
#define ORR_STATE_BOOTING 1u     /* boot ROM at work, or firmware not ready yet */
#define ORR_STATE_RUNNING 2u     /* the firmware has written ORR_PROGRESS_READY */
#define ORR_STATE_BOOT_FAILED 3u /* see ORR_R_BOOT_STATUS */
#define ORR_STATE_HALTED 4u      /* the control core stopped: see ORR_R_HALT_* */

/* --- boot: see boot.h --- */
#define ORR_R_BOOT_IMAGE 0x0100         /* 64, RW: bus address of the image, one DMA-contiguous range */
#define ORR_R_BOOT_SIZE 0x0108          /* RW: bytes of the image */
#define ORR_R_BOOT_START 0x010c         /* WO: 1 starts the boot ROM; ignored unless in reset */
#define ORR_R_BOOT_STATUS 0x0110        /* RO: ORR_BOOT_*, reset: ORR_BOOT_IDLE */
#define ORR_R_BOOT_DETAIL 0x0114        /* RO: meaning depends on the status, see boot.h */
#define ORR_R_BOOT_ARG 0x0118           /* 64, RW: handed to the firmware: bus address of its boot block */
#define ORR_R_PROGRESS 0x0120           /* RO: the firmware's progress code */
#define ORR_R_HEARTBEAT 0x0128          /* 64, RO: advances only when the firmware makes progress */
#define ORR_PROGRESS_READY 0x80000000u  /* set by the firmware when it serves its mailbox */
#define ORR_PROGRESS_FAILED 0x40000000u /* set with a code in the low bits when it gives up */

#define ORR_R_HALT_CAUSE 0x0130           /* 64, RO: mcause, or ORR_HALT_REQUESTED | code */
#define ORR_R_HALT_PC 0x0138              /* 64, RO */
#define ORR_R_HALT_TVAL 0x0140            /* 64, RO */
#define ORR_HALT_REQUESTED 0x100000000ull /* the firmware stopped itself with a code */

/* --- interrupts to the host --- */
#define ORR_R_IRQ_STATUS 0x0200 /* bit n: vector n was raised; write 1 to clear */
#define ORR_R_IRQ_MASK 0x0204   /* RW: bit n: do not send vector n; reset 0. Status is set all the same */

/* --- mailbox --- */
#define ORR_R_MBOX_DOORBELL 0x0210 /* WO: any value: look at the host-to-firmware ring */

/* --- what kernels may use --- */
#define ORR_R_VECTOR_ISA                                                                           \
    0x0300 /* ORR_ISA_BYTES, zero-padded ASCII: the vector cores' ISA as compilers write it, as in \
              rv64imafdc_zicsr */
#define ORR_ISA_BYTES 128u

/*
 * --- barriers: the barrier unit (2.3) ---
 * A barrier joins this card and up to ORR_BARRIER_MEMBERS - 1 others; it takes a slot of each. A card arrives
 * at round n with a signal of value n of the slot's page (ORR_TARGET_BARRIER); its unit tells all other
 * members, and raises the slot's semaphore to the lowest round at which all have arrived, this card too. So
 * rounds count up, and who is ahead waits for nobody.
 *
 * It fails for good when a member says so (a signal with ORR_SEM_FAILED), when a slot of it is cleared or its
 * card reset, and when the way to a member is lost or is another (ORR_R_ROUTE): the semaphores of all members
 * that are at a later round than the last that ended well there, or come to one, get the word for that, and
 * the first stays. So who has met all and leaves spoils nobody's round, but that of one which had arrived
 * further by then; and a semaphore of a card that does not arrive stays as it is. What words mean is
 * software's matter. A word from a card that is no member, or has another key, is denied and counted; that a
 * member leaves a slot that is not armed is no matter.
 *
 * A slot is free, gets its members one by one (ADD), and is armed (ARM). Write what a command needs, then the
 * command; it was carried out once ORR_R_BARRIER_DONE equals the number of commands written since reset.
 */
#define ORR_R_BARRIER 0x03a0 /* RO: slots | members << 16; 0: the card has no unit, also one before 2.3 */
#define ORR_R_BARRIER_MEMBER \
    0x03a4                       /* RW: node | slot of that card << ORR_BARRIER_SLOT_SHIFT; reset: 0. ADD */
#define ORR_R_BARRIER_KEY 0x03a8 /* 64, WO: which all members have in common; reset: 0. ARM */
#define ORR_R_BARRIER_RELEASE 0x03b0 /* 64, RW: VRAM offset of the struct orr_semaphore; reset: 0. ARM */
/*
 * 63 bits: the word of a failure, see above for who gets it. ADD: the way to that member is lost. ARM, for
 * the others: this card is reset. CLEAR: the slot is cleared; 0: nobody is told.
 */
#define ORR_R_BARRIER_WORD 0x03b8 /* 64, RW: reset: 0 */
/* slot | ORR_BARRIER_ADD, _ARM or _CLEAR. Once CLEAR is done the unit writes nothing for that slot any more.
 */
#define ORR_R_BARRIER_CMD 0x03c0  /* WO */
#define ORR_R_BARRIER_DONE 0x03c4 /* RO: commands carried out since reset */
/*
 * ORR_FAULT_* of the last: _PERMISSION: the slot is not free, or has no member or too many, or one twice;
 * _NO_ROUTE: nothing leads to a member; _PEER_DOWN: its route is on hold; _MISALIGNED, _PAGE_RANGE: of the
 * semaphore; _PEER_BUSY: the control core has not looked yet at too many semaphores of older barriers.
 */
#define ORR_R_BARRIER_FAULT 0x03c8
#define ORR_R_BARRIER_STATES 0x03d0 /* 64, RO: 4 bits a slot, from slot 0 on: ORR_BARRIER_* */
#define ORR_BARRIER_SLOT_SHIFT 16u
#define ORR_BARRIER_ADD 0x100u
#define ORR_BARRIER_ARM 0x200u
#define ORR_BARRIER_CLEAR 0x400u
#define ORR_BARRIER_FREE 0u
#define ORR_BARRIER_ARMED 1u
#define ORR_BARRIER_LOST 2u    /* it has failed */
#define ORR_BARRIER_LEAVING 3u /* cleared, and not all have been told yet */

/*
 * --- notes: from the driver of another card, and to it (2.2) ---
 * A note has ORR_NOTE_BYTES and goes to the neighbour at a port, or (2.11) over switches and cards to a node
 * that is reached by that port, which has to have ORR_LINK_FORWARD; whether there is a route here or not,
 * behind all that was sent there before. It is of no epoch: it also goes on behind what was lost. The card
 * hands on what came, says by which port and which number the sender has, and vouches for nothing else: not
 * by another port than that of the route to that number, if there is one. It keeps ORR_NOTE_SLOTS, since 2.11
 * no more than ORR_NOTES_OF_ONE of one sender, so that who sends without end leaves room for others; one that
 * finds no room is dropped and counted, and who sent it has to ask again. ORR_IRQ_LINK tells of each.
 */
#define ORR_R_NOTE_OUT 0x0400  /* RW, ORR_NOTE_BYTES: what to send */
#define ORR_R_NOTE_SEND 0x0440 /* WO: port | node << ORR_NOTE_NODE_SHIFT (0: the neighbour): sends it */
#define ORR_R_NOTE_SENT 0x0444 /* RO: such writes done since reset */
#define ORR_R_NOTE_FAULT \
    0x0448 /* RO: ORR_FAULT_* of the last: _PEER_DOWN, _PEER_BUSY (no room), _NO_ROUTE (no node) */
#define ORR_R_NOTE_WAITING 0x044c /* RO: notes that have come and were not taken */
#define ORR_R_NOTE_IN 0x0480      /* RO, ORR_NOTE_BYTES: the first of them */
#define ORR_R_NOTE_FROM \
    0x04c0 /* RO: port << ORR_NOTE_PORT_SHIFT | node of its sender, maybe ORR_NOTE_PASSED */
#define ORR_R_NOTE_TAKE 0x04c4    /* WO: 1: takes it off */
#define ORR_R_NOTE_DROPPED 0x04c8 /* RO: notes for which there was no room, since power-on */
#define ORR_NOTE_BYTES 64u
#define ORR_NOTE_SLOTS 16u
#define ORR_NOTES_OF_ONE 4u
#define ORR_NOTE_PORT_SHIFT 16u
#define ORR_NOTE_NODE_SHIFT 16u
#define ORR_NOTE_PASSED 0x8000u /* a switch or a card has passed it on */

/*
 * --- multicasts: one write or signal to several nodes, copied by the switch at a port (2.5) ---
 * A multicast has a number as nodes have, which is no card's, with a route (ORR_R_ROUTE) by a port to a
 * switch. What this card writes or signals there leaves once; the switch sends it on to each member, in the
 * epoch of the route to that node and with the member's base added to the offset, and each judges it as what
 * this card sends to it alone. It comes in order with that, too. The switch keeps members as long as the link
 * is up and ORR_R_NODE is not written, for the epochs that the routes have when they are told; after another
 * epoch of one of them software tells all anew. What is sent in another epoch of the multicast's own route is
 * lost to all. A copy with reduction reads from there what the members have, each element combined in the
 * order in which they were told, in one answer (2.6); each member's grant has to allow the read. Other reads,
 * and atomics, have no route there. A command goes behind all that was sent there before; it was carried out
 * once ORR_R_MULTICAST_DONE equals the number of commands written since reset. One for which the port has no
 * room waits there, as a store does, and what is sent later goes behind it. ORR_FAULT_PEER_BUSY: too much
 * waits there, so it has to be written again.
 */
#define ORR_R_MULTICAST 0x04d0 /* RO: multicasts of a port | members << 16; 0: a card before 2.5 */
#define ORR_R_MULTICAST_MEMBER \
    0x04d4                          /* RW: node of the next member, 0: there are none from now on; reset: 0 */
#define ORR_R_MULTICAST_BASE 0x04d8 /* 64, RW: offset in its VRAM, 4 KiB aligned; reset: 0 */
#define ORR_R_MULTICAST_CMD 0x04e0  /* WO: number of the multicast */
#define ORR_R_MULTICAST_DONE 0x04e4 /* RO: commands carried out since reset */
#define ORR_R_MULTICAST_FAULT \
    0x04e8 /* RO: ORR_FAULT_* of the last: _NO_ROUTE, _PEER_DOWN, _PEER_BUSY, _PERMISSION */

/*
 * --- trace sink: what the firmware writes to its trace port (SOC_TRACE), into host memory (2.6) ---
 * The card copies each record whose type is asked for to a ring of struct orr_trace_sink (trace_sink.h), as
 * soon as it is whole, from the next time on at which the core sleeps or starts: it may be in the midst of a
 * record when the ring is set. It waits for nobody and writes over what is old. That takes no model time and
 * no bandwidth of the card's: what it does is the same with and without. Write base and types, then the
 * bytes; it was carried out, and nothing is written any more where the ring was before, once ORR_R_SINK_DONE
 * equals the number of such writes since reset. Memory that cannot be written loses its records.
 *
 * Between these the hardware puts records of its own that are asked for, at any time, the same way: a job
 * that begins while they are has one, and with a period there are samples of counters (2.10) and of where
 * vector cores are (2.12).
 */
#define ORR_R_SINK 0x0500 /* RO: bytes of the largest ring; 0: the card has no sink, also one before 2.6 */
#define ORR_R_SINK_BYTES \
    0x0504 /* WO: of the ring's words, a power of two of at least 4 KiB; 0: off, as reset */
#define ORR_R_SINK_BASE 0x0508  /* 64, RW: bus address of the struct, 64-byte aligned; reset: 0 */
#define ORR_R_SINK_TYPES 0x0510 /* 64, RW: bit t: records whose header has t in bits 7:0; reset: 0 */
#define ORR_R_SINK_DONE 0x0518  /* RO: writes of ORR_R_SINK_BYTES carried out since reset */
#define ORR_R_SINK_FAULT \
    0x051c /* RO: ORR_FAULT_* of the last: _MISALIGNED, _PAGE_RANGE (bytes); then it is off */
#define ORR_R_SINK_ASK 0x0520 /* RW: ORR_SINK_ASK_*; reset: 0 */
#define ORR_SINK_ASK_JOBS 1u  /* ORR_SINK_JOB (trace_sink.h) */
#define ORR_R_SINK_PERIOD \
    0x0524 /* RW: ns of model time, ORR_SINK_PERIOD_MIN or more, 0: no samples; reset: 0 */
#define ORR_SINK_PERIOD_MIN 1000u /* what is less is as this */
#define ORR_R_SINK_SET \
    0x0528 /* 64, RW: bit n: counter n is in samples; looked at when the period is written; reset: 0 */
#define ORR_R_SINK_SET_HIGH 0x0530 /* 64, RW: bit n: counter 64 + n */
#define ORR_R_SINK_PC_PERIOD \
    0x0538 /* RW: ns of model time, ORR_SINK_PC_PERIOD_MIN or more, 0: no ORR_SINK_PC; reset: 0 (2.12) */
#define ORR_SINK_PC_PERIOD_MIN 100u /* what is less is as this */
#define ORR_R_SINK_STEP_CORE                                                                         \
    0x053c /* RW: 1 + number of the core whose instructions are told (ORR_SINK_STEP), instead of its \
              ORR_SINK_PC; 0: none; reset: 0 (2.12) */
#define ORR_R_SINK_STEP_FROM \
    0x0540 /* 64, RW: model time ps from which on; looked at when the core is written; reset: 0 (2.12) */
#define ORR_R_SINK_STEP_UNTIL 0x0548 /* 64, RW: and before which they begin; likewise (2.12) */

/*
 * --- counters: counters.h ---
 * ORR_R_COUNTER: each as it stands, so two of them are not of one moment; some know what has been done only
 * when a piece of work is over, and time_ps, those of idle time and link_retries and link_wait_ps only what
 * the last snapshot found. A snapshot writes all to host memory as of one moment of model time, work under
 * way counted up to then: ORR_R_COUNTERS words of 64 bits. It takes no model time, no bandwidth, and nothing
 * of the card can tell. (2.8)
 */
#define ORR_R_COUNTER(n) (0x1000 + 8 * (n)) /* 64, RO */
#define ORR_R_SNAPSHOT 0x0700      /* 64, WO: bus address, ORR_SNAPSHOT_ALIGN aligned, | a tag: takes one */
#define ORR_R_SNAPSHOT_DONE 0x0708 /* RO: tag of the last | ORR_FAULT_* << 16; reset: 0 */
#define ORR_SNAPSHOT_ALIGN 4096u   /* tags are below it */

/* --- links: port p, see link.h --- */
#define ORR_R_LINK(p) (0x4000 + 0x100 * (p))
#define ORR_R_LINK_STATE 0x00      /* RO: ORR_LINK_* */
#define ORR_R_LINK_LANES 0x04      /* RO: lanes in use */
#define ORR_R_LINK_PEER_UID 0x08   /* 64, RO: 0 while down; never all ones, whatever the peer says */
#define ORR_R_LINK_PEER_PORT 0x10  /* RO: the port number on the peer */
#define ORR_R_LINK_GBPS 0x14       /* RO: payload rate of the link in Gbit/s, one direction */
#define ORR_R_LINK_LATENCY_NS 0x18 /* RO: one way */
#define ORR_R_LINK_LOSSES 0x1c /* RO: how often it has gone down since power-on, with what was on the way */
/*
 * Grants: the ranges of this card's VRAM into which a node may write that comes by this port. Write base,
 * size and node, then the command; a command was carried out, and no peer access under an older grant is in
 * flight, once ORR_R_LINK_GRANT_DONE equals the number of commands written since reset.
 */
#define ORR_R_LINK_GRANT_BASE 0x20 /* 64, RW: VRAM offset, 4 KiB aligned */
#define ORR_R_LINK_GRANT_SIZE 0x28 /* 64, RW: bytes, multiple of 4 KiB */
#define ORR_R_LINK_GRANT_CMD 0x30  /* WO: slot | ORR_LINK_GRANT_SET or _CLEAR, and maybe _ALL */
#define ORR_R_LINK_GRANT_DONE 0x34 /* RO: commands carried out since reset */
#define ORR_R_LINK_GRANT_NODE 0x38 /* RW: 1 .. ORR_NODES - 1 */
/*
 * What passes through cards. ORR_LINK_FORWARD: messages may leave by this port of which this card is not the
 * first and the port's peer the last. The card clears it, with an interrupt, when such a message may have
 * been lost at this port (the link goes down, for one), so that nothing is sent behind a gap: software sets
 * it again once the pairs of nodes have new epochs whose ways go here. Reads what is in effect.
 */
#define ORR_R_LINK_CONTROL 0x3c /* RW: ORR_LINK_FORWARD; reset: 0 */
#define ORR_LINK_FORWARD 1u
/* Written with it: only if ORR_R_LINK_LOSSES, the low 16 bits, is still what the upper half says. Reads as 0.
 * (2.1) */
#define ORR_LINK_IF_LOSSES 2u
#define ORR_LINK_LOSSES_SHIFT 16u
#define ORR_R_LINK_DRAIN \
    0x40 /* WO: 1: pass on what has come by this port by now, ahead of its time if need be */
/*
 * Written there, of a port to a switch: what has left by this port and finds no room at that switch, with a
 * peer that has taken nothing since the write of 1 before, is lost, to those for whom it is, instead of
 * waited for. It ends all that was written before. Of another port the same as 1. (2.6)
 */
#define ORR_LINK_DRAIN_FORCED 2u
#define ORR_R_LINK_DRAINED \
    0x44 /* RO: such writes done since reset: all of that has been passed on or dropped */
#define ORR_R_LINK_FORWARD_NS 0x48 /* RO: from a message's head at one port to its head at another */
/*
 * What crossed the port and how well, since power-on. A frame is a message with its CRC: one that comes
 * damaged is sent again, in order, from the sender's retry buffer. Bytes are of payload, 16 of a signal. All
 * since 2.1; a register of 64 bits is read whole by one access.
 */
#define ORR_R_LINK_BUILT 0x4c       /* RO: lanes that the port has; ORR_R_LINK_LANES: in use */
#define ORR_R_LINK_MBPS 0x50        /* RO: payload rate of the lanes in use in Mbit/s, sending; 0: not up */
#define ORR_R_LINK_CRC_ERRORS 0x54  /* RO: frames that came with a wrong CRC */
#define ORR_R_LINK_RETRIES 0x58     /* RO: frames that were sent again */
#define ORR_R_LINK_RETRAINS 0x5c    /* RO: how often it was trained anew without going down */
#define ORR_R_LINK_CHANGES 0x60     /* RO: changes of ORR_R_LINK_STATE or _LANES */
#define ORR_R_LINK_TX_MESSAGES 0x68 /* 64, RO: sent, each once; also what was passed on */
#define ORR_R_LINK_TX_BYTES 0x70    /* 64, RO */
#define ORR_R_LINK_RX_MESSAGES 0x78 /* 64, RO: received */
#define ORR_R_LINK_RX_BYTES 0x80    /* 64, RO */
/*
 * A port whose peer is a switch: behind it is a fabric of switches that joins many cards (ORR_R_REACH).
 * Messages to any of them leave by this port, and need ORR_LINK_FORWARD. ORR_R_LINK_DRAIN: all that has left
 * by this port by now is drained as far as the switches at the top of the fabric, and all from there on that
 * comes by this port. (2.2)
 */
#define ORR_R_LINK_SWITCH 0x90 /* RO: ORR_LINK_IS_SWITCH and others | level << 8; 0: a card, or not up */
#define ORR_LINK_IS_SWITCH 1u
#define ORR_LINK_LEVEL_SHIFT 8u
#define ORR_R_LINK_REACH_VERSION \
    0x94 /* RO: another one when ORR_R_REACH of this port has changed, with ORR_IRQ_LINK */
/*
 * Of a grant that is set: what its node may do, and the key that its requests have to carry, 0: any. Nobody
 * reads a key back. A reset of the card brings back what stands here: then a grant is what it was before 2.2.
 * (2.2) A request carries what its card has in ORR_R_ROUTE_KEY.
 */
#define ORR_R_LINK_GRANT_RIGHTS 0xb0 /* RW: ORR_LINK_RIGHT_*; reset: _WRITE | _SIGNAL */
#define ORR_R_LINK_GRANT_KEY 0xb8    /* 64, WO; reset: 0 */
/*
 * Messages from other cards that this port has refused for want of a grant, and those whose key was wrong.
 * (2.2) Of these the 1st, 2nd, 4th, 8th, .. raise ORR_IRQ_LINK. (2.14)
 */
#define ORR_R_LINK_DENIED 0xc0   /* RO */
#define ORR_R_LINK_BAD_KEYS 0xc4 /* RO */
#define ORR_R_LINK_REFUSED 0xc8  /* RO: writes and signals of this card that their owner refused, as it told \
                                  */
#define ORR_R_LINK_REFUSED_BY 0xcc /* RO: by whom, the last time: node | ORR_FAULT_* << 16 */
#define ORR_R_LINK_BAD_KEY_BY \
    0xd8 /* RO: whose the last request with a wrong key was, by its own account: node (2.14) */
/*
 * 1: takes the link down, as if the peer had gone, and has both ends train it anew: it comes up again by
 * itself. What was on its way may be lost. Of a port that is not up nothing happens. (2.2)
 */
#define ORR_R_LINK_RESET 0xd0  /* WO */
#define ORR_R_LINK_RESETS 0xd4 /* RO: such writes done since reset, also those of which nothing came (2.2) \
                                */
#define ORR_LINK_GRANT_SET 0x100u
#define ORR_LINK_GRANT_CLEAR 0x200u
#define ORR_LINK_GRANT_ALL 0x400u /* at all ports, as if each had been told; done when all are */
#define ORR_LINK_GRANT_SLOTS 256u

/*
 * --- routes: the port by which node n is reached, and by which it comes: what it sends by another is denied
 * --- So is what does not have this card's epoch for that node. Software gives both ends of a pair the same,
 * and another whenever some of what they sent each other may have been lost on its way: first to both with
 * ORR_ROUTE_HOLD, then ORR_LINK_FORWARD where it is clear on the way, then to both without. Cards on the way
 * look at the ports only. Reads what is in effect. A copy that goes on while its route changes ends with
 * ORR_FAULT_PEER_DOWN.
 */
#define ORR_R_ROUTE(n) \
    (0x8000 + 4 * (n)) /* RW, 0 < n < ORR_NODES: ORR_ROUTE_VALID | port ...; reset: 0, none */
#define ORR_ROUTE_PORT 0xffu
#define ORR_ROUTE_VALID 0x100u
#define ORR_ROUTE_HOLD 0x200u /* this card sends nothing there: ORR_FAULT_PEER_DOWN. What comes is taken */
#define ORR_ROUTE_EPOCH_SHIFT 16u /* 16 bits */
/*
 * The key that all requests of this card to node n carry, and what a switch copies to it; 0: none. Whoever
 * changes it waits for ORR_R_ROUTE_KEYS before it lets the card send there. Nobody reads one back, and no
 * change of a route touches it. What is on its way keeps the older one. (2.14)
 */
#define ORR_R_ROUTE_KEY(n) (0xa000 + 8 * (n)) /* 64, WO, 0 < n < ORR_NODES; reset: 0 */

/*
 * --- what the card is made of, read-only ---
 * A text for people and tools: ASCII, zero-padded to 8 bytes, a line for each number of the card's SKU, with
 * six fields that tabs separate: key, value, unit, origin, source, meaning. A field is printable and may be
 * empty.
 */
#define ORR_R_SKU 0x10000 /* ORR_R_SKU_BYTES bytes */
#define ORR_SKU_MAX_BYTES 0x10000u
#define ORR_SKU_FIELDS 6u

/*
 * --- what a switch says of node n that is reached by it, read-only, 0: nothing (2.2) ---
 * A hint for software, that must be checked against what the other card's port says of its peer.
 */
#define ORR_R_REACH(p, n) (0x20000 + 0x8000 * (p) + 32 * (n))
#define ORR_REACH_HOW \
    0x00 /* ORR_REACH_VALID | links << 1 | port << 8: links from the switch on, and its last port */
#define ORR_REACH_VALID 1u
#define ORR_REACH_LINKS_SHIFT 1u
#define ORR_REACH_LINKS 0x7fu
#define ORR_REACH_PORT_SHIFT 8u
#define ORR_REACH_PORT 0xffu
#define ORR_REACH_LOSSES_SHIFT \
    16u /* 16 bits: another number when something may have been lost on the way there */
#define ORR_REACH_LATENCY_NS 0x04 /* of these links, with what passing on takes */
#define ORR_REACH_FABRIC \
    0x08                    /* 64: ORR_R_LINK_PEER_UID of that node's card, and the port its ..._PEER_PORT */
#define ORR_REACH_MBPS 0x10 /* of the slowest link of these */

#endif /* ORRERY_HW_BAR0_H */
