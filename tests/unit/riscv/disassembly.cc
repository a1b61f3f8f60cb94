#include "tests/unit/riscv/disassembly.h"

#include <fmt/format.h>

#include "emulator/core/vector/opcodes.h"

namespace orrery::riscv::test {
namespace {

using emu::VectorOp;
using emu::VectorOperand;
using emu::VectorRow;
namespace property = emu::vector_property;

const char* const kX[] = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                          "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                          "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
const char* const kF[] = {"ft0", "ft1", "ft2", "ft3", "ft4",  "ft5",  "ft6", "ft7", "fs0",  "fs1", "fa0",
                          "fa1", "fa2", "fa3", "fa4", "fa5",  "fa6",  "fa7", "fs2", "fs3",  "fs4", "fs5",
                          "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11"};

unsigned field(std::uint32_t bits, unsigned low, unsigned width) {
    return (bits >> low) & ((1u << width) - 1);
}

std::string operand(VectorOperand kind, unsigned value) {
    switch (kind) {
        case VectorOperand::kX:
        case VectorOperand::kXWhole:
        case VectorOperand::kXResult:
            return kX[value];
        case VectorOperand::kF:
        case VectorOperand::kFResult:
            return kF[value];
        case VectorOperand::kSigned:
            return fmt::format("{}", static_cast<int>(value ^ 16) - 16);
        case VectorOperand::kUnsigned:
            return fmt::format("{}", value);
        default:
            return fmt::format("v{}", value);
    }
}

std::string vtype_text(unsigned vtype) {
    const unsigned lmul = vtype & 7, sew = field(vtype, 3, 3);
    if (vtype >> 8 != 0 || lmul == 4 || sew > 3) return fmt::format("{}", vtype);
    static const char* const kLmul[] = {"m1", "m2", "m4", "m8", "", "mf8", "mf4", "mf2"};
    return fmt::format("e{}, {}, {}, {}", 8u << sew, kLmul[lmul], (vtype & 0x40) != 0 ? "ta" : "tu",
                       (vtype & 0x80) != 0 ? "ma" : "mu");
}

// vle32ff.v with nf = 2 is vlseg3e32ff.v, vluxei8.v is vluxseg3ei8.v.
std::string segment_name(std::string name, unsigned nf) {
    return name.insert(name.find('e'), fmt::format("seg{}", nf + 1));
}

std::string configuration(VectorOp op, std::uint32_t bits) {
    const char* rd = kX[field(bits, 7, 5)];
    const unsigned source = field(bits, 15, 5);
    if (op == VectorOp::kVsetvl)
        return fmt::format("vsetvl {}, {}, {}", rd, kX[source], kX[field(bits, 20, 5)]);
    if (op == VectorOp::kVsetvli)
        return fmt::format("vsetvli {}, {}, {}", rd, kX[source], vtype_text(field(bits, 20, 11)));
    return fmt::format("vsetivli {}, {}, {}", rd, source, vtype_text(field(bits, 20, 10)));
}

}  // namespace

std::string disassemble(std::uint32_t bits) {
    const VectorOp op = emu::decode_vector(bits);
    if (op == VectorOp::kNone) return "";
    const VectorRow& row = emu::row(op);
    if (row.has(property::kConfig)) return configuration(op, bits);

    const std::string vd = operand(row.vd, field(bits, 7, 5)), vs2 = operand(row.vs2, field(bits, 20, 5)),
                      vs1 = operand(row.vs1, field(bits, 15, 5));
    std::string text;
    if (row.has(property::kLoad | property::kStore)) {
        const bool has_nf = (row.mask >> 29) == 0 && field(bits, 29, 3) != 0;
        text =
            (has_nf ? segment_name(row.name, field(bits, 29, 3)) : row.name) + " " + vd + ", (" + vs1 + ")";
        if (row.vs2 != VectorOperand::kNone) text += ", " + vs2;
    } else {
        text = std::string(row.name) + " " + vd;
        const bool swapped = row.has(property::kAccumulate);
        if (swapped) text += ", " + vs1;
        if (row.vs2 != VectorOperand::kNone) text += ", " + vs2;
        if (!swapped && row.vs1 != VectorOperand::kNone) text += ", " + vs1;
        if (row.has(property::kCarry | property::kMerge)) text += ", v0";
    }
    if (row.maskable() && field(bits, 25, 1) == 0) text += ", v0.t";
    return text;
}

}  // namespace orrery::riscv::test
