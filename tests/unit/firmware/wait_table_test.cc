// The table of those who wait for a semaphore, against a plain list.
#include "firmware/sched/sync/wait_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace orrery::fw::test {
namespace {

class WaitTableTest : public testing::Test {
  protected:
    WaitTableTest() : rows(ORR_FW_QUEUES) {
        for (std::size_t n = 0; n < rows.size(); ++n)
            rows[n].number = static_cast<std::uint16_t>(n);
        table.init(rows.data(), 0x1234);
    }
    std::vector<Queue> rows;
    WaitTable table{};
};

TEST_F(WaitTableTest, FindsNobodyWhereNobodyWaits) {
    EXPECT_EQ(table.first(0x4000000000), nullptr);
    EXPECT_EQ(table.take(0x4000000000, ~0ull), nullptr);
    EXPECT_EQ(table.count(), 0u);
}

TEST_F(WaitTableTest, CountsHowOftenTheLastHasLeft) {
    const std::uint64_t memory = 0x4000001000;
    EXPECT_EQ(table.emptied(), 0u);
    table.park(rows[5], memory, 1);
    table.park(rows[9], memory, 1);
    table.remove(rows[9]);
    EXPECT_EQ(table.emptied(), 0u);
    EXPECT_EQ(table.take(memory, 1), &rows[5]);
    EXPECT_EQ(table.emptied(), 1u);
    table.park(rows[5], memory, 2);
    EXPECT_EQ(table.emptied(), 1u) << "somebody waits again, and it was empty";
}

TEST_F(WaitTableTest, TakesByValueThenByArrival) {
    const std::uint64_t memory = 0x4000001000;
    table.park(rows[5], memory, 3);
    table.park(rows[9], memory, 1);
    table.park(rows[2], memory, 3);
    table.park(rows[7], memory + 16, 1);
    EXPECT_EQ(table.first(memory), &rows[9]);
    EXPECT_EQ(table.take(memory, 0), nullptr);
    EXPECT_EQ(table.take(memory, 2), &rows[9]);
    EXPECT_EQ(table.take(memory, 2), nullptr);
    EXPECT_EQ(table.take(memory, ~0ull), &rows[5]);
    EXPECT_EQ(table.take(memory, ~0ull), &rows[2]);
    EXPECT_EQ(table.take(memory, ~0ull), nullptr);
    EXPECT_EQ(table.first(memory + 16), &rows[7]);
    EXPECT_EQ(table.count(), 1u);
}

TEST_F(WaitTableTest, StaysShallowWhateverTheOrder) {
    // The way down the right sides is what every operation walks.
    for (const int order : {0, 1, 2}) {
        std::mt19937 random(7);
        for (std::uint32_t n = 0; n < ORR_FW_QUEUES; ++n) {
            const std::uint64_t value = order == 0 ? n : order == 1 ? ORR_FW_QUEUES - n : random() % 50;
            table.park(rows[n], 0x100, value);
            int depth = 0;
            for (std::uint16_t at = table.first(0x100)->number; at != 0xffff; at = rows[at].wait.right)
                ++depth;
            ASSERT_LE(depth, 10) << "order " << order << ", " << n << " waiters";
        }
        std::uint64_t last = 0;
        while (const Queue* const queue = table.take(0x100, ~0ull)) {
            ASSERT_GE(queue->wait.value, last);
            last = queue->wait.value;
        }
        ASSERT_EQ(table.count(), 0u);
    }
}

TEST_F(WaitTableTest, RandomAgainstAList) {
    struct Parked {
        std::uint16_t number;
        std::uint64_t memory, value;
    };
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        std::vector<Parked> list;  // in the order of arrival
        const std::uint64_t memories = 1 + random() % 40;
        const std::uint64_t values = 1 + random() % 100;
        table.init(rows.data(), random());
        const auto best = [&](std::uint64_t memory) {
            auto found = list.end();
            for (auto it = list.begin(); it != list.end(); ++it) {
                if (it->memory == memory && (found == list.end() || it->value < found->value)) found = it;
            }
            return found;
        };
        for (int step = 0; step < 4000; ++step) {
            const std::uint64_t memory = 0x4000000000 + random() % memories * 16;
            const auto action = random() % 8;
            if (action < 4) {
                const auto number = static_cast<std::uint16_t>(random() % rows.size());
                if (std::ranges::any_of(list, [&](const Parked& p) { return p.number == number; })) continue;
                const std::uint64_t value = random() % values;
                table.park(rows[number], memory, value);
                list.push_back({number, memory, value});
            } else if (action < 5 && !list.empty()) {
                const auto it = list.begin() + static_cast<std::ptrdiff_t>(random() % list.size());
                table.remove(rows[it->number]);
                list.erase(it);
            } else {
                const std::uint64_t value = random() % values;
                std::vector<std::uint16_t> due, expected;
                table.for_each_due(memory, value, [&](Queue& queue) { due.push_back(queue.number); });
                for (const Parked& p : list) {
                    if (p.memory == memory && p.value <= value) expected.push_back(p.number);
                }
                std::ranges::sort(due);
                std::ranges::sort(expected);
                ASSERT_EQ(due, expected) << "seed " << seed;
                const auto it = best(memory);
                const Queue* const first = table.first(memory);
                ASSERT_EQ(first, it == list.end() ? nullptr : &rows[it->number]) << "seed " << seed;
                const Queue* const taken = table.take(memory, value);
                if (it == list.end() || it->value > value) {
                    ASSERT_EQ(taken, nullptr);
                } else {
                    ASSERT_EQ(taken, &rows[it->number]);
                    list.erase(it);
                }
            }
            ASSERT_EQ(table.count(), list.size());
        }
        for (std::uint64_t n = 0; n < memories; ++n) {
            while (const Queue* const taken = table.take(0x4000000000 + n * 16, ~0ull)) {
                const auto it = best(0x4000000000 + n * 16);
                ASSERT_NE(it, list.end());
                ASSERT_EQ(taken->number, it->number);
                list.erase(it);
            }
        }
        ASSERT_TRUE(list.empty());
        ASSERT_EQ(table.count(), 0u);
    }
}

}  // namespace
}  // namespace orrery::fw::test
