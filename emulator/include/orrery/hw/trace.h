/* SPDX-License-Identifier: MIT */
/*
 * A recording (*.otrace): what the control core of one card observed, so that it can be replayed
 * bit-exactly without the card, its host or its engines. docs/trace.md explains it.
 *
 * The file is a header and then blocks, without gaps. Each block is appended by one write(), and then
 * `committed` in the header moves past it: what lies behind `committed` was being written when the
 * recorder died, and is not part of the recording. All integers are little-endian; "varint" is LEB128,
 * at most 10 bytes; checksums are XXH3 with 64 bits, of seed 0 if
 * nothing else is said.
 *
 * Steps are those of the hart (instructions retired and exceptions taken), counted through all starts of
 * the core: a start takes a step too. Model time at a step is known exactly: a step takes cycle_ps, and the
 * log holds all that comes on top of it.
 */
#ifndef ORRERY_HW_TRACE_H
#define ORRERY_HW_TRACE_H

#include "base.h"

#define ORR_OTRACE_MAGIC 0x454341525452524full /* "ORRTRACE" as bytes in the file */
#define ORR_OTRACE_MAJOR 1u                    /* a reader refuses another one */
#define ORR_OTRACE_MINOR \
    6u /* additions; a reader skips kinds of blocks that it does not know in a file of a later one */
#define ORR_OTRACE_VERSION (ORR_OTRACE_MAJOR << 16 | ORR_OTRACE_MINOR)

struct orr_otrace_header {
    uint64_t magic;        /* ORR_OTRACE_MAGIC */
    uint32_t version;      /* ORR_OTRACE_VERSION */
    uint32_t header_bytes; /* of this struct and the texts, a multiple of 8: the first block starts there */
    uint32_t hw_version;   /* ORR_HW_VERSION of the card */
    uint32_t sku_bytes;    /* of the SKU file's text (TOML), which follows this struct */
    uint64_t uid;          /* of the card */
    uint64_t seed;         /* of the fault plan; 0: none */
    uint64_t cycle_ps;     /* model time of a step; not 0 */
    uint64_t start_ps;     /* model time at which the recording begins */
    uint64_t vram_bytes;
    uint8_t sku_name[32]; /* zero-padded */
    uint8_t program[32];  /* who recorded, free text, zero-padded */
    uint32_t
        plan_bytes; /* of the fault plan's text, which follows the SKU's; zero-padded. 0: none. Since 1.1 */
    uint32_t reserved0;   /* 0 */
    uint64_t skipped_ps;  /* by which the card's system time was ahead of its clock at start_ps. Since 1.5 */
    uint64_t reserved[4]; /* 0 */
    uint64_t checksum;    /* of header_bytes bytes, with this field and the two below as 0 */
    uint64_t committed;   /* bytes of the file that are complete, this header included */
    uint64_t not_committed; /* ~committed */
};
ORR_ASSERT_SIZE(struct orr_otrace_header, 200);

#define ORR_OTRACE_MAX_SKU 0x100000u /* sku_bytes at most */
#define ORR_OTRACE_MAX_PLAN 0x10000u /* plan_bytes at most */

#define ORR_OTRACE_BLOCK_MAGIC 0x4b4c424fu /* "OBLK" */
#define ORR_OTRACE_MAX_BLOCK 0x500000u     /* raw_bytes and stored_bytes at most */

/* kinds of blocks; another one is refused in a file that is no newer than its reader */
#define ORR_OTRACE_IMAGE \
    1u /* a firmware image as the boot ROM got it (boot.h); the starts after it run this one */
#define ORR_OTRACE_START 2u /* the core starts: struct orr_otrace_start and its memory */
#define ORR_OTRACE_LOG 3u   /* what the core observed from first_step to last_step */
#define ORR_OTRACE_END 4u   /* no payload; the recording was ended in order; the last block */

#define ORR_OTRACE_SYMBOLS 5u /* of the image before it, for people: struct orr_otrace_symbols. Since 1.2 */
#define ORR_OTRACE_PORT 6u    /* of the LOG that follows it at once: struct orr_otrace_port. Since 1.3 */
#define ORR_OTRACE_KEYFRAME \
    7u /* the core's state after the LOG before it: struct orr_otrace_keyframe. Since 1.3 */
#define ORR_OTRACE_RESUME \
    8u /* the core runs already as the recording begins: struct orr_otrace_resume. Since 1.4 */

#define ORR_OTRACE_RAW 0u /* codecs */
#define ORR_OTRACE_ZSTD 1u

