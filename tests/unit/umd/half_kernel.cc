#include "tests/unit/umd/half_kernel.h"

#include <orrery/kernel.h>

// Scalars need Zfhmin and Zfbfmin, whatever becomes of the loop.
ORR_KERNEL void scale(const orrery::umd::test::ScaleArgs* args) {
    auto* const halves = static_cast<_Float16*>(args->halves);
    auto* const brains = static_cast<__bf16*>(args->brains);
    const auto factor = static_cast<_Float16>(args->factor);
    halves[args->count] = factor;
    for (unsigned i = 0; i < args->count; ++i) {
        halves[i] *= factor;
        brains[i] = static_cast<__bf16>(static_cast<float>(brains[i]) * args->factor);
    }
}
