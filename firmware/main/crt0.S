/* SPDX-License-Identifier: MIT */
/*
 * Where the boot ROM jumps to. Sets the stack and the trap handler, clears what the image does not bring, and calls
 * orr_main. Interrupts are never taken (see hal/card.h); an exception is a bug of this firmware.
 */
	.section .text.start, "ax"
	.globl _start
	.type _start, @function
_start:
	.option push
	.option norelax
	la gp, __global_pointer$
	.option pop
	la sp, orr_stack_top
	la t0, orr_trap
	csrw mtvec, t0
	csrw mie, zero
	csrw mstatus, zero
	la t0, orr_bss_start
	la t1, orr_bss_end
1:	bgeu t0, t1, 2f
	sd zero, 0(t0)
	addi t0, t0, 8
	j 1b
2:	call orr_main
	.size _start, . - _start

/*
 * Notes {mcause, mepc, mtval} where a restart finds them, without stack or trust in any register. Then it takes
 * itself away and lets the instruction trap once more, which halts the core: so ORR_R_HALT_* show cause, pc and
 * address of the bug itself.
 */
	.section .text.trap, "ax"
	.balign 4
	.globl orr_trap
	.type orr_trap, @function
orr_trap:
	csrw mscratch, t0
	la t0, orr_last_trap
	sd t1, 24(t0)
	csrr t1, mcause
	sd t1, 0(t0)
	csrr t1, mepc
	sd t1, 8(t0)
	csrr t1, mtval
	sd t1, 16(t0)
	csrw mtvec, zero
	ld t1, 24(t0)
	csrr t0, mscratch
	mret
	.size orr_trap, . - orr_trap

	.section .persist, "aw", @nobits
	.balign 8
	.globl orr_last_trap
orr_last_trap:
	.zero 32
	.size orr_last_trap, 32
