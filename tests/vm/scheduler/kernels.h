// Arguments of the test kernels; host and card include it.
#pragma once

#include <stdint.h>

struct WorkArgs {
    uint64_t* out;
    const uint64_t* in;  // may be null
    uint64_t rounds;
    uint64_t fail;
};
