/* SPDX-License-Identifier: MIT */
/*
 * Where the boot ROM jumps to. Sets the stack, clears what the image does not bring, and calls
 * orr_main. There is no trap handler: interrupts are never taken (see hal/card.h), and an exception is a
 * bug of this firmware, for which the card halts the core and shows cause, pc and address in ORR_R_HALT_*.
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
	csrw mtvec, zero
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
