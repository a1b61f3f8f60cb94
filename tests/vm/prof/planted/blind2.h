// What the kernels of the second blind set are told; kernels and programs include it.
#pragma once

#include <stdint.h>

// c = a x b, and nothing below 0 of it if `relu`. m is a multiple of kGemmRows or less than that.
struct B2Gemm {
    const float* a;  // m rows of k
    const float* b;  // k rows of n
    float* c;        // m rows of n
    uint64_t m, n, k;
    uint64_t relu;
};
constexpr uint64_t kB2GemmRows = 7, kB2GemmSteps = 256;
struct B2GemmLocal {
    float a[kB2GemmSteps][kB2GemmRows];
};

// Arrays of `count` floats, of which each group has an equal part.
struct B2Pointwise {
    const float* x;
    const float* y;
    float* out;
    uint64_t count;
    float factor;
    uint32_t rounds;
};

struct B2Sgd {
    float* weight;
    float* momentum;
    const float* gradient;
    const float* other;  // another card's gradient, or null
    uint64_t count;
    float rate, decay;
};

struct B2Options {
    const float* market;  // spot and strike of each
    float* price;
    uint64_t options, paths, steps;
};

struct B2Node {
    uint32_t key, value, next, reserved;  // next: 0 is none
};
struct B2Probe {
    const uint32_t* heads;  // of 2^bits chains
    const B2Node* nodes;
    const uint32_t* keys;
    uint32_t* found;
    uint64_t count, bits;
};

struct B2Causal {
    const float* q;   // length rows of kB2Depth
    const float* k;   // kB2Depth rows of length: the keys' transpose
    float* scores;    // length rows of length
    uint64_t length;  // a multiple of 4 times the groups
};
constexpr uint64_t kB2Depth = 64;

struct B2Image {
    const float* in;
    float* out;
    uint64_t width, height;
};

struct B2Bags {
    const float* shards[2];   // row r is row r / 2 of shard r % 2
    const uint32_t* indices;  // `per_bag` of each bag
    float* out;               // rows of kB2Width
    uint64_t bags, per_bag;
};
constexpr uint64_t kB2Width = 256;
