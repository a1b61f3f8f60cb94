// Matrix product by tiles. A tile of C, 7 rows high and a register group wide, stays in registers while the
// kernel goes along k: a row of B is loaded once and used seven times, an element of A is a scalar operand.
// 7 groups of 4 registers hold the sums and one the row of B, which makes 32.
//
// A multiply-add keeps the vector unit busy for several cycles, in which the hart loads the next scalar, if
// that is near: so the 7 rows of A are brought into work-group memory first, a step's 7 elements side by
// side.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

#define FOR_ROWS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6)

namespace {

// `steps` elements of 7 rows of A, from `a` on.
inline void bring(GemmLocal& local, const float* a, uint64_t k, uint64_t rows, uint64_t steps) {
    for (uint64_t row = 0; row < kGemmRows; ++row) {
        // Rows beyond the last are the last one again: they are computed, and store the same once more.
        const float* from = a + (row < rows ? row : rows - 1) * k;
        for (uint64_t step = 0; step < steps;) {
            const size_t vl = __riscv_vsetvl_e32m8(steps - step);
            __riscv_vsse32_v_f32m8(&local.a[step][row], sizeof local.a[0],
                                   __riscv_vle32_v_f32m8(from + step, vl), vl);
            step += vl;
        }
    }
}

}  // namespace

ORR_KERNEL void gemm(const GemmArgs* args) {
    const uint64_t m = args->m, n = args->n, k = args->k;
    const uint64_t first = uint64_t{orr::group_x()} * kGemmRows, batch = orr::group_y();
    const float* const a = args->a + (batch * m + first) * k;
    const float* const b = args->b + batch * k * n;
    float* const c = args->c + (batch * m + first) * n;
    const float scale = args->scale;
    const uint64_t rows = m - first < kGemmRows ? m - first : kGemmRows;
    GemmLocal& local = *orr::local<GemmLocal>();
    // Groups next to one another in z take strips of columns in turn, however wide a strip is.
    uint64_t strip = 0;

    for (uint64_t column = 0; column < n; ++strip) {
        const size_t vl = __riscv_vsetvl_e32m4(n - column);
        if (strip % orr::grid_z() != orr::group_z()) {
            column += vl;
            continue;
        }
#define START(i) vfloat32m4_t sum##i = __riscv_vfmv_v_f_f32m4(0.0f, vl);
        FOR_ROWS(START)
#undef START
        for (uint64_t done = 0; done < k;) {
            const uint64_t steps = k - done < kGemmSteps ? k - done : kGemmSteps;
            bring(local, a + done, k, rows, steps);
            const float* from = b + done * n + column;
            for (uint64_t step = 0; step < steps; ++step) {
                const vfloat32m4_t b_row = __riscv_vle32_v_f32m4(from, vl);
                from += n;
#define ADD(i) sum##i = __riscv_vfmacc_vf_f32m4(sum##i, local.a[step][i], b_row, vl);
                FOR_ROWS(ADD)
#undef ADD
            }
            done += steps;
        }
#define STORE(i)                                                          \
    __riscv_vse32_v_f32m4(c + ((i) < rows ? (i) : rows - 1) * n + column, \
                          __riscv_vfmul_vf_f32m4(sum##i, scale, vl), vl);
        FOR_ROWS(STORE)
#undef STORE
        column += vl;
    }
}
