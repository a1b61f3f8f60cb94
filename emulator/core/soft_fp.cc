#include "emulator/core/soft_fp.h"

#include <bit>

namespace orrery::emu::soft {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr std::uint8_t kNv = 16, kDz = 8, kOf = 4, kUf = 2, kNx = 1;

template <class F>
bool is_inf(typename F::Bits a) {
    return (a & ~F::kSign) == F::kInf;
}
template <class F>
bool is_zero(typename F::Bits a) {
    return (a & ~F::kSign) == 0;
}
template <class F>
typename F::Bits with_sign(typename F::Bits magnitude, bool negative) {
    return static_cast<typename F::Bits>(negative ? magnitude | F::kSign : magnitude);
}
template <class F>
typename F::Bits invalid(std::uint8_t& flags) {
    flags |= kNv;
    return F::kNan;
}
// The result of an operation of which some operand is a NaN.
template <class F, class... Operands>
typename F::Bits nan_result(std::uint8_t& flags, Operands... operands) {
    if ((is_signaling<F>(operands) || ...)) flags |= kNv;
    return F::kNan;
}

// A finite number that is not zero: mantissa * 2^exponent, the mantissa's top bit set.
struct Number {
    bool negative;
    int exponent;
    std::uint64_t mantissa;
};
template <class F>
Number unpack(typename F::Bits a) {
    constexpr typename F::Bits kHidden = typename F::Bits{1} << F::kMantissa;
    const bool negative = (a & F::kSign) != 0;
    const auto field = static_cast<int>((a & ~F::kSign) >> F::kMantissa);
    std::uint64_t mantissa = a & (kHidden - 1);
    if (field != 0) mantissa |= kHidden;
    const int exponent = (field == 0 ? 1 : field) - F::kBias - F::kMantissa;
    const int shift = std::countl_zero(mantissa);
    return {negative, exponent - shift, mantissa << shift};
}

int top_bit(Uint128 value) {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    return high != 0 ? 127 - std::countl_zero(high)
                     : 63 - std::countl_zero(static_cast<std::uint64_t>(value));
}

// Shifts right; bits that fall out leave a 1 in the lowest, so that rounding still knows of them.
Uint128 shift_right_sticky(Uint128 value, int shift) {
    if (shift == 0) return value;
    if (shift > 127) return value != 0 ? 1 : 0;
    return value >> shift | ((value & ((Uint128{1} << shift) - 1)) != 0 ? 1 : 0);
}

// value / 2^shift rounded to an integer. shift may be negative if the result fits.
struct Rounded {
    Uint128 value;
    bool inexact;
};
Rounded round(Uint128 value, int shift, bool negative, Mode mode) {
    if (shift <= 0) return {value << -shift, false};
    // Far below half: only the fact that it is not zero counts.
    if (shift > 126) {
        value = value != 0 ? 1 : 0;
        shift = 2;
    }
    const Uint128 kept = value >> shift;
    const Uint128 rest = value & ((Uint128{1} << shift) - 1);
    const Uint128 half = Uint128{1} << (shift - 1);
    bool up = false;
    switch (mode) {
        case kNearestEven:
            up = rest > half || (rest == half && (kept & 1) != 0);
            break;
        case kTowardZero:
            break;
        case kDown:
            up = negative && rest != 0;
            break;
        case kUp:
            up = !negative && rest != 0;
            break;
        case kNearestAway:
            up = rest >= half;
            break;
        case kOdd:
            up = rest != 0 && (kept & 1) == 0;
            break;
    }
    return {kept + (up ? 1 : 0), rest != 0};
}

// mantissa * 2^exponent in the format. The mantissa is not zero and below 2^127 (or its low bit is sticky).
template <class F>
typename F::Bits pack(bool negative, int exponent, Uint128 mantissa, Mode mode, std::uint8_t& flags) {
    using Bits = typename F::Bits;
    constexpr int kDigits = F::kMantissa + 1;
    constexpr int kMin = 1 - F::kBias;  // exponent of the smallest normal number
    const int leading = exponent + top_bit(mantissa);
    int unit = (leading < kMin ? kMin : leading) - F::kMantissa;
    Rounded result = round(mantissa, unit - exponent, negative, mode);
    if (result.value == Uint128{1} << kDigits) {
        result.value >>= 1;
        ++unit;
    }
    if (result.value >> F::kMantissa != 0 && unit + F::kMantissa > F::kBias) {
        flags |= kOf | kNx;
        const bool to_inf = mode == kNearestEven || mode == kNearestAway || mode == (negative ? kDown : kUp);
        return with_sign<F>(to_inf ? F::kInf : F::kInf - 1, negative);
    }
    if (result.inexact) {
        flags |= kNx;
        // Tiny: with the exponent unbounded the rounded result would still be below the smallest normal.
        if (leading < kMin) {
            const int free_unit = leading - F::kMantissa;
            const Rounded unbounded = round(mantissa, free_unit - exponent, negative, mode);
            if (leading < kMin - 1 || unbounded.value != Uint128{1} << kDigits) flags |= kUf;
        }
    }
    const auto kept = static_cast<Bits>(result.value);
    constexpr Bits kHidden = Bits{1} << F::kMantissa;
    if (kept < kHidden) return with_sign<F>(kept, negative);  // subnormal or zero
    const int field = unit + F::kMantissa + F::kBias;
    return with_sign<F>(static_cast<Bits>((static_cast<Bits>(field) << F::kMantissa) + (kept - kHidden)),
                        negative);
}

// (a * 2^a_exponent) + (b * 2^b_exponent), both mantissas below 2^126 and the larger's exponent's number
// dominant.
struct Term {
    bool negative;
    int exponent;
    Uint128 mantissa;
};
template <class F>
typename F::Bits sum(Term a, Term b, Mode mode, std::uint8_t& flags) {
    if (a.exponent < b.exponent) {
        const Term swap = a;
        a = b;
        b = swap;
    }
    b.mantissa = shift_right_sticky(b.mantissa, a.exponent - b.exponent);
    if (a.negative == b.negative)
        return pack<F>(a.negative, a.exponent, a.mantissa + b.mantissa, mode, flags);
    if (a.mantissa == b.mantissa) return with_sign<F>(0, mode == kDown);
    const bool a_wins = a.mantissa > b.mantissa;
    const Uint128 difference = a_wins ? a.mantissa - b.mantissa : b.mantissa - a.mantissa;
    return pack<F>(a_wins ? a.negative : b.negative, a.exponent, difference, mode, flags);
}

// 62 zero bits below: room for what alignment shifts down.
Term term(const Number& n) {
    return {n.negative, n.exponent - 62, Uint128{n.mantissa} << 62};
}

Term product(const Number& a, const Number& b) {
    // The low bits of both mantissas are zero, so that nothing is lost here.
    return {a.negative != b.negative, a.exponent + b.exponent + 2, Uint128{a.mantissa} * b.mantissa >> 2};
}

std::uint64_t square_root(Uint128 value) {
    std::uint64_t root = 0;
    for (int bit = 63; bit >= 0; --bit) {
        const std::uint64_t candidate = root | 1ull << bit;
        if (Uint128{candidate} * candidate <= value) root = candidate;
    }
    return root;
}

template <class F>
typename F::Bits min_or_max(typename F::Bits a, typename F::Bits b, bool want_min, std::uint8_t& flags) {
    if (is_signaling<F>(a) || is_signaling<F>(b)) flags |= kNv;
    if (is_nan<F>(a)) return is_nan<F>(b) ? F::kNan : b;
    if (is_nan<F>(b)) return a;
    const bool a_negative = (a & F::kSign) != 0;
    const bool b_negative = (b & F::kSign) != 0;
    // Of two negative numbers the one with larger bits is less; -0 is less than +0.
    const bool a_less = a_negative != b_negative ? a_negative : a_negative ? a > b : a < b;
    return a_less == want_min ? a : b;
}

}  // namespace

