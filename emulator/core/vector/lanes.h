// For element kernels only: loops that the compiler may vectorise, and bits of masks.
//
// Everything here is in the namespace ORR_SIMD, and inline for sure: it is compiled for several hosts.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "emulator/core/vector/kernels.h"

#define ORR_LANE [[gnu::always_inline]] static inline

// Before a loop whose elements do not depend on one another: operands are apart or the same (operands.h).
#if defined(__clang__)
#define ORR_ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#else
#define ORR_ELEMENTS _Pragma("GCC ivdep")
#endif

namespace orrery::emu::ORR_SIMD {

using std::int16_t, std::int32_t, std::int64_t, std::int8_t;
using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
using Int128 = __int128;
using Uint128 = unsigned __int128;

template <class T>
struct Twice;
template <>
struct Twice<uint8_t> {
    using U = uint16_t;
    using S = int16_t;
};
template <>
struct Twice<uint16_t> {
    using U = uint32_t;
    using S = int32_t;
};
template <>
struct Twice<uint32_t> {
    using U = uint64_t;
    using S = int64_t;
};
template <>
struct Twice<uint64_t> {
    using U = Uint128;
    using S = Int128;
};
template <class T>
using Wide = typename Twice<T>::U;
template <class T>
using WideSigned = typename Twice<T>::S;
template <class T>
using Signed = std::make_signed_t<T>;
// In which T can be multiplied without a signed overflow.
template <class T>
using Calc = std::conditional_t<sizeof(T) < 4, uint32_t, T>;

ORR_LANE uint64_t lower(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// Bits [i, i + 64) of a mask register; i is a multiple of 64.
ORR_LANE uint64_t mask_word(const uint8_t* mask, uint64_t i) {
    uint64_t word;
    std::memcpy(&word, mask + i / 8, sizeof word);
    return word;
}
// Those of the elements [start, vl) among them.
ORR_LANE uint64_t range_word(uint64_t i, uint64_t start, uint64_t vl) {
    uint64_t word = ~uint64_t{0};
    if (start > i) word = start - i >= 64 ? 0 : word << (start - i);
    if (vl < i + 64) word = vl <= i ? 0 : word & ~uint64_t{0} >> (64 - (vl - i));
    return word;
}
ORR_LANE uint64_t active_word(const VectorOperands& o, uint64_t i) {
    return range_word(i, o.start, o.vl) & (o.mask != nullptr ? mask_word(o.mask, i) : ~uint64_t{0});
}

// 64 bytes, 0 or 1 each, for 64 bits, and back.
ORR_LANE void spread(uint64_t word, uint8_t* bytes) {
#if defined(__AVX512BW__)
    _mm512_storeu_si512(bytes, _mm512_maskz_set1_epi8(word, 1));
#else
    for (unsigned byte = 0; byte < 8; ++byte) {
        // Bit k of the byte to the lowest bit of byte k.
        uint64_t eight = word >> (8 * byte) & 0xff;
        eight = (eight * 0x0101'0101'0101'0101) & 0x8040'2010'0804'0201;
        eight += 0x7f7f'7f7f'7f7f'7f7f;
        eight = eight >> 7 & 0x0101'0101'0101'0101;
        std::memcpy(bytes + 8 * byte, &eight, 8);
    }
#endif
}
ORR_LANE uint64_t gather(const uint8_t* bytes) {
#if defined(__AVX512BW__)
    const __m512i all = _mm512_loadu_si512(bytes);
    return _mm512_test_epi8_mask(all, all);
#elif defined(__SSE2__)
    uint64_t word = 0;
    for (unsigned part = 0; part < 4; ++part) {
        const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * part));
        word |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(_mm_slli_epi16(some, 7)))} << (16 * part);
    }
    return word;
#else
    uint64_t word = 0;
    for (unsigned i = 0; i < 64; ++i)
        word |= uint64_t{bytes[i]} << i;
    return word;
#endif
}

// Kernel::run for elements of this size, which is one of the four.
template <class Kernel>
ORR_LANE VectorKernel by_sew(unsigned sew_log2) {
    switch (sew_log2) {
        case 3:
            return Kernel::template run<uint8_t>;
        case 4:
            return Kernel::template run<uint16_t>;
        case 5:
            return Kernel::template run<uint32_t>;
        default:
            return Kernel::template run<uint64_t>;
    }
}

}  // namespace orrery::emu::ORR_SIMD
