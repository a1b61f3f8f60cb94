/* Vector code: intrinsics where the compiler makes no vectors of a loop, loops where it does. */
#include "tests/unit/riscv/programs/programs.h"

#include <riscv_vector.h>

void vector_saxpy(size_t n, float a, const float* x, float* y) {
    for (size_t i = 0; i < n; ++i)
        y[i] = __builtin_fmaf(a, x[i], y[i]);
}
int64_t vector_sum(size_t n, const int32_t* x) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += x[i];
    return sum;
}
int32_t vector_dot8(size_t n, const int8_t* x, const int8_t* y) {
    int32_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += x[i] * y[i];
    return sum;
}
uint16_t vector_max16(size_t n, const uint16_t* x) {
    uint16_t max = 0;
    for (size_t i = 0; i < n; ++i)
        max = x[i] > max ? x[i] : max;
    return max;
}
float vector_ordered_sum(size_t n, const float* x) {
    vfloat32m1_t sum = __riscv_vfmv_s_f_f32m1(0, 1);
    for (size_t vl; n > 0; n -= vl, x += vl) {
        vl = __riscv_vsetvl_e32m4(n);
        sum = __riscv_vfredosum_vs_f32m4_f32m1(__riscv_vle32_v_f32m4(x, vl), sum, vl);
    }
    return __riscv_vfmv_f_s_f32m1_f32(sum);
}
/* Reads up to where nothing is mapped any more: loads that stop at a fault. */
size_t vector_length(const char* text) {
    const size_t vlmax = __riscv_vsetvlmax_e8m8();
    for (size_t at = 0;;) {
        size_t vl = 0;
        const vuint8m8_t bytes = __riscv_vle8ff_v_u8m8((const uint8_t*)text + at, &vl, vlmax);
        const long zero = __riscv_vfirst_m_b1(__riscv_vmseq_vx_u8m8_b1(bytes, 0, vl), vl);
        if (zero >= 0) return at + (size_t)zero;
        at += vl;
    }
}
int vector_compare(const char* a, const char* b) {
    for (;;) {
        size_t vl = 0, both = 0;
        const vuint8m4_t x = __riscv_vle8ff_v_u8m4((const uint8_t*)a, &vl, __riscv_vsetvlmax_e8m4());
        const vuint8m4_t y = __riscv_vle8ff_v_u8m4((const uint8_t*)b, &both, vl);
        const vbool2_t ends = __riscv_vmor_mm_b2(__riscv_vmseq_vx_u8m4_b2(x, 0, both),
                                                 __riscv_vmsne_vv_u8m4_b2(x, y, both), both);
        const long at = __riscv_vfirst_m_b2(ends, both);
        if (at >= 0) return (unsigned char)a[at] - (unsigned char)b[at];
        a += both;
        b += both;
    }
}
void vector_planes(size_t n, const uint8_t* rgb, uint8_t* r, uint8_t* g, uint8_t* b) {
    for (size_t vl; n > 0; n -= vl, rgb += 3 * vl, r += vl, g += vl, b += vl) {
        vl = __riscv_vsetvl_e8m2(n);
        const vuint8m2x3_t pixels = __riscv_vlseg3e8_v_u8m2x3(rgb, vl);
        __riscv_vse8_v_u8m2(r, __riscv_vget_v_u8m2x3_u8m2(pixels, 0), vl);
        __riscv_vse8_v_u8m2(g, __riscv_vget_v_u8m2x3_u8m2(pixels, 1), vl);
        __riscv_vse8_v_u8m2(b, __riscv_vget_v_u8m2x3_u8m2(pixels, 2), vl);
    }
}
void vector_pixels(size_t n, const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* rgb) {
    for (size_t vl; n > 0; n -= vl, rgb += 3 * vl, r += vl, g += vl, b += vl) {
        vl = __riscv_vsetvl_e8m1(n);
        const vuint8m1x3_t pixels = __riscv_vcreate_v_u8m1x3(
            __riscv_vle8_v_u8m1(r, vl), __riscv_vle8_v_u8m1(g, vl), __riscv_vle8_v_u8m1(b, vl));
        __riscv_vsseg3e8_v_u8m1x3(rgb, pixels, vl);
    }
}
void vector_transpose8(size_t n, const uint32_t* from, uint32_t* to) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m1(n - i);
        const vuint32m1x8_t rows = __riscv_vlseg8e32_v_u32m1x8(from + 8 * i, vl);
