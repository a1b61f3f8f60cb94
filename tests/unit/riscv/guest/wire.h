/*
 * What the host and the program that runs in qemu-riscv64 send each other.
 *
 * To the guest, a program at a time: its length in bytes, then words: kWirePatch | length << 8, an offset and
 * that many bytes (a multiple of 8), put into the state or, from kWireMemory on, into the window of memory;
 * and kWireExecute | with_memory << 8 | instruction << 32. Back, for each instruction: the state up to the
 * last byte of v31, and the window if asked for.
 */
#ifndef ORRERY_TESTS_RISCV_WIRE_H
#define ORRERY_TESTS_RISCV_WIRE_H

#ifdef __ASSEMBLER__
#define kStateF 256
#define kStateCsrs 512
#define kStateV 592
#else
enum { kWirePatch = 1, kWireExecute = 2 };
enum { kWireMemory = 0x100000, kWireWindow = 0x40000000, kWireWindowBytes = 0x4000, kWireMaxSteps = 4096 };

struct wire_state {
    unsigned long x[32]; /* x3 and x4 belong to the runner */
    unsigned long f[32];
    unsigned long vstart, vl, vtype, vxsat, vxrm, frm, fflags;
    unsigned long signal, address; /* of the instruction, if it ended in one; si_addr */
    unsigned long reserved;
    unsigned char v[32 * 128];
};
#endif

#endif
