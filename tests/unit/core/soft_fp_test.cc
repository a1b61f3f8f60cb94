// The integer implementation of floating point: against the host's FPU in the rounding modes that it has,
// against known values in the one that it has not, and the handlers against both.
#include <fenv.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <random>

#include "emulator/core/soft_fp.h"
#include "tests/unit/core/random_program.h"

namespace orrery::emu::soft {
namespace {

using test::interesting_double;
using test::interesting_float;
using test::interesting_integer;

constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
constexpr Mode kModes[] = {kNearestEven, kTowardZero, kDown, kUp};

std::uint8_t host_flags() {
    const int raised = fetestexcept(FE_ALL_EXCEPT);
    return static_cast<std::uint8_t>(
        ((raised & FE_INVALID) != 0 ? 16 : 0) | ((raised & FE_DIVBYZERO) != 0 ? 8 : 0) |
        ((raised & FE_OVERFLOW) != 0 ? 4 : 0) | ((raised & FE_UNDERFLOW) != 0 ? 2 : 0) |
        ((raised & FE_INEXACT) != 0 ? 1 : 0));
}

// Computes on the host in `mode`; the operands pass through volatile, so that it happens here and now.
template <class Function>
auto on_host(int mode, std::uint8_t& flags, Function function) {
    const int before = fegetround();
    fesetround(mode);
    feclearexcept(FE_ALL_EXCEPT);
    volatile auto result = function();
    flags = host_flags();
    fesetround(before);
    return result;
}

template <class F>
struct Kit;
template <>
struct Kit<F32> {
    using Host = float;
    static std::uint32_t operand(std::mt19937_64& random) { return interesting_float(random); }
};
template <>
struct Kit<F64> {
    using Host = double;
    static std::uint64_t operand(std::mt19937_64& random) { return interesting_double(random); }
};

template <class F>
class SoftFp : public testing::Test {
  protected:
    using Bits = typename F::Bits;
    using HostType = typename Kit<F>::Host;
    static constexpr int kRounds = 100'000;

