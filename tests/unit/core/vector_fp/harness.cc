#include "tests/unit/core/vector_fp/harness.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulator/core/host_fp.h"
#include "emulator/core/vector/kernels.h"

namespace orrery::emu::test {
namespace {

constexpr std::size_t kGroup = kMaxGroupBytes;
constexpr std::uint8_t kCanary = 0xa5;

struct Groups {
    std::vector<std::uint8_t> d = std::vector<std::uint8_t>(kGroup, kCanary);
    std::vector<std::uint8_t> a = std::vector<std::uint8_t>(kGroup, kCanary);
    std::vector<std::uint8_t> b = std::vector<std::uint8_t>(kGroup, kCanary);
    std::vector<std::uint8_t> mask = std::vector<std::uint8_t>(kMaxVlenBytes, 0);
};

void put(std::vector<std::uint8_t>& group, std::uint64_t index, unsigned bits, std::uint64_t value) {
    std::memcpy(group.data() + index * bits / 8, &value, bits / 8);
}
std::uint64_t get(const std::vector<std::uint8_t>& group, std::uint64_t index, unsigned bits) {
    std::uint64_t value = 0;
    std::memcpy(&value, group.data() + index * bits / 8, bits / 8);
    return value;
}

// What vd holds after the instruction, and its flags.
struct Outcome {
    std::vector<std::uint8_t> d;
    std::uint8_t fflags = 0, vxsat = 0;
};

Outcome expect(const Case& test, const Groups& groups, const VectorOperands& o) {
    Outcome outcome{groups.d};
    for (std::uint64_t i = o.start; i < o.vl; ++i) {
        if (!o.active(i)) continue;
        Element element{test.d.bits != 1 ? get(groups.d, i, test.d.bits) : 0, get(groups.a, i, test.a.bits),
                        test.b.bits == 0 ? 0
                        : test.scalar    ? o.scalar
                                         : get(groups.b, i, test.b.bits),
                        o.frm, o.vxrm};
        if (test.scalar && test.b.bits < 64) {
            const bool is_boxed = test.b.is_integer || o.scalar >> test.b.bits == ~0ull >> test.b.bits;
            element.b &= (1ull << test.b.bits) - 1;
            if (!is_boxed) element.b = reference::canonical_nan(test.b.format);
        }
        const std::uint64_t value = test.expected(element);
        if (test.d.bits == 1) {
            const auto bit = static_cast<std::uint8_t>(1u << (i % 8));
            std::uint8_t& byte = outcome.d[i / 8];
            byte = static_cast<std::uint8_t>((byte & ~bit) | (value != 0 ? bit : 0));
        } else {
            put(outcome.d, i, test.d.bits, value);
        }
        outcome.fflags |= element.flags;
        outcome.vxsat |= element.saturated;
    }
    return outcome;
}

std::string describe(const Case& test, const Groups& groups, const VectorOperands& o, const Outcome& want,
                     const std::vector<std::uint8_t>& got, std::uint8_t flags) {
    char text[400];
    const unsigned bits = test.d.bits == 1 ? 8 : test.d.bits;
    for (std::uint64_t i = 0; i < kGroup * 8 / bits; ++i) {
        if (get(got, i, bits) == get(want.d, i, bits)) continue;
        std::snprintf(
            text, sizeof text,
            "element %llu: d %llx a %llx b %llx gives %llx instead of %llx; frm %u vxrm %u, vl %llu "
            "start %llu, %s",
            static_cast<unsigned long long>(i), static_cast<unsigned long long>(get(groups.d, i, bits)),
            static_cast<unsigned long long>(get(groups.a, i, test.a.bits)),
            static_cast<unsigned long long>(test.scalar || test.b.bits == 0 ? o.scalar
                                                                            : get(groups.b, i, test.b.bits)),
            static_cast<unsigned long long>(get(got, i, bits)),
            static_cast<unsigned long long>(get(want.d, i, bits)), o.frm, o.vxrm,
            static_cast<unsigned long long>(o.vl), static_cast<unsigned long long>(o.start),
            o.mask != nullptr ? "masked" : "unmasked");
        return text;
    }
    std::snprintf(
        text, sizeof text, "flags %02x instead of %02x; frm %u, vl %llu start %llu, a0 %llx b0 %llx", flags,
        want.fflags, o.frm, static_cast<unsigned long long>(o.vl), static_cast<unsigned long long>(o.start),
        static_cast<unsigned long long>(get(groups.a, o.start, test.a.bits)),
        static_cast<unsigned long long>(test.b.bits != 0 ? get(groups.b, o.start, test.b.bits) : 0));
    return text;
}

// Runs the instruction in all builds and compares.
bool check(const Case& test, const Groups& groups, VectorOperands o) {
    const Outcome want = expect(test, groups, o);
    for (const Simd simd : usable_simd()) {
        const VectorKernel kernel = kernel_of(simd, test.op, test.sew_log2);
        if (kernel == nullptr) {
            ADD_FAILURE() << row(test.op).name << " has no kernel at SEW " << (1u << test.sew_log2);
            return false;
        }
        VectorOperands own = o;
        Groups copy = groups;
        own.vd = copy.d.data();
        own.vs2 = copy.a.data();
        own.vs1 = copy.b.data();
        if (o.mask != nullptr) own.mask = copy.mask.data();
        run_kernel(kernel, own);
        if (copy.d == want.d && own.fflags == want.fflags && own.vxsat == want.vxsat) continue;
        ADD_FAILURE() << row(test.op).name << " SEW " << (1u << test.sew_log2) << " " << to_string(simd)
                      << ": " << describe(test, groups, own, want, copy.d, own.fflags) << ", vxsat "
                      << +own.vxsat;
        return false;
    }
    return true;
}

bool is_finite(const Operand& operand, std::uint64_t value) {
    const std::uint64_t inf = reference::infinity(operand.format, false);
    return operand.is_integer || (value & inf) != inf;
}

std::uint64_t boxed(const Operand& operand, std::uint64_t value) {
    return operand.is_integer || operand.bits == 64 ? value : value | ~0ull << operand.bits;
}

unsigned widest(const Case& test) {
    unsigned bits = test.a.bits;
    if (test.d.bits > bits) bits = test.d.bits;
    return test.b.bits > bits ? test.b.bits : bits;
}

}  // namespace

std::uint64_t seed() {
    const char* text = std::getenv("ORRERY_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : 1;
}

Operand floating(reference::Format format) {
    return {static_cast<unsigned>(format.bits), format, false};
}
Operand integer(unsigned bits) {
    return {bits, {}, true};
}

std::uint64_t interesting(const Operand& operand, std::mt19937_64& random) {
    const std::uint64_t all = operand.bits == 64 ? ~0ull : (1ull << operand.bits) - 1;
    const std::uint64_t uniform = random();
    const std::uint64_t choice = random() % 16;
    if (operand.is_integer) {
        const std::uint64_t near = (random() % 9) - 4;
        if (choice < 4) return near & all;
        if (choice < 6) return ((1ull << (operand.bits - 1)) + near) & all;
        if (choice < 8) return ((1ull << (random() % operand.bits)) + near) & all;
        return uniform & all;
    }
    const reference::Format& f = operand.format;
    const std::uint64_t sign = reference::zero(f, (uniform >> 63) != 0);
    const std::uint64_t inf = reference::infinity(f, false);
    const std::uint64_t hidden = 1ull << f.mantissa;
    const auto bias = static_cast<std::uint64_t>(f.bias);
    std::uint64_t fraction = uniform & (hidden - 1);
    // Few digits make sums and products exact or halfway.
    if ((random() & 1) != 0) fraction &= ~0ull << (random() % static_cast<unsigned>(f.mantissa + 1));
    if (random() % 8 == 0) fraction = hidden - 1 - random() % 3;
    switch (choice) {
        case 0:
            return random() % 4 == 0 ? inf + 1 + fraction % (hidden - 1) : sign;
        case 1:
            return sign + inf - random() % 3;
        case 2:
            return sign + fraction % hidden;
        case 3:
            return sign + hidden + (random() % 3) - 1;
        case 4:
            return sign + ((random() % 64) << f.mantissa) % inf + fraction;
        case 5:
            return sign + inf - ((1 + random() % 12) << f.mantissa) % inf + fraction;
        case 6:
        case 7:
            return uniform & all;
        default:
            return sign + ((bias - 8 + random() % 40) << f.mantissa) % inf + fraction;
    }
}

std::vector<Simd> usable_simd() {
    std::vector<Simd> result;
    for (const Simd simd : {Simd::kPortable, Simd::kAvx2, Simd::kAvx512})
        if (simd_usable(simd)) result.push_back(simd);
    return result;
}

VectorKernel kernel_of(Simd simd, VectorOp op, unsigned sew_log2) {
    return vector_kernels(simd).of[static_cast<std::size_t>(op)][sew_log2 - 3].run;
}

void run_kernel(VectorKernel kernel, VectorOperands& operands) {
#if ORR_HOST_FP
    const std::uint32_t saved = _mm_getcsr();
    _mm_setcsr(kGuestMxcsr);
    kernel(operands);
    EXPECT_EQ(_mm_getcsr() & ~0x3fu, kGuestMxcsr) << "the host's FP environment was left changed";
    operands.fflags = static_cast<std::uint8_t>(operands.fflags | host_fp_flags());
    _mm_setcsr(saved);
#else
    kernel(operands);
#endif
}

void check_random(const Case& test, unsigned rounds) {
    std::mt19937_64 random(seed());
    const std::uint64_t most = kGroup * 8 / widest(test);
    for (unsigned round = 0; round < rounds; ++round) {
        Groups groups;
        VectorOperands o;
        o.frm = static_cast<std::uint8_t>(random() % 5);
        o.vxrm = static_cast<std::uint8_t>(random() % 4);
        // Flags of many elements hide one another: most rounds are short.
        o.vl = 1 + random() % (random() % 8 == 0 ? most : 5);
        o.start = random() % 4 == 0 ? random() % o.vl : 0;
        o.vlmax = most;
        o.vlen_bytes = kMaxVlenBytes;
        // Many elements without a NaN are done together.
        const bool all_finite = random() % 2 == 0;
        const auto some = [&](const Operand& operand) {
            std::uint64_t value = interesting(operand, random);
            while (all_finite && !is_finite(operand, value))
                value = interesting(operand, random);
            return value;
        };
        for (std::uint64_t i = 0; i < o.vl; ++i) {
            if (test.d.bits > 1) put(groups.d, i, test.d.bits, some(test.d));
            put(groups.a, i, test.a.bits, some(test.a));
            if (test.b.bits != 0) put(groups.b, i, test.b.bits, some(test.b));
        }
        if (test.scalar) o.scalar = boxed(test.b, some(test.b));
        if (random() % 16 == 0) o.scalar &= ~(1ull << 63);  // not boxed any more
        if (random() % 2 == 0) {
            o.mask = groups.mask.data();
            const bool none = random() % 8 == 0;
            // Then not even a scalar that signals may be looked at.
            if (none && test.scalar && !test.b.is_integer)
                o.scalar = boxed(test.b, reference::infinity(test.b.format, false) + 1);
            for (std::uint8_t& byte : groups.mask) {
                const std::uint64_t kind = none ? 0 : random() % 4;
                byte = kind == 0 ? 0 : kind == 1 ? 0xff : static_cast<std::uint8_t>(random());
            }
        }
        if (!check(test, groups, o)) return;
    }
}

void check_one(const Case& test, std::uint64_t d, std::uint64_t a, std::uint64_t b, unsigned frm) {
    Groups groups;
    VectorOperands o;
    o.frm = static_cast<std::uint8_t>(frm);
    o.vl = 1;
    o.vlmax = 1;
    o.vlen_bytes = kMaxVlenBytes;
    put(groups.d, 0, test.d.bits, d);
    put(groups.a, 0, test.a.bits, a);
    put(groups.b, 0, test.b.bits, b);
    if (test.scalar) o.scalar = boxed(test.b, b);
    check(test, groups, o);
}

void check_all(const Case& test, const std::vector<std::uint64_t>& a) {
    const std::uint64_t most = kGroup * 8 / widest(test);
    for (unsigned frm = 0; frm < 5; ++frm) {
        for (std::size_t first = 0; first < a.size(); first += most) {
            Groups groups;
            VectorOperands o;
            o.frm = static_cast<std::uint8_t>(frm);
            o.vlmax = most;
            o.vlen_bytes = kMaxVlenBytes;
            o.vl = a.size() - first < most ? a.size() - first : most;
            for (std::uint64_t i = 0; i < o.vl; ++i)
                put(groups.a, i, test.a.bits, a[first + i]);
            if (!check(test, groups, o)) return;
        }
    }
}

}  // namespace orrery::emu::test
