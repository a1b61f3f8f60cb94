// Who may signal a semaphore: what is declared about it, when that ends, and that nobody is held up by what
// others have declared, or by a card that hangs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

TEST(Signallers, AreAttachedAllOrNone) {
    Place place(0);
    const std::uint64_t all = ORR_SIGNALLERS_MAX;
    place.make_memory((all + 256) * 16);
    const std::uint32_t queue = place.queue->number();
    for (std::uint64_t n = 0; n + 256 < all; n += 256)
        ASSERT_EQ(attach(place.fd(), queue, kVa + n * 16, 256), 0) << n;
    ASSERT_EQ(attach(place.fd(), queue, kVa + (all - 256) * 16, 255), 0);
    EXPECT_EQ(attach(place.fd(), queue, kVa + (all - 1) * 16, 2), ENOSPC) << "there is room for one";
    EXPECT_EQ(attach(place.fd(), queue, kVa + all * 16), 0) << "and nobody has taken it";
    EXPECT_EQ(attach(place.fd(), queue, kVa, 256), 0) << "they are attached already";
    EXPECT_EQ(detach(place.fd(), queue, kVa + (all - 1) * 16, 2), 0);
    EXPECT_EQ(place.memory.words()[2 * (all - 1) + 1], 0u) << "it was never attached, so it is not closed";
    EXPECT_EQ(place.memory.words()[2 * all + 1] & ORR_SEM_CLOSED, ORR_SEM_CLOSED);
}

TEST(Signallers, HaveToBeAbleToSignal) {
    Place owner(0), reader(0);
    owner.make_memory();
    reader.share(owner, ORR_BIND_READ);
    EXPECT_EQ(attach(reader.fd(), reader.queue->number(), kVa), EACCES);
}

// It cannot signal there any more, whatever it has declared, and its memory is free.
TEST(Signallers, GoWithTheMapping) {
    Place waiter(0);
    waiter.make_memory();
    {
        Place other(0);
        other.share(waiter, ORR_BIND_WRITE);
        ASSERT_EQ(attach(other.fd(), other.queue->number(), kVa), 0);
        waiter.queue->submit(wait_for(kVa, 7));
        EXPECT_EQ(unmap(other.fd(), other.vm, kVa, 4096), 0);
        waiter.expect_poisoned(ORR_QERR_ABANDONED);
        EXPECT_EQ(attach(other.fd(), other.queue->number(), kVa), EFAULT);

        const std::uint64_t before = vram_used(other.fd());
        Buffer memory;
        ASSERT_EQ(make_buffer(other.fd(), other.vm, 2 * kVa, 1 << 20, ORR_BO_VRAM, memory), 0);
        ASSERT_EQ(attach(other.fd(), other.queue->number(), 2 * kVa + 16, 100), 0);
        memory.memory = Mapping();
        EXPECT_EQ(close_bo(other.fd(), memory.handle), 0);
        EXPECT_EQ(unmap(other.fd(), other.vm, 2 * kVa, 1 << 20), 0);
        EXPECT_LE(vram_used(other.fd()), before + 4096) << "an attachment keeps the memory";
    }
}