#define COLUMN(k) __riscv_vse32_v_u32m1(to + k * n + i, __riscv_vget_v_u32m1x8_u32m1(rows, k), vl)
        COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3), COLUMN(4), COLUMN(5), COLUMN(6), COLUMN(7);
    }
}
void vector_gather(size_t n, const uint32_t* index, const uint64_t* from, uint64_t* to) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e64m4(n - i);
        const vuint32m2_t at = __riscv_vsll_vx_u32m2(__riscv_vle32_v_u32m2(index + i, vl), 3, vl);
        __riscv_vse64_v_u64m4(to + i, __riscv_vluxei32_v_u64m4(from, at, vl), vl);
    }
}
void vector_scatter(size_t n, const uint16_t* index, const uint32_t* from, uint32_t* to) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m2(n - i);
        const vuint16m1_t at = __riscv_vsll_vx_u16m1(__riscv_vle16_v_u16m1(index + i, vl), 2, vl);
        __riscv_vsoxei16_v_u32m2(to, at, __riscv_vle32_v_u32m2(from + i, vl), vl);
    }
}
void vector_columns(size_t n, ptrdiff_t stride, const uint8_t* from, uint16_t* to) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e16m8(n - i);
        const uint16_t* first = (const uint16_t*)(from + (ptrdiff_t)i * stride);
        __riscv_vse16_v_u16m8(to + i, __riscv_vlse16_v_u16m8(first, stride, vl), vl);
    }
}
void vector_reverse(size_t n, const uint8_t* from, uint8_t* to) {
    for (size_t vl; n > 0; n -= vl, from += vl) {
        vl = __riscv_vsetvl_e8m4(n); /* with 16-bit indices: 8 bits do not name all elements */
        const vuint16m8_t at = __riscv_vrsub_vx_u16m8(__riscv_vid_v_u16m8(vl), vl - 1, vl);
        __riscv_vse8_v_u8m4(to + n - vl, __riscv_vrgatherei16_vv_u8m4(__riscv_vle8_v_u8m4(from, vl), at, vl),
                            vl);
    }
}
size_t vector_filter(size_t n, const int32_t* from, int32_t* to) {
    size_t kept = 0;
    for (size_t vl; n > 0; n -= vl, from += vl) {
        vl = __riscv_vsetvl_e32m4(n);
        const vint32m4_t x = __riscv_vle32_v_i32m4(from, vl);
        const vbool8_t wanted = __riscv_vmseq_vx_i32m4_b8(__riscv_vrem_vx_i32m4(x, 3, vl), 0, vl);
        const size_t more = __riscv_vcpop_m_b8(wanted, vl);
        __riscv_vse32_v_i32m4(to + kept, __riscv_vcompress_vm_i32m4(x, wanted, vl), more);
        kept += more;
    }
    return kept;
}
void vector_prefix_sum(size_t n, const uint32_t* from, uint32_t* to) {
    uint32_t before = 0;
    for (size_t vl; n > 0; n -= vl, from += vl, to += vl) {
        vl = __riscv_vsetvl_e32m2(n);
        vuint32m2_t x = __riscv_vle32_v_u32m2(from, vl);
        for (size_t step = 1; step < vl; step *= 2) {
            const vuint32m2_t zero = __riscv_vmv_v_x_u32m2(0, vl);
            x = __riscv_vadd_vv_u32m2(x, __riscv_vslideup_vx_u32m2(zero, x, step, vl), vl);
        }
        x = __riscv_vadd_vx_u32m2(x, before, vl);
        __riscv_vse32_v_u32m2(to, x, vl);
        before = to[vl - 1];
    }
}
size_t vector_words(size_t n, const char* text) {
    size_t words = 0;
    uint8_t before = ' ';
    for (size_t vl; n > 0; n -= vl, text += vl) {
        vl = __riscv_vsetvl_e8m8(n);
        const vuint8m8_t x = __riscv_vle8_v_u8m8((const uint8_t*)text, vl);
        const vuint8m8_t left = __riscv_vslide1up_vx_u8m8(x, before, vl);
        const vbool1_t begins = __riscv_vmandn_mm_b1(__riscv_vmseq_vx_u8m8_b1(left, ' ', vl),
                                                     __riscv_vmseq_vx_u8m8_b1(x, ' ', vl), vl);
        words += __riscv_vcpop_m_b1(begins, vl);
        before = (uint8_t)text[vl - 1];
    }
    return words;
}
void vector_sgemm(size_t n, const float* a, const float* b, float* c) {
    for (size_t i = 0; i < n; ++i)
        for (size_t vl, j = 0; j < n; j += vl) {
            vl = __riscv_vsetvl_e32m4(n - j);
            vfloat32m4_t sum = __riscv_vfmv_v_f_f32m4(0, vl);
            for (size_t k = 0; k < n; ++k)
                sum =
                    __riscv_vfmacc_vf_f32m4(sum, a[i * n + k], __riscv_vle32_v_f32m4(b + k * n + j, vl), vl);
            __riscv_vse32_v_f32m4(c + i * n + j, sum, vl);
        }
}
void vector_divide(size_t n, const int64_t* a, const int64_t* b, int64_t* q, int64_t* r) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e64m2(n - i);
        const vint64m2_t x = __riscv_vle64_v_i64m2(a + i, vl), y = __riscv_vle64_v_i64m2(b + i, vl);
        __riscv_vse64_v_i64m2(q + i, __riscv_vdiv_vv_i64m2(x, y, vl), vl);
        __riscv_vse64_v_i64m2(r + i, __riscv_vrem_vv_i64m2(x, y, vl), vl);
    }
}
void vector_mix(size_t n, const int16_t* a, const int16_t* b, int16_t* out) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e16m2(n - i);
        const vint16m2_t x = __riscv_vle16_v_i16m2(a + i, vl), y = __riscv_vle16_v_i16m2(b + i, vl);
        const vint16m2_t scaled = __riscv_vsmul_vv_i16m2(x, y, __RISCV_VXRM_RNU, vl);
        __riscv_vse16_v_i16m2(out + i, __riscv_vssub_vv_i16m2(__riscv_vsadd_vv_i16m2(x, scaled, vl), y, vl),
                              vl);
    }
}
void vector_copy(size_t n, const uint8_t* from, uint8_t* to) {
    for (size_t vl; n > 0; n -= vl, from += vl, to += vl) {
        vl = __riscv_vsetvl_e8m8(n);
        __riscv_vse8_v_u8m8(to, __riscv_vle8_v_u8m8(from, vl), vl);
    }
}
void vector_polynomial(size_t n, const double* x, double* y) {
    for (size_t i = 0; i < n; ++i)
        y[i] = ((x[i] * 0.25 + 1.5) * x[i] - 3.0) * x[i] / (x[i] * x[i] + 1.0);
}
void vector_half(size_t n, const float* x, float* y) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e16m2(n - i);
        const vfloat16m2_t h = __riscv_vfncvt_f_f_w_f16m2(__riscv_vle32_v_f32m4(x + i, vl), vl);
        const vfloat16m2_t square = __riscv_vfmacc_vv_f16m2(h, h, h, vl);
        __riscv_vse32_v_f32m4(
            y + i,
            __riscv_vfwmul_vv_f32m4(square, __riscv_vfsqrt_v_f16m2(__riscv_vfabs_v_f16m2(h, vl), vl), vl),
            vl);
    }
}
void vector_bfloat(size_t n, const float* x, float* y) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e16m2(n - i);
        const vfloat32m4_t f = __riscv_vle32_v_f32m4(x + i, vl);
        const vbfloat16m2_t b = __riscv_vfncvtbf16_f_f_w_bf16m2(f, vl);
        __riscv_vse32_v_f32m4(y + i, __riscv_vfwmaccbf16_vv_f32m4(f, b, b, vl), vl);
    }
}
void vector_estimate(size_t n, const float* x, float* y) {
    for (size_t vl, i = 0; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m8(n - i);
        const vfloat32m8_t v = __riscv_vle32_v_f32m8(x + i, vl), r = __riscv_vfrec7_v_f32m8(v, vl);
        const vfloat32m8_t two = __riscv_vfmv_v_f_f32m8(2, vl);
        const vfloat32m8_t better = __riscv_vfmul_vv_f32m8(r, __riscv_vfnmsac_vv_f32m8(two, v, r, vl), vl);
        __riscv_vse32_v_f32m8(y + i, __riscv_vfsub_vv_f32m8(better, __riscv_vfrsqrt7_v_f32m8(v, vl), vl), vl);
    }
}
