#include "emulator/core/vector/fp_exact.h"

namespace orrery::emu {
namespace {

using exact::load;
using exact::mode_of;
using exact::store;
using exact::unbox;
using exact::widen;
using exact::Wider;
using soft::Bf16;
using soft::F16;
using soft::F32;
using soft::F64;
using soft::Mode;

template <class F>
using Bits = typename F::Bits;

template <class F>
Bits<F> negated(Bits<F> a) {
    return static_cast<Bits<F>>(a ^ F::kSign);
}

// --- two operands: a is vs2's element, b that of vs1 or the scalar ---

struct Add {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode mode, std::uint8_t& flags) {
        return soft::add<F>(a, b, mode, flags);
    }
};
struct Sub {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode mode, std::uint8_t& flags) {
        return soft::add<F>(a, negated<F>(b), mode, flags);
    }
};
struct Rsub {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode mode, std::uint8_t& flags) {
        return soft::add<F>(b, negated<F>(a), mode, flags);
    }
};
struct Mul {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode mode, std::uint8_t& flags) {
        return soft::mul<F>(a, b, mode, flags);
    }
};
struct Div {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode mode, std::uint8_t& flags) {
        return soft::div<F>(a, b, mode, flags);
    }
};
struct Rdiv {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode mode, std::uint8_t& flags) {
        return soft::div<F>(b, a, mode, flags);
    }
};
struct Min {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode, std::uint8_t& flags) {
        return soft::min<F>(a, b, flags);
    }
};
struct Max {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode, std::uint8_t& flags) {
        return soft::max<F>(a, b, flags);
    }
};
struct Sgnj {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode, std::uint8_t&) {
        return static_cast<Bits<F>>((a & ~F::kSign) | (b & F::kSign));
    }
};
struct Sgnjn {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode, std::uint8_t&) {
        return static_cast<Bits<F>>((a & ~F::kSign) | (~b & F::kSign));
    }
};
struct Sgnjx {
    template <class F>
    static Bits<F> compute(Bits<F> a, Bits<F> b, Mode, std::uint8_t&) {
        return static_cast<Bits<F>>(a ^ (b & F::kSign));
    }
};

// R: the format of the result and the computation; A and B: those of the operands.
template <class R, class A, class B, class Op, bool kScalar>
void binary(VectorOperands& o) {
    exact::count(o);
    const Bits<B> scalar = kScalar ? unbox<B>(o.scalar) : Bits<B>{};
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        const Bits<R> a = widen<R, A>(load<Bits<A>>(o.vs2, i), o.fflags);
        const Bits<R> b = widen<R, B>(kScalar ? scalar : load<Bits<B>>(o.vs1, i), o.fflags);
        store(o.vd, i, Op::template compute<R>(a, b, mode_of(o), o.fflags));
    }
}

// --- one operand ---

struct Sqrt {
    template <class F>
    static Bits<F> compute(Bits<F> a, Mode mode, std::uint8_t& flags) {
        return soft::sqrt<F>(a, mode, flags);
    }
};
struct Rec7 {
    template <class F>
    static Bits<F> compute(Bits<F> a, Mode mode, std::uint8_t& flags) {
        return soft::reciprocal7<F>(a, mode, flags);
    }
};
struct Rsqrt7 {
    template <class F>
    static Bits<F> compute(Bits<F> a, Mode, std::uint8_t& flags) {
        return soft::rsqrt7<F>(a, flags);
    }
};
struct Class {
    template <class F>
    static Bits<F> compute(Bits<F> a, Mode, std::uint8_t&) {
        return static_cast<Bits<F>>(soft::classify<F>(a));
    }
};

template <class F, class Op>
void unary(VectorOperands& o) {
    exact::count(o);
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        store(o.vd, i, Op::template compute<F>(load<Bits<F>>(o.vs2, i), mode_of(o), o.fflags));
    }
}

// --- fused multiply-add ---

