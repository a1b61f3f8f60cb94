#include <chrono>
#include <mutex>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "tests/unit/umd/long_patience.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

void* malloc_on(int device, std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_OK(orrSetDevice(device));
    EXPECT_OK(orrMalloc(&memory, bytes));
    return memory;
}

TEST(Peer, CopiesPushAfterAccessIsEnabled) {
    FakeSystem system(2);
    void* before = malloc_on(1, 4096);  // in card 1
    void* source = malloc_on(0, 4096);
    int can = 0;
    ASSERT_OK(orrDeviceCanAccessPeer(&can, 0, 1));
    EXPECT_EQ(can, 1);
    ASSERT_OK(orrMemset(source, 0x42, 4096));
    EXPECT_FAIL(orrMemcpy(before, source, 4096, orrMemcpyDeviceToDevice), orrErrorPeerAccess,
                "orrDeviceEnablePeerAccess(1, 0)");
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrMemcpy(before, source, 4096, orrMemcpyDeviceToDevice));
    void* later = malloc_on(1, 3 << 20);  // of its own block
    ASSERT_OK(orrMemcpy(at(later, 1 << 20), source, 4096, orrMemcpyDefault));
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemcpy(&byte, at(before, 4095), 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 0x42);
    ASSERT_OK(orrMemcpy(&byte, at(later, (1 << 20) + 4095), 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 0x42);
    // The other direction was not enabled, and these cards do not read each other.
    EXPECT_FAIL(orrMemcpy(source, before, 4096, orrMemcpyDefault), orrErrorPeerAccess,
                "EnablePeerAccess(0, 0)");
    orrStream_t stream = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    EXPECT_FAIL(orrMemcpyAsync(before, source, 64, orrMemcpyDefault, stream), orrErrorPeerAccess,
                "only writes");
    ASSERT_OK(orrStreamDestroy(stream));
    for (void* memory : {before, source, later})
        ASSERT_OK(orrFree(memory));
}

