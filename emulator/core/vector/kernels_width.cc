// Integer arithmetic that widens or narrows. T is an element of SEW; a is one of vs2, b of vs1 or the scalar.
#include "emulator/core/vector/lanes.h"
#include "emulator/core/vector/parts.h"

namespace orrery::emu::ORR_SIMD {
namespace {

// How a narrow element becomes a wide one.
struct Zero {
    template <class T>
    ORR_LANE Wide<T> of(T value) {
        return value;
    }
};
struct Sign {
    template <class T>
    ORR_LANE Wide<T> of(T value) {
        return static_cast<Wide<T>>(static_cast<WideSigned<T>>(static_cast<Signed<T>>(value)));
    }
};

struct Add {
    template <class W>
    ORR_LANE W of(W a, W b, W) {
        return static_cast<W>(a + b);
    }
};
struct Sub {
    template <class W>
    ORR_LANE W of(W a, W b, W) {
        return static_cast<W>(a - b);
    }
};
struct Mul {
    template <class W>
    ORR_LANE W of(W a, W b, W) {
        return static_cast<W>(static_cast<Calc<W>>(a) * static_cast<Calc<W>>(b));
    }
};
struct Macc {
    template <class W>
    ORR_LANE W of(W a, W b, W d) {
        return static_cast<W>(static_cast<Calc<W>>(a) * static_cast<Calc<W>>(b) + d);
    }
};

template <class Op, class OfA, class OfB, bool kScalar>
struct Widen {
    template <class T>
    static void run(VectorOperands& o) {
        using W = Wide<T>;
        W* const d = reinterpret_cast<W*>(o.vd);
        const T* const a = reinterpret_cast<const T*>(o.vs2);
        const T* const b = reinterpret_cast<const T*>(o.vs1);
        const W scalar = OfB::of(static_cast<T>(o.scalar));
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = Op::of(OfA::of(a[i]), kScalar ? scalar : OfB::of(b[i]), d[i]);
    }
};
// vs2 is wide already.
template <class Op, class OfB, bool kScalar>
struct WidenW {
    template <class T>
    static void run(VectorOperands& o) {
        using W = Wide<T>;
        W* const d = reinterpret_cast<W*>(o.vd);
        const W* const a = reinterpret_cast<const W*>(o.vs2);
        const T* const b = reinterpret_cast<const T*>(o.vs1);
        const W scalar = OfB::of(static_cast<T>(o.scalar));
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = Op::of(a[i], kScalar ? scalar : OfB::of(b[i]), W{});
    }
};
template <bool kSigned, bool kScalar>
struct NarrowShift {
    template <class T>
    static void run(VectorOperands& o) {
        using W = Wide<T>;
        T* const d = reinterpret_cast<T*>(o.vd);
        const W* const a = reinterpret_cast<const W*>(o.vs2);
        const T* const b = reinterpret_cast<const T*>(o.vs1);
        const T scalar = static_cast<T>(o.scalar);
        constexpr unsigned kMask = sizeof(W) * 8 - 1;
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i) {
            const unsigned by = static_cast<unsigned>((kScalar ? scalar : b[i]) & kMask);
            d[i] = static_cast<T>(kSigned ? static_cast<W>(static_cast<WideSigned<T>>(a[i]) >> by)
                                          : static_cast<W>(a[i] >> by));
        }
    }
};
template <class From, class To>
void extend(VectorOperands& o) {
    To* const d = reinterpret_cast<To*>(o.vd);
    const From* const a = reinterpret_cast<const From*>(o.vs2);
    const uint64_t vl = o.vl;
    ORR_ELEMENTS
    for (uint64_t i = o.start; i < vl; ++i)
        d[i] = static_cast<To>(a[i]);
}

// 2 * SEW is at most 64.
template <class Kernel>
VectorKernel narrow_sew(unsigned sew_log2) {
    switch (sew_log2) {
        case 3:
            return Kernel::template run<uint8_t>;
        case 4:
            return Kernel::template run<uint16_t>;
        case 5:
            return Kernel::template run<uint32_t>;
        default:
            return nullptr;
    }
}

VectorKernel extension(bool sign, unsigned by_log2, unsigned sew_log2) {
    switch (by_log2 << 4 | sew_log2) {
        case 1 << 4 | 4:
            return sign ? extend<int8_t, int16_t> : extend<uint8_t, uint16_t>;
        case 1 << 4 | 5:
            return sign ? extend<int16_t, int32_t> : extend<uint16_t, uint32_t>;
        case 1 << 4 | 6:
            return sign ? extend<int32_t, int64_t> : extend<uint32_t, uint64_t>;
        case 2 << 4 | 5:
            return sign ? extend<int8_t, int32_t> : extend<uint8_t, uint32_t>;
        case 2 << 4 | 6:
            return sign ? extend<int16_t, int64_t> : extend<uint16_t, uint64_t>;
        case 3 << 4 | 6:
            return sign ? extend<int8_t, int64_t> : extend<uint8_t, uint64_t>;
        default:
            return nullptr;
    }
}

}  // namespace

