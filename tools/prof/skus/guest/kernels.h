// What the kernels of the suite are told.
#pragma once

#include <stdint.h>

// Where the chain of the next work-group of `chase` begins.
constexpr uint64_t kChainStep = 4097;

// Every kernel takes the same; what it does not use is 0.
struct SuiteArgs {
    float* out;
    const float* in;
    uint64_t count;  // elements of 4 bytes, of each
    uint64_t rounds;
};
