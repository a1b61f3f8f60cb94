// What the host hands to the kernels of kernels.cc; both sides include it. Tiles are size x size doubles, row
// by row.
#pragma once

#include <stdint.h>

struct TileArgs {
    const double* a;
    const double* b;
    double* c;
    uint32_t size;
    uint32_t reserved;
};
