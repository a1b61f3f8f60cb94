// The first kernels that everybody writes, in the group form: one work-group is one hart, and it works
// through its part in strips as long as the registers are (VLEN and LMUL decide; the code does not know
// them).
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"
#include "umd/samples/support/group_part.h"
#include "umd/samples/support/vector_math.h"

using sample::my_part;
using sample::Part;

ORR_KERNEL void saxpy(const SaxpyArgs* args) {
    const Part part = my_part(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
        const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->x + i, vl);
        const vfloat32m8_t y = __riscv_vle32_v_f32m8(args->y + i, vl);
        __riscv_vse32_v_f32m8(args->y + i, __riscv_vfmacc_vf_f32m8(y, args->a, x, vl), vl);
        i += vl;
    }
}

// Sums lane by lane first, so that a strip costs one addition, and across the lanes once at the end.
ORR_KERNEL void reduce(const ReduceArgs* args) {
    const Part part = my_part(args->count);
    const size_t lanes = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t sums = __riscv_vfmv_v_f_f32m4(0.0f, lanes);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        // _tu: lanes beyond the last strip keep their sums.
        sums = __riscv_vfadd_vv_f32m4_tu(sums, sums, __riscv_vle32_v_f32m4(args->x + i, vl), vl);
        i += vl;
    }
    args->partial[orr::group_x()] = sample::sum(sums, lanes);
}

// Prefix sums of each group's part, and the part's total.
ORR_KERNEL void scan_parts(const ScanArgs* args) {
    const Part part = my_part(args->count);
    uint32_t before = 0;
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        vuint32m4_t sums = __riscv_vle32_v_u32m4(args->x + i, vl);
        const vuint32m4_t zero = __riscv_vmv_v_x_u32m4(0, vl);
        // After the step of distance d each element is the sum of the 2 d elements up to it.
        for (size_t distance = 1; distance < vl; distance *= 2) {
            sums = __riscv_vadd_vv_u32m4(sums, __riscv_vslideup_vx_u32m4(zero, sums, distance, vl), vl);
        }
        sums = __riscv_vadd_vx_u32m4(sums, before, vl);
        __riscv_vse32_v_u32m4(args->sums + i, sums, vl);
        i += vl;
        before = args->sums[i - 1];
    }
    args->totals[orr::group_x()] = before;
}

// One group: totals[p] becomes the sum of the totals before part p.
ORR_KERNEL void scan_totals(const ScanArgs* args) {
    uint32_t before = 0;
    for (uint32_t part = 0; part < args->parts; ++part) {
        const uint32_t total = args->totals[part];
        args->totals[part] = before;
        before += total;
    }
}

ORR_KERNEL void scan_add(const ScanArgs* args) {
    const Part part = my_part(args->count);
    const uint32_t before = args->totals[orr::group_x()];
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
        const vuint32m8_t sums = __riscv_vle32_v_u32m8(args->sums + i, vl);
        __riscv_vse32_v_u32m8(args->sums + i, __riscv_vadd_vx_u32m8(sums, before, vl), vl);
        i += vl;
    }
}

// Four rows at a time: they are read as they lie, and written as segments, so that the four elements which
// become neighbours are stored together.
ORR_KERNEL void transpose(const TransposeArgs* args) {
    const uint64_t rows = args->rows, columns = args->columns;
    const Part part = my_part((rows + 3) / 4);
    for (uint64_t block = part.begin; block < part.end; ++block) {
        const uint64_t row = block * 4;
        for (uint64_t column = 0; column < columns;) {
            const size_t vl = __riscv_vsetvl_e32m2(columns - column);
            const float* in = args->in + row * columns + column;
            float* out = args->out + column * rows + row;
            const ptrdiff_t pitch = static_cast<ptrdiff_t>(rows * sizeof(float));
            if (row + 4 <= rows) {
                const vfloat32m2_t a = __riscv_vle32_v_f32m2(in, vl);
                const vfloat32m2_t b = __riscv_vle32_v_f32m2(in + columns, vl);
                const vfloat32m2_t c = __riscv_vle32_v_f32m2(in + 2 * columns, vl);
                const vfloat32m2_t d = __riscv_vle32_v_f32m2(in + 3 * columns, vl);
                __riscv_vssseg4e32_v_f32m2x4(out, pitch, __riscv_vcreate_v_f32m2x4(a, b, c, d), vl);
            } else {
                for (uint64_t r = row; r < rows; ++r, in += columns, ++out)
                    __riscv_vsse32_v_f32m2(out, pitch, __riscv_vle32_v_f32m2(in, vl), vl);
            }
            column += vl;
        }
    }
}

