// The floating-point vector instructions in integer arithmetic, element by element: any rounding mode, any
// host. What the host's FPU cannot do, or not alike, comes here (fp_simd.cc).
#pragma once

#include <cstring>

#include "emulator/core/core.h"
#include "emulator/core/soft_fp.h"
#include "emulator/core/vector/operands.h"

namespace orrery::emu {

// All of vf* and vmf*. nullptr: no such instruction at this SEW.
VectorKernel fp_exact_kernel(VectorOp op, unsigned sew_log2);

// Its parts, each with nullptr for what is another's.
VectorKernel fp_exact_arithmetic(VectorOp op, unsigned sew_log2);
VectorKernel fp_exact_convert(VectorOp op, unsigned sew_log2);
VectorKernel fp_exact_reduce(VectorOp op, unsigned sew_log2);
VectorKernel fp_exact_move(VectorOp op, unsigned sew_log2);

namespace exact {

inline void count(VectorOperands& o) {
    o.slow += o.vl - o.start;
}

template <class T>
T load(const std::uint8_t* group, std::uint64_t index) {
    T value;
    std::memcpy(&value, group + index * sizeof(T), sizeof(T));
    return value;
}
template <class T>
void store(std::uint8_t* group, std::uint64_t index, T value) {
    std::memcpy(group + index * sizeof(T), &value, sizeof(T));
}

// A scalar that is not NaN-boxed reads as the canonical NaN.
template <class F>
typename F::Bits unbox(std::uint64_t scalar) {
    constexpr unsigned kBits = 8 * sizeof(typename F::Bits);
    if constexpr (kBits < 64) {
        if (scalar >> kBits != ~0ull >> kBits) return F::kNan;
    }
    return static_cast<typename F::Bits>(scalar);
}

inline soft::Mode mode_of(const VectorOperands& o) {
    return static_cast<soft::Mode>(o.frm);
}

// The operand in the format that the operation computes in.
template <class To, class From>
typename To::Bits widen(typename From::Bits a, std::uint8_t& flags) {
    if constexpr (sizeof(typename To::Bits) == sizeof(typename From::Bits)) {
        return a;
    } else {
        return soft::convert<To, From>(a, soft::kNearestEven, flags);
    }
}

template <class F>
struct Wider;
template <>
struct Wider<soft::F16> {
    using Type = soft::F32;
};
template <>
struct Wider<soft::Bf16> {
    using Type = soft::F32;
};
template <>
struct Wider<soft::F32> {
    using Type = soft::F64;
};

}  // namespace exact
}  // namespace orrery::emu
