// Matrix product by tiles. A tile of C, 7 rows high and a register group wide, stays in registers while the
// kernel goes along k: a row of B is loaded once and used seven times, an element of A is a scalar operand.
// 7 groups of 4 registers hold the sums and one the row of B, which makes 32.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

#define FOR_ROWS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6)

ORR_KERNEL void gemm(const GemmArgs* args) {
    const uint64_t m = args->m, n = args->n, k = args->k;
    const uint64_t batch = orr::group_y();
    const float* const a = args->a + batch * m * k;
    const float* const b = args->b + batch * k * n;
    float* const c = args->c + batch * m * n;
    const float scale = args->scale;
    const uint64_t first = uint64_t{orr::group_x()} * kGemmRows;

    // Rows beyond the last are the last one again: they are computed, and store the same once more.
#define ROW(i) const uint64_t row##i = first + (i) < m ? first + (i) : m - 1;
    FOR_ROWS(ROW)
#undef ROW

    for (uint64_t column = 0; column < n;) {
        const size_t vl = __riscv_vsetvl_e32m4(n - column);
#define START(i)                                            \
    vfloat32m4_t sum##i = __riscv_vfmv_v_f_f32m4(0.0f, vl); \
    const float* a##i = a + row##i * k;
        FOR_ROWS(START)
#undef START
        const float* from = b + column;
        for (uint64_t step = 0; step < k; ++step) {
            const vfloat32m4_t b_row = __riscv_vle32_v_f32m4(from, vl);
            from += n;
#define ADD(i) sum##i = __riscv_vfmacc_vf_f32m4(sum##i, a##i[step], b_row, vl);
            FOR_ROWS(ADD)
#undef ADD
        }
#define STORE(i) \
    __riscv_vse32_v_f32m4(c + row##i * n + column, __riscv_vfmul_vf_f32m4(sum##i, scale, vl), vl);
        FOR_ROWS(STORE)
#undef STORE
        column += vl;
    }
}