// kAccumulate: vs1 * vs2 + vd, otherwise vs1 * vd + vs2; R is the format of the addend and the result.
template <class R, class A, bool kAccumulate, bool kNegateProduct, bool kNegateAddend, bool kScalar>
void fused(VectorOperands& o) {
    exact::count(o);
    const Bits<A> scalar = kScalar ? unbox<A>(o.scalar) : Bits<A>{};
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        const Bits<R> old = load<Bits<R>>(o.vd, i);
        Bits<R> a = widen<R, A>(kScalar ? scalar : load<Bits<A>>(o.vs1, i), o.fflags);
        const Bits<R> other = widen<R, A>(load<Bits<A>>(o.vs2, i), o.fflags);
        const Bits<R> b = kAccumulate ? other : old;
        Bits<R> c = kAccumulate ? old : other;
        // Negating a NaN does no harm: the result is the canonical one.
        if (kNegateProduct) a = negated<R>(a);
        if (kNegateAddend) c = negated<R>(c);
        store(o.vd, i, soft::fma<R>(a, b, c, mode_of(o), o.fflags));
    }
}

// --- compares ---

template <class F>
bool unordered(Bits<F> a, Bits<F> b) {
    return soft::is_nan<F>(a) || soft::is_nan<F>(b);
}
// Their order as numbers, neither being a NaN.
template <class F>
bool less(Bits<F> a, Bits<F> b) {
    if (((a | b) & ~F::kSign) == 0) return false;
    const bool a_negative = (a & F::kSign) != 0;
    const bool b_negative = (b & F::kSign) != 0;
    if (a_negative != b_negative) return a_negative;
    return a_negative ? a > b : a < b;
}
template <class F>
bool equal(Bits<F> a, Bits<F> b, std::uint8_t& flags) {
    if (unordered<F>(a, b)) {
        if (soft::is_signaling<F>(a) || soft::is_signaling<F>(b)) flags |= kFlagNv;
        return false;
    }
    return a == b || ((a | b) & ~F::kSign) == 0;
}
struct Eq {
    template <class F>
    static bool compute(Bits<F> a, Bits<F> b, std::uint8_t& flags) {
        return equal<F>(a, b, flags);
    }
};
struct Ne {
    template <class F>
    static bool compute(Bits<F> a, Bits<F> b, std::uint8_t& flags) {
        return !equal<F>(a, b, flags);
    }
};
struct Lt {
    template <class F>
    static bool compute(Bits<F> a, Bits<F> b, std::uint8_t& flags) {
        if (!unordered<F>(a, b)) return less<F>(a, b);
        flags |= kFlagNv;
        return false;
    }
};
struct Le {
    template <class F>
    static bool compute(Bits<F> a, Bits<F> b, std::uint8_t& flags) {
        if (!unordered<F>(a, b)) return !less<F>(b, a);
        flags |= kFlagNv;
        return false;
    }
};
struct Gt {
    template <class F>
    static bool compute(Bits<F> a, Bits<F> b, std::uint8_t& flags) {
        return Lt::compute<F>(b, a, flags);
    }
};
struct Ge {
    template <class F>
    static bool compute(Bits<F> a, Bits<F> b, std::uint8_t& flags) {
        return Le::compute<F>(b, a, flags);
    }
};

template <class F, class Op, bool kScalar>
void compare(VectorOperands& o) {
    const Bits<F> scalar = kScalar ? unbox<F>(o.scalar) : Bits<F>{};
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        const Bits<F> b = kScalar ? scalar : load<Bits<F>>(o.vs1, i);
        const bool holds = Op::template compute<F>(load<Bits<F>>(o.vs2, i), b, o.fflags);
        const auto bit = static_cast<std::uint8_t>(1u << (i % 8));
        o.vd[i / 8] = static_cast<std::uint8_t>((o.vd[i / 8] & ~bit) | (holds ? bit : 0));
    }
}

// --- which kernel ---

#define ORR_BINARY(name, Op)               \
    case VectorOp::kV##name##Vv:           \
        return binary<F, F, F, Op, false>; \
    case VectorOp::kV##name##Vf:           \
        return binary<F, F, F, Op, true>
#define ORR_FUSED(name, ...)                    \
    case VectorOp::kV##name##Vv:                \
        return fused<F, F, __VA_ARGS__, false>; \
    case VectorOp::kV##name##Vf:                \
        return fused<F, F, __VA_ARGS__, true>
#define ORR_COMPARE(name, Op)         \
    case VectorOp::kV##name##Vv:      \
        return compare<F, Op, false>; \
    case VectorOp::kV##name##Vf:      \
        return compare<F, Op, true>