ORR_KERNEL void softmax(const SoftmaxArgs* args) {
    const Part part = my_part(args->rows);
    const uint64_t columns = args->columns;
    for (uint64_t row = part.begin; row < part.end; ++row) {
        const float* in = args->in + row * columns;
        float* out = args->out + row * columns;
        float top = in[0];
        for (uint64_t i = 0; i < columns;) {
            const size_t vl = __riscv_vsetvl_e32m4(columns - i);
            top = sample::maximum(__riscv_vle32_v_f32m4(in + i, vl), top, vl);
            i += vl;
        }
        float sum = 0;
        for (uint64_t i = 0; i < columns;) {
            const size_t vl = __riscv_vsetvl_e32m4(columns - i);
            const vfloat32m4_t x = __riscv_vfsub_vf_f32m4(__riscv_vle32_v_f32m4(in + i, vl), top, vl);
            const vfloat32m4_t e = sample::exp(x, vl);
            __riscv_vse32_v_f32m4(out + i, e, vl);
            sum += sample::sum(e, vl);
            i += vl;
        }
        const float scale = 1.0f / sum;
        for (uint64_t i = 0; i < columns;) {
            const size_t vl = __riscv_vsetvl_e32m8(columns - i);
            const vfloat32m8_t e = __riscv_vle32_v_f32m8(out + i, vl);
            __riscv_vse32_v_f32m8(out + i, __riscv_vfmul_vf_f32m8(e, scale, vl), vl);
            i += vl;
        }
    }
}

ORR_KERNEL void layer_norm(const LayerNormArgs* args) {
    const Part part = my_part(args->rows);
    const uint64_t columns = args->columns;
    const float share = 1.0f / static_cast<float>(columns);
    for (uint64_t row = part.begin; row < part.end; ++row) {
        const float* in = args->in + row * columns;
        float* out = args->out + row * columns;
        float mean = 0, variance = 0;
        for (uint64_t i = 0; i < columns;) {
            const size_t vl = __riscv_vsetvl_e32m4(columns - i);
            mean += sample::sum(__riscv_vle32_v_f32m4(in + i, vl), vl);
            i += vl;
        }
        mean *= share;
        // In a second pass: the difference of two large sums would lose what the variance is made of.
        for (uint64_t i = 0; i < columns;) {
            const size_t vl = __riscv_vsetvl_e32m4(columns - i);
            const vfloat32m4_t x = __riscv_vfsub_vf_f32m4(__riscv_vle32_v_f32m4(in + i, vl), mean, vl);
            variance += sample::sum(__riscv_vfmul_vv_f32m4(x, x, vl), vl);
            i += vl;
        }
        const float scale = 1.0f / __builtin_sqrtf(variance * share + args->epsilon);
        for (uint64_t i = 0; i < columns;) {
            const size_t vl = __riscv_vsetvl_e32m4(columns - i);
            vfloat32m4_t x = __riscv_vfsub_vf_f32m4(__riscv_vle32_v_f32m4(in + i, vl), mean, vl);
            x = __riscv_vfmul_vf_f32m4(x, scale, vl);
            const vfloat32m4_t factor = __riscv_vle32_v_f32m4(args->scale + i, vl);
            x = __riscv_vfmadd_vv_f32m4(x, factor, __riscv_vle32_v_f32m4(args->shift + i, vl), vl);
            __riscv_vse32_v_f32m4(out + i, x, vl);
            i += vl;
        }
    }
}
