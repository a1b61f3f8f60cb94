// What the host hands to the kernels of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

#define HALO_SIDES 4u  // above, below, left, right

// A card's part of the field, with a row or column of the neighbours' cells on each side: `rows` x `columns`
// cells from row 1 and column 1 on, in rows that are `pitch` cells apart.
struct HaloArgs {
    const float* from;
    float* to;  // the same, a step later
    uint64_t pitch;
    uint32_t rows, columns;
};
