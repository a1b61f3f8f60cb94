// What integer instructions compute, and what branches ask.
#pragma once

#include <cstdint>
#include <limits>

#include "emulator/core/handler.h"

namespace orrery::emu {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

inline std::int32_t as_i32(std::uint64_t v) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(v));
}
inline std::uint32_t as_u32(std::uint64_t v) {
    return static_cast<std::uint32_t>(v);
}

// Division never traps: by zero, and the one overflow, have defined results.
template <class T>
T divide(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::numeric_limits<T>::is_signed && b == static_cast<T>(-1)) {
        return a == std::numeric_limits<T>::min() ? a : static_cast<T>(T{0} - a);
    }
    return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
    if (b == 0) return a;
    if (std::numeric_limits<T>::is_signed && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
}

inline std::uint64_t mulh(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(static_cast<Uint128>(Int128{as_signed(a)} * Int128{as_signed(b)}) >>
                                      64);
}
inline std::uint64_t mulhu(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(Uint128{a} * Uint128{b} >> 64);
}
inline std::uint64_t mulhsu(std::uint64_t a, std::uint64_t b) {
    return mulhu(a, b) - (as_signed(a) < 0 ? b : 0);
}

// Each function object gives the result from the two operands; the second is a register or an immediate.
// clang-format off
struct Add { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a + b; } };
struct Sub { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a - b; } };
struct Sll { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a << (b & 63); } };
struct Srl { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a >> (b & 63); } };
struct Sra {
    static std::uint64_t of(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(as_signed(a) >> (b & 63));
    }
};
struct Slt { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return as_signed(a) < as_signed(b); } };
struct Sltu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a < b; } };
struct Xor { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a ^ b; } };
struct Or { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a | b; } };
struct And { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a & b; } };
struct Addw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a + b); } };
struct Subw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a - b); } };
struct Sllw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a << (b & 31)); } };
struct Srlw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(as_u32(a) >> (b & 31)); } };
struct Sraw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext(as_i32(a) >> (b & 31)); } };
struct Mul { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a * b; } };
struct Mulh { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return mulh(a, b); } };
struct Mulhsu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return mulhsu(a, b); } };
struct Mulhu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return mulhu(a, b); } };
struct Mulw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a * b); } };
struct Div {
    static std::uint64_t of(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(divide(as_signed(a), as_signed(b)));
    }
};
struct Divu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return divide(a, b); } };
struct Rem {
    static std::uint64_t of(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(remainder(as_signed(a), as_signed(b)));
    }
};
struct Remu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return remainder(a, b); } };
struct Divw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext(divide(as_i32(a), as_i32(b))); } };
struct Divuw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(divide(as_u32(a), as_u32(b))); } };
struct Remw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext(remainder(as_i32(a), as_i32(b))); } };
struct Remuw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(remainder(as_u32(a), as_u32(b))); } };

// clang-format on

// clang-format off
struct Eq { static bool of(std::uint64_t a, std::uint64_t b) { return a == b; } };
struct Ne { static bool of(std::uint64_t a, std::uint64_t b) { return a != b; } };
struct Lt { static bool of(std::uint64_t a, std::uint64_t b) { return as_signed(a) < as_signed(b); } };
struct Ge { static bool of(std::uint64_t a, std::uint64_t b) { return as_signed(a) >= as_signed(b); } };
struct Ltu { static bool of(std::uint64_t a, std::uint64_t b) { return a < b; } };
struct Geu { static bool of(std::uint64_t a, std::uint64_t b) { return a >= b; } };
// clang-format on

}  // namespace orrery::emu