TEST(Peer, CardsThatReadEachOther) {
    FakeSystem system(2);
    for (std::size_t card = 0; card < 2; ++card)
        system.card(card).peer_reads = true;
    void* mine = malloc_on(0, 4096);
    void* theirs = malloc_on(1, 4096);
    ASSERT_OK(orrMemset(theirs, 0x42, 4096));
    orrStream_t stream = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    EXPECT_FAIL(orrMemcpyAsync(mine, theirs, 64, orrMemcpyDefault, stream), orrErrorPeerAccess,
                "orrDeviceEnablePeerAccess(1, 0)");
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrMemcpyAsync(mine, theirs, 4096, orrMemcpyDefault, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemcpy(&byte, at(mine, 4095), 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 0x42);
    // Device 1 may not write there, so device 0 reads.
    ASSERT_OK(orrMemset(theirs, 0x43, 4096));
    ASSERT_OK(orrMemcpy(mine, theirs, 4096, orrMemcpyDeviceToDevice));
    ASSERT_OK(orrMemcpy(&byte, at(mine, 4095), 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 0x43);
    ASSERT_OK(orrStreamDestroy(stream));
    for (void* memory : {mine, theirs})
        ASSERT_OK(orrFree(memory));
}

TEST(Peer, NoLinkNoAccess) {
    FakeSystem system(3);
    int can = 1;
    ASSERT_OK(orrDeviceCanAccessPeer(&can, 0, 2));
    EXPECT_EQ(can, 0);
    ASSERT_OK(orrSetDevice(0));
    EXPECT_FAIL(orrDeviceEnablePeerAccess(2, 0), orrErrorPeerAccess, "no way over links");
    EXPECT_FAIL(orrDeviceEnablePeerAccess(0, 0), orrErrorInvalidDevice, "no peer of itself");
    EXPECT_FAIL(orrDeviceEnablePeerAccess(3, 0), orrErrorInvalidDevice, "no device 3");
    EXPECT_FAIL(orrSetDevice(-1), orrErrorInvalidDevice, "no device -1");
}

// A link falls with its card, and who looks at links first is still told of the card.
TEST(Peer, NoWayToACardThatIsLostSaysSo) {
    FakeSystem system{3};
    system.card(1).cut_link();
    system.card(1).lose();
    EXPECT_FAIL(orrDeviceEnablePeerAccess(1, 0), orrErrorDeviceLost, "as device 1 is lost");
    // The third is not involved.
    EXPECT_FAIL(orrDeviceEnablePeerAccess(2, 0), orrErrorPeerAccess, "no way over links");
}

// Memory that came while no way led to its card belongs to who may use it, once one does: whether a copy
// looks for it, or a kernel may, or the program asks for access again.
TEST(Peer, WhatCameWhileALinkWasDownIsSharedWhenItIsUp) {
    FakeSystem system(2);
    for (std::size_t card = 0; card < 2; ++card)
        system.card(card).peer_reads = true;
    void* mine = malloc_on(0, 4096);
    ASSERT_OK(orrMemset(mine, 0x42, 4096));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    const auto wait_for_link = [](int up) {
        int can = 1 - up;
        for (int tries = 0; tries < 1000 && can != up; ++tries)
            EXPECT_OK(orrDeviceCanAccessPeer(&can, 0, 1));
        EXPECT_EQ(can, up);
    };
    std::vector<void*> all;
    const auto& memory = (*Runtime::get())->memory();
    const auto refusal = [&](void* there) {
        return memory.peer_refusal(0, *memory.find(reinterpret_cast<std::uintptr_t>(there)));
    };
    for (int round = 0; round < 3; ++round) {
        SCOPED_TRACE(round);
        system.card(0).cut_link();
        wait_for_link(0);
        void* there = all.emplace_back(malloc_on(1, 2 << 20));
        ASSERT_TRUE(refusal(there).has_value());
        EXPECT_THAT(refusal(there)->text, ::testing::HasSubstr("No way over links that are up"));
        ASSERT_OK(orrSetDevice(0));
        system.card(0).mend_link();
        EXPECT_TRUE(refusal(there).has_value()) << "nobody has looked";
        wait_for_link(1);
        if (round == 0) {
            ASSERT_OK(orrMemcpy(there, mine, 4096, orrMemcpyDefault));
        } else if (round == 1) {
            ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
        } else {
            (*Runtime::get())->offer_again();  // as a launch does
        }
        EXPECT_FALSE(refusal(there).has_value());
        EXPECT_FALSE(memory.awaits_ways());
    }
    for (void* one : all)
        ASSERT_OK(orrFree(one));
    ASSERT_OK(orrFree(mine));
}

TEST(Peer, GrantsThatRunOutCostOnlyTheRestPeerAccess) {
    FakeSystem system(2);
    system.card(0).max_grants = 3;  // two buffers, and the semaphores that say that copies have arrived
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    void* source = malloc_on(0, 64);
    std::vector<void*> memory;
    for (int i = 0; i < 3; ++i)
        memory.push_back(malloc_on(1, 2 << 20));
    EXPECT_OK(orrMemcpy(memory[1], source, 64, orrMemcpyDefault));
    EXPECT_FAIL(orrMemcpy(memory[2], source, 64, orrMemcpyDefault), orrErrorPeerAccess,
                "but not the allocation");
    EXPECT_OK(orrMemset(memory[2], 1, 64)) << "its own card uses it all the same";
    for (void* m : memory)
        ASSERT_OK(orrFree(m));
    ASSERT_OK(orrFree(source));
}

TEST(Peer, SemaphoreIsSignalledOverTheLinkBehindTheData) {
    FakeSystem system(2);
    void* target = malloc_on(0, 4096);
    void* source = malloc_on(1, 4096);
    orrSemaphore_t arrived = nullptr;
    orrStream_t waiting = nullptr, sending = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrSemaphoreCreate(&arrived, 0));
    ASSERT_OK(orrStreamCreate(&waiting, 0));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrStreamCreate(&sending, 0));
    EXPECT_FAIL(orrStreamSignalSemaphore(sending, arrived, 1), orrErrorPeerAccess, "EnablePeerAccess(0, 0)");
    ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
    void* pinned = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, 4096, 0));
    for (std::uint64_t round = 1; round <= 50; ++round) {
        ASSERT_OK(orrStreamWaitSemaphore(waiting, arrived, round, nullptr));
        ASSERT_OK(orrMemcpyAsync(pinned, target, 4096, orrMemcpyDefault, waiting));
        ASSERT_OK(orrMemsetAsync(source, static_cast<int>(round), 4096, sending));
        ASSERT_OK(orrMemcpyAsync(target, source, 4096, orrMemcpyDefault, sending));
        ASSERT_OK(orrStreamSignalSemaphore(sending, arrived, round));
        ASSERT_OK(orrStreamSynchronize(waiting));
        ASSERT_EQ(static_cast<std::uint8_t*>(pinned)[4095], round);
    }
    EXPECT_FAIL(orrStreamWaitSemaphore(sending, arrived, 1, nullptr), orrErrorInvalidValue,
                "only on its own");
    ASSERT_OK(orrStreamDestroy(waiting));
    ASSERT_OK(orrStreamDestroy(sending));
    ASSERT_OK(orrSemaphoreDestroy(arrived));
    ASSERT_OK(orrFreeHost(pinned));
    ASSERT_OK(orrFree(target));
    ASSERT_OK(orrFree(source));
}

