#include "tests/unit/riscv/model/fp.h"

#include <gmpxx.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace orrery::riscv::model {
namespace {

// (-1)^sign * m * 2^e, if it is neither infinite nor a NaN.
struct Number {
    bool sign = false, infinite = false, nan = false;
    mpz_class m;
    long e = 0;
    bool zero() const { return !nan && !infinite && m == 0; }
};

mpz_class integer(u64 value) {
    mpz_class result;
    mpz_import(result.get_mpz_t(), 1, 1, sizeof value, 0, 0, &value);
    return result;
}
u64 low_bits(const mpz_class& value) {  // of a value that fits
    u64 result = 0;
    mpz_export(&result, nullptr, 1, sizeof result, 0, 0, value.get_mpz_t());
    return result;
}
long length(const mpz_class& value) {
    return static_cast<long>(mpz_sizeinbase(value.get_mpz_t(), 2));
}
mpz_class power(long exponent) {
    return mpz_class(1) << static_cast<unsigned long>(exponent);
}

Number unpack(Format format, u64 bits) {
    Number n;
    n.sign = (bits & format.sign()) != 0;
    const u64 exponent = bits >> format.fraction & ((u64{1} << format.exponent) - 1);
    const u64 fraction = bits & ((u64{1} << format.fraction) - 1);
    if (exponent == (u64{1} << format.exponent) - 1) {
        n.nan = fraction != 0;
        n.infinite = fraction == 0;
        return n;
    }
    n.m = integer(exponent == 0 ? fraction : fraction | u64{1} << format.fraction);
    n.e = std::max<long>(static_cast<long>(exponent), 1) - format.bias() - static_cast<long>(format.fraction);
    return n;
}

// m * 2^e (and a little more, if `more`) as a multiple of 2^lsb.
mpz_class round_at(long lsb, bool sign, const mpz_class& m, long e, bool more, Rounding rounding,
                   bool& inexact) {
    mpz_class q, twice_rest, unit;  // the rest in half units of q
    if (lsb <= e) {
        q = m << static_cast<unsigned long>(e - lsb);
        unit = 1;
    } else {
        unit = power(lsb - e);
        q = m / unit;
        twice_rest = 2 * (m - q * unit);
    }
    inexact = twice_rest != 0 || more;
    const bool odd = mpz_odd_p(q.get_mpz_t()) != 0;
    const bool beyond_half = twice_rest > unit || (twice_rest == unit && more);
    bool up = false;
    switch (rounding) {
        case kNearestEven:
            up = beyond_half || (twice_rest == unit && odd);
            break;
        case kNearestAway:
            up = twice_rest >= unit;
            break;
        case kToZero:
            break;
        case kDown:
            up = inexact && sign;
            break;
        case kUp:
            up = inexact && !sign;
            break;
        case kToOdd:
            up = inexact && !odd;
            break;
    }
    if (up) q += 1;
    return q;
}

u64 infinity_or_greatest(Format format, bool sign, Rounding rounding) {
    const bool infinite = rounding == kNearestEven || rounding == kNearestAway ||
                          (rounding == kDown && sign) || (rounding == kUp && !sign);
    return (sign ? format.sign() : 0) | (format.infinity() - (infinite ? 0 : 1));
}

// The value of m * 2^e, m not 0, in the format.
u64 round(const Fp& fp, bool sign, const mpz_class& m, long e, bool more = false) {
    const Format& format = fp.format;
    const long fraction = format.fraction, least = 1 - format.bias(), top = e + length(m) - 1;
    const long lsb = std::max(top, least) - fraction;
    bool inexact = false;
    const mpz_class q = round_at(lsb, sign, m, e, more, fp.rounding, inexact);
    if (inexact) fp.flags |= kInexact;
    if (inexact && top < least) {
        // Tiny, unless the same precision with any exponent would round it up to the least normal number.
        bool unused = false;
        const long free_lsb = top - fraction;
        const mpz_class free = round_at(free_lsb, sign, m, e, more, fp.rounding, unused);
        if (free < power(least - free_lsb)) fp.flags |= kUnderflow;
    }
    const u64 sign_bit = sign ? format.sign() : 0;
    if (q < power(fraction)) return sign_bit | low_bits(q);  // subnormal, or 0
    const bool carried = q == power(fraction + 1);
    const long exponent = lsb + fraction + (carried ? 1 : 0);
    if (exponent > format.bias()) {
        fp.flags |= kOverflow | kInexact;
        return infinity_or_greatest(format, sign, fp.rounding);
    }
    const u64 significand = carried ? 0 : low_bits(q) & ((u64{1} << fraction) - 1);
    return sign_bit | static_cast<u64>(exponent + format.bias()) << fraction | significand;
}

u64 signed_zero(const Format& format, bool sign) {
    return sign ? format.sign() : 0;
}
u64 signed_infinity(const Format& format, bool sign) {
    return signed_zero(format, sign) | format.infinity();
}

// The exact sum of two finite numbers.
u64 round_sum(const Fp& fp, const Number& a, const Number& b) {
    const long e = std::min(a.e, b.e);
    const mpz_class left = a.m << static_cast<unsigned long>(a.e - e),
                    right = b.m << static_cast<unsigned long>(b.e - e);
    const mpz_class sum = (a.sign ? mpz_class(-left) : left) + (b.sign ? mpz_class(-right) : right);
    if (sum == 0) return signed_zero(fp.format, a.sign == b.sign ? a.sign : fp.rounding == kDown);
    return round(fp, sum < 0, abs(sum), e);
}

u64 invalid(const Fp& fp) {
    fp.flags |= kInvalid;
    return fp.format.nan();
}

// Is an operand a NaN? Then the result is one.
template <class... Bits>
bool any_nan(const Fp& fp, Bits... bits) {
    if ((fp.format.is_signaling(bits) || ...)) fp.flags |= kInvalid;
    return (fp.format.is_nan(bits) || ...);
}

}  // namespace

