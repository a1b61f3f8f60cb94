/* A hash in the place of the kernel's: any that spreads will do. */
#pragma once

#include <linux/types.h>

static inline u32 jhash_1word(u32 word, u32 salt) {
    u32 hash = word * 0x9e3779b1u ^ (salt + 1) * 0x85ebca6bu;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}