template <class F>
VectorKernel same_width(VectorOp op) {
    switch (op) {
        ORR_BINARY(fadd, Add);
        ORR_BINARY(fsub, Sub);
        ORR_BINARY(fmul, Mul);
        ORR_BINARY(fdiv, Div);
        ORR_BINARY(fmin, Min);
        ORR_BINARY(fmax, Max);
        ORR_BINARY(fsgnj, Sgnj);
        ORR_BINARY(fsgnjn, Sgnjn);
        ORR_BINARY(fsgnjx, Sgnjx);
        case VectorOp::kVfrsubVf:
            return binary<F, F, F, Rsub, true>;
        case VectorOp::kVfrdivVf:
            return binary<F, F, F, Rdiv, true>;
        case VectorOp::kVfsqrtV:
            return unary<F, Sqrt>;
        case VectorOp::kVfrec7V:
            return unary<F, Rec7>;
        case VectorOp::kVfrsqrt7V:
            return unary<F, Rsqrt7>;
        case VectorOp::kVfclassV:
            return unary<F, Class>;
            // Accumulates (otherwise vd is a factor), negates the product, negates the addend.
            ORR_FUSED(fmacc, true, false, false);
            ORR_FUSED(fnmacc, true, true, true);
            ORR_FUSED(fmsac, true, false, true);
            ORR_FUSED(fnmsac, true, true, false);
            ORR_FUSED(fmadd, false, false, false);
            ORR_FUSED(fnmadd, false, true, true);
            ORR_FUSED(fmsub, false, false, true);
            ORR_FUSED(fnmsub, false, true, false);
            ORR_COMPARE(mfeq, Eq);
            ORR_COMPARE(mfne, Ne);
            ORR_COMPARE(mflt, Lt);
            ORR_COMPARE(mfle, Le);
        case VectorOp::kVmfgtVf:
            return compare<F, Gt, true>;
        case VectorOp::kVmfgeVf:
            return compare<F, Ge, true>;
        default:
            return nullptr;
    }
}
#undef ORR_BINARY
#undef ORR_FUSED
#undef ORR_COMPARE

#define ORR_WIDENING(name, Op)             \
    case VectorOp::kV##name##Vv:           \
        return binary<W, F, F, Op, false>; \
    case VectorOp::kV##name##Vf:           \
        return binary<W, F, F, Op, true>
#define ORR_WIDE(name, Op)                 \
    case VectorOp::kV##name##Wv:           \
        return binary<W, W, F, Op, false>; \
    case VectorOp::kV##name##Wf:           \
        return binary<W, W, F, Op, true>
#define ORR_FUSED(name, ...)                          \
    case VectorOp::kV##name##Vv:                      \
        return fused<W, F, true, __VA_ARGS__, false>; \
    case VectorOp::kV##name##Vf:                      \
        return fused<W, F, true, __VA_ARGS__, true>

template <class F>
VectorKernel widening(VectorOp op) {
    using W = typename Wider<F>::Type;
    switch (op) {
        ORR_WIDENING(fwadd, Add);
        ORR_WIDENING(fwsub, Sub);
        ORR_WIDENING(fwmul, Mul);
        ORR_WIDE(fwadd, Add);
        ORR_WIDE(fwsub, Sub);
        ORR_FUSED(fwmacc, false, false);
        ORR_FUSED(fwnmacc, true, true);
        ORR_FUSED(fwmsac, false, true);
        ORR_FUSED(fwnmsac, true, false);
        default:
            return nullptr;
    }
}
#undef ORR_WIDENING
#undef ORR_WIDE
#undef ORR_FUSED

template <class F>
VectorKernel both_widths(VectorOp op) {
    const VectorKernel kernel = same_width<F>(op);
    return kernel != nullptr ? kernel : widening<F>(op);
}

}  // namespace

VectorKernel fp_exact_arithmetic(VectorOp op, unsigned sew_log2) {
    if (sew_log2 == 4) {
        if (op == VectorOp::kVfwmaccbf16Vv) return fused<F32, Bf16, true, false, false, false>;
        if (op == VectorOp::kVfwmaccbf16Vf) return fused<F32, Bf16, true, false, false, true>;
        return both_widths<F16>(op);
    }
    if (sew_log2 == 5) return both_widths<F32>(op);
    return sew_log2 == 6 ? same_width<F64>(op) : nullptr;
}

VectorKernel fp_exact_kernel(VectorOp op, unsigned sew_log2) {
    for (const VectorKernelTable part :
         {fp_exact_arithmetic, fp_exact_convert, fp_exact_reduce, fp_exact_move}) {
        if (const VectorKernel kernel = part(op, sew_log2)) return kernel;
    }
    return nullptr;
}

}  // namespace orrery::emu
