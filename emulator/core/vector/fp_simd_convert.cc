// Conversions. What is out of a result's range, and what a host has no instruction for, goes through
// integers.
#include "emulator/core/vector/fp_simd.h"

namespace orrery::emu::ORR_SIMD {

#if defined(__x86_64__)
namespace {

#if defined(__AVX512F__)
constexpr bool kHasWideIntegers = true;  // conversions of 64-bit integers
#else
constexpr bool kHasWideIntegers = false;
#endif

// The elements of a block that has one which is not for the host.
template <VectorOp kOp, unsigned kSewLog2>
__attribute__((noinline)) void by_integers(VectorOperands& o, const Block& block) {
    VectorOperands part = o;
    part.start = block.first;
    part.vl = block.first + block.count;
    part.fflags = 0;
    part.slow = 0;
    fp_exact_kernel(kOp, kSewLog2)(part);
    o.fflags |= part.fflags;
    o.slow += part.slow;
}

// --- between formats: C is the wider of both ---

template <class R, class F, class C>
struct Between {
    static constexpr unsigned kLanes = kVectorBytes / sizeof(C);
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        const auto a = input<typename F::Store, kLanes, kPartial>(o.vs2, block, F::kOne);
        if constexpr (sizeof(typename R::Store) == 4 && sizeof(C) == 8) {
            const auto result = __builtin_convertvector(bits_as<Vec<double, kLanes>>(a), Vec<float, kLanes>);
            const auto bits = bits_as<Vec<std::uint32_t, kLanes>>(result);
            const auto nan = splat<std::uint32_t, kLanes>(Single::kNan);
            output<std::uint32_t, kLanes, kPartial>(o.vd, block,
                                                    nan_lanes<Single, kLanes>(bits) ? nan : bits);
        } else {
            const auto number = canonical<C, kLanes>(widened<F, C, kLanes>(a));
            output<typename R::Store, kLanes, kPartial>(o.vd, block, narrowed<R, C, kLanes>(number));
        }
    }
};

struct BrainToSingle {
    static constexpr unsigned kLanes = kVectorBytes / 4;
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        const auto a = input<std::uint16_t, kLanes, kPartial>(o.vs2, block, Brain::kOne);
        const auto bits = __builtin_convertvector(a, Vec<std::uint32_t, kLanes>) << 16;
        if (any(signaling_lanes<Single, kLanes>(bits))) o.fflags |= kFlagNv;
        const auto nan = splat<std::uint32_t, kLanes>(Single::kNan);
        output<std::uint32_t, kLanes, kPartial>(o.vd, block, nan_lanes<Single, kLanes>(bits) ? nan : bits);
    }
};

// To nearest even, of zeros and of normal numbers that cannot overflow.
struct SingleToBrain {
    static constexpr unsigned kLanes = kVectorBytes / 4;
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        const auto bits = input<std::uint32_t, kLanes, kPartial>(o.vs2, block, Single::kOne);
        const auto exponent = bits & 0x7f800000u;
        const auto rare = (exponent >= 0x7f000000u) | ((exponent == 0) & ((bits << 1) != 0));
        if (__builtin_expect(any(rare), 0)) {
            by_integers<VectorOp::kVfncvtbf16FFW, 4>(o, block);
            return;
        }
        if (any(bits & 0xffffu)) o.fflags |= kFlagNx;
        const auto rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
        output<std::uint16_t, kLanes, kPartial>(o.vd, block,
                                                __builtin_convertvector(rounded, Vec<std::uint16_t, kLanes>));
    }
};
void single_to_brain(VectorOperands& o) {
    if (o.frm == soft::kNearestEven) {
        for_blocks<SingleToBrain>(o);
    } else {
        fp_exact_kernel(VectorOp::kVfncvtbf16FFW, 4)(o);
    }
}

// --- from integers ---

