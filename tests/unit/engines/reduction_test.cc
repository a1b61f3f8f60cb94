// Copies with reduction against arithmetic of another kind: exact in wider formats, rounded by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <random>

#include "emulator/engines/save_area.h"
#include "emulator/faults/faults.h"
#include "emulator/memory/reduction.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kSrc = 0x10'0000'0000, kDst = 0x20'0000'0000, kArea = 48 << 20;
constexpr unsigned kFunctions[] = {ORR_REDUCE_ADD, ORR_REDUCE_MIN, ORR_REDUCE_MAX, ORR_REDUCE_PRODUCT};

template <class T>
T reduced(unsigned type, unsigned function, T dst, T src) {
    reduce_loop(type, function)(reinterpret_cast<std::byte*>(&dst), reinterpret_cast<const std::byte*>(&src),
                                sizeof(T));
    return dst;
}

// A format of 16 bits.
struct Short {
    int digits;        // of the significand, with the leading one
    int max_exponent;  // of the greatest number
    unsigned exponent_bits() const { return static_cast<unsigned>(16 - digits); }
    int bias() const { return max_exponent; }
    unsigned nan() const { return 0x8000u - (1u << (digits - 2)); }

    double value(unsigned bits) const {
        const int exponent = static_cast<int>(bits >> (digits - 1) & ((1u << exponent_bits()) - 1));
        const double fraction = bits & ((1u << (digits - 1)) - 1);
        const double sign = (bits & 0x8000) != 0 ? -1 : 1;
        if (exponent == max_exponent + bias() + 1)
            return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
        const double one = std::ldexp(1, digits - 1);
        return exponent == 0 ? sign * std::ldexp(fraction, 2 - bias() - digits)
                             : sign * std::ldexp(one + fraction, exponent - bias() + 1 - digits);
    }
    // Nearest, ties to even.
    unsigned bits(double value) const {
        if (std::isnan(value)) return nan();
        const unsigned sign = std::signbit(value) ? 0x8000 : 0;
        value = std::fabs(value);
        int exponent = 0;
        std::frexp(value, &exponent);
        const int last = std::max(exponent - digits, 2 - bias() - digits);  // of the last place
        const double places = std::isinf(value) ? value : std::nearbyint(std::ldexp(value, -last));
        const double rounded = std::isinf(value) ? value : std::ldexp(places, last);
        const unsigned infinity = ((1u << exponent_bits()) - 1) << (digits - 1);
        if (rounded >= std::ldexp(1, max_exponent + 1)) return sign | infinity;
        if (rounded < std::ldexp(1, 1 - bias()))
            return sign | static_cast<unsigned>(std::ldexp(rounded, bias() + digits - 2));
        std::frexp(rounded, &exponent);
        const auto fraction = static_cast<unsigned>(std::ldexp(rounded, digits - exponent));
        return sign | static_cast<unsigned>(exponent - 1 + bias()) << (digits - 1) |
               (fraction - (1u << (digits - 1)));
    }
};

// What comes out of exact numbers; `a` and `b` may be NaN.
double expected(unsigned function, double a, double b) {
    switch (function) {
        case ORR_REDUCE_ADD:
            return a + b;
        case ORR_REDUCE_PRODUCT:
            return a * b;
        default:
            break;
    }
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    const bool least = function == ORR_REDUCE_MIN;
    if (a == b) return std::signbit(a) == least ? a : b;  // zeros of two signs
    return (a < b) == least ? a : b;
}

void check_short(const Short& format, unsigned type) {
    std::mt19937 random(type);
    std::vector<unsigned> others{0x0000,
                                 0x8000,
                                 0x0001,
                                 0x8001,
                                 format.bits(1),
                                 format.bits(-1.5),
                                 format.bits(1e30),
                                 format.bits(-1e30),
                                 format.nan(),
                                 format.nan() | 0x8001,
                                 0x7fff,
                                 format.bits(std::ldexp(1, 1 - format.bias())),
                                 0x0003,
                                 format.bits(0.75),
                                 format.bits(std::ldexp(1.25, -format.bias() / 2))};
    while (others.size() < 28)
        others.push_back(random() & 0xffff);
    for (const unsigned function : kFunctions) {
        for (const unsigned b : others) {
            for (unsigned a = 0; a < 0x10000; ++a) {
                const auto got = reduced<std::uint16_t>(type, function, static_cast<std::uint16_t>(a),
                                                        static_cast<std::uint16_t>(b));
                const unsigned want = format.bits(expected(function, format.value(a), format.value(b)));
                ASSERT_EQ(got, want) << std::hex << a << " and " << b << ", function " << function;
            }
        }
    }
}

