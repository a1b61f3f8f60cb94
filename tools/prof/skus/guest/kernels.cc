// Kernels that are each limited by one thing.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

// out = out + in / 2: one multiply-add for each twelve bytes. Groups have parts of the elements.
ORR_KERNEL void triad(const SuiteArgs* args) {
    const uint64_t each = (args->count + orr::grid_x() - 1) / orr::grid_x(), first = each * orr::group_x();
    const uint64_t end = first + each < args->count ? first + each : args->count;
    for (uint64_t i = first; i < end;) {
        const size_t vl = __riscv_vsetvl_e32m8(end - i);
        const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->in + i, vl);
        const vfloat32m8_t y = __riscv_vle32_v_f32m8(args->out + i, vl);
        __riscv_vse32_v_f32m8(args->out + i, __riscv_vfmacc_vf_f32m8(y, 0.5f, x, vl), vl);
        i += vl;
    }
}

// Each load's address is what the one before has brought.
ORR_KERNEL void chase(const SuiteArgs* args) {
    const uint32_t* const next = reinterpret_cast<const uint32_t*>(args->in);
    uint32_t at = static_cast<uint32_t>(orr::group_x() * kChainStep % args->count);
    for (uint64_t round = args->rounds; round != 0; --round)
        at = next[at];
    reinterpret_cast<uint32_t*>(args->out)[orr::group_x()] = at;
}

// Next to nothing.
ORR_KERNEL void step(const SuiteArgs* args) {
    ++*reinterpret_cast<uint32_t*>(args->out);
}

// Some instructions, and no memory.
ORR_KERNEL void settle(const SuiteArgs* args) {
    for (uint64_t round = args->rounds; round != 0; --round)
        asm volatile("");
}
