// What kernels print, as the host takes it out of a ring that anybody may have written to.
#include "umd/runtime/output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace orrery::umd {
namespace {

std::optional<std::string> text_at(std::uint64_t va) {
    switch (va) {
        case 0x1000:
            return "%d %s|\n";
        case 0x2000:
            return "word";
        case 0x3000:
            return "plain\n";
        default:
            return std::nullopt;
    }
}

std::string format(const std::string& text, std::vector<std::uint64_t> args) {
    return format_output(text, args, text_at);
}

TEST(FormatOutput, ConvertsAsPrintfDoes) {
    EXPECT_EQ(format("%d %i %u", {~0ull, 5, ~0ull}), "-1 5 4294967295");
    EXPECT_EQ(format("%ld %lu %lld %zu", {~0ull, ~0ull, 7, 8}), "-1 18446744073709551615 7 8");
    EXPECT_EQ(format("%hd %hhu %hhx", {0x12345, 0x1ff, 0xfff}), "9029 255 ff");
    EXPECT_EQ(format("%#x %08X %o %+d", {255, 0xbeef, 8, 3}), "0xff 0000BEEF 10 +3");
    EXPECT_EQ(
        format("%f %.2e %g %8.3f|", {std::bit_cast<std::uint64_t>(1.5), std::bit_cast<std::uint64_t>(1e10),
                                     std::bit_cast<std::uint64_t>(0.1), std::bit_cast<std::uint64_t>(-2.0)}),
        "1.500000 1.00e+10 0.1   -2.000|");
    EXPECT_EQ(format("%s %6s|%-6s|%.2s", {0x2000, 0x2000, 0x2000, 0x2000}), "word   word|word  |wo");
    EXPECT_EQ(format("%c%c%% %p", {'o', 'k', 0x40}), "ok% 0x40");
    EXPECT_EQ(format("%*d|%-*d|%.*f", {5, 42, 4, 7, 1, std::bit_cast<std::uint64_t>(2.25)}),
              "   42|7   |2.2");
}

TEST(FormatOutput, WhatMakesNoSenseStaysAsItIs) {
    EXPECT_EQ(format("%d %d", {1}), "1 %d");
    EXPECT_EQ(format("%n %y %", {1, 2, 3}), "%n %y %");
    EXPECT_EQ(format("%s", {0x4000}), "(no string of the module)");
    EXPECT_EQ(format("%99999999999d", {1}).size(), 1000u);
    EXPECT_EQ(format("%*d", {~0ull / 2, 1}).size(), 1u) << "a width of -1";
    EXPECT_LE(format("%.*f", {999999, std::bit_cast<std::uint64_t>(1e300)}).size(), 2000u);
}

class OutputTest : public ::testing::Test {
  protected:
    void put(std::uint64_t va, std::vector<std::uint64_t> args) {
        const std::uint64_t words = ORR_OUTPUT_RECORD_HEAD + args.size();
        std::uint64_t at = ring->head;
        const auto word = [&](std::uint64_t value) { ring->words[at++ % ORR_OUTPUT_WORDS] = value; };
        word(ORR_OUTPUT_RECORD | words);
        word(va);
        word(0);
        for (const std::uint64_t arg : args)
            word(arg);
        ring->head = at;
    }
    std::string print() {
        ::testing::internal::CaptureStderr();
        output.print();
        told = ::testing::internal::GetCapturedStderr();
        return std::exchange(printed, {});
    }

