// The kernels of the second blind set, as users write them.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "tests/vm/prof/planted/blind2.h"

#define FOR_ROWS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6)

namespace {

struct Part {
    uint64_t begin, end;
};
Part part_of(uint64_t count) {
    const uint64_t each = (count + orr::grid_x() - 1) / orr::grid_x(), begin = each * orr::group_x();
    return {begin < count ? begin : count, begin + each < count ? begin + each : count};
}

// `steps` elements of 7 rows of A, side by side, so that scalars are near.
inline void bring(B2GemmLocal& local, const float* a, uint64_t k, uint64_t rows, uint64_t steps) {
    for (uint64_t row = 0; row < kB2GemmRows; ++row) {
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

// A tile of 7 rows and a register group stays in registers.
ORR_KERNEL void b2_gemm(const B2Gemm* args) {
    const uint64_t n = args->n, k = args->k, first = uint64_t{orr::group_x()} * kB2GemmRows;
    const uint64_t rows = args->m - first < kB2GemmRows ? args->m - first : kB2GemmRows;
    const float* const a = args->a + first * k;
    float* const c = args->c + first * n;
    const float floor = args->relu ? 0.0f : -__builtin_inff();
    B2GemmLocal& local = *orr::local<B2GemmLocal>();
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
            const uint64_t steps = k - done < kB2GemmSteps ? k - done : kB2GemmSteps;
            bring(local, a + done, k, rows, steps);
            const float* from = args->b + done * n + column;
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
                          __riscv_vfmax_vf_f32m4(sum##i, floor, vl), vl);
        FOR_ROWS(STORE)
#undef STORE
        column += vl;
    }
}

ORR_KERNEL void b2_bias(const B2Pointwise* args) {
    const Part part = part_of(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
        const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->x + i, vl);
        __riscv_vse32_v_f32m8(args->out + i, __riscv_vfadd_vf_f32m8(x, args->factor, vl), vl);
        i += vl;
    }
}

// The square of what is above 0.
ORR_KERNEL void b2_squared_relu(const B2Pointwise* args) {
    const Part part = part_of(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
        const vfloat32m8_t x = __riscv_vfmax_vf_f32m8(__riscv_vle32_v_f32m8(args->x + i, vl), 0.0f, vl);
        __riscv_vse32_v_f32m8(args->out + i, __riscv_vfmul_vv_f32m8(x, x, vl), vl);
        i += vl;
    }
}

ORR_KERNEL void b2_dropout(const B2Pointwise* args) {
    const Part part = part_of(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
        const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->x + i, vl);
        const vfloat32m8_t mask = __riscv_vle32_v_f32m8(args->y + i, vl);
        __riscv_vse32_v_f32m8(args->out + i, __riscv_vfmul_vv_f32m8(x, mask, vl), vl);
        i += vl;
    }
}

ORR_KERNEL void b2_residual(const B2Pointwise* args) {
    const Part part = part_of(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
        const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->x + i, vl);
        const vfloat32m8_t y = __riscv_vle32_v_f32m8(args->y + i, vl);
        __riscv_vse32_v_f32m8(args->out + i, __riscv_vfadd_vv_f32m8(x, y, vl), vl);
        i += vl;
    }
}

// Momentum, decay and step in one pass.
ORR_KERNEL void b2_sgd(const B2Sgd* args) {
    const Part part = part_of(args->count);
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        vfloat32m4_t weight = __riscv_vle32_v_f32m4(args->weight + i, vl);
        vfloat32m4_t gradient = __riscv_vle32_v_f32m4(args->gradient + i, vl);
        if (args->other != nullptr)
            gradient = __riscv_vfadd_vv_f32m4(gradient, __riscv_vle32_v_f32m4(args->other + i, vl), vl);
        gradient = __riscv_vfmacc_vf_f32m4(gradient, args->decay, weight, vl);
        vfloat32m4_t momentum = __riscv_vle32_v_f32m4(args->momentum + i, vl);
        momentum = __riscv_vfmacc_vf_f32m4(gradient, 0.9f, momentum, vl);
        weight = __riscv_vfnmsac_vf_f32m4(weight, args->rate, momentum, vl);
        __riscv_vse32_v_f32m4(args->momentum + i, momentum, vl);
        __riscv_vse32_v_f32m4(args->weight + i, weight, vl);
        i += vl;
    }
}

// The mean payoff over random paths, one after the other.
ORR_KERNEL void b2_price_options(const B2Options* args) {
    for (uint64_t i = orr::group_x(); i < args->options; i += orr::grid_x()) {
        const float spot = args->market[2 * i], strike = args->market[2 * i + 1];
        uint64_t state = (i + 1) * 0x9E3779B97F4A7C15u;
        float sum = 0;
        for (uint64_t path = 0; path < args->paths; ++path) {
            float price = spot;
            for (uint64_t step = 0; step < args->steps; ++step) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                const float draw = static_cast<float>(static_cast<uint32_t>(state >> 40)) * 0x1p-24f - 0.5f;
                price += price * (0.0001f + 0.05f * draw);
            }
            if (price > strike) sum += price - strike;
        }
        args->price[i] = sum / static_cast<float>(args->paths);
    }
}

ORR_KERNEL void b2_probe(const B2Probe* args) {
    const Part part = part_of(args->count);
    for (uint64_t i = part.begin; i < part.end; ++i) {
        const uint32_t key = args->keys[i];
        uint32_t node = args->heads[(key * 2654435769u) >> (32 - args->bits)], value = 0;
        while (node != 0) {
            if (args->nodes[node].key == key) {
                value = args->nodes[node].value;
                break;
            }
            node = args->nodes[node].next;
        }
        args->found[i] = value;
    }
}

