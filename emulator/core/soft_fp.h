// IEEE 754 binary16, binary32 and binary64, and bfloat16, in integers, with RISC-V's NaN results: every
// rounding mode, every flag, the same on every host. Slow and plain: the host's FPU does the common cases
// (handlers_fp.cc, vector/fp_simd.cc), this does all others.
//
// Values are bit patterns. `flags` collects fflags bits. `mode` is an frm value from 0 to 4, or kOdd.
#pragma once

#include <cstdint>

#include "emulator/core/decode.h"

namespace orrery::emu::soft {

// kOdd: what is inexact gets an odd last digit. No frm says so, only vfncvt.rod does.
enum Mode : std::uint8_t { kNearestEven, kTowardZero, kDown, kUp, kNearestAway, kOdd };

struct F16 {
    using Bits = std::uint16_t;
    static constexpr int kMantissa = 10, kBias = 15;
    static constexpr Bits kQuiet = 0x0200, kNan = 0x7e00, kInf = 0x7c00, kSign = 0x8000;
};
struct Bf16 {
    using Bits = std::uint16_t;
    static constexpr int kMantissa = 7, kBias = 127;
    static constexpr Bits kQuiet = 0x0040, kNan = 0x7fc0, kInf = 0x7f80, kSign = 0x8000;
};

struct F32 {
    using Bits = std::uint32_t;
    static constexpr int kMantissa = 23, kBias = 127;
    static constexpr Bits kQuiet = 0x00400000, kNan = 0x7fc00000, kInf = 0x7f800000, kSign = 0x80000000;
};
struct F64 {
    using Bits = std::uint64_t;
    static constexpr int kMantissa = 52, kBias = 1023;
    static constexpr Bits kQuiet = 1ull << 51, kNan = 0x7ff8ull << 48, kInf = 0x7ff0ull << 48,
                          kSign = 1ull << 63;
};

template <class F>
constexpr bool is_nan(typename F::Bits a) {
    return (a & ~F::kSign) > F::kInf;
}
template <class F>
constexpr bool is_signaling(typename F::Bits a) {
    return is_nan<F>(a) && (a & F::kQuiet) == 0;
}

// a + b
template <class F>
typename F::Bits add(typename F::Bits a, typename F::Bits b, Mode mode, std::uint8_t& flags);
template <class F>
typename F::Bits mul(typename F::Bits a, typename F::Bits b, Mode mode, std::uint8_t& flags);
template <class F>
typename F::Bits div(typename F::Bits a, typename F::Bits b, Mode mode, std::uint8_t& flags);
template <class F>
typename F::Bits sqrt(typename F::Bits a, Mode mode, std::uint8_t& flags);
// a * b + c, rounded once
template <class F>
typename F::Bits fma(typename F::Bits a, typename F::Bits b, typename F::Bits c, Mode mode,
                     std::uint8_t& flags);

// minimumNumber and maximumNumber of IEEE 754-2019.
template <class F>
typename F::Bits min(typename F::Bits a, typename F::Bits b, std::uint8_t& flags);
template <class F>
typename F::Bits max(typename F::Bits a, typename F::Bits b, std::uint8_t& flags);

// The ten-bit mask of FCLASS.
template <class F>
std::uint64_t classify(typename F::Bits a);

template <class To, class From>
typename To::Bits convert(typename From::Bits a, Mode mode, std::uint8_t& flags);
template <class F>
typename F::Bits from_integer(std::uint64_t value, IntKind kind, Mode mode, std::uint8_t& flags);
// Saturates; a 32-bit result of either kind is sign-extended.
template <class F>
std::uint64_t to_integer(typename F::Bits a, IntKind kind, Mode mode, std::uint8_t& flags);
// The same for integers of 1 to 64 bits; the result's other bits are zero.
template <class F>
std::uint64_t to_integer(typename F::Bits a, unsigned bits, bool is_signed, Mode mode, std::uint8_t& flags);

// The estimates of 1/a and 1/sqrt(a) to 7 bits that the vector extension defines.
template <class F>
typename F::Bits reciprocal7(typename F::Bits a, Mode mode, std::uint8_t& flags);
template <class F>
typename F::Bits rsqrt7(typename F::Bits a, std::uint8_t& flags);

}  // namespace orrery::emu::soft
