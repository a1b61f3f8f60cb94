// What the element kernel of a vector instruction works on, and how kernels are found.
//
// The common prologue (execute.cc) has checked everything that makes an instruction illegal: vtype, alignment
// and overlap of register groups, mstatus.VS and FS, the rounding mode. A kernel cannot fail.
//
// A kernel's sources and its table of kernels are compiled once for each set of host instructions
// (simd.cmake), in the namespace ORR_SIMD; the three give the same bits and flags.
#pragma once

#include <cstdint>

#include "emulator/api/hart_state.h"
#include "emulator/core/vector/opcodes.h"

namespace orrery::emu {

inline constexpr std::uint32_t kMaxGroupBytes = 8 * kMaxVlenBytes;

// Register groups are little-endian arrays of elements, registers of a group one behind the other.
//
// A kernel computes elements [start, vl) and touches no other byte of vd. Agnostic is undisturbed: inactive
// elements stay as they are, raise no flags and saturate nothing. start < vl always, but for instructions
// that write a scalar register (`result`) or v[0] of a move from one, which the kernel then does in any case.
//
// A vector operand is either exactly vd (same first byte, same element width) or has no byte in common with
// it; the mask has none in common with vd. (The prologue makes copies where the guest's groups overlap.)
struct VectorOperands {
    std::uint8_t* vd = nullptr;         // destination group; also an operand of multiply-add and the like
    const std::uint8_t* vs2 = nullptr;  // vector operand
    const std::uint8_t* vs1 = nullptr;  // vector operand of .vv, .vs, .mm
    // .vx: x[rs1]; .vi: the immediate, sign-extended where the instruction says so; .vf: f[rs1] as it stands,
    // all 64 bits: that it is boxed is for the kernel to check.
    std::uint64_t scalar = 0;
    // v0, an element a bit, lowest first; nullptr: unmasked (vm = 1). Merges, add-with-carry and mask logic
    // get v0 here although it does not make elements inactive; those see their own rules.
    const std::uint8_t* mask = nullptr;
    std::uint64_t start = 0;  // vstart
    std::uint64_t vl = 0;
    std::uint64_t vlmax = 0;  // of vtype
    std::uint32_t vlen_bytes = 0;
    std::uint8_t frm = 0;   // 0 to 4
    std::uint8_t vxrm = 0;  // 0 to 3
    // Results besides vd. A kernel only ever sets bits of the flags. FP kernels run with the host's FP
    // environment as the guest's FP leaves it (host_fp.h: round to nearest, nothing trapped, sticky flags)
    // and may leave flags there or here; others must raise none.
    std::uint8_t fflags = 0;
    std::uint8_t vxsat = 0;
    std::uint64_t result = 0;  // of instructions that write x[rd] or f[rd]
    std::uint64_t slow = 0;    // elements of floating point that were computed by integers

    bool active(std::uint64_t i) const { return mask == nullptr || (mask[i / 8] >> (i % 8) & 1) != 0; }
};

using VectorKernel = void (*)(VectorOperands&);

// vd[k] += factors[r][k] * row[r], for r = 0, 1, ... and in each k = 0, 1, ..., elements [0, vl): vfmacc.vf
// without a mask, in round to nearest even. No vd has a byte in common with a row, nor with another vd.
struct VectorProducts {
    static constexpr unsigned kRows = 8, kSums = 8;
    unsigned rows = 0, sums = 0;
    std::uint64_t vl = 0;
    const std::uint8_t* row[kRows] = {};
    std::uint8_t* vd[kSums] = {};
    // f[rs1], of SEW bits, the canonical NaN if it was not boxed; of each row from its first byte on.
    alignas(64) std::uint8_t factors[kRows][kSums * sizeof(std::uint64_t)] = {};
    VectorOperands* one = nullptr;  // unmasked, all elements: for one alone; has the flags
};
using VectorProductsKernel = void (*)(const VectorProducts&);

// Each answers nullptr for an instruction or SEW that it does not have, which is then illegal. `sew_log2` is
// 3 to 6, the SEW of vtype, for widening and narrowing forms too. Asked once for each, at start-up.
using VectorKernelTable = VectorKernel (*)(VectorOp op, unsigned sew_log2);

}  // namespace orrery::emu
