// Floating-point element kernels on the host's vector unit, for its four rounding modes; what is left goes to
// fp_exact.h. Included only by sources of simd.cmake.
//
// Vectors are the compiler's vector types, so that what is read and written when is as it stands here. The
// host's FPU sees only elements that are active: in place of the others it computes on ones, which raises no
// flag.
#pragma once

#include <type_traits>

#include "emulator/core/vector/fp_exact.h"
#include "emulator/core/vector/operands.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery::emu::ORR_SIMD {

// The kernels by subject; nullptr: not here, and then fp_exact_kernel() has it.
VectorKernel simd_arithmetic(VectorOp op, unsigned sew_log2);
VectorKernel simd_fused(VectorOp op, unsigned sew_log2);
VectorKernel simd_order(VectorOp op, unsigned sew_log2);
VectorKernel simd_convert(VectorOp op, unsigned sew_log2);
VectorKernel simd_reduce(VectorOp op, unsigned sew_log2);

#if defined(__x86_64__)
#if defined(__AVX512F__)
inline constexpr unsigned kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr unsigned kVectorBytes = 32;
#else
inline constexpr unsigned kVectorBytes = 16;
#endif
// F16C and FMA come with AVX2 (simd.cmake).
inline constexpr bool kHasFma = kVectorBytes > 16;

namespace {

#define ORR_INLINE __attribute__((always_inline)) inline

template <class T, unsigned kLanes>
struct VectorOf {
    typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));
};
template <class T, unsigned kLanes>
using Vec = typename VectorOf<T, kLanes>::Type;

template <unsigned kBytes>
struct IntegerOf;
template <>
struct IntegerOf<1> {
    using Signed = std::int8_t;
    using Unsigned = std::uint8_t;
};
template <>
struct IntegerOf<2> {
    using Signed = std::int16_t;
    using Unsigned = std::uint16_t;
};
template <>
struct IntegerOf<4> {
    using Signed = std::int32_t;
    using Unsigned = std::uint32_t;
};
template <>
struct IntegerOf<8> {
    using Signed = std::int64_t;
    using Unsigned = std::uint64_t;
};
// A vector of lanes that are all ones or all zeros, as comparisons of vectors of T give it.
template <class T, unsigned kLanes>
using Mask = Vec<typename IntegerOf<sizeof(T)>::Signed, kLanes>;

template <class To, class From>
ORR_INLINE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof(to));
    return to;
}

template <class T, unsigned kLanes>
ORR_INLINE Vec<T, kLanes> splat(T value) {
    Vec<T, kLanes> result;
    for (unsigned k = 0; k < kLanes; ++k)
        result[k] = value;
    return result;
}

// The optimiser may not see through this: else it could find that what was put in place of inactive elements
// does not matter to the result, and compute on these after all.
template <class V>
ORR_INLINE void keep(V& value) {
    if constexpr (sizeof(V) >= 16) {
        asm volatile("" : "+x"(value));
    } else {
        asm volatile("" : "+m"(value));
    }
}

// Lane k is all ones where bit k is set.
template <class T, unsigned kLanes>
ORR_INLINE Mask<T, kLanes> lanes_of(std::uint64_t bits) {
    using U = typename IntegerOf<sizeof(T)>::Unsigned;
    if constexpr (kLanes > 8 * sizeof(T)) {
        return __builtin_convertvector(lanes_of<std::uint16_t, kLanes>(bits), Mask<T, kLanes>);
    } else {
        Vec<U, kLanes> one_bit;
        for (unsigned k = 0; k < kLanes; ++k)
            one_bit[k] = static_cast<U>(U{1} << k);
        return (splat<U, kLanes>(static_cast<U>(bits)) & one_bit) != 0;
    }
}

// Some of the elements [first, first + kLanes): `count` exist, those in `active` are computed.
struct Block {
    std::uint64_t first;
    unsigned count;
    std::uint64_t active;
};

