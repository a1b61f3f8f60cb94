// What the host hands to the kernels of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

// Rows of C that a group computes at a time: as many as there are registers for.
constexpr uint32_t kGemmRows = 7;

// C (m x n) = scale * A (m x k) * B (k x n), all by rows, without gaps. Launch: ceil(m / kGemmRows) groups in
// x, `batches` in y; matrices of one batch follow those of the batch before.
struct GemmArgs {
    const float* a;
    const float* b;
    float* c;
    uint32_t m, n, k;
    float scale;
};
