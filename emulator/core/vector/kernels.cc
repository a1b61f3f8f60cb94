#include "emulator/core/vector/kernels.h"

#include <memory>

namespace orrery::emu {
namespace {

struct Source {
    VectorKernelTable plain, masked, fp;
    VectorProductsKernel (*products)(unsigned sew_log2);
    decltype(VectorKernels::blend) blend;
    bool leaves_flags = false;
};

std::unique_ptr<VectorKernels> make(const Source& source) {
    auto table = std::make_unique<VectorKernels>();
    table->leaves_flags = source.leaves_flags;
    table->blend = source.blend;
    for (unsigned sew = 0; sew < 4; ++sew)
        table->products[sew] = source.products(sew + 3);
    for (std::size_t op = 0; op < kVectorOps; ++op) {
        for (unsigned sew = 0; sew < 4; ++sew) {
            VectorKernels::Entry& entry = table->of[op][sew];
            entry.run = source.plain(static_cast<VectorOp>(op), sew + 3);
            if (entry.run != nullptr) continue;
            entry.run = source.masked(static_cast<VectorOp>(op), sew + 3);
            if (entry.run == nullptr) entry.run = source.fp(static_cast<VectorOp>(op), sew + 3);
            entry.minds_mask = true;
        }
    }
    return table;
}

const VectorKernels& portable_kernels() {
    static const auto table =
        make({portable::vector_plain_kernel, portable::vector_masked_kernel, portable::vector_fp_kernel,
              portable::vector_products_kernel, portable::blend, true});
    return *table;
}

}  // namespace

const VectorKernels& vector_kernels(Simd simd) {
#if defined(__x86_64__)
    if (simd == Simd::kAvx2) {
        static const auto table = make({avx2::vector_plain_kernel, avx2::vector_masked_kernel,
                                        avx2::vector_fp_kernel, avx2::vector_products_kernel, avx2::blend});
        return *table;
    }
#endif
#if defined(ORR_SIMD_AVX512)
    if (simd == Simd::kAvx512) {
        static const auto table =
            make({avx512::vector_plain_kernel, avx512::vector_masked_kernel, avx512::vector_fp_kernel,
                  avx512::vector_products_kernel, avx512::blend});
        return *table;
    }
#endif
    (void)simd;
    return portable_kernels();
}

}  // namespace orrery::emu
