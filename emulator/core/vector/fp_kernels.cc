// Which kernel a floating- or fixed-point instruction has: the host's vector unit if it can, else integers.
#include "emulator/core/vector/fixed.h"
#include "emulator/core/vector/fp_exact.h"
#include "emulator/core/vector/fp_simd.h"
#include "emulator/core/vector/kernels.h"

namespace orrery::emu::ORR_SIMD {

VectorKernel vector_fp_kernel(VectorOp op, unsigned sew_log2) {
    for (const VectorKernelTable part :
         {fixed_kernel, simd_arithmetic, simd_fused, simd_order, simd_convert, simd_reduce}) {
        if (const VectorKernel kernel = part(op, sew_log2)) return kernel;
    }
    return fp_exact_kernel(op, sew_log2);
}

}  // namespace orrery::emu::ORR_SIMD
