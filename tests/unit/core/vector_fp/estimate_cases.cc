// vfrec7 and vfrsqrt7 as the specification has them: by its two tables.
#include "tests/unit/core/vector_fp/cases.h"

namespace orrery::emu::test {
namespace {

using reference::decode;
using reference::Format;
using reference::Value;

constexpr std::uint8_t kReciprocal[128] = {
    127, 125, 123, 121, 119, 117, 116, 114, 112, 110, 109, 107, 105, 104, 102, 100, 99, 97, 96, 94, 93, 91,
    90,  88,  87,  85,  84,  83,  81,  80,  79,  77,  76,  75,  74,  72,  71,  70,  69, 68, 66, 65, 64, 63,
    62,  61,  60,  59,  58,  57,  56,  55,  54,  53,  52,  51,  50,  49,  48,  47,  46, 45, 44, 43, 42, 41,
    40,  40,  39,  38,  37,  36,  35,  35,  34,  33,  32,  31,  31,  30,  29,  28,  28, 27, 26, 25, 25, 24,
    23,  23,  22,  21,  21,  20,  19,  19,  18,  17,  17,  16,  15,  15,  14,  14,  13, 12, 12, 11, 11, 10,
    9,   9,   8,   8,   7,   7,   6,   5,   5,   4,   4,   3,   3,   2,   2,   1,   1,  0};
// First for even exponents as they are encoded, then for odd ones.
constexpr std::uint8_t kRoot[128] = {
    52,  51,  50,  48,  47,  46,  44,  43,  42,  41,  40,  39,  38,  36,  35,  34, 33, 32, 31, 30, 30,  29,
    28,  27,  26,  25,  24,  23,  23,  22,  21,  20,  19,  19,  18,  17,  16,  16, 15, 14, 14, 13, 12,  12,
    11,  10,  10,  9,   9,   8,   7,   7,   6,   6,   5,   4,   4,   3,   3,   2,  2,  1,  1,  0,  127, 125,
    123, 121, 119, 118, 116, 114, 113, 111, 109, 108, 106, 105, 103, 102, 100, 99, 97, 96, 95, 93, 92,  91,
    90,  88,  87,  86,  85,  84,  83,  82,  80,  79,  78,  77,  76,  75,  74,  73, 72, 71, 70, 70, 69,  68,
    67,  66,  65,  64,  63,  63,  62,  61,  60,  59,  59,  58,  57,  56,  56,  55, 54, 53};

// The operand's exponent as it is encoded, of a subnormal as if there were encodings below 0, and the digits
// below its leading one.
struct Normalized {
    long exponent;
    std::uint64_t fraction;
};
Normalized normalize(Format f, std::uint64_t bits) {
    const std::uint64_t hidden = 1ull << f.mantissa;
    Normalized n{static_cast<long>((bits & reference::infinity(f, false)) >> f.mantissa),
                 bits & (hidden - 1)};
    if (n.exponent != 0) return n;
    n.exponent = 1;
    while ((n.fraction & hidden) == 0) {
        n.fraction *= 2;
        --n.exponent;
    }
    n.fraction -= hidden;
    return n;
}

std::uint64_t reciprocal(Format f, Element& e) {
    const Value a = decode(f, e.a);
    if (a.kind == Value::kSignalingNan) e.flags |= reference::kNv;
    if (a.is_nan()) return reference::canonical_nan(f);
    if (a.kind == Value::kInfinite) return reference::zero(f, a.negative);
    if (a.kind == Value::kZero) {
        e.flags |= reference::kDz;
        return reference::infinity(f, a.negative);
    }
    const Normalized n = normalize(f, e.a);
    if (n.exponent < -1) {
        e.flags |= reference::kOf | reference::kNx;
        const bool finite =
            e.frm == reference::kRtz || e.frm == (a.negative ? reference::kRup : reference::kRdn);
        return reference::infinity(f, a.negative) - (finite ? 1 : 0);
    }
    std::uint64_t fraction = std::uint64_t{kReciprocal[n.fraction >> (f.mantissa - 7)]} << (f.mantissa - 7);
    long exponent = 2 * f.bias - 1 - n.exponent;
    if (exponent <= 0) {
        fraction = ((1ull << f.mantissa) + fraction) >> (exponent == 0 ? 1 : 2);
        exponent = 0;
    }
    return reference::zero(f, a.negative) + (static_cast<std::uint64_t>(exponent) << f.mantissa) + fraction;
}

std::uint64_t root(Format f, Element& e) {
    const Value a = decode(f, e.a);
    if (a.kind == Value::kZero) {
        e.flags |= reference::kDz;
        return reference::infinity(f, a.negative);
    }
    if (a.kind != Value::kQuietNan && (a.kind == Value::kSignalingNan || a.negative))
        e.flags |= reference::kNv;
    if (a.is_nan() || a.negative) return reference::canonical_nan(f);
    if (a.kind == Value::kInfinite) return 0;
    const Normalized n = normalize(f, e.a);
    const std::uint64_t index =
        ((static_cast<std::uint64_t>(n.exponent) & 1) << 6) | n.fraction >> (f.mantissa - 6);
    const long exponent = (3 * f.bias - 1 - n.exponent) / 2;
    return (static_cast<std::uint64_t>(exponent) << f.mantissa) +
           (std::uint64_t{kRoot[index]} << (f.mantissa - 7));
}

}  // namespace

std::vector<Case> estimate_cases(Format f) {
    const Operand v = floating(f);
    const unsigned sew = v.bits == 16 ? 4 : v.bits == 32 ? 5 : 6;
    return {{VectorOp::kVfrec7V, sew, v, v, {}, false, [=](Element& e) { return reciprocal(f, e); }},
            {VectorOp::kVfrsqrt7V, sew, v, v, {}, false, [=](Element& e) { return root(f, e); }}};
}

}  // namespace orrery::emu::test
