// Work whose time on the card is set by `degree`: enough of it to take as long as the copies.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

ORR_KERNEL void polynomial(const PolynomialArgs* args) {
    const uint64_t each = (args->count + orr::grid_x() - 1) / orr::grid_x();
    const uint64_t begin = each * orr::group_x();
    const uint64_t end = begin + each < args->count ? begin + each : args->count;
    for (uint64_t i = begin; i < end;) {
        const size_t vl = __riscv_vsetvl_e32m8(end - i);
        const vfloat32m8_t x = __riscv_vle32_v_f32m8(args->data + i, vl);
        vfloat32m8_t sum = __riscv_vfmv_v_f_f32m8(1.0f, vl);
        // Horner, every coefficient 1/2.
        for (uint32_t step = 0; step < args->degree; ++step) {
            sum = __riscv_vfmul_vv_f32m8(sum, x, vl);
            sum = __riscv_vfadd_vf_f32m8(sum, 0.5f, vl);
        }
        __riscv_vse32_v_f32m8(args->data + i, sum, vl);
        i += vl;
    }
}
