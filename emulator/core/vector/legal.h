// Whether the registers of an arithmetic vector instruction fit its vtype, and one another.
#pragma once

#include "emulator/core/vector/execute.h"

namespace orrery::emu {

// Looked at once for each vtype: `op` keeps the answer. Not of: vstart, the rounding mode, kernels, mstatus.
bool vector_legal(const VectorFile& file, Op* op);

}  // namespace orrery::emu
