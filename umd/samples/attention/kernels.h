// What the host hands to the kernel of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

// Queries that a group works on at a time.
constexpr uint32_t kAttentionRows = 8;
// Keys that it looks at in one step, at most; and the width of a head.
constexpr uint32_t kAttentionKeys = 256;
constexpr uint32_t kAttentionMaxWidth = 256;

// out = softmax(scale * Q K^T) V for each head. Q, V and out: heads x length x width. K lies the other way
// round, heads x width x length: neighbouring keys are neighbours in memory. Launch:
// ceil(length / kAttentionRows) groups in x, heads in y, with sizeof(AttentionLocal) of local memory.
struct AttentionArgs {
    const float* q;
    const float* k;
    const float* v;
    float* out;
    uint32_t length, width;  // width <= kAttentionMaxWidth
    float scale;
    uint32_t reserved;
};

struct AttentionLocal {
    float weights[kAttentionRows][kAttentionKeys];
    float out[kAttentionRows][kAttentionMaxWidth];
    float top[kAttentionRows];   // of the scores so far
    float sum[kAttentionRows];   // of exp(score - top)
    float fade[kAttentionRows];  // exp(old top - new top)
};
