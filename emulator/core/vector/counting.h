// What vector instructions add to WorkCounts.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "emulator/core/vector/execute.h"
#include "emulator/core/work_counts.h"

namespace orrery::emu {

struct VectorTraits {
    VectorClass kind = VectorClass::kInt;
    std::uint8_t flops = 0;  // of an element
    std::uint8_t wide = 0;   // 1: its result has twice SEW
};

constexpr VectorTraits traits_of(const VectorRow& what) {
    using namespace vector_property;
    if (what.has(kConfig)) return {.kind = VectorClass::kConfig};
    if (what.has(kLoad)) return {.kind = VectorClass::kLoads};
    if (what.has(kStore)) return {.kind = VectorClass::kStores};
    if (what.has(kMove | kMerge | kPermute)) return {.kind = VectorClass::kMoves};
    if (!what.has(kFp)) return {.kind = VectorClass::kInt};
    VectorTraits traits{.kind = VectorClass::kFp};
    std::string_view name(what.name);
    name = name.substr(0, name.find('.'));
    const bool wide = name.starts_with("vfw");
    name.remove_prefix(wide ? 3 : 2);
    const bool fused = name.find("macc") != name.npos || name.find("msac") != name.npos ||
                       name.find("madd") != name.npos || name.find("msub") != name.npos;
    bool one = false;
    for (const std::string_view each : {"add", "sub", "rsub", "mul", "div", "rdiv", "sqrt", "min", "max",
                                        "redusum", "redosum", "redmin", "redmax"})
        one = one || name == each;
    traits.flops = fused ? 2 : one ? 1 : 0;
    traits.wide = wide && traits.flops != 0 ? 1 : 0;
    return traits;
}
inline constexpr auto kVectorTraits = [] {
    std::array<VectorTraits, kVectorOps> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = traits_of(kVectorRows[i]);
    return all;
}();

// Ones among bits [start, end) of a mask.
inline std::uint64_t ones_in(const std::uint8_t* mask, std::uint64_t start, std::uint64_t end) {
    std::uint64_t count = 0;
    for (std::uint64_t at = start / 64 * 64; at < end; at += 64) {
        std::uint64_t bits;
        std::memcpy(&bits, mask + at / 8, sizeof bits);
        if (start > at) bits &= ~std::uint64_t{0} << (start - at);
        if (end - at < 64) bits &= ~std::uint64_t{0} >> (64 - (end - at));
        count += static_cast<std::uint64_t>(std::popcount(bits));
    }
    return count;
}

// `times` instructions of this kind, each with so many elements, at this SEW.
inline void count_vector(WorkCounts& work, VectorTraits traits, unsigned sew_log2, std::uint64_t active,
                         std::uint64_t lanes, std::uint64_t times = 1) {
    work.instructions[static_cast<std::size_t>(traits.kind)] += times;
    work.active += active * times;
    work.lanes += lanes * times;
    // SEW of 8 bits computes nothing, and of 64 nothing wider.
    if (traits.flops != 0) work.flops[sew_log2 - 4 + traits.wide] += traits.flops * active * times;
}

// Of plain instructions (execute.h), which do all elements of vl, only how many there were of each kind is
// counted as they are executed.
constexpr std::uint8_t plain_kind(VectorTraits traits) {
    if (traits.kind == VectorClass::kFp) return static_cast<std::uint8_t>(8 + traits.flops * 2 + traits.wide);
    return static_cast<std::uint8_t>(traits.kind);
}
constexpr VectorTraits traits_of_kind(std::size_t kind) {
    if (kind < 8) return {.kind = static_cast<VectorClass>(kind)};
    return {.kind = VectorClass::kFp,
            .flops = static_cast<std::uint8_t>((kind - 8) / 2),
            .wide = static_cast<std::uint8_t>(kind % 2)};
}
inline constexpr auto kPlainKind = [] {
    std::array<std::uint8_t, kVectorOps> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = plain_kind(kVectorTraits[i]);
    return all;
}();
// For Op::imm.
constexpr std::uint32_t kind_bits(VectorOp op) {
    return std::uint32_t{kPlainKind[static_cast<std::size_t>(op)]} << 12;
}
static_assert(plain_kind({.kind = VectorClass::kFp, .flops = 2, .wide = 1}) < VectorFile::kPlainKinds);

// After common().
inline void count_plain(VectorFile& file, std::uint32_t imm) {
    ++file.plain[(imm & kKindBits) >> 12];
}

}  // namespace orrery::emu
