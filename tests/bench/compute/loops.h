// The loops that are measured, in vector code: the same on a card and in qemu-riscv64.
#pragma once

#include <riscv_vector.h>
#include <stddef.h>
#include <stdint.h>

namespace loops {

// y += a x
inline void saxpy(float* y, const float* x, float a, uint64_t count) {
    for (size_t vl; count > 0; count -= vl, x += vl, y += vl) {
        vl = __riscv_vsetvl_e32m8(count);
        const vfloat32m8_t sum =
            __riscv_vfmacc_vf_f32m8(__riscv_vle32_v_f32m8(y, vl), a, __riscv_vle32_v_f32m8(x, vl), vl);
        __riscv_vse32_v_f32m8(y, sum, vl);
    }
}

// z = x + a y
inline void triad(float* z, const float* x, const float* y, float a, uint64_t count) {
    for (size_t vl; count > 0; count -= vl, x += vl, y += vl, z += vl) {
        vl = __riscv_vsetvl_e32m8(count);
        const vfloat32m8_t sum =
            __riscv_vfmacc_vf_f32m8(__riscv_vle32_v_f32m8(x, vl), a, __riscv_vle32_v_f32m8(y, vl), vl);
        __riscv_vse32_v_f32m8(z, sum, vl);
    }
}

inline float sum(const float* x, uint64_t count) {
    const size_t lanes = __riscv_vsetvlmax_e32m8();
    vfloat32m8_t sums = __riscv_vfmv_v_f_f32m8(0.0f, lanes);
    for (size_t vl; count > 0; count -= vl, x += vl) {
        vl = __riscv_vsetvl_e32m8(count);
        sums = __riscv_vfadd_vv_f32m8_tu(sums, sums, __riscv_vle32_v_f32m8(x, vl), vl);
    }
    const vfloat32m1_t zero = __riscv_vfmv_s_f_f32m1(0.0f, 1);
    return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32m8_f32m1(sums, zero, lanes));
}

}  // namespace loops
