// What the planted programs' kernels are told.
#pragma once

#include <stdint.h>

// Every kernel takes the same; what it does not use is 0.
struct PlantedArgs {
    float* out;
    const float* in;
    uint64_t count;  // elements of 4 bytes, of `in` and of `out`
    uint64_t rounds;
    uint64_t skew;  // times `rounds` for the last work-group
};