    // `soft` gives bits and flags, `host` a Host value; a NaN is a NaN to the host.
    template <class Soft, class OnHost>
    void same(Soft soft, OnHost host, const char* what, Bits a, Bits b, Bits c, unsigned mode) {
        std::uint8_t soft_flags = 0, host_flags_seen = 0;
        const Bits ours = soft(kModes[mode], soft_flags);
        Bits theirs =
            std::bit_cast<Bits>(static_cast<HostType>(on_host(kHostModes[mode], host_flags_seen, host)));
        if (is_nan<F>(theirs)) theirs = F::kNan;
        ASSERT_EQ(ours, theirs) << what << std::hex << " " << a << " " << b << " " << c << " mode " << mode;
        ASSERT_EQ(soft_flags, host_flags_seen)
            << what << std::hex << " " << a << " " << b << " " << c << " mode " << mode;
    }
};
using Formats = testing::Types<F32, F64>;
TYPED_TEST_SUITE(SoftFp, Formats);

TYPED_TEST(SoftFp, AgreesWithTheHost) {
    using F = TypeParam;
    using Host = typename Kit<F>::Host;
    std::mt19937_64 random(1);
    for (int i = 0; i < this->kRounds && !this->HasFatalFailure(); ++i) {
        const auto a = Kit<F>::operand(random), b = Kit<F>::operand(random), c = Kit<F>::operand(random);
        volatile Host x = std::bit_cast<Host>(a), y = std::bit_cast<Host>(b), z = std::bit_cast<Host>(c);
        const unsigned mode = static_cast<unsigned>(i) % 4;
        const auto check = [&](const char* what, auto soft, auto host) {
            this->same(soft, host, what, a, b, c, mode);
        };
        check(
            "add", [&](Mode m, std::uint8_t& f) { return add<F>(a, b, m, f); },
            [&] { return static_cast<Host>(x + y); });
        check(
            "mul", [&](Mode m, std::uint8_t& f) { return mul<F>(a, b, m, f); },
            [&] { return static_cast<Host>(x * y); });
        check(
            "div", [&](Mode m, std::uint8_t& f) { return div<F>(a, b, m, f); },
            [&] { return static_cast<Host>(x / y); });
        check(
            "sqrt", [&](Mode m, std::uint8_t& f) { return sqrt<F>(a, m, f); },
            [&] { return static_cast<Host>(std::sqrt(x)); });
        // Where a NaN is added to infinity times zero, hosts differ about the flag.
        const bool host_differs = is_nan<F>(c) && is_nan<F>([&] {
                                      std::uint8_t f = 0;
                                      return mul<F>(a, b, kNearestEven, f);
                                  }());
        if (!host_differs) {
            check(
                "fma", [&](Mode m, std::uint8_t& f) { return fma<F>(a, b, c, m, f); },
                [&] { return static_cast<Host>(std::fma(x, y, z)); });
        }
    }
}

TYPED_TEST(SoftFp, IntegersAgreeWithTheHost) {
    using F = TypeParam;
    using Host = typename Kit<F>::Host;
    std::mt19937_64 random(2);
    for (int i = 0; i < this->kRounds && !this->HasFatalFailure(); ++i) {
        const std::uint64_t bits = interesting_integer(random);
        volatile auto value = static_cast<std::int64_t>(bits);
        const auto word = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
        const unsigned mode = static_cast<unsigned>(i) % 4;
        this->same([&](Mode m, std::uint8_t& f) { return from_integer<F>(bits, IntKind::kI64, m, f); },
                   [&] { return static_cast<Host>(value); }, "i64", static_cast<typename F::Bits>(bits), 0, 0,
                   mode);
        volatile std::int64_t narrow = word;
        this->same([&](Mode m, std::uint8_t& f) { return from_integer<F>(bits, IntKind::kI32, m, f); },
                   [&] { return static_cast<Host>(narrow); }, "i32", static_cast<typename F::Bits>(bits), 0,
                   0, mode);
    }
}

TYPED_TEST(SoftFp, ToIntegersAgreesWithNearbyint) {
    using F = TypeParam;
    using Host = typename Kit<F>::Host;
    std::mt19937_64 random(3);
    int compared = 0;
    for (int i = 0; i < this->kRounds; ++i) {
        const auto a = Kit<F>::operand(random);
        const unsigned mode = static_cast<unsigned>(i) % 4;
        volatile Host x = std::bit_cast<Host>(a);
        if (!(std::fabs(x) < static_cast<Host>(4e18))) continue;
        std::uint8_t ours_flags = 0, theirs_flags = 0;
        const auto ours = to_integer<F>(a, IntKind::kI64, kModes[mode], ours_flags);
        const Host theirs =
            on_host(kHostModes[mode], theirs_flags, [&] { return static_cast<Host>(std::rint(x)); });
        ASSERT_EQ(static_cast<std::int64_t>(ours), static_cast<std::int64_t>(theirs))
            << std::hex << a << " " << mode;
        ASSERT_EQ(ours_flags, theirs_flags) << std::hex << a << " " << mode;
        ++compared;
    }
    EXPECT_GT(compared, this->kRounds / 10);
}

TEST(SoftFpConvert, AgreesWithTheHost) {
    std::mt19937_64 random(4);
    for (int i = 0; i < 200'000; ++i) {
        const unsigned mode = static_cast<unsigned>(i) % 4;
        const std::uint64_t a = interesting_double(random);
        const std::uint32_t b = interesting_float(random);
        volatile double x = std::bit_cast<double>(a);
        volatile float y = std::bit_cast<float>(b);
        std::uint8_t ours_flags = 0, theirs_flags = 0;
        const auto narrow = convert<F32, F64>(a, kModes[mode], ours_flags);
        auto theirs = std::bit_cast<std::uint32_t>(static_cast<float>(
            on_host(kHostModes[mode], theirs_flags, [&] { return static_cast<float>(x); })));
        if (is_nan<F32>(theirs)) theirs = F32::kNan;
        ASSERT_EQ(narrow, theirs) << std::hex << a << " " << mode;
        ASSERT_EQ(ours_flags, theirs_flags) << std::hex << a << " " << mode;
        ours_flags = 0;
        const auto wide = convert<F64, F32>(b, kModes[mode], ours_flags);
        auto their_wide = std::bit_cast<std::uint64_t>(static_cast<double>(
            on_host(kHostModes[mode], theirs_flags, [&] { return static_cast<double>(y); })));
        if (is_nan<F64>(their_wide)) their_wide = F64::kNan;
        ASSERT_EQ(wide, their_wide) << std::hex << b;
        ASSERT_EQ(ours_flags, theirs_flags) << std::hex << b;
    }
}

// --- what the host cannot tell ---

std::uint64_t bits(double value) {
    return std::bit_cast<std::uint64_t>(value);
}

TEST(SoftFpKnown, TiesAwayFromZero) {
    std::uint8_t flags = 0;
    const auto to_i64 = [&](double v) {
        return static_cast<std::int64_t>(to_integer<F64>(bits(v), IntKind::kI64, kNearestAway, flags));
    };
    EXPECT_EQ(to_i64(0.5), 1);
    EXPECT_EQ(to_i64(1.5), 2);
    EXPECT_EQ(to_i64(2.5), 3);
    EXPECT_EQ(to_i64(-2.5), -3);
    EXPECT_EQ(to_i64(2.4999999999999996), 2);
    // 1 + 2^-53 is half way between 1 and its successor.
    EXPECT_EQ(add<F64>(bits(1.0), bits(0x1p-53), kNearestAway, flags), bits(1.0) + 1);
    EXPECT_EQ(add<F64>(bits(1.0), bits(0x1p-53), kNearestEven, flags), bits(1.0));
    EXPECT_EQ(add<F64>(bits(-1.0), bits(-0x1p-53), kNearestAway, flags), bits(-1.0) + 1);
    EXPECT_EQ(add<F64>(bits(1.0), bits(0x1.ffffffp-54), kNearestAway, flags), bits(1.0));
    EXPECT_EQ(mul<F64>(bits(0x1p-1074), bits(0.5), kNearestAway, flags), bits(0x1p-1074));
    flags = 0;
    EXPECT_EQ(mul<F64>(bits(0x1p1023), bits(2.0), kNearestAway, flags), F64::kInf);
    EXPECT_EQ(flags, 5);
}

TEST(SoftFpKnown, ToIntegersSaturate) {
    struct Case {
        double value;
        IntKind kind;
        std::uint64_t result;
        std::uint8_t flags;
    };
    const double inf = INFINITY;
    const Case cases[] = {{2147483647.0, IntKind::kI32, 0x7fffffff, 0},
                          {2147483647.5, IntKind::kI32, 0x7fffffff, 1},
                          {2147483648.0, IntKind::kI32, 0x7fffffff, 16},
                          {-2147483648.0, IntKind::kI32, 0xffffffff80000000, 0},
                          {-2147483648.9, IntKind::kI32, 0xffffffff80000000, 1},
                          {-2147483649.0, IntKind::kI32, 0xffffffff80000000, 16},
                          {4294967295.0, IntKind::kU32, ~0ull, 0},  // 32-bit results are sign-extended
                          {4294967296.0, IntKind::kU32, ~0ull, 16},
                          {2147483648.0, IntKind::kU32, 0xffffffff80000000, 0},
                          {-0.9, IntKind::kU32, 0, 1},
                          {-1.0, IntKind::kU32, 0, 16},
                          {-0.0, IntKind::kU64, 0, 0},
                          {9223372036854775808.0, IntKind::kI64, 0x7fffffffffffffff, 16},
                          {-9223372036854775808.0, IntKind::kI64, 0x8000000000000000, 0},
                          {9223372036854775808.0, IntKind::kU64, 0x8000000000000000, 0},
                          {18446744073709551616.0, IntKind::kU64, ~0ull, 16},
                          {inf, IntKind::kI32, 0x7fffffff, 16},
                          {-inf, IntKind::kI64, 0x8000000000000000, 16},
                          {-inf, IntKind::kU64, 0, 16},
                          {NAN, IntKind::kI32, 0x7fffffff, 16},
                          {-NAN, IntKind::kU64, ~0ull, 16},
                          {NAN, IntKind::kU32, ~0ull, 16}};
    for (const Case& c : cases) {
        std::uint8_t flags = 0;
        EXPECT_EQ(to_integer<F64>(bits(c.value), c.kind, kTowardZero, flags), c.result) << c.value;
        EXPECT_EQ(flags, c.flags) << c.value;
    }
}

TEST(SoftFpKnown, MinAndMax) {
    const std::uint64_t quiet = F64::kNan, signaling = F64::kInf | 1, one = bits(1.0);
    std::uint8_t flags = 0;
    EXPECT_EQ(min<F64>(bits(-0.0), bits(0.0), flags), bits(-0.0));
    EXPECT_EQ(min<F64>(bits(0.0), bits(-0.0), flags), bits(-0.0));
    EXPECT_EQ(max<F64>(bits(-0.0), bits(0.0), flags), bits(0.0));
    EXPECT_EQ(min<F64>(quiet, one, flags), one);
    EXPECT_EQ(max<F64>(one, quiet, flags), one);
    EXPECT_EQ(min<F64>(bits(-2.0), bits(-1.0), flags), bits(-2.0));
    EXPECT_EQ(max<F64>(bits(-2.0), bits(1.0), flags), one);
    EXPECT_EQ(flags, 0);
    EXPECT_EQ(min<F64>(signaling, one, flags), one);
    EXPECT_EQ(flags, 16);
    EXPECT_EQ(max<F64>(quiet | 5, F64::kSign | quiet, flags), F64::kNan);
}

TEST(SoftFpKnown, Classes) {
    EXPECT_EQ(classify<F64>(bits(-INFINITY)), 1u << 0);
    EXPECT_EQ(classify<F64>(bits(-1.0)), 1u << 1);
    EXPECT_EQ(classify<F64>(bits(-0x1p-1074)), 1u << 2);
    EXPECT_EQ(classify<F64>(bits(-0.0)), 1u << 3);
    EXPECT_EQ(classify<F64>(bits(0.0)), 1u << 4);
    EXPECT_EQ(classify<F64>(bits(0x1p-1074)), 1u << 5);
    EXPECT_EQ(classify<F64>(bits(1.0)), 1u << 6);
    EXPECT_EQ(classify<F64>(bits(INFINITY)), 1u << 7);
    EXPECT_EQ(classify<F64>(F64::kInf | 1), 1u << 8);
    EXPECT_EQ(classify<F64>(F64::kNan), 1u << 9);
}

TEST(SoftFpKnown, InfinityTimesZeroPlusNanIsInvalid) {
    std::uint8_t flags = 0;
    EXPECT_EQ(fma<F64>(F64::kInf, 0, F64::kNan, kNearestEven, flags), F64::kNan);
    EXPECT_EQ(flags, 16);
    flags = 0;
    EXPECT_EQ(fma<F64>(bits(1.0), bits(1.0), F64::kNan, kNearestEven, flags), F64::kNan);
    EXPECT_EQ(flags, 0);
}

}  // namespace
}  // namespace orrery::emu::soft
