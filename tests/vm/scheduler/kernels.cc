// Kernels of the scheduler's tests: `work` takes as long as it is told, `merge` ends a reduction.
#include <orrery/kernel.h>

#include "kernels.h"

namespace {

struct MergeArgs {  // orrTaskMergeArgs
    uint64_t* into;
    const uint64_t* part;
    uint64_t bytes;
};

}  // namespace

// *out += rounds + *in, slowly; by the first work-group.
ORR_KERNEL void work(const WorkArgs* args) {
    if (orr::group_x() != 0) return;
    if (args->fail != 0) __builtin_trap();
    uint64_t sum = *args->out;
    for (uint64_t i = 0; i < args->rounds; ++i) {
        ++sum;
        asm volatile("" : "+r"(sum));
    }
    if (args->in != nullptr) sum += *args->in;
    *args->out = sum;
}

// Holds its stream, or its task's successors, until the host says `*in`.
ORR_KERNEL void hold(const WorkArgs* args) {
    const volatile uint64_t* said = args->in;
    while (*said == 0) {
    }
}

ORR_KERNEL void merge(const MergeArgs* args) {
    *args->into += *args->part;
}
