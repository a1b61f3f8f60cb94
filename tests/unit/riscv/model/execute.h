// Inside the model: an instruction that has been found legal, as its kind of semantics sees it.
#pragma once

#include "tests/unit/riscv/model/shape.h"

namespace orrery::riscv::model {

struct Execution {
    Execution(State& now, emu::VectorOp opcode, u32 bits, Sums order)
        : state(now),
          old(now),
          op(opcode),
          name(opcode),
          fields(bits),
          shape(shape_of(now, opcode, bits)),
          vtype(now.vtype),
          sums(order) {}

    State& state;
    const State old;  // sources are read here, so that a destination over a source does no harm
    emu::VectorOp op;
    Name name;
    Fields fields;
    Shape shape;
    Vtype vtype;
    Sums sums;

    bool active(u64 i) const { return !shape.masked || old.mask_bit(0, i); }
    u64 get(const Group& group, u64 i) const { return old.element(group.first, i, group.eew); }
    // The element operand that is vs1, x[rs1], f[rs1] or an immediate by the suffix; cut to SEW.
    u64 first_operand(u64 i) const;
    u64 scalar() const;
    // Calls what(i) for each element that the instruction computes.
    template <class F>
    void each(F what) {
        for (u64 i = old.vstart; i < old.vl; ++i)
            if (active(i)) what(i);
    }
};

// Each does the instruction and answers true, or answers false: not one of its own.
bool do_integer(Execution& e);
bool do_fixed_point(Execution& e);
bool do_floating(Execution& e);
bool do_conversion(Execution& e);
bool do_mask(Execution& e);
bool do_permutation(Execution& e);
Result do_memory(Execution& e, const Access& access);
void do_configuration(State& state, emu::VectorOp op, u32 bits);

u64 cut(u64 value, unsigned bits);
std::int64_t extended(u64 value, unsigned bits);

}  // namespace orrery::riscv::model
