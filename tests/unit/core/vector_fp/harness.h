// Runs one vector instruction of the element kernels on operands in memory, in each build for the host's
// instruction sets, and compares registers and flags with what a reference computes element by element.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "emulator/core/vector/operands.h"
#include "emulator/core/vector/simd.h"
#include "tests/unit/core/vector_fp/reference.h"

namespace orrery::emu::test {

// The operands of one element, as bits. `d` is the destination's old element.
struct Element {
    std::uint64_t d, a, b;  // vd, vs2, vs1 or the scalar
    unsigned frm, vxrm;
    std::uint8_t flags = 0, saturated = 0;  // the reference sets them
};
using ElementReference = std::function<std::uint64_t(Element&)>;

struct Operand {
    unsigned bits = 0;  // 0: there is none
    reference::Format format{};
    bool is_integer = false;
};
Operand floating(reference::Format format);
Operand integer(unsigned bits);

struct Case {
    VectorOp op;
    unsigned sew_log2;
    Operand d, a, b;
    bool scalar = false;  // b is one, NaN-boxed if it is floating
    ElementReference expected;
};

// A value that finds mistakes more often than a uniform one would.
std::uint64_t interesting(const Operand& operand, std::mt19937_64& random);

// Random operands, lengths, starts and masks: in `rounds` instructions.
void check_random(const Case& test, unsigned rounds);
// One element, so that no flag is hidden by another's.
void check_one(const Case& test, std::uint64_t d, std::uint64_t a, std::uint64_t b, unsigned frm);
// These values of vs2, in all rounding modes.
void check_all(const Case& test, const std::vector<std::uint64_t>& a);

std::vector<Simd> usable_simd();
VectorKernel kernel_of(Simd simd, VectorOp op, unsigned sew_log2);

// Runs it as a hart would. The flags are all in fflags then.
void run_kernel(VectorKernel kernel, VectorOperands& operands);

std::uint64_t seed();

}  // namespace orrery::emu::test