TEST(Reduction, Half) {
    const Short half{11, 15};
    ASSERT_EQ(half.bits(65519), 0x7bffu);
    ASSERT_EQ(half.bits(65520), 0x7c00u);
    ASSERT_EQ(half.bits(half.value(0x03ff)), 0x03ffu);
    check_short(half, ORR_TYPE_F16);
}

TEST(Reduction, Brain) {
    const Short brain{8, 127};
    ASSERT_EQ(brain.bits(1), 0x3f80u);
    ASSERT_EQ(brain.bits(brain.value(0x0001)), 0x0001u);
    check_short(brain, ORR_TYPE_BF16);
}

template <class Real, class Bits>
void check_real(unsigned type, Bits nan) {
    std::mt19937_64 random(type);
    const Bits special[] = {0,
                            Bits{1} << (sizeof(Bits) * 8 - 1),
                            nan,
                            static_cast<Bits>(nan | 1),
                            std::bit_cast<Bits>(std::numeric_limits<Real>::infinity()),
                            std::bit_cast<Bits>(-std::numeric_limits<Real>::infinity()),
                            1,
                            std::bit_cast<Bits>(std::numeric_limits<Real>::max()),
                            std::bit_cast<Bits>(std::numeric_limits<Real>::signaling_NaN())};
    const auto any = [&] {
        const std::uint64_t pick = random() % 32;
        return pick < std::size(special) ? special[pick] : static_cast<Bits>(random());
    };
    for (const unsigned function : kFunctions) {
        for (int i = 0; i < 20'000; ++i) {
            const Bits a = any(), b = any();
            const Real x = std::bit_cast<Real>(a), y = std::bit_cast<Real>(b);
            const auto wide = [](Real value) { return static_cast<double>(value); };
            // Floats: a double holds what both operations need to be rounded once.
            const auto result = static_cast<Real>(expected(function, wide(x), wide(y)));
            const Bits want = std::isnan(result) ? nan : std::bit_cast<Bits>(result);
            ASSERT_EQ(reduced<Bits>(type, function, a, b), want) << x << " and " << y << ", " << function;
        }
    }
}

