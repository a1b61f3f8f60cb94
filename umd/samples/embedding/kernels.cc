// Sums of rows of a large table, picked by index: what recommendation models do most. Bags have any length,
// so groups take the next bag when they are done with one, instead of an equal share.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

ORR_KERNEL void embedding(const EmbeddingArgs* args) {
    const uint64_t width = args->width;
    // A few bags at a time, so that the common counter is no bottleneck.
    constexpr uint32_t kTake = 4;
    for (;;) {
        const uint32_t first = orr::atomic_add(args->next, kTake);
        if (first >= args->bags) return;
        for (uint32_t bag = first; bag < first + kTake && bag < args->bags; ++bag) {
            const uint32_t begin = args->offsets[bag], end = args->offsets[bag + 1];
            for (uint64_t column = 0; column < width;) {
                const size_t vl = __riscv_vsetvl_e32m4(width - column);
                vfloat32m4_t sum = __riscv_vfmv_v_f_f32m4(0.0f, vl);
                for (uint32_t i = begin; i < end; ++i) {
                    const float* row = args->table + args->indices[i] * width + column;
                    sum = __riscv_vfadd_vv_f32m4(sum, __riscv_vle32_v_f32m4(row, vl), vl);
                }
                __riscv_vse32_v_f32m4(args->out + bag * width + column, sum, vl);
                column += vl;
            }
        }
    }
}
