/* SPDX-License-Identifier: MIT */
/* A firmware that crashes before it says anything. */
	.section .text
	.globl _start
_start:
	unimp
