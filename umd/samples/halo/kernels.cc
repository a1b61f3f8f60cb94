// One step of a field: each cell becomes half of itself and an eighth of each of its four neighbours. `edges`
// works on the cells that other cards need and that need theirs, `inside` on all others. Products with 1/2
// and 1/8 are exact, so the bits do not depend on how a compiler or a card adds them up.
#include <orrery/kernel.h>
#include <riscv_vector.h>

#include "kernels.h"

namespace {

// Cells side by side along one of the two axes: a row, or (kApart) a column.
template <bool kApart>
inline vfloat32m4_t load(const float* from, ptrdiff_t stride, size_t vl) {
    return kApart ? __riscv_vlse32_v_f32m4(from, stride, vl) : __riscv_vle32_v_f32m4(from, vl);
}

// `count` cells from number `first` on, `along` floats apart; the other two neighbours of each are `across`
// floats away.
template <bool kApart>
inline void relax(const HaloArgs* args, uint64_t first, uint64_t count, uint64_t along, uint64_t across) {
    const ptrdiff_t stride = static_cast<ptrdiff_t>(along * sizeof(float));
    for (uint64_t done = 0; done < count;) {
        const size_t vl = __riscv_vsetvl_e32m4(count - done);
        const uint64_t at = first + done * along;
        const float* const from = args->from + at;
        const vfloat32m4_t one = __riscv_vfadd_vv_f32m4(load<kApart>(from - along, stride, vl),
                                                        load<kApart>(from + along, stride, vl), vl);
        const vfloat32m4_t two = __riscv_vfadd_vv_f32m4(load<kApart>(from - across, stride, vl),
                                                        load<kApart>(from + across, stride, vl), vl);
        // Rows and columns add in one order, the neighbours above and below first.
        const vfloat32m4_t four =
            kApart ? __riscv_vfadd_vv_f32m4(one, two, vl) : __riscv_vfadd_vv_f32m4(two, one, vl);
        const vfloat32m4_t now =
            __riscv_vfadd_vv_f32m4(__riscv_vfmul_vf_f32m4(load<kApart>(from, stride, vl), 0.5f, vl),
                                   __riscv_vfmul_vf_f32m4(four, 0.125f, vl), vl);
        if (kApart)
            __riscv_vsse32_v_f32m4(args->to + at, stride, now, vl);
        else
            __riscv_vse32_v_f32m4(args->to + at, now, vl);
        done += vl;
    }
}

inline void relax_row(const HaloArgs* args, uint64_t row, uint64_t column, uint64_t count) {
    relax<false>(args, row * args->pitch + column, count, 1, args->pitch);
}
inline void relax_column(const HaloArgs* args, uint64_t column, uint64_t row, uint64_t count) {
    relax<true>(args, row * args->pitch + column, count, args->pitch, 1);
}

}  // namespace

// A group in x for each side, which those in y share. Rows have the corners.
ORR_KERNEL void edges(const HaloArgs* args) {
    const uint64_t side = orr::group_x();
    const uint64_t cells = side < 2 ? args->columns : args->rows - 2;
    const uint64_t share = (cells + orr::grid_y() - 1) / orr::grid_y();
    const uint64_t begin = share * orr::group_y() < cells ? share * orr::group_y() : cells;
    const uint64_t count = share < cells - begin ? share : cells - begin;
    if (side < 2)
        relax_row(args, side == 0 ? 1 : args->rows, 1 + begin, count);
    else
        relax_column(args, side == 2 ? 1 : args->columns, 2 + begin, count);
}

ORR_KERNEL void inside(const HaloArgs* args) {
    for (uint64_t row = 2 + orr::group_x(); row < args->rows; row += orr::grid_x())
        relax_row(args, row, 2, args->columns - 2);
}
