// Kernels of the worked cases of docs/profiling-cases.md.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"
#include "umd/samples/support/group_part.h"

namespace {

using sample::my_part;
using sample::Part;

// For each piece of this group's elements of a and b.
template <typename Body>
inline void for_each(const WorkedArgs* args, const Body& body) {
    const Part part = my_part(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        body(i, vl);
        i += vl;
    }
}

}  // namespace

// Each element becomes the mean of its neighbours in `a`, which has one more at each end.
ORR_KERNEL void relax(const WorkedArgs* args) {
    const size_t lanes = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t most = __riscv_vfmv_v_f_f32m4(0.0f, lanes);
    for_each(args, [&](uint64_t i, size_t vl) {
        const vfloat32m4_t left = __riscv_vle32_v_f32m4(args->a + i, vl);
        const vfloat32m4_t right = __riscv_vle32_v_f32m4(args->a + i + 2, vl);
        const vfloat32m4_t mean = __riscv_vfmul_vf_f32m4(__riscv_vfadd_vv_f32m4(left, right, vl), 0.5f, vl);
        const vfloat32m4_t before = __riscv_vle32_v_f32m4(args->a + i + 1, vl);
        most = __riscv_vfmax_vv_f32m4_tu(
            most, most, __riscv_vfabs_v_f32m4(__riscv_vfsub_vv_f32m4(mean, before, vl), vl), vl);
        __riscv_vse32_v_f32m4(args->out + i + 1, mean, vl);
    });
    const vfloat32m1_t least = __riscv_vfmv_v_f_f32m1(0.0f, 1);
    args->change[orr::group_x()] =
        __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmax_vs_f32m4_f32m1(most, least, lanes));
}

ORR_KERNEL void scale(const WorkedArgs* args) {
    for_each(args, [&](uint64_t i, size_t vl) {
        __riscv_vse32_v_f32m4(args->out + i,
                              __riscv_vfmul_vf_f32m4(__riscv_vle32_v_f32m4(args->a + i, vl), 1.5f, vl), vl);
    });
}

ORR_KERNEL void add(const WorkedArgs* args) {
    for_each(args, [&](uint64_t i, size_t vl) {
        __riscv_vse32_v_f32m4(args->out + i,
                              __riscv_vfadd_vv_f32m4(__riscv_vle32_v_f32m4(args->a + i, vl),
                                                     __riscv_vle32_v_f32m4(args->b + i, vl), vl),
                              vl);
    });
}

ORR_KERNEL void clip(const WorkedArgs* args) {
    for_each(args, [&](uint64_t i, size_t vl) {
        const vfloat32m4_t x = __riscv_vle32_v_f32m4(args->a + i, vl);
        __riscv_vse32_v_f32m4(args->out + i,
                              __riscv_vfmin_vf_f32m4(__riscv_vfmax_vf_f32m4(x, 0.0f, vl), 1.0f, vl), vl);
    });
}

// The three in one: what lies between them stays in registers.
ORR_KERNEL void scale_add_clip(const WorkedArgs* args) {
    for_each(args, [&](uint64_t i, size_t vl) {
        const vfloat32m4_t scaled = __riscv_vfmul_vf_f32m4(__riscv_vle32_v_f32m4(args->a + i, vl), 1.5f, vl);
        const vfloat32m4_t sum = __riscv_vfadd_vv_f32m4(scaled, __riscv_vle32_v_f32m4(args->b + i, vl), vl);
        __riscv_vse32_v_f32m4(args->out + i,
                              __riscv_vfmin_vf_f32m4(__riscv_vfmax_vf_f32m4(sum, 0.0f, vl), 1.0f, vl), vl);
    });
}

// x = x / 2 + 1, `rounds` times.
ORR_KERNEL void iterate(const WorkedArgs* args) {
    for_each(args, [&](uint64_t i, size_t vl) {
        vfloat32m4_t x = __riscv_vle32_v_f32m4(args->a + i, vl);
        for (uint64_t round = args->rounds; round != 0; --round)
            x = __riscv_vfadd_vf_f32m4(__riscv_vfmul_vf_f32m4(x, 0.5f, vl), 1.0f, vl);
        __riscv_vse32_v_f32m4(args->out + i, x, vl);
    });
}
