// Attention in one pass, in the manner of FlashAttention: scores live in registers and work-group memory
// only. Softmax goes along with them: when a higher score turns up, what has been summed so far fades by
// exp(old top - new top).
//
// The elements of a vector are queries. So what belongs to a query (its highest score, its sum) is an element
// too, and keys and values are scalars, which the hart loads from work-group memory while the vector unit is
// busy with the operation before.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"
#include "umd/samples/support/vector_math.h"

#define FOR_ROWS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6)
#define FOR_COLUMNS(f) f(0) f(1) f(2) f(3)

namespace {

struct Strip {
    const float* q;  // of the first query; `length` from an element of its to the next
    float* out;
    uint64_t length, width;
    size_t vl;  // queries
};

// Keys beyond the last are the last one again: nobody looks at their scores.
inline void bring(AttentionLocal& local, const float* k, const float* v, uint64_t width, uint64_t keys) {
    for (uint64_t key = 0; key < kAttentionKeys; ++key) {
        const float* const from = k + (key < keys ? key : keys - 1) * width;
        auto& to = local.keys[key / kAttentionRows];
        for (uint64_t at = 0; at < width;) {
            const size_t vl = __riscv_vsetvl_e32m4(width - at);
            __riscv_vsse32_v_f32m4(&to[at][key % kAttentionRows], sizeof to[0],
                                   __riscv_vle32_v_f32m4(from + at, vl), vl);
            at += vl;
        }
    }
    for (uint64_t at = 0; at < keys * width;) {
        const size_t vl = __riscv_vsetvl_e32m8(keys * width - at);
        __riscv_vse32_v_f32m8(local.values + at, __riscv_vle32_v_f32m8(v + at, vl), vl);
        at += vl;
    }
}

// Scores of all keys that are here, before they are scaled.
inline void score(AttentionLocal& local, const Strip& strip, uint64_t keys) {
    const size_t vl = strip.vl;
    for (uint64_t tile = 0; tile * kAttentionRows < keys; ++tile) {
#define START(i) vfloat32m4_t score##i = __riscv_vfmv_v_f_f32m4(0.0f, vl);
        FOR_ROWS(START)
#undef START
        const float* from = strip.q;
        for (uint64_t at = 0; at < strip.width; ++at) {
            const vfloat32m4_t queries = __riscv_vle32_v_f32m4(from, vl);
            from += strip.length;
#define ADD(i) score##i = __riscv_vfmacc_vf_f32m4(score##i, local.keys[tile][at][i], queries, vl);
            FOR_ROWS(ADD)
#undef ADD
        }
#define STORE(i) __riscv_vse32_v_f32m4(local.weights[tile * kAttentionRows + (i)], score##i, vl);
        FOR_ROWS(STORE)
#undef STORE
    }
}

// out = out * fade + weights * values
inline void add(AttentionLocal& local, const Strip& strip, uint64_t keys, vfloat32m4_t fade) {
    const size_t vl = strip.vl;
    for (uint64_t column = 0; column < strip.width; column += kAttentionColumns) {
        float* const out = strip.out + column * strip.length;
        const float* values = local.values + column;
#define LOAD(i)           \
    vfloat32m4_t sum##i = \
        __riscv_vfmul_vv_f32m4(__riscv_vle32_v_f32m4(out + (i) * strip.length, vl), fade, vl);
        FOR_COLUMNS(LOAD)
#undef LOAD
        for (uint64_t key = 0; key < keys; ++key, values += strip.width) {
            const vfloat32m4_t weights = __riscv_vle32_v_f32m4(local.weights[key], vl);
#define ADD(i) sum##i = __riscv_vfmacc_vf_f32m4(sum##i, values[i], weights, vl);
            FOR_COLUMNS(ADD)
#undef ADD
        }
#define STORE(i) __riscv_vse32_v_f32m4(out + (i) * strip.length, sum##i, vl);
        FOR_COLUMNS(STORE)
#undef STORE
    }
}

}  // namespace

ORR_KERNEL void attention(const AttentionArgs* args) {
    const uint64_t length = args->length, width = args->width;
    const uint64_t head = uint64_t{orr::group_y()} * length * width;
    const float* const k = args->k + head;
    const float* const v = args->v + head;
    const float scale = args->scale;
    AttentionLocal& local = *orr::local<AttentionLocal>();
    const uint64_t first = uint64_t{orr::group_x()} * kAttentionQueries;
    const uint64_t end = first + kAttentionQueries < length ? first + kAttentionQueries : length;

    for (uint64_t query = first; query < end;) {
        const size_t vl = __riscv_vsetvl_e32m4(end - query);
        const Strip strip{args->q + head + query, args->out + head + query, length, width, vl};
        for (uint64_t column = 0; column < width; ++column)
            __riscv_vse32_v_f32m4(strip.out + column * length, __riscv_vfmv_v_f_f32m4(0.0f, vl), vl);
        vfloat32m4_t top = __riscv_vfmv_v_f_f32m4(-__builtin_inff(), vl);  // scaled
        vfloat32m4_t sum = __riscv_vfmv_v_f_f32m4(0.0f, vl);
        for (uint64_t key = 0; key < length; key += kAttentionKeys) {
            const uint64_t keys = length - key < kAttentionKeys ? length - key : kAttentionKeys;
            bring(local, k + key * width, v + key * width, width, keys);
            score(local, strip, keys);
            vfloat32m4_t higher = top;
            for (uint64_t i = 0; i < keys; ++i) {
                const vfloat32m4_t scores =
                    __riscv_vfmul_vf_f32m4(__riscv_vle32_v_f32m4(local.weights[i], vl), scale, vl);
                higher = __riscv_vfmax_vv_f32m4(higher, scores, vl);
            }
            const vfloat32m4_t fade = sample::exp(__riscv_vfsub_vv_f32m4(top, higher, vl), vl);
            top = higher;
            sum = __riscv_vfmul_vv_f32m4(sum, fade, vl);
            for (uint64_t i = 0; i < keys; ++i) {
                const vfloat32m4_t scores = __riscv_vle32_v_f32m4(local.weights[i], vl);
                const vfloat32m4_t weights = sample::exp(__riscv_vfmsub_vf_f32m4(scores, scale, top, vl), vl);
                __riscv_vse32_v_f32m4(local.weights[i], weights, vl);
                sum = __riscv_vfadd_vv_f32m4(sum, weights, vl);
            }
            add(local, strip, keys, fade);
        }
        for (uint64_t column = 0; column < width; ++column) {
            float* const out = strip.out + column * length;
            __riscv_vse32_v_f32m4(out, __riscv_vfdiv_vv_f32m4(__riscv_vle32_v_f32m4(out, vl), sum, vl), vl);
        }
        query += vl;
    }
}