template <class T, unsigned kLanes>
ORR_INLINE Vec<T, kLanes> load_some(const std::uint8_t* group, const Block& block) {
    Vec<T, kLanes> value{};
    __builtin_memcpy(&value, group + block.first * sizeof(T), block.count * sizeof(T));
    return value;
}
template <class T, unsigned kLanes>
ORR_INLINE Vec<T, kLanes> load_all(const std::uint8_t* group, std::uint64_t first) {
    Vec<T, kLanes> value;
    __builtin_memcpy(&value, group + first * sizeof(T), sizeof(value));
    return value;
}
template <class T, unsigned kLanes>
ORR_INLINE void store_all(std::uint8_t* group, std::uint64_t first, Vec<T, kLanes> value) {
    __builtin_memcpy(group + first * sizeof(T), &value, sizeof(value));
}

// Elements of an operand; in a partial block `one` stands for those that are not computed.
template <class T, unsigned kLanes, bool kPartial>
ORR_INLINE Vec<T, kLanes> input(const std::uint8_t* group, const Block& block, T one) {
    if constexpr (!kPartial) return load_all<T, kLanes>(group, block.first);
    Vec<T, kLanes> value =
        block.count == kLanes ? load_all<T, kLanes>(group, block.first) : load_some<T, kLanes>(group, block);
    value = lanes_of<T, kLanes>(block.active) ? value : splat<T, kLanes>(one);
    keep(value);
    return value;
}
template <class T, unsigned kLanes, bool kPartial>
ORR_INLINE void output(std::uint8_t* group, const Block& block, Vec<T, kLanes> value) {
    if constexpr (!kPartial) {
        store_all<T, kLanes>(group, block.first, value);
    } else {
        keep(value);
        if (block.count == kLanes) {
            const Vec<T, kLanes> old = load_all<T, kLanes>(group, block.first);
            store_all<T, kLanes>(group, block.first, lanes_of<T, kLanes>(block.active) ? value : old);
        } else {
            const Vec<T, kLanes> old = load_some<T, kLanes>(group, block);
            value = lanes_of<T, kLanes>(block.active) ? value : old;
            __builtin_memcpy(group + block.first * sizeof(T), &value, block.count * sizeof(T));
        }
    }
}

// The bits of v0 for elements from `first` on, of the kLanes that it is in.
template <unsigned kLanes>
ORR_INLINE std::uint64_t mask_bits(const std::uint8_t* mask, std::uint64_t first) {
    const std::uint64_t base = first / kLanes * kLanes;
    std::uint64_t bits = mask[base / 8];
    if constexpr (kLanes > 8) bits |= static_cast<std::uint64_t>(mask[base / 8 + 1]) << 8;
    return bits >> (base % 8 + (first - base));
}

// Body::run<partial>(operands, block), Body::kLanes elements at a time, from element i on.
template <class Body>
__attribute__((noinline)) void blocks_from(VectorOperands& operands, std::uint64_t i) {
    constexpr unsigned kLanes = Body::kLanes;
    static_assert(kLanes <= 16);
    VectorOperands o = operands;  // which no store into a register can change, so that it stays out of memory
    if (o.mask == nullptr) {
        for (; i + kLanes <= o.vl; i += kLanes)
            Body::template run<false>(o, Block{i, kLanes, (1ull << kLanes) - 1});
        if (i < o.vl) {
            const auto rest = static_cast<unsigned>(o.vl - i);
            Body::template run<true>(o, Block{i, rest, (1ull << rest) - 1});
        }
        operands.fflags = o.fflags;
        operands.slow = o.slow;
        return;
    }
    constexpr std::uint64_t kAll = (1ull << kLanes) - 1;
    while (i < o.vl) {
        auto count = kLanes - static_cast<unsigned>(i % kLanes);
        if (count > o.vl - i) count = static_cast<unsigned>(o.vl - i);
        const std::uint64_t active = mask_bits<kLanes>(o.mask, i) & ((1ull << count) - 1);
        if (active == kAll) {
            Body::template run<false>(o, Block{i, kLanes, active});
        } else if (active != 0) {
            Body::template run<true>(o, Block{i, count, active});
        }
        i += count;
    }
    operands.fflags = o.fflags;
    operands.slow = o.slow;
}

