#include "umd/runtime/handle_table.h"

#include <gtest/gtest.h>

#include <thread>

namespace orrery::umd {
namespace {

TEST(HandleTable, StaleForeignAndInventedHandlesAreFound) {
    HandleTable<int, 1> numbers;
    HandleTable<int, 2> others;
    void* one = numbers.insert(std::make_shared<int>(1));
    ASSERT_NE(numbers.find(one), nullptr);
    EXPECT_EQ(*numbers.find(one), 1);
    EXPECT_EQ(others.find(one), nullptr);
    EXPECT_EQ(numbers.find(nullptr), nullptr);
    int local = 0;
    EXPECT_EQ(numbers.find(&local), nullptr);
    EXPECT_EQ(numbers.find(reinterpret_cast<void*>(~std::uintptr_t{0})), nullptr);
    EXPECT_EQ(numbers.find(reinterpret_cast<void*>(std::uintptr_t{0x51} << 56 | 0xffffffull << 32 | 1)),
              nullptr);
    EXPECT_NE(numbers.remove(one), nullptr);
    EXPECT_EQ(numbers.find(one), nullptr);
    EXPECT_EQ(numbers.remove(one), nullptr);
    void* two = numbers.insert(std::make_shared<int>(2));  // takes the same slot
    EXPECT_NE(one, two);
    EXPECT_EQ(numbers.find(one), nullptr);
    EXPECT_EQ(*numbers.find(two), 2);
}

TEST(HandleTable, GrowsAndSaysWhenItIsFull) {
    HandleTable<int, 1> table;
    std::vector<void*> handles;
    while (void* handle = table.insert(std::make_shared<int>(static_cast<int>(handles.size())))) {
        handles.push_back(handle);
    }
    EXPECT_EQ(handles.size(), 256u * 1024u);
    for (std::size_t i = 0; i < handles.size(); i += 997)
        ASSERT_EQ(*table.find(handles[i]), static_cast<int>(i));
    table.clear();
    EXPECT_EQ(table.find(handles[0]), nullptr);
}

TEST(HandleTable, ThreadsInsertFindAndRemove) {
    HandleTable<int, 3> table;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&table, t] {
            for (int i = 0; i < 2000; ++i) {
                void* handle = table.insert(std::make_shared<int>(t));
                EXPECT_EQ(*table.find(handle), t);
                EXPECT_NE(table.remove(handle), nullptr);
            }
        });
    }
    for (auto& thread : threads)
        thread.join();
}

}  // namespace
}  // namespace orrery::umd
