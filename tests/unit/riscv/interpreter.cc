#include "tests/unit/riscv/interpreter.h"

#include <algorithm>
#include <cstring>

namespace orrery::riscv::test {

using model::Outcome;
using model::State;

namespace {

constexpr u64 kCode = 0x10000;

emu::Config config(unsigned vlen, emu::Simd simd) {
    emu::Config config;
    config.reset_pc = kCode;
    config.fp = true;
    config.vlen = vlen;
    config.simd = simd;
    config.trap_to_host = true;
    return config;
}

}  // namespace

Interpreter::Interpreter(unsigned vlen, emu::Simd simd, Memory memory)
    : name_(std::string("interpreter, ") + to_string(simd)),
      kind_(memory),
      hart_(config(vlen, simd), *this) {}

emu::PageRef Interpreter::translate(u64 va, emu::Access) {
    const u64 page = va & ~u64{0xfff};
    if (page == kCode) return emu::PageRef::memory(code_.data(), emu::kPageRead | emu::kPageExec);
    if (va < model::kWindow || va - model::kWindow >= model::kWindowBytes) return emu::PageRef::fault();
    const u64 number = (page - model::kWindow) / 4096;
    if ((there_ >> number & 1) == 0) return emu::PageRef::fault();
    if (kind_ == Memory::kMmio && number % 2 != 0) return emu::PageRef::mmio();
    return emu::PageRef::memory(memory_.data() + (page - model::kWindow), emu::kPageRead | emu::kPageWrite);
}

bool Interpreter::load(u64 va, unsigned size, u64& value) {
    ++accesses_;
    value = 0;
    std::memcpy(&value, &memory_[va - model::kWindow], size);
    return true;
}

bool Interpreter::store(u64 va, unsigned size, u64 value) {
    ++accesses_;
    std::memcpy(&memory_[va - model::kWindow], &value, size);
    return true;
}

// Where the instruction stands: each at the first place, or if they are kept at one of its own.
u64 Interpreter::place(u32 instruction) {
    if (kind_ != Memory::kKept) placed_.clear();
    const auto found = std::find(placed_.begin(), placed_.end(), instruction);
    const auto index = static_cast<u64>(found - placed_.begin());
    if (found == placed_.end()) {
        placed_.push_back(instruction);
        std::memcpy(&code_.at(4 * index), &instruction, sizeof instruction);
        hart_.flush_code();
    }
    return kCode + 4 * index;
}

void Interpreter::prepare(const Step& step, State& state) {
    for (const Patch& patch : step.patches)
        apply(patch, state);
    emu::HartState scalar = hart_.state();
    const u32 fcsr = state.frm * 32u + state.fflags;
    if (scalar.fcsr != fcsr ||
        !std::equal(state.f.begin(), state.f.end(), scalar.f)) {  // this drops all caches
        std::copy(state.f.begin(), state.f.end(), scalar.f);
        scalar.fcsr = fcsr;
        hart_.set_state(scalar);
    }
    for (unsigned i = 1; i < 32; ++i)
        hart_.set_x(i, state.x[i]);
    hart_.set_pc(place(step.instruction));
    emu::VectorState vector;
    vector.vl = state.vl;
    vector.vtype = state.vtype;
    vector.vstart = state.vstart;
    vector.vxrm = state.vxrm;
    vector.vxsat = state.vxsat;
    std::copy(state.v.begin(), state.v.end(), vector.v);
    hart_.set_vector_state(vector);
    std::copy(state.memory.begin(), state.memory.end(), memory_.begin());
}

Observation Interpreter::look(emu::StopReason reason) const {
    const emu::HartState scalar = hart_.state();
    const emu::VectorState vector = hart_.vector_state();
    Observation seen{{}, State(hart_.config().vlen)};
    std::copy(std::begin(scalar.x), std::end(scalar.x), seen.state.x.begin());
    std::copy(std::begin(scalar.f), std::end(scalar.f), seen.state.f.begin());
    std::copy_n(vector.v, seen.state.v.size(), seen.state.v.begin());
    std::copy(memory_.begin(), memory_.end(), seen.state.memory.begin());
    seen.state.vl = vector.vl;
    seen.state.vtype = vector.vtype;
    seen.state.vstart = vector.vstart;
    seen.state.vxrm = vector.vxrm;
    seen.state.vxsat = vector.vxsat;
    seen.state.frm = static_cast<u8>(scalar.fcsr >> 5);
    seen.state.fflags = scalar.fcsr & 31;
    if (reason != emu::StopReason::kTrap) return seen;
    switch (hart_.trap().cause) {
        case emu::Cause::kLoadAccess:
            seen.result = {Outcome::kLoadFault, hart_.trap().tval};
            break;
        case emu::Cause::kStoreAccess:
            seen.result = {Outcome::kStoreFault, hart_.trap().tval};
            break;
        default:
            seen.result = {Outcome::kIllegal, 0};
    }
    return seen;
}

std::vector<Observation> Interpreter::run(const Program& program) {
    std::vector<Observation> seen;
    State state(program.vlen);
    work_.clear();
    hart_.take_work();
    for (const Step& step : program.steps) {
        prepare(step, state);
        const bool absent = kind_ == Memory::kAbsent;
        if (absent) {
            there_ = 0;
            hart_.flush_pages();
        }
        Observation now = look(hart_.run(1));
        while (absent &&
               (now.result.outcome == Outcome::kLoadFault || now.result.outcome == Outcome::kStoreFault)) {
            const u64 page = (now.result.address - model::kWindow) / 4096;
            if (page >= model::kWindowBytes / 4096 || (there_ >> page & 1) != 0) break;
            there_ |= 1u << page;
            hart_.flush_pages();
            now = look(hart_.run(1));
            ++resumed_;
        }
        seen.push_back(std::move(now));
        work_.push_back(hart_.take_work());
        state = seen.back().state;
    }
    return seen;
}

}  // namespace orrery::riscv::test
