#include "umd/runtime/deadlock_search.h"

#include <gtest/gtest.h>

namespace orrery::umd {
namespace {

std::vector<std::size_t> find_cycle(std::span<const QueueView> queues, std::size_t from) {
    return umd::find_cycle(queues, find_stuck(queues), from);
}

QueueView waits(SemaphorePoint wanted, std::vector<SemaphorePoint> later = {}) {
    return {0, true, wanted, std::move(later), {}};
}

TEST(DeadlockSearch, CycleInItsOrder) {
    const std::vector<QueueView> queues = {waits({0x10, 1}, {{0x20, 1}}), waits({0x30, 5}, {{0x10, 2}}),
                                           waits({0x20, 1}, {{0x30, 5}})};
    EXPECT_EQ(find_cycle(queues, 0), (std::vector<std::size_t>{0, 1, 2}));
    EXPECT_EQ(find_cycle(queues, 2), (std::vector<std::size_t>{2, 0, 1}));
}

TEST(DeadlockSearch, WhoWaitsForACycleIsToldIt) {
    const std::vector<QueueView> queues = {waits({0x10, 1}), waits({0x20, 1}, {{0x10, 1}, {0x30, 1}}),
                                           waits({0x30, 1}, {{0x20, 1}})};
    EXPECT_EQ(find_cycle(queues, 0), (std::vector<std::size_t>{1, 2}));
}

TEST(DeadlockSearch, SomebodyElseMayEndIt) {
    // Nobody of these signals 0x20: the host may, or another process.
    EXPECT_TRUE(
        find_cycle(std::vector<QueueView>{waits({0x10, 1}), waits({0x20, 1}, {{0x10, 1}})}, 0).empty());
    // A third one signals too, and works.
    std::vector<QueueView> queues = {waits({0x10, 1}, {{0x20, 1}}), waits({0x20, 1}, {{0x10, 1}}), {}};
    queues[2].later = {{0x10, 1}};
    EXPECT_TRUE(find_cycle(queues, 0).empty());
    // Too small a value is no help.
    queues[2].later = {{0x10, 0}};
    EXPECT_EQ(find_cycle(queues, 0).size(), 2u);
    // It has been signalled, and is on its way.
    queues[2].on_way = {{0x20, 1}};
    EXPECT_TRUE(find_cycle(queues, 0).empty());
}

TEST(DeadlockSearch, NothingToFind) {
    EXPECT_TRUE(find_cycle({}, 0).empty());
    EXPECT_TRUE(find_cycle(std::vector<QueueView>{{}}, 0).empty());
    EXPECT_TRUE(find_cycle(std::vector<QueueView>{waits({0x10, 1}, {{0x10, 1}})}, 1).empty());
    EXPECT_EQ(find_cycle(std::vector<QueueView>{waits({0x10, 1}, {{0x10, 1}})}, 0).size(), 1u)
        << "a queue that waits for itself";
}

}  // namespace
}  // namespace orrery::umd
