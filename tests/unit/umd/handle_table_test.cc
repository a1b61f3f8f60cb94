#include "umd/runtime/handle_table.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace orrery::umd {
namespace {

TEST(HandleTable, StaleForeignAndInventedHandlesAreFound) {
    HandleTable<int, HandleKind::kStream> numbers;
    HandleTable<int, HandleKind::kEvent> others;
    void* one = numbers.insert(std::make_shared<int>(1));
    ASSERT_TRUE(numbers.find(one));
    EXPECT_EQ(*numbers.find(one), 1);
    EXPECT_FALSE(others.find(one));
    EXPECT_FALSE(numbers.find(nullptr));
    int local = 0;
    EXPECT_FALSE(numbers.find(&local));
    EXPECT_FALSE(numbers.find(reinterpret_cast<void*>(~std::uintptr_t{0})));
    EXPECT_FALSE(numbers.find(
        reinterpret_cast<void*>(handle_mark(HandleKind::kStream) | std::uintptr_t{0xfffff} << 32 | 1)));
    EXPECT_NE(numbers.remove(one), nullptr);
    EXPECT_FALSE(numbers.find(one));
    EXPECT_EQ(numbers.remove(one), nullptr);
    void* two = numbers.insert(std::make_shared<int>(2));  // takes the same slot
    EXPECT_NE(one, two);
    EXPECT_FALSE(numbers.find(one));
    EXPECT_EQ(*numbers.find(two), 2);
}

TEST(HandleTable, AReferenceKeepsWhatIsTakenOut) {
    HandleTable<std::string, HandleKind::kEvent> table;
    auto made = std::make_shared<std::string>("still here");
    const std::weak_ptr<std::string> watched = made;
    void* handle = table.insert(std::move(made));
    auto held = table.find(handle);
    auto again = table.find(handle);
    EXPECT_NE(table.remove(handle), nullptr);
    EXPECT_FALSE(table.find(handle));
    // Its slot is not used for another one meanwhile.
    void* other = table.insert(std::make_shared<std::string>("other"));
    EXPECT_NE(handle, other);
    EXPECT_EQ(*held, "still here");
    held = {};
    EXPECT_FALSE(watched.expired());
    EXPECT_EQ(*again, "still here");
    again = {};
    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(*table.find(other), "other");
}

TEST(HandleTable, GrowsAndSaysWhenItIsFull) {
    HandleTable<int, HandleKind::kStream> table;
    std::vector<void*> handles;
    while (void* handle = table.insert(std::make_shared<int>(static_cast<int>(handles.size())))) {
        handles.push_back(handle);
    }
    EXPECT_EQ(handles.size(), 1024u * 1024u);
    for (std::size_t i = 0; i < handles.size(); i += 997)
        ASSERT_EQ(*table.find(handles[i]), static_cast<int>(i));
    table.clear();
    EXPECT_FALSE(table.find(handles[0]));
}

TEST(HandleTable, ThreadsInsertFindAndRemove) {
    HandleTable<int, HandleKind::kModule> table;
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