template <class Body>
inline constexpr unsigned kTogetherOf = 0;
template <class Body>
    requires requires { Body::kTogether; }
inline constexpr unsigned kTogetherOf<Body> = Body::kTogether;

// The whole instruction. Where Body::kTogether is not 0, Body::run_together(vd, vs2, vs1, scalar, first) does
// so many whole blocks without more ado, or says no and changes nothing.
template <class Body>
__attribute__((noinline)) void for_blocks(VectorOperands& o) {
    std::uint64_t i = o.start;
    if constexpr (kTogetherOf<Body> != 0) {
        constexpr unsigned kElements = kTogetherOf<Body> * Body::kLanes;
        std::uint8_t* const vd = o.vd;
        const std::uint8_t *const vs2 = o.vs2, *const vs1 = o.vs1;
        const std::uint64_t scalar = o.scalar, vl = o.mask == nullptr ? o.vl : 0;
        while (i + kElements <= vl && Body::run_together(vd, vs2, vs1, scalar, i))
            i += kElements;
        if (i == o.vl) return;
    }
    blocks_from<Body>(o, i);
}

// kLoop in the guest's rounding mode. The instruction is named for the mode that the host does not have.
template <VectorOp kOp, unsigned kSewLog2, VectorKernel kLoop>
void in_mode_of(VectorOperands& o) {
    constexpr std::uint32_t kAllModes = 0x6000;
    constexpr std::uint32_t kModes[] = {0, 0x6000, 0x2000, 0x4000};
    if (o.frm == soft::kNearestEven) {
        kLoop(o);
    } else if (o.frm == soft::kNearestAway) {
        fp_exact_kernel(kOp, kSewLog2)(o);
    } else {
        _mm_setcsr(_mm_getcsr() | kModes[o.frm]);
        kLoop(o);
        _mm_setcsr(_mm_getcsr() & ~kAllModes);
    }
}
template <VectorOp kOp, unsigned kSewLog2, class Body>
void in_mode(VectorOperands& o) {
    in_mode_of<kOp, kSewLog2, for_blocks<Body>>(o);
}

// --- formats: how elements are stored; what is computed in is float or double ---

struct Half {
    using Store = std::uint16_t;
    static constexpr Store kOne = 0x3c00, kNan = soft::F16::kNan;
};
struct Brain {
    using Store = std::uint16_t;
    static constexpr Store kOne = 0x3f80, kNan = soft::Bf16::kNan;
};
struct Single {
    using Store = std::uint32_t;
    static constexpr Store kOne = 0x3f800000, kNan = soft::F32::kNan;
};
struct Double {
    using Store = std::uint64_t;
    static constexpr Store kOne = 0x3ff0ull << 48, kNan = soft::F64::kNan;
};

template <class F>
ORR_INLINE typename F::Store unbox(std::uint64_t scalar) {
    constexpr unsigned kBits = 8 * sizeof(typename F::Store);
    if constexpr (kBits < 64) {
        if (scalar >> kBits != ~0ull >> kBits) return F::kNan;
    }
    return static_cast<typename F::Store>(scalar);
}

