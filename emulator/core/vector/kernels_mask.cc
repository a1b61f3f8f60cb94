// Reductions, and what counts or finds the bits of masks: kernels that mind the mask. And the blend for all
// others.
#include "emulator/core/vector/lanes.h"
#include "emulator/core/vector/parts.h"

namespace orrery::emu::ORR_SIMD {
namespace {

template <class T>
constexpr T kGreatest =
    static_cast<T>(std::is_signed_v<T> ? (uint64_t{1} << (8 * sizeof(T) - 1)) - 1 : ~uint64_t{0});

// Each with what changes no result.
struct Sum {
    template <class T>
    static constexpr T kNothing = 0;
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(a + b);
    }
};
struct And {
    template <class T>
    static constexpr T kNothing = static_cast<T>(~T{0});
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a & b;
    }
};
struct Or {
    template <class T>
    static constexpr T kNothing = 0;
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a | b;
    }
};
struct Xor {
    template <class T>
    static constexpr T kNothing = 0;
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a ^ b;
    }
};
struct Least {
    template <class T>
    static constexpr T kNothing = kGreatest<T>;
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a < b ? a : b;
    }
};
struct Most {
    template <class T>
    static constexpr T kNothing = static_cast<T>(~kGreatest<T>);
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a < b ? b : a;
    }
};

// Memory that the guest may have put anywhere.
template <class T>
struct [[gnu::packed]] Loose {
    T value;
};
// Elements of 64 that have a bit; no other byte is touched.
template <class T>
ORR_LANE void blend_chunk(T* to, const T* from, uint64_t word) {
#if defined(__AVX512BW__)
    if constexpr (sizeof(T) == 1) {
        _mm512_mask_storeu_epi8(to, word, _mm512_maskz_loadu_epi8(word, from));
    } else {
        constexpr unsigned kLanes = 64 / sizeof(T);
        for (unsigned k = 0; word != 0; k += kLanes, word >>= kLanes) {
            if constexpr (sizeof(T) == 2) {
                const auto some = static_cast<uint32_t>(word);
                _mm512_mask_storeu_epi16(to + k, some, _mm512_maskz_loadu_epi16(some, from + k));
            } else if constexpr (sizeof(T) == 4) {
                const auto some = static_cast<uint16_t>(word);
                _mm512_mask_storeu_epi32(to + k, some, _mm512_maskz_loadu_epi32(some, from + k));
            } else {
                const auto some = static_cast<uint8_t>(word);
                _mm512_mask_storeu_epi64(to + k, some, _mm512_maskz_loadu_epi64(some, from + k));
            }
        }
    }
#else
    auto* const d = reinterpret_cast<Loose<T>*>(to);
    const auto* const a = reinterpret_cast<const Loose<T>*>(from);
    for (; word != 0; word &= word - 1) {
        const auto i = static_cast<unsigned>(__builtin_ctzll(word));
        d[i].value = a[i].value;
    }
#endif
}
template <class T>
void blend_elements(void* vd, const void* from, const uint8_t* mask, uint64_t start, uint64_t vl) {
    T* const d = static_cast<T*>(vd);
    const T* const a = static_cast<const T*>(from);
    for (uint64_t at = start / 64 * 64; at < vl; at += 64) {
        const uint64_t word = mask_word(mask, at) & range_word(at, start, vl);
        if (word == ~uint64_t{0}) {
            std::memmove(d + at, a + at, 64 * sizeof(T));
        } else {
            blend_chunk(d + at, a + at, word);
        }
    }
}

// Elements are From, partial results To; both signed where that matters.
template <class Op, class From, class To>
void reduce(VectorOperands& o) {
    To total;
    std::memcpy(&total, o.vs1, sizeof total);
    const From* const a = reinterpret_cast<const From*>(o.vs2);
    const uint64_t vl = o.vl;
    if (o.mask == nullptr) {
        for (uint64_t i = 0; i < vl; ++i)
            total = Op::of(total, static_cast<To>(a[i]));
    } else {
        for (uint64_t from = 0; from < vl; from += 64) {
            From some[64];
            for (From& each : some)
                each = Op::template kNothing<From>;
            blend_chunk(some, a + from, active_word(o, from));
            for (const From each : some)
                total = Op::of(total, static_cast<To>(each));
        }
    }
    std::memcpy(o.vd, &total, sizeof total);
}

template <class Op, bool kSigned>
VectorKernel reduction(unsigned sew_log2) {
    switch (sew_log2) {
        case 3:
            return kSigned ? reduce<Op, int8_t, int8_t> : reduce<Op, uint8_t, uint8_t>;
        case 4:
            return kSigned ? reduce<Op, int16_t, int16_t> : reduce<Op, uint16_t, uint16_t>;
        case 5:
            return kSigned ? reduce<Op, int32_t, int32_t> : reduce<Op, uint32_t, uint32_t>;
        default:
            return kSigned ? reduce<Op, int64_t, int64_t> : reduce<Op, uint64_t, uint64_t>;
    }
}
VectorKernel wide_sum(bool sign, unsigned sew_log2) {
    switch (sew_log2) {
        case 3:
            return sign ? reduce<Sum, int8_t, uint16_t> : reduce<Sum, uint8_t, uint16_t>;
        case 4:
            return sign ? reduce<Sum, int16_t, uint32_t> : reduce<Sum, uint16_t, uint32_t>;
        case 5:
            return sign ? reduce<Sum, int32_t, uint64_t> : reduce<Sum, uint32_t, uint64_t>;
        default:
            return nullptr;
    }
}