// C holds all values of I, or is the result's own format.
template <class R, class I, class C>
struct FromInteger {
    static constexpr unsigned kWide = sizeof(I) > sizeof(C) ? sizeof(I) : sizeof(C);
    static constexpr unsigned kLanes = kVectorBytes / kWide;
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        const auto a = input<I, kLanes, kPartial>(o.vs2, block, I{1});
        auto number = __builtin_convertvector(a, Vec<C, kLanes>);
        if constexpr (I(-1) > I(0) && sizeof(I) == 4) {
            // Hosts without an instruction for it subtract 2^52 from 2^52 + a, which is -0 when rounding
            // down; the optimiser thinks that it cannot be.
            keep(number);
            const auto bits = bits_as<Vec<std::uint64_t, kLanes>>(number);
            number = bits_as<Vec<C, kLanes>>(bits & (~0ull >> 1));
        }
        if constexpr (sizeof(C) == 8 && sizeof(typename R::Store) == 4) {
            const auto single = __builtin_convertvector(number, Vec<float, kLanes>);
            output<std::uint32_t, kLanes, kPartial>(o.vd, block, bits_as<Vec<std::uint32_t, kLanes>>(single));
        } else {
            output<typename R::Store, kLanes, kPartial>(o.vd, block, narrowed<R, C, kLanes>(number));
        }
    }
};

// --- to integers ---

// To 32 bits, or 64 from and to as many; rounding as the host is set, or towards zero.
template <bool kTruncate>
ORR_INLINE Vec<std::int32_t, 4> to_integers(Vec<float, 4> a) {
    return bits_as<Vec<std::int32_t, 4>>(kTruncate ? _mm_cvttps_epi32(a) : _mm_cvtps_epi32(a));
}
template <bool kTruncate>
ORR_INLINE Vec<std::int32_t, 2> to_integers(Vec<double, 2> a) {
    return bits_as<Vec<std::int32_t, 2>>(
        _mm_cvtsi128_si64(kTruncate ? _mm_cvttpd_epi32(a) : _mm_cvtpd_epi32(a)));
}
#if defined(__AVX2__)
template <bool kTruncate>
ORR_INLINE Vec<std::int32_t, 8> to_integers(Vec<float, 8> a) {
    return bits_as<Vec<std::int32_t, 8>>(kTruncate ? _mm256_cvttps_epi32(a) : _mm256_cvtps_epi32(a));
}
template <bool kTruncate>
ORR_INLINE Vec<std::int32_t, 4> to_integers(Vec<double, 4> a) {
    return bits_as<Vec<std::int32_t, 4>>(kTruncate ? _mm256_cvttpd_epi32(a) : _mm256_cvtpd_epi32(a));
}
#endif
#if defined(__AVX512F__)
template <bool kTruncate>
ORR_INLINE Vec<std::int32_t, 16> to_integers(Vec<float, 16> a) {
    return bits_as<Vec<std::int32_t, 16>>(kTruncate ? _mm512_cvttps_epi32(a) : _mm512_cvtps_epi32(a));
}
template <bool kTruncate>
ORR_INLINE Vec<std::int32_t, 8> to_integers(Vec<double, 8> a) {
    return bits_as<Vec<std::int32_t, 8>>(kTruncate ? _mm512_cvttpd_epi32(a) : _mm512_cvtpd_epi32(a));
}
template <bool kTruncate>
ORR_INLINE Vec<std::int64_t, 8> to_wide_integers(Vec<double, 8> a) {
    return bits_as<Vec<std::int64_t, 8>>(kTruncate ? _mm512_cvttpd_epi64(a) : _mm512_cvtpd_epi64(a));
}
#endif

// The bits of the greatest number of type C below 2^digits that is not above 2^digits - 1.
template <class C>
constexpr std::uint64_t below_power(unsigned digits) {
    constexpr unsigned kMantissa = sizeof(C) == 4 ? 23 : 52;
    constexpr std::uint64_t kBias = sizeof(C) == 4 ? 127 : 1023;
    const std::uint64_t power = (kBias + digits) << kMantissa;
    return digits > kMantissa ? power - 1 : power - (1ull << (kMantissa + 1 - digits));
}

