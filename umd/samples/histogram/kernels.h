// What the host hands to the kernels of kernels.cc; both sides include it.
#pragma once

#include <stdint.h>

constexpr uint32_t kHistogramBins = 256;

struct HistogramArgs {
    const uint8_t* data;
    uint64_t bytes;
    uint64_t* bins;  // kHistogramBins, zero before the first group
};

struct MergeArgs {
    uint64_t* bins;
    const uint64_t* partial;  // parts times kHistogramBins
    uint32_t parts;
    uint32_t reserved;
};
