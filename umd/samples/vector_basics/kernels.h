// What the host hands to the kernels of kernels.cc; both sides include it. A group is one hart: it takes the
// part of the data that its number says, and its loops are vector code.
#pragma once

#include <stdint.h>

struct SaxpyArgs {
    const float* x;
    float* y;  // y[i] += a * x[i]
    uint64_t count;
    float a;
    uint32_t reserved;
};

struct ReduceArgs {
    const float* x;
    float* partial;  // one for each group
    uint64_t count;
};

struct ScanArgs {
    const uint32_t* x;
    uint32_t* sums;    // sums[i] = x[0] + ... + x[i], modulo 2^32
    uint32_t* totals;  // one for each group of scan_parts; scan_totals turns them into what comes before
    uint64_t count;
    uint32_t parts;  // groups of scan_parts
    uint32_t reserved;
};

struct TransposeArgs {
    const float* in;  // rows times columns
    float* out;       // columns times rows
    uint32_t rows, columns;
};

// Row by row: out = exp(in - max) / sum of that.
struct SoftmaxArgs {
    const float* in;
    float* out;
    uint32_t rows, columns;
};

// Row by row: out = (in - mean) / sqrt(variance + epsilon) * scale + shift.
struct LayerNormArgs {
    const float* in;
    const float* scale;  // one for each column
    const float* shift;
    float* out;
    uint32_t rows, columns;
    float epsilon;
    uint32_t reserved;
};
