// What an instruction's name says about its operands, and whether they are legal: the rules of the
// specification's chapters 3 to 5, 7 and of the single instructions.
#pragma once

#include <string>

#include "emulator/core/vector/opcodes.h"
#include "tests/unit/riscv/model/state.h"

namespace orrery::riscv::model {

struct Fields {
    explicit Fields(u32 bits)
        : vd(bits >> 7 & 31),
          vs1(bits >> 15 & 31),
          vs2(bits >> 20 & 31),
          nf((bits >> 29) + 1),
          masked((bits >> 25 & 1) == 0) {}
    unsigned vd, vs1, vs2;
    unsigned nf;  // registers of a segment
    bool masked;  // of instructions that can be
};

struct Vtype {
    explicit Vtype(u64 bits);
    bool vill;
    unsigned sew;
    int lmul_log2;
    u64 vlmax(unsigned vlenb) const;
};

// A vector operand as the instruction uses it.
struct Group {
    enum Kind : u8 { kNone, kVector, kMask, kElement };
    Kind kind = kNone;
    unsigned first = 0;
    unsigned eew = 0;     // 1 for masks
    int emul_log2 = 0;    // 0 for masks and single elements
    unsigned fields = 1;  // of a segment: that many groups in a row
    unsigned registers() const { return (emul_log2 > 0 ? 1u << emul_log2 : 1u) * fields; }
};

struct Shape {
    Group vd, vs2, vs1;
    bool vd_is_source = false;
    bool mask_is_source = false;  // v0
    bool masked = false;
    bool no_overlap = false;  // the destination shares no register with any source
    bool needs_vtype = true;
    bool vstart_zero = false;
    bool floating = false;
    bool possible = true;  // false: this SEW does not exist for this instruction
};

enum class Memory : u8 { kNone, kUnit, kFaultFirst, kStrided, kIndexed, kMaskBits, kWhole };
struct Access {
    Memory kind = Memory::kNone;
    bool store = false;
    unsigned eew = 0;  // in the opcode: of the data, or of the indices
};
Access access_of(emu::VectorOp op);

// The parts of "vfwadd.wf".
struct Name {
    std::string base, suffix;
    explicit Name(emu::VectorOp op);
    bool starts(const char* text) const { return base.starts_with(text); }
};

Shape shape_of(const State& state, emu::VectorOp op, u32 bits);

}  // namespace orrery::riscv::model