VectorKernel width_kernel(VectorOp op, unsigned sew_log2) {
#define WIDEN(name, kind, of_a, of_b)                                \
    case VectorOp::kV##name##Vv:                                     \
        return narrow_sew<Widen<kind, of_a, of_b, false>>(sew_log2); \
    case VectorOp::kV##name##Vx:                                     \
        return narrow_sew<Widen<kind, of_a, of_b, true>>(sew_log2)
#define WIDEN_W(name, kind, of_b)                               \
    case VectorOp::kV##name##Wv:                                \
        return narrow_sew<WidenW<kind, of_b, false>>(sew_log2); \
    case VectorOp::kV##name##Wx:                                \
        return narrow_sew<WidenW<kind, of_b, true>>(sew_log2)
#define NARROW(name, is_signed)                                     \
    case VectorOp::kV##name##Wv:                                    \
        return narrow_sew<NarrowShift<is_signed, false>>(sew_log2); \
    case VectorOp::kV##name##Wx:                                    \
    case VectorOp::kV##name##Wi:                                    \
        return narrow_sew<NarrowShift<is_signed, true>>(sew_log2)
    switch (op) {
        WIDEN(waddu, Add, Zero, Zero);
        WIDEN(wadd, Add, Sign, Sign);
        WIDEN(wsubu, Sub, Zero, Zero);
        WIDEN(wsub, Sub, Sign, Sign);
        WIDEN_W(waddu, Add, Zero);
        WIDEN_W(wadd, Add, Sign);
        WIDEN_W(wsubu, Sub, Zero);
        WIDEN_W(wsub, Sub, Sign);
        WIDEN(wmulu, Mul, Zero, Zero);
        WIDEN(wmul, Mul, Sign, Sign);
        WIDEN(wmulsu, Mul, Sign, Zero);
        WIDEN(wmaccu, Macc, Zero, Zero);
        WIDEN(wmacc, Macc, Sign, Sign);
        // The first letter is of vs1, the second of vs2.
        WIDEN(wmaccsu, Macc, Zero, Sign);
        case VectorOp::kVwmaccusVx:
            return narrow_sew<Widen<Macc, Sign, Zero, true>>(sew_log2);
            NARROW(nsrl, false);
            NARROW(nsra, true);
        case VectorOp::kVzextVf2:
            return extension(false, 1, sew_log2);
        case VectorOp::kVzextVf4:
            return extension(false, 2, sew_log2);
        case VectorOp::kVzextVf8:
            return extension(false, 3, sew_log2);
        case VectorOp::kVsextVf2:
            return extension(true, 1, sew_log2);
        case VectorOp::kVsextVf4:
            return extension(true, 2, sew_log2);
        case VectorOp::kVsextVf8:
            return extension(true, 3, sew_log2);
        default:
            return nullptr;
    }
#undef WIDEN
#undef WIDEN_W
#undef NARROW
}

}  // namespace orrery::emu::ORR_SIMD
