// What the recorder makes of what cards, the environment and calls say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/prof/card_facts.h"
#include "tools/prof/memory_book.h"

namespace orrery::prof {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(SkuNumbers, AreTheLinesThatAreNumbers) {
    EXPECT_THAT(sku_numbers("vector.cores\t8\tcores\nname\torrery-1\ncopy.engines\t2\n"),
                ElementsAre(Pair("vector.cores", 8), Pair("copy.engines", 2)));
    EXPECT_THAT(sku_numbers("last\t7"), ElementsAre(Pair("last", 7))) << "no newline";
    EXPECT_THAT(sku_numbers("a\t18446744073709551615"), ElementsAre(Pair("a", ~0ull)));
}

// The text is the card's.
TEST(SkuNumbers, LeaveOutWhatMakesNoSense) {
    for (const char* line : {"", "\n\n", "\t8", "a", "a\t", "a\t\t8", "a\t8x", "a\t-1", "a\t 8", "a\t0x8",
                             "a\t18446744073709551616"})
        EXPECT_THAT(sku_numbers(line), IsEmpty()) << line;
    EXPECT_EQ(sku_numbers(std::string(64, 'k') + "\t8").size(), 1u);
    EXPECT_THAT(sku_numbers(std::string(65, 'k') + "\t8"), IsEmpty());
    EXPECT_THAT(sku_numbers(std::string(1 << 20, 'k')), IsEmpty());
    std::string many;
    for (int i = 0; i < 600; ++i)
        many += "k\t8\n";
    EXPECT_EQ(sku_numbers(many).size(), 512u);
}

TEST(QuotaOf, IsWhatTheEnvironmentSays) {
    EXPECT_EQ(quota_of(nullptr), Quota(0, 0));
    EXPECT_EQ(quota_of("250"), Quota(250, 0));
    EXPECT_EQ(quota_of("250/5000"), Quota(250, 5000));
    for (const char* none : {"", "x", "-1", "/5000", "4294967296"})
        EXPECT_EQ(quota_of(none), Quota(0, 0)) << none;
    EXPECT_EQ(quota_of("250/x"), Quota(250, 0));
}

TEST(MemoryBook, KnowsWhatIsInUse) {
    MemoryBook book;
    EXPECT_EQ(book.take(0, 0x1000, 100).in_use, 100u);
    EXPECT_EQ(book.take(0, 0x2000, 50).in_use, 150u);
    EXPECT_EQ(book.take(1, 0x3000, 7).in_use, 7u) << "each device's";
    book.begin_give_back(1, 0x1000);
    const auto gone = book.end_give_back(1, true);
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->bytes, -100);
    EXPECT_EQ(gone->device, 0);
    EXPECT_EQ(gone->in_use, 50u);
    book.begin_give_back(2, 0x1000);
    EXPECT_FALSE(book.end_give_back(2, true)) << "it is gone";
    EXPECT_FALSE(book.end_give_back(3, true)) << "nobody began";
}

TEST(MemoryBook, WhatCouldNotBeGivenBackIsHeld) {
    MemoryBook book;
    (void)book.take(0, 0x1000, 100);
    book.begin_give_back(1, 0x1000);
    EXPECT_FALSE(book.end_give_back(1, false));
    EXPECT_EQ(book.take(0, 0x2000, 10).in_use, 110u);
    book.begin_give_back(2, 0x1000);
    EXPECT_EQ(book.end_give_back(2, true)->in_use, 10u);
}

// Another thread is given the same memory before the call that gave it back has come back.
TEST(MemoryBook, NothingIsInUseTwice) {
    MemoryBook book;
    (void)book.take(0, 0x1000, 100);
    book.begin_give_back(1, 0x1000);
    EXPECT_EQ(book.take(0, 0x1000, 60).in_use, 60u);
    const auto gone = book.end_give_back(1, true);
    EXPECT_EQ(gone->bytes, -100);
    EXPECT_EQ(gone->in_use, 60u);
    book.begin_give_back(2, 0x1000);
    EXPECT_EQ(book.end_give_back(2, true)->bytes, -60);
}

}  // namespace
}  // namespace orrery::prof