Format format_of(unsigned bits) {
    switch (bits) {
        case 16:
            return kF16;
        case 32:
            return kF32;
        case 64:
            return kF64;
        default:
            throw std::logic_error("no floating-point format of that width");
    }
}

u64 Fp::add(u64 a, u64 b) const {
    if (any_nan(*this, a, b)) return format.nan();
    const Number left = unpack(format, a), right = unpack(format, b);
    if (left.infinite && right.infinite && left.sign != right.sign) return invalid(*this);
    if (left.infinite) return a;
    if (right.infinite) return b;
    return round_sum(*this, left, right);
}

u64 Fp::mul(u64 a, u64 b) const {
    if (any_nan(*this, a, b)) return format.nan();
    const Number left = unpack(format, a), right = unpack(format, b);
    const bool sign = left.sign != right.sign;
    if ((left.infinite && right.zero()) || (left.zero() && right.infinite)) return invalid(*this);
    if (left.infinite || right.infinite) return signed_infinity(format, sign);
    if (left.zero() || right.zero()) return signed_zero(format, sign);
    return round(*this, sign, left.m * right.m, left.e + right.e);
}

u64 Fp::fma(u64 a, u64 b, u64 c) const {
    const Number left = unpack(format, a), right = unpack(format, b), addend = unpack(format, c);
    const bool invalid_product = (left.infinite && right.zero()) || (left.zero() && right.infinite);
    if (invalid_product) flags |= kInvalid;  // even if the addend is a NaN
    if (any_nan(*this, a, b, c) || invalid_product) return format.nan();
    Number product;
    product.sign = left.sign != right.sign;
    product.infinite = left.infinite || right.infinite;
    if (product.infinite) {
        if (addend.infinite && addend.sign != product.sign) return invalid(*this);
        return signed_infinity(format, product.sign);
    }
    if (addend.infinite) return c;
    product.m = left.m * right.m;
    product.e = left.e + right.e;
    return round_sum(*this, product, addend);
}

