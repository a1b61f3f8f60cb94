// Arguments of the kernels in scale_kernel.cc.
#pragma once

#include <stdint.h>

struct ScaleArgs {
    const float* x;
    float* y;
    uint64_t n;
    float factor;
};
