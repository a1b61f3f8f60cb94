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
};
struct Ne {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a != b;
    }
};
struct Ltu {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a < b;
    }
};
struct Leu {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a <= b;
    }
};
struct Gtu {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return a > b;
    }
};
struct Lt {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return static_cast<Signed<T>>(a) < static_cast<Signed<T>>(b);
    }
};
struct Le {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return static_cast<Signed<T>>(a) <= static_cast<Signed<T>>(b);
    }
};
struct Gt {
    template <class T>
    ORR_LANE bool of(T a, T b) {
        return static_cast<Signed<T>>(a) > static_cast<Signed<T>>(b);
    }
};

// Results of 64 elements to bits; the last bytes of a group may be none of its elements.
ORR_LANE void put_bits(VectorOperands& o, uint64_t from, const uint8_t* results, uint64_t count) {
    const uint64_t word = gather(results);
    std::memcpy(o.vd + from / 8, &word, (count + 7) / 8);
}

template <class Op, bool kScalar>
struct Compare {
    template <class T>
    static void run(VectorOperands& o) {
        const T scalar = static_cast<T>(o.scalar);
        const uint64_t vl = o.vl;
        for (uint64_t from = 0; from < vl; from += 64) {
            const T* const a = reinterpret_cast<const T*>(o.vs2) + from;
            const T* const b = kScalar ? nullptr : reinterpret_cast<const T*>(o.vs1) + from;
            const uint64_t count = lower(64, vl - from);
            uint8_t results[64] = {};
            if (count == 64) {
                for (uint64_t i = 0; i < 64; ++i)
                    results[i] = Op::of(a[i], kScalar ? scalar : b[i]) ? 1 : 0;
            } else {
                for (uint64_t i = 0; i < count; ++i)
                    results[i] = Op::of(a[i], kScalar ? scalar : b[i]) ? 1 : 0;
            }
            put_bits(o, from, results, count);
        }
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

template <class Kernel>
VectorKernel by_sew(unsigned sew_log2) {
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
