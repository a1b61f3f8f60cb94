// What the program and its kernel both know.
#pragma once

#include <stdint.h>

// Words of pinned memory.
struct AwakeArgs {
    uint64_t* awake;  // set when the kernel runs
    uint64_t* end;    // to be set when it is to end
};
