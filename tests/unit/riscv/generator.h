// Random programs of vector instructions, most of them legal, on values that hurt.
#pragma once

#include "emulator/core/vector/opcodes.h"
#include "tests/unit/riscv/program.h"

namespace orrery::riscv::test {

class Generator {
  public:
    Generator(u64 seed, unsigned vlen) : vlen_(vlen), random_(seed), state_(vlen) {}

    // Steps of which this is true are not made.
    using Avoid = bool (*)(const model::State& before, u32 instruction, const model::Result& result,
                           const model::State& after);
    void avoid(Avoid what) { avoid_ = what; }

    void sums(model::Sums order) { sums_ = order; }

    // The next program, with what the model says about each step. `only`: instructions whose name contains
    // it.
    Program next(unsigned steps, const std::string& only = "");

    // So many instructions again and again, mostly with another vtype: what is legal changes, and what was
    // found out about an instruction before no longer holds.
    Program loop(unsigned instructions, unsigned passes);

  private:
    u64 random();
    u64 below(u64 limit) { return random() % limit; }
    bool chance(unsigned percent) { return below(100) < percent; }

    void patch(Place place, u64 at, std::vector<u64> words);
    void patch(Place place, u64 value) { patch(place, 0, {value}); }
    void fill_state();
    void choose_vtype();
    void fill_registers(unsigned first, unsigned count);
    u64 pattern(unsigned style, unsigned bits);
    u64 scalar();
    u64 float_bits(unsigned exponent, unsigned fraction);

    bool add_step(Program& program, u32 bits);
    u32 configuration();
    u32 no_instruction();
    u32 instruction(const std::string& only);
    u32 operands(emu::VectorOp op);
    void prepare_memory(emu::VectorOp op, u32 bits);
    void prepare_csrs();

    unsigned vlen_;
    u64 random_;
    model::State state_;
    Avoid avoid_ = nullptr;
    model::Sums sums_ = model::Sums::kInOrder;
    std::vector<Patch> patches_;
};

}  // namespace orrery::riscv::test
