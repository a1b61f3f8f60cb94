// Conversions between formats, and between floating point and integers.
#include <type_traits>

#include "emulator/core/vector/fp_exact.h"

namespace orrery::emu {
namespace {

using exact::load;
using exact::mode_of;
using exact::store;
using exact::Wider;
using soft::Bf16;
using soft::F16;
using soft::F32;
using soft::F64;
using soft::Mode;

template <class F>
using Bits = typename F::Bits;

// The rounding modes that an instruction brings itself.
constexpr Mode kFrm = static_cast<Mode>(7);
template <Mode kMode>
Mode mode(const VectorOperands& o) {
    return kMode == kFrm ? mode_of(o) : kMode;
}

// I's signedness is the instruction's.
template <class I, class F, Mode kMode>
void to_integer(VectorOperands& o) {
    exact::count(o);
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        const std::uint64_t value = soft::to_integer<F>(load<Bits<F>>(o.vs2, i), 8 * sizeof(I),
                                                        std::is_signed_v<I>, mode<kMode>(o), o.fflags);
        store(o.vd, i, static_cast<I>(value));
    }
}

template <class F, class I>
void from_integer(VectorOperands& o) {
    exact::count(o);
    constexpr IntKind kKind = std::is_signed_v<I> ? IntKind::kI64 : IntKind::kU64;
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        const auto value = static_cast<std::uint64_t>(load<I>(o.vs2, i));  // extends the sign if I has one
        store(o.vd, i, soft::from_integer<F>(value, kKind, mode_of(o), o.fflags));
    }
}

template <class To, class From, Mode kMode>
void between_formats(VectorOperands& o) {
    exact::count(o);
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        store(o.vd, i, soft::convert<To, From>(load<Bits<From>>(o.vs2, i), mode<kMode>(o), o.fflags));
    }
}

// F: the format of SEW; I: the integer of SEW bits.
template <class F, class I>
VectorKernel same_width(VectorOp op) {
    using U = std::make_unsigned_t<I>;
    switch (op) {
        case VectorOp::kVfcvtXuFV:
            return to_integer<U, F, kFrm>;
        case VectorOp::kVfcvtXFV:
            return to_integer<I, F, kFrm>;
        case VectorOp::kVfcvtRtzXuFV:
            return to_integer<U, F, soft::kTowardZero>;
        case VectorOp::kVfcvtRtzXFV:
            return to_integer<I, F, soft::kTowardZero>;
        case VectorOp::kVfcvtFXuV:
            return from_integer<F, U>;
        case VectorOp::kVfcvtFXV:
            return from_integer<F, I>;
        default:
            return nullptr;
    }
}

// F: the format of SEW; WideI: the integer of 2*SEW bits.
template <class F, class WideI>
VectorKernel from_narrow_float(VectorOp op) {
    using WideU = std::make_unsigned_t<WideI>;
    using W = typename Wider<F>::Type;
    switch (op) {
        case VectorOp::kVfwcvtXuFV:
            return to_integer<WideU, F, kFrm>;
        case VectorOp::kVfwcvtXFV:
            return to_integer<WideI, F, kFrm>;
        case VectorOp::kVfwcvtRtzXuFV:
            return to_integer<WideU, F, soft::kTowardZero>;
        case VectorOp::kVfwcvtRtzXFV:
            return to_integer<WideI, F, soft::kTowardZero>;
        case VectorOp::kVfwcvtFFV:
            return between_formats<W, F, kFrm>;
        case VectorOp::kVfncvtFXuW:
            return from_integer<F, WideU>;
        case VectorOp::kVfncvtFXW:
            return from_integer<F, WideI>;
        case VectorOp::kVfncvtFFW:
            return between_formats<F, W, kFrm>;
        case VectorOp::kVfncvtRodFFW:
            return between_formats<F, W, soft::kOdd>;
        default:
            return nullptr;
    }
}

// W: the format of 2*SEW; I: the integer of SEW bits.
template <class W, class I>
VectorKernel from_wide_float(VectorOp op) {
    using U = std::make_unsigned_t<I>;
    switch (op) {
        case VectorOp::kVfwcvtFXuV:
            return from_integer<W, U>;
        case VectorOp::kVfwcvtFXV:
            return from_integer<W, I>;
        case VectorOp::kVfncvtXuFW:
            return to_integer<U, W, kFrm>;
        case VectorOp::kVfncvtXFW:
            return to_integer<I, W, kFrm>;
        case VectorOp::kVfncvtRtzXuFW:
            return to_integer<U, W, soft::kTowardZero>;
        case VectorOp::kVfncvtRtzXFW:
            return to_integer<I, W, soft::kTowardZero>;
        default:
            return nullptr;
    }
}

VectorKernel first(VectorKernel a, VectorKernel b, VectorKernel c) {
    if (a != nullptr) return a;
    return b != nullptr ? b : c;
}

}  // namespace

VectorKernel fp_exact_convert(VectorOp op, unsigned sew_log2) {
    switch (sew_log2) {
        case 3:
            return from_wide_float<F16, std::int8_t>(op);
        case 4:
            if (op == VectorOp::kVfwcvtbf16FFV) return between_formats<F32, Bf16, kFrm>;
            if (op == VectorOp::kVfncvtbf16FFW) return between_formats<Bf16, F32, kFrm>;
            return first(same_width<F16, std::int16_t>(op), from_narrow_float<F16, std::int32_t>(op),
                         from_wide_float<F32, std::int16_t>(op));
        case 5:
            return first(same_width<F32, std::int32_t>(op), from_narrow_float<F32, std::int64_t>(op),
                         from_wide_float<F64, std::int32_t>(op));
        case 6:
            return same_width<F64, std::int64_t>(op);
        default:
            return nullptr;
    }
}

}  // namespace orrery::emu
