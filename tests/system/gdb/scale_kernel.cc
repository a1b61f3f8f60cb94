// The kernel that kernels.sh debugs: it says where its lines are.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "tests/system/gdb/scale_kernel.h"

namespace {

// Not inlined, so that it has a frame of its own.
[[gnu::noinline]] uint64_t first_of(const ScaleArgs* args) {
    const uint64_t each = args->n / orr::grid_x();
    return orr::group_x() * each;
}

}  // namespace

ORR_KERNEL void scale(const ScaleArgs* args) {
    uint64_t at = first_of(args);
    for (uint64_t left = args->n / orr::grid_x(); left > 0;) {
        const uint64_t vl = __riscv_vsetvl_e32m1(left);
        const vfloat32m1_t loaded = __riscv_vle32_v_f32m1(args->x + at, vl);
        const vfloat32m1_t scaled = __riscv_vfmul_vf_f32m1(loaded, args->factor, vl);
        __riscv_vse32_v_f32m1(args->y + at, scaled, vl);  // line of the store
        left -= vl;
        at += vl;
    }
}

ORR_KERNEL void fails(const ScaleArgs* args) {
    args->y[args->n << 32] = args->factor;  // line of the fault
}
