// What gives a bit for each element: comparisons, carries, and logic of masks. All bits up to vl are written,
// from the first on and in whole bytes: the prologue takes those that count.
#include "emulator/core/vector/lanes.h"
#include "emulator/core/vector/parts.h"

namespace orrery::emu::ORR_SIMD {
namespace {

struct Eq {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a == b;
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return a == b;
    }
};
struct Ne {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a != b;
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return a != b;
    }
};
struct Ltu {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a < b;
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return a < b;
    }
};
struct Leu {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a <= b;
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return a <= b;
    }
};
struct Gtu {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a > b;
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return a > b;
    }
};
struct Lt {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return static_cast<Signed<T>>(a) < static_cast<Signed<T>>(b);
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return reinterpret_cast<typename L::SignedVector>(a) < reinterpret_cast<typename L::SignedVector>(b);
    }
};
struct Le {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return static_cast<Signed<T>>(a) <= static_cast<Signed<T>>(b);
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return reinterpret_cast<typename L::SignedVector>(a) <= reinterpret_cast<typename L::SignedVector>(b);
    }
};
struct Gt {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return static_cast<Signed<T>>(a) > static_cast<Signed<T>>(b);
    }
    template <class L>
    ORR_LANE auto lanes(typename L::Vector a, typename L::Vector b) {
        return reinterpret_cast<typename L::SignedVector>(a) > reinterpret_cast<typename L::SignedVector>(b);
    }
};

// Results of 64 elements to bits; the last bytes of a group may be none of its elements.
ORR_LANE void put_bits(VectorOperands& o, uint64_t from, const uint8_t* results, uint64_t count) {
    const uint64_t word = gather(results);
    std::memcpy(o.vd + from / 8, &word, (count + 7) / 8);
}

// Elements as the host compares them at once: lanes are all ones where it holds.
#if defined(__AVX512BW__)
constexpr unsigned kBytes = 64;
#elif defined(__AVX2__)
constexpr unsigned kBytes = 32;
#else
constexpr unsigned kBytes = 16;
#endif
template <class T>
struct Lanes {
    typedef T Vector __attribute__((vector_size(kBytes)));
    typedef Signed<T> SignedVector __attribute__((vector_size(kBytes)));
    static constexpr unsigned kCount = kBytes / sizeof(T);
    ORR_LANE Vector at(const T* from) {
        Vector some;
        std::memcpy(&some, from, sizeof some);
        return some;
    }
};

#if defined(__SSE2__)
// A bit for each lane.
template <class T, class Vector>
ORR_LANE uint64_t bits_of(Vector lanes) {
#if defined(__AVX512BW__)
    const __m512i all = reinterpret_cast<__m512i>(lanes);
    if constexpr (sizeof(T) == 1) return _mm512_movepi8_mask(all);
    if constexpr (sizeof(T) == 2) return _mm512_movepi16_mask(all);
    if constexpr (sizeof(T) == 4) return _mm512_movepi32_mask(all);
    if constexpr (sizeof(T) == 8) return _mm512_movepi64_mask(all);
#elif defined(__AVX2__)
    const __m256i all = reinterpret_cast<__m256i>(lanes);
    const auto bytes = [&] { return static_cast<uint32_t>(_mm256_movemask_epi8(all)); };
    if constexpr (sizeof(T) == 1) return bytes();
    if constexpr (sizeof(T) == 2) return _pext_u32(bytes(), 0xaaaa'aaaa);
    if constexpr (sizeof(T) == 4) return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(all)));
    if constexpr (sizeof(T) == 8) return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(all)));
#else
    const __m128i all = reinterpret_cast<__m128i>(lanes);
    const auto bytes = [](__m128i of) { return static_cast<uint32_t>(_mm_movemask_epi8(of)); };
    if constexpr (sizeof(T) == 1) return bytes(all);
    if constexpr (sizeof(T) == 2) return bytes(_mm_packs_epi16(all, _mm_setzero_si128()));
    if constexpr (sizeof(T) == 4) return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(all)));
    if constexpr (sizeof(T) == 8) return static_cast<uint32_t>(_mm_movemask_pd(_mm_castsi128_pd(all)));
#endif
}
#endif

template <class Op, bool kScalar>
struct Compare {
    template <class T>
    static void run(VectorOperands& o) {
        const T scalar = static_cast<T>(o.scalar);
        const uint64_t vl = o.vl;
        uint64_t from = 0;
#if defined(__SSE2__)
        using L = Lanes<T>;
        for (; from + 64 <= vl; from += 64) {
            const T* const a = reinterpret_cast<const T*>(o.vs2) + from;
            const T* const b = kScalar ? nullptr : reinterpret_cast<const T*>(o.vs1) + from;
            uint64_t word = 0;
            for (unsigned i = 0; i < 64; i += L::kCount) {
                const auto some = kScalar ? typename L::Vector{} + scalar : L::at(b + i);
                word |= bits_of<T>(Op::template lanes<L>(L::at(a + i), some)) << i;
            }
            std::memcpy(o.vd + from / 8, &word, sizeof word);
        }
#endif
        if (from == vl) return;
        uint8_t results[64] = {};
        for (uint64_t i = from; i < vl; ++i) {
            const T b = kScalar ? scalar : reinterpret_cast<const T*>(o.vs1)[i];
            results[i - from] = Op::of(reinterpret_cast<const T*>(o.vs2)[i], b) ? 1 : 0;
        }
        put_bits(o, from, results, vl - from);
    }
};

