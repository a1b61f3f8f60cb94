/* The kernel's names of bits. */
#pragma once

#include <linux/types.h>

#define GENMASK_ULL(high, low) ((~0ull >> (63 - (high))) & (~0ull << (low)))

static inline unsigned int __ffs64(u64 word) {
    return (unsigned int)__builtin_ctzll(word);
}
