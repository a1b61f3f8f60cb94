// What AMOs compute.
#pragma once

#include <cstdint>
#include <type_traits>

#include "emulator/core/decode.h"

namespace orrery::emu {

template <class T>
T apply(AmoFunction function, T old, T operand) {
    using Signed = std::make_signed_t<T>;
    const auto a = static_cast<Signed>(old);
    const auto b = static_cast<Signed>(operand);
    switch (function) {
        case AmoFunction::kSwap:
            return operand;
        case AmoFunction::kAdd:
            return static_cast<T>(old + operand);
        case AmoFunction::kXor:
            return old ^ operand;
        case AmoFunction::kAnd:
            return old & operand;
        case AmoFunction::kOr:
            return old | operand;
        case AmoFunction::kMin:
            return a < b ? old : operand;
        case AmoFunction::kMax:
            return a > b ? old : operand;
        case AmoFunction::kMinu:
            return old < operand ? old : operand;
        case AmoFunction::kMaxu:
            return old > operand ? old : operand;
    }
    return old;
}

// Of all but this one the order does not matter, and several are one: with the function of their operands.
inline bool commutes(AmoFunction function) {
    return function != AmoFunction::kSwap;
}

}  // namespace orrery::emu