// The carry out of a + b + bit, the borrow of a - b - bit.
struct Carry {
    template <class T>
    ORR_LANE bool of(T a, T b, bool bit) {
        const T sum = static_cast<T>(a + b);
        return sum < a || (bit && sum == static_cast<T>(~T{0}));
    }
};
struct Borrow {
    template <class T>
    ORR_LANE bool of(T a, T b, bool bit) {
        return a < b || (bit && a == b);
    }
};
template <class Op, bool kScalar>
struct CarryOut {
    template <class T>
    static void run(VectorOperands& o) {
        const T scalar = static_cast<T>(o.scalar);
        const uint64_t vl = o.vl;
        for (uint64_t from = 0; from < vl; from += 64) {
            uint8_t bits[64];
            spread(o.mask != nullptr ? mask_word(o.mask, from) : 0, bits);
            const T* const a = reinterpret_cast<const T*>(o.vs2) + from;
            const T* const b = kScalar ? nullptr : reinterpret_cast<const T*>(o.vs1) + from;
            const uint64_t count = lower(64, vl - from);
            uint8_t results[64] = {};
            for (uint64_t i = 0; i < count; ++i)
                results[i] = Op::of(a[i], kScalar ? scalar : b[i], bits[i] != 0) ? 1 : 0;
            put_bits(o, from, results, count);
        }
    }
};

struct Mand {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return a & b; }
};
struct Mnand {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return ~(a & b); }
};
struct Mandn {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return a & ~b; }
};
struct Mxor {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return a ^ b; }
};
struct Mor {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return a | b; }
};
struct Mnor {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return ~(a | b); }
};
struct Morn {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return a | ~b; }
};
struct Mxnor {
    ORR_LANE uint64_t of(uint64_t a, uint64_t b) { return ~(a ^ b); }
};
template <class Op>
void logic(VectorOperands& o) {
    const uint64_t vl = o.vl;
    for (uint64_t from = 0; from < vl; from += 64) {
        const uint64_t word = Op::of(mask_word(o.vs2, from), mask_word(o.vs1, from));
        std::memcpy(o.vd + from / 8, &word, sizeof word);
    }
}

}  // namespace

VectorKernel bits_kernel(VectorOp op, unsigned sew_log2) {
#define COMPARE_VV(name, kind)     \
    case VectorOp::kVms##name##Vv: \
        return by_sew<Compare<kind, false>>(sew_log2)
#define COMPARE_VX(name, kind)     \
    case VectorOp::kVms##name##Vx: \
        return by_sew<Compare<kind, true>>(sew_log2)
#define COMPARE_VI(name, kind)     \
    case VectorOp::kVms##name##Vi: \
        return by_sew<Compare<kind, true>>(sew_log2)
    switch (op) {
        COMPARE_VV(eq, Eq);
        COMPARE_VX(eq, Eq);
        COMPARE_VI(eq, Eq);
        COMPARE_VV(ne, Ne);
        COMPARE_VX(ne, Ne);
        COMPARE_VI(ne, Ne);
        COMPARE_VV(ltu, Ltu);
        COMPARE_VX(ltu, Ltu);
        COMPARE_VV(lt, Lt);
        COMPARE_VX(lt, Lt);
        COMPARE_VV(leu, Leu);
        COMPARE_VX(leu, Leu);
        COMPARE_VI(leu, Leu);
        COMPARE_VV(le, Le);
        COMPARE_VX(le, Le);
        COMPARE_VI(le, Le);
        COMPARE_VX(gtu, Gtu);
        COMPARE_VI(gtu, Gtu);
        COMPARE_VX(gt, Gt);
        COMPARE_VI(gt, Gt);
        case VectorOp::kVmadcVv:
        case VectorOp::kVmadcVvm:
            return by_sew<CarryOut<Carry, false>>(sew_log2);
        case VectorOp::kVmadcVx:
        case VectorOp::kVmadcVxm:
        case VectorOp::kVmadcVi:
        case VectorOp::kVmadcVim:
            return by_sew<CarryOut<Carry, true>>(sew_log2);
        case VectorOp::kVmsbcVv:
        case VectorOp::kVmsbcVvm:
            return by_sew<CarryOut<Borrow, false>>(sew_log2);
        case VectorOp::kVmsbcVx:
        case VectorOp::kVmsbcVxm:
            return by_sew<CarryOut<Borrow, true>>(sew_log2);
        case VectorOp::kVmandMm:
            return logic<Mand>;
        case VectorOp::kVmnandMm:
            return logic<Mnand>;
        case VectorOp::kVmandnMm:
            return logic<Mandn>;
        case VectorOp::kVmxorMm:
            return logic<Mxor>;
        case VectorOp::kVmorMm:
            return logic<Mor>;
        case VectorOp::kVmnorMm:
            return logic<Mnor>;
        case VectorOp::kVmornMm:
            return logic<Morn>;
        case VectorOp::kVmxnorMm:
            return logic<Mxnor>;
        default:
            return nullptr;
    }
#undef COMPARE_VV
#undef COMPARE_VX
#undef COMPARE_VI
}

}  // namespace orrery::emu::ORR_SIMD
