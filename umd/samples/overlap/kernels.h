// What the host hands to the kernel of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

struct PolynomialArgs {
    float* data;  // each element x becomes a polynomial of x, of `degree`
    uint64_t count;
    uint32_t degree;
    uint32_t reserved;
};
