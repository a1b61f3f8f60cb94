// Slides, gathers and compression.
#include "emulator/core/vector/lanes.h"
#include "emulator/core/vector/parts.h"

namespace orrery::emu::ORR_SIMD {
namespace {

struct SlideUp {
    template <class T>
    static void run(VectorOperands& o) {
        if (o.scalar >= o.vl) return;
        const uint64_t from = o.start > o.scalar ? o.start : o.scalar;
        std::memcpy(o.vd + from * sizeof(T), o.vs2 + (from - o.scalar) * sizeof(T),
                    (o.vl - from) * sizeof(T));
    }
};
struct SlideDown {
    template <class T>
    static void run(VectorOperands& o) {
        // Elements that come from below VLMAX; 0 above it.
        const uint64_t there = o.scalar >= o.vlmax ? 0 : lower(o.vlmax - o.scalar, o.vl);
        const uint64_t end = there > o.start ? there : o.start;
        if (there > o.start)
            std::memmove(o.vd + o.start * sizeof(T), o.vs2 + (o.start + o.scalar) * sizeof(T),
                         (there - o.start) * sizeof(T));
        std::memset(o.vd + end * sizeof(T), 0, (o.vl - end) * sizeof(T));
    }
};
struct Slide1Up {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const uint64_t from = o.start > 0 ? o.start : 1;
        if (o.vl > from) std::memcpy(d + from, o.vs2 + (from - 1) * sizeof(T), (o.vl - from) * sizeof(T));
        if (o.start == 0) d[0] = static_cast<T>(o.scalar);
    }
};
struct Slide1Down {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        std::memmove(d + o.start, o.vs2 + (o.start + 1) * sizeof(T), (o.vl - 1 - o.start) * sizeof(T));
        d[o.vl - 1] = static_cast<T>(o.scalar);
    }
};

template <class T, class Index>
void gather_by(VectorOperands& o) {
    T* const d = reinterpret_cast<T*>(o.vd);
    const T* const a = reinterpret_cast<const T*>(o.vs2);
    const Index* const index = reinterpret_cast<const Index*>(o.vs1);
    const uint64_t vl = o.vl, vlmax = o.vlmax;
    for (uint64_t i = o.start; i < vl; ++i)
        d[i] = index[i] < vlmax ? a[index[i]] : T{0};
}
struct Gather {
    template <class T>
    static void run(VectorOperands& o) {
        gather_by<T, T>(o);
    }
};
struct Gather16 {
    template <class T>
    static void run(VectorOperands& o) {
        gather_by<T, uint16_t>(o);
    }
};
struct GatherX {
    template <class T>
    static void run(VectorOperands& o) {
        T* const d = reinterpret_cast<T*>(o.vd);
        const T value = o.scalar < o.vlmax ? reinterpret_cast<const T*>(o.vs2)[o.scalar] : T{0};
        const uint64_t vl = o.vl;
        ORR_ELEMENTS
        for (uint64_t i = o.start; i < vl; ++i)
            d[i] = value;
    }
};
struct Compress {
    template <class T>
    static void run(VectorOperands& o) {
        T* d = reinterpret_cast<T*>(o.vd);
        const T* const a = reinterpret_cast<const T*>(o.vs2);
        for (uint64_t from = 0; from < o.vl; from += 64) {
            for (uint64_t left = mask_word(o.vs1, from) & range_word(from, 0, o.vl); left != 0;
                 left &= left - 1)
                *d++ = a[from + static_cast<unsigned>(__builtin_ctzll(left))];
        }
    }
};

}  // namespace

VectorKernel permute_kernel(VectorOp op, unsigned sew_log2) {
    switch (op) {
        case VectorOp::kVslideupVx:
        case VectorOp::kVslideupVi:
            return by_sew<SlideUp>(sew_log2);
        case VectorOp::kVslidedownVx:
        case VectorOp::kVslidedownVi:
            return by_sew<SlideDown>(sew_log2);
        case VectorOp::kVslide1upVx:
            return by_sew<Slide1Up>(sew_log2);
        case VectorOp::kVslide1downVx:
            return by_sew<Slide1Down>(sew_log2);
        case VectorOp::kVrgatherVv:
            return by_sew<Gather>(sew_log2);
        case VectorOp::kVrgatherei16Vv:
            return by_sew<Gather16>(sew_log2);
        case VectorOp::kVrgatherVx:
        case VectorOp::kVrgatherVi:
            return by_sew<GatherX>(sew_log2);
        case VectorOp::kVcompressVm:
            return by_sew<Compress>(sew_log2);
        default:
            return nullptr;
    }
}

}  // namespace orrery::emu::ORR_SIMD