TEST(Reduction, SingleAndDouble) {
    check_real<float, std::uint32_t>(ORR_TYPE_F32, 0x7fc0'0000);
    check_real<double, std::uint64_t>(ORR_TYPE_F64, 0x7ff8ull << 48);
}

template <std::integral T>
void check_integer(unsigned type) {
    std::mt19937_64 random(type);
    constexpr T kLeast = std::numeric_limits<T>::min(), kGreatest = std::numeric_limits<T>::max();
    const auto any = [&] {
        const std::uint64_t pick = random() % 8;
        return pick == 0 ? kLeast : pick == 1 ? kGreatest : static_cast<T>(random());
    };
    __extension__ using Wide = __int128;
    for (int i = 0; i < 5'000; ++i) {
        const T a = any(), b = any();
        ASSERT_EQ(reduced<T>(type, ORR_REDUCE_ADD, a, b), static_cast<T>(Wide{a} + b));
        ASSERT_EQ(reduced<T>(type, ORR_REDUCE_MIN, a, b), std::min(a, b));
        ASSERT_EQ(reduced<T>(type, ORR_REDUCE_MAX, a, b), std::max(a, b));
        ASSERT_EQ(reduced<T>(type, ORR_REDUCE_PRODUCT, a, b),
                  static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
    }
}

TEST(Reduction, Integers) {
    check_integer<std::int8_t>(ORR_TYPE_I8);
    check_integer<std::uint8_t>(ORR_TYPE_U8);
    check_integer<std::int32_t>(ORR_TYPE_I32);
    check_integer<std::uint32_t>(ORR_TYPE_U32);
    check_integer<std::int64_t>(ORR_TYPE_I64);
    check_integer<std::uint64_t>(ORR_TYPE_U64);
    EXPECT_EQ(reduce_loop(0, 1), nullptr);
    EXPECT_EQ(reduce_loop(11, 1), nullptr);
    EXPECT_EQ(reduce_loop(1, 0), nullptr);
    EXPECT_EQ(reduce_loop(1, 5), nullptr);
}

class ReducingCopy : public testing::Test {
  protected:
    ReducingCopy() {
        rig.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase, ORR_PTE_READ);
        rig.map(kDst, 4 << 20, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_WRITE);
        std::mt19937 random(3);
        for (std::uint64_t i = 0; i < (4u << 20); i += 4) {
            const auto value = static_cast<std::uint32_t>(random());
            std::memcpy(rig.host_data + i, &value, 4);
            std::memcpy(rig.vram.data() + i, &i, 4);
        }
        before.assign(rig.vram.data(), rig.vram.data() + (4 << 20));
    }
    static orr_desc_reduce sum(std::uint64_t bytes) {
        orr_desc_reduce desc{};
        desc.op = ORR_DESC_REDUCE;
        desc.asid = 1;
        desc.src = kSrc;
        desc.dst = kDst;
        desc.row_bytes = bytes;
        desc.rows = 1;
        desc.type = ORR_TYPE_U32;
        desc.function = ORR_REDUCE_ADD;
        return desc;
    }
    std::uint32_t word(const std::uint8_t* base, std::uint64_t offset) const {
        std::uint32_t value = 0;
        std::memcpy(&value, base + offset, 4);
        return value;
    }
    void expect_sum(std::uint64_t dst, std::uint64_t src) const {
        ASSERT_EQ(word(rig.vram.data(), dst), word(before.data(), dst) + word(rig.host_data, src)) << dst;
    }

    CopyRates rates{};
    Rig rig;
    std::vector<std::uint8_t> before;
    CopyEngine engine{5, rates, rig.context};
};

TEST_F(ReducingCopy, ReadsBothAndWritesOne) {
    const Completion done = rig.run_one(engine, sum(3 << 20));
    ASSERT_EQ(done.status, ORR_DONE_OK);
    for (std::uint64_t i = 0; i < (3u << 20); i += 4)
        expect_sum(i, i);
    EXPECT_EQ(word(rig.vram.data(), 3 << 20), word(before.data(), 3 << 20));
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 3u << 20);
    // In VRAM alone it takes half as long again as a copy: what is written has been read there, too.
    rig.map(kSrc, 4 << 20, ORR_TARGET_VRAM, 8 << 20, ORR_PTE_READ);
    CopyRates wide = rates;
    wide.engine_bytes_per_second = 0x7fff'ffff'ffff'ffff;
    CopyEngine other(6, wide, rig.context);
    orr_desc_copy plain{};
    plain.op = ORR_DESC_COPY;
    plain.asid = 1;
    plain.src = kSrc;
    plain.dst = kDst;
    plain.row_bytes = 3 << 20;
    plain.rows = 1;
    const auto time_of = [&](const auto& desc) {
        const Completion one = rig.run_one(other, desc);
        return static_cast<double>(one.end_ps - one.start_ps - rates.setup_ps);
    };
    EXPECT_NEAR(time_of(sum(3 << 20)) / time_of(plain), 1.5, 0.01);
}

TEST_F(ReducingCopy, InRowsAndOntoItself) {
    orr_desc_reduce desc = sum(400);
    desc.rows = 500;
    desc.src_pitch = 1204;
    desc.dst_pitch = 404;
    ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    for (std::uint64_t row = 0; row < 500; ++row) {
        for (std::uint64_t i = 0; i < 400; i += 4)
            expect_sum(row * 404 + i, row * 1204 + i);
        ASSERT_EQ(word(rig.vram.data(), row * 404 + 400), word(before.data(), row * 404 + 400));
    }
    desc = sum(1 << 20);
    desc.src = desc.dst = kDst + (2 << 20);
    ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    for (std::uint64_t i = 2 << 20; i < (3u << 20); i += 4)
        ASSERT_EQ(word(rig.vram.data(), i), 2 * word(before.data(), i));
}

TEST_F(ReducingCopy, PreemptedAddsNothingTwice) {
    std::mt19937 random(5);
    unsigned preempted = 0;
    ASSERT_TRUE(engine.start(Rig::words_of(sum(4 << 20)), 1));
    for (;;) {
        rig.run(random() % 4);
        ASSERT_TRUE(engine.preempt(Preempt::kNow, kArea));
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        if (rig.done[0].status == ORR_DONE_OK) break;
        ASSERT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
        rig.done.clear();
        ++preempted;
        auto* header = reinterpret_cast<orr_save_header*>(rig.vram.data() + kArea);
        if (preempted == 3) {  // a column inside of an element
            const orr_save_header good = *header;
            header->column += 2;
            ASSERT_TRUE(engine.resume(kArea, 1));
            rig.run();
            ASSERT_EQ(rig.done.at(0).status, ORR_DONE_BAD_DESC);
            rig.done.clear();
            *header = good;
        }
        ASSERT_TRUE(engine.resume(kArea, 1));
    }
    EXPECT_GT(preempted, 5u);
    for (std::uint64_t i = 0; i < (4u << 20); i += 4)
        expect_sum(i, i);
}

