// Reductions, and moves of floating-point values.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "tests/unit/core/vector_fp/harness.h"

namespace orrery::emu::test {
namespace {

using reference::decode;
using reference::Format;
using reference::kF16;
using reference::kF32;
using reference::kF64;
using reference::Value;

using Group = std::vector<std::uint8_t>;

void put(Group& group, std::uint64_t index, Format f, std::uint64_t value) {
    std::memcpy(group.data() + index * static_cast<unsigned>(f.bits) / 8, &value,
                static_cast<unsigned>(f.bits) / 8);
}
std::uint64_t get(const Group& group, std::uint64_t index, Format f) {
    std::uint64_t value = 0;
    std::memcpy(&value, group.data() + index * static_cast<unsigned>(f.bits) / 8,
                static_cast<unsigned>(f.bits) / 8);
    return value;
}
unsigned log2_of(Format f) {
    return f.bits == 16 ? 4 : f.bits == 32 ? 5 : 6;
}

struct Reduction {
    Format f, to;  // of the elements, and of the result
    VectorOperands o;
    Group d, a, b, mask;
    std::uint8_t flags = 0;

    reference::Mode mode() const { return static_cast<reference::Mode>(o.frm); }
    // The element as a value of the result's format.
    std::uint64_t element(std::uint64_t i) {
        const Value value = decode(f, get(a, i, f));
        return f.bits == to.bits ? get(a, i, f) : reference::convert(to, value, mode(), flags);
    }
    std::uint64_t add(std::uint64_t x, std::uint64_t y) {
        return reference::add(to, decode(to, x), decode(to, y), mode(), flags);
    }
};

std::uint64_t ordered(Reduction& r) {
    std::uint64_t sum = get(r.b, 0, r.to);
    for (std::uint64_t i = 0; i < r.o.vl; ++i)
        if (r.o.active(i)) sum = r.add(sum, r.element(i));
    return sum;
}

// The sum of the elements first, first + step, ..., as a tree: those of both halves of the sequence's
// classes.
std::optional<std::uint64_t> tree(Reduction& r, std::uint64_t first, std::uint64_t step) {
    std::optional<std::uint64_t> sum;
    if (step == 16) {
        for (std::uint64_t i = first; i < r.o.vl; i += 16) {
            if (!r.o.active(i)) continue;
            const std::uint64_t element = r.element(i);
            sum = sum ? r.add(*sum, element) : element;
        }
        return sum;
    }
    const std::optional<std::uint64_t> low = tree(r, first, 2 * step);
    const std::optional<std::uint64_t> high = tree(r, first + step, 2 * step);
    if (low && high) return r.add(*low, *high);
    return low ? low : high;
}
std::uint64_t unordered(Reduction& r) {
    const std::optional<std::uint64_t> sum = tree(r, 0, 1);
    return sum ? r.add(get(r.b, 0, r.to), *sum) : get(r.b, 0, r.to);
}

template <int kWanted>
std::uint64_t extremum(Reduction& r) {
    std::uint64_t best = get(r.b, 0, r.to);
    for (std::uint64_t i = 0; i < r.o.vl; ++i) {
        if (!r.o.active(i)) continue;
        const std::uint64_t other = r.element(i);
        const Value a = decode(r.to, best);
        const Value b = decode(r.to, other);
        if (a.kind == Value::kSignalingNan || b.kind == Value::kSignalingNan) r.flags |= reference::kNv;
        if (a.is_nan() && b.is_nan()) {
            best = reference::canonical_nan(r.to);
        } else if (a.is_nan()) {
            best = other;
        } else if (!b.is_nan()) {
            int order = reference::compare(b, a);
            if (order == 0) order = static_cast<int>(a.negative) - static_cast<int>(b.negative);
            if (order == kWanted) best = other;
        }
    }
    return best;
}

void check(VectorOp op, Format f, Format to, std::uint64_t (*expected)(Reduction&)) {
    std::mt19937_64 random(seed());
    for (unsigned round = 0; round < 200; ++round) {
        const std::uint64_t most = kMaxGroupBytes * 8 / static_cast<unsigned>(f.bits);
        Reduction r{f,
                    to,
                    {},
                    Group(kMaxGroupBytes, 0xa5),
                    Group(kMaxGroupBytes),
                    Group(kMaxGroupBytes, 0xa5),
                    Group(kMaxVlenBytes)};
        const Operand operand = floating(f);
        const bool tame = random() % 2 == 0;  // else a NaN or infinity swallows everything
        // The sign of a sum of zeros tells what was added in place of elements that are not there.
        const bool only_zeros = random() % 8 == 0;
        const bool negative = random() % 2 == 0;
        for (std::uint64_t i = 0; i < most; ++i) {
            std::uint64_t value = interesting(operand, random);
            const std::uint64_t exponent = (value & reference::infinity(f, false)) >> f.mantissa;
            if (tame && exponent > static_cast<std::uint64_t>(f.bias + f.bias / 2))
                value -= (exponent / 2) << f.mantissa;
            if (only_zeros) value = reference::zero(f, negative);
            put(r.a, i, f, value);
        }
        put(r.b, 0, to, only_zeros ? reference::zero(to, negative) : interesting(floating(to), random));
        r.o.vl = 1 + random() % (random() % 2 == 0 ? 40 : most);
        r.o.frm = static_cast<std::uint8_t>(random() % 5);
        r.o.vlmax = most;
        r.o.vlen_bytes = kMaxVlenBytes;
        const std::uint64_t density = random() % 3;
        for (std::uint8_t& byte : r.mask)
            byte =
                density == 0 ? 0 : static_cast<std::uint8_t>(density == 1 ? random() & random() : random());
        if (random() % 2 == 0) r.o.mask = r.mask.data();
        const std::uint64_t want = expected(r);
        for (const Simd simd : usable_simd()) {
            VectorOperands own = r.o;
            Group d = r.d;
            own.vd = d.data();
            own.vs2 = r.a.data();
            own.vs1 = r.b.data();
            run_kernel(kernel_of(simd, op, log2_of(f)), own);
            ASSERT_EQ(get(d, 0, to), want)
                << row(op).name << " of " << f.bits << " bits, vl " << r.o.vl << " frm " << +r.o.frm << " "
                << to_string(simd) << std::hex << " from " << get(r.b, 0, to) << ", first " << get(r.a, 0, f);
            ASSERT_EQ(own.fflags, r.flags) << row(op).name << " of " << f.bits << " bits " << to_string(simd);
            put(d, 0, to, get(r.d, 0, to));
            ASSERT_EQ(d, r.d) << "only element 0 is written";
        }
    }
}

TEST(VectorFpReduction, Sums) {
    for (const Format f : {kF16, kF32, kF64}) {
        check(VectorOp::kVfredosumVs, f, f, ordered);
        check(VectorOp::kVfredusumVs, f, f, unordered);
    }
}
TEST(VectorFpReduction, WideningSums) {
    check(VectorOp::kVfwredosumVs, kF16, kF32, ordered);
    check(VectorOp::kVfwredusumVs, kF16, kF32, unordered);
    check(VectorOp::kVfwredosumVs, kF32, kF64, ordered);
    check(VectorOp::kVfwredusumVs, kF32, kF64, unordered);
}
TEST(VectorFpReduction, LeastAndGreatest) {
    for (const Format f : {kF16, kF32, kF64}) {
        check(VectorOp::kVfredminVs, f, f, extremum<-1>);
        check(VectorOp::kVfredmaxVs, f, f, extremum<1>);
    }
}

// Moves: the result of element i, from the old element, vs2's neighbours and the scalar.
struct Move {
    std::uint64_t old, a, before, after, scalar, index, vl;
    bool masked_in;
};
void check_move(VectorOp op, Format f, bool has_mask, std::uint64_t (*expected)(const Move&)) {
    std::mt19937_64 random(seed());
    const std::uint64_t ones = f.bits == 64 ? 0 : ~0ull << f.bits;
    for (unsigned round = 0; round < 200; ++round) {
        const std::uint64_t most = kMaxGroupBytes * 8 / static_cast<unsigned>(f.bits);
        Group d(kMaxGroupBytes), a(kMaxGroupBytes), mask(kMaxVlenBytes);
        for (Group* group : {&d, &a, &mask})
            for (std::uint8_t& byte : *group)
                byte = static_cast<std::uint8_t>(random());
        VectorOperands o;
        o.vl = 1 + random() % most;
        if (op != VectorOp::kVfmvSF && random() % 4 == 0) o.start = random() % o.vl;
        o.scalar = random();
        const std::uint64_t value =
            random() % 4 != 0 || f.bits == 64 ? o.scalar & ~ones : reference::canonical_nan(f);
        if (value == (o.scalar & ~ones)) o.scalar |= ones;
        if (has_mask) o.mask = mask.data();
        Group want = d;
        for (std::uint64_t i = o.start; i < o.vl; ++i) {
            const Move move{get(d, i, f),
                            get(a, i, f),
                            i == 0 ? 0 : get(a, i - 1, f),
                            i + 1 < o.vl ? get(a, i + 1, f) : 0,
                            value,
                            i,
                            o.vl,
                            o.active(i)};
            put(want, i, f, expected(move));
        }
        for (const Simd simd : usable_simd()) {
            VectorOperands own = o;
            Group got = d;
            own.vd = got.data();
            own.vs2 = a.data();
            run_kernel(kernel_of(simd, op, log2_of(f)), own);
            ASSERT_EQ(got, want) << row(op).name << " of " << f.bits << " bits " << to_string(simd);
            ASSERT_EQ(own.fflags, 0);
        }
    }
}

TEST(VectorFpMove, MergesSplatsAndSlides) {
    for (const Format f : {kF16, kF32, kF64}) {
        check_move(VectorOp::kVfmergeVfm, f, true,
                   [](const Move& m) { return m.masked_in ? m.scalar : m.a; });
        check_move(VectorOp::kVfmvVF, f, false, [](const Move& m) { return m.scalar; });
        check_move(VectorOp::kVfmvSF, f, false,
                   [](const Move& m) { return m.index == 0 ? m.scalar : m.old; });
        for (const bool has_mask : {false, true}) {
            check_move(VectorOp::kVfslide1upVf, f, has_mask, [](const Move& m) {
                return !m.masked_in ? m.old : m.index == 0 ? m.scalar : m.before;
            });
            check_move(VectorOp::kVfslide1downVf, f, has_mask, [](const Move& m) {
                return !m.masked_in ? m.old : m.index + 1 == m.vl ? m.scalar : m.after;
            });
        }
    }
}

TEST(VectorFpMove, FirstElementToAndFromARegister) {
    for (const Format f : {kF16, kF32, kF64}) {
        Group a(kMaxGroupBytes, 0x5a);
        VectorOperands o;
        o.vs2 = a.data();
        for (const Simd simd : usable_simd()) {
            VectorOperands own = o;
            run_kernel(kernel_of(simd, VectorOp::kVfmvFS, log2_of(f)), own);
            const std::uint64_t ones = f.bits == 64 ? 0 : ~0ull << f.bits;
            EXPECT_EQ(own.result, (0x5a5a5a5a5a5a5a5aull & ~ones) | ones);
            // vl = 0: nothing is written.
            own.vd = nullptr;
            run_kernel(kernel_of(simd, VectorOp::kVfmvSF, log2_of(f)), own);
        }
    }
}

}  // namespace
}  // namespace orrery::emu::test
