// IEEE 754 arithmetic of any small binary format, in exact integers: each operation makes the exact result
// and rounds it once. NaN results are canonical; tininess is detected after rounding.
#pragma once

#include "tests/unit/riscv/model/state.h"

namespace orrery::riscv::model {

struct Format {
    unsigned exponent, fraction;
    constexpr unsigned width() const { return 1 + exponent + fraction; }
    constexpr long bias() const { return (1l << (exponent - 1)) - 1; }
    constexpr u64 sign() const { return u64{1} << (exponent + fraction); }
    constexpr u64 infinity() const { return ((u64{1} << exponent) - 1) << fraction; }
    constexpr u64 nan() const { return infinity() | u64{1} << (fraction - 1); }
    bool is_nan(u64 bits) const { return (bits & ~sign()) > infinity(); }
    bool is_signaling(u64 bits) const { return is_nan(bits) && (bits >> (fraction - 1) & 1) == 0; }
};
inline constexpr Format kF16{5, 10}, kBf16{8, 7}, kF32{8, 23}, kF64{11, 52};
// The format of floating-point elements of that width, bfloat16 apart.
Format format_of(unsigned bits);

enum Rounding : u8 { kNearestEven, kToZero, kDown, kUp, kNearestAway, kToOdd };
enum Flag : u8 { kInexact = 1, kUnderflow = 2, kOverflow = 4, kDivideByZero = 8, kInvalid = 16 };

// What an operation needs beside its operands.
struct Fp {
    Format format;
    Rounding rounding;
    u8& flags;

    u64 add(u64 a, u64 b) const;
    u64 sub(u64 a, u64 b) const { return add(a, b ^ (format.is_nan(b) ? 0 : format.sign())); }
    u64 mul(u64 a, u64 b) const;
    u64 fma(u64 a, u64 b, u64 c) const;  // a * b + c
    u64 div(u64 a, u64 b) const;
    u64 sqrt(u64 a) const;
    u64 min(u64 a, u64 b) const { return extreme(a, b, true); }
    u64 max(u64 a, u64 b) const { return extreme(a, b, false); }
    bool eq(u64 a, u64 b) const;  // quiet
    bool lt(u64 a, u64 b) const;  // signaling, as le
    bool le(u64 a, u64 b) const;
    u64 classify(u64 a) const;  // the mask of FCLASS
    u64 rec7(u64 a) const;
    u64 rsqrt7(u64 a) const;

    u64 from(Format source, u64 a) const;  // conversion into this format
    u64 from_integer(u64 a, unsigned bits, bool is_signed) const;
    u64 to_integer(u64 a, unsigned bits, bool is_signed) const;

  private:
    u64 extreme(u64 a, u64 b, bool least) const;
};

}  // namespace orrery::riscv::model
