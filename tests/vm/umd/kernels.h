// Arguments of the test kernels; host and card include it.
#pragma once

#include <stdint.h>

struct TestArgs {
    uint64_t* data;
    uint64_t count;
    uint64_t value;
};
