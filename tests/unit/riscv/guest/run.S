// run_step(state, slot): all registers from the state, the one instruction at the slot, all registers back.
// The instruction must not name x3 and x4: they hold the slot and the state.
#include "tests/unit/riscv/guest/wire.h"

.macro each_x op
    .irp n, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    \op x\n, (8 * \n)(tp)
    .endr
.endm
.macro each_f op
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    \op f\n, (kStateF + 8 * \n)(tp)
    .endr
.endm
.macro each_saved op
    \op ra, 0(sp)
    \op gp, 8(sp)
    \op tp, 16(sp)
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    \op s\n, (24 + 8 * \n)(sp)
    .endr
.endm

    .text
    .globl run_step
run_step:
    addi sp, sp, -128
    each_saved sd
    la t0, saved_sp
    sd sp, 0(t0)
    mv tp, a0
    mv gp, a1
    csrr t1, vlenb
    slli t1, t1, 3
    addi t0, tp, kStateV
    vl8re8.v v0, (t0)
    add t0, t0, t1
    vl8re8.v v8, (t0)
    add t0, t0, t1
    vl8re8.v v16, (t0)
    add t0, t0, t1
    vl8re8.v v24, (t0)
    each_f fld
    ld t0, (kStateCsrs + 8)(tp)
    ld t1, (kStateCsrs + 16)(tp)
    vsetvl zero, t0, t1
    ld t0, (kStateCsrs + 24)(tp)
    csrw vxsat, t0
    ld t0, (kStateCsrs + 32)(tp)
    csrw vxrm, t0
    ld t0, (kStateCsrs + 40)(tp)
    csrw frm, t0
    ld t0, (kStateCsrs + 48)(tp)
    csrw fflags, t0
    ld t0, kStateCsrs(tp)
    csrw vstart, t0
    each_x ld
    jr gp

    .globl after_step
after_step:
    each_x sd
    csrr t0, vstart
    sd t0, kStateCsrs(tp)
    csrw vstart, zero
    csrr t0, vl
    sd t0, (kStateCsrs + 8)(tp)
    csrr t0, vtype
    sd t0, (kStateCsrs + 16)(tp)
    csrr t0, vxsat
    sd t0, (kStateCsrs + 24)(tp)
    csrr t0, vxrm
    sd t0, (kStateCsrs + 32)(tp)
    csrr t0, frm
    sd t0, (kStateCsrs + 40)(tp)
    csrr t0, fflags
    sd t0, (kStateCsrs + 48)(tp)
    each_f fsd
    csrr t1, vlenb
    slli t1, t1, 3
    addi t0, tp, kStateV
    vs8r.v v0, (t0)
    add t0, t0, t1
    vs8r.v v8, (t0)
    add t0, t0, t1
    vs8r.v v16, (t0)
    add t0, t0, t1
    vs8r.v v24, (t0)
    la t0, saved_sp
    ld sp, 0(t0)
    each_saved ld
    addi sp, sp, 128
    ret

    .globl _start
_start:
    andi sp, sp, -16
    call run
1:  j 1b

    .bss
    .align 3
saved_sp:
    .zero 8

    .section .slots, "awx", @nobits
    .align 3
    .globl slots
slots:
    .zero 8 * 4096
