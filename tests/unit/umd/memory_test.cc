#include <array>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <orrery/hw/engine.h>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

TEST(Memory, CopiesInAllDirectionsKeepEveryByte) {
    FakeSystem system(1);
    constexpr std::size_t kSize = 3 << 20;  // several staging halves
    void *card_a = nullptr, *card_b = nullptr, *pinned = nullptr;
    ASSERT_OK(orrMalloc(&card_a, kSize));
    ASSERT_OK(orrMalloc(&card_b, kSize));
    ASSERT_OK(orrMallocHost(&pinned, kSize, 0));
    const auto data = random_bytes(kSize, 1);
    std::vector<std::uint8_t> back(kSize);
    const std::vector<std::uint8_t> untouched(kSize, 0xee);
    std::mt19937 random(2);
    for (int round = 0; round < 60; ++round) {
        const std::size_t bytes = round == 0 ? kSize : random() % kSize;
        const auto offset = [&] { return random() % (kSize - bytes + 1); };
        const std::size_t from = offset(), a = offset(), b = offset(), p = offset();
        ASSERT_OK(orrMemcpy(at(card_a, a), data.data() + from, bytes, orrMemcpyHostToDevice));
        ASSERT_OK(orrMemcpy(at(card_b, b), at(card_a, a), bytes, orrMemcpyDeviceToDevice));
        ASSERT_OK(orrMemcpy(at(pinned, p), at(card_b, b), bytes, orrMemcpyDefault));
        ASSERT_EQ(std::memcmp(at(pinned, p), data.data() + from, bytes), 0);
        std::memset(back.data(), 0xee, kSize);
        ASSERT_OK(orrMemcpy(back.data(), at(card_b, b), bytes, orrMemcpyDeviceToHost));
        ASSERT_EQ(std::memcmp(back.data(), data.data() + from, bytes), 0);
        ASSERT_EQ(std::memcmp(back.data() + bytes, untouched.data(), kSize - bytes), 0)
            << "written past the end";
        ASSERT_OK(orrMemcpy(at(card_a, a), at(pinned, p), bytes, orrMemcpyDefault));
        ASSERT_OK(orrMemcpy(back.data(), data.data(), bytes, orrMemcpyHostToHost));
        ASSERT_EQ(std::memcmp(back.data(), data.data(), bytes), 0);
    }
    ASSERT_OK(orrFree(card_a));
    ASSERT_OK(orrFree(card_b));
    ASSERT_OK(orrFreeHost(pinned));
}

TEST(Memory, MemsetOddSizesTouchesNothingElse) {
    FakeSystem system(1);
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 4096));
    ASSERT_OK(orrMemset(memory, 0x11, 4096));
    ASSERT_OK(orrMemset(at(memory, 3), 0xabc, 1001));  // the low byte counts
    ASSERT_OK(orrMemset(at(memory, 2048), 0x7f, 64));
    ASSERT_OK(orrMemset(at(memory, 100), 0x55, 0));
    std::vector<std::uint8_t> back(4096);
    ASSERT_OK(orrMemcpy(back.data(), memory, 4096, orrMemcpyDefault));
    for (std::size_t i = 0; i < back.size(); ++i) {
        const int expected = i >= 3 && i < 1004 ? 0xbc : i >= 2048 && i < 2112 ? 0x7f : 0x11;
        ASSERT_EQ(back[i], expected) << i;
    }
    ASSERT_OK(orrFree(memory));
}

// What a card that checks kernels' use of memory was told and has not been asked for: what, offset from the
// first heap, bytes.
std::vector<std::array<std::uint64_t, 3>> told_of(FakeCard& card, std::uint64_t from) {
    const std::lock_guard lock(card.mutex());
    std::vector<std::array<std::uint64_t, 3>> all;
    for (const orr_desc_tell& desc : std::exchange(card.told, {}))
        all.push_back({desc.what, desc.va - from, desc.bytes});
    return all;
}

