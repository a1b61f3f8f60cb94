// What the interpreter counts of vector instructions, against what follows from the text of each and the
// state before it. Of the interpreter's own classes and tables nothing is used.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/unit/riscv/disassembly.h"
#include "tests/unit/riscv/generator.h"
#include "tests/unit/riscv/interpreter.h"
#include "tests/unit/riscv/model/shape.h"

namespace orrery::riscv::test {
namespace {

using emu::VectorClass;
using emu::WorkCounts;
using model::State;

struct Flops {
    unsigned each = 0;
    bool wide = false;
};
const std::map<std::string, Flops> kFlops = {{"vfadd", {1}},
                                             {"vfsub", {1}},
                                             {"vfrsub", {1}},
                                             {"vfmul", {1}},
                                             {"vfdiv", {1}},
                                             {"vfrdiv", {1}},
                                             {"vfsqrt", {1}},
                                             {"vfmin", {1}},
                                             {"vfmax", {1}},
                                             {"vfredosum", {1}},
                                             {"vfredusum", {1}},
                                             {"vfredmin", {1}},
                                             {"vfredmax", {1}},
                                             {"vfmacc", {2}},
                                             {"vfnmacc", {2}},
                                             {"vfmsac", {2}},
                                             {"vfnmsac", {2}},
                                             {"vfmadd", {2}},
                                             {"vfnmadd", {2}},
                                             {"vfmsub", {2}},
                                             {"vfnmsub", {2}},
                                             {"vfwadd", {1, true}},
                                             {"vfwsub", {1, true}},
                                             {"vfwmul", {1, true}},
                                             {"vfwmacc", {2, true}},
                                             {"vfwnmacc", {2, true}},
                                             {"vfwmsac", {2, true}},
                                             {"vfwnmsac", {2, true}},
                                             {"vfwmaccbf16", {2, true}},
                                             {"vfwredosum", {1, true}},
                                             {"vfwredusum", {1, true}}};
const std::set<std::string> kMoves = {
    "vmv",        "vfmv",         "vmv1r",    "vmv2r",        "vmv4r",     "vmv8r",
    "vmerge",     "vfmerge",      "vslideup", "vslidedown",   "vslide1up", "vslide1down",
    "vfslide1up", "vfslide1down", "vrgather", "vrgatherei16", "vcompress"};
const std::set<std::string> kScalarMoves = {"vmv.x.s", "vmv.s.x", "vfmv.f.s", "vfmv.s.f"};

struct Expected {
    WorkCounts work;
    std::string name;
};

Expected expected(const State& before, u32 bits, const State& after) {
    Expected result;
    WorkCounts& work = result.work;
    const std::string text = disassemble(bits);
    const std::string name = text.substr(0, text.find_first_of(" \t"));
    const std::string base = name.substr(0, name.find('.'));
    result.name = name;
    const auto count = [&](VectorClass kind) { ++work.instructions.at(static_cast<std::size_t>(kind)); };
    if (base.starts_with("vset")) {
        count(VectorClass::kConfig);
        return result;
    }
    const unsigned vlen = before.vlenb * 8, sew = 8u << (before.vtype >> 3 & 7);
    const int lmul = static_cast<int>(before.vtype & 7) - ((before.vtype & 4) != 0 ? 8 : 0);
    const u64 vlmax = lmul >= 0 ? u64{vlen} / sew << lmul : u64{vlen} / sew >> -lmul;
    const emu::VectorOp op = emu::decode_vector(bits);
    const model::Access access = model::access_of(op);
    const bool masked = model::shape_of(before, op, bits).masked;
    const auto ones = [&](u64 from, u64 to) {
        u64 active = 0;
        for (u64 i = from; i < to; ++i)
            active += !masked || before.mask_bit(0, i) ? 1 : 0;
        return active;
    };
    if (access.kind != model::Memory::kNone) {
        count(access.store ? VectorClass::kStores : VectorClass::kLoads);
        const u64 fields = model::Fields(bits).nf;
        if (access.kind == model::Memory::kWhole) {
            work.active = work.lanes = fields * vlen / access.eew;
        } else if (access.kind == model::Memory::kMaskBits) {
            work.active = work.lanes = (before.vl + 7) / 8;
        } else {
            // One that stopped at a fault has done what is left of vl.
            work.active = ones(0, access.kind == model::Memory::kFaultFirst ? after.vl : before.vl) * fields;
            work.lanes = vlmax * fields;
        }
        return result;
    }
    const bool scalar = kScalarMoves.contains(name);
    const bool fp = (base.starts_with("vf") && base != "vfirst") || base.starts_with("vmf");
    const bool moves = kMoves.contains(base);
    count(moves ? VectorClass::kMoves : fp ? VectorClass::kFp : VectorClass::kInt);
    if (base.starts_with("vmv") && base.ends_with("r")) {
        work.active = work.lanes = u64(base[3] - '0') * vlen / sew;
        return result;
    }
    if (scalar) {
        const bool to_scalar = name.ends_with("x.s") || name.ends_with("f.s");
        work.active = to_scalar || before.vstart < before.vl ? 1 : 0;
        work.lanes = 1;
        return result;
    }
    work.active = ones(before.vstart, before.vl);
    work.lanes = vlmax;
    if (const auto flops = kFlops.find(base); flops != kFlops.end()) {
        const unsigned width = flops->second.wide ? 2 * sew : sew;
        work.flops.at(width == 16 ? 0 : width == 32 ? 1 : 2) = work.active * flops->second.each;
    }
    return result;
}

TEST(Counts, AreWhatFollowsFromEachInstruction) {
    for (const unsigned vlen : {128u, 1024u}) {
        for (const auto memory : {Interpreter::Memory::kPlain, Interpreter::Memory::kAbsent}) {
            Generator generator(20261128, vlen);
            Interpreter machine(vlen, emu::Simd::kAvx512, memory);
            std::set<std::string> wrong;
            u64 counted = 0;
            for (unsigned i = 0; i < 60; ++i) {
                const Program program = generator.next(64);
                const auto seen = machine.run(program);
                ASSERT_EQ(seen.size(), program.steps.size());
                State state(program.vlen);
                for (std::size_t step = 0; step < seen.size(); ++step) {
                    const u32 bits = program.steps[step].instruction;
                    for (const Patch& patch : program.steps[step].patches)
                        apply(patch, state);
                    const WorkCounts& work = machine.work()[step];
                    if (seen[step].result.outcome != model::Outcome::kDone) {
                        EXPECT_EQ(work, WorkCounts{}) << disassemble(bits);
                    } else {
                        const Expected wanted = expected(state, bits, seen[step].state);
                        ++counted;
                        if (!(work == wanted.work)) {
                            if (wrong.insert(wanted.name).second && wrong.size() <= 5)
                                ADD_FAILURE() << fmt::format(
                                    "{} at vl {} vstart {} vtype {:#x}: {} active of {}, not {} of {}; flops "
                                    "{} {} {}, not {} {} {}",
                                    wanted.name, state.vl, state.vstart, state.vtype, work.active, work.lanes,
                                    wanted.work.active, wanted.work.lanes, work.flops[0], work.flops[1],
                                    work.flops[2], wanted.work.flops[0], wanted.work.flops[1],
                                    wanted.work.flops[2]);
                        }
                    }
                    state = seen[step].state;
                }
            }
            EXPECT_TRUE(wrong.empty()) << wrong.size() << " instructions are counted wrongly";
            EXPECT_GT(counted, 1000u);
        }
    }
}

}  // namespace
}  // namespace orrery::riscv::test