template <class F>
typename F::Bits add(typename F::Bits a, typename F::Bits b, Mode mode, std::uint8_t& flags) {
    if (is_nan<F>(a) || is_nan<F>(b)) return nan_result<F>(flags, a, b);
    if (is_inf<F>(a)) return is_inf<F>(b) && a != b ? invalid<F>(flags) : a;
    if (is_inf<F>(b)) return b;
    if (is_zero<F>(a) && is_zero<F>(b)) return a == b ? a : with_sign<F>(0, mode == kDown);
    if (is_zero<F>(a)) return b;
    if (is_zero<F>(b)) return a;
    return sum<F>(term(unpack<F>(a)), term(unpack<F>(b)), mode, flags);
}

template <class F>
typename F::Bits mul(typename F::Bits a, typename F::Bits b, Mode mode, std::uint8_t& flags) {
    if (is_nan<F>(a) || is_nan<F>(b)) return nan_result<F>(flags, a, b);
    const bool negative = ((a ^ b) & F::kSign) != 0;
    if (is_inf<F>(a) || is_inf<F>(b)) {
        return is_zero<F>(a) || is_zero<F>(b) ? invalid<F>(flags) : with_sign<F>(F::kInf, negative);
    }
    if (is_zero<F>(a) || is_zero<F>(b)) return with_sign<F>(0, negative);
    const Term p = product(unpack<F>(a), unpack<F>(b));
    return pack<F>(negative, p.exponent, p.mantissa, mode, flags);
}

