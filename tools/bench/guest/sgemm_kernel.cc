// c = a * b, n x n: a work-item for each element.
#include <orrery/kernel.h>

#include "tools/bench/guest/sgemm_args.h"

ORR_KERNEL void sgemm(const SgemmArgs* args) {
    const uint32_t n = args->n;
    const uint32_t column = orr::group_x() * orr::block_x() + orr::item_x();
    const uint32_t row = orr::group_y() * orr::block_y() + orr::item_y();
    if (row >= n || column >= n) return;
    const float* a = args->a + uint64_t{row} * n;
    const float* b = args->b + column;
    float sum = 0;
    for (uint32_t k = 0; k < n; ++k)
        sum += a[k] * b[uint64_t{k} * n];
    args->c[uint64_t{row} * n + column] = sum;
}