struct orr_otrace_block {
    uint32_t magic;                 /* ORR_OTRACE_BLOCK_MAGIC */
    uint32_t kind;                  /* ORR_OTRACE_* */
    uint64_t sequence;              /* from 0 */
    uint32_t stored_bytes;          /* of the payload, which follows this struct */
    uint32_t raw_bytes;             /* of the payload when unpacked */
    uint32_t codec;                 /* ORR_OTRACE_RAW or ORR_OTRACE_ZSTD */
    uint32_t reserved;              /* 0 */
    uint64_t first_step, last_step; /* first_step is the last_step of the block before; START: + 1 */
    uint64_t first_ps, last_ps;     /* model times at these steps */
    uint64_t state_hash; /* at last_step, all records applied; IMAGE, SYMBOLS, PORT, END: 0; KEYFRAME: that of
                            the LOG before it */
    uint64_t checksum;   /* of this struct with this field as 0, and the stored payload */
};
ORR_ASSERT_SIZE(struct orr_otrace_block, 80);

#define ORR_OTRACE_SYMBOLS_MAGIC 0x534d59535252524full /* "ORRRSYMS" as bytes */
#define ORR_OTRACE_SYMBOLS_VERSION 1u

/*
 * Symbols, lines and sources of a firmware, made by its build (orrery-fwsign symbols). The card looks at the
 * head only.
 */
struct orr_otrace_symbols {
    uint64_t magic;   /* ORR_OTRACE_SYMBOLS_MAGIC */
    uint32_t version; /* ORR_OTRACE_SYMBOLS_VERSION */
    uint32_t files;
    uint64_t raw_bytes;      /* of all files, unpacked */
    uint8_t build_id[32];    /* of the image that they belong to, as in its header (boot.h) */
    uint8_t code_sha256[32]; /* of each section of code in the image's ELF: its address (8 bytes), then its
                                bytes */
    /* then zstd to the end: files, each struct orr_otrace_file, its name and its bytes. The first one is an
     * ELF without code; the others are sources, with their names from the root of the tree */
};
ORR_ASSERT_SIZE(struct orr_otrace_symbols, 88);

struct orr_otrace_file {
    uint32_t name_bytes;
    uint32_t bytes;
};
ORR_ASSERT_SIZE(struct orr_otrace_file, 8);

/*
 * The core starts at reset_pc, all registers clear, with this memory. state_hash is the
 * checksum of SRAM whose seed is the checksum of struct orr_otrace_state.
 */
struct orr_otrace_start {
    uint32_t warm;       /* 1: SRAM stayed as it was but for the image's segments */
    uint32_t rom_bytes;  /* ORR_ROM_SIZE */
    uint32_t sram_bytes; /* of that card: at most ORR_SRAM_SIZE, a multiple of 4 KiB */
    uint32_t reserved;   /* 0 */
    uint64_t reset_pc;
    uint8_t sha256[32]; /* of the ELF that was loaded; all zero: not known */
                        /* then rom_bytes and sram_bytes of memory */
};
ORR_ASSERT_SIZE(struct orr_otrace_start, 56);

/* All state of the core that a program can see, for state_hash and ORR_OTRACE_SET_STATE. */
struct orr_otrace_state {
    uint64_t x[32];
    uint64_t pc;
    uint64_t steps; /* since the last start */
    uint64_t minstret, mcycle;
    uint64_t mstatus, mie, mip, mtvec, mscratch, mepc, mcause, mtval;
    uint64_t reservation_address, reservation_value;
    uint32_t reservation_size;
    uint32_t waiting; /* 1: in WFI */
};
ORR_ASSERT_SIZE(struct orr_otrace_state, 376);

/*
 * What the core said in a LOG, so that it is known without a replay. A LOG of a 1.3 file without this block
 * has no notes, and nothing was stored to SOC_TRACE in it. The words follow, in order:
 *
 *   a header:   one byte, a | b << 4; a bytes: steps since the header before it in this block (or the LOG's
 * first_step); b bytes: picoseconds since then (or since the LOG's first_ps); then as any other word every
 * word: one byte, n; n bytes: the word. a, b and n are 0 to 8; what is left out of a number is zero
 *
 * Which words are headers the words say (ORR_OTRACE_PORT_WORDS). A record may begin in one LOG and end in
 * another; one that a start of the core or the end of the recording cuts does not count.
 */
struct orr_otrace_port {
    uint32_t notes;    /* NOTEs in the LOG */
    uint32_t reserved; /* 0 */
};
ORR_ASSERT_SIZE(struct orr_otrace_port, 8);

/*
 * State of the core, from which a replay can begin: the memory is that of the KEYFRAME before it (of the
 * START, if it is the first since then), with these pages of SRAM changed. There are some so that any place
 * is near one; where they stand means nothing.
 */
struct orr_otrace_keyframe {
    struct orr_otrace_state state;
    uint64_t rest_ps;  /* time that passed beside steps and is not in mcycle yet: less than cycle_ps */
    uint32_t pages;    /* of 4 KiB */
    uint32_t reserved; /* 0 */
                       /* then the numbers of the pages in SRAM, ascending, 4 bytes each; then the pages */
};
ORR_ASSERT_SIZE(struct orr_otrace_keyframe, 392);

/*
 * In place of the first START of a recording that begins after it, such as a flight recorder's: the core goes
 * on from this state. It takes a step of the recording as a START does, and only an IMAGE and its SYMBOLS
 * stand before it.
 */