template <class F>
typename F::Bits div(typename F::Bits a, typename F::Bits b, Mode mode, std::uint8_t& flags) {
    if (is_nan<F>(a) || is_nan<F>(b)) return nan_result<F>(flags, a, b);
    const bool negative = ((a ^ b) & F::kSign) != 0;
    if (is_inf<F>(a)) return is_inf<F>(b) ? invalid<F>(flags) : with_sign<F>(F::kInf, negative);
    if (is_inf<F>(b)) return with_sign<F>(0, negative);
    if (is_zero<F>(b)) {
        if (is_zero<F>(a)) return invalid<F>(flags);
        flags |= kDz;
        return with_sign<F>(F::kInf, negative);
    }
    if (is_zero<F>(a)) return with_sign<F>(0, negative);
    const Number x = unpack<F>(a);
    const Number y = unpack<F>(b);
    const Uint128 dividend = Uint128{x.mantissa} << 62;
    const Uint128 quotient = dividend / y.mantissa;
    const bool rest = quotient * y.mantissa != dividend;
    return pack<F>(negative, x.exponent - y.exponent - 62, quotient | (rest ? 1 : 0), mode, flags);
}

template <class F>
typename F::Bits sqrt(typename F::Bits a, Mode mode, std::uint8_t& flags) {
    if (is_nan<F>(a)) return nan_result<F>(flags, a);
    if (is_zero<F>(a)) return a;
    if ((a & F::kSign) != 0) return invalid<F>(flags);
    if (is_inf<F>(a)) return a;
    const Number n = unpack<F>(a);
    const int shift = (n.exponent & 1) != 0 ? 61 : 62;  // an even exponent halves exactly
    const Uint128 radicand = Uint128{n.mantissa} << shift;
    const std::uint64_t root = square_root(radicand);
    const bool rest = Uint128{root} * root != radicand;
    return pack<F>(false, (n.exponent - shift) / 2, root | (rest ? 1u : 0u), mode, flags);
}

template <class F>
typename F::Bits fma(typename F::Bits a, typename F::Bits b, typename F::Bits c, Mode mode,
                     std::uint8_t& flags) {
    const bool no_product = (is_inf<F>(a) && is_zero<F>(b)) || (is_zero<F>(a) && is_inf<F>(b));
    if (no_product) return invalid<F>(flags);  // also if c is a quiet NaN
    if (is_nan<F>(a) || is_nan<F>(b) || is_nan<F>(c)) return nan_result<F>(flags, a, b, c);
    const bool negative = ((a ^ b) & F::kSign) != 0;
    if (is_inf<F>(a) || is_inf<F>(b)) {
        const auto infinite = with_sign<F>(F::kInf, negative);
        return is_inf<F>(c) && c != infinite ? invalid<F>(flags) : infinite;
    }
    if (is_inf<F>(c)) return c;
    if (is_zero<F>(a) || is_zero<F>(b)) return add<F>(with_sign<F>(0, negative), c, mode, flags);
    const Term p = product(unpack<F>(a), unpack<F>(b));
    if (is_zero<F>(c)) return pack<F>(negative, p.exponent, p.mantissa, mode, flags);
    return sum<F>(p, term(unpack<F>(c)), mode, flags);
}

template <class F>
typename F::Bits min(typename F::Bits a, typename F::Bits b, std::uint8_t& flags) {
    return min_or_max<F>(a, b, true, flags);
}
template <class F>
typename F::Bits max(typename F::Bits a, typename F::Bits b, std::uint8_t& flags) {
    return min_or_max<F>(a, b, false, flags);
}

