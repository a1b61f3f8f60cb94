// Fused multiply-add.
#include "emulator/core/vector/fp_simd.h"

namespace orrery::emu::ORR_SIMD {

#if defined(__AVX2__)
namespace {

template <class C, unsigned kLanes>
ORR_INLINE Vec<C, kLanes> negated(Vec<C, kLanes> a) {
    using U = typename IntegerOf<sizeof(C)>::Unsigned;
    return bits_as<Vec<C, kLanes>>(bits_as<Vec<U, kLanes>>(a) ^ (U{1} << (8 * sizeof(C) - 1)));
}

// Infinity times zero is invalid even if a quiet NaN is added to it, which the host does not say.
template <class C, unsigned kLanes>
__attribute__((noinline)) std::uint8_t product_flags(const Vec<C, kLanes>& a, const Vec<C, kLanes>& b) {
    using U = typename IntegerOf<sizeof(C)>::Unsigned;
    using F = typename std::conditional<sizeof(C) == 4, soft::F32, soft::F64>::type;
    const auto x = bits_as<Vec<U, kLanes>>(a) & static_cast<U>(~F::kSign);
    const auto y = bits_as<Vec<U, kLanes>>(b) & static_cast<U>(~F::kSign);
    const auto invalid = ((x == F::kInf) & (y == 0)) | ((x == 0) & (y == F::kInf));
    return any(invalid) ? kFlagNv : 0;
}

// The product of two halves is exact in a double, and so is the sum if it is anywhere near halfway between
// two halves.
template <class C, class R>
ORR_INLINE auto compute(auto a, auto b, auto c) {
    if constexpr (sizeof(typename R::Store) == 2) {
        return a * b + c;
    } else {
        return multiply_add(a, b, c);
    }
}

// kAccumulate: vs1 * vs2 + vd, otherwise vs1 * vd + vs2. R is the format of the addend and the result.
template <class R, class A, class C, bool kScalar, bool kAccumulate, bool kNegateProduct, bool kNegateAddend>
struct Fused {
    static constexpr unsigned kLanes = kVectorBytes / sizeof(C);
    using Numbers = Vec<C, kLanes>;

    static ORR_INLINE Numbers sum_of(Numbers a, Numbers other, Numbers old) {
        if constexpr (kNegateProduct) a = negated<C, kLanes>(a);
        const auto b = kAccumulate ? other : old;
        auto c = kAccumulate ? old : other;
        if constexpr (kNegateAddend) c = negated<C, kLanes>(c);
        return compute<C, R>(a, b, c);
    }