TEST(Memory, ACardThatChecksKnowsItsHeap) {
    FakeSystem system(2);
    system.card(0).checks_memory = true;
    using All = std::vector<std::array<std::uint64_t, 3>>;
    constexpr std::uint64_t kSlab = 2 << 20, kOwn = (1 << 20) + 100, kWhole = (1 << 20) + 4096;
    void *a = nullptr, *b = nullptr, *c = nullptr;
    ASSERT_OK(orrMalloc(&a, 100));
    const auto heap = reinterpret_cast<std::uintptr_t>(a);
    EXPECT_EQ(told_of(system.card(0), heap), (All{{ORR_TELL_HEAP, 0, kSlab}, {ORR_TELL_ALLOCATED, 0, 100}}));
    std::size_t pitch = 0;
    ASSERT_OK(orrMallocPitch(&b, &pitch, 300, 2));
    EXPECT_EQ(told_of(system.card(0), heap), (All{{ORR_TELL_ALLOCATED, 256, 1024}}));
    ASSERT_OK(orrFree(a));
    EXPECT_EQ(told_of(system.card(0), heap), (All{{ORR_TELL_FREED, 0, 100}}));
    ASSERT_OK(orrMalloc(&c, kOwn));
    const auto own = reinterpret_cast<std::uintptr_t>(c);
    EXPECT_EQ(told_of(system.card(0), own), (All{{ORR_TELL_HEAP, 0, kWhole}, {ORR_TELL_ALLOCATED, 0, kOwn}}));
    ASSERT_OK(orrFree(c));
    EXPECT_EQ(told_of(system.card(0), own), (All{{ORR_TELL_FREED, 0, kOwn}, {ORR_TELL_NO_HEAP, 0, kWhole}}));
    // One that does not ask is told nothing.
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&c, 100));
    ASSERT_OK(orrFree(c));
    EXPECT_EQ(told_of(system.card(1), 0), All{});
    ASSERT_OK(orrFree(b));
}

TEST(Memory, WhatACardWasNotToldItIsToldLater) {
    FakeSystem system(2);
    FakeCard& card = system.card(0);
    card.checks_memory = true;
    using All = std::vector<std::array<std::uint64_t, 3>>;
    void *none = nullptr, *memory = nullptr;
    // It stops before it has read what it is told.
    card.pause(true);
    card.on_wait = [&] { card.crash("heap, for checks"); };
    EXPECT_NE(orrMalloc(&none, 100), orrSuccess);
    card.on_wait = {};
    card.pause(false);
    // Who uses another card has nothing to do with it.
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&memory, 100));
    ASSERT_OK(orrFree(memory));
    EXPECT_EQ(told_of(card, 0), All{});
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrMalloc(&memory, 200));
    const auto heap = reinterpret_cast<std::uintptr_t>(memory);
    EXPECT_EQ(told_of(card, heap), (All{{ORR_TELL_HEAP, 0, 2 << 20},
                                        {ORR_TELL_ALLOCATED, 0, 100},
                                        {ORR_TELL_FREED, 0, 100},
                                        {ORR_TELL_ALLOCATED, 0, 200}}));
    // What is free is free.
    card.pause(true);
    card.wait_errno = EIO;
    EXPECT_OK(orrFree(memory));
    EXPECT_EQ(card.wait_errno, 0);
    card.pause(false);
    ASSERT_OK(orrMalloc(&memory, 300));
    const auto told = told_of(card, heap);
    EXPECT_EQ(told.back(), (All::value_type{ORR_TELL_ALLOCATED, 0, 300}));
    ASSERT_OK(orrFree(memory));
}