template <VectorOp kOp, unsigned kSewLog2, class I, class F, class C, bool kTruncate>
struct ToInteger {
    static constexpr bool kIsSigned = I(-1) < I(0);
    static constexpr unsigned kBits = 8 * sizeof(I);
    // The host converts to signed integers: of unsigned ones the upper half is rare.
    static constexpr unsigned kDigits = kIsSigned || kBits >= 32 ? kBits - 1 : kBits;
    static constexpr unsigned kLanes = kVectorBytes / sizeof(C);
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        using U = typename IntegerOf<sizeof(C)>::Unsigned;
        constexpr auto kSign = static_cast<U>(U{1} << (8 * sizeof(C) - 1));
        constexpr auto kMost = static_cast<U>(below_power<C>(kDigits));
        const auto raw = input<typename F::Store, kLanes, kPartial>(o.vs2, block, F::kOne);
        // A signaling NaN would raise its flag here, as it will anyway.
        const auto a = widened<F, C, kLanes>(raw);
        const auto bits = bits_as<Vec<U, kLanes>>(a);
        const auto rare = (kIsSigned ? bits & static_cast<U>(~kSign) : bits) > kMost;
        if (__builtin_expect(any(rare), 0)) {
            by_integers<kOp, kSewLog2>(o, block);
            return;
        }
        if constexpr (sizeof(I) == 8) {
            const auto result = to_wide_integers<kTruncate>(a);
            output<I, kLanes, kPartial>(o.vd, block, bits_as<Vec<I, kLanes>>(result));
        } else {
            const auto result = to_integers<kTruncate>(a);
            output<I, kLanes, kPartial>(o.vd, block, __builtin_convertvector(result, Vec<I, kLanes>));
        }
    }
};

using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

#define ORR_CONVERT(name, ...) \
    case VectorOp::k##name:    \
        return in_mode<VectorOp::k##name, kSewLog2, __VA_ARGS__>
#define ORR_TO_INTEGER(name, I, F, C, truncate) \
    case VectorOp::k##name:                     \
        return in_mode<VectorOp::k##name, kSewLog2, ToInteger<VectorOp::k##name, kSewLog2, I, F, C, truncate>>

template <unsigned kSewLog2>
VectorKernel of_bytes(VectorOp op) {
    switch (op) {
        ORR_CONVERT(VfwcvtFXV, FromInteger<Half, int8_t, float>);
        ORR_CONVERT(VfwcvtFXuV, FromInteger<Half, uint8_t, float>);
        ORR_TO_INTEGER(VfncvtXFW, int8_t, Half, float, false);
        ORR_TO_INTEGER(VfncvtXuFW, uint8_t, Half, float, false);
        ORR_TO_INTEGER(VfncvtRtzXFW, int8_t, Half, float, true);
        ORR_TO_INTEGER(VfncvtRtzXuFW, uint8_t, Half, float, true);
        default:
            return nullptr;
    }
}

template <unsigned kSewLog2>
VectorKernel of_halves(VectorOp op) {
    switch (op) {
        ORR_CONVERT(VfcvtFXV, FromInteger<Half, int16_t, float>);
        ORR_CONVERT(VfcvtFXuV, FromInteger<Half, uint16_t, float>);
        ORR_CONVERT(VfncvtFXW, FromInteger<Half, int32_t, double>);
        ORR_CONVERT(VfwcvtFFV, Between<Single, Half, float>);
        ORR_CONVERT(VfncvtFFW, Between<Half, Single, float>);
        ORR_TO_INTEGER(VfcvtXFV, int16_t, Half, float, false);
        ORR_TO_INTEGER(VfcvtXuFV, uint16_t, Half, float, false);
        ORR_TO_INTEGER(VfcvtRtzXFV, int16_t, Half, float, true);
        ORR_TO_INTEGER(VfcvtRtzXuFV, uint16_t, Half, float, true);
        ORR_TO_INTEGER(VfwcvtXFV, int32_t, Half, float, false);
        ORR_TO_INTEGER(VfwcvtXuFV, uint32_t, Half, float, false);
        ORR_TO_INTEGER(VfwcvtRtzXFV, int32_t, Half, float, true);
        ORR_TO_INTEGER(VfwcvtRtzXuFV, uint32_t, Half, float, true);
        default:
            return nullptr;
    }
}

