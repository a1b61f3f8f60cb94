// What moves floating-point values without computing: merges, splats, slides by one, scalar moves.
#include "emulator/core/vector/fp_exact.h"

namespace orrery::emu {
namespace {

using exact::load;
using exact::store;
using exact::unbox;
using soft::F16;
using soft::F32;
using soft::F64;

template <class F>
using Bits = typename F::Bits;

template <class F>
void merge(VectorOperands& o) {
    const Bits<F> scalar = unbox<F>(o.scalar);
    for (std::uint64_t i = o.start; i < o.vl; ++i)
        store(o.vd, i, o.active(i) ? scalar : load<Bits<F>>(o.vs2, i));
}

template <class F>
void splat(VectorOperands& o) {
    const Bits<F> scalar = unbox<F>(o.scalar);
    for (std::uint64_t i = o.start; i < o.vl; ++i)
        store(o.vd, i, scalar);
}

template <class F>
void to_element(VectorOperands& o) {
    if (o.start < o.vl) store(o.vd, 0, unbox<F>(o.scalar));
}

template <class F>
void from_element(VectorOperands& o) {
    constexpr unsigned kBits = 8 * sizeof(Bits<F>);
    o.result = load<Bits<F>>(o.vs2, 0);
    if constexpr (kBits < 64) o.result |= ~0ull << kBits;
}

template <class F>
void slide_up(VectorOperands& o) {
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (o.active(i)) store(o.vd, i, i == 0 ? unbox<F>(o.scalar) : load<Bits<F>>(o.vs2, i - 1));
    }
}
// vs2 may be vd: what is read lies above what has been written.
template <class F>
void slide_down(VectorOperands& o) {
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (o.active(i)) store(o.vd, i, i + 1 == o.vl ? unbox<F>(o.scalar) : load<Bits<F>>(o.vs2, i + 1));
    }
}

template <class F>
VectorKernel pick(VectorOp op) {
    switch (op) {
        case VectorOp::kVfmergeVfm:
            return merge<F>;
        case VectorOp::kVfmvVF:
            return splat<F>;
        case VectorOp::kVfmvSF:
            return to_element<F>;
        case VectorOp::kVfmvFS:
            return from_element<F>;
        case VectorOp::kVfslide1upVf:
            return slide_up<F>;
        case VectorOp::kVfslide1downVf:
            return slide_down<F>;
        default:
            return nullptr;
    }
}

}  // namespace

VectorKernel fp_exact_move(VectorOp op, unsigned sew_log2) {
    if (sew_log2 == 4) return pick<F16>(op);
    if (sew_log2 == 5) return pick<F32>(op);
    return sew_log2 == 6 ? pick<F64>(op) : nullptr;
}

}  // namespace orrery::emu
