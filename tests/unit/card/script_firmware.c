/* SPDX-License-Identifier: MIT */
/* See script.h. */
#include <orrery/hw/soc.h>

#include "script.h"

#define REG(offset) (*(volatile uint64_t *)(ORR_SOC_BASE + (offset)))
#define HOST(bus) (*(volatile uint64_t *)ORR_HOST_WINDOW(bus))

#define MIE_MTIE (1ul << 7)
#define MIE_MEIE (1ul << 11)

static void wait_for_line(uint64_t lines)
{
	REG(SOC_IRQ_ENABLE) = lines;
	/* Interrupts are off in mstatus: WFI returns on a pending line, and none is taken. */
	while ((REG(SOC_IRQ_PENDING) & lines) == 0)
		__asm__ volatile("wfi" ::: "memory");
}

static void serve(uint64_t base)
{
	for (;;) {
		wait_for_line(1ul << SOC_LINE_DOORBELL);
		uint64_t tag = REG(SOC_DB_POP);
		if (tag == ~0ul)
			continue;
		uint64_t at = base + 16 * (uint32_t)tag;
		HOST(at) = REG(SOC_DB_VALUE);
	}
}

static uint64_t run_one(uint64_t bus)
{
	uint64_t code = HOST(bus);
	uint64_t address = HOST(bus + 8);
	uint64_t value = HOST(bus + 16);
	uint64_t result = 0;

	switch (code) {
	case OP_READ:
		result = *(volatile uint64_t *)address;
		break;
	case OP_READ32:
		result = *(volatile uint32_t *)address;
		break;
	case OP_READ8:
		result = *(volatile uint8_t *)address;
		break;
	case OP_WRITE:
		*(volatile uint64_t *)address = value;
		break;
	case OP_AMO:
		__atomic_fetch_add((volatile uint64_t *)address, value, __ATOMIC_SEQ_CST);
		break;
	case OP_SC:
		__asm__ volatile("sc.d %0, %2, (%1)" : "=r"(result) : "r"(address), "r"(value) : "memory");
		break;
	case OP_WAIT:
		wait_for_line(value);
		result = REG(SOC_IRQ_PENDING);
		break;
	case OP_JUMP:
		((void (*)(void))address)();
		break;
	case OP_SPIN:
		for (;;)
			__asm__ volatile("");
	case OP_SERVE:
		serve(value);
		break;
	case OP_SLEEP: {
		uint64_t until = REG(SOC_TIME) + value;
		REG(SOC_TIMER) = until;
		REG(SOC_IRQ_ENABLE) = 0;
		while (REG(SOC_TIME) < until)
			__asm__ volatile("wfi" ::: "memory");
		REG(SOC_TIMER) = ~0ul;
		break;
	}
	case OP_TRAP_VECTOR:
		__asm__ volatile("csrw mtvec, %0" ::"r"(address));
		break;
	case OP_CYCLES:
		__asm__ volatile("csrr %0, mcycle" : "=r"(result));
		break;
	default:
		break;
	}
	HOST(bus + 24) = result;
	return code;
}

void firmware_main(void)
{
	uint64_t base = REG(SOC_BOOT_ARG);
	uint64_t done = 0;

	__asm__ volatile("csrs mie, %0" ::"r"(MIE_MTIE | MIE_MEIE));
	REG(SOC_PROGRESS) = 0x80000000ul;
	for (;;) {
		wait_for_line(1ul << SOC_LINE_MAILBOX);
		REG(SOC_MBOX_ACK) = 1;
		for (uint64_t op = base + 16; run_one(op) != OP_END; op += sizeof(struct script_op))
			;
		HOST(base) = ++done;
		REG(SOC_HEARTBEAT) = done;
		REG(SOC_HOST_IRQ) = 0;
	}
}

__attribute__((naked, section(".text.start"))) void _start(void)
{
	__asm__ volatile("li sp, 0x80080000\n"
			 "j firmware_main\n");
}