// SEW is 16, and halves have no part in it.
template <unsigned kSewLog2>
VectorKernel of_shorts(VectorOp op) {
    switch (op) {
        case VectorOp::kVfncvtbf16FFW:
            return single_to_brain;
        case VectorOp::kVfwcvtbf16FFV:
            return for_blocks<BrainToSingle>;
            ORR_CONVERT(VfwcvtFXV, FromInteger<Single, int16_t, float>);
            ORR_CONVERT(VfwcvtFXuV, FromInteger<Single, uint16_t, float>);
            ORR_TO_INTEGER(VfncvtXFW, int16_t, Single, float, false);
            ORR_TO_INTEGER(VfncvtXuFW, uint16_t, Single, float, false);
            ORR_TO_INTEGER(VfncvtRtzXFW, int16_t, Single, float, true);
            ORR_TO_INTEGER(VfncvtRtzXuFW, uint16_t, Single, float, true);
        default:
            return nullptr;
    }
}

template <unsigned kSewLog2>
VectorKernel of_words(VectorOp op) {
    switch (op) {
        ORR_CONVERT(VfcvtFXV, FromInteger<Single, int32_t, float>);
        ORR_CONVERT(VfcvtFXuV, FromInteger<Single, uint32_t, double>);
        ORR_CONVERT(VfwcvtFXV, FromInteger<Double, int32_t, double>);
        ORR_CONVERT(VfwcvtFXuV, FromInteger<Double, uint32_t, double>);
        ORR_CONVERT(VfwcvtFFV, Between<Double, Single, double>);
        ORR_CONVERT(VfncvtFFW, Between<Single, Double, double>);
        ORR_TO_INTEGER(VfcvtXFV, int32_t, Single, float, false);
        ORR_TO_INTEGER(VfcvtXuFV, uint32_t, Single, float, false);
        ORR_TO_INTEGER(VfcvtRtzXFV, int32_t, Single, float, true);
        ORR_TO_INTEGER(VfcvtRtzXuFV, uint32_t, Single, float, true);
        ORR_TO_INTEGER(VfncvtXFW, int32_t, Double, double, false);
        ORR_TO_INTEGER(VfncvtXuFW, uint32_t, Double, double, false);
        ORR_TO_INTEGER(VfncvtRtzXFW, int32_t, Double, double, true);
        ORR_TO_INTEGER(VfncvtRtzXuFW, uint32_t, Double, double, true);
        default:
            break;
    }
    if constexpr (kHasWideIntegers) {
        switch (op) {
            ORR_TO_INTEGER(VfwcvtXFV, int64_t, Single, double, false);
            ORR_TO_INTEGER(VfwcvtXuFV, uint64_t, Single, double, false);
            ORR_TO_INTEGER(VfwcvtRtzXFV, int64_t, Single, double, true);
            ORR_TO_INTEGER(VfwcvtRtzXuFV, uint64_t, Single, double, true);
            default:
                break;
        }
    }
    return nullptr;
}

template <unsigned kSewLog2>
VectorKernel of_doubles(VectorOp op) {
    if constexpr (kHasWideIntegers) {
        switch (op) {
            ORR_CONVERT(VfcvtFXV, FromInteger<Double, int64_t, double>);
            ORR_CONVERT(VfcvtFXuV, FromInteger<Double, uint64_t, double>);
            ORR_TO_INTEGER(VfcvtXFV, int64_t, Double, double, false);
            ORR_TO_INTEGER(VfcvtXuFV, uint64_t, Double, double, false);
            ORR_TO_INTEGER(VfcvtRtzXFV, int64_t, Double, double, true);
            ORR_TO_INTEGER(VfcvtRtzXuFV, uint64_t, Double, double, true);
            default:
                break;
        }
    }
    return nullptr;
}
#undef ORR_CONVERT
#undef ORR_TO_INTEGER

}  // namespace

VectorKernel simd_convert(VectorOp op, unsigned sew_log2) {
    switch (sew_log2) {
        case 3:
            if constexpr (kHasFma) return of_bytes<3>(op);
            return nullptr;
        case 4:
            if constexpr (kHasFma) {
                if (const VectorKernel kernel = of_halves<4>(op)) return kernel;
            }
            return of_shorts<4>(op);
        case 5:
            return of_words<5>(op);
        case 6:
            return of_doubles<6>(op);
        default:
            return nullptr;
    }
}
#else
VectorKernel simd_convert(VectorOp, unsigned) {
    return nullptr;
}
#endif

}  // namespace orrery::emu::ORR_SIMD
