/* SPDX-License-Identifier: MIT */
/*
 * Ground rules of every wire contract: the kernel module, the firmware, the card and the
 * runtime include these headers as they are. Little-endian, fixed-width, explicit padding,
 * no enums or bit-fields in structs; reserved fields are written as zero and checked.
 */
#ifndef ORRERY_HW_BASE_H
#define ORRERY_HW_BASE_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#endif

#define ORR_ASSERT_SIZE(type, size) static_assert(sizeof(type) == (size), "size of " #type)
#define ORR_ASSERT_OFFSET(type, member, offset) \
	static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member)

#endif /* ORRERY_HW_BASE_H */
