// Elementary functions for vector kernels, on as many elements as a register group holds.
#pragma once

#include <riscv_vector.h>

namespace sample {

// exp(x): e^x of each element, to within 2 units of the last place; below -87.3 the result is 0, above 88.3
// it is that of 88.3 (what softmax and its kind ask for is never above 0). sum(x) and maximum(x, start): over
// all elements.
//
// The intrinsics have the register group in their types and names, so each size is a function of its own.
// exp: x = n ln 2 + r; ln 2 is taken off in two parts, as n times the first is exact; Taylor's series does
// for |r| <= ln 2 / 2, its next term is below 2^-27; and 2^n goes into the exponent.
#define SAMPLE_VECTOR_MATH(group, mask)                                                                     \
    inline vfloat32##group##_t exp(vfloat32##group##_t x, size_t vl) {                                      \
        constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;           \
        const vbool##mask##_t vanishes = __riscv_vmflt_vf_f32##group##_b##mask(x, -87.3f, vl);              \
        x = __riscv_vfmin_vf_f32##group(__riscv_vfmax_vf_f32##group(x, -87.3f, vl), 88.3f, vl);             \
        const vint32##group##_t n =                                                                         \
            __riscv_vfcvt_x_f_v_i32##group(__riscv_vfmul_vf_f32##group(x, kLog2E, vl), vl);                 \
        const vfloat32##group##_t whole = __riscv_vfcvt_f_x_v_f32##group(n, vl);                            \
        x = __riscv_vfnmsac_vf_f32##group(x, kLn2High, whole, vl);                                          \
        x = __riscv_vfnmsac_vf_f32##group(x, kLn2Low, whole, vl);                                           \
        vfloat32##group##_t e = __riscv_vfmv_v_f_f32##group(1.0f / 5040, vl);                               \
        constexpr float kTerms[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};         \
        for (const float term : kTerms)                                                                     \
            e = __riscv_vfmadd_vv_f32##group(e, x, __riscv_vfmv_v_f_f32##group(term, vl), vl);              \
        const vint32##group##_t bits = __riscv_vreinterpret_v_f32##group##_i32##group(e);                   \
        const vint32##group##_t scaled =                                                                    \
            __riscv_vadd_vv_i32##group(bits, __riscv_vsll_vx_i32##group(n, 23, vl), vl);                    \
        return __riscv_vfmerge_vfm_f32##group(__riscv_vreinterpret_v_i32##group##_f32##group(scaled), 0.0f, \
                                              vanishes, vl);                                                \
    }                                                                                                       \
    inline float sum(vfloat32##group##_t x, size_t vl) {                                                    \
        const vfloat32m1_t zero = __riscv_vfmv_s_f_f32m1(0.0f, 1);                                          \
        return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32##group##_f32m1(x, zero, vl));            \
    }                                                                                                       \
    inline float maximum(vfloat32##group##_t x, float start, size_t vl) {                                   \
        const vfloat32m1_t first = __riscv_vfmv_s_f_f32m1(start, 1);                                        \
        return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmax_vs_f32##group##_f32m1(x, first, vl));            \
    }

SAMPLE_VECTOR_MATH(m2, 16)
SAMPLE_VECTOR_MATH(m4, 8)
#undef SAMPLE_VECTOR_MATH

}  // namespace sample
