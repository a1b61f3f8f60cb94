// Integer arithmetic of one width. An element of vs2 is a, one of vs1 or the scalar is b.
#include "emulator/core/vector/lanes.h"
#include "emulator/core/vector/parts.h"

namespace orrery::emu::ORR_SIMD {
namespace {

struct Add {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(a + b);
    }
};
struct Sub {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(a - b);
    }
};
struct Rsub {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(b - a);
    }
};
struct Minu {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a < b ? a : b;
    }
};
struct Maxu {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a < b ? b : a;
    }
};
struct Min {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<Signed<T>>(a) < static_cast<Signed<T>>(b) ? a : b;
    }
};
struct Max {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<Signed<T>>(a) < static_cast<Signed<T>>(b) ? b : a;
    }
};
struct And {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a & b;
    }
};
struct Or {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a | b;
    }
};
struct Xor {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return a ^ b;
    }
};
struct Sll {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(static_cast<Calc<T>>(a) << (b & (sizeof(T) * 8 - 1)));
    }
};
struct Srl {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(a >> (b & (sizeof(T) * 8 - 1)));
    }
};
struct Sra {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(static_cast<Signed<T>>(a) >> (b & (sizeof(T) * 8 - 1)));
    }
};
struct Mul {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>(static_cast<Calc<T>>(a) * static_cast<Calc<T>>(b));
    }
};
struct Mulhu {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return static_cast<T>((static_cast<Wide<Calc<T>>>(a) * b) >> (8 * sizeof(T)));
    }
};
struct Mulh {
    template <class T>
    ORR_LANE T of(T a, T b) {
        using S = WideSigned<Calc<T>>;
        return static_cast<T>((static_cast<S>(static_cast<Signed<T>>(a)) * static_cast<Signed<T>>(b)) >>
                              (8 * sizeof(T)));
    }
};
struct Mulhsu {
    template <class T>
    ORR_LANE T of(T a, T b) {
        using S = WideSigned<Calc<T>>;
        return static_cast<T>((static_cast<S>(static_cast<Signed<T>>(a)) * static_cast<S>(b)) >>
                              (8 * sizeof(T)));
    }
};
struct Divu {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return b == 0 ? static_cast<T>(~T{0}) : static_cast<T>(a / b);
    }
};
struct Remu {
    template <class T>
    ORR_LANE T of(T a, T b) {
        return b == 0 ? a : static_cast<T>(a % b);
    }
};
struct Div {
    template <class T>
    ORR_LANE T of(T a, T b) {
        if (b == 0) return static_cast<T>(~T{0});
        // The only overflow gives the dividend, which is what negation does.
        if (b == static_cast<T>(~T{0})) return static_cast<T>(0 - static_cast<Calc<T>>(a));
        return static_cast<T>(static_cast<Signed<T>>(a) / static_cast<Signed<T>>(b));
    }
};
struct Rem {
    template <class T>
    ORR_LANE T of(T a, T b) {
        if (b == 0) return a;
        if (b == static_cast<T>(~T{0})) return 0;
        return static_cast<T>(static_cast<Signed<T>>(a) % static_cast<Signed<T>>(b));
    }
};

template <class Op>
struct Vv {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const T* const a = reinterpret_cast<const T*>(o.vs2);
        const T* const b = reinterpret_cast<const T*>(o.vs1);
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = Op::of(a[i], b[i]);
    }
};
template <class Op>
struct Vx {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const T* const a = reinterpret_cast<const T*>(o.vs2);
        const T b = static_cast<T>(o.scalar);
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = Op::of(a[i], b);
    }
};

// Multiply-add. d is also an operand.
struct Macc {
    template <class T>
    ORR_LANE T of(T a, T b, T d) {
        return Add::of(Mul::of(a, b), d);
    }
};
struct Nmsac {
    template <class T>
    ORR_LANE T of(T a, T b, T d) {
        return Sub::of(d, Mul::of(a, b));
    }
};
struct Madd {
    template <class T>
    ORR_LANE T of(T a, T b, T d) {
        return Add::of(Mul::of(b, d), a);
    }
};
struct Nmsub {
    template <class T>
    ORR_LANE T of(T a, T b, T d) {
        return Sub::of(a, Mul::of(b, d));
    }
};
template <class Op>
struct AddVv {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const T* const a = reinterpret_cast<const T*>(o.vs2);
        const T* const b = reinterpret_cast<const T*>(o.vs1);
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = Op::of(a[i], b[i], d[i]);
    }
};
template <class Op>
struct AddVx {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const T* const a = reinterpret_cast<const T*>(o.vs2);
        const T b = static_cast<T>(o.scalar);
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = Op::of(a[i], b, d[i]);
    }
};

struct MoveV {
    template <class T>
    static void run(VectorOperands& o) {
        const uint64_t from = o.start * sizeof(T);
        if (o.vd != o.vs1) std::memcpy(o.vd + from, o.vs1 + from, o.vl * sizeof(T) - from);
    }
};
struct MoveX {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const T b = static_cast<T>(o.scalar);
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = b;
    }
};
struct MoveToX {
    template <class T>
    static void run(VectorOperands& o) {
        T first;
        std::memcpy(&first, o.vs2, sizeof first);
        o.result = static_cast<uint64_t>(static_cast<int64_t>(static_cast<Signed<T>>(first)));
    }
};
struct MoveFromX {
    template <class T>
    static void run(VectorOperands& o) {
        const T first = static_cast<T>(o.scalar);
        std::memcpy(o.vd, &first, sizeof first);
    }
};
struct Id {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = static_cast<T>(i);
    }
};

