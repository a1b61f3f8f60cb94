// What the host hands to the kernels of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

// Rows of C that a group computes at a time: as many as there are registers for.
constexpr uint32_t kGemmRows = 7;
// Groups that share a strip of rows, so that cores come out even.
constexpr uint32_t kGemmColumns = 2;
// How far along k it goes with what it has brought from A.
constexpr uint32_t kGemmSteps = 1024;

// C (m x n) = scale * A (m x k) * B (k x n), all by rows, without gaps. Launch: ceil(m / kGemmRows) groups in
// x, `batches` in y, kGemmColumns (or any number) in z, with sizeof(GemmLocal) of local memory; matrices of
// one batch follow those of the batch before.
struct GemmArgs {
    const float* a;
    const float* b;
    float* c;
    uint32_t m, n, k;
    float scale;
};

struct GemmLocal {
    float a[kGemmSteps][kGemmRows + 1];
};
