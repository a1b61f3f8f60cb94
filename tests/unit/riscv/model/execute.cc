#include "tests/unit/riscv/model/execute.h"

#include <algorithm>
#include <stdexcept>

#include "tests/unit/riscv/model/fp.h"

namespace orrery::riscv::model {

using emu::VectorOp;

const char* to_string(Outcome outcome) {
    switch (outcome) {
        case Outcome::kDone:
            return "done";
        case Outcome::kIllegal:
            return "illegal instruction";
        case Outcome::kLoadFault:
            return "load fault";
        case Outcome::kStoreFault:
            return "store fault";
    }
    return "?";
}

u64 cut(u64 value, unsigned bits) {
    return bits >= 64 ? value : value & ((u64{1} << bits) - 1);
}

std::int64_t extended(u64 value, unsigned bits) {
    return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

u64 Execution::scalar() const {
    const std::string& suffix = name.suffix;
    const char kind =
        suffix == "s.x" || suffix == "s.f" || suffix == "v.x" || suffix == "v.f" || suffix == "v.i"
            ? suffix[2]
            : suffix[1];
    if (kind == 'x') return old.x[fields.vs1];
    if (kind == 'f') {
        // Wider registers hold narrower numbers boxed in ones; anything else is taken for a NaN.
        const u64 value = old.f[fields.vs1];
        const bool bf16 = name.base.find("bf16") != std::string::npos;
        if (vtype.sew == 64) return value;
        const bool boxed = value >> vtype.sew == ~u64{0} >> vtype.sew;
        return boxed ? cut(value, vtype.sew) : (bf16 ? kBf16 : format_of(vtype.sew)).nan();
    }
    // Shift amounts, offsets and indices are unsigned immediates.
    const bool is_unsigned =
        name.starts("vs") && (name.base == "vsll" || name.base == "vsrl" || name.base == "vsra" ||
                              name.base == "vssrl" || name.base == "vssra" || name.starts("vslide"));
    if (is_unsigned || name.starts("vns") || name.starts("vnclip") || name.starts("vrgather"))
        return fields.vs1;
    return static_cast<u64>(extended(fields.vs1, 5));
}

u64 Execution::first_operand(u64 i) const {
    return shape.vs1.kind == Group::kVector ? get(shape.vs1, i) : cut(scalar(), vtype.sew);
}

void do_configuration(State& state, VectorOp op, u32 bits) {
    const Fields fields(bits);
    const u64 type = op == VectorOp::kVsetvl    ? state.x[fields.vs2]
                     : op == VectorOp::kVsetvli ? bits >> 20 & 0x7ff
                                                : bits >> 20 & 0x3ff;
    const Vtype vtype(type);
    const u64 vlmax = vtype.vill ? 0 : vtype.vlmax(state.vlenb);
    u64 avl = op == VectorOp::kVsetivli ? fields.vs1 : state.x[fields.vs1];
    if (op != VectorOp::kVsetivli && fields.vs1 == 0) {
        avl = ~u64{0};
        if (fields.vd == 0) avl = state.vl;  // reserved if VLMAX changes; then as much of vl as is possible
    }
    state.vtype = vtype.vill ? kVill : type;
    state.vl = vtype.vill ? 0 : std::min(avl, vlmax);
    state.set_x(fields.vd, state.vl);
    state.vstart = 0;
}

Result execute(State& state, u32 bits, Sums sums) {
    if (!is_legal(state, bits)) return {Outcome::kIllegal, 0};
    const VectorOp op = emu::decode_vector(bits);
    if (Name(op).starts("vset")) {
        do_configuration(state, op, bits);
        return {};
    }
    Execution e(state, op, bits, sums);
    if (const Access access = access_of(op); access.kind != Memory::kNone) {
        const Result result = do_memory(e, access);
        if (result.outcome == Outcome::kDone) state.vstart = 0;
        return result;
    }
    if (!do_fixed_point(e) && !do_conversion(e) && !do_floating(e) && !do_mask(e) && !do_permutation(e) &&
        !do_integer(e))
        throw std::logic_error(std::string("the model has no ") + emu::row(op).name);
    state.vstart = 0;
    return {};
}

}  // namespace orrery::riscv::model
