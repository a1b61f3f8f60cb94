// SPDX-License-Identifier: GPL-2.0
/*
 * The first answer counts. Who asked looks at it without a lock once he is woken, and it goes into page table
 * entries: a driver that answers twice must not get what it says the second time past the look at the first.
 */
#include <linux/err.h>
#include <linux/errno.h>

#include <orrery/hw/mmu.h>

#include "orr_answer.h"

/**
 * orr_answer_ask - he is asked, perhaps again
 * @answer: of nobody's, or looked at
 */
void orr_answer_ask(struct orr_answer *answer)
{
	answer->answered = false;
	answer->ended = false;
}

/**
 * orr_answer_take - he says something
 * @answer: what was asked
 * @status: what he says
 * @base: likewise
 *
 * Return: whether it is the answer; all that comes with it is for nothing if not.
 */
bool orr_answer_take(struct orr_answer *answer, int status, u64 base)
{
	if (answer->answered)
		return false;
	answer->answered = true;
	answer->status = status;
	answer->base = base;
	return true;
}

/**
 * orr_answer_revoke - what was asked for is not shared any more
 * @answer: what was asked; he may have answered, or do so yet
 */
void orr_answer_revoke(struct orr_answer *answer)
{
	answer->ended = true;
}

/**
 * orr_answer_end - the session with him ends
 * @answer: what was asked
 * @error: for who waits
 *
 * Return: whether that is the answer.
 */
bool orr_answer_end(struct orr_answer *answer, int error)
{
	answer->ended = true;
	return orr_answer_take(answer, error, 0);
}

/**
 * orr_answer_judge - what may be told to a process, and entered into page tables
 * @answer: the answer
 * @ret: its status, or why there is none
 * @size: that was asked for, whole pages
 *
 * Return: @ret, -EPROTO: what he says makes no sense here.
 */
int orr_answer_judge(const struct orr_answer *answer, int ret, u64 size)
{
	u64 end = answer->base + size;

	if (ret > 0 || ret < -MAX_ERRNO)
		return -EPROTO;
	if (!ret && (answer->base & (ORR_PAGE_SIZE - 1) || end < answer->base ||
		     end & ~(ORR_PTE_ADDR_MASK | (ORR_PAGE_SIZE - 1))))
		return -EPROTO;
	return ret;
}
