#include "umd/runtime/asking_turns.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace orrery::umd {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Ten that try each millisecond, and one that does each 20: all have their turn before anybody has two.
TEST(AskingTurns, WhoTriesSeldomIsNotStarved) {
    AskingTurns turns;
    std::array<int, 11> names{};
    std::set<const int*> served;
    for (std::int64_t now = 0; served.size() < names.size(); now += kMs) {
        ASSERT_LT(now, 2'000 * kMs);
        for (const int& name : names) {
            const bool seldom = &name == &names.back();
            if ((seldom && now % (20 * kMs) != 7 * kMs) || !turns.begin({&name, 0}, now)) continue;
            turns.end({&name, 0}, now, 0);
            EXPECT_TRUE(served.insert(&name).second);
        }
    }
}

TEST(AskingTurns, OneAsksEach20Ms) {
    AskingTurns turns;
    const int a = 0;
    ASSERT_TRUE(turns.begin({&a, 0}, 0));
    turns.end({&a, 0}, 5 * kMs, 0);
    EXPECT_FALSE(turns.begin({&a, 0}, 24 * kMs));
    EXPECT_TRUE(turns.begin({&a, 0}, 25 * kMs));
}

TEST(AskingTurns, WhoIsGoneKeepsNobodyFromAsking) {
    AskingTurns turns;
    const int a = 0, b = 0;
    turns.end({&a, 0}, 0, 0);
    EXPECT_FALSE(turns.begin({&b, 0}, kMs));
    EXPECT_FALSE(turns.begin({&a, 0}, 30 * kMs)) << "b wants to, and never has";
    EXPECT_TRUE(turns.begin({&a, 0}, kMs + AskingTurns::kGoneNs + 1));
}

TEST(AskingTurns, WhatIsSeenTwiceIsOfOneWait) {
    AskingTurns turns;
    const int a = 0;
    EXPECT_FALSE(turns.end({&a, 1}, 0, 7));
    EXPECT_FALSE(turns.end({&a, 2}, 20 * kMs, 7)) << "of another value";
    EXPECT_TRUE(turns.end({&a, 1}, 40 * kMs, 7));
    EXPECT_FALSE(turns.end({&a, 1}, 60 * kMs, 0));
    EXPECT_FALSE(turns.end({&a, 1}, 80 * kMs, 7)) << "there was none in between";
    EXPECT_TRUE(turns.begin({&a, 2}, 80 * kMs + AskingTurns::kGoneNs + 1));
    EXPECT_FALSE(turns.end({&a, 1}, 90 * kMs + AskingTurns::kGoneNs, 7)) << "another wait, long after";
}

}  // namespace
}  // namespace orrery::umd