u64 Fp::div(u64 a, u64 b) const {
    if (any_nan(*this, a, b)) return format.nan();
    const Number left = unpack(format, a), right = unpack(format, b);
    const bool sign = left.sign != right.sign;
    if ((left.infinite && right.infinite) || (left.zero() && right.zero())) return invalid(*this);
    if (left.infinite) return signed_infinity(format, sign);
    if (right.infinite || left.zero()) return signed_zero(format, sign);
    if (right.zero()) {
        flags |= kDivideByZero;
        return signed_infinity(format, sign);
    }
    // So many more bits that the quotient has more than the format keeps.
    const long shift = std::max<long>(0, length(right.m) - length(left.m)) + format.fraction + 4;
    const mpz_class dividend = left.m << static_cast<unsigned long>(shift);
    return round(*this, sign, dividend / right.m, left.e - right.e - shift, dividend % right.m != 0);
}

u64 Fp::sqrt(u64 a) const {
    if (any_nan(*this, a)) return format.nan();
    const Number n = unpack(format, a);
    if (n.zero()) return a;
    if (n.sign) return invalid(*this);
    if (n.infinite) return a;
    long shift = 2 * static_cast<long>(format.fraction) + 8;
    if ((n.e - shift) % 2 != 0) ++shift;
    const mpz_class radicand = n.m << static_cast<unsigned long>(shift);
    mpz_class root, rest;
    mpz_sqrtrem(root.get_mpz_t(), rest.get_mpz_t(), radicand.get_mpz_t());
    return round(*this, false, root, (n.e - shift) / 2, rest != 0);
}

u64 Fp::extreme(u64 a, u64 b, bool least) const {
    if (format.is_signaling(a) || format.is_signaling(b)) flags |= kInvalid;
    if (format.is_nan(a)) return format.is_nan(b) ? format.nan() : b;
    if (format.is_nan(b)) return a;
    // Sign and magnitude order all numbers, and -0 below +0.
    const auto key = [this](u64 bits) {
        const auto magnitude = static_cast<std::int64_t>(bits & ~format.sign());
        return (bits & format.sign()) != 0 ? -magnitude - 1 : magnitude;
    };
    return (key(a) < key(b)) == least ? a : b;
}

namespace {

int order(const Fp& fp, u64 a, u64 b) {  // of numbers that are no NaNs
    const auto key = [&fp](u64 bits) {
        const auto magnitude = static_cast<std::int64_t>(bits & ~fp.format.sign());
        return (bits & fp.format.sign()) != 0 ? -magnitude : magnitude;
    };
    return key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
}

}  // namespace

bool Fp::eq(u64 a, u64 b) const {
    return !any_nan(*this, a, b) && order(*this, a, b) == 0;
}
bool Fp::lt(u64 a, u64 b) const {
    if (format.is_nan(a) || format.is_nan(b)) flags |= kInvalid;
    return !any_nan(*this, a, b) && order(*this, a, b) < 0;
}
bool Fp::le(u64 a, u64 b) const {
    if (format.is_nan(a) || format.is_nan(b)) flags |= kInvalid;
    return !any_nan(*this, a, b) && order(*this, a, b) <= 0;
}

u64 Fp::classify(u64 a) const {
    if (format.is_nan(a)) return format.is_signaling(a) ? 1u << 8 : 1u << 9;
    const bool negative = (a & format.sign()) != 0;
    const u64 magnitude = a & ~format.sign();
    if (magnitude == format.infinity()) return negative ? 1u << 0 : 1u << 7;
    if (magnitude == 0) return negative ? 1u << 3 : 1u << 4;
    if (magnitude < u64{1} << format.fraction) return negative ? 1u << 2 : 1u << 5;
    return negative ? 1u << 1 : 1u << 6;
}

namespace {

struct Normalized {
    long exponent;  // biased; less than 1 for subnormals
    u64 fraction;
};

Normalized normalize(const Format& format, u64 bits) {  // not 0, finite
    long exponent = static_cast<long>((bits & ~format.sign()) >> format.fraction);
    u64 fraction = bits & ((u64{1} << format.fraction) - 1);
    if (exponent == 0) {
        exponent = 1;
        while ((fraction >> format.fraction) == 0) {
            fraction <<= 1;
            --exponent;
        }
        fraction &= (u64{1} << format.fraction) - 1;
    }
    return {exponent, fraction};
}

}  // namespace

