// A layer: the product of a micro-batch and the weights, and nothing below zero. Products and sums are
// rounded one by one, as the CPU does it that checks them.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

ORR_KERNEL void layer(const LayerArgs* args) {
    const uint64_t width = args->width;
    for (uint64_t row = orr::group_x(); row < args->rows; row += orr::grid_x()) {
        const float* const in = args->in + row * width;
        for (uint64_t column = 0; column < width;) {
            const size_t vl = __riscv_vsetvl_e32m4(width - column);
            vfloat32m4_t sum = __riscv_vfmv_v_f_f32m4(0.0f, vl);
            for (uint64_t k = 0; k < width; ++k) {
                const vfloat32m4_t weights = __riscv_vle32_v_f32m4(args->weights + k * width + column, vl);
                sum = __riscv_vfadd_vv_f32m4(sum, __riscv_vfmul_vf_f32m4(weights, in[k], vl), vl);
            }
            __riscv_vse32_v_f32m4(args->out + row * width + column, __riscv_vfmax_vf_f32m4(sum, 0.0f, vl),
                                  vl);
            column += vl;
        }
    }
}