// One has left tens of thousands to be closed, another a single one: that is not behind all of them. All end
// at one signal, and who was told first is read from the card's clock.
TEST(Signallers, OfOneDoNotHoldUpTheOthers) {
    constexpr std::uint64_t kEach = 8192, kQueues = 4, kGate = 64;
    Place storm(0), one(0), waiter(0);
    storm.make_memory(kEach * kQueues * 16);
    waiter.make_memory();
    one.share(waiter, ORR_BIND_READ | ORR_BIND_WRITE);
    File gate;
    ASSERT_EQ(export_bo(waiter.fd(), waiter.memory.handle, gate), 0);
    ASSERT_EQ(import_bo(storm.fd(), gate.get(), storm.handle), 0);
    ASSERT_EQ(map(storm.fd(), storm.vm, storm.handle, kPage, 4096), 0);
    std::vector<std::unique_ptr<Queue>> queues;
    for (std::uint64_t n = 0; n < kQueues; n++) {
        queues.push_back(std::make_unique<Queue>(storm.fd(), storm.vm, kRingVa + ((n + 1) << 20)));
        for (std::uint64_t at = n * kEach; at < (n + 1) * kEach; at += 256)
            ASSERT_EQ(attach(storm.fd(), queues[n]->number(), kVa + at * 16, 256), 0);
    }
    // The last, so that its number is behind theirs.
    Queue last(one.fd(), one.vm, kRingVa + (1 << 20));
    ASSERT_EQ(attach(one.fd(), last.number(), kVa), 0);
    waiter.queue->submit(wait_for(kVa, 7));
    // Thousands of its queue's are closed before this one, from whichever end they are taken.
    Queue watcher(storm.fd(), storm.vm, kRingVa + ((kQueues + 1) << 20));
    watcher.submit(wait_for(kVa + kEach / 2 * 16, 7));
    for (const auto& queue : queues)
        queue->submit(std::vector{wait_for(kPage + kGate, 1), timestamp(kNowhere)});
    last.submit(std::vector{wait_for(kVa + kGate, 1), timestamp(kNowhere)});
    Queue opener(waiter.fd(), waiter.vm, kRingVa + (1 << 20));
    EXPECT_EQ(opener.run(std::vector{signal(kVa + kGate, 1)}), 0);
    waiter.expect_poisoned(ORR_QERR_ABANDONED);
    drm_orr_queue_wait watched{};
    EXPECT_EQ(wait(storm.fd(), watcher.number(), 1, kLong, watched), 0);
    EXPECT_EQ(watched.error, ORR_QERR_POISON);
    EXPECT_LT(waiter.outcome().time_ps, watched.time_ps) << "it was told after them";
}

// A link that goes down between the semaphore and the only queue that might have signalled it, while the
// waiter sleeps in the kernel. For a VM whose second card has a plan that cuts the link at the first message
// over it; it trains again at once.
TEST(CutLink, TheWaiterIsTold) {
    if (std::getenv("ORRERY_LINK_CUT") == nullptr) GTEST_SKIP() << "needs a link that is cut";
    Place waiter(0), attached(1);
    waiter.make_memory();
    attached.share(waiter, ORR_BIND_WRITE);
    Queue other(attached.fd(), attached.vm, kRingVa + (1 << 20));
    ASSERT_EQ(attach(attached.fd(), attached.queue->number(), kVa), 0);
    waiter.queue->submit(wait_for(kVa, 7));
    std::thread sleeper([&] { waiter.expect_poisoned(ORR_QERR_PEER_LOST); });
    ::usleep(300'000);
    other.submit(signal(kVa + 16, 1));
    sleeper.join();
}

// For a VM whose first card hangs when it starts its first piece of work: registers answer, nothing moves.
class Hang : public ::testing::Test {
  protected:
    void SetUp() override {
        if (std::getenv("ORRERY_HANGS") == nullptr) GTEST_SKIP() << "needs a card that hangs";
    }
};

TEST_F(Hang, HoldsUpNobodyElse) {
    // Nothing that waits for the card that hangs comes to its end before it is given up.
    auto silent = std::make_optional<TimeOut>("silence_timeout_ms", "30000");
    Place hung(0), from(1), waiter(2);
    hung.make_memory();
    waiter.make_memory();
    // Two queues of the card in the middle: one may signal on the card that hangs, one on the other.
    Place there(1);
    from.share(hung, ORR_BIND_WRITE);
    there.share(waiter, ORR_BIND_WRITE);
    ASSERT_EQ(attach(from.fd(), from.queue->number(), kVa), 0);
    ASSERT_EQ(attach(there.fd(), there.queue->number(), kVa), 0);
    waiter.queue->submit(wait_for(kVa, 7));
    drm_orr_queue_wait out{};
    std::atomic<int> result{-1};
    const std::uint64_t index = hung.queue->submit(fill(kVa, 4096, 1));
    std::thread sleeper([&] { result = wait(hung.fd(), hung.queue->number(), index, kLong, out); });
    ::usleep(100'000);
    from.queue->submit(timestamp(kNowhere));
    EXPECT_EQ(from.outcome().error, ORR_QERR_FAULT);
    there.queue->submit(timestamp(kNowhere));
    waiter.expect_poisoned(ORR_QERR_ABANDONED);
    const std::string card = pci_addresses()[1];
    ASSERT_TRUE(unbind_driver(card));
    EXPECT_EQ(result, -1) << "not before the card that hangs was given up";
    silent.reset();
    ASSERT_TRUE(bind_driver(card));
    sleeper.join();
    EXPECT_EQ(result, ENODEV);
}

}  // namespace
}  // namespace orrery::kmod_test