void count_ones(VectorOperands& o) {
    o.result = 0;
    for (uint64_t from = 0; from < o.vl; from += 64)
        o.result +=
            static_cast<unsigned>(__builtin_popcountll(mask_word(o.vs2, from) & active_word(o, from)));
}
// -1: there is none.
ORR_LANE uint64_t first_one(const VectorOperands& o) {
    for (uint64_t from = 0; from < o.vl; from += 64) {
        const uint64_t word = mask_word(o.vs2, from) & active_word(o, from);
        if (word != 0) return from + static_cast<unsigned>(__builtin_ctzll(word));
    }
    return ~uint64_t{0};
}
void find_first(VectorOperands& o) {
    o.result = first_one(o);
}

// Ones in [from, to) of the active bits, zeros in the others.
ORR_LANE void set_active(VectorOperands& o, uint64_t begin, uint64_t end) {
    for (uint64_t from = 0; from < o.vl; from += 64) {
        const uint64_t active = active_word(o, from);
        const uint64_t word = (mask_word(o.vd, from) & ~active) | (range_word(from, begin, end) & active);
        std::memcpy(o.vd + from / 8, &word, sizeof word);
    }
}
void set_before_first(VectorOperands& o) {
    set_active(o, 0, first_one(o) == ~uint64_t{0} ? o.vl : first_one(o));
}
void set_including_first(VectorOperands& o) {
    const uint64_t first = first_one(o);
    set_active(o, 0, first == ~uint64_t{0} ? o.vl : first + 1);
}
void set_only_first(VectorOperands& o) {
    const uint64_t first = first_one(o);
    if (first == ~uint64_t{0}) {
        set_active(o, o.vl, o.vl);
    } else {
        set_active(o, first, first + 1);
    }
}

template <class T>
void iota(VectorOperands& o) {
    T* const d = reinterpret_cast<T*>(o.vd);
    uint64_t before = 0;
    for (uint64_t i = 0; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        d[i] = static_cast<T>(before);
        before += o.vs2[i / 8] >> (i % 8) & 1u;
    }
}

}  // namespace

VectorKernel reduce_kernel(VectorOp op, unsigned sew_log2) {
    switch (op) {
        case VectorOp::kVredsumVs:
            return reduction<Sum, false>(sew_log2);
        case VectorOp::kVredandVs:
            return reduction<And, false>(sew_log2);
        case VectorOp::kVredorVs:
            return reduction<Or, false>(sew_log2);
        case VectorOp::kVredxorVs:
            return reduction<Xor, false>(sew_log2);
        case VectorOp::kVredminuVs:
            return reduction<Least, false>(sew_log2);
        case VectorOp::kVredminVs:
            return reduction<Least, true>(sew_log2);
        case VectorOp::kVredmaxuVs:
            return reduction<Most, false>(sew_log2);
        case VectorOp::kVredmaxVs:
            return reduction<Most, true>(sew_log2);
        case VectorOp::kVwredsumuVs:
            return wide_sum(false, sew_log2);
        case VectorOp::kVwredsumVs:
            return wide_sum(true, sew_log2);
        default:
            return nullptr;
    }
}

VectorKernel mask_kernel(VectorOp op, unsigned sew_log2) {
    switch (op) {
        case VectorOp::kVcpopM:
            return count_ones;
        case VectorOp::kVfirstM:
            return find_first;
        case VectorOp::kVmsbfM:
            return set_before_first;
        case VectorOp::kVmsifM:
            return set_including_first;
        case VectorOp::kVmsofM:
            return set_only_first;
        case VectorOp::kViotaM:
            return sew_log2 == 3   ? iota<uint8_t>
                   : sew_log2 == 4 ? iota<uint16_t>
                   : sew_log2 == 5 ? iota<uint32_t>
                                   : iota<uint64_t>;
        default:
            return nullptr;
    }
}

void blend(void* vd, const void* from, const uint8_t* mask, uint64_t start, uint64_t vl, unsigned log2) {
    switch (log2) {
        case 0:
            return blend_elements<uint8_t>(vd, from, mask, start, vl);
        case 1:
            return blend_elements<uint16_t>(vd, from, mask, start, vl);
        case 2:
            return blend_elements<uint32_t>(vd, from, mask, start, vl);
        default:
            return blend_elements<uint64_t>(vd, from, mask, start, vl);
    }
}

VectorKernel vector_plain_kernel(VectorOp op, unsigned sew_log2) {
    for (const auto part : {int_kernel, width_kernel, bits_kernel, permute_kernel}) {
        const VectorKernel kernel = part(op, sew_log2);
        if (kernel != nullptr) return kernel;
    }
    return nullptr;
}
VectorKernel vector_masked_kernel(VectorOp op, unsigned sew_log2) {
    const VectorKernel kernel = reduce_kernel(op, sew_log2);
    return kernel != nullptr ? kernel : mask_kernel(op, sew_log2);
}

}  // namespace orrery::emu::ORR_SIMD
