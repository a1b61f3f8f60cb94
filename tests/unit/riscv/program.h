// A program: vector instructions, with what is put into the state before each, and what the model says after.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/riscv/model/state.h"

namespace orrery::riscv::test {

using model::u32;
using model::u64;
using model::u8;

enum class Place : u8 { kX, kF, kVector, kMemory, kVstart, kVtype, kVl, kVxsat, kVxrm, kFrm, kFflags };

struct Patch {
    Place place{};
    u64 at = 0;              // the register's index; in vectors and memory the byte
    std::vector<u64> words;  // one, or of vectors and memory as many as there are
};

struct Step {
    std::vector<Patch> patches;
    u32 instruction = 0;
    model::Result result;    // what the model says
    bool may_store = false;  // else memory is not compared
    model::State after;
};

struct Program {
    unsigned vlen = 0;
    std::vector<Step> steps;
};

void apply(const Patch& patch, model::State& state);

// What a machine did in one step.
struct Observation {
    model::Result result;
    model::State state;
};

// A machine that runs programs: qemu-riscv64, or the interpreter.
class Machine {
  public:
    virtual ~Machine() = default;
    virtual const char* name() const = 0;
    // One for each step, fewer if it died.
    virtual std::vector<Observation> run(const Program& program) = 0;
};

// "" if what it did in the step is what the model says; else what differs, and the whole step.
std::string compare(const Program& program, std::size_t step, const Observation& seen, const char* machine);

}  // namespace orrery::riscv::test
