// Reductions.
#include "emulator/core/vector/fp_exact.h"

namespace orrery::emu {
namespace {

using exact::load;
using exact::mode_of;
using exact::store;
using exact::widen;
using exact::Wider;
using soft::F16;
using soft::F32;
using soft::F64;

template <class F>
using Bits = typename F::Bits;

// F: the format of the elements; R: that of the sum.
template <class R, class F>
void ordered_sum(VectorOperands& o) {
    exact::count(o);
    Bits<R> sum = load<Bits<R>>(o.vs1, 0);
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        const Bits<R> element = widen<R, F>(load<Bits<F>>(o.vs2, i), o.fflags);
        sum = soft::add<R>(sum, element, mode_of(o), o.fflags);
    }
    store(o.vd, 0, sum);
}

// The order of additions that docs/riscv.md lays down: part k takes the elements whose index is k modulo 16,
// in order; then parts are added in pairs that are 8, 4, 2 and 1 apart; last the start value.
template <class R, class F>
void unordered_sum(VectorOperands& o) {
    exact::count(o);
    constexpr std::uint64_t kParts = 16;
    struct Part {
        bool any = false;
        Bits<R> sum = 0;
    };
    Part parts[kParts];
    const auto add = [&](Part& part, Bits<R> value) {
        part.sum = part.any ? soft::add<R>(part.sum, value, mode_of(o), o.fflags) : value;
        part.any = true;
    };
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (o.active(i)) add(parts[i % kParts], widen<R, F>(load<Bits<F>>(o.vs2, i), o.fflags));
    }
    for (std::uint64_t apart = kParts / 2; apart != 0; apart /= 2) {
        for (std::uint64_t k = 0; k < apart; ++k) {
            if (parts[k + apart].any) add(parts[k], parts[k + apart].sum);
        }
    }
    Bits<R> sum = load<Bits<R>>(o.vs1, 0);
    if (parts[0].any) sum = soft::add<R>(sum, parts[0].sum, mode_of(o), o.fflags);
    store(o.vd, 0, sum);
}

template <class F, Bits<F> (*kPick)(Bits<F>, Bits<F>, std::uint8_t&)>
void pick(VectorOperands& o) {
    exact::count(o);
    Bits<F> result = load<Bits<F>>(o.vs1, 0);
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (o.active(i)) result = kPick(result, load<Bits<F>>(o.vs2, i), o.fflags);
    }
    store(o.vd, 0, result);
}

template <class F>
VectorKernel same_width(VectorOp op) {
    switch (op) {
        case VectorOp::kVfredosumVs:
            return ordered_sum<F, F>;
        case VectorOp::kVfredusumVs:
            return unordered_sum<F, F>;
        case VectorOp::kVfredminVs:
            return pick<F, soft::min<F>>;
        case VectorOp::kVfredmaxVs:
            return pick<F, soft::max<F>>;
        default:
            return nullptr;
    }
}

template <class F>
VectorKernel both_widths(VectorOp op) {
    using W = typename Wider<F>::Type;
    if (op == VectorOp::kVfwredosumVs) return ordered_sum<W, F>;
    if (op == VectorOp::kVfwredusumVs) return unordered_sum<W, F>;
    return same_width<F>(op);
}

}  // namespace

VectorKernel fp_exact_reduce(VectorOp op, unsigned sew_log2) {
    if (sew_log2 == 4) return both_widths<F16>(op);
    if (sew_log2 == 5) return both_widths<F32>(op);
    return sew_log2 == 6 ? same_width<F64>(op) : nullptr;
}

}  // namespace orrery::emu
