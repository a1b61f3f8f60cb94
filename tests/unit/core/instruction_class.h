// The class of an instruction by its bits, as the tables of the specification have them: of the emulator's
// own decoder nothing is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "emulator/core/work_counts.h"

namespace orrery::emu::test {

// Of a legal instruction; nullopt: it is one of vectors.
inline std::optional<ScalarClass> class_of(std::uint32_t bits) {
    const unsigned funct3 = bits >> 12 & 7;
    if ((bits & 3) != 3) {
        const unsigned half = bits & 0xffff, of_half = half >> 13;
        switch (half & 3) {
            case 0:
                return of_half == 0  ? ScalarClass::kInt
                       : of_half < 4 ? ScalarClass::kLoads
                                     : ScalarClass::kStores;
            case 1:
                return of_half < 5 ? ScalarClass::kInt : ScalarClass::kJumps;
            default:
                break;
        }
        if (of_half == 0) return ScalarClass::kInt;
        if (of_half < 4) return ScalarClass::kLoads;
        if (of_half > 4) return ScalarClass::kStores;
        // c.mv and c.add have an rs2; without one: c.ebreak, or c.jr and c.jalr.
        if ((half >> 2 & 31) != 0) return ScalarClass::kInt;
        return (half >> 7 & 31) == 0 ? ScalarClass::kSystem : ScalarClass::kJumps;
    }
    const bool muldiv = bits >> 25 == 1, of_scalars = funct3 >= 1 && funct3 <= 4;
    switch (bits >> 2 & 31) {
        case 0x00:
            return ScalarClass::kLoads;
        case 0x01:
            return of_scalars ? std::optional(ScalarClass::kLoads) : std::nullopt;
        case 0x08:
            return ScalarClass::kStores;
        case 0x09:
            return of_scalars ? std::optional(ScalarClass::kStores) : std::nullopt;
        case 0x03:
        case 0x1c:
            return ScalarClass::kSystem;
        case 0x0b:
            return ScalarClass::kAtomics;
        case 0x0c:
        case 0x0e:
            return muldiv ? ScalarClass::kMulDiv : ScalarClass::kInt;
        case 0x10:
        case 0x11:
        case 0x12:
        case 0x13:
        case 0x14:
            return ScalarClass::kFp;
        case 0x18:
        case 0x19:
        case 0x1b:
            return ScalarClass::kJumps;
        case 0x15:
            return std::nullopt;
        default:
            return ScalarClass::kInt;
    }
}

// Instructions one by one.
struct ClassCounts {
    std::array<std::uint64_t, kScalarClasses> scalar{};
    std::uint64_t vector = 0;
    void add(std::uint32_t bits, std::uint64_t times = 1) {
        if (const auto kind = class_of(bits))
            scalar.at(static_cast<std::size_t>(*kind)) += times;
        else
            vector += times;
    }
    std::uint64_t of(ScalarClass kind) const { return scalar.at(static_cast<std::size_t>(kind)); }
};

}  // namespace orrery::emu::test
