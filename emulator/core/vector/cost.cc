#include "emulator/core/vector/cost.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/core/vector/counting.h"

namespace orrery::emu {
namespace {

using namespace vector_property;

// Dividers and roots give a result every so many cycles.
constexpr std::uint64_t kDivide = 8;

bool divides(VectorOp op) {
    switch (op) {
        case VectorOp::kVdivVv:
        case VectorOp::kVdivVx:
        case VectorOp::kVdivuVv:
        case VectorOp::kVdivuVx:
        case VectorOp::kVremVv:
        case VectorOp::kVremVx:
        case VectorOp::kVremuVv:
        case VectorOp::kVremuVx:
        case VectorOp::kVfdivVv:
        case VectorOp::kVfdivVf:
        case VectorOp::kVfrdivVf:
        case VectorOp::kVfsqrtV:
            return true;
        default:
            return false;
    }
}

bool in_order(VectorOp op) {
    return op == VectorOp::kVfredosumVs || op == VectorOp::kVfwredosumVs;
}

bool picks(VectorOp op) {
    switch (op) {
        case VectorOp::kVrgatherVv:
        case VectorOp::kVrgatherei16Vv:
        case VectorOp::kVcompressVm:
        case VectorOp::kViotaM:
            return true;
        default:
            return false;
    }
}

// Something that an element is made of, or what it becomes, is of twice SEW.
bool widens(const VectorRow& what) {
    const auto wide = [](VectorOperand operand) {
        return operand == VectorOperand::kWide || operand == VectorOperand::kWideElement;
    };
    return wide(what.vd) || wide(what.vs2) || wide(what.vs1);
}

bool masks_only(const VectorRow& what, VectorOp op) {
    return (what.vd == VectorOperand::kMask && what.vs2 == VectorOperand::kMask) || op == VectorOp::kVcpopM ||
           op == VectorOp::kVfirstM;
}

}  // namespace

std::uint64_t cycles_of_bits(const VectorFile& file, std::uint64_t bits) {
    return std::max<std::uint64_t>(1, (bits + file.datapath_bits - 1) / file.datapath_bits);
}

std::uint64_t cycles_of_places(const VectorFile& file, std::uint64_t elements) {
    return cycles_of_bits(file, elements * 64);
}

std::uint64_t cycles_of(const VectorFile& file, const VectorRow& what, VectorOp op) {
    // A register alone; masks of vl bits.
    if (what.has(kScalar)) return 1;
    if (masks_only(what, op)) return cycles_of_bits(file, file.vl);
    if (in_order(op)) return std::max<std::uint64_t>(1, file.vl);
    if (picks(op)) return cycles_of_places(file, file.vl);
    const unsigned log2 = static_cast<unsigned>(file.sew_log2) + (widens(what) ? 1 : 0);
    std::uint64_t cycles = cycles_of_bits(file, file.vl << log2);
    if (divides(op)) cycles *= kDivide;
    // A tree over what the lanes have at last.
    if (what.has(kReduce)) cycles += std::bit_width(std::max(file.datapath_bits >> log2, 1u)) - 1u;
    return cycles;
}

void add_plain(VectorFile& file) {
    const VectorFile::Common& common = file.common;
    const auto sew_log2 = static_cast<unsigned>(3 + (common.vtype >> 3 & 7));
    for (std::size_t kind = 0; kind < VectorFile::kPlainKinds; ++kind) {
        if (file.plain[kind] == 0) continue;
        count_vector(file.work, traits_of_kind(kind), sew_log2, common.vl, common.operands.vlmax,
                     std::exchange(file.plain[kind], 0));
    }
}

VectorFile::Common common_of(const VectorFile& file) {
    VectorFile::Common all{.vl = file.vl,
                           .vtype = file.vtype,
                           .cycles = {cycles_of_bits(file, file.vl << file.sew_log2),
                                      cycles_of_bits(file, file.vl << (file.sew_log2 + 1))},
                           .operands = {}};
    all.operands.vl = file.vl;
    all.operands.vlmax = file.vlmax;
    all.operands.vlen_bytes = file.vlen_bytes;
    return all;
}

bool is_of_elements(const VectorRow& what, VectorOp op, bool& wide) {
    wide = widens(what);
    return !what.has(kScalar | kReduce) && !masks_only(what, op) && !in_order(op) && !picks(op) &&
           !divides(op);
}

}  // namespace orrery::emu