// The estimates: the specification's tables of 7-bit significands are those of the exact function in the
// middle of each interval, which saves copying them.
u64 Fp::rec7(u64 a) const {
    if (any_nan(*this, a)) return format.nan();
    const bool negative = (a & format.sign()) != 0;
    const u64 magnitude = a & ~format.sign();
    if (magnitude == format.infinity()) return signed_zero(format, negative);
    if (magnitude == 0) {
        flags |= kDivideByZero;
        return signed_infinity(format, negative);
    }
    const Normalized n = normalize(format, a);
    if (n.exponent < -1) {  // the reciprocal is too great
        flags |= kOverflow | kInexact;
        return infinity_or_greatest(format, negative, rounding);
    }
    const double middle = 1 + (static_cast<double>(n.fraction >> (format.fraction - 7)) + 0.5) / 128;
    u64 fraction = static_cast<u64>(std::lround((2 / middle - 1) * 128)) << (format.fraction - 7);
    long exponent = 2 * format.bias() - 1 - n.exponent;
    if (exponent <= 0) {  // 0 or -1: a subnormal result
        fraction = (fraction | u64{1} << format.fraction) >> (1 - exponent);
        exponent = 0;
    }
    return signed_zero(format, negative) | static_cast<u64>(exponent) << format.fraction | fraction;
}

u64 Fp::rsqrt7(u64 a) const {
    if (any_nan(*this, a)) return format.nan();
    const bool negative = (a & format.sign()) != 0;
    const u64 magnitude = a & ~format.sign();
    if (magnitude == 0) {
        flags |= kDivideByZero;
        return signed_infinity(format, negative);
    }
    if (negative) return invalid(*this);
    if (magnitude == format.infinity()) return 0;
    const Normalized n = normalize(format, a);
    const bool odd = ((n.exponent - format.bias()) & 1) != 0;  // the argument is then in [2, 4)
    const double middle =
        (1 + (static_cast<double>(n.fraction >> (format.fraction - 6)) + 0.5) / 64) * (odd ? 2 : 1);
    const u64 fraction = static_cast<u64>(std::lround((2 / std::sqrt(middle) - 1) * 128))
                         << (format.fraction - 7);
    const long exponent = (3 * format.bias() - 1 - n.exponent) >> 1;
    return static_cast<u64>(exponent) << format.fraction | fraction;
}

u64 Fp::from(Format source, u64 a) const {
    if (source.is_nan(a)) {
        if (source.is_signaling(a)) flags |= kInvalid;
        return format.nan();
    }
    const Number n = unpack(source, a);
    if (n.infinite) return signed_infinity(format, n.sign);
    if (n.zero()) return signed_zero(format, n.sign);
    return round(*this, n.sign, n.m, n.e);
}

u64 Fp::from_integer(u64 a, unsigned bits, bool is_signed) const {
    if (bits < 64) a &= (u64{1} << bits) - 1;
    const bool negative = is_signed && (a >> (bits - 1)) != 0;
    const mpz_class magnitude = negative ? mpz_class(power(bits) - integer(a)) : integer(a);
    if (magnitude == 0) return 0;
    return round(*this, negative, magnitude, 0);
}

u64 Fp::to_integer(u64 a, unsigned bits, bool is_signed) const {
    const mpz_class least = is_signed ? mpz_class(-power(bits - 1)) : mpz_class(0);
    const mpz_class greatest = is_signed ? mpz_class(power(bits - 1) - 1) : mpz_class(power(bits) - 1);
    const auto pack = [bits](const mpz_class& value) {
        return low_bits(value < 0 ? mpz_class(value + power(bits)) : value);
    };
    const Number n = unpack(format, a);
    if (n.nan || n.infinite) {
        flags |= kInvalid;
        return pack(n.infinite && n.sign ? least : greatest);
    }
    bool inexact = false;
    mpz_class value = round_at(0, n.sign, n.m, n.e, false, rounding, inexact);
    if (n.sign) value = -value;
    if (value < least || value > greatest) {
        flags |= kInvalid;
        return pack(value < least ? least : greatest);
    }
    if (inexact) flags |= kInexact;
    return pack(value);
}

}  // namespace orrery::riscv::model
