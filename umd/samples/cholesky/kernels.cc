// The four steps of a tiled Cholesky factorisation A = L * L^T, lower triangle. A work-item does one row of a
// tile.
#include <orrery/kernel.h>

#include "kernels.h"

namespace {

double root(double x) {
    double result;
    asm("fsqrt.d %0, %1" : "=f"(result) : "f"(x));
    return result;
}

}  // namespace

// c = its Cholesky factor. One item: each column needs the one before.
ORR_KERNEL void potrf(const TileArgs* args) {
    double* c = args->c;
    const uint32_t n = args->size;
    for (uint32_t j = 0; j < n; ++j) {
        double diagonal = c[j * n + j];
        for (uint32_t k = 0; k < j; ++k)
            diagonal -= c[j * n + k] * c[j * n + k];
        if (!(diagonal > 0)) __builtin_trap();  // not positive definite
        diagonal = root(diagonal);
        c[j * n + j] = diagonal;
        for (uint32_t i = j + 1; i < n; ++i) {
            double sum = c[i * n + j];
            for (uint32_t k = 0; k < j; ++k)
                sum -= c[i * n + k] * c[j * n + k];
            c[i * n + j] = sum / diagonal;
        }
    }
}

// c = c * a^-T with the lower triangular a.
ORR_KERNEL void trsm(const TileArgs* args) {
    const uint32_t n = args->size, row = orr::global_id();
    if (row >= n) return;
    const double* a = args->a;
    double* c = args->c + uint64_t{row} * n;
    for (uint32_t j = 0; j < n; ++j) {
        double sum = c[j];
        for (uint32_t k = 0; k < j; ++k)
            sum -= c[k] * a[j * n + k];
        c[j] = sum / a[j * n + j];
    }
}

// c -= a * b^T; without b: the update of a diagonal tile, a * a^T.
ORR_KERNEL void gemm(const TileArgs* args) {
    const uint32_t n = args->size, row = orr::global_id();
    if (row >= n) return;
    const double* a = args->a + uint64_t{row} * n;
    const double* all_b = args->b == nullptr ? args->a : args->b;
    double* c = args->c + uint64_t{row} * n;
    for (uint32_t j = 0; j < n; ++j) {
        const double* b = all_b + uint64_t{j} * n;
        double sum = c[j];
        for (uint32_t k = 0; k < n; ++k)
            sum -= a[k] * b[k];
        c[j] = sum;
    }
}