template <class F>
std::uint64_t classify(typename F::Bits a) {
    const bool negative = (a & F::kSign) != 0;
    const typename F::Bits magnitude = a & ~F::kSign;
    if (is_nan<F>(a)) return is_signaling<F>(a) ? 1u << 8 : 1u << 9;
    if (magnitude == F::kInf) return negative ? 1u << 0 : 1u << 7;
    if (magnitude == 0) return negative ? 1u << 3 : 1u << 4;
    if (magnitude >> F::kMantissa == 0) return negative ? 1u << 2 : 1u << 5;
    return negative ? 1u << 1 : 1u << 6;
}

template <class To, class From>
typename To::Bits convert(typename From::Bits a, Mode mode, std::uint8_t& flags) {
    if (is_nan<From>(a)) {
        nan_result<From>(flags, a);
        return To::kNan;
    }
    const bool negative = (a & From::kSign) != 0;
    if (is_inf<From>(a)) return with_sign<To>(To::kInf, negative);
    if (is_zero<From>(a)) return with_sign<To>(0, negative);
    const Number n = unpack<From>(a);
    return pack<To>(negative, n.exponent, n.mantissa, mode, flags);
}

template <class F>
typename F::Bits from_integer(std::uint64_t value, IntKind kind, Mode mode, std::uint8_t& flags) {
    if (kind == IntKind::kI32) {
        value = static_cast<std::uint64_t>(
            std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(value))});
    }
    if (kind == IntKind::kU32) value = static_cast<std::uint32_t>(value);
    const bool is_signed = kind == IntKind::kI32 || kind == IntKind::kI64;
    const bool negative = is_signed && value >> 63 != 0;
    if (negative) value = 0 - value;
    return value == 0 ? 0 : pack<F>(negative, 0, value, mode, flags);
}

template <class F>
std::uint64_t to_integer(typename F::Bits a, unsigned bits, bool is_signed, Mode mode, std::uint8_t& flags) {
    const std::uint64_t all = ~0ull >> (64 - bits);
    const std::uint64_t most = is_signed ? all >> 1 : all;       // largest result
    const std::uint64_t least = is_signed ? (all >> 1) + 1 : 0;  // magnitude of the smallest
    const bool negative = (a & F::kSign) != 0;
    const auto saturate = [&](bool low) {
        flags |= kNv;
        return low ? (0 - least) & all : most;
    };
    if (is_nan<F>(a)) return saturate(false);
    if (is_inf<F>(a)) return saturate(negative);
    if (is_zero<F>(a)) return 0;
    const Number n = unpack<F>(a);
    if (n.exponent > 1) return saturate(negative);  // 2^65 and more
    const Rounded magnitude = round(n.mantissa, -n.exponent, negative, mode);
    if (magnitude.value > (negative ? least : most)) return saturate(negative);
    if (magnitude.inexact) flags |= kNx;
    const auto value = static_cast<std::uint64_t>(magnitude.value);
    return (negative ? 0 - value : value) & all;
}

template <class F>
std::uint64_t to_integer(typename F::Bits a, IntKind kind, Mode mode, std::uint8_t& flags) {
    const bool is_signed = kind == IntKind::kI32 || kind == IntKind::kI64;
    const bool wide = kind == IntKind::kI64 || kind == IntKind::kU64;
    const std::uint64_t value = to_integer<F>(a, wide ? 64 : 32, is_signed, mode, flags);
    if (wide) return value;
    return static_cast<std::uint64_t>(
        std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(value))});
}

// The seven digits below the leading one of an estimate are those of the exact value for the middle of the
// interval that the operand's leading digits leave, rounded to nearest: the specification's tables in closed
// form.
template <class F>
typename F::Bits reciprocal7(typename F::Bits a, Mode mode, std::uint8_t& flags) {
    using Bits = typename F::Bits;
    if (is_nan<F>(a)) return nan_result<F>(flags, a);
    const bool negative = (a & F::kSign) != 0;
    if (is_inf<F>(a)) return with_sign<F>(0, negative);
    if (is_zero<F>(a)) {
        flags |= kDz;
        return with_sign<F>(F::kInf, negative);
    }
    const Number n = unpack<F>(a);
    const int exponent = n.exponent + 63;  // of the leading digit
    int field = 2 * F::kBias - 1 - (exponent + F::kBias);
    if (field > 2 * F::kBias) {
        flags |= kOf | kNx;
        const bool to_inf = mode == kNearestEven || mode == kNearestAway || mode == (negative ? kDown : kUp);
        return with_sign<F>(static_cast<Bits>(to_inf ? F::kInf : F::kInf - 1), negative);
    }
    const auto leading = static_cast<unsigned>(n.mantissa >> 56);  // 128 to 255
    const unsigned twice = 2 * leading + 1;                        // 256 times the interval's middle
    const unsigned digits = (2u * 65536 + twice) / (2 * twice) - 128;
    Bits mantissa = static_cast<Bits>(static_cast<Bits>(digits) << (F::kMantissa - 7));
    if (field <= 0) {
        const Bits hidden = Bits{1} << F::kMantissa;
        mantissa = static_cast<Bits>((mantissa | hidden) >> (1 - field));
        field = 0;
    }
    return with_sign<F>(static_cast<Bits>((static_cast<Bits>(field) << F::kMantissa) + mantissa), negative);
}

