// Kernels of the later cases, as programs of users have them.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

// Each group adds up 1,024 rows of a matrix by rows, `rounds` columns, with a lane for each row: neighbours
// in a register lie `skew` floats apart. A line that came for one column is out of the cache (512 lines)
// before the next one wants it.
ORR_KERNEL void add_columns(const PlantedArgs* args) {
    const size_t lanes = __riscv_vsetvlmax_e32m8();
    const ptrdiff_t pitch = static_cast<ptrdiff_t>(args->skew * sizeof(float));
    const float* const upper = args->in + 2 * lanes * args->skew * orr::group_x();
    const float* const lower = upper + lanes * args->skew;
    vfloat32m8_t up = __riscv_vfmv_v_f_f32m8(0.0f, lanes), low = up;
    for (uint64_t column = 0; column < args->rounds; ++column) {
        up = __riscv_vfadd_vv_f32m8(up, __riscv_vlse32_v_f32m8(upper + column, pitch, lanes), lanes);
        low = __riscv_vfadd_vv_f32m8(low, __riscv_vlse32_v_f32m8(lower + column, pitch, lanes), lanes);
    }
    float* const out = args->out + 2 * lanes * orr::group_x();
    __riscv_vse32_v_f32m8(out, up, lanes);
    __riscv_vse32_v_f32m8(out + lanes, low, lanes);
}

// Tickets from one counter: each waits for its number.
ORR_KERNEL void draw_tickets(const PlantedArgs* args) {
    uint32_t* const counter = reinterpret_cast<uint32_t*>(args->out);
    uint32_t drawn = 0;
    for (uint64_t round = args->rounds; round != 0; --round)
        drawn ^= orr::atomic_add(counter, 1u);
    counter[64 * (orr::group_x() + 1)] = drawn;
}

// Sorts a bucket of numbers by insertion. There are two of each size, the next two are half as large:
// `rounds` is that of the first.
ORR_KERNEL void sort_bucket(const PlantedArgs* args) {
    uint32_t* const bucket = reinterpret_cast<uint32_t*>(args->out) + args->rounds * orr::group_x();
    const uint64_t count = args->rounds >> (orr::group_x() / 2);
    uint32_t state = orr::group_x() + 1;
    for (uint64_t i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        uint64_t at = i;
        for (; at != 0 && bucket[at - 1] > state; --at)
            bucket[at] = bucket[at - 1];
        bucket[at] = state;
    }
}

// Four rows of a product of matrices, in strips of a register's columns: what is loaded of `in` is used four
// times, and the four rows, which lie behind each other by column in `out`, stay in the cache over all
// `rounds` strips. The inner dimension is 256.
ORR_KERNEL void multiply_matrices(const PlantedArgs* args) {
    constexpr uint64_t kInner = 256;
    const size_t lanes = __riscv_vsetvlmax_e32m4();
    const float* const rows = args->out + 4 * kInner * orr::group_x();
    float* const result = args->out + 4 * kInner * orr::grid_x() + 4 * lanes * orr::group_x();
    for (uint64_t strip = 0; strip < args->rounds; ++strip) {
        const float *from = args->in + strip * kInner * lanes % args->count, *row = rows;
        vfloat32m4_t a = __riscv_vfmv_v_f_f32m4(0.0f, lanes), b = a, c = a, d = a;
        for (const float* const end = rows + 4 * kInner; row != end; row += 4, from += lanes) {
            const vfloat32m4_t column = __riscv_vle32_v_f32m4(from, lanes);
            a = __riscv_vfmacc_vf_f32m4(a, row[0], column, lanes);
            b = __riscv_vfmacc_vf_f32m4(b, row[1], column, lanes);
            c = __riscv_vfmacc_vf_f32m4(c, row[2], column, lanes);
            d = __riscv_vfmacc_vf_f32m4(d, row[3], column, lanes);
        }
        __riscv_vse32_v_f32m4(result, __riscv_vfadd_vv_f32m4(a, b, lanes), lanes);
        __riscv_vse32_v_f32m4(result + 2 * lanes, __riscv_vfadd_vv_f32m4(c, d, lanes), lanes);
    }
}

// Twelve steps at whose end all groups wait for each other, by looking whether the last one has come. The
// last group has `skew` times the others' work.
ORR_KERNEL void meet_in_steps(const PlantedArgs* args) {
    orr::GridBarrier* const meeting = reinterpret_cast<orr::GridBarrier*>(args->out);
    const size_t lanes = __riscv_vsetvlmax_e32m4();
    const uint64_t rounds = orr::group_x() == orr::grid_x() - 1 ? args->rounds * args->skew : args->rounds;
    vfloat32m4_t a = __riscv_vfmv_v_f_f32m4(1.0f, lanes);
    for (uint32_t step = 0; step < 12; ++step) {
        for (uint64_t round = rounds; round != 0; --round)
            a = __riscv_vfmadd_vf_f32m4(a, 0.5f, a, lanes);
        __riscv_vse32_v_f32m4(args->out + lanes * (orr::group_x() + 1), a, lanes);
        orr::grid_barrier(meeting);
    }
}
