// F and D, Zfhmin and Zfbfmin. In the default rounding mode the host's FPU computes; a NaN result, any other
// rounding mode and whatever a host may do differently goes to soft_fp.h. See host_fp.h for the flags.
//
// This file is compiled so that the optimiser neither moves nor invents FP instructions.
#include <bit>
#include <cmath>

#include "emulator/core/decode.h"
#include "emulator/core/handler.h"
#include "emulator/core/host_fp.h"
#include "emulator/core/soft_fp.h"

namespace orrery::emu {
namespace {

using soft::Bf16;
using soft::F16;
using soft::F32;
using soft::F64;

// How values sit in the 64-bit registers. One that is not NaN-boxed reads as the canonical NaN of its format.
template <class Format>
struct Boxed16 {
    using Soft = Format;
    static std::uint16_t get(const Core* core, unsigned index) {
        const std::uint64_t value = core->f[index];
        return value >> 16 == 0xffffffffffffu ? static_cast<std::uint16_t>(value) : Format::kNan;
    }
    static void put(Core* core, unsigned index, std::uint16_t bits) {
        core->f[index] = 0xffffffffffff0000u | bits;
    }
};
using Half = Boxed16<F16>;
using Brain = Boxed16<Bf16>;
struct Single {
    using Soft = F32;
    using Host = float;
    static std::uint32_t get(const Core* core, unsigned index) {
        const std::uint64_t value = core->f[index];
        return value >> 32 == 0xffffffffu ? static_cast<std::uint32_t>(value) : F32::kNan;
    }
    static void put(Core* core, unsigned index, std::uint32_t bits) {
        core->f[index] = 0xffffffff00000000u | bits;
    }
};
struct Double {
    using Soft = F64;
    using Host = double;
    static std::uint64_t get(const Core* core, unsigned index) { return core->f[index]; }
    static void put(Core* core, unsigned index, std::uint64_t bits) { core->f[index] = bits; }
};
template <class F>
using BitsOf = typename F::Soft::Bits;

bool fp_off(const Core* core) {
    return (core->mstatus & kMstatusFs) == 0;
}
void make_dirty(Core* core) {
    core->mstatus |= kMstatusFs;
}
template <class F>
void count_flops(Core* core, std::uint64_t flops) {
    core->work_counts.flops[sizeof(typename F::Soft::Bits) / 4] += flops;
}

constexpr unsigned kDynamic = 7;
unsigned rounding_mode(const Core* core, unsigned field) {
    return field == kDynamic ? core->frm : field;
}

// Where the host gives the same bits and flags.
bool host_computes(unsigned mode) {
    return ORR_HOST_FP != 0 && mode == soft::kNearestEven;
}

bool host_has_fma() {
#if ORR_HOST_FP
    static const bool has = __builtin_cpu_supports("fma") != 0;
    return has;
#else
    return false;
#endif
}

// The instruction itself: std::fma() is a call, as long as this file is not compiled for hosts that have it.
#if ORR_HOST_FP
inline float host_fma(float a, float b, float c) {
    asm volatile("vfmadd213ss %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
}
inline double host_fma(double a, double b, double c) {
    asm volatile("vfmadd213sd %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
}
#else
template <class T>
T host_fma(T a, T b, T c) {
    return std::fma(a, b, c);
}
#endif

#define ORR_FP_ILLEGAL(core, op, left) \
    do {                               \
        (core)->publish(op, left);     \
        raise_illegal(core, op);       \
        ORR_STOP();                    \
    } while (0)

// --- arithmetic: two operands (the second unused by square roots) ---

struct Add {
    template <class T>
    static T host(T a, T b) {
        return a + b;
    }
    template <class F>
    static typename F::Bits exact(typename F::Bits a, typename F::Bits b, soft::Mode mode,
                                  std::uint8_t& flags) {
        return soft::add<F>(a, b, mode, flags);
    }
};
struct Sub {
    template <class T>
    static T host(T a, T b) {
        return a - b;
    }
    template <class F>
    static typename F::Bits exact(typename F::Bits a, typename F::Bits b, soft::Mode mode,
                                  std::uint8_t& flags) {
        return soft::add<F>(a, b ^ F::kSign, mode, flags);
    }
};
struct Mul {
    template <class T>
    static T host(T a, T b) {
        return a * b;
    }
    template <class F>
    static typename F::Bits exact(typename F::Bits a, typename F::Bits b, soft::Mode mode,
                                  std::uint8_t& flags) {
        return soft::mul<F>(a, b, mode, flags);
    }
};
struct Div {
    template <class T>
    static T host(T a, T b) {
        return a / b;
    }
    template <class F>
    static typename F::Bits exact(typename F::Bits a, typename F::Bits b, soft::Mode mode,
                                  std::uint8_t& flags) {
        return soft::div<F>(a, b, mode, flags);
    }
};
struct Sqrt {
    template <class T>
    static T host(T a, T) {
        return std::sqrt(a);
    }
    template <class F>
    static typename F::Bits exact(typename F::Bits a, typename F::Bits, soft::Mode mode,
                                  std::uint8_t& flags) {
        return soft::sqrt<F>(a, mode, flags);
    }
};

template <class F, class Function, unsigned kLength>
ORR_COLD Next arithmetic_soft(Core* core, Op* op, Left left) {
    const unsigned mode = rounding_mode(core, op->aux);
    if (fp_off(core) || mode > soft::kNearestAway) ORR_FP_ILLEGAL(core, op, left);
    const auto result = Function::template exact<typename F::Soft>(
        F::get(core, op->rs1), F::get(core, op->rs2), static_cast<soft::Mode>(mode), core->fflags);
    F::put(core, op->rd, result);
    make_dirty(core);
    count_flops<F>(core, 1);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}

template <class F, class Function, unsigned kLength>
Next op_arithmetic(Core* core, Op* op, Left left) {
    if (ORR_LIKELY(host_computes(rounding_mode(core, op->aux)) && !fp_off(core))) {
        const auto a = std::bit_cast<typename F::Host>(F::get(core, op->rs1));
        const auto b = std::bit_cast<typename F::Host>(F::get(core, op->rs2));
        const auto result = std::bit_cast<BitsOf<F>>(Function::host(a, b));
        if (ORR_LIKELY(!soft::is_nan<typename F::Soft>(result))) {
            F::put(core, op->rd, result);
            make_dirty(core);
            count_flops<F>(core, 1);
            count_scalar(core, ScalarClass::kFp);
            op += kLength;
            ORR_NEXT(core, op, left);
        }
    }
    const Handler slow = arithmetic_soft<F, Function, kLength>;
    ORR_CALL(slow, core, op, left);
}

// --- fused multiply-add: aux is rs3 << 3 | mode ---

template <class F, bool kNegateProduct, bool kNegateAddend>
struct FusedOperands {
    BitsOf<F> a, b, c;
    FusedOperands(const Core* core, const Op* op)
        : a(F::get(core, op->rs1)), b(F::get(core, op->rs2)), c(F::get(core, op->aux >> 3)) {
        // Negating a NaN does no harm: the result is the canonical one.
        if (kNegateProduct) a ^= F::Soft::kSign;
        if (kNegateAddend) c ^= F::Soft::kSign;
    }
};

template <class F, bool kNegateProduct, bool kNegateAddend, unsigned kLength>
ORR_COLD Next fused_soft(Core* core, Op* op, Left left) {
    const unsigned mode = rounding_mode(core, op->aux & 7u);
    if (fp_off(core) || mode > soft::kNearestAway) ORR_FP_ILLEGAL(core, op, left);
    const FusedOperands<F, kNegateProduct, kNegateAddend> in(core, op);
    F::put(core, op->rd,
           soft::fma<typename F::Soft>(in.a, in.b, in.c, static_cast<soft::Mode>(mode), core->fflags));
    make_dirty(core);
    count_flops<F>(core, 2);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}

template <class F, bool kNegateProduct, bool kNegateAddend, unsigned kLength>
Next op_fused(Core* core, Op* op, Left left) {
    if (ORR_LIKELY(host_computes(rounding_mode(core, op->aux & 7u)) && !fp_off(core) && host_has_fma())) {
        using Host = typename F::Host;
        const FusedOperands<F, kNegateProduct, kNegateAddend> in(core, op);
        const auto result = std::bit_cast<BitsOf<F>>(
            host_fma(std::bit_cast<Host>(in.a), std::bit_cast<Host>(in.b), std::bit_cast<Host>(in.c)));
        if (ORR_LIKELY(!soft::is_nan<typename F::Soft>(result))) {
            F::put(core, op->rd, result);
            make_dirty(core);
            count_flops<F>(core, 2);
            count_scalar(core, ScalarClass::kFp);
            op += kLength;
            ORR_NEXT(core, op, left);
        }
    }
    const Handler slow = fused_soft<F, kNegateProduct, kNegateAddend, kLength>;
    ORR_CALL(slow, core, op, left);
}

// --- results that need no rounding ---

template <class F>
BitsOf<F> sgnj(BitsOf<F> a, BitsOf<F> b, std::uint8_t&) {
    return (a & ~F::Soft::kSign) | (b & F::Soft::kSign);
}
template <class F>
BitsOf<F> sgnjn(BitsOf<F> a, BitsOf<F> b, std::uint8_t&) {
    return (a & ~F::Soft::kSign) | (~b & F::Soft::kSign);
}
template <class F>
BitsOf<F> sgnjx(BitsOf<F> a, BitsOf<F> b, std::uint8_t&) {
    return a ^ (b & F::Soft::kSign);
}
template <class F>
BitsOf<F> fmin(BitsOf<F> a, BitsOf<F> b, std::uint8_t& flags) {
    return soft::min<typename F::Soft>(a, b, flags);
}
template <class F>
BitsOf<F> fmax(BitsOf<F> a, BitsOf<F> b, std::uint8_t& flags) {
    return soft::max<typename F::Soft>(a, b, flags);
}

template <class F, BitsOf<F> (*kFunction)(BitsOf<F>, BitsOf<F>, std::uint8_t&), unsigned kLength>
Next op_pick(Core* core, Op* op, Left left) {
    if (ORR_UNLIKELY(fp_off(core))) ORR_FP_ILLEGAL(core, op, left);
    F::put(core, op->rd, kFunction(F::get(core, op->rs1), F::get(core, op->rs2), core->fflags));
    make_dirty(core);
    if constexpr (kFunction == fmin<F> || kFunction == fmax<F>) count_flops<F>(core, 1);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT(core, op, left);
}

// --- to integer registers ---

template <class F>
bool signaling(BitsOf<F> a) {
    return soft::is_signaling<typename F::Soft>(a);
}
template <class F>
bool unordered(BitsOf<F> a, BitsOf<F> b) {
    return soft::is_nan<typename F::Soft>(a) || soft::is_nan<typename F::Soft>(b);
}
template <class F>
std::uint64_t eq(BitsOf<F> a, BitsOf<F> b, std::uint8_t& flags) {
    if (unordered<F>(a, b)) {
        if (signaling<F>(a) || signaling<F>(b)) flags |= kFlagNv;
        return 0;
    }
    return std::bit_cast<typename F::Host>(a) == std::bit_cast<typename F::Host>(b);
}
template <class F>
std::uint64_t lt(BitsOf<F> a, BitsOf<F> b, std::uint8_t& flags) {
    if (unordered<F>(a, b)) {
        flags |= kFlagNv;
        return 0;
    }
    return std::bit_cast<typename F::Host>(a) < std::bit_cast<typename F::Host>(b);
}
template <class F>
std::uint64_t le(BitsOf<F> a, BitsOf<F> b, std::uint8_t& flags) {
    if (unordered<F>(a, b)) {
        flags |= kFlagNv;
        return 0;
    }
    return std::bit_cast<typename F::Host>(a) <= std::bit_cast<typename F::Host>(b);
}
template <class F>
std::uint64_t classify(BitsOf<F> a, BitsOf<F>, std::uint8_t&) {
    return soft::classify<typename F::Soft>(a);
}

template <class F, std::uint64_t (*kFunction)(BitsOf<F>, BitsOf<F>, std::uint8_t&), unsigned kLength>
Next op_test(Core* core, Op* op, Left left) {
    if (ORR_UNLIKELY(fp_off(core))) ORR_FP_ILLEGAL(core, op, left);
    core->x[op->rd] = kFunction(F::get(core, op->rs1), F::get(core, op->rs2), core->fflags);
    make_dirty(core);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT(core, op, left);
}

// --- moves ---

template <unsigned kLength>
Next op_mv_x_w(Core* core, Op* op, Left left) {
    if (ORR_UNLIKELY(fp_off(core))) ORR_FP_ILLEGAL(core, op, left);
    core->x[op->rd] = sext32(core->f[op->rs1]);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT(core, op, left);
}
// Not boxed is no matter here: fmv.x.h takes the low bits.
template <unsigned kLength>
Next op_mv_x_h(Core* core, Op* op, Left left) {
    if (ORR_UNLIKELY(fp_off(core))) ORR_FP_ILLEGAL(core, op, left);
    core->x[op->rd] = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(core->f[op->rs1])});
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_mv_x_d(Core* core, Op* op, Left left) {
    if (ORR_UNLIKELY(fp_off(core))) ORR_FP_ILLEGAL(core, op, left);
    core->x[op->rd] = core->f[op->rs1];
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <class F, unsigned kLength>
Next op_mv_to_f(Core* core, Op* op, Left left) {
    if (ORR_UNLIKELY(fp_off(core))) ORR_FP_ILLEGAL(core, op, left);
    F::put(core, op->rd, static_cast<BitsOf<F>>(core->x[op->rs1]));
    make_dirty(core);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT(core, op, left);
}

// --- conversions: aux is the integer's kind << 3 | mode ---

template <class To, class From, unsigned kLength>
ORR_COLD Next convert_soft(Core* core, Op* op, Left left) {
    const unsigned mode = rounding_mode(core, op->aux);
    if (fp_off(core) || mode > soft::kNearestAway) ORR_FP_ILLEGAL(core, op, left);
    To::put(core, op->rd,
            soft::convert<typename To::Soft, typename From::Soft>(
                From::get(core, op->rs1), static_cast<soft::Mode>(mode), core->fflags));
    make_dirty(core);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}
template <class To, class From, unsigned kLength>
Next op_convert(Core* core, Op* op, Left left) {
    if (ORR_LIKELY(host_computes(rounding_mode(core, op->aux)) && !fp_off(core))) {
        const auto a = std::bit_cast<typename From::Host>(From::get(core, op->rs1));
        const auto result = std::bit_cast<BitsOf<To>>(static_cast<typename To::Host>(a));
        if (ORR_LIKELY(!soft::is_nan<typename To::Soft>(result))) {
            To::put(core, op->rd, result);
            make_dirty(core);
            count_scalar(core, ScalarClass::kFp);
            op += kLength;
            ORR_NEXT(core, op, left);
        }
    }
    const Handler slow = convert_soft<To, From, kLength>;
    ORR_CALL(slow, core, op, left);
}

// The integer as the host's signed 64-bit one, if it is that.
bool as_host_integer(std::uint64_t value, IntKind kind, std::int64_t& result) {
    switch (kind) {
        case IntKind::kI32:
            result = static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
            return true;
        case IntKind::kU32:
            result = static_cast<std::uint32_t>(value);
            return true;
        case IntKind::kI64:
            result = as_signed(value);
            return true;
        case IntKind::kU64:
            result = as_signed(value);
            return result >= 0;
    }
    return false;
}

template <class F, unsigned kLength>
ORR_COLD Next from_integer_soft(Core* core, Op* op, Left left) {
    const unsigned mode = rounding_mode(core, op->aux & 7u);
    if (fp_off(core) || mode > soft::kNearestAway) ORR_FP_ILLEGAL(core, op, left);
    F::put(core, op->rd,
           soft::from_integer<typename F::Soft>(core->x[op->rs1], static_cast<IntKind>(op->aux >> 3),
                                                static_cast<soft::Mode>(mode), core->fflags));
    make_dirty(core);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}
template <class F, unsigned kLength>
Next op_from_integer(Core* core, Op* op, Left left) {
    std::int64_t value = 0;
    if (ORR_LIKELY(host_computes(rounding_mode(core, op->aux & 7u)) && !fp_off(core) &&
                   as_host_integer(core->x[op->rs1], static_cast<IntKind>(op->aux >> 3), value))) {
        F::put(core, op->rd, std::bit_cast<BitsOf<F>>(static_cast<typename F::Host>(value)));
        make_dirty(core);
        count_scalar(core, ScalarClass::kFp);
        op += kLength;
        ORR_NEXT(core, op, left);
    }
    const Handler slow = from_integer_soft<F, kLength>;
    ORR_CALL(slow, core, op, left);
}

template <class F, unsigned kLength>
ORR_COLD Next to_integer_soft(Core* core, Op* op, Left left) {
    const unsigned mode = rounding_mode(core, op->aux & 7u);
    if (fp_off(core) || mode > soft::kNearestAway) ORR_FP_ILLEGAL(core, op, left);
    core->x[op->rd] =
        soft::to_integer<typename F::Soft>(F::get(core, op->rs1), static_cast<IntKind>(op->aux >> 3),
                                           static_cast<soft::Mode>(mode), core->fflags);
    make_dirty(core);
    count_scalar(core, ScalarClass::kFp);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}
// C's conversion, which truncates, is the host's own for all that a signed 64-bit integer holds.
template <class F, unsigned kLength>
Next op_to_integer(Core* core, Op* op, Left left) {
    if (ORR_LIKELY(ORR_HOST_FP != 0 && rounding_mode(core, op->aux & 7u) == soft::kTowardZero &&
                   !fp_off(core))) {
        const auto kind = static_cast<IntKind>(op->aux >> 3);
        const auto bits = F::get(core, op->rs1);
        const auto value = std::bit_cast<typename F::Host>(bits);
        constexpr typename F::Host kTwo31 = 2147483648.0, kTwo63 = 9223372036854775808.0;
        const bool is_signed = kind == IntKind::kI32 || kind == IntKind::kI64;
        const auto limit = kind == IntKind::kI32 ? kTwo31 : kind == IntKind::kU32 ? 2 * kTwo31 : kTwo63;
        const bool in_range = !soft::is_nan<typename F::Soft>(bits) && value < limit &&
                              (is_signed ? value > -limit : (bits & F::Soft::kSign) == 0);
        if (ORR_LIKELY(in_range)) {
            const auto result = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
            core->x[op->rd] = kind == IntKind::kU32 ? sext32(result) : result;
            make_dirty(core);
            count_scalar(core, ScalarClass::kFp);
            op += kLength;
            ORR_NEXT(core, op, left);
        }
    }
    const Handler slow = to_integer_soft<F, kLength>;
    ORR_CALL(slow, core, op, left);
}

}  // namespace

// Only loads and stores have compressed forms.
void add_fp_handlers(HandlerTable& table) {
#define FOUR(code, ...) table.set(OpCode::code, nullptr, __VA_ARGS__)
#define BOTH(code, handler, ...)                                  \
    FOUR(code##S, handler<Single __VA_OPT__(, ) __VA_ARGS__, 2>); \
    FOUR(code##D, handler<Double __VA_OPT__(, ) __VA_ARGS__, 2>)
    BOTH(kFadd, op_arithmetic, Add);
    BOTH(kFsub, op_arithmetic, Sub);
    BOTH(kFmul, op_arithmetic, Mul);
    BOTH(kFdiv, op_arithmetic, Div);
    BOTH(kFsqrt, op_arithmetic, Sqrt);
    BOTH(kFmadd, op_fused, false, false);
    BOTH(kFmsub, op_fused, false, true);
    BOTH(kFnmsub, op_fused, true, false);
    BOTH(kFnmadd, op_fused, true, true);
    FOUR(kFsgnjS, op_pick<Single, sgnj<Single>, 2>);
    FOUR(kFsgnjD, op_pick<Double, sgnj<Double>, 2>);
    FOUR(kFsgnjnS, op_pick<Single, sgnjn<Single>, 2>);
    FOUR(kFsgnjnD, op_pick<Double, sgnjn<Double>, 2>);
    FOUR(kFsgnjxS, op_pick<Single, sgnjx<Single>, 2>);
    FOUR(kFsgnjxD, op_pick<Double, sgnjx<Double>, 2>);
    FOUR(kFminS, op_pick<Single, fmin<Single>, 2>);
    FOUR(kFminD, op_pick<Double, fmin<Double>, 2>);
    FOUR(kFmaxS, op_pick<Single, fmax<Single>, 2>);
    FOUR(kFmaxD, op_pick<Double, fmax<Double>, 2>);
    FOUR(kFeqS, op_test<Single, eq<Single>, 2>);
    FOUR(kFeqD, op_test<Double, eq<Double>, 2>);
    FOUR(kFltS, op_test<Single, lt<Single>, 2>);
    FOUR(kFltD, op_test<Double, lt<Double>, 2>);
    FOUR(kFleS, op_test<Single, le<Single>, 2>);
    FOUR(kFleD, op_test<Double, le<Double>, 2>);
    FOUR(kFclassS, op_test<Single, classify<Single>, 2>);
    FOUR(kFclassD, op_test<Double, classify<Double>, 2>);
    FOUR(kFcvtSD, op_convert<Single, Double, 2>);
    FOUR(kFcvtDS, op_convert<Double, Single, 2>);
    FOUR(kFmvXW, op_mv_x_w<2>);
    FOUR(kFmvXD, op_mv_x_d<2>);
    FOUR(kFmvWX, op_mv_to_f<Single, 2>);
    FOUR(kFmvDX, op_mv_to_f<Double, 2>);
    FOUR(kFmvXH, op_mv_x_h<2>);
    FOUR(kFmvHX, op_mv_to_f<Half, 2>);
    FOUR(kFcvtSH, convert_soft<Single, Half, 2>);
    FOUR(kFcvtHS, convert_soft<Half, Single, 2>);
    FOUR(kFcvtDH, convert_soft<Double, Half, 2>);
    FOUR(kFcvtHD, convert_soft<Half, Double, 2>);
    FOUR(kFcvtSBf16, convert_soft<Single, Brain, 2>);
    FOUR(kFcvtBf16S, convert_soft<Brain, Single, 2>);
    BOTH(kFcvtToInt, op_to_integer);
    BOTH(kFcvtFromInt, op_from_integer);
#undef FOUR
#undef BOTH
}

}  // namespace orrery::emu
