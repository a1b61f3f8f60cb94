// What the host hands to the kernel of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

struct LayerArgs {
    const float* in;       // rows x width
    const float* weights;  // width x width
    float* out;            // rows x width
    uint32_t rows, width;
};
