// Sums, products, quotients and square roots.
#include "emulator/core/vector/fp_simd.h"

namespace orrery::emu::ORR_SIMD {

#if defined(__x86_64__)
namespace {

// a is vs2's element, b that of vs1 or the scalar.
struct Add {
    template <class V>
    static ORR_INLINE V compute(V a, V b) {
        return a + b;
    }
};
struct Sub {
    template <class V>
    static ORR_INLINE V compute(V a, V b) {
        return a - b;
    }
};
struct Rsub {
    template <class V>
    static ORR_INLINE V compute(V a, V b) {
        return b - a;
    }
};
struct Mul {
    template <class V>
    static ORR_INLINE V compute(V a, V b) {
        return a * b;
    }
};
struct Div {
    template <class V>
    static ORR_INLINE V compute(V a, V b) {
        return a / b;
    }
};
struct Rdiv {
    template <class V>
    static ORR_INLINE V compute(V a, V b) {
        return b / a;
    }
};

// C: what is computed in. Of two halves a float has digits enough that rounding twice is rounding once.
template <class R, class A, class B, class C, class Op, bool kScalar>
struct Binary {
    static constexpr unsigned kLanes = kVectorBytes / sizeof(C);
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        using StoreB = typename B::Store;
        const auto a =
            widened<A, C, kLanes>(input<typename A::Store, kLanes, kPartial>(o.vs2, block, A::kOne));
        Vec<StoreB, kLanes> raw;
        if constexpr (kScalar) {
            raw = splat<StoreB, kLanes>(unbox<B>(o.scalar));
            if constexpr (kPartial) {
                raw = lanes_of<StoreB, kLanes>(block.active) ? raw : splat<StoreB, kLanes>(B::kOne);
            }
            keep(raw);
        } else {
            raw = input<StoreB, kLanes, kPartial>(o.vs1, block, B::kOne);
        }
        const auto result = canonical<C, kLanes>(Op::compute(a, widened<B, C, kLanes>(raw)));
        output<typename R::Store, kLanes, kPartial>(o.vd, block, narrowed<R, C, kLanes>(result));
    }
};

template <class F, class C>
struct Sqrt {
    static constexpr unsigned kLanes = kVectorBytes / sizeof(C);
    template <bool kPartial>
    static ORR_INLINE void run(VectorOperands& o, const Block& block) {
        const auto a =
            widened<F, C, kLanes>(input<typename F::Store, kLanes, kPartial>(o.vs2, block, F::kOne));
        const auto result = canonical<C, kLanes>(square_root(a));
        output<typename F::Store, kLanes, kPartial>(o.vd, block, narrowed<F, C, kLanes>(result));
    }
};

#define ORR_BINARY(name, R, A, B, C, Op, vector, scalar)                                     \
    case VectorOp::kV##name##vector:                                                         \
        return in_mode<VectorOp::kV##name##vector, kSewLog2, Binary<R, A, B, C, Op, false>>; \
    case VectorOp::kV##name##scalar:                                                         \
        return in_mode<VectorOp::kV##name##scalar, kSewLog2, Binary<R, A, B, C, Op, true>>

template <class F, class C, unsigned kSewLog2>
VectorKernel same_width(VectorOp op) {
    switch (op) {
        ORR_BINARY(fadd, F, F, F, C, Add, Vv, Vf);
        ORR_BINARY(fsub, F, F, F, C, Sub, Vv, Vf);
        ORR_BINARY(fmul, F, F, F, C, Mul, Vv, Vf);
        ORR_BINARY(fdiv, F, F, F, C, Div, Vv, Vf);
        case VectorOp::kVfrsubVf:
            return in_mode<VectorOp::kVfrsubVf, kSewLog2, Binary<F, F, F, C, Rsub, true>>;
        case VectorOp::kVfrdivVf:
            return in_mode<VectorOp::kVfrdivVf, kSewLog2, Binary<F, F, F, C, Rdiv, true>>;
        case VectorOp::kVfsqrtV:
            return in_mode<VectorOp::kVfsqrtV, kSewLog2, Sqrt<F, C>>;
        default:
            return nullptr;
    }
}

template <class F, class W, class C, unsigned kSewLog2>
VectorKernel widening(VectorOp op) {
    switch (op) {
        ORR_BINARY(fwadd, W, F, F, C, Add, Vv, Vf);
        ORR_BINARY(fwsub, W, F, F, C, Sub, Vv, Vf);
        ORR_BINARY(fwmul, W, F, F, C, Mul, Vv, Vf);
        ORR_BINARY(fwadd, W, W, F, C, Add, Wv, Wf);
        ORR_BINARY(fwsub, W, W, F, C, Sub, Wv, Wf);
        default:
            return nullptr;
    }
}
#undef ORR_BINARY

}  // namespace

VectorKernel simd_arithmetic(VectorOp op, unsigned sew_log2) {
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
VectorKernel simd_arithmetic(VectorOp, unsigned) {
    return nullptr;
}
#endif

}  // namespace orrery::emu::ORR_SIMD
