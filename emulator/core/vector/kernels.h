// The element kernels, as built for each kind of host.
#pragma once

#include "emulator/core/vector/operands.h"
#include "emulator/core/vector/simd.h"

namespace orrery::emu {

// A namespace of simd.cmake. nullptr: there is no such instruction, or not at this SEW.
#define ORR_SIMD_KERNELS(kind)                                                                              \
    namespace kind {                                                                                        \
    /* Results of all elements, active or not, which the prologue then blends; raises no flags. */          \
    VectorKernel vector_plain_kernel(VectorOp op, unsigned sew_log2);                                       \
    /* Kernels that mind the mask; the second has floating and fixed point. */                              \
    VectorKernel vector_masked_kernel(VectorOp op, unsigned sew_log2);                                      \
    VectorKernel vector_fp_kernel(VectorOp op, unsigned sew_log2);                                          \
    /* By SEW; nullptr: there is none. */                                                                   \
    VectorProductsKernel vector_products_kernel(unsigned sew_log2);                                         \
    /* vd[i] = from[i] where bit i of the mask is set, start <= i < vl; elements of 1 << log2 bytes. */     \
    void blend(void* vd, const void* from, const std::uint8_t* mask, std::uint64_t start, std::uint64_t vl, \
               unsigned log2);                                                                              \
    }
ORR_SIMD_KERNELS(portable)
#if defined(__x86_64__)
ORR_SIMD_KERNELS(avx2)
ORR_SIMD_KERNELS(avx512)
#endif
#undef ORR_SIMD_KERNELS

// The tables of one kind, made at first use.
struct VectorKernels {
    struct Entry {
        VectorKernel run = nullptr;  // nullptr: illegal
        bool minds_mask = false;
    };
    Entry of[kVectorOps][4];  // by SEW: 8, 16, 32, 64
    VectorProductsKernel products[4] = {};
    // Integer kernels may leave FP flags of the host: a compiler makes conversions of floats from shifts of
    // vectors where the host has none.
    bool leaves_flags = false;
    void (*blend)(void*, const void*, const std::uint8_t*, std::uint64_t, std::uint64_t, unsigned) = nullptr;
};
const VectorKernels& vector_kernels(Simd simd);

}  // namespace orrery::emu
