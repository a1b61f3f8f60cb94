#include "tests/unit/core/vector_fp/reference.h"

namespace orrery::emu::reference {
namespace {

mpz_class power(unsigned long exponent) {
    mpz_class result;
    mpz_ui_pow_ui(result.get_mpz_t(), 2, exponent);
    return result;
}
long length(const mpz_class& value) {
    return static_cast<long>(mpz_sizeinbase(value.get_mpz_t(), 2));
}

// magnitude * 2^exponent as a multiple of 2^unit; `more`: the true magnitude lies above, by less than one.
mpz_class multiple(const mpz_class& magnitude, long exponent, bool more, long unit, bool negative, Mode mode,
                   bool& inexact) {
    if (exponent >= unit && !more) {
        inexact = false;
        return magnitude * power(static_cast<unsigned long>(exponent - unit));
    }
    // In units of 2^low, with a digit to spare below what is known, for `more`.
    const long low = (exponent < unit ? exponent : unit) - 1;
    mpz_class fine = magnitude * power(static_cast<unsigned long>(exponent - low));
    if (more) fine += 1;
    const mpz_class one = power(static_cast<unsigned long>(unit - low));
    mpz_class quotient = fine / one;
    const mpz_class rest = fine % one;
    inexact = rest != 0;
    const int half = cmp(rest * 2, one);
    const bool odd = mpz_odd_p(quotient.get_mpz_t()) != 0;
    bool away = false;
    if (mode == kRne) away = half > 0 || (half == 0 && odd);
    if (mode == kRmm) away = half >= 0;
    if (mode == kRdn) away = inexact && negative;
    if (mode == kRup) away = inexact && !negative;
    if (mode == kRod) away = inexact && !odd;
    if (away) quotient += 1;
    return quotient;
}

std::uint64_t to_bits(const mpz_class& value) {
    std::uint64_t result = 0;
    std::size_t count = 0;
    mpz_export(&result, &count, -1, sizeof(result), 0, 0, value.get_mpz_t());
    return count == 0 ? 0 : result;
}

std::uint64_t round(Format to, bool negative, const mpz_class& magnitude, long exponent, bool more, Mode mode,
                    std::uint8_t& flags) {
    const long top = length(magnitude) - 1 + exponent;
    const long least = 1 - to.bias;  // exponent of the least normal number
    // As if the exponent had no bounds: decides tininess and overflow.
    bool inexact = false;
    mpz_class free = multiple(magnitude, exponent, more, top - to.mantissa, negative, mode, inexact);
    const long free_top = top + (length(free) > to.mantissa + 1 ? 1 : 0);
    if (free_top > to.bias) {
        flags |= kOf | kNx;
        const bool away =
            mode == kRne || mode == kRmm || (mode == kRdn && negative) || (mode == kRup && !negative);
        return infinity(to, negative) - (away ? 0 : 1);
    }
    const mpz_class kept = multiple(magnitude, exponent, more, (top < least ? least : top) - to.mantissa,
                                    negative, mode, inexact);
    if (inexact) flags |= kNx;
    if (inexact && free_top < least) flags |= kUf;
    // The encodings of one sign are in the order of their values, so that a carry finds its place by itself.
    const long binade = top < least ? 0 : top - least;
    return zero(to, negative) + (static_cast<std::uint64_t>(binade) << to.mantissa) + to_bits(kept);
}

std::uint64_t nan(Format to, std::uint8_t& flags, std::initializer_list<const Value*> operands) {
    for (const Value* operand : operands)
        if (operand->kind == Value::kSignalingNan) flags |= kNv;
    return canonical_nan(to);
}
std::uint64_t invalid(Format to, std::uint8_t& flags) {
    flags |= kNv;
    return canonical_nan(to);
}

mpz_class signed_at(const Value& a, long unit) {
    if (a.kind == Value::kZero) return 0;
    const mpz_class magnitude = a.mantissa * power(static_cast<unsigned long>(a.exponent - unit));
    return a.negative ? mpz_class(-magnitude) : magnitude;
}
// Of two values that are finite or zero.
mpz_class exact_sum(const Value& a, const Value& b, long& unit) {
    if (a.kind == Value::kZero) {
        unit = b.exponent;
    } else if (b.kind == Value::kZero) {
        unit = a.exponent;
    } else {
        unit = a.exponent < b.exponent ? a.exponent : b.exponent;
    }
    return signed_at(a, unit) + signed_at(b, unit);
}

}  // namespace

Value decode(Format format, std::uint64_t bits) {
    const std::uint64_t hidden = 1ull << format.mantissa;
    const std::uint64_t fraction = bits & (hidden - 1);
    const auto top = static_cast<long>(2 * format.bias + 1);
    const long field = static_cast<long>(bits >> format.mantissa) & top;
    const bool negative = (bits >> (format.bits - 1) & 1) != 0;
    if (field == top) {
        if (fraction == 0) return {Value::kInfinite, negative, 0, 0};
        return {fraction >= hidden / 2 ? Value::kQuietNan : Value::kSignalingNan, negative, 0, 0};
    }
    if (field == 0 && fraction == 0) return {Value::kZero, negative, 0, 0};
    const std::uint64_t mantissa = field == 0 ? fraction : fraction + hidden;
    const long exponent = (field == 0 ? 1 : field) - format.bias - format.mantissa;
    return {Value::kFinite, negative, mpz_class(mantissa), exponent};
}

std::uint64_t zero(Format format, bool negative) {
    return negative ? 1ull << (format.bits - 1) : 0;
}
std::uint64_t infinity(Format format, bool negative) {
    return zero(format, negative) + (static_cast<std::uint64_t>(2 * format.bias + 1) << format.mantissa);
}
std::uint64_t canonical_nan(Format format) {
    return infinity(format, false) + (1ull << (format.mantissa - 1));
}

std::uint64_t add(Format to, const Value& a, const Value& b, Mode mode, std::uint8_t& flags) {
    if (a.is_nan() || b.is_nan()) return nan(to, flags, {&a, &b});
    if (a.kind == Value::kInfinite || b.kind == Value::kInfinite) {
        if (a.kind == b.kind && a.negative != b.negative) return invalid(to, flags);
        return infinity(to, a.kind == Value::kInfinite ? a.negative : b.negative);
    }
    if (a.kind == Value::kZero && b.kind == Value::kZero && a.negative == b.negative)
        return zero(to, a.negative);
    long unit = 0;
    const mpz_class sum = exact_sum(a, b, unit);
    if (sum == 0) return zero(to, mode == kRdn);
    return round(to, sum < 0, abs(sum), unit, false, mode, flags);
}

std::uint64_t mul(Format to, const Value& a, const Value& b, Mode mode, std::uint8_t& flags) {
    if (a.is_nan() || b.is_nan()) return nan(to, flags, {&a, &b});
    const bool negative = a.negative != b.negative;
    if (a.kind == Value::kInfinite || b.kind == Value::kInfinite) {
        if (a.kind == Value::kZero || b.kind == Value::kZero) return invalid(to, flags);
        return infinity(to, negative);
    }
    if (a.kind == Value::kZero || b.kind == Value::kZero) return zero(to, negative);
    return round(to, negative, a.mantissa * b.mantissa, a.exponent + b.exponent, false, mode, flags);
}

std::uint64_t div(Format to, const Value& a, const Value& b, Mode mode, std::uint8_t& flags) {
    if (a.is_nan() || b.is_nan()) return nan(to, flags, {&a, &b});
    const bool negative = a.negative != b.negative;
    if (a.kind == Value::kInfinite && b.kind == Value::kInfinite) return invalid(to, flags);
    if (a.kind == Value::kZero && b.kind == Value::kZero) return invalid(to, flags);
    if (a.kind == Value::kInfinite) return infinity(to, negative);
    if (b.kind == Value::kInfinite || a.kind == Value::kZero) return zero(to, negative);
    if (b.kind == Value::kZero) {
        flags |= kDz;
        return infinity(to, negative);
    }
    const mpz_class dividend = a.mantissa * power(200);
    const mpz_class quotient = dividend / b.mantissa;
    return round(to, negative, quotient, a.exponent - b.exponent - 200, quotient * b.mantissa != dividend,
                 mode, flags);
}

std::uint64_t sqrt(Format to, const Value& a, Mode mode, std::uint8_t& flags) {
    if (a.is_nan()) return nan(to, flags, {&a});
    if (a.kind == Value::kZero) return zero(to, a.negative);
    if (a.negative) return invalid(to, flags);
    if (a.kind == Value::kInfinite) return infinity(to, false);
    const long shift = (a.exponent & 1) != 0 ? 201 : 200;
    const mpz_class radicand = a.mantissa * power(static_cast<unsigned long>(shift));
    mpz_class root;
    mpz_class rest;
    mpz_sqrtrem(root.get_mpz_t(), rest.get_mpz_t(), radicand.get_mpz_t());
    return round(to, false, root, (a.exponent - shift) / 2, rest != 0, mode, flags);
}

std::uint64_t fma(Format to, const Value& a, const Value& b, const Value& c, Mode mode, std::uint8_t& flags) {
    if ((a.kind == Value::kInfinite && b.kind == Value::kZero) ||
        (a.kind == Value::kZero && b.kind == Value::kInfinite))
        return invalid(to, flags);
    if (a.is_nan() || b.is_nan() || c.is_nan()) return nan(to, flags, {&a, &b, &c});
    Value product{Value::kFinite, a.negative != b.negative, a.mantissa * b.mantissa, a.exponent + b.exponent};
    if (a.kind == Value::kZero || b.kind == Value::kZero) product.kind = Value::kZero;
    if (a.kind == Value::kInfinite || b.kind == Value::kInfinite) product.kind = Value::kInfinite;
    return add(to, product, c, mode, flags);
}

std::uint64_t convert(Format to, const Value& a, Mode mode, std::uint8_t& flags) {
    if (a.is_nan()) return nan(to, flags, {&a});
    if (a.kind == Value::kInfinite) return infinity(to, a.negative);
    if (a.kind == Value::kZero) return zero(to, a.negative);
    return round(to, a.negative, a.mantissa, a.exponent, false, mode, flags);
}

std::uint64_t from_integer(Format to, const mpz_class& value, Mode mode, std::uint8_t& flags) {
    if (value == 0) return 0;
    return round(to, value < 0, abs(value), 0, false, mode, flags);
}

std::uint64_t to_integer(unsigned bits, bool is_signed, const Value& a, Mode mode, std::uint8_t& flags) {
    const mpz_class most = power(is_signed ? bits - 1 : bits) - 1;
    const mpz_class least = is_signed ? mpz_class(-power(bits - 1)) : mpz_class(0);
    bool inexact = false;
    mpz_class value = 0;
    if (a.is_nan()) {
        value = most + 1;
    } else if (a.kind == Value::kInfinite) {
        value = a.negative ? mpz_class(least - 1) : mpz_class(most + 1);
    } else if (a.kind == Value::kFinite) {
        value = multiple(a.mantissa, a.exponent, false, 0, a.negative, mode, inexact);
        if (a.negative) value = -value;
    }
    const bool fits = value >= least && value <= most;
    if (!fits) {
        flags |= kNv;
        value = value > most ? most : least;
    } else if (inexact) {
        flags |= kNx;
    }
    if (value < 0) value += power(bits);
    return to_bits(value);
}

int compare(const Value& a, const Value& b) {
    if (a.kind == Value::kInfinite || b.kind == Value::kInfinite) {
        const int x = a.kind == Value::kInfinite ? (a.negative ? -1 : 1) : 0;
        const int y = b.kind == Value::kInfinite ? (b.negative ? -1 : 1) : 0;
        return x < y ? -1 : x > y ? 1 : 0;
    }
    long unit = 0;
    const mpz_class difference = exact_sum(a, -b, unit);
    return sgn(difference);
}

}  // namespace orrery::emu::reference
