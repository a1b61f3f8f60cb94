#include "emulator/core/vector/fixed.h"
#include "emulator/core/vector/fp_exact.h"
#include "emulator/core/vector/kernels.h"

namespace orrery::emu::ORR_SIMD {

VectorKernel vector_fp_kernel(VectorOp op, unsigned sew_log2) {
    if (const VectorKernel kernel = fixed_kernel(op, sew_log2)) return kernel;
    return fp_exact_kernel(op, sew_log2);
}

}  // namespace orrery::emu::ORR_SIMD
