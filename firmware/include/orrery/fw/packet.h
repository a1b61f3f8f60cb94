/* SPDX-License-Identifier: MIT */
/*
 * Packets: 64 bytes each. Packets of a queue start in order. COPY, FILL, REDUCE, COPIES and DISPATCH run on
 * engines and may overlap with later ones of the same queue, unless the later has
 * ORR_PKT_F_ORDERED: such a packet starts only when all earlier ones have finished. SIGNAL,
 * FAIL, TIMESTAMP and BARRIER are always ordered; WAIT holds back all later packets. All addresses are
 * virtual in the queue's context. Reserved fields and flags that an opcode does not name are 0,
 * or the queue stops with ORR_QERR_BAD_PACKET.
 */
#ifndef ORRERY_FW_PACKET_H
#define ORRERY_FW_PACKET_H

#include <orrery/hw/base.h>

#define ORR_PKT_NOP 0u
#define ORR_PKT_COPY 1u
#define ORR_PKT_FILL 2u
#define ORR_PKT_DISPATCH 3u
#define ORR_PKT_WAIT 4u
#define ORR_PKT_SIGNAL 5u
#define ORR_PKT_BARRIER 6u
#define ORR_PKT_TIMESTAMP 7u
#define ORR_PKT_INDIRECT 8u /* reserved for indirect buffers: not implemented yet */
#define ORR_PKT_MATRIX 9u /* reserved for matrix operations: not implemented yet */
#define ORR_PKT_GANG 10u
#define ORR_PKT_FAIL 11u
#define ORR_PKT_REDUCE 12u
#define ORR_PKT_COPIES 13u

#define ORR_PKT_F_ORDERED 1u /* COPY, FILL, REDUCE, COPIES, DISPATCH, NOP */
#define ORR_PKT_F_INTERRUPT 2u /* any: raise ORR_IRQ_QUEUE when it has finished */
#define ORR_PKT_F_RESIDENT 4u /* DISPATCH: all groups on vector cores at once (ORR_DESC_F_RESIDENT) */
#define ORR_PKT_F_LONG 8u /* COPY: struct orr_packet_long */

struct orr_packet_header {
	uint16_t opcode;
	uint16_t flags;
	uint32_t tag; /* free for the submitter; shown in traces and errors */
};

struct orr_packet {
	struct orr_packet_header header;
	uint64_t word[7];
};
ORR_ASSERT_SIZE(struct orr_packet, 64);

/*
 * Copy in up to three dimensions; semantics as struct orr_desc_copy. Linear: rows 1, all behind it 0. A COPY, FILL or
 * COPIES to memory of a linked card has finished when all of it is on the link; that it has arrived is told by a
 * SIGNAL behind it.
 */
struct orr_packet_copy {
	struct orr_packet_header header;
	uint64_t src;
	uint64_t dst;
	uint64_t row_bytes;
	uint32_t rows;
	uint32_t planes; /* 0: as 1 */
	uint64_t src_pitch;
	uint64_t dst_pitch;
	uint32_t src_height; /* rows from plane to plane; 0 unless planes > 1, as the next */
	uint32_t dst_height;
};
ORR_ASSERT_OFFSET(struct orr_packet_copy, src_height, 56);
ORR_ASSERT_SIZE(struct orr_packet_copy, 64);

struct orr_packet_fill {
	struct orr_packet_header header;
	uint64_t pattern;
	uint64_t dst;
	uint64_t row_bytes;
	uint32_t rows;
	uint32_t pattern_bytes; /* 1, 2, 4, 8 */
	uint64_t dst_pitch;
	uint64_t reserved[2];
};
ORR_ASSERT_SIZE(struct orr_packet_fill, 64);

/* Copy with reduction; semantics as struct orr_desc_reduce. */
struct orr_packet_reduce {
	struct orr_packet_header header;
	uint64_t src;
	uint64_t dst;
	uint64_t row_bytes;
	uint32_t rows;
	uint16_t type; /* ORR_TYPE_* */
	uint16_t function; /* ORR_REDUCE_* */
	uint64_t src_pitch;
	uint64_t dst_pitch;
	uint64_t reserved;
};
ORR_ASSERT_SIZE(struct orr_packet_reduce, 64);

/* Scatter and gather; semantics as struct orr_desc_copies. The list is read while the packet runs. */
struct orr_packet_copies {
	struct orr_packet_header header;
	uint64_t list; /* VA of struct orr_copy_entry, 32-byte aligned */
	uint64_t reserved0;
	uint64_t bytes; /* of all entries together */
	uint32_t entries; /* >= 1 */
	uint32_t reserved1;
	uint64_t reserved2[3];
};
ORR_ASSERT_SIZE(struct orr_packet_copies, 64);

/* Its descriptor stands in memory and is fetched when the packet starts on its engine; semantics as struct orr_desc_long. */
struct orr_packet_long {
	struct orr_packet_header header; /* ORR_PKT_F_LONG */
	uint64_t descriptor; /* VA, 8-byte aligned; COPY: of a struct orr_desc_box or orr_desc_tell */
	uint32_t bytes; /* a multiple of 8 up to ORR_DESC_LONG_BYTES */
	uint32_t reserved0;
	uint64_t reserved1[5];
};
ORR_ASSERT_OFFSET(struct orr_packet_long, bytes, 16);
ORR_ASSERT_SIZE(struct orr_packet_long, 64);

