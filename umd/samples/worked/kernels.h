// What the host hands to the kernels of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

struct WorkedArgs {
    float* out;
    const float* a;
    const float* b;
    float* change;  // of relax: the largest of each work-group
    uint64_t count;
    uint64_t rounds;
};
