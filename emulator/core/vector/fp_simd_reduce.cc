// Reductions.
#include "emulator/core/vector/fp_simd.h"

namespace orrery::emu::ORR_SIMD {

#if defined(__x86_64__)
namespace {

// The order of additions is that of docs/riscv.md: sixteen parts.
constexpr unsigned kParts = 16;
// Lanes of the vector that a single number is converted in.
template <class C>
constexpr unsigned kFew = 16 / sizeof(C);

template <class T>
T read(const std::uint8_t* at) {
    T value;
    __builtin_memcpy(&value, at, sizeof(value));
    return value;
}

// `value` rounded to R, which may have fewer digits.
template <class R, class C, unsigned kLanes>
ORR_INLINE Vec<C, kLanes> rounded(Vec<C, kLanes> value) {
    if constexpr (sizeof(typename R::Store) == sizeof(C)) {
        return value;
    } else {
        return widened<R, C, kLanes>(narrowed<R, C, kLanes>(value));
    }
}
// The optimiser may not make a vector of single additions, some lanes of which would add what is nobody's.
template <class R, class C>
ORR_INLINE C add(C a, C b) {
    C sum = a + b;
    asm volatile("" : "+x"(sum));
    if constexpr (sizeof(typename R::Store) == sizeof(C)) {
        return sum;
    } else {
        Vec<C, kFew<C>> lanes = {};
        lanes[0] = sum;
        return rounded<R, C, kFew<C>>(lanes)[0];
    }
}
template <class R, class C>
ORR_INLINE C number(typename R::Store bits) {
    if constexpr (sizeof(typename R::Store) == sizeof(C)) {
        return bits_as<C>(bits);
    } else {
        Vec<typename R::Store, kFew<C>> value = {};
        value[0] = bits;
        return widened<R, C, kFew<C>>(value)[0];
    }
}
template <class R, class C>
ORR_INLINE void put_sum(std::uint8_t* vd, C sum) {
    typename R::Store bits;
    if (sum != sum) {
        bits = R::kNan;
    } else if constexpr (sizeof(bits) == sizeof(C)) {
        bits = bits_as<typename R::Store>(sum);
    } else {
        Vec<C, kFew<C>> value = {};
        value[0] = sum;
        bits = narrowed<R, C, kFew<C>>(value)[0];
    }
    __builtin_memcpy(vd, &bits, sizeof(bits));
}

bool any_active(const VectorOperands& o) {
    if (o.mask == nullptr) return true;
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if ((o.mask[i / 8] >> (i % 8) & 1) != 0) return true;
    }
    return false;
}

template <class R, class F, class C>
__attribute__((noinline)) void sum_in_parts(VectorOperands& o) {
    using Store = typename F::Store;
    constexpr unsigned kLanes = kVectorBytes / sizeof(C);
    constexpr unsigned kVectors = kParts / kLanes;
    if (!any_active(o)) {
        __builtin_memcpy(o.vd, o.vs1, sizeof(typename R::Store));
        return;
    }
    // What changes nothing and raises nothing when it is added: the zero of the other sign when rounding
    // down.
    const auto nothing = splat<C, kLanes>(o.frm == soft::kDown ? C{0} : -C{0});
    Vec<C, kLanes> parts[kVectors];
    for (auto& part : parts)
        part = nothing;
    for (std::uint64_t i = 0; i < o.vl; i += kParts) {
        const auto count = static_cast<unsigned>(o.vl - i < kParts ? o.vl - i : kParts);
        std::uint64_t active = (1ull << count) - 1;
        if (o.mask != nullptr) active &= mask_bits<kParts>(o.mask, i);
        for (unsigned k = 0; k < kVectors; ++k) {
            const std::uint64_t first = i + k * kLanes;
            if (active == (1ull << kParts) - 1) {
                const auto value = widened<F, C, kLanes>(load_all<Store, kLanes>(o.vs2, first));
                parts[k] = rounded<R, C, kLanes>(parts[k] + value);
                continue;
            }
            const std::uint64_t own = active >> (k * kLanes) & ((1ull << kLanes) - 1);
            if (own == 0) continue;
            const unsigned left = count - k * kLanes;
            const Block block{first, left < kLanes ? left : kLanes, own};
            auto value = widened<F, C, kLanes>(input<Store, kLanes, true>(o.vs2, block, F::kOne));
            value = lanes_of<C, kLanes>(own) ? value : nothing;
            keep(value);
            parts[k] = rounded<R, C, kLanes>(parts[k] + value);
        }
    }
    C sums[kParts];
    __builtin_memcpy(sums, parts, sizeof(sums));
    for (unsigned apart = kParts / 2; apart != 0; apart /= 2) {
        for (unsigned k = 0; k < apart; ++k)
            sums[k] = add<R, C>(sums[k], sums[k + apart]);
    }
    put_sum<R, C>(o.vd, add<R, C>(number<R, C>(read<typename R::Store>(o.vs1)), sums[0]));
}

template <class R, class F, class C>
__attribute__((noinline)) void sum_in_order(VectorOperands& o) {
    if (!any_active(o)) {
        __builtin_memcpy(o.vd, o.vs1, sizeof(typename R::Store));
        return;
    }
    C sum = number<R, C>(read<typename R::Store>(o.vs1));
    for (std::uint64_t i = 0; i < o.vl; ++i) {
        if (o.mask != nullptr && (o.mask[i / 8] >> (i % 8) & 1) == 0) continue;
        sum = add<R, C>(
            sum,
            static_cast<C>(number<F, C>(read<typename F::Store>(o.vs2 + i * sizeof(typename F::Store)))));
    }
    put_sum<R, C>(o.vd, sum);
}

template <class F, bool kGreatest>
void pick(VectorOperands& o) {
    using Store = typename F::Store;
    constexpr unsigned kMost = kVectorBytes / sizeof(Store);
    constexpr unsigned kLanes = kMost > 16 ? 16 : kMost;
    if (!any_active(o)) {
        __builtin_memcpy(o.vd, o.vs1, sizeof(Store));
        return;
    }
    auto best = splat<Store, kLanes>(read<Store>(o.vs1));
    LaneMask<F, kLanes> invalid{};
    for (std::uint64_t i = 0; i < o.vl; i += kLanes) {
        const auto count = static_cast<unsigned>(o.vl - i < kLanes ? o.vl - i : kLanes);
        std::uint64_t active = (1ull << count) - 1;
        if (o.mask != nullptr) active &= mask_bits<kLanes>(o.mask, i);
        auto value = count == kLanes ? load_all<Store, kLanes>(o.vs2, i)
                                     : load_some<Store, kLanes>(o.vs2, Block{i, count, active});
        const auto lanes = lanes_of<Store, kLanes>(active);
        invalid |= (signaling_lanes<F, kLanes>(best) | signaling_lanes<F, kLanes>(value)) & lanes;
        best = lanes ? extremum<F, kGreatest, kLanes>(best, value) : best;
    }
    if (any(invalid)) o.fflags |= kFlagNv;
    Vec<Store, kLanes> result = best;
    for (unsigned k = 1; k < kLanes; ++k) {
        const auto other = splat<Store, kLanes>(best[k]);
        result = extremum<F, kGreatest, kLanes>(result, other);
    }
    const Store first = result[0];
    __builtin_memcpy(o.vd, &first, sizeof(first));
}

template <class F, class C, unsigned kSewLog2>
VectorKernel same_width(VectorOp op) {
    switch (op) {
        case VectorOp::kVfredosumVs:
            return in_mode_of<VectorOp::kVfredosumVs, kSewLog2, sum_in_order<F, F, C>>;
        case VectorOp::kVfredusumVs:
            return in_mode_of<VectorOp::kVfredusumVs, kSewLog2, sum_in_parts<F, F, C>>;
        case VectorOp::kVfredminVs:
            return pick<F, false>;
        case VectorOp::kVfredmaxVs:
            return pick<F, true>;
        default:
            return nullptr;
    }
}
template <class F, class W, class C, unsigned kSewLog2>
VectorKernel widening(VectorOp op) {
    switch (op) {
        case VectorOp::kVfwredosumVs:
            return in_mode_of<VectorOp::kVfwredosumVs, kSewLog2, sum_in_order<W, F, C>>;
        case VectorOp::kVfwredusumVs:
            return in_mode_of<VectorOp::kVfwredusumVs, kSewLog2, sum_in_parts<W, F, C>>;
        default:
            return nullptr;
    }
}

}  // namespace

VectorKernel simd_reduce(VectorOp op, unsigned sew_log2) {
    VectorKernel kernel = nullptr;
    if constexpr (kHasFma) {
        if (sew_log2 == 4) {
            kernel = same_width<Half, float, 4>(op);
            return kernel != nullptr ? kernel : widening<Half, Single, float, 4>(op);
        }
    }
    if (sew_log2 == 5) {
        kernel = same_width<Single, float, 5>(op);
        return kernel != nullptr ? kernel : widening<Single, Double, double, 5>(op);
    }
    return sew_log2 == 6 ? same_width<Double, double, 6>(op) : nullptr;
}
#else
VectorKernel simd_reduce(VectorOp, unsigned) {
    return nullptr;
}
#endif

}  // namespace orrery::emu::ORR_SIMD
