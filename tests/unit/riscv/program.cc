#include "tests/unit/riscv/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/riscv/disassembly.h"
#include "tests/unit/riscv/model/shape.h"

namespace orrery::riscv::test {

using model::State;

void apply(const Patch& patch, State& state) {
    const u64 value = patch.words.at(0);
    const auto small = static_cast<u8>(value);
    const auto copy = [&patch](std::vector<u8>& bytes) {
        std::memcpy(&bytes.at(patch.at), patch.words.data(), patch.words.size() * 8);
    };
    switch (patch.place) {
        case Place::kX:
            state.x.at(patch.at) = value;
            break;
        case Place::kF:
            state.f.at(patch.at) = value;
            break;
        case Place::kVector:
            copy(state.v);
            break;
        case Place::kMemory:
            copy(state.memory);
            break;
        case Place::kVstart:
            state.vstart = value;
            break;
        case Place::kVtype:
            state.vtype = value;
            break;
        case Place::kVl:
            state.vl = value;
            break;
        case Place::kVxsat:
            state.vxsat = small;
            break;
        case Place::kVxrm:
            state.vxrm = small;
            break;
        case Place::kFrm:
            state.frm = small;
            break;
        case Place::kFflags:
            state.fflags = small;
            break;
    }
}

namespace {

std::string describe(const State& state) {
    const model::Vtype vtype(state.vtype);
    return fmt::format(
        "vlen {} vtype {:#x} ({}e{} lmul 2^{}) vl {} vstart {} vxrm {} vxsat {} frm {} fflags {:#x}",
        state.vlenb * 8, state.vtype, vtype.vill ? "vill " : "", vtype.sew, vtype.lmul_log2, state.vl,
        state.vstart, state.vxrm, state.vxsat, state.frm, state.fflags);
}

std::string registers(const State& state, unsigned first, unsigned count) {
    std::string text;
    for (unsigned reg = first; reg < first + count && reg < 32; ++reg) {
        text += fmt::format("  v{:<2} ", reg);
        for (unsigned i = state.vlenb / 8; i-- > 0;)
            text += fmt::format(" {:016x}", state.element(reg, i, 64));
        text += '\n';
    }
    return text;
}

State before(const Program& program, std::size_t step) {
    State state = step == 0 ? State(program.vlen) : program.steps[step - 1].after;
    for (const Patch& patch : program.steps[step].patches)
        apply(patch, state);
    return state;
}

}  // namespace

std::string compare(const Program& program, std::size_t number, const Observation& seen,
                    const char* machine) {
    const Step& step = program.steps[number];
    const State& want = step.after;
    const State& got = seen.state;
    std::string text;
    const auto differs = [&](const char* what, auto expected, auto actual) {
        if (expected != actual)
            text += fmt::format("  {}: model {:#x}, {} {:#x}\n", what, expected, machine, actual);
    };
    if (step.result != seen.result)
        text +=
            fmt::format("  outcome: model {} ({:#x}), {} {} ({:#x})\n", to_string(step.result.outcome),
                        step.result.address, machine, to_string(seen.result.outcome), seen.result.address);
    for (unsigned i = 1; i < 32; ++i)
        if (i != 3 && i != 4) differs(fmt::format("x{}", i).c_str(), want.x[i], got.x[i]);
    for (unsigned i = 0; i < 32; ++i)
        differs(fmt::format("f{}", i).c_str(), want.f[i], got.f[i]);
    differs("vstart", want.vstart, got.vstart);
    differs("vl", want.vl, got.vl);
    differs("vtype", want.vtype, got.vtype);
    differs("vxsat", want.vxsat, got.vxsat);
    differs("vxrm", want.vxrm, got.vxrm);
    differs("frm", want.frm, got.frm);
    differs("fflags", want.fflags, got.fflags);
    const unsigned sew = model::Vtype(want.vtype).vill ? 8 : model::Vtype(want.vtype).sew;
    unsigned elements = 0;
    for (unsigned reg = 0; reg < 32 && elements < 8; ++reg)
        for (unsigned i = 0; i < want.vlenb * 8 / sew && elements < 8; ++i)
            if (want.element(reg, i, sew) != got.element(reg, i, sew)) {
                ++elements;
                differs(fmt::format("v{}[{}]", reg, i).c_str(), want.element(reg, i, sew),
                        got.element(reg, i, sew));
            }
    if (step.may_store && want.memory != got.memory) {
        std::size_t at = 0;
        while (want.memory[at] == got.memory[at])
            ++at;
        differs(fmt::format("memory {:#x}", model::kWindow + at).c_str(), want.memory[at], got.memory[at]);
    }
    if (text.empty()) return text;

    const State old = before(program, number);
    const model::Fields fields(step.instruction);
    text = fmt::format("{:08x} {}\n{}  before: {}\n", step.instruction, disassemble(step.instruction), text,
                       describe(old));
    text += fmt::format("  x{} {:#x}  x{} {:#x}  f{} {:#x}\n", fields.vs1, old.x[fields.vs1], fields.vs2,
                        old.x[fields.vs2], fields.vs1, old.f[fields.vs1]);
    const unsigned count = 1u << std::max(0, model::Vtype(old.vtype).lmul_log2);
    for (const unsigned first : {0u, fields.vd, fields.vs2, fields.vs1})
        text += registers(old, first, first == 0 ? 1 : count);
    return text;
}

}  // namespace orrery::riscv::test
