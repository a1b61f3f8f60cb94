// What the program and its kernel both know.
#pragma once

#include <stdint.h>

struct SgemmArgs {
    const float* a;
    const float* b;
    float* c;
    uint32_t n;
};
