// Element kernels of the fixed-point vector instructions.
#pragma once

#include "emulator/core/vector/operands.h"

namespace orrery::emu::ORR_SIMD {

// nullptr: not one of them, or not at this SEW.
VectorKernel fixed_kernel(VectorOp op, unsigned sew_log2);

}  // namespace orrery::emu::ORR_SIMD