template <class F>
typename F::Bits rsqrt7(typename F::Bits a, std::uint8_t& flags) {
    using Bits = typename F::Bits;
    if (is_nan<F>(a)) return nan_result<F>(flags, a);
    const bool negative = (a & F::kSign) != 0;
    if (is_zero<F>(a)) {
        flags |= kDz;
        return with_sign<F>(F::kInf, negative);
    }
    if (negative) return invalid<F>(flags);
    if (is_inf<F>(a)) return 0;
    const Number n = unpack<F>(a);
    const int exponent = n.exponent + 63;
    const bool odd = (exponent & 1) != 0;
    const auto leading = static_cast<unsigned>(n.mantissa >> 57);  // 64 to 127
    // 128 times the interval's middle, between 1 and 4.
    const unsigned middle = (2 * leading + 1) << (odd ? 1 : 0);
    // digits = 256 / sqrt(middle / 128) rounded to nearest: the largest with (2 digits - 1)^2 middle <= 2^25.
    unsigned digits = 128;
    while ((2 * digits + 1) * (2 * digits + 1) * middle <= 1u << 25)
        ++digits;
    const int field = F::kBias - 1 - (exponent - (odd ? 1 : 0)) / 2;
    return static_cast<Bits>((static_cast<Bits>(field) << F::kMantissa) +
                             (static_cast<Bits>(digits - 128) << (F::kMantissa - 7)));
}

#define INSTANTIATE(F)                                                                  \
    template F::Bits add<F>(F::Bits, F::Bits, Mode, std::uint8_t&);                     \
    template F::Bits mul<F>(F::Bits, F::Bits, Mode, std::uint8_t&);                     \
    template F::Bits div<F>(F::Bits, F::Bits, Mode, std::uint8_t&);                     \
    template F::Bits sqrt<F>(F::Bits, Mode, std::uint8_t&);                             \
    template F::Bits fma<F>(F::Bits, F::Bits, F::Bits, Mode, std::uint8_t&);            \
    template F::Bits min<F>(F::Bits, F::Bits, std::uint8_t&);                           \
    template F::Bits max<F>(F::Bits, F::Bits, std::uint8_t&);                           \
    template std::uint64_t classify<F>(F::Bits);                                        \
    template F::Bits from_integer<F>(std::uint64_t, IntKind, Mode, std::uint8_t&);      \
    template std::uint64_t to_integer<F>(F::Bits, IntKind, Mode, std::uint8_t&);        \
    template std::uint64_t to_integer<F>(F::Bits, unsigned, bool, Mode, std::uint8_t&); \
    template F::Bits reciprocal7<F>(F::Bits, Mode, std::uint8_t&);                      \
    template F::Bits rsqrt7<F>(F::Bits, std::uint8_t&)
INSTANTIATE(F16);
INSTANTIATE(F32);
INSTANTIATE(F64);
#undef INSTANTIATE
template F16::Bits convert<F16, F32>(F32::Bits, Mode, std::uint8_t&);
template F32::Bits convert<F32, F16>(F16::Bits, Mode, std::uint8_t&);
template F16::Bits convert<F16, F64>(F64::Bits, Mode, std::uint8_t&);
template F64::Bits convert<F64, F16>(F16::Bits, Mode, std::uint8_t&);
template Bf16::Bits convert<Bf16, F32>(F32::Bits, Mode, std::uint8_t&);
template F32::Bits convert<F32, Bf16>(Bf16::Bits, Mode, std::uint8_t&);
template F32::Bits convert<F32, F64>(F64::Bits, Mode, std::uint8_t&);
template F64::Bits convert<F64, F32>(F32::Bits, Mode, std::uint8_t&);

}  // namespace orrery::emu::soft