#if defined(__AVX512F__)
ORR_INLINE Vec<float, 16> from_halves(Vec<std::uint16_t, 16> a) {
    return _mm512_cvtph_ps(bits_as<__m256i>(a));
}
ORR_INLINE Vec<std::uint16_t, 16> to_halves(Vec<float, 16> a) {
    return bits_as<Vec<std::uint16_t, 16>>(_mm512_cvtps_ph(a, _MM_FROUND_CUR_DIRECTION));
}
ORR_INLINE Vec<float, 16> square_root(Vec<float, 16> a) {
    return _mm512_sqrt_ps(a);
}
ORR_INLINE Vec<double, 8> square_root(Vec<double, 8> a) {
    return _mm512_sqrt_pd(a);
}
ORR_INLINE Vec<float, 16> multiply_add(Vec<float, 16> a, Vec<float, 16> b, Vec<float, 16> c) {
    return _mm512_fmadd_ps(a, b, c);
}
ORR_INLINE Vec<double, 8> multiply_add(Vec<double, 8> a, Vec<double, 8> b, Vec<double, 8> c) {
    return _mm512_fmadd_pd(a, b, c);
}
#endif
#if defined(__AVX2__)
ORR_INLINE Vec<float, 8> from_halves(Vec<std::uint16_t, 8> a) {
    return _mm256_cvtph_ps(bits_as<__m128i>(a));
}
ORR_INLINE Vec<float, 4> from_halves(Vec<std::uint16_t, 4> a) {
    return _mm_cvtph_ps(_mm_cvtsi64_si128(bits_as<long long>(a)));
}
ORR_INLINE Vec<std::uint16_t, 8> to_halves(Vec<float, 8> a) {
    return bits_as<Vec<std::uint16_t, 8>>(_mm256_cvtps_ph(a, _MM_FROUND_CUR_DIRECTION));
}
ORR_INLINE Vec<std::uint16_t, 4> to_halves(Vec<float, 4> a) {
    return bits_as<Vec<std::uint16_t, 4>>(_mm_cvtsi128_si64(_mm_cvtps_ph(a, _MM_FROUND_CUR_DIRECTION)));
}
ORR_INLINE Vec<float, 8> square_root(Vec<float, 8> a) {
    return _mm256_sqrt_ps(a);
}
ORR_INLINE Vec<double, 4> square_root(Vec<double, 4> a) {
    return _mm256_sqrt_pd(a);
}
ORR_INLINE Vec<float, 8> multiply_add(Vec<float, 8> a, Vec<float, 8> b, Vec<float, 8> c) {
    return _mm256_fmadd_ps(a, b, c);
}
ORR_INLINE Vec<double, 4> multiply_add(Vec<double, 4> a, Vec<double, 4> b, Vec<double, 4> c) {
    return _mm256_fmadd_pd(a, b, c);
}
#endif
ORR_INLINE Vec<float, 4> square_root(Vec<float, 4> a) {
    return _mm_sqrt_ps(a);
}
ORR_INLINE Vec<double, 2> square_root(Vec<double, 2> a) {
    return _mm_sqrt_pd(a);
}

// Elements of format F as numbers of type C, which holds them exactly.
template <class F, class C, unsigned kLanes>
ORR_INLINE Vec<C, kLanes> widened(Vec<typename F::Store, kLanes> a) {
    if constexpr (sizeof(typename F::Store) == sizeof(C)) {
        return bits_as<Vec<C, kLanes>>(a);
    } else if constexpr (sizeof(typename F::Store) == 4) {
        return __builtin_convertvector(bits_as<Vec<float, kLanes>>(a), Vec<C, kLanes>);
    } else {
        Vec<float, kLanes> single;
        if constexpr (F::kOne == Brain::kOne) {
            const auto wide = __builtin_convertvector(a, Vec<std::uint32_t, kLanes>);
            single = bits_as<Vec<float, kLanes>>(wide << 16);
        } else {
            single = from_halves(a);
        }
        if constexpr (sizeof(C) == 4) {
            return single;
        } else {
            return __builtin_convertvector(single, Vec<C, kLanes>);
        }
    }
}

template <class C, unsigned kLanes>
ORR_INLINE Vec<C, kLanes> canonical(Vec<C, kLanes> a) {
    using F = typename std::conditional<sizeof(C) == 4, Single, Double>::type;
    const auto nan = splat<C, kLanes>(bits_as<C>(F::kNan));
    return a != a ? nan : a;
}

template <class V>
ORR_INLINE bool any(V mask) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64) {
        const auto bits = bits_as<__m512i>(mask);
        return _mm512_test_epi64_mask(bits, bits) != 0;
    }
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(V) == 32) {
        const auto bits = bits_as<__m256i>(mask);
        return _mm256_testz_si256(bits, bits) == 0;
    }
#endif
    std::uint64_t parts[(sizeof(V) + 7) / 8] = {};
    __builtin_memcpy(parts, &mask, sizeof(mask));
    std::uint64_t all = 0;
    for (const std::uint64_t part : parts)
        all |= part;
    return all != 0;
}

