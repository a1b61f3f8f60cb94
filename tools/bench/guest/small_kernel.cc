#include <orrery/kernel.h>

#include "tools/bench/guest/small_kernel_args.h"

// A hundred instructions, with the return.
ORR_KERNEL void hundred(const void*) {
    asm volatile(".rept 99\n addi t0, t0, 1\n .endr" ::: "t0");
}

// The card is at work until it is told to end.
ORR_KERNEL void stay_awake(const AwakeArgs* args) {
    __atomic_store_n(args->awake, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(args->end, __ATOMIC_RELAXED) == 0) {
    }
}