// Random numbers, of which each cell takes the sum of several.
ORR_KERNEL void b2_noise(const B2Pointwise* args) {
    const Part part = part_of(args->count);
    uint64_t state = part.begin + 0x9E3779B97F4A7C15u;
    for (uint64_t i = part.begin; i < part.end; ++i) {
        float sum = 0;
        for (uint32_t round = 0; round < args->rounds; ++round) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            sum += static_cast<float>(static_cast<uint32_t>(state >> 40));
        }
        args->out[i] = sum * 0x1p-24f;
    }
}

// One step of heat in a rod; the ends stay as they are.
ORR_KERNEL void b2_heat(const B2Pointwise* args) {
    const Part part = part_of(args->count);  // of the inner cells: x and out have one more at each end
    for (uint64_t i = part.begin; i < part.end;) {
        const size_t vl = __riscv_vsetvl_e32m4(part.end - i);
        const vfloat32m4_t left = __riscv_vle32_v_f32m4(args->x + i, vl);
        vfloat32m4_t mid = __riscv_vle32_v_f32m4(args->x + i + 1, vl);
        const vfloat32m4_t right = __riscv_vle32_v_f32m4(args->x + i + 2, vl);
        const vfloat32m4_t sides = __riscv_vfadd_vv_f32m4(left, right, vl);
        mid = __riscv_vfmul_vf_f32m4(mid, 1 - 2 * args->factor, vl);
        __riscv_vse32_v_f32m4(args->out + i + 1, __riscv_vfmacc_vf_f32m4(mid, args->factor, sides, vl), vl);
        i += vl;
    }
}

// Each group has as many rows of queries, one after the other; query i sees the keys up to i.
ORR_KERNEL void b2_causal_scores(const B2Causal* args) {
    const uint64_t length = args->length;
    const Part part = part_of(length);
    float* const q = orr::local<float>();
    for (uint64_t row = part.begin; row < part.end; row += 4) {
        for (uint64_t i = 0; i < 4 * kB2Depth;) {
            const size_t vl = __riscv_vsetvl_e32m4(4 * kB2Depth - i);
            __riscv_vse32_v_f32m4(q + i, __riscv_vle32_v_f32m4(args->q + row * kB2Depth + i, vl), vl);
            i += vl;
        }
        for (uint64_t key = 0; key < row + 4;) {
            const size_t vl = __riscv_vsetvl_e32m4(row + 4 - key);
            vfloat32m4_t sum0 = __riscv_vfmv_v_f_f32m4(0.0f, vl), sum1 = sum0, sum2 = sum0, sum3 = sum0;
            for (uint64_t d = 0; d < kB2Depth; ++d) {
                const vfloat32m4_t k = __riscv_vle32_v_f32m4(args->k + d * length + key, vl);
                sum0 = __riscv_vfmacc_vf_f32m4(sum0, q[d], k, vl);
                sum1 = __riscv_vfmacc_vf_f32m4(sum1, q[kB2Depth + d], k, vl);
                sum2 = __riscv_vfmacc_vf_f32m4(sum2, q[2 * kB2Depth + d], k, vl);
                sum3 = __riscv_vfmacc_vf_f32m4(sum3, q[3 * kB2Depth + d], k, vl);
            }
            float* const to = args->scores + row * length + key;
            __riscv_vse32_v_f32m4(to, sum0, vl);
            __riscv_vse32_v_f32m4(to + length, sum1, vl);
            __riscv_vse32_v_f32m4(to + 2 * length, sum2, vl);
            __riscv_vse32_v_f32m4(to + 3 * length, sum3, vl);
            key += vl;
        }
    }
}

// Each pixel against the mean of those above and below it.
ORR_KERNEL void b2_sharpen(const B2Image* args) {
    const uint64_t width = args->width;
    const Part part = part_of(args->height);
    for (uint64_t y = part.begin; y < part.end; ++y) {
        const float* const row = args->in + y * width;
        const float* const above = y == 0 ? row : row - width;
        const float* const below = y + 1 == args->height ? row : row + width;
        for (uint64_t x = 0; x < width;) {
            const size_t vl = __riscv_vsetvl_e32m4(width - x);
            const vfloat32m4_t sides = __riscv_vfadd_vv_f32m4(__riscv_vle32_v_f32m4(above + x, vl),
                                                              __riscv_vle32_v_f32m4(below + x, vl), vl);
            vfloat32m4_t pixel = __riscv_vfmul_vf_f32m4(__riscv_vle32_v_f32m4(row + x, vl), 2.0f, vl);
            pixel = __riscv_vfnmsac_vf_f32m4(pixel, 0.5f, sides, vl);
            __riscv_vse32_v_f32m4(args->out + y * width + x, pixel, vl);
            x += vl;
        }
    }
}

ORR_KERNEL void b2_bags(const B2Bags* args) {
    for (uint64_t bag = orr::group_x(); bag < args->bags; bag += orr::grid_x()) {
        const size_t vl = __riscv_vsetvl_e32m4(kB2Width);
        vfloat32m4_t sum = __riscv_vfmv_v_f_f32m4(0.0f, vl);
        for (uint64_t i = 0; i < args->per_bag; ++i) {
            const uint32_t index = args->indices[bag * args->per_bag + i];
            const float* const row = args->shards[index % 2] + index / 2 * kB2Width;
            sum = __riscv_vfadd_vv_f32m4(sum, __riscv_vle32_v_f32m4(row, vl), vl);
        }
        __riscv_vse32_v_f32m4(args->out + bag * kB2Width, sum, vl);
    }
}