TEST(Memory, AddressesAreUniqueOverCardsAndHost) {
    FakeSystem system(2);
    std::vector<void*> pointers;
    for (int i = 0; i < 30; ++i) {
        void* pointer = nullptr;
        ASSERT_OK(orrSetDevice(i % 2));
        if (i % 3 == 0) {
            ASSERT_OK(orrMallocHost(&pointer, 4096, 0));
        } else {
            ASSERT_OK(orrMalloc(&pointer, i % 5 == 0 ? 2u << 20 : 1000));
        }
        EXPECT_EQ(std::count(pointers.begin(), pointers.end(), pointer), 0);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % 256, 0u);
        pointers.push_back(pointer);
    }
    for (int i = 0; i < 30; ++i) {
        ASSERT_OK(i % 3 == 0 ? orrFreeHost(pointers[static_cast<std::size_t>(i)])
                             : orrFree(pointers[static_cast<std::size_t>(i)]));
    }
}

TEST(Memory, PinnedMemoryIsSeenByCardsThatAreUsedLater) {
    FakeSystem system(2);
    void* pinned = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, 4096, 0));  // card 0 only
    std::memset(pinned, 0x3c, 4096);
    ASSERT_OK(orrSetDevice(1));
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 4096));  // card 1 comes to life
    ASSERT_OK(orrMemcpy(memory, pinned, 4096, orrMemcpyHostToDevice));
    std::memset(pinned, 0, 4096);
    ASSERT_OK(orrMemcpy(pinned, memory, 4096, orrMemcpyDeviceToHost));
    EXPECT_EQ(static_cast<std::uint8_t*>(pinned)[4095], 0x3c);
    ASSERT_OK(orrFreeHost(pinned));
    ASSERT_OK(orrFree(memory));
}

TEST(Memory, MistakesAreExplained) {
    FakeSystem system(1);
    void *memory = nullptr, *pinned = nullptr;
    char local[64];
    ASSERT_OK(orrMalloc(&memory, 1000));
    ASSERT_OK(orrMallocHost(&pinned, 1000, 0));
    EXPECT_FAIL(orrMalloc(nullptr, 1), orrErrorInvalidValue, "ptr");
    EXPECT_FAIL(orrMalloc(&memory, 0), orrErrorInvalidValue, "0 bytes");
    EXPECT_FAIL(orrMalloc(&memory, SIZE_MAX), orrErrorOutOfMemory, "more than any card");
    EXPECT_FAIL(orrMalloc(&memory, 65u << 20), orrErrorOutOfMemory, "orrery-smi");
    EXPECT_FAIL(orrMemcpy(at(memory, 990), local, 11, orrMemcpyDefault), orrErrorInvalidValue, "runs past");
    EXPECT_FAIL(orrMemcpy(memory, local, SIZE_MAX, orrMemcpyDefault), orrErrorInvalidValue,
                "more than a copy");
    EXPECT_FAIL(orrMemcpy(memory, nullptr, 4, orrMemcpyDefault), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrMemcpy(memory, local, 4, orrMemcpyDeviceToHost), orrErrorInvalidValue, "kind");
    EXPECT_FAIL(orrMemcpy(memory, local, 4, static_cast<orrMemcpyKind>(7)), orrErrorInvalidValue,
                "not an orrMemcpyKind");
    EXPECT_FAIL(orrMemset(local, 0, 4), orrErrorInvalidValue, "not memory of orrMalloc");
    EXPECT_FAIL(orrMemset(at(memory, 1), 0, 1000), orrErrorInvalidValue, "runs past");
    EXPECT_FAIL(orrFree(at(memory, 8)), orrErrorInvalidValue, "8 bytes into the allocation of 1000 bytes");
    EXPECT_FAIL(orrFree(pinned), orrErrorInvalidValue, "orrMalloc");
    EXPECT_FAIL(orrFreeHost(memory), orrErrorInvalidValue, "orrMallocHost");
    EXPECT_OK(orrFree(nullptr));
    ASSERT_OK(orrFree(memory));
    EXPECT_FAIL(orrFree(memory), orrErrorInvalidValue, "freed before");
    ASSERT_OK(orrFreeHost(pinned));
}

