// Attention in one pass, in the manner of FlashAttention: the scores of a few queries against a strip of keys
// live in registers and local memory only. Softmax goes along with it: when a higher score turns up, what has
// been summed so far fades by exp(old top - new top).
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"
#include "umd/samples/support/vector_math.h"

#define FOR_ROWS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)

namespace {

// Highest score, weights and their sum of one query, with this strip of keys in.
inline void weigh(AttentionLocal& local, unsigned row, vfloat32m2_t scores, float scale, size_t vl) {
    scores = __riscv_vfmul_vf_f32m2(scores, scale, vl);
    const float top = sample::maximum(scores, local.top[row], vl);
    const vfloat32m2_t weights = sample::exp(__riscv_vfsub_vf_f32m2(scores, top, vl), vl);
    __riscv_vse32_v_f32m2(local.weights[row], weights, vl);
    local.fade[row] = local.top[row] - top;
    local.top[row] = top;
    // One element each: the sum of this strip waits for the fade of all rows.
    const float strip = sample::sum(weights, vl);
    const vfloat32m2_t fade = sample::exp(__riscv_vfmv_v_f_f32m2(local.fade[row], 1), 1);
    local.fade[row] = __riscv_vfmv_f_s_f32m2_f32(fade);
    local.sum[row] = local.sum[row] * local.fade[row] + strip;
}

}  // namespace

ORR_KERNEL void attention(const AttentionArgs* args) {
    const uint64_t length = args->length, width = args->width;
    const uint64_t head = uint64_t{orr::group_y()} * length * width;
    const float* const q = args->q + head;
    const float* const k = args->k + head;
    const float* const v = args->v + head;
    float* const out = args->out + head;
    const float scale = args->scale;
    AttentionLocal& local = *orr::local<AttentionLocal>();

    // Queries beyond the last are the last one again: computed, and stored as the same.
    const uint64_t first = uint64_t{orr::group_x()} * kAttentionRows;
#define ROW(i) const float* const q##i = q + (first + (i) < length ? first + (i) : length - 1) * width;
    FOR_ROWS(ROW)
#undef ROW
    for (unsigned row = 0; row < kAttentionRows; ++row)
        local.top[row] = -__builtin_inff();

    for (uint64_t key = 0; key < length;) {
        const uint64_t left = length - key;
        const size_t vl = __riscv_vsetvl_e32m2(left < kAttentionKeys ? left : kAttentionKeys);
#define START(i) vfloat32m2_t score##i = __riscv_vfmv_v_f_f32m2(0.0f, vl);
        FOR_ROWS(START)
#undef START
        const float* from = k + key;
        for (uint64_t at = 0; at < width; ++at) {
            const vfloat32m2_t keys = __riscv_vle32_v_f32m2(from, vl);
            from += length;
#define ADD(i) score##i = __riscv_vfmacc_vf_f32m2(score##i, q##i[at], keys, vl);
            FOR_ROWS(ADD)
#undef ADD
        }
#define WEIGH(i) weigh(local, i, score##i, scale, vl);
        FOR_ROWS(WEIGH)
#undef WEIGH
        for (uint64_t column = 0; column < width;) {
            const size_t wide = __riscv_vsetvl_e32m2(width - column);
#define LOAD(i)           \
    vfloat32m2_t sum##i = \
        __riscv_vfmul_vf_f32m2(__riscv_vle32_v_f32m2(local.out[i] + column, wide), local.fade[i], wide);
            FOR_ROWS(LOAD)
#undef LOAD
            const float* row = v + key * width + column;
            for (size_t j = 0; j < vl; ++j) {
                const vfloat32m2_t values = __riscv_vle32_v_f32m2(row, wide);
                row += width;
#define ADD(i) sum##i = __riscv_vfmacc_vf_f32m2(sum##i, local.weights[i][j], values, wide);
                FOR_ROWS(ADD)
#undef ADD
            }
#define STORE(i) __riscv_vse32_v_f32m2(local.out[i] + column, sum##i, wide);
            FOR_ROWS(STORE)
#undef STORE
            column += wide;
        }
        key += vl;
    }
    for (unsigned row = 0; row < kAttentionRows && first + row < length; ++row) {
        const float factor = 1.0f / local.sum[row];
        for (uint64_t column = 0; column < width;) {
            const size_t wide = __riscv_vsetvl_e32m2(width - column);
            const vfloat32m2_t sums = __riscv_vle32_v_f32m2(local.out[row] + column, wide);
            __riscv_vse32_v_f32m2(out + (first + row) * width + column,
                                  __riscv_vfmul_vf_f32m2(sums, factor, wide), wide);
            column += wide;
        }
    }
}
