// What the host hands to the kernel of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

// Queries that a group works on, as many at a time as a group of 4 registers holds.
constexpr uint32_t kAttentionQueries = 256;
// Keys that it looks at in one step: four times as many as it has sums for in registers.
constexpr uint32_t kAttentionRows = 7;
constexpr uint32_t kAttentionKeys = 4 * kAttentionRows;
constexpr uint32_t kAttentionColumns = 4;
// Of a head, at most.
constexpr uint32_t kAttentionMaxWidth = 128;

// out = softmax(scale * Q K^T) V for each head. K and V: heads x length x width. Q and out lie the other way
// round, heads x width x length: neighbouring queries are neighbours in memory. Launch:
// ceil(length / kAttentionQueries) groups in x, heads in y, with sizeof(AttentionLocal) of local memory.
struct AttentionArgs {
    const float* q;
    const float* k;
    const float* v;
    float* out;
    uint32_t length, width;  // width: a multiple of kAttentionColumns, <= kAttentionMaxWidth
    float scale;
    uint32_t reserved;
};

struct AttentionLocal {
    float keys[kAttentionKeys / kAttentionRows][kAttentionMaxWidth][kAttentionRows + 1];
    float values[kAttentionKeys * kAttentionMaxWidth];  // as they lie in V
    float weights[kAttentionKeys][kAttentionQueries];
};
