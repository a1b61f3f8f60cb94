// IEEE 754 as RISC-V wants it, in integers of any length: slow, and sharing nothing with the interpreter. It
// is what the element kernels are compared with.
#pragma once

#include <gmpxx.h>

#include <cstdint>

namespace orrery::emu::reference {

struct Format {
    int bits, mantissa, bias;
};
inline constexpr Format kF16{16, 10, 15}, kBf16{16, 7, 127}, kF32{32, 23, 127}, kF64{64, 52, 1023};

enum Mode { kRne, kRtz, kRdn, kRup, kRmm, kRod };
inline constexpr std::uint8_t kNv = 16, kDz = 8, kOf = 4, kUf = 2, kNx = 1;

// A finite value is mantissa * 2^exponent.
struct Value {
    enum Kind { kQuietNan, kSignalingNan, kInfinite, kZero, kFinite } kind;
    bool negative;
    mpz_class mantissa;
    long exponent;

    bool is_nan() const { return kind == kQuietNan || kind == kSignalingNan; }
    Value operator-() const {
        Value result = *this;
        result.negative = !negative;
        return result;
    }
};
Value decode(Format format, std::uint64_t bits);

std::uint64_t canonical_nan(Format format);
std::uint64_t infinity(Format format, bool negative);
std::uint64_t zero(Format format, bool negative);

// Each rounds once, to `to`.
std::uint64_t add(Format to, const Value& a, const Value& b, Mode mode, std::uint8_t& flags);
std::uint64_t mul(Format to, const Value& a, const Value& b, Mode mode, std::uint8_t& flags);
std::uint64_t div(Format to, const Value& a, const Value& b, Mode mode, std::uint8_t& flags);
std::uint64_t sqrt(Format to, const Value& a, Mode mode, std::uint8_t& flags);
std::uint64_t fma(Format to, const Value& a, const Value& b, const Value& c, Mode mode, std::uint8_t& flags);
std::uint64_t convert(Format to, const Value& a, Mode mode, std::uint8_t& flags);
std::uint64_t from_integer(Format to, const mpz_class& value, Mode mode, std::uint8_t& flags);
// Two's complement of `bits` digits.
std::uint64_t to_integer(unsigned bits, bool is_signed, const Value& a, Mode mode, std::uint8_t& flags);

// -1, 0 or 1; no NaNs.
int compare(const Value& a, const Value& b);

}  // namespace orrery::emu::reference
