// What looks at the bits of floating-point numbers and computes nothing: minimum and maximum, signs,
// comparisons, merges.
#include "emulator/core/vector/fp_simd.h"

namespace orrery::emu::ORR_SIMD {

#if defined(__x86_64__)
namespace {

template <class F>
inline constexpr unsigned kMostLanes = kVectorBytes / sizeof(typename F::Store);
// As many as for_blocks() allows.
template <class F>
inline constexpr unsigned kBlockLanes = kMostLanes<F> > 16 ? 16 : kMostLanes<F>;

template <bool kGreatest>
struct Extremum {
    template <class F, unsigned kLanes>
    static ORR_INLINE BitsVec<F, kLanes> compute(BitsVec<F, kLanes> a, BitsVec<F, kLanes> b,
                                                 std::uint8_t& flags) {
        if (any(signaling_lanes<F, kLanes>(a) | signaling_lanes<F, kLanes>(b))) flags |= kFlagNv;
        return extremum<F, kGreatest, kLanes>(a, b);
    }
};
struct Sgnj {
    template <class F, unsigned kLanes>
    static ORR_INLINE BitsVec<F, kLanes> compute(BitsVec<F, kLanes> a, BitsVec<F, kLanes> b, std::uint8_t&) {
        return (a & static_cast<typename F::Store>(~kSignBit<F>)) | (b & kSignBit<F>);
    }
};
struct Sgnjn {
    template <class F, unsigned kLanes>
    static ORR_INLINE BitsVec<F, kLanes> compute(BitsVec<F, kLanes> a, BitsVec<F, kLanes> b, std::uint8_t&) {
        return (a & static_cast<typename F::Store>(~kSignBit<F>)) | (~b & kSignBit<F>);
    }
};
struct Sgnjx {
    template <class F, unsigned kLanes>
    static ORR_INLINE BitsVec<F, kLanes> compute(BitsVec<F, kLanes> a, BitsVec<F, kLanes> b, std::uint8_t&) {
        return a ^ (b & kSignBit<F>);
    }
};

template <class F, class Op, bool kScalar>
struct Pick {
    static constexpr unsigned kLanes = kBlockLanes<F>;
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        using Store = typename F::Store;
        const auto a = input<Store, kLanes, kPartial>(o.vs2, block, F::kOne);
        auto b = splat<Store, kLanes>(F::kOne);
        if constexpr (!kScalar) {
            b = input<Store, kLanes, kPartial>(o.vs1, block, F::kOne);
        } else {
            const auto scalar = splat<Store, kLanes>(unbox<F>(o.scalar));
            b = kPartial ? (lanes_of<Store, kLanes>(block.active) ? scalar : b) : scalar;
        }
        output<Store, kLanes, kPartial>(o.vd, block, Op::template compute<F, kLanes>(a, b, o.fflags));
    }
};

template <class F>
struct Splat {
    static constexpr unsigned kLanes = kBlockLanes<F>;
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        output<typename F::Store, kLanes, kPartial>(o.vd, block,
                                                    splat<typename F::Store, kLanes>(unbox<F>(o.scalar)));
    }
};
// The mask says where the scalar goes.
template <class F>
void merge(VectorOperands& o) {
    const std::uint64_t skipped = o.start * sizeof(typename F::Store);
    if (o.vd != o.vs2)
        __builtin_memcpy(o.vd + skipped, o.vs2 + skipped, o.vl * sizeof(typename F::Store) - skipped);
    for_blocks<Splat<F>>(o);
}

// --- comparisons ---

// A bit for each lane.
template <class T, unsigned kLanes>
ORR_INLINE std::uint64_t bits_of(Mask<T, kLanes> mask) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 2) return _mm512_movepi16_mask(bits_as<__m512i>(mask));
    if constexpr (sizeof(T) == 4) return _mm512_movepi32_mask(bits_as<__m512i>(mask));
    if constexpr (sizeof(T) == 8) return _mm512_movepi64_mask(bits_as<__m512i>(mask));
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 2) {
        const auto halves = bits_as<__m256i>(mask);
        return static_cast<std::uint32_t>(_mm_movemask_epi8(
            _mm_packs_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1))));
    }
    if constexpr (sizeof(T) == 4)
        return static_cast<std::uint32_t>(_mm256_movemask_ps(bits_as<__m256>(mask)));
    if constexpr (sizeof(T) == 8)
        return static_cast<std::uint32_t>(_mm256_movemask_pd(bits_as<__m256d>(mask)));
#else
    if constexpr (sizeof(T) == 2) {
        return static_cast<std::uint32_t>(
            _mm_movemask_epi8(_mm_packs_epi16(bits_as<__m128i>(mask), _mm_setzero_si128())));
    }
    if constexpr (sizeof(T) == 4) return static_cast<std::uint32_t>(_mm_movemask_ps(bits_as<__m128>(mask)));
    if constexpr (sizeof(T) == 8) return static_cast<std::uint32_t>(_mm_movemask_pd(bits_as<__m128d>(mask)));
#endif
}