TEST(Peer, EventsOrderStreamsOfLinkedCards) {
    FakeSystem system(2);
    void* pinned = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, 4096, 0));
    orrStream_t streams[2] = {};
    for (int device = 0; device < 2; ++device) {
        ASSERT_OK(orrSetDevice(device));
        ASSERT_OK(orrStreamCreate(&streams[device], 0));
    }
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    void* words[2] = {malloc_on(0, 8), malloc_on(1, 8)};
    // Two cards take turns on one pinned word; each copies it out before it writes its own.
    for (int i = 0; i < 100; ++i) {
        const int device = i % 2;
        ASSERT_OK(orrStreamWaitEvent(streams[device], event, nullptr));
        ASSERT_OK(orrMemcpyAsync(at(pinned, static_cast<std::size_t>(8 + 8 * i)), pinned, 8, orrMemcpyDefault,
                                 streams[device]));
        ASSERT_OK(orrMemsetAsync(words[device], i + 1, 8, streams[device]));
        ASSERT_OK(orrMemcpyAsync(pinned, words[device], 8, orrMemcpyDefault, streams[device]));
        ASSERT_OK(orrEventRecord(event, streams[device]));
    }
    ASSERT_OK(orrStreamSynchronize(streams[1]));
    for (int i = 0; i < 100; ++i)
        ASSERT_EQ(static_cast<std::uint8_t*>(pinned)[8 + 8 * i], i) << i;
    double ns = 0;
    orrEvent_t here = nullptr;
    ASSERT_OK(orrEventCreate(&here, 0));
    ASSERT_OK(orrEventRecord(here, streams[0]));
    ASSERT_OK(orrEventSynchronize(here));
    EXPECT_FAIL(orrEventElapsedModelTime(&ns, event, here), orrErrorInvalidValue, "not the same");
    ASSERT_OK(orrEventDestroy(here));
    ASSERT_OK(orrEventDestroy(event));
    for (int device = 0; device < 2; ++device) {
        ASSERT_OK(orrStreamDestroy(streams[device]));
        ASSERT_OK(orrFree(words[device]));
    }
    ASSERT_OK(orrFreeHost(pinned));
}

TEST(Peer, EventAcrossUnlinkedCardsIsRefused) {
    FakeSystem system(3);
    orrStream_t a = nullptr, c = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&a, 0));
    ASSERT_OK(orrSetDevice(2));
    ASSERT_OK(orrStreamCreate(&c, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrEventRecord(event, a));
    EXPECT_FAIL(orrStreamWaitEvent(c, event, nullptr), orrErrorPeerAccess, "link");
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(a));
    ASSERT_OK(orrStreamDestroy(c));
}

// Many waits for the other card's events may be outstanding, and nobody who looks is held up by them.
TEST(Peer, OutstandingWaitsForAnotherCardHoldNobodyUp) {
    FakeSystem system(2);
    constexpr int kWaits = 200;
    orrStream_t source = nullptr, waiting = nullptr, other = nullptr;
    ASSERT_OK(orrStreamCreate(&source, 0));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrStreamCreate(&waiting, 0));
    ASSERT_OK(orrStreamCreate(&other, 0));
    void* word = malloc_on(1, 8);
    system.card(0).pause(true);
    std::vector<orrEvent_t> events(kWaits);
    for (orrEvent_t& event : events) {
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrEventCreate(&event, 0));
        ASSERT_OK(orrEventRecord(event, source));
        ASSERT_OK(orrStreamWaitEvent(waiting, event, nullptr));
    }
    ASSERT_OK(orrMemsetAsync(word, 7, 8, waiting));
    EXPECT_EQ(orrStreamQuery(waiting), orrErrorNotReady);
    EXPECT_OK(orrStreamSynchronize(other));
    system.card(0).pause(false);
    EXPECT_OK(orrStreamSynchronize(waiting));
    std::uint64_t value = 0;
    EXPECT_OK(orrMemcpy(&value, word, 8, orrMemcpyDefault));
    EXPECT_EQ(value, 0x0707070707070707u);
    for (const orrEvent_t event : events)
        EXPECT_OK(orrEventDestroy(event));
    for (const orrStream_t stream : {source, waiting, other})
        EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrFree(word));
}

// Work that writes to a peer and finds no room leaves nothing behind that anybody would wait for.
TEST(Peer, WorkThatFoundNoRoomIsNotWaitedFor) {
    FakeSystem system(2);
    void* there = malloc_on(1, 64);
    void* here = malloc_on(0, 64);
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    const LongPatience patience;
    system.card(0).pause(true);
    for (int i = 0; i < 1024; ++i)
        ASSERT_OK(orrMemsetAsync(here, 3, 8, stream));
    const auto deadlock = [&](std::size_t edges) {
        const std::lock_guard lock(system.card(0).mutex());
        system.card(0).deadlock.resize(edges);
    };
    deadlock(1);
    EXPECT_EQ(orrMemcpyAsync(there, here, 64, orrMemcpyDefault, stream), orrErrorDeadlock);
    deadlock(0);
    system.card(0).pause(false);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_OK(orrStreamSynchronize(stream));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, LongPatience::kShort);
    EXPECT_OK(orrMemcpyAsync(there, here, 64, orrMemcpyDefault, stream));
    EXPECT_OK(orrStreamSynchronize(stream));
    EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrFree(there));
    EXPECT_OK(orrFree(here));
}

}  // namespace
}  // namespace orrery::umd::test
