// Barriers of several cards in their barrier units: for a VM of two cards or more, all of which are members.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <orrery/hw/mmu.h>

#include "tests/system/runtime/hand.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

drm_orr_query_device device_of(const Place& place) {
    drm_orr_query_device card{};
    EXPECT_EQ(call(place.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &card), 0);
    return card;
}

class Barriers : public ::testing::Test {
  protected:
    void SetUp() override {
        const unsigned cards = count_cards();
        if (cards < 2) GTEST_SKIP() << "needs two cards";
        for (unsigned n = 0; n < cards; ++n) {
            places_.push_back(std::make_unique<Place>(n));
            places_.back()->make_memory();
            memories_.emplace_back();
            ASSERT_EQ(export_bo(places_[n]->fd(), places_[n]->memory.handle, memories_[n]), 0);
        }
        if ((device_of(*places_[0]).features & ORR_FEATURE_BARRIERS) == 0) FAIL() << "no barrier unit";
    }
    Place& place(unsigned n) { return *places_[n]; }
    unsigned count() const { return static_cast<unsigned>(places_.size()); }
    std::vector<drm_orr_barrier_member> members(std::uint64_t offset = 0) const {
        std::vector<drm_orr_barrier_member> all;
        for (const File& memory : memories_)
            all.push_back({.memory = memory.get(), .page = 0, .offset = offset});
        return all;
    }
    // The pages as files.
    std::vector<File> make(std::uint64_t offset = 0) {
        auto all = members(offset);
        EXPECT_EQ(make_barrier(place(0).fd(), all), 0);
        std::vector<File> pages;
        for (const drm_orr_barrier_member& member : all)
            pages.emplace_back(member.page);
        return pages;
    }
    void map_all() {
        const std::vector<File> pages = make();
        for (unsigned n = 0; n < count(); ++n)
            map_page(place(n), pages[n]);
    }
    void meet(unsigned n, std::uint64_t round) {
        const orr_packet packets[] = {signal(kPage, round), wait_for(kVa, round)};
        place(n).queue->submit(packets);
    }
    std::vector<std::unique_ptr<Place>> places_;
    std::vector<File> memories_;
};

TEST_F(Barriers, AllMeetInEachRound) {
    map_all();
    for (std::uint64_t round = 1; round <= 20; ++round) {
        const unsigned late = static_cast<unsigned>(round) % count();
        for (unsigned n = 0; n < count(); ++n)
            if (n != late) meet(n, round);
        drm_orr_queue_wait out{};
        if (round <= 2)
            EXPECT_EQ(wait(place(1 - late % 2).fd(), place(1 - late % 2).queue->number(),
                           place(1 - late % 2).queue->ring().producer, 0.05, out),
                      ETIME)
                << "one is missing";
        meet(late, round);
        for (unsigned n = 0; n < count(); ++n) {
            EXPECT_EQ(place(n).outcome().error, 0u);
            EXPECT_EQ(place(n).memory.words()[0], round);
        }
    }
}

// A process in the middle of the ring may put in many at once.
TEST_F(Barriers, RoundsAreQueuedAhead) {
    map_all();
    constexpr std::uint64_t kRounds = 15;
    for (unsigned n = 0; n < count(); ++n)
        for (std::uint64_t round = 1; round <= kRounds; ++round)
            meet(n, round);
    for (unsigned n = 0; n < count(); ++n) {
        EXPECT_EQ(place(n).outcome().error, 0u);
        EXPECT_EQ(place(n).memory.words()[0], kRounds);
    }
}

TEST_F(Barriers, WhatMakesNoSenseIsRefused) {
    const auto refused = [&](auto&& spoil) {
        auto all = members();
        spoil(all);
        return make_barrier(place(0).fd(), all);
    };
    EXPECT_EQ(refused([](auto& all) { all.resize(1); }), EINVAL);
    EXPECT_EQ(refused([](auto& all) { all.resize(ORR_BARRIER_MEMBERS_MAX + 1); }), EINVAL);
    EXPECT_EQ(refused([](auto& all) { all[1].memory = -1; }), EBADF);
    EXPECT_EQ(refused([&](auto& all) { all[1].memory = place(0).fd(); }), EINVAL) << "no dma-buf";
    EXPECT_EQ(refused([](auto& all) { all[1].memory = all[0].memory; }), EINVAL) << "one card twice";
    EXPECT_EQ(refused([](auto& all) { all[1].offset = 8; }), EINVAL);
    EXPECT_EQ(refused([](auto& all) { all[1].offset = 4096; }), EINVAL);
    EXPECT_EQ(refused([](auto& all) { all[1].offset = ~0ull & ~15ull; }), EINVAL);
    EXPECT_EQ(refused([](auto& all) { all[1].page = 1; }), EINVAL);
    auto all = members();
    drm_orr_barrier_create args{
        .members = reinterpret_cast<std::uintptr_t>(all.data()), .count = 2, .flags = 1};
    EXPECT_EQ(call(place(0).fd(), DRM_IOCTL_ORR_BARRIER_CREATE, &args), EINVAL);
    args = {.members = 8, .count = 2, .flags = 0};
    EXPECT_EQ(call(place(0).fd(), DRM_IOCTL_ORR_BARRIER_CREATE, &args), EFAULT);
    // Memory of the machine, and a barrier's page.
    drm_orr_bo_create bo{};
    ASSERT_EQ(create_bo(place(1).fd(), 4096, ORR_BO_SYSTEM, bo), 0);
    File system;
    ASSERT_EQ(export_bo(place(1).fd(), bo.handle, system), 0);
    EXPECT_EQ(refused([&](auto& some) { some[1].memory = system.get(); }), EINVAL);
    const std::vector<File> pages = make();
    EXPECT_EQ(refused([&](auto& some) { some[1].memory = pages[1].get(); }), EINVAL);
}

