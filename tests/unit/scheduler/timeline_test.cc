#include "umd/scheduler/timeline.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace orrery::umd {
namespace {

TEST(Timeline, FillsTheEarliestGapThatFits) {
    Timeline time;
    time.reserve(time.find(100, 50), 50);  // gap 0..100
    EXPECT_EQ(time.end(), 150);
    EXPECT_EQ(time.find(0, 100), 0);
    EXPECT_EQ(time.find(0, 101), 150);
    EXPECT_EQ(time.find(60, 50), 150);
    time.reserve(time.find(40, 20), 20);  // gaps 0..40, 60..100
    EXPECT_EQ(time.find(0, 40), 0);
    EXPECT_EQ(time.find(0, 41), 150);
    EXPECT_EQ(time.find(50, 30), 60);
    time.forget_before(70);
    EXPECT_EQ(time.find(0, 30), 70);
    EXPECT_EQ(time.find(0, 31), 150);
}

TEST(Timeline, NeverOverlaps) {
    std::mt19937 random(1);
    Timeline time;
    struct Span {
        Ps from, to;
    };
    std::vector<Span> spans;
    for (int i = 0; i < 5000; ++i) {
        const Ps ready = static_cast<Ps>(random() % 200'000), length = 1 + static_cast<Ps>(random() % 100);
        const Ps start = time.find(ready, length);
        ASSERT_GE(start, ready);
        time.reserve(start, length);
        for (const Span& span : spans)
            ASSERT_TRUE(start >= span.to || start + length <= span.from) << i;
        spans.push_back({start, start + length});
    }
}

}  // namespace
}  // namespace orrery::umd
