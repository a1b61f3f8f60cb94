// Fixed-point vector instructions: saturating, averaging, and with rounding by vxrm.
#include "emulator/core/vector/fixed.h"

#include "emulator/core/vector/lanes.h"

namespace orrery::emu::ORR_SIMD {
namespace {

// Twice the width of an element, for what must not overflow.
template <class T>
using Doubled = std::conditional_t<std::is_signed_v<T>, WideSigned<std::make_unsigned_t<T>>,
                                   Wide<std::make_unsigned_t<T>>>;

template <class T>
constexpr unsigned kBits = 8 * sizeof(T);
template <class T>
constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
constexpr T kMin = kSigned<T> ? static_cast<T>(T{1} << (kBits<T> - 1)) : T{0};
template <class T>
constexpr T kMax = static_cast<T>(~kMin<T>);

template <class T>
T load(const std::uint8_t* group, std::uint64_t index) {
    T value;
    __builtin_memcpy(&value, group + index * sizeof(T), sizeof(T));
    return value;
}
template <class T>
void store(std::uint8_t* group, std::uint64_t index, T value) {
    __builtin_memcpy(group + index * sizeof(T), &value, sizeof(T));
}

enum Rounding : std::uint8_t { kNearestUp, kNearestEven, kTruncate, kOdd };

// value / 2^shift, rounded. `shift` is less than V's width.
template <class V>
V round_off(V value, unsigned shift, std::uint8_t vxrm) {
    if (shift == 0) return value;
    const V kept = static_cast<V>(value >> shift);
    const bool half = (value >> (shift - 1) & 1) != 0;
    const bool below_half = (value & static_cast<V>((V{1} << (shift - 1)) - 1)) != 0;
    const bool odd = (kept & 1) != 0;
    bool up = false;
    if (vxrm == kNearestUp) up = half;
    if (vxrm == kNearestEven) up = half && (below_half || odd);
    if (vxrm == kOdd) up = !odd && (half || below_half);
    return static_cast<V>(kept + (up ? 1 : 0));
}

template <class T, class V>
T clip(V value, bool& saturated) {
    if (value > static_cast<V>(kMax<T>)) {
        saturated = true;
        return kMax<T>;
    }
    if (kSigned<T> && value < static_cast<V>(kMin<T>)) {
        saturated = true;
        return kMin<T>;
    }
    return static_cast<T>(value);
}

// a is vs2's element, b that of vs1 or the scalar.
struct AddSaturating {
    template <class T>
    static T compute(T a, T b, std::uint8_t, bool& saturated) {
        T sum;
        if (!__builtin_add_overflow(a, b, &sum)) return sum;
        saturated = true;
        return kSigned<T> && a < 0 ? kMin<T> : kMax<T>;
    }
};
struct SubSaturating {
    template <class T>
    static T compute(T a, T b, std::uint8_t, bool& saturated) {
        T difference;
        if (!__builtin_sub_overflow(a, b, &difference)) return difference;
        saturated = true;
        return !kSigned<T> || a < 0 ? kMin<T> : kMax<T>;
    }
};
struct AddAveraging {
    template <class T>
    static T compute(T a, T b, std::uint8_t vxrm, bool&) {
        return static_cast<T>(round_off<Doubled<T>>(static_cast<Doubled<T>>(Doubled<T>{a} + b), 1, vxrm));
    }
};
// The difference of unsigned elements may be negative: it is halved as a signed number then.
struct SubAveraging {
    template <class T>
    static T compute(T a, T b, std::uint8_t vxrm, bool&) {
        const Doubled<T> difference = static_cast<Doubled<T>>(Doubled<T>{a} - b);
        return static_cast<T>(round_off<Doubled<T>>(difference, 1, vxrm));
    }
};
struct MulFractional {
    template <class T>
    static T compute(T a, T b, std::uint8_t vxrm, bool& saturated) {
        const auto product = static_cast<Doubled<T>>(Doubled<T>{a} * b);
        return clip<T>(round_off<Doubled<T>>(product, kBits<T> - 1, vxrm), saturated);
    }
};
struct ShiftRounding {
    template <class T>
    static T compute(T a, T b, std::uint8_t vxrm, bool&) {
        return round_off<T>(a, static_cast<unsigned>(b) & (kBits<T> - 1), vxrm);
    }
};

// Without a branch on the mask where there is none, so that the compiler can use vectors.
template <class Function>
__attribute__((always_inline)) inline void each(VectorOperands& o, Function function) {
    if (o.mask == nullptr) {
        for (std::uint64_t i = o.start; i < o.vl; ++i)
            function(i);
    } else {
        for (std::uint64_t i = o.start; i < o.vl; ++i) {
            if ((o.mask[i / 8] >> (i % 8) & 1) != 0) function(i);
        }
    }
}

template <class T, class Op, bool kScalar>
void binary(VectorOperands& o) {
    const T scalar = static_cast<T>(o.scalar);
    const std::uint8_t vxrm = o.vxrm;
    std::uint8_t* const vd = o.vd;
    const std::uint8_t *const vs2 = o.vs2, *const vs1 = o.vs1;
    bool saturated = false;
    each(o, [&](std::uint64_t i) {
        store(vd, i,
              Op::template compute<T>(load<T>(vs2, i), kScalar ? scalar : load<T>(vs1, i), vxrm, saturated));
    });
    if (saturated) o.vxsat = 1;
}

template <class T, bool kScalar>
void narrow(VectorOperands& o) {
    constexpr unsigned kShiftMask = 2 * kBits<T> - 1;
    const std::uint8_t vxrm = o.vxrm;
    bool saturated = false;
    each(o, [&](std::uint64_t i) {
        const auto shift =
            static_cast<unsigned>(kScalar ? o.scalar : static_cast<std::uint64_t>(load<T>(o.vs1, i)));
        const Doubled<T> rounded =
            round_off<Doubled<T>>(load<Doubled<T>>(o.vs2, i), shift & kShiftMask, vxrm);
        store(o.vd, i, clip<T>(rounded, saturated));
    });
    if (saturated) o.vxsat = 1;
}

#define ORR_BINARY(name, T, Op)      \
    case VectorOp::kV##name##Vv:     \
        return binary<T, Op, false>; \
    case VectorOp::kV##name##Vx:     \
        return binary<T, Op, true>
#define ORR_BINARY_I(name, T, Op) \
    ORR_BINARY(name, T, Op);      \
    case VectorOp::kV##name##Vi:  \
        return binary<T, Op, true>

template <class I, class U>
VectorKernel same_width(VectorOp op) {
    switch (op) {
        ORR_BINARY_I(sadd, I, AddSaturating);
        ORR_BINARY_I(saddu, U, AddSaturating);
        ORR_BINARY(ssub, I, SubSaturating);
        ORR_BINARY(ssubu, U, SubSaturating);
        ORR_BINARY(aadd, I, AddAveraging);
        ORR_BINARY(aaddu, U, AddAveraging);
        ORR_BINARY(asub, I, SubAveraging);
        ORR_BINARY(asubu, U, SubAveraging);
        ORR_BINARY(smul, I, MulFractional);
        ORR_BINARY_I(ssra, I, ShiftRounding);
        ORR_BINARY_I(ssrl, U, ShiftRounding);
        default:
            return nullptr;
    }
}
#undef ORR_BINARY_I
#undef ORR_BINARY

template <class I, class U>
VectorKernel narrowing(VectorOp op) {
    switch (op) {
        case VectorOp::kVnclipWv:
            return narrow<I, false>;
        case VectorOp::kVnclipWx:
        case VectorOp::kVnclipWi:
            return narrow<I, true>;
        case VectorOp::kVnclipuWv:
            return narrow<U, false>;
        case VectorOp::kVnclipuWx:
        case VectorOp::kVnclipuWi:
            return narrow<U, true>;
        default:
            return same_width<I, U>(op);
    }
}

}  // namespace

VectorKernel fixed_kernel(VectorOp op, unsigned sew_log2) {
    switch (sew_log2) {
        case 3:
            return narrowing<std::int8_t, std::uint8_t>(op);
        case 4:
            return narrowing<std::int16_t, std::uint16_t>(op);
        case 5:
            return narrowing<std::int32_t, std::uint32_t>(op);
        case 6:
            return same_width<std::int64_t, std::uint64_t>(op);
        default:
            return nullptr;
    }
}

}  // namespace orrery::emu::ORR_SIMD
