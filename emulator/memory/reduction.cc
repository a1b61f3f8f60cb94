// The loops have no branches and no state, so that the compiler makes vector code of them.
#include "emulator/memory/reduction.h"

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include <orrery/hw/engine.h>

namespace orrery::emu {
namespace {

// --- conversions to and from the two short formats: nearest, ties to even ---

struct Half {
    using Bits = std::uint16_t;
    static constexpr Bits kSign = 0x8000, kInfinity = 0x7c00, kNan = 0x7e00;
};
struct Brain {
    using Bits = std::uint16_t;
    static constexpr Bits kSign = 0x8000, kInfinity = 0x7f80, kNan = 0x7fc0;
};
struct Single {
    using Bits = std::uint32_t;
    static constexpr Bits kSign = 0x8000'0000, kInfinity = 0x7f80'0000, kNan = 0x7fc0'0000;
};
struct Double {
    using Bits = std::uint64_t;
    static constexpr Bits kSign = 1ull << 63, kInfinity = 0x7ff0ull << 48, kNan = 0x7ff8ull << 48;
};

float wide(Half, std::uint16_t half) {
    const std::uint32_t magnitude = (half & 0x7fffu) << 13;
    // A normal number's exponent moves from one bias to the other, infinity's twice as far.
    const std::uint32_t moved = magnitude + (112u << 23) + (magnitude >= 0x7c00u << 13 ? 112u << 23 : 0u);
    // A subnormal one stands behind a leading 1, which is taken off again.
    const float subnormal = std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23);
    const std::uint32_t bits = magnitude < 0x0400u << 13 ? std::bit_cast<std::uint32_t>(subnormal) : moved;
    return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

std::uint16_t narrow(Half, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fff'ffff;
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    // The addition of 0.5 rounds to the last place that a subnormal half has.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
    std::uint32_t half = magnitude < 113u << 23 ? subnormal : normal;
    half = magnitude >= 143u << 23 ? 0x7c00 : half;
    half = magnitude > 0x7f80'0000 ? 0x7e00 : half | (bits >> 16 & 0x8000);
    return static_cast<std::uint16_t>(half);
}

float wide(Brain, std::uint16_t brain) {
    return std::bit_cast<float>(std::uint32_t{brain} << 16);
}

std::uint16_t narrow(Brain, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return static_cast<std::uint16_t>((bits & 0x7fff'ffff) > 0x7f80'0000 ? 0x7fc0 : rounded);
}

// --- one element ---

template <class Format, class Bits = typename Format::Bits>
bool is_nan(Bits bits) {
    return static_cast<Bits>(bits & ~Format::kSign) > Format::kInfinity;
}

struct Add {
    template <class T>
    static T integer(T a, T b) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    }
    template <class T>
    static T real(T a, T b) {
        return a + b;
    }
    // Twice the digits and two make it one rounding.
    template <class Format>
    static float in_float(Format format, std::uint16_t a, std::uint16_t b) {
        return wide(format, a) + wide(format, b);
    }
};

struct Product {
    template <class T>
    static T integer(T a, T b) {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
    template <class T>
    static T real(T a, T b) {
        return a * b;
    }
    // Exact, but for brain floats' products below 2^-134: those become 0, as half of the smallest brain float
    // does, and no rounding here makes them more.
    template <class Format>
    static float in_float(Format format, std::uint16_t a, std::uint16_t b) {
        return wide(format, a) * wide(format, b);
    }
};

// Greater bits of `ordered()` are greater numbers, and +0 is greater than -0.
template <class Format, class Bits = typename Format::Bits>
std::make_signed_t<Bits> ordered(Bits bits) {
    using Signed = std::make_signed_t<Bits>;
    const Bits magnitude = static_cast<Bits>(bits & ~Format::kSign);
    return static_cast<Signed>((bits & Format::kSign) != 0 ? static_cast<Bits>(~magnitude) : magnitude);
}

template <bool kLeast>
struct Choice {
    template <class T>
    static T integer(T a, T b) {
        return (kLeast ? b < a : a < b) ? b : a;
    }
    template <class Format, class Bits = typename Format::Bits>
    static Bits bits(Bits a, Bits b) {
        const bool second =
            kLeast ? ordered<Format>(b) < ordered<Format>(a) : ordered<Format>(a) < ordered<Format>(b);
        Bits chosen = second ? b : a;
        chosen = is_nan<Format>(b) ? a : chosen;
        chosen = is_nan<Format>(a) ? b : chosen;
        return is_nan<Format>(chosen) ? Format::kNan : chosen;
    }
};

template <class Op>
inline constexpr bool kChooses = false;
template <bool kLeast>
inline constexpr bool kChooses<Choice<kLeast>> = true;

template <class Op, class Format>
typename Format::Bits element(typename Format::Bits a, typename Format::Bits b) {
    using Bits = typename Format::Bits;
    if constexpr (kChooses<Op>) {
        return Op::template bits<Format>(a, b);
    } else if constexpr (sizeof(Bits) == 2) {
        return narrow(Format{}, Op::in_float(Format{}, a, b));
    } else {
        using Real = std::conditional_t<sizeof(Bits) == 4, float, double>;
        const auto bits = std::bit_cast<Bits>(Op::real(std::bit_cast<Real>(a), std::bit_cast<Real>(b)));
        return is_nan<Format>(bits) ? Format::kNan : bits;
    }
}

// --- loops ---

template <class T, class Function>
void each(std::byte* dst, const std::byte* src, std::size_t bytes, Function&& function) {
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, dst + at, sizeof a);
        std::memcpy(&b, src + at, sizeof b);
        a = function(a, b);
        std::memcpy(dst + at, &a, sizeof a);
    }
}

template <class Op, class T>
void integers(std::byte* dst, const std::byte* src, std::size_t bytes) {
    each<T>(dst, src, bytes, [](T a, T b) { return Op::template integer<T>(a, b); });
}

template <class Op, class Format>
void reals(std::byte* dst, const std::byte* src, std::size_t bytes) {
    using Bits = typename Format::Bits;
    each<Bits>(dst, src, bytes, [](Bits a, Bits b) { return element<Op, Format>(a, b); });
}

constexpr std::size_t kTypes = ORR_TYPE_F64, kFunctions = ORR_REDUCE_PRODUCT;

template <class Op>
constexpr std::array<ReduceLoop, kTypes> kLoopsOf{integers<Op, std::int8_t>,
                                                  integers<Op, std::uint8_t>,
                                                  integers<Op, std::int32_t>,
                                                  integers<Op, std::uint32_t>,
                                                  integers<Op, std::int64_t>,
                                                  integers<Op, std::uint64_t>,
                                                  reals<Op, Half>,
                                                  reals<Op, Brain>,
                                                  reals<Op, Single>,
                                                  reals<Op, Double>};

// By function, then by type; both count from 1.
constexpr std::array<std::array<ReduceLoop, kTypes>, kFunctions> kLoops{
    kLoopsOf<Add>, kLoopsOf<Choice<true>>, kLoopsOf<Choice<false>>, kLoopsOf<Product>};

}  // namespace

ReduceLoop reduce_loop(std::uint32_t type, std::uint32_t function) {
    if (type - 1 >= kTypes || function - 1 >= kFunctions) return nullptr;
    return kLoops[function - 1][type - 1];
}

std::uint32_t element_bytes(std::uint32_t type) {
    constexpr std::array<std::uint8_t, kTypes> kBytes{1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
    return kBytes[type - 1];
}

}  // namespace orrery::emu
