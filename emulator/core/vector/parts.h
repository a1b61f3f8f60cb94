// The files that the tables of kernels are made of.
#pragma once

#include "emulator/core/vector/operands.h"

namespace orrery::emu::ORR_SIMD {

// Plain ones (kernels.h).
VectorKernel int_kernel(VectorOp op, unsigned sew_log2);
VectorKernel width_kernel(VectorOp op, unsigned sew_log2);
VectorKernel bits_kernel(VectorOp op, unsigned sew_log2);
VectorKernel permute_kernel(VectorOp op, unsigned sew_log2);
// Those that mind the mask.
VectorKernel reduce_kernel(VectorOp op, unsigned sew_log2);
VectorKernel mask_kernel(VectorOp op, unsigned sew_log2);

}  // namespace orrery::emu::ORR_SIMD