// With a bit of v0 for each element, `bits` of 64 elements at a time.
template <class Op, bool kScalar>
struct WithBit {
    template <class T>
    static void run(VectorOperands& o) {
        const uint64_t vl = o.vl;
        for (uint64_t from = o.start / 64 * 64; from < vl; from += 64) {
            uint8_t bits[64];
            spread(mask_word(o.mask, from), bits);
            T* const d = reinterpret_cast<T*>(o.vd) + from;
            const T* const a = reinterpret_cast<const T*>(o.vs2) + from;
            const T* const b = kScalar ? nullptr : reinterpret_cast<const T*>(o.vs1) + from;
            const T scalar = static_cast<T>(o.scalar);
            const uint64_t first = from < o.start ? o.start - from : 0;
            const uint64_t count = lower(64, vl - from);
            ORR_ELEMENTS
            for (uint64_t i = first; i < count; ++i)
                d[i] = Op::of(a[i], kScalar ? scalar : b[i], static_cast<T>(bits[i]));
        }
    }
};
struct Merge {
    template <class T>
    ORR_LANE T of(T a, T b, T bit) {
        return bit != 0 ? b : a;
    }
};
struct Adc {
    template <class T>
    ORR_LANE T of(T a, T b, T bit) {
        return static_cast<T>(a + b + bit);
    }
};
struct Sbc {
    template <class T>
    ORR_LANE T of(T a, T b, T bit) {
        return static_cast<T>(a - b - bit);
    }
};

}  // namespace

VectorKernel int_kernel(VectorOp op, unsigned sew_log2) {
#define BINARY(name, kind)                 \
    case VectorOp::kV##name##Vv:           \
        return by_sew<Vv<kind>>(sew_log2); \
    case VectorOp::kV##name##Vx:           \
        return by_sew<Vx<kind>>(sew_log2)
#define BINARY_VI(name, kind)    \
    BINARY(name, kind);          \
    case VectorOp::kV##name##Vi: \
        return by_sew<Vx<kind>>(sew_log2)
#define MULTIPLY_ADD(name, kind)              \
    case VectorOp::kV##name##Vv:              \
        return by_sew<AddVv<kind>>(sew_log2); \
    case VectorOp::kV##name##Vx:              \
        return by_sew<AddVx<kind>>(sew_log2)
#define WITH_BIT(name, kind)                           \
    case VectorOp::kV##name##Vvm:                      \
        return by_sew<WithBit<kind, false>>(sew_log2); \
    case VectorOp::kV##name##Vxm:                      \
        return by_sew<WithBit<kind, true>>(sew_log2)
    switch (op) {
        BINARY_VI(add, Add);
        BINARY(sub, Sub);
        BINARY_VI(and, And);
        BINARY_VI(or, Or);
        BINARY_VI(xor, Xor);
        BINARY_VI(sll, Sll);
        BINARY_VI(srl, Srl);
        BINARY_VI(sra, Sra);
        BINARY(minu, Minu);
        BINARY(min, Min);
        BINARY(maxu, Maxu);
        BINARY(max, Max);
        BINARY(mul, Mul);
        BINARY(mulh, Mulh);
        BINARY(mulhu, Mulhu);
        BINARY(mulhsu, Mulhsu);
        BINARY(divu, Divu);
        BINARY(div, Div);
        BINARY(remu, Remu);
        BINARY(rem, Rem);
        MULTIPLY_ADD(macc, Macc);
        MULTIPLY_ADD(nmsac, Nmsac);
        MULTIPLY_ADD(madd, Madd);
        MULTIPLY_ADD(nmsub, Nmsub);
        WITH_BIT(adc, Adc);
        WITH_BIT(sbc, Sbc);
        WITH_BIT(merge, Merge);
        case VectorOp::kVadcVim:
            return by_sew<WithBit<Adc, true>>(sew_log2);
        case VectorOp::kVmergeVim:
            return by_sew<WithBit<Merge, true>>(sew_log2);
        case VectorOp::kVrsubVx:
        case VectorOp::kVrsubVi:
            return by_sew<Vx<Rsub>>(sew_log2);
        case VectorOp::kVmvVV:
            return by_sew<MoveV>(sew_log2);
        case VectorOp::kVmvVX:
        case VectorOp::kVmvVI:
            return by_sew<MoveX>(sew_log2);
        case VectorOp::kVmvXS:
            return by_sew<MoveToX>(sew_log2);
        case VectorOp::kVmvSX:
            return by_sew<MoveFromX>(sew_log2);
        case VectorOp::kVidV:
            return by_sew<Id>(sew_log2);
        default:
            return nullptr;
    }
#undef BINARY
#undef BINARY_VI
#undef MULTIPLY_ADD
#undef WITH_BIT
}

}  // namespace orrery::emu::ORR_SIMD
