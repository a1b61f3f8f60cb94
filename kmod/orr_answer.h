/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What another machine's driver answers to ORR_NOTE_MAP. Calls nothing of the kernel's: tests/unit/kmod tries
 * all orders of what it may say.
 */
#ifndef _ORR_ANSWER_H_
#define _ORR_ANSWER_H_

#include <linux/types.h>

/**
 * struct orr_answer - the answer of a driver that need not be honest
 */
struct orr_answer {
	/** @answered: what comes now is no answer; from here on nobody changes @status, nor @base */
	bool answered;
	/** @ended: it was revoked, or the session has ended, since it was asked for the last time */
	bool ended;
	/** @status: 0 or a negative error, if he plays by the rules */
	int status;
	/** @base: VRAM offset there */
	u64 base;
};

void orr_answer_ask(struct orr_answer *answer);
bool orr_answer_take(struct orr_answer *answer, int status, u64 base);
void orr_answer_revoke(struct orr_answer *answer);
bool orr_answer_end(struct orr_answer *answer, int error);
int orr_answer_judge(const struct orr_answer *answer, int ret, u64 size);

#endif /* _ORR_ANSWER_H_ */
