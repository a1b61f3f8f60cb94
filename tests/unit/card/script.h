/* SPDX-License-Identifier: MIT */
/*
 * What the tests' firmware (script_firmware.c) does: on each mailbox doorbell it runs a list of operations
 * from host memory, so that a test can use the control core's registers without firmware of its own.
 *
 * The boot argument is the bus address of: 8 bytes "scripts done", 8 bytes unused, then the operations.
 */
#ifndef ORRERY_TEST_SCRIPT_H
#define ORRERY_TEST_SCRIPT_H

#include <stdint.h>

#define OP_END                                                                                               \
    0             /* counts the script as done, raises host interrupt 0, waits for the next mailbox doorbell \
                   */
#define OP_READ 1 /* result = 8 bytes at address */
#define OP_WRITE 2       /* 8 bytes at address = value */
#define OP_WAIT 3        /* sleeps until a bit of value is set in SOC_IRQ_PENDING; result = pending */
#define OP_JUMP 4        /* to address */
#define OP_SPIN 5        /* for ever */
#define OP_SERVE 6       /* for ever: for each doorbell, writes its value to bus address value + 16 * tag */
#define OP_SLEEP 7       /* sleeps until the timer reaches now + value */
#define OP_TRAP_VECTOR 8 /* mtvec = address */
#define OP_READ32 9
#define OP_READ8 10
#define OP_AMO 11    /* atomic add of value at address */
#define OP_CYCLES 12 /* result = mcycle */
#define OP_SC 13     /* SC of value to address, without a reservation; result = 1: it failed */

struct script_op {
    uint64_t code;
    uint64_t address;
    uint64_t value;
    uint64_t result;
};

#endif /* ORRERY_TEST_SCRIPT_H */
