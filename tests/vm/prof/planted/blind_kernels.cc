// Kernels of the blind cases.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"
#include "umd/samples/support/group_part.h"

namespace {

using sample::my_part;
using sample::Part;

// c0 + x * (c1 + x * (...)), of 31 steps.
inline vfloat32m4_t horner(vfloat32m4_t x, size_t vl) {
    vfloat32m4_t sum = __riscv_vfmv_v_f_f32m4(0.5f, vl);
#pragma clang loop unroll(full)
    for (int step = 0; step < 31; ++step) {
        const vfloat32m4_t term = __riscv_vfmv_v_f_f32m4(0.25f, vl);
        sum = __riscv_vfmadd_vv_f32m4(sum, x, term, vl);
    }
    return sum;
}

}  // namespace

// out[i] = i * rounds, as whole numbers: `count` of them.
ORR_KERNEL void number_in_order(const PlantedArgs* args) {
    const Part part = my_part(args->count);
    uint32_t* const out = reinterpret_cast<uint32_t*>(args->out);
    const uint32_t stride = static_cast<uint32_t>(args->rounds);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        const vuint32m4_t index =
            __riscv_vadd_vx_u32m4(__riscv_vid_v_u32m4(vl), static_cast<uint32_t>(i), vl);
        __riscv_vse32_v_u32m4(out + i, __riscv_vmul_vx_u32m4(index, stride, vl), vl);
        i += vl;
    }
}

// Group g joins the vector g with the one that is as many vectors further on as there are groups, each of
// `count` elements: a level of a tree. 62 steps of arithmetic for each element.
ORR_KERNEL void join_pairs(const PlantedArgs* args) {
    float* const mine = args->out + args->count * orr::group_x();
    const float* const other = mine + args->count * orr::grid_x();
    for (uint64_t i = 0; i < args->count;) {
        const size_t vl = __riscv_vsetvl_e32m4(args->count - i);
        const vfloat32m4_t a = __riscv_vle32_v_f32m4(mine + i, vl), b = __riscv_vle32_v_f32m4(other + i, vl);
        const vfloat32m4_t of_a = horner(a, vl), of_b = horner(b, vl);
        __riscv_vse32_v_f32m4(mine + i, __riscv_vfadd_vv_f32m4(of_a, of_b, vl), vl);
        i += vl;
    }
}

// Keys that nobody has sorted, each looked up in a sorted table by halving.
ORR_KERNEL void look_up_sorted(const PlantedArgs* args) {
    const uint32_t* const table = reinterpret_cast<const uint32_t*>(args->in);
    uint32_t key = orr::group_x() * 2654435761u + 1, found = 0;
    for (uint64_t round = args->rounds; round != 0; --round) {
        key = key * 1664525u + 1013904223u;
        uint64_t low = 0;
        for (uint64_t left = args->count; left > 1;) {
            const uint64_t half = left / 2;
            if (table[low + half] <= key) low += half;
            left -= half;
        }
        found += static_cast<uint32_t>(low);
    }
    reinterpret_cast<uint32_t*>(args->out)[orr::group_x()] = found;
}

// A layer: `count` weights in rows of `rounds`, times a vector at out[0]; results behind it.
ORR_KERNEL void layer(const PlantedArgs* args) {
    const uint64_t length = args->rounds, rows = args->count / length;
    const Part part = my_part(rows);
    const size_t lanes = __riscv_vsetvlmax_e32m8();
    const vfloat32m1_t zero = __riscv_vfmv_v_f_f32m1(0.0f, 1);
    for (uint64_t row = part.begin; row < part.end; ++row) {
        vfloat32m8_t sums = __riscv_vfmv_v_f_f32m8(0.0f, lanes);
        for (uint64_t i = 0; i < length;) {
            const size_t vl = __riscv_vsetvl_e32m8(length - i);
            const vfloat32m8_t weights = __riscv_vle32_v_f32m8(args->in + row * length + i, vl);
            const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->out + i, vl);
            sums = __riscv_vfmacc_vv_f32m8_tu(sums, weights, x, vl);
            i += vl;
        }
        const vfloat32m1_t sum = __riscv_vfredusum_vs_f32m8_f32m1(sums, zero, lanes);
        __riscv_vse32_v_f32m1(args->out + length + row, sum, 1);
    }
}

// A step of a wave of `count` cells, which begin at 4: of the cells in `in` and, before it, in `out`.
ORR_KERNEL void wave_step(const PlantedArgs* args) {
    const Part part = my_part(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        const float* const at = args->in + 4 + i;
        const vfloat32m4_t middle = __riscv_vle32_v_f32m4(at, vl), left = __riscv_vle32_v_f32m4(at - 1, vl),
                           right = __riscv_vle32_v_f32m4(at + 1, vl),
                           before = __riscv_vle32_v_f32m4(args->out + 4 + i, vl);
        vfloat32m4_t now = __riscv_vfsub_vv_f32m4(__riscv_vfmul_vf_f32m4(middle, 1.5f, vl), before, vl);
        now = __riscv_vfmacc_vf_f32m4(now, 0.25f, __riscv_vfadd_vv_f32m4(left, right, vl), vl);
        __riscv_vse32_v_f32m4(args->out + 4 + i, now, vl);
        i += vl;
    }
}

// Forces between bodies of four floats, body by body: vectors of four elements where 64 a cycle would fit.
// `count` bodies, of which each group has `rounds`.
ORR_KERNEL void forces(const PlantedArgs* args) {
    const vfloat32m1_t zero = __riscv_vfmv_v_f_f32m1(0.0f, 4);
    for (uint64_t i = 0; i < args->rounds; ++i) {
        const uint64_t me = args->rounds * orr::group_x() + i;
        const vfloat32m1_t here = __riscv_vle32_v_f32m1(args->in + 4 * (me % args->count), 4);
        vfloat32m1_t force = zero;
        for (uint64_t other = 0; other < args->count; ++other) {
            const vfloat32m1_t way =
                __riscv_vfsub_vv_f32m1(__riscv_vle32_v_f32m1(args->in + 4 * other, 4), here, 4);
            const vfloat32m1_t squares = __riscv_vfmul_vv_f32m1(way, way, 4);
            const float square =
                __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32m1_f32m1(squares, zero, 4));
            force = __riscv_vfmacc_vf_f32m1(force, 1.0f - 0.5f * square, way, 4);
        }
        __riscv_vse32_v_f32m1(args->out + 4 * me, force, 4);
    }
}

// out[i] = p(in[i]), of 31 multiply-adds.
ORR_KERNEL void polynomial(const PlantedArgs* args) {
    const Part part = my_part(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        __riscv_vse32_v_f32m4(args->out + i, horner(__riscv_vle32_v_f32m4(args->in + i, vl), vl), vl);
        i += vl;
    }
}

// A step of an optimiser with momentum, in one pass: the gradients are in `in`, weights and momenta in `out`.
ORR_KERNEL void momentum(const PlantedArgs* args) {
    const Part part = my_part(args->count);
    float* const weights = args->out;
    float* const momenta = weights + args->count;
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        const vfloat32m4_t moved = __riscv_vfmadd_vf_f32m4(__riscv_vle32_v_f32m4(momenta + i, vl), 0.75f,
                                                           __riscv_vle32_v_f32m4(args->in + i, vl), vl);
        __riscv_vse32_v_f32m4(momenta + i, moved, vl);
        __riscv_vse32_v_f32m4(
            weights + i, __riscv_vfnmsac_vf_f32m4(__riscv_vle32_v_f32m4(weights + i, vl), 0.125f, moved, vl),
            vl);
        i += vl;
    }
}