    // So many blocks of numbers as they are stored are looked at together: NaNs are rare.
    static constexpr unsigned kTogether =
        sizeof(typename A::Store) == sizeof(typename R::Store) && sizeof(typename R::Store) == sizeof(C) ? 4
                                                                                                         : 0;
    static ORR_INLINE bool run_together(std::uint8_t* vd, const std::uint8_t* vs2, const std::uint8_t* vs1,
                                        std::uint64_t scalar, std::uint64_t first) {
        Numbers sums[kTogether];
        for (unsigned k = 0; k < kTogether; ++k) {
            const std::uint64_t at = first + k * kLanes;
            const auto a =
                kScalar ? splat<C, kLanes>(bits_as<C>(unbox<A>(scalar))) : load_all<C, kLanes>(vs1, at);
            sums[k] = sum_of(a, load_all<C, kLanes>(vs2, at), load_all<C, kLanes>(vd, at));
        }
        for (unsigned k = 0; k < kTogether; k += 2) {
            if (__builtin_expect(any_nan(sums[k], sums[k + 1]), 0)) return false;
        }
        for (unsigned k = 0; k < kTogether; ++k)
            store_all<C, kLanes>(vd, first + k * kLanes, sums[k]);
        return true;
    }

    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        using StoreA = typename A::Store;
        using StoreR = typename R::Store;
        Vec<StoreA, kLanes> raw;
        if constexpr (kScalar) {
            raw = splat<StoreA, kLanes>(unbox<A>(o.scalar));
            if constexpr (kPartial) {
                raw = lanes_of<StoreA, kLanes>(block.active) ? raw : splat<StoreA, kLanes>(A::kOne);
            }
            keep(raw);
        } else {
            raw = input<StoreA, kLanes, kPartial>(o.vs1, block, A::kOne);
        }
        const auto a = widened<A, C, kLanes>(raw);
        const auto other = widened<A, C, kLanes>(input<StoreA, kLanes, kPartial>(o.vs2, block, A::kOne));
        const auto old = widened<R, C, kLanes>(input<StoreR, kLanes, kPartial>(o.vd, block, R::kOne));
        const auto sum = sum_of(a, other, old);
        if (__builtin_expect(any(sum != sum), 0))
            o.fflags |= product_flags<C, kLanes>(a, kAccumulate ? other : old);
        output<StoreR, kLanes, kPartial>(o.vd, block, narrowed<R, C, kLanes>(canonical<C, kLanes>(sum)));
    }
};

#define ORR_FUSED(name, R, A, C, ...)                                                         \
    case VectorOp::kV##name##Vv:                                                              \
        return in_mode<VectorOp::kV##name##Vv, kSewLog2, Fused<R, A, C, false, __VA_ARGS__>>; \
    case VectorOp::kV##name##Vf:                                                              \
        return in_mode<VectorOp::kV##name##Vf, kSewLog2, Fused<R, A, C, true, __VA_ARGS__>>

template <class F, class C, unsigned kSewLog2>
VectorKernel same_width(VectorOp op) {
    switch (op) {
        ORR_FUSED(fmacc, F, F, C, true, false, false);
        ORR_FUSED(fnmacc, F, F, C, true, true, true);
        ORR_FUSED(fmsac, F, F, C, true, false, true);
        ORR_FUSED(fnmsac, F, F, C, true, true, false);
        ORR_FUSED(fmadd, F, F, C, false, false, false);
        ORR_FUSED(fnmadd, F, F, C, false, true, true);
        ORR_FUSED(fmsub, F, F, C, false, false, true);
        ORR_FUSED(fnmsub, F, F, C, false, true, false);
        default:
            return nullptr;
    }
}

template <class F, class W, class C, unsigned kSewLog2>
VectorKernel widening(VectorOp op) {
    switch (op) {
        ORR_FUSED(fwmacc, W, F, C, true, false, false);
        ORR_FUSED(fwnmacc, W, F, C, true, true, true);
        ORR_FUSED(fwmsac, W, F, C, true, false, true);
        ORR_FUSED(fwnmsac, W, F, C, true, true, false);
        default:
            return nullptr;
    }
}

template <unsigned kSewLog2>
VectorKernel brain(VectorOp op) {
    switch (op) {
        ORR_FUSED(fwmaccbf16, Single, Brain, float, true, false, false);
        default:
            return nullptr;
    }
}
#undef ORR_FUSED

template <class T>
ORR_INLINE T factor_of(const VectorProducts& all, unsigned row, unsigned sum) {
    T factor;
    __builtin_memcpy(&factor, all.factors[row] + sum * sizeof(T), sizeof(T));
    return factor;
}

// One product of elements [from, to) by itself.
template <class F, class C>
__attribute__((noinline)) void add_alone(const VectorProducts& all, unsigned row, unsigned sum,
                                         std::uint64_t from, std::uint64_t to) {
    VectorOperands& o = *all.one;
    o.vd = all.vd[sum];
    o.vs2 = all.row[row];
    constexpr std::uint64_t kBox = sizeof(C) == sizeof(std::uint64_t) ? 0 : ~0ull << 8 * sizeof(C);
    o.scalar = kBox | factor_of<typename F::Store>(all, row, sum);
    o.vl = to;
    blocks_from<Fused<F, F, C, true, true, false, false>>(o, from);
    o.vl = all.vl;
}

// The sums stay in registers of the host over all rows, so many host vectors of each at a time. A NaN stays
// one, so that looking at the sums at last is enough.
template <class F, class C, unsigned kSums>
std::uint64_t add_tiles(const VectorProducts& all) {
    using Body = Fused<F, F, C, true, true, false, false>;
    using Numbers = typename Body::Numbers;
    constexpr unsigned kLanes = Body::kLanes, kMost = kVectorBytes == 64 ? 16 : 8,
                       kWide = kMost / kSums > 8   ? 8
                               : kMost / kSums > 4 ? 4
                               : kMost / kSums > 1 ? 2
                                                   : 1;
    std::uint64_t i = 0;
    for (; i + kWide * kLanes <= all.vl; i += kWide * kLanes) {
        Numbers sums[kSums][kWide];
        for (unsigned k = 0; k < kSums; ++k)
            for (unsigned part = 0; part < kWide; ++part)
                sums[k][part] = load_all<C, kLanes>(all.vd[k], i + part * kLanes);
        for (unsigned r = 0; r < all.rows; ++r) {
            Numbers others[kWide];
            for (unsigned part = 0; part < kWide; ++part)
                others[part] = load_all<C, kLanes>(all.row[r], i + part * kLanes);
            for (unsigned k = 0; k < kSums; ++k) {
                const Numbers factor = splat<C, kLanes>(factor_of<C>(all, r, k));
                for (unsigned part = 0; part < kWide; ++part)
                    sums[k][part] = Body::sum_of(factor, others[part], sums[k][part]);
            }
        }
        bool nan = false;
        for (unsigned k = 0; k < kSums; ++k)
            for (unsigned part = 0; part < kWide; part += 2)
                nan |= any_nan(sums[k][part], sums[k][kWide == 1 ? 0 : part + 1]);
        if (__builtin_expect(nan, 0)) {
            for (unsigned r = 0; r < all.rows; ++r)
                for (unsigned k = 0; k < kSums; ++k)
                    add_alone<F, C>(all, r, k, i, i + kWide * kLanes);
            continue;
        }
        for (unsigned k = 0; k < kSums; ++k)
            for (unsigned part = 0; part < kWide; ++part)
                store_all<C, kLanes>(all.vd[k], i + part * kLanes, sums[k][part]);
    }
    return i;
}

template <class F, class C>
void add_products(const VectorProducts& all) {
    using Tiles = std::uint64_t (*)(const VectorProducts&);
    static constexpr Tiles kTiles[] = {add_tiles<F, C, 1>, add_tiles<F, C, 2>, add_tiles<F, C, 3>,
                                       add_tiles<F, C, 4>, add_tiles<F, C, 5>, add_tiles<F, C, 6>,
                                       add_tiles<F, C, 7>, add_tiles<F, C, 8>};
    static_assert(sizeof kTiles / sizeof kTiles[0] == VectorProducts::kSums);
    const std::uint64_t done = kTiles[all.sums - 1](all);
    if (done == all.vl) return;
    for (unsigned r = 0; r < all.rows; ++r)
        for (unsigned k = 0; k < all.sums; ++k)
            add_alone<F, C>(all, r, k, done, all.vl);
}

VectorKernel first(VectorKernel a, VectorKernel b, VectorKernel c) {
    if (a != nullptr) return a;
    return b != nullptr ? b : c;
}

}  // namespace

VectorKernel simd_fused(VectorOp op, unsigned sew_log2) {
    switch (sew_log2) {
        case 4:
            return first(same_width<Half, double, 4>(op), widening<Half, Single, float, 4>(op), brain<4>(op));
        case 5:
            return first(same_width<Single, float, 5>(op), widening<Single, Double, double, 5>(op), nullptr);
        case 6:
            return same_width<Double, double, 6>(op);
        default:
            return nullptr;
    }
}
VectorProductsKernel vector_products_kernel(unsigned sew_log2) {
    return sew_log2 == 5   ? add_products<Single, float>
           : sew_log2 == 6 ? add_products<Double, double>
                           : nullptr;
}
#else
VectorKernel simd_fused(VectorOp, unsigned) {
    return nullptr;
}
VectorProductsKernel vector_products_kernel(unsigned) {
    return nullptr;
}
#endif

}  // namespace orrery::emu::ORR_SIMD
