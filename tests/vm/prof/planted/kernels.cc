// Kernels that are each limited by one thing.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"
#include "umd/samples/support/group_part.h"

namespace {

using sample::my_part;
using sample::Part;

inline uint64_t my_rounds(const PlantedArgs* args) {
    return orr::group_x() == orr::grid_x() - 1 && args->skew != 0 ? args->rounds * args->skew : args->rounds;
}

}  // namespace

// Four chains of multiply-adds in registers.
ORR_KERNEL void multiply_add(const PlantedArgs* args) {
    const size_t lanes = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t a = __riscv_vfmv_v_f_f32m4(1.0f, lanes), b = a, c = a, d = a;
    for (uint64_t round = my_rounds(args); round != 0; --round) {
        a = __riscv_vfmadd_vf_f32m4(a, 0.5f, d, lanes);
        b = __riscv_vfmadd_vf_f32m4(b, 0.5f, a, lanes);
        c = __riscv_vfmadd_vf_f32m4(c, 0.5f, b, lanes);
        d = __riscv_vfmadd_vf_f32m4(d, 0.25f, c, lanes);
    }
    __riscv_vse32_v_f32m4(args->out + lanes * orr::group_x(), __riscv_vfadd_vv_f32m4(a, d, lanes), lanes);
}

// The same with whole numbers: no floating point at all.
ORR_KERNEL void mix_integers(const PlantedArgs* args) {
    const size_t lanes = __riscv_vsetvlmax_e32m4();
    vuint32m4_t a = __riscv_vid_v_u32m4(lanes), b = a;
    for (uint64_t round = my_rounds(args); round != 0; --round) {
        a = __riscv_vmul_vx_u32m4(a, 2654435761u, lanes);
        b = __riscv_vxor_vv_u32m4(b, a, lanes);
        a = __riscv_vadd_vv_u32m4(a, b, lanes);
    }
    __riscv_vse32_v_u32m4(reinterpret_cast<uint32_t*>(args->out) + lanes * orr::group_x(), a, lanes);
}

// Scalar code only.
ORR_KERNEL void scalar_steps(const PlantedArgs* args) {
    uint32_t state = orr::group_x() + 1;
    for (uint64_t round = my_rounds(args); round != 0; --round) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    reinterpret_cast<uint32_t*>(args->out)[orr::group_x()] = state;
}

// One multiply-add for each twelve bytes.
ORR_KERNEL void triad(const PlantedArgs* args) {
    const Part part = my_part(args->count);
    for (uint64_t round = 0; round < args->rounds; ++round) {
        for (uint64_t i = part.begin; i < part.end;) {
            const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
            const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->in + i, vl);
            const vfloat32m8_t y = __riscv_vle32_v_f32m8(args->out + i, vl);
            __riscv_vse32_v_f32m8(args->out + i, __riscv_vfmacc_vf_f32m8(y, 0.5f, x, vl), vl);
            i += vl;
        }
    }
}

// Reads all, and writes next to nothing.
ORR_KERNEL void sum_up(const PlantedArgs* args) {
    const Part part = my_part(args->count);
    const size_t lanes = __riscv_vsetvlmax_e32m8();
    vfloat32m8_t sums = __riscv_vfmv_v_f_f32m8(0.0f, lanes);
    for (uint64_t round = 0; round < args->rounds; ++round) {
        for (uint64_t i = part.begin; i < part.end;) {
            const size_t vl = __riscv_vsetvl_e32m8(part.end - i);
            sums = __riscv_vfadd_vv_f32m8_tu(sums, sums, __riscv_vle32_v_f32m8(args->in + i, vl), vl);
            i += vl;
        }
    }
    __riscv_vse32_v_f32m8(args->out + lanes * orr::group_x(), sums, lanes);
}

// Each load's address is what the one before has brought.
ORR_KERNEL void chase(const PlantedArgs* args) {
    const uint32_t* const next = reinterpret_cast<const uint32_t*>(args->in);
    uint32_t at = static_cast<uint32_t>(orr::group_x() * 4097 % args->count);
    for (uint64_t round = args->rounds; round != 0; --round) {
        at = next[at];
    }
    reinterpret_cast<uint32_t*>(args->out)[orr::group_x()] = at;
}

// The same, and scalar code for what has been found.
ORR_KERNEL void search(const PlantedArgs* args) {
    const uint32_t* const next = reinterpret_cast<const uint32_t*>(args->in);
    uint32_t at = static_cast<uint32_t>(orr::group_x() * 4097 % args->count), found = 0;
    for (uint64_t round = args->rounds; round != 0; --round) {
        at = next[at];
        for (uint32_t step = 0; step < 6; ++step)
            found = (found ^ at) * 31 + step;
    }
    reinterpret_cast<uint32_t*>(args->out)[orr::group_x()] = found;
}

// Eight elements at a time, each from a line of its own.
ORR_KERNEL void gather(const PlantedArgs* args) {
    const uint32_t* const next = reinterpret_cast<const uint32_t*>(args->in);
    vuint32m1_t at = __riscv_vadd_vx_u32m1(__riscv_vmul_vx_u32m1(__riscv_vid_v_u32m1(8), 8191, 8),
                                           orr::group_x() * 129, 8);
    for (uint64_t round = args->rounds; round != 0; --round) {
        const vuint32m1_t bytes = __riscv_vsll_vx_u32m1(at, 2, 8);
        at = __riscv_vluxei32_v_u32m1(next, bytes, 8);
    }
    __riscv_vse32_v_u32m1(reinterpret_cast<uint32_t*>(args->out) + 8 * orr::group_x(), at, 8);
}

// Some microseconds of a card's time, for which a host computes for a tenth of a second or more: it has no
// such rounding, and does element by element.
ORR_KERNEL void hesitate(const PlantedArgs* args) {
    asm volatile("csrw frm, %0" ::"r"(4));  // to nearest, ties away
    const size_t lanes = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t a = __riscv_vfmv_v_f_f32m4(1.0f, lanes);
    for (uint64_t round = args->rounds; round != 0; --round)
        a = __riscv_vfmadd_vf_f32m4(a, 0.5f, a, lanes);
    __riscv_vse32_v_f32m4(args->out + lanes * orr::group_x(), a, lanes);
}