/* Semantics as struct orr_desc_kernel. */
struct orr_packet_dispatch {
	struct orr_packet_header header;
	uint64_t entry;
	uint64_t args;
	uint32_t grid_x, grid_y, grid_z;
	uint16_t block_x, block_y, block_z;
	uint16_t item_stack_pages;
	uint32_t local_bytes;
	uint64_t item_stacks;
	uint64_t reserved;
};
ORR_ASSERT_SIZE(struct orr_packet_dispatch, 64);

/*
 * WAIT: until semaphore.value >= value. SIGNAL: raises value to this one and sets the model time; on memory of a linked
 * card it crosses the link behind every earlier write. struct orr_semaphore: hw/link.h. A signal wakes exactly those who
 * wait for this memory, whatever their context and VA. A process signals through a queue: its own stores wake nobody.
 *
 * A WAIT for a semaphore that has failed, or fails while it waits, stops its queue: ORR_QERR_POISON. So does one for more
 * than the value of a semaphore that is closed, with the code ORR_QERR_ABANDONED in the failure word.
 */
struct orr_packet_semaphore {
	struct orr_packet_header header;
	uint64_t semaphore; /* VA, 16-byte aligned */
	uint64_t value; /* below ORR_SEM_FAILED */
	/*
	 * WAIT: stops with ORR_QERR_WAIT_LIMIT after so much model time of this card, 0: never; at most
	 * ORR_WAIT_LIMIT_MAX_NS. It is exact to 100 us. An idle card's time runs no faster than the host's,
	 * and a jump of the clock counts as 1 ms at most. Cards of one host compute at the host's speed, each
	 * with a clock of its own: choose a limit for a hang, not for how long a signaller on another card
	 * should need. SIGNAL: 0.
	 */
	uint64_t limit_ns;
	uint64_t reserved[4];
};
#define ORR_WAIT_LIMIT_MAX_NS 1000000000000000ull /* 11 days */
ORR_ASSERT_OFFSET(struct orr_packet_semaphore, limit_ns, 24);
ORR_ASSERT_SIZE(struct orr_packet_semaphore, 64);

/* Fails a semaphore on purpose, as if its signaller had stopped. Origin: this queue and packet. The queue goes on. */
struct orr_packet_fail {
	struct orr_packet_header header;
	uint64_t semaphore; /* VA, 16-byte aligned */
	uint64_t code; /* 1 .. ORR_FAILURE_MAX_CODE; ORR_QERR_* */
	uint64_t reserved[5];
};
ORR_ASSERT_SIZE(struct orr_packet_fail, 64);

/*
 * A gang: the DISPATCH behind this packet starts together with those of the other members, all or none. Each member is a queue
 * of the same context on one of `cards` linked cards, and carries the same numbers; its dispatch is RESIDENT. Members
 * of one card start at one moment; cards start within a link latency or two. `board` names, on this card, an array of
 * 2 * cards struct orr_semaphore that belongs to this gang alone, and `peers` a table of `cards` VAs of the boards of
 * all cards as this context sees them (its own entry is not used; 0 and unused with one card). Cards join in the order of
 * their number, which must be the same order for all gangs of all processes (use that of the cards' UIDs), so two gangs
 * cannot hold each other up. `round` grows with each use of a board. A gang that is not complete within the dispatch
 * limit fails in all members that are there (ORR_QERR_GANG), and holds nothing back; so does one whose turn has not come
 * within ORR_GANG_LIMITS such limits since. So does, at once, one of whose members a queue has stopped before its GANG packet,
 * also in members that come later: POISON with the cause in those that are there on that card, GANG in the others. This card's
 * own entry on the board keeps that; nobody else writes it.
 */
struct orr_packet_gang {
	struct orr_packet_header header;
	uint64_t board;
	uint64_t peers;
	uint64_t round; /* 1 .. 2^63 / ORR_GANG_ROUND - 1 */
	uint16_t card; /* this card's number, 0 .. cards - 1 */
	uint16_t cards; /* 1 .. ORR_GANG_MAX_CARDS */
	uint16_t members; /* on this card, 1 .. ORR_GANG_MAX_MEMBERS */
	uint16_t reserved0;
	uint64_t reserved1[3];
};
#define ORR_GANG_MAX_CARDS 8u
#define ORR_GANG_MAX_MEMBERS 8u
#define ORR_GANG_MAX_OF_CARD 16u /* that have not started, at a time; of a user no more than are left then */
#define ORR_GANG_MAX_OF_CONTEXT 4u /* the same, of a context on a card */
#define ORR_GANG_NO_PLACE (~0ull) /* ORR_QERR_GANG's detail: there were too many already */
#define ORR_GANG_PRECEDED 0x80000000ull /* bit of ORR_QERR_GANG's detail: work that goes first kept the card */
#define ORR_GANG_STARTED 0x40000000ull /* bit of ORR_QERR_GANG's detail: it had started, and did not resume */
#define ORR_GANG_LIMITS 16u /* dispatch limits within which the turn of a gang comes whose members are all there */
#define ORR_GANG_ROUND 0x10000000ull /* what cards say on boards: round * ORR_GANG_ROUND + attempt * 8 + step */
ORR_ASSERT_SIZE(struct orr_packet_gang, 64);

/* Stores the model time in picoseconds, 8 bytes, once all earlier packets have finished. */
struct orr_packet_timestamp {
	struct orr_packet_header header;
	uint64_t dst; /* VA, 8-byte aligned */
	uint64_t reserved[6];
};
ORR_ASSERT_SIZE(struct orr_packet_timestamp, 64);

#endif /* ORRERY_FW_PACKET_H */
