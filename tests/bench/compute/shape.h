// What is measured on all sides alike, and what the host hands to the kernels of kernels.cc.
#pragma once

#include <stdint.h>

// Of each array: 64 MiB of floats.
constexpr uint64_t kElements = 16 << 20;
// Copies that are asked for one behind the other, as is usual where bandwidth is meant: what it takes to ask
// and to be told is measured elsewhere.
constexpr int kInARow = 8;
constexpr float kFactor = 1.5f;
constexpr uint32_t kMatrix = 512;
// Of a kernel that goes through arrays; each takes the part of its number.
constexpr uint32_t kGroups = 32;

struct LoopArgs {
    const float* x;
    float* y;
    float* z;  // of sums: one for each group
};
