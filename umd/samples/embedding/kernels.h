// What the host hands to the kernel of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

// out[bag] = the sum of table[indices[i]] over i from offsets[bag] to offsets[bag + 1] - 1.
struct EmbeddingArgs {
    const float* table;  // rows of `width`
    const uint32_t* indices;
    const uint32_t* offsets;  // bags + 1
    float* out;               // bags rows of `width`
    uint32_t* next;           // 0 at launch: the first bag that nobody has taken
    uint32_t bags, width;
};