enum class Relation { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

// Both are ranks of numbers, the two zeros having one.
template <Relation kRelation, class V>
ORR_INLINE auto holds(V a, V b) {
    if constexpr (kRelation == Relation::kEqual || kRelation == Relation::kNotEqual) return a == b;
    if constexpr (kRelation == Relation::kLess) return a < b;
    if constexpr (kRelation == Relation::kLessOrEqual) return a <= b;
    if constexpr (kRelation == Relation::kGreater) return a > b;
    if constexpr (kRelation == Relation::kGreaterOrEqual) return a >= b;
}

template <class F, unsigned kLanes>
ORR_INLINE BitsVec<F, kLanes> one_zero(BitsVec<F, kLanes> a) {
    return (a & static_cast<typename F::Store>(~kSignBit<F>)) == 0 ? BitsVec<F, kLanes>{} : a;
}

template <VectorOp kOp, unsigned kSewLog2, class F, Relation kRelation, bool kScalar>
void compare(VectorOperands& o) {
    using Store = typename F::Store;
    constexpr unsigned kLanes = kMostLanes<F>;
    constexpr bool kQuiet = kRelation == Relation::kEqual || kRelation == Relation::kNotEqual;
    if (o.start != 0) {
        fp_exact_kernel(kOp, kSewLog2)(o);
        return;
    }
    const auto scalar = splat<Store, kLanes>(kScalar ? unbox<F>(o.scalar) : Store{});
    for (std::uint64_t base = 0; base < o.vl; base += 64) {
        const auto count = static_cast<unsigned>(o.vl - base < 64 ? o.vl - base : 64);
        std::uint64_t active = ~0ull >> (64 - count);
        const unsigned bytes = (count + 7) / 8;
        if (o.mask != nullptr) {
            std::uint64_t mask = 0;
            __builtin_memcpy(&mask, o.mask + base / 8, bytes);
            active &= mask;
        }
        std::uint64_t result = 0;
        std::uint64_t invalid = 0;
        for (unsigned k = 0; k < count; k += kLanes) {
            const Block block{base + k, count - k < kLanes ? count - k : kLanes, 0};
            const bool whole = block.count == kLanes;
            const auto a =
                whole ? load_all<Store, kLanes>(o.vs2, block.first) : load_some<Store, kLanes>(o.vs2, block);
            auto b = scalar;
            if constexpr (!kScalar)
                b = whole ? load_all<Store, kLanes>(o.vs1, block.first)
                          : load_some<Store, kLanes>(o.vs1, block);
            const auto unordered = nan_lanes<F, kLanes>(a) | nan_lanes<F, kLanes>(b);
            const auto signals =
                kQuiet ? signaling_lanes<F, kLanes>(a) | signaling_lanes<F, kLanes>(b) : unordered;
            const auto relation = holds<kRelation>(rank<F, kLanes>(one_zero<F, kLanes>(a)),
                                                   rank<F, kLanes>(one_zero<F, kLanes>(b)));
            result |= bits_of<Store, kLanes>(relation & ~unordered) << k;
            invalid |= bits_of<Store, kLanes>(signals) << k;
        }
        if (kRelation == Relation::kNotEqual) result = ~result;
        if ((invalid & active) != 0) o.fflags |= kFlagNv;
        std::uint64_t word = 0;
        __builtin_memcpy(&word, o.vd + base / 8, bytes);
        word = (word & ~active) | (result & active);
        __builtin_memcpy(o.vd + base / 8, &word, bytes);
    }
}

#define ORR_PICK(name, Op)                     \
    case VectorOp::kV##name##Vv:               \
        return for_blocks<Pick<F, Op, false>>; \
    case VectorOp::kV##name##Vf:               \
        return for_blocks<Pick<F, Op, true>>
#define ORR_COMPARE_VF(name, relation) \
    case VectorOp::kV##name##Vf:       \
        return compare<VectorOp::kV##name##Vf, kSewLog2, F, Relation::relation, true>
#define ORR_COMPARE(name, relation)                                                     \
    case VectorOp::kV##name##Vv:                                                        \
        return compare<VectorOp::kV##name##Vv, kSewLog2, F, Relation::relation, false>; \
        ORR_COMPARE_VF(name, relation)

template <class F, unsigned kSewLog2>
VectorKernel order(VectorOp op) {
    switch (op) {
        ORR_PICK(fmin, Extremum<false>);
        ORR_PICK(fmax, Extremum<true>);
        ORR_PICK(fsgnj, Sgnj);
        ORR_PICK(fsgnjn, Sgnjn);
        ORR_PICK(fsgnjx, Sgnjx);
        ORR_COMPARE(mfeq, kEqual);
        ORR_COMPARE(mfne, kNotEqual);
        ORR_COMPARE(mflt, kLess);
        ORR_COMPARE(mfle, kLessOrEqual);
        ORR_COMPARE_VF(mfgt, kGreater);
        ORR_COMPARE_VF(mfge, kGreaterOrEqual);
        case VectorOp::kVfmergeVfm:
            return merge<F>;
        case VectorOp::kVfmvVF:
            return for_blocks<Splat<F>>;
        default:
            return nullptr;
    }
}
#undef ORR_PICK
#undef ORR_COMPARE
#undef ORR_COMPARE_VF

}  // namespace

VectorKernel simd_order(VectorOp op, unsigned sew_log2) {
    if (sew_log2 == 4) return order<Half, 4>(op);
    if (sew_log2 == 5) return order<Single, 5>(op);
    return sew_log2 == 6 ? order<Double, 6>(op) : nullptr;
}
#else
VectorKernel simd_order(VectorOp, unsigned) {
    return nullptr;
}
#endif

}  // namespace orrery::emu::ORR_SIMD