    std::unique_ptr<orr_output> ring = std::make_unique<orr_output>();
    std::string printed, told;
    bool ended = false;  // all work of the card
    Output output{*ring, text_at, [this] { return [this] { return ended; }; }, "device 0",
                  [this](const std::string& text) { printed += text; }};
};

TEST_F(OutputTest, PrintsWhatIsCompleteOnceAndInOrder) {
    put(0x1000, {1, 0x2000});
    put(0x3000, {});
    EXPECT_EQ(print(), "1 word|\nplain\n");
    EXPECT_EQ(print(), "");
    EXPECT_EQ(ring->tail, ring->head);
    // Somebody is at the first of two.
    const std::uint64_t first = ring->head;
    put(0x3000, {});
    put(0x1000, {2, 0x2000});
    const std::uint64_t mark = std::exchange(ring->words[first], 0);
    EXPECT_EQ(print(), "");
    ring->words[first] = mark;
    EXPECT_EQ(print(), "plain\n2 word|\n");
}

TEST_F(OutputTest, GoesRoundAndTellsWhatWasLost) {
    for (unsigned i = 0; i < 3 * ORR_OUTPUT_WORDS / 5; ++i) {
        put(0x1000, {i, 0x2000});
        ASSERT_EQ(print(), std::to_string(i) + " word|\n");
    }
    ring->lost = 7;
    EXPECT_EQ(print(), "");
    EXPECT_NE(told.find("7 calls of printf"), std::string::npos);
    print();
    EXPECT_EQ(told, "") << "told once";
}

TEST_F(OutputTest, AFullRingWaitsForAnItemThatIsAtItsRecord) {
    put(0x1000, {1, 0x2000});
    const std::uint64_t mark = std::exchange(ring->words[0], 0);
    std::string expected = "1 word|\n";
    while (ring->head + ORR_OUTPUT_RECORD_HEAD <= ORR_OUTPUT_WORDS) {
        put(0x3000, {});
        expected += "plain\n";
    }
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(print() + told, "");
    ring->words[0] = mark;
    EXPECT_EQ(print(), expected);
    EXPECT_EQ(told, "");
}

TEST_F(OutputTest, RecordsThatEndedKernelsLeftAreSkippedAlone) {
    put(0x3000, {});
    put(0x1000, {1, 0x2000});
    put(0x1000, {2, 0x2000});
    put(0x3000, {});
    put(0x1000, {3, 0x2000});
    ring->words[3] = ring->words[8] = ring->words[16] = 0;
    EXPECT_EQ(print(), "plain\n");
    EXPECT_EQ(told, "") << "they may still come";
    ended = true;
    EXPECT_EQ(print(), "plain\n");
    EXPECT_NE(told.find("ended while it printed"), std::string::npos);
    EXPECT_EQ(ring->tail, ring->head);
    put(0x1000, {4, 0x2000});
    EXPECT_EQ(print(), "4 word|\n");
    EXPECT_EQ(told, "");
    EXPECT_EQ(std::ranges::count(ring->words, 0u), ORR_OUTPUT_WORDS);
}

TEST_F(OutputTest, ARecordCompletedAtTheEndIsNotSkipped) {
    put(0x3000, {});
    const std::uint64_t mark = std::exchange(ring->words[0], 0);
    Output late{*ring, text_at,
                [&] {
                    return [&] {
                        ring->words[0] = mark;
                        return true;
                    };
                },
                "device 0", [this](const std::string& text) { printed += text; }};
    late.print();
    EXPECT_EQ(printed, "plain\n");
}

// For the thread sanitizer: each looks whether there is anything to do without the other's lock.
TEST_F(OutputTest, TwoThreadsMayPrint) {
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over)
            output.print();
    });
    unsigned put_in = 0;
    for (; put_in < 2000; ++put_in) {
        const std::atomic_ref head(ring->head);
        const std::uint64_t at = head;
        const auto word = [&](std::uint64_t i, std::uint64_t value) {
            std::atomic_ref(ring->words[(at + i) % ORR_OUTPUT_WORDS]) = value;
        };
        head = at + ORR_OUTPUT_RECORD_HEAD;
        word(1, 0x3000);
        word(0, ORR_OUTPUT_RECORD | ORR_OUTPUT_RECORD_HEAD);
        output.print();
    }
    over = true;
    other.join();
    EXPECT_EQ(printed.size(), put_in * 6u);
}

TEST_F(OutputTest, AnyNumbersInItDoNoHarm) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random(seed);
        for (unsigned i = 0; i < 10; ++i)
            put(random() % 2 == 0 ? 0x1000 : random(), {random(), random() % 2 == 0 ? 0x2000 : random()});
        for (unsigned i = 0; i < 5; ++i) {
            std::uint64_t& word = ring->words[random() % 64];
            word = random() % 2 == 0 ? ORR_OUTPUT_RECORD | (random() & 0xff) : random();
        }
        if (random() % 4 == 0) ring->head = random();
        if (random() % 4 == 0) ring->tail = random();
        print();
    }
    // It goes on behind what was spoilt.
    ring->words[ring->head % ORR_OUTPUT_WORDS] = 1;
    ring->head += 5;
    print();
    put(0x3000, {});
    EXPECT_EQ(print(), "plain\n");
}

}  // namespace
}  // namespace orrery::umd