// Is there a NaN in one of them? Raises no flag, if none is signaling.
template <class V>
ORR_INLINE bool any_nan(V a, V b) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<V, Vec<float, 16>>) {
        return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) != 0;
    } else if constexpr (std::is_same_v<V, Vec<double, 8>>) {
        return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q) != 0;
    } else
#endif
    {
        return any((a != a) | (b != b));
    }
}

// Numbers of type C, rounded to F. NaNs are canonical already.
template <class F, class C, unsigned kLanes>
ORR_INLINE Vec<typename F::Store, kLanes> narrowed(Vec<C, kLanes> a) {
    if constexpr (sizeof(typename F::Store) == sizeof(C)) {
        return bits_as<Vec<typename F::Store, kLanes>>(a);
    } else if constexpr (sizeof(C) == 4) {
        return to_halves(a);
    } else {
        static_assert(sizeof(typename F::Store) == 2);
        // By way of a float whose last digit is odd if there are more behind it: then the second rounding
        // does as if it were the only one.
        constexpr std::uint64_t kLost = (1ull << 29) - 1;
        const auto bits = bits_as<Vec<std::uint64_t, kLanes>>(a);
        const auto sticky =
            (bits & kLost) != 0 ? splat<std::uint64_t, kLanes>(kLost + 1) : bits & (kLost + 1);
        const auto odd = (bits & ~(2 * kLost + 1)) | sticky;
        return to_halves(__builtin_convertvector(bits_as<Vec<double, kLanes>>(odd), Vec<float, kLanes>));
    }
}

// --- order, by the bits: it raises no flags ---

template <class F, unsigned kLanes>
using BitsVec = Vec<typename F::Store, kLanes>;
template <class F, unsigned kLanes>
using LaneMask = Mask<typename F::Store, kLanes>;

template <class F>
inline constexpr typename F::Store kSignBit =
    static_cast<typename F::Store>(typename F::Store{1} << (8 * sizeof(typename F::Store) - 1));
template <class F>
inline constexpr typename F::Store kQuietBit = static_cast<typename F::Store>(F::kNan & ~(F::kNan << 1));
template <class F>
inline constexpr typename F::Store kInfinity = static_cast<typename F::Store>(F::kNan & ~kQuietBit<F>);

template <class F, unsigned kLanes>
ORR_INLINE LaneMask<F, kLanes> nan_lanes(BitsVec<F, kLanes> a) {
    return (a & static_cast<typename F::Store>(~kSignBit<F>)) > kInfinity<F>;
}
template <class F, unsigned kLanes>
ORR_INLINE LaneMask<F, kLanes> signaling_lanes(BitsVec<F, kLanes> a) {
    return nan_lanes<F, kLanes>(a) & ((a & kQuietBit<F>) == 0);
}
// Integers in the order of the numbers, -0 below 0.
template <class F, unsigned kLanes>
ORR_INLINE LaneMask<F, kLanes> rank(BitsVec<F, kLanes> a) {
    using S = typename IntegerOf<sizeof(typename F::Store)>::Signed;
    const auto number = bits_as<LaneMask<F, kLanes>>(a);
    return number ^ ((number >> (8 * sizeof(S) - 1)) & static_cast<S>(~kSignBit<F>));
}
template <class F, bool kGreatest, unsigned kLanes>
ORR_INLINE BitsVec<F, kLanes> extremum(BitsVec<F, kLanes> a, BitsVec<F, kLanes> b) {
    const auto x = rank<F, kLanes>(a);
    const auto y = rank<F, kLanes>(b);
    const auto best = (kGreatest ? x > y : x < y) ? a : b;
    const auto nan = splat<typename F::Store, kLanes>(F::kNan);
    const auto of_nan_a = nan_lanes<F, kLanes>(b) ? nan : b;
    const auto of_number_a = nan_lanes<F, kLanes>(b) ? a : best;
    return nan_lanes<F, kLanes>(a) ? of_nan_a : of_number_a;
}

}  // namespace
#endif  // x86-64

}  // namespace orrery::emu::ORR_SIMD
