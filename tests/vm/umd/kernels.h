// Arguments of the test kernels; host and card include it.
#pragma once

#include <stdint.h>

struct TestArgs {
    uint64_t* data;
    uint64_t count;
    uint64_t value;
};

// What the kernel `obey` does; in TestArgs.count. data: words "told" and "has begun".
enum : uint64_t {
    kObeyEnd = 0,         // waits until it is told, and ends
    kObeyTrap = 1,        // waits until it is told, and traps
    kObeyStore = 2,       // the same, and stores to `value`
    kObeySpin = 3,        // never ends
    kObeyScribble = 4,    // stores to `value` again and again until it is told
    kObeyScribbleOn = 5,  // never ends
};

// What the kernel `cross_there` does; in TestArgs.count. data: words "told to end" and "so many done".
enum : uint64_t { kCrossLoad = 0, kCrossStore = 1, kCrossAtomic = 2 };

// What the kernel `combine_there` makes of all its input at `value`: first with 64 bits, and behind that
// with 32. Who swaps adds what was there to kSwapped, so that with what is left there it is the sum of all.
enum : uint32_t { kSwap, kSwapped, kAdd, kCompareSwap, kMin, kMax, kUmin, kUmax, kAnd, kOr, kXor, kCombined };