// The last step of making one fails, when all cards are armed: the semaphores are as good as new.
TEST_F(Barriers, WhatIsNotMadeLeavesNoTrace) {
    const int next = ::dup(memories_[0].get());
    ASSERT_GE(next, 0);
    ::close(next);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit full{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
    auto all = members();
    const int error = make_barrier(place(0).fd(), all);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(error, EMFILE);
    map_all();
    for (unsigned n = 0; n < count(); ++n)
        meet(n, 1);
    for (unsigned n = 0; n < count(); ++n)
        EXPECT_EQ(place(n).outcome().error, 0u);
}

TEST_F(Barriers, APageIsForSignalsOfItsCard) {
    const std::vector<File> pages = make();
    std::uint32_t handle = 0;
    EXPECT_EQ(import_bo(place(1).fd(), pages[0].get(), handle), EXDEV);
    ASSERT_EQ(import_bo(place(0).fd(), pages[0].get(), handle), 0);
    Place& own = place(0);
    for (const std::uint32_t flags :
         {ORR_BIND_READ, ORR_BIND_READ | ORR_BIND_WRITE, ORR_BIND_WRITE | ORR_BIND_EXEC})
        EXPECT_EQ(map(own.fd(), own.vm, handle, kPage, 4096, flags), EINVAL);
    EXPECT_NE(map(own.fd(), own.vm, handle, kPage, 8192, ORR_BIND_WRITE), 0) << "it is one page";
    ASSERT_EQ(map(own.fd(), own.vm, handle, kPage, 4096, ORR_BIND_WRITE), 0);
    EXPECT_EQ(attach(own.fd(), own.queue->number(), kPage), EINVAL);
    drm_orr_bo_info info{};
    info.handle = handle;
    ASSERT_EQ(call(own.fd(), DRM_IOCTL_ORR_BO_INFO, &info), 0);
    EXPECT_EQ(info.flags | info.mmap_offset | info.peer_uid, 0u);
    EXPECT_EQ(info.size, 4096u);
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, pages[0].get(), 0), MAP_FAILED);
    // Not its other words, and no stores.
    drm_orr_queue_wait out{};
    Queue other(own.fd(), own.vm, kRingVa + (1 << 20));
    EXPECT_EQ(other.run(std::vector{signal(kPage + 16, 1)}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(out.error_address, kPage + 16);
    Queue stores(own.fd(), own.vm, kRingVa + (2 << 20));
    EXPECT_EQ(stores.run(std::vector{fill(kPage, 8, 1)}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(out.error_detail, ORR_FAULT_PERMISSION);
}

// A queue that stops fails what it would have signalled, this page too.
TEST_F(Barriers, AMemberThatStopsFailsAll) {
    map_all();
    for (unsigned n = 1; n < count(); ++n)
        meet(n, 1);
    const orr_packet packets[] = {wait_for(kVa + 64, 1), signal(kPage, 1)};
    place(0).queue->submit(packets);
    drm_orr_queue_abort abort{.queue = place(0).queue->number(), .flags = 0};
    ASSERT_EQ(call(place(0).fd(), DRM_IOCTL_ORR_QUEUE_ABORT, &abort), 0);
    for (unsigned n = 1; n < count(); ++n) {
        place(n).expect_poisoned(ORR_QERR_ABORTED);
        EXPECT_EQ(ORR_FAILURE_NODE(place(n).outcome().error_detail), device_of(place(0)).uid & 0xff);
    }
}

TEST_F(Barriers, AProcessThatIsKilledFailsAll) {
    std::vector<File> pages = make();
    for (unsigned n = 1; n < count(); ++n)
        map_page(place(n), pages[n]);
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        // It has the page of the first card, and does not come.
        const Place own(0);
        std::uint32_t handle = 0;
        const bool good = import_bo(own.fd(), pages[0].get(), handle) == 0 &&
                          map(own.fd(), own.vm, handle, kPage, 4096, ORR_BIND_WRITE) == 0;
        if (::write(ready[1], good ? "y" : "n", 1) != 1) ::_exit(1);
        for (;;)
            ::pause();
    }
    char answer = 0;
    ASSERT_EQ(::read(ready[0], &answer, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
    EXPECT_EQ(answer, 'y');
    pages.clear();
    for (unsigned n = 1; n < count(); ++n)
        meet(n, 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (unsigned n = 1; n < count(); ++n) {
        place(n).expect_poisoned(ORR_QERR_ABANDONED);
        EXPECT_EQ(ORR_FAILURE_NODE(place(n).outcome().error_detail), device_of(place(0)).uid & 0xff);
    }
}

// The first card's wire loses its arrival, and then the word that the barrier has failed.
TEST_F(Barriers, WhatTheWireLosesEndsItForBoth) {
    if (std::getenv("ORRERY_LINK_DROP") == nullptr) GTEST_SKIP() << "needs a link that loses";
    map_all();
    // From now on: what two drivers tell each other as they begin is not what is lost.
    ASSERT_EQ(ask_host("lie", "add link first=1 count=2 drop", std::chrono::minutes(1)), "ok\n");
    meet(1, 1);
    meet(0, 1);
    for (unsigned n = 0; n < count(); ++n)
        place(n).expect_poisoned(ORR_QERR_PEER_LOST);
}

// So many for a user, and all of them again when they have gone.
TEST_F(Barriers, SlotsAreGivenBack) {
    constexpr unsigned kMost = ORR_BARRIER_SLOTS / 4 * 3;
    for (unsigned play = 0; play < 3; ++play) {
        std::vector<std::vector<File>> all;
        int error = 0;
        for (unsigned n = 0; n <= kMost; ++n) {
            auto some = members();
            error = make_barrier(place(0).fd(), some);
            if (error != 0) break;
            all.emplace_back();
            for (const drm_orr_barrier_member& member : some)
                all.back().emplace_back(member.page);
        }
        EXPECT_EQ(all.size(), kMost);
        EXPECT_EQ(error, EDQUOT);
    }
}

// From the last arrival to the last release, and to the last queue that has gone on. Shown as they are, and
// held to what the units promise: nothing but the way, and what the firmware takes for a packet.
TEST_F(Barriers, TakeTheLongestWay) {
    if ((device_of(place(0)).features & ORR_FEATURE_IN_STEP) == 0) GTEST_SKIP() << "for cards that keep step";
    map_all();
    std::uint64_t longest = 0, of_first = 0;
    for (unsigned from = 0; from < count(); ++from) {
        for (unsigned to = 0; to < count(); ++to) {
            if (from == to) continue;
            drm_orr_query_way way{};
            way.peer_uid = device_of(place(to)).uid;
            ASSERT_EQ(call(place(from).fd(), DRM_IOCTL_ORR_QUERY_WAY, &way), 0);
            longest = std::max(longest, std::uint64_t{way.latency_ns} * 1000);
            if (from == 0) of_first = longest;
        }
    }
    std::vector<std::uint64_t> alone_each, in_queues_each;
    for (std::uint64_t round = 1; round <= 17; ++round) {
        const orr_packet packets[] = {signal(kVa + 32, round), signal(kPage, round), wait_for(kVa, round),
                                      signal(kVa + 48, round)};
        // The first comes last.
        for (unsigned n = 1; n < count(); ++n)
            place(n).queue->submit(packets);
        for (unsigned n = 1; n < count(); ++n)
            while (std::atomic_ref(place(n).memory.words()[4]).load() != round)
                std::this_thread::yield();
        place(0).queue->submit(packets);
        std::uint64_t came = 0, released = 0, went_on = 0;
        for (unsigned n = 0; n < count(); ++n) {
            ASSERT_EQ(place(n).outcome().error, 0u);
            const std::uint64_t* words = place(n).memory.words();
            released = std::max(released, words[1]);
            came = std::max(came, words[5]);
            went_on = std::max(went_on, words[7]);
        }
        alone_each.push_back(released - came);
        in_queues_each.push_back(went_on - came);
    }
    // A firmware may have had something else to do in some rounds, and not in half of them.
    const auto median = [](std::vector<std::uint64_t> each) {
        std::ranges::nth_element(each, each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2));
        return each[each.size() / 2];
    };
    const std::uint64_t alone = median(alone_each), in_queues = median(in_queues_each);
    const auto us = [](std::uint64_t ps) { return static_cast<double>(ps) / 1e6; };
    std::printf(
        "barrier of %u cards: longest way %.3f us, of the last %.3f us, released after %.3f us, "
        "gone on after %.3f us (shortest %.3f us, longest %.3f us)\n",
        count(), us(longest), us(of_first), us(alone), us(in_queues), us(std::ranges::min(in_queues_each)),
        us(std::ranges::max(in_queues_each)));
    constexpr std::uint64_t kPacket = 300'000;
    EXPECT_LE(alone, of_first + of_first / 50 + kPacket);
    EXPECT_GE(std::ranges::min(alone_each), of_first);
    EXPECT_LE(2 * in_queues, 5 * longest) << "the goal: 2.5 longest ways";
}

// Two barriers of the same cards: the end of one is none of the other's business.
TEST_F(Barriers, OneThatEndsLeavesOthersAlone) {
    map_all();
    {
        const std::vector<File> other = make(64);
        ASSERT_EQ(other.size(), count());
    }
    const std::uint64_t* const gone = &place(0).memory.words()[64 / 8];
    for (unsigned waited = 0; waited < 600; ++waited) {
        if ((std::atomic_ref(*const_cast<std::uint64_t*>(gone)).load() & ORR_SEM_FAILED) != 0) break;
        ::usleep(100'000);
    }
    EXPECT_EQ(ORR_FAILURE_CODE(*gone), ORR_QERR_ABANDONED);
    for (unsigned n = 0; n < count(); ++n)
        meet(n, 1);
    for (unsigned n = 0; n < count(); ++n)
        EXPECT_EQ(place(n).outcome().error, 0u);
}

// The edges that the driver finds from a queue on: 0 means that it sees no circle.
unsigned edges_of(const Place& place) {
    drm_orr_query_cycle args{};
    args.queue = place.queue->number();
    EXPECT_EQ(call(place.fd(), DRM_IOCTL_ORR_QUERY_CYCLE, &args), 0);
    return args.count;
}

// A queue has its own arrival behind its wait, which is a circle, unless another, which waits for what a
// process may signal, has something that would end the wait all the same.
class BarrierCycles : public Barriers {
  protected:
    void SetUp() override {
        Barriers::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        map_all();
        for (unsigned n = 1; n < count(); ++n)
            meet(n, 1);
        const orr_packet packets[] = {wait_for(kVa, 1), signal(kPage, 1)};
        place(0).queue->submit(packets);
        EXPECT_EQ(edges_of(place(0)), 1u);
    }
    void expect_one(unsigned n, const orr_packet& wait, const orr_packet& end) {
        if (IsSkipped()) return;
        Queue other(place(n).fd(), place(n).vm, kRingVa + (1 << 20));
        ASSERT_EQ(other.error(), 0);
        const orr_packet packets[] = {wait, end};
        other.submit(packets);
        EXPECT_EQ(edges_of(place(0)), 0u);
    }
    const orr_packet host = wait_for(kVa + 64, 1);
};

TEST_F(BarrierCycles, AFailureOfAnotherMember) {
    orr_packet fails = signal(kPage, ORR_QERR_ABORTED);
    fails.header.opcode = ORR_PKT_FAIL;
    expect_one(1, host, fails);
}

TEST_F(BarrierCycles, AnArrivalForALaterRound) {
    expect_one(0, host, signal(kPage, 2));
}

TEST_F(BarrierCycles, ASignalOfTheReleaseItself) {
    expect_one(0, host, signal(kVa, 1));
}

// When the limit passes what is behind it fails, whichever round it is for.
TEST_F(BarrierCycles, ALimitOfAnotherMember) {
    orr_packet limited = host;
    limited.word[2] = ORR_WAIT_LIMIT_MAX_NS;
    expect_one(1, limited, signal(kPage, 2));
}

// The same where the limit is not what its queue stands at.
TEST_F(BarrierCycles, ALimitOfAnotherMemberLater) {
    if (IsSkipped()) return;
    orr_packet limited = wait_for(kVa + 80, 1);
    limited.word[2] = ORR_WAIT_LIMIT_MAX_NS;
    Queue other(place(1).fd(), place(1).vm, kRingVa + (1 << 20));
    ASSERT_EQ(other.error(), 0);
    const orr_packet packets[] = {host, limited, signal(kPage, 1)};
    other.submit(packets);
    EXPECT_EQ(edges_of(place(0)), 0u);
}

TEST_F(BarrierCycles, AreNoneThatWaitForTheSame) {
    if (IsSkipped()) return;
    Queue other(place(0).fd(), place(0).vm, kRingVa + (1 << 20));
    ASSERT_EQ(other.error(), 0);
    const orr_packet packets[] = {wait_for(kVa, 1), signal(kPage, 2)};
    other.submit(packets);
    EXPECT_EQ(edges_of(place(0)), 1u);
}

}  // namespace
}  // namespace orrery::kmod_test