struct orr_otrace_resume {
    struct orr_otrace_state state;
    uint64_t rest_ps;    /* as in struct orr_otrace_keyframe */
    uint32_t port_words; /* that the first record has still to come: what of it came before is not here */
    uint32_t reserved;   /* 0 */
    /* then what a START holds, with the memory as it is now; its state_hash is of this state */
};
ORR_ASSERT_SIZE(struct orr_otrace_resume, 392);

/*
 * A LOG block is a sequence of records. Each begins with a tag; the fields follow in the order below. An
 * access record stands for one access of the core beyond its SRAM and ROM, in the order of execution;
 * stores to SOC_TRACE have none (no stall, no effect). Values of stores are not recorded: replay makes them
 * again.
 *
 *   tag: kind[1:0] STALL[2] LINES[3] n[7:4]
 *
 * LOAD      n 0..8: bytes of the value, which follow; n == SAME: as predicted; n == FAULT: access fault
 * STORE     n 0 or FAULT
 *           STALL: varint, picoseconds beyond the cycle; without it: as the last access of the same class
 *           (window << 1 | store) in this block, 0 if there is none. Windows: 0 registers, 1 VRAM, 2 context,
 * 3 host. LINES: one byte, levels of the interrupt lines from now on (ORR_OTRACE_LINE_*) Predicted value: the
 * last one loaded in this block from an address with the same slot
 *           ((address >> 3 ^ address >> 11) & 255); 0 if there is none.
 * BOUNDARY  varint: steps since the last BOUNDARY or NOTE of this block (or first_step).
 *           STALL: varint, picoseconds that pass before the next step (sleep, events)
 *           LINES: as above. n 0
 * NOTE      n: ORR_OTRACE_NOTE_*; varint: steps, as above; varint: zigzag of the model time minus that of the
 * last NOTE of this block (or first_ps); then its fields, a varint each. Notes are not needed for replay, but
 * for SET_STATE and SET_MEMORY.
 */
#define ORR_OTRACE_LOAD 0u
#define ORR_OTRACE_STORE 1u
#define ORR_OTRACE_BOUNDARY 2u
#define ORR_OTRACE_NOTE 3u
#define ORR_OTRACE_TAG_STALL 0x04u
#define ORR_OTRACE_TAG_LINES 0x08u
#define ORR_OTRACE_N_SAME 9u
#define ORR_OTRACE_N_FAULT 10u

#define ORR_OTRACE_LINE_EXTERNAL 1u
#define ORR_OTRACE_LINE_TIMER 2u

/* Arrivals, as the card saw them, and what happened to the core. */
#define ORR_OTRACE_NOTE_DOORBELL 1u /* tag, value, page, slot */
#define ORR_OTRACE_NOTE_MAILBOX 2u
#define ORR_OTRACE_NOTE_POKE 3u      /* VRAM offset */
#define ORR_OTRACE_NOTE_RESET 4u     /* of the card: the core stops */
#define ORR_OTRACE_NOTE_RESTART 5u   /* of the core: it stops, SRAM stays */
#define ORR_OTRACE_NOTE_HALT 6u      /* cause, pc, tval, as ORR_R_HALT_*: the core stops */
#define ORR_OTRACE_NOTE_SET_STATE 7u /* a debugger changed registers: struct orr_otrace_state as 376 bytes \
                                      */
#define ORR_OTRACE_NOTE_SET_MEMORY \
    8u /* a debugger changed memory: address, count (at most 4,096), then the bytes */
#define ORR_OTRACE_NOTE_JUMP \
    9u /* picoseconds by which the card's system time went ahead of its clock, to a peer's */
/*
 * Links, since 1.6. A burst: messages of one channel of a port, numbered in a row, that follow each other on
 * the wire without a gap; its note comes when it can go on no more. Both ends note the same fields, in system
 * time (the clock, and what it skipped): port | operation << 8 | channel << 16 | source node << 32 |
 * destination node << 48; number of the first message in its channel since the link came up, from 0;
 * messages; bytes (16 for a message without payload); when the first byte comes to the other end; picoseconds
 * from then until the last one does. Operations: 1 write, 2 signal, 3 read, 4 atomic, 5 answer, 6 arrival at
 * a barrier, 7 leave of one, 8 member of a multicast, 16 note
 */
#define ORR_OTRACE_NOTE_LINK_SENT 10u
#define ORR_OTRACE_NOTE_LINK_TAKEN 11u /* by the card, or to be passed on */
#define ORR_OTRACE_NOTE_LINK_STATE                                                                      \
    12u /* port | ORR_LINK_* << 8 | peer's port << 16 | 1 << 24 if that is a switch; uid of the peer, 0 \
           unless up; picoseconds that a byte takes to it */
#define ORR_OTRACE_NOTE_FIELDS 6u /* most fields of a note */

/* Framing of the words that go to SOC_TRACE: a header says in bits 15:8 how many words follow it. */
#define ORR_OTRACE_PORT_WORDS(header) ((uint32_t)((header) >> 8 & 0xffu))

#endif /* ORRERY_HW_TRACE_H */
