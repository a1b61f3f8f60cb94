// Instructions with one floating-point operand, on every half there is: among them the estimates, whose
// tables the model computes.
#include <gtest/gtest.h>

#include <memory>

#include "emulator/core/vector/opcodes.h"
#include "tests/unit/riscv/interpreter.h"
#include "tests/unit/riscv/model/shape.h"
#include "tests/unit/riscv/qemu.h"

namespace orrery::riscv::test {
namespace {

constexpr unsigned kVlen = 1024;
constexpr unsigned kSource = 8, kDestination = 16;  // registers
constexpr u64 kHalves = 65536;

// A machine keeps its state from program to program.
std::vector<Patch> everything(const model::State& state) {
    std::vector<Patch> patches = {{Place::kVector, 0, std::vector<u64>(state.v.size() / 8)}};
    for (u64 i = 1; i < 32; ++i)
        patches.push_back({Place::kX, i, {0}});
    for (u64 i = 0; i < 32; ++i)
        patches.push_back({Place::kF, i, {0}});
    for (const Place place : {Place::kVstart, Place::kVxsat, Place::kVxrm})
        patches.push_back({place, 0, {0}});
    return patches;
}

// The halves in order, as many to an instruction as its groups hold; all rounding modes in turn.
Program on_every_half(emu::VectorOp op, u64 vtype) {
    Program program{kVlen, {}};
    model::State state(kVlen);
    const u32 bits = emu::row(op).match | 1u << 25 | kSource << 20 | kDestination << 7;
    const u64 count = model::Vtype(vtype).vlmax(state.vlenb);
    for (u64 first = 0; first < kHalves; first += count) {
        Step step{{}, bits, {}, false, state};
        std::vector<u64> halves(count / 4);
        for (u64 i = 0; i < count; ++i)
            halves[i / 4] |= (first + i) << (i % 4 * 16);
        if (first == 0) step.patches = everything(state);
        step.patches.push_back({Place::kVtype, 0, {vtype}});
        step.patches.push_back({Place::kVl, 0, {count}});
        step.patches.push_back({Place::kFrm, 0, {first / count % 5}});
        step.patches.push_back({Place::kFflags, 0, {0}});
        step.patches.push_back({Place::kVector, u64{kSource} * state.vlenb, std::move(halves)});
        for (const Patch& patch : step.patches)
            apply(patch, state);
        step.result = model::execute(state, bits);
        step.after = state;
        program.steps.push_back(std::move(step));
    }
    return program;
}

TEST(EveryHalf, AgreesWithTheModel) {
    std::vector<std::unique_ptr<Machine>> machines;
    machines.push_back(std::make_unique<Qemu>(qemu_of_tree(), kVlen, ORRERY_GUEST));
    for (const emu::Simd simd : {emu::Simd::kPortable, emu::Simd::kAvx2, emu::Simd::kAvx512})
        if (emu::simd_usable(simd)) machines.push_back(std::make_unique<Interpreter>(kVlen, simd));
    // e16 in eight registers, e16 in four for results of twice the width, e8 in four for sources of it.
    constexpr u64 kWhole = 0x0b, kWidening = 0x0a, kNarrowing = 0x02;
    unsigned instructions = 0;
    for (std::size_t i = 0; i < emu::kVectorOps; ++i) {
        const auto op = static_cast<emu::VectorOp>(i);
        const emu::VectorRow& row = emu::row(op);
        const bool one_operand = row.vs1 == emu::VectorOperand::kNone && row.vs2 != emu::VectorOperand::kNone;
        if (!row.has(emu::vector_property::kFp) || row.has(emu::vector_property::kScalar) || !one_operand)
            continue;
        const u64 vtype = row.vs2 == emu::VectorOperand::kWide  ? kNarrowing
                          : row.vd == emu::VectorOperand::kWide ? kWidening
                                                                : kWhole;
        const Program program = on_every_half(op, vtype);
        if (program.steps[0].result.outcome != model::Outcome::kDone) continue;  // its sources are wider
        ++instructions;
        for (const auto& machine : machines) {
            const std::vector<Observation> seen = machine->run(program);
            ASSERT_EQ(seen.size(), program.steps.size()) << row.name << ", " << machine->name();
            for (std::size_t step = 0; step < seen.size(); ++step) {
                const std::string difference = compare(program, step, seen[step], machine->name());
                ASSERT_EQ(difference, "") << row.name;
            }
        }
    }
    EXPECT_EQ(instructions, 22u);
}

}  // namespace
}  // namespace orrery::riscv::test