TEST(Memory, EverythingFreedComesBack) {
    FakeSystem system(1);
    for (int round = 0; round < 3; ++round) {
        std::vector<void*> all;
        for (void* p = nullptr; orrMalloc(&p, 300 << 10) == orrSuccess;)
            all.push_back(p);
        EXPECT_GT(all.size(), 150u);
        for (void* p : all)
            ASSERT_OK(orrFree(p));
    }
    void* large = nullptr;
    ASSERT_OK(orrMalloc(&large, 60 << 20));
    ASSERT_OK(orrFree(large));
    std::size_t free_bytes = 0, total = 0;
    ASSERT_OK(orrMemGetInfo(&free_bytes, &total));
    EXPECT_EQ(total, 64u << 20);
    EXPECT_GE(free_bytes, 60u << 20);
}

TEST(Memory, ThreadsAllocateCopyAndFree) {
    FakeSystem system(2);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            EXPECT_OK(orrSetDevice(t % 2));
            const auto data = random_bytes(70000, static_cast<std::uint32_t>(t));
            std::vector<std::uint8_t> back(data.size());
            for (int i = 0; i < 30; ++i) {
                void* memory = nullptr;
                ASSERT_OK(orrMalloc(&memory, data.size()));
                ASSERT_OK(orrMemcpy(memory, data.data(), data.size(), orrMemcpyHostToDevice));
                ASSERT_OK(orrMemcpy(back.data(), memory, data.size(), orrMemcpyDeviceToHost));
                ASSERT_EQ(back, data);
                ASSERT_OK(orrFree(memory));
            }
        });
    }
    for (auto& thread : threads)
        thread.join();
}

TEST(Memory, FreedOrMadeUpAddressesOfCardsAreErrors) {
    FakeSystem system(1);
    void* memory = nullptr;
    std::uint8_t host[64] = {};
    ASSERT_OK(orrMalloc(&memory, 64));
    ASSERT_OK(orrFree(memory));
    EXPECT_FAIL(orrMemcpy(host, memory, 8, orrMemcpyDefault), orrErrorInvalidValue, "Was it freed?");
    EXPECT_FAIL(orrMemcpy(memory, host, 8, orrMemcpyDefault), orrErrorInvalidValue, "address of a card");
    EXPECT_FAIL(orrMemcpy(host, at(memory, 1 << 30), 8, orrMemcpyDefault), orrErrorInvalidValue, "");
}

TEST(Memory, LostCardLeavesTheOthersTheirPinnedMemory) {
    FakeSystem system(2);
    void *on0 = nullptr, *on1 = nullptr, *pinned = nullptr;
    ASSERT_OK(orrMalloc(&on0, 64));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&on1, 64));
    system.card(0).lose();
    ASSERT_OK(orrMallocHost(&pinned, 4096, 0));
    ASSERT_OK(orrMemset(on1, 5, 64));
    ASSERT_OK(orrMemcpy(pinned, on1, 64, orrMemcpyDefault));
    EXPECT_EQ(*static_cast<std::uint8_t*>(pinned), 5);
    ASSERT_OK(orrFreeHost(pinned));
    ASSERT_OK(orrFree(on1));
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrFree(on0));
}

// Odd sizes leave no holes behind: what was freed fits what is asked for next.
TEST(Memory, SlabsAreUsedAgainWhole) {
    FakeSystem system(1);
    std::vector<void*> all(3000);
    for (int round = 0; round < 3; ++round) {
        for (void*& memory : all)
            ASSERT_OK(orrMalloc(&memory, 1 + 100 * static_cast<std::size_t>(round)));
        {
            const std::lock_guard lock(system.card().mutex());
            EXPECT_LE(system.card().vram_used, 8u << 20) << round;
        }
        for (void* memory : all)
            ASSERT_OK(orrFree(memory));
    }
}

}  // namespace
}  // namespace orrery::umd::test
