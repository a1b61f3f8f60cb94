// From instruction bits to what a handler needs. Pure functions of their arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/api/instruction.h"
#include "emulator/core/op.h"

namespace orrery::emu {

struct Decoded {
    OpCode code = OpCode::kIllegal;
    std::uint8_t rd = 0, rs1 = 0, rs2 = 0, aux = 0;
    std::int32_t imm = 0;
};

// `pc` places near jumps and pc-relative constants. An illegal instruction (also: F or D with
// fp false) gives kIllegal with imm 0; the caller puts the bits there.
Decoded decode(std::uint32_t bits, std::uint64_t pc, bool fp, bool vector = false);

// Whether a pair may begin with it, and the handler of two instructions in a row, by their lengths in
// halfwords; nullptr: they have none. handlers_pair.cc.
bool begins_pair(OpCode code);
Handler pair_handler(const Decoded& first, unsigned first_length, const Decoded& second,
                     unsigned second_length);
// All of pairs that begin with it.
std::vector<Handler> pair_handlers(OpCode first, unsigned first_length);

// aux of AmoW and AmoD.
enum class AmoFunction : std::uint8_t { kSwap, kAdd, kXor, kAnd, kOr, kMin, kMax, kMinu, kMaxu };

// aux of Csr: bits 1:0 as funct3 (1 write, 2 set, 3 clear), bit 2: rs1 is an immediate. imm is the CSR's
// number. rd is not replaced by kDumpRegister: x0 matters.

// Of vector instructions rd, rs1 and rs2 are the fields vd, vs1 and vs2; vector/execute.h has the rest.

// aux of FcvtToInt* and FcvtFromInt*: rounding mode in 2:0, the integer's kind in 4:3.
enum class IntKind : std::uint8_t { kI32, kU32, kI64, kU64 };

}  // namespace orrery::emu