TEST_F(ReducingCopy, NeedsBothRightsAndNoPeer) {
    rig.map(kDst + 0x5000, 4096, ORR_TARGET_VRAM, 0x5000, ORR_PTE_WRITE);
    Completion done = rig.run_one(engine, sum(64 << 10));
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.fault, ORR_FAULT_PERMISSION);
    EXPECT_EQ(done.detail, kDst + 0x5000);
    expect_sum(0x4ffc, 0x4ffc);
    rig.map(kDst + 0x5000, 4096, ORR_TARGET_VRAM, 0x5000, ORR_PTE_READ);
    EXPECT_EQ(rig.run_one(engine, sum(64 << 10)).fault, ORR_FAULT_PERMISSION);
    rig.map(kDst, 4 << 20, ORR_TARGET_PEER, 0, ORR_PTE_READ | ORR_PTE_WRITE, 3);
    done = rig.run_one(engine, sum(4096));
    EXPECT_EQ(done.fault, ORR_FAULT_PEER_READ);
    EXPECT_EQ(done.detail, kDst);
    EXPECT_EQ(rig.peer.writes, 0u);
}

// Somebody rewrites the table of the destination while it is translated, and its entries have left the TLB.
TEST_F(ReducingCopy, WritesOnlyWhatItMayWriteThoughTablesChange) {
    constexpr std::uint64_t kHuge = kDst + ORR_HUGE_PAGE_SIZE, kSmall = kHuge - ORR_PAGE_SIZE;
    constexpr std::uint64_t kReadOnly = 16 << 20, kRights = ORR_PTE_READ | ORR_PTE_WRITE;
    rig.map(kSmall, ORR_PAGE_SIZE, ORR_TARGET_VRAM, ORR_HUGE_PAGE_SIZE - ORR_PAGE_SIZE, kRights);
    rig.map(kHuge, ORR_HUGE_PAGE_SIZE, ORR_TARGET_VRAM, ORR_HUGE_PAGE_SIZE, kRights, 0, true);
    const auto rewrite = [&] { rig.map(kSmall, ORR_PAGE_SIZE, ORR_TARGET_VRAM, kReadOnly, ORR_PTE_READ); };
    // The source's page, the destination's first, and then the huge one behind it.
    Faults faults(*FaultPlan::parse("walk first=3 die"), rig.events, {.die = rewrite, .struck = {}});
    rig.mmu.set_faults(&faults);
    orr_desc_reduce desc = sum(2 * ORR_PAGE_SIZE);
    desc.dst = kSmall;
    const Completion done = rig.run_one(engine, desc);
    rig.mmu.set_faults(nullptr);
    EXPECT_TRUE(faults.hits().contains("struck=1 ")) << faults.hits();
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.detail, kSmall);
    for (std::uint64_t i = 0; i < 2 * ORR_PAGE_SIZE; i += 4)
        ASSERT_EQ(word(rig.vram.data(), kReadOnly + i), 0u) << i;
}

TEST_F(ReducingCopy, BadDescriptors) {
    const auto expect_bad = [&](auto change, const char* what) {
        orr_desc_reduce desc = sum(4096);
        desc.rows = 2;
        desc.src_pitch = desc.dst_pitch = 8192;
        ASSERT_EQ(copy_job(Rig::words_of(desc)).has_value(), true);
        change(desc);
        EXPECT_EQ(rig.run_one(engine, desc).status, ORR_DONE_BAD_DESC) << what;
    };
    expect_bad([](auto& desc) { desc.type = 0; }, "type");
    expect_bad([](auto& desc) { desc.type = 11; }, "type");
    expect_bad([](auto& desc) { desc.function = 0; }, "function");
    expect_bad([](auto& desc) { desc.function = 5; }, "function");
    expect_bad([](auto& desc) { desc.src += 2; }, "src");
    expect_bad([](auto& desc) { desc.dst += 1; }, "dst");
    expect_bad([](auto& desc) { desc.row_bytes += 2; }, "row_bytes");
    expect_bad([](auto& desc) { desc.src_pitch += 2; }, "src_pitch");
    expect_bad([](auto& desc) { desc.dst_pitch += 2; }, "dst_pitch");
    expect_bad([](auto& desc) { desc.rows = 0; }, "rows");
    expect_bad([](auto& desc) { desc.row_bytes = 1ull << 40; }, "size");
    expect_bad([](auto& desc) { desc.reserved0 = 1; }, "reserved0");
    expect_bad([](auto& desc) { desc.reserved1 = 1; }, "reserved1");
    EXPECT_EQ(std::memcmp(rig.vram.data(), before.data(), before.size()), 0);
}

}  // namespace
}  // namespace orrery::emu::test
