#include "emulator/pcie/interrupts.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace orrery::emu {
namespace {

// Eventfds that the test keeps, and duplicates of them for the server's side.
class Events {
  public:
    explicit Events(unsigned count) {
        kept_.reserve(count);
        for (unsigned i = 0; i < count; i++)
            kept_.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    }
    std::vector<UniqueFd> duplicates() const {
        std::vector<UniqueFd> fds;
        fds.reserve(kept_.size());
        for (const UniqueFd& fd : kept_)
            fds.emplace_back(::dup(fd.get()));
        return fds;
    }
    // Signals since the last look.
    uint64_t take(unsigned i) const {
        uint64_t value = 0;
        return ::read(kept_[i].get(), &value, sizeof value) == sizeof value ? value : 0;
    }

  private:
    std::vector<UniqueFd> kept_;
};

void enable(Interrupts& interrupts, unsigned index, const Events& events) {
    auto fds = events.duplicates();
    interrupts.set_eventfds(index, 0, fds);
}

TEST(Interrupts, GoToTheirVector) {
    Interrupts interrupts;
    const Events events(kVectorCount);
    enable(interrupts, Interrupts::kMsixIndex, events);
    for (unsigned v = 0; v < kVectorCount; v++) {
        interrupts.raise(v);
        for (unsigned i = 0; i < kVectorCount; i++)
            EXPECT_EQ(events.take(i), i == v ? 1u : 0u);
    }
    EXPECT_EQ(interrupts.counters().sent, kVectorCount);
}

TEST(Interrupts, WithoutDescriptorsAreDroppedAndCounted) {
    Interrupts interrupts;
    interrupts.raise(0);
    const Events events(2);
    enable(interrupts, Interrupts::kMsixIndex, events);
    std::vector<UniqueFd> none(1);
    interrupts.set_eventfds(Interrupts::kMsixIndex, 0, none);
    interrupts.raise(0);
    interrupts.raise(99);
    EXPECT_EQ(events.take(0), 0u);
    EXPECT_EQ(interrupts.counters().raised, 3u);
    EXPECT_EQ(interrupts.counters().dropped, 3u);
    EXPECT_EQ(interrupts.counters().sent, 0u);
}

TEST(Interrupts, FoldOntoFewerMessages) {
    for (const unsigned index : {Interrupts::kMsiIndex, Interrupts::kMsixIndex}) {
        Interrupts interrupts;
        const Events one(1);
        enable(interrupts, index, one);
        for (unsigned v = 0; v < kVectorCount; v++)
            interrupts.raise(v);
        EXPECT_EQ(one.take(0), kVectorCount);
        const Events two(2);
        enable(interrupts, index, two);
        interrupts.raise(5);
        EXPECT_EQ(two.take(0), 0u);
        EXPECT_EQ(two.take(1), 1u);
    }
}

TEST(Interrupts, PendWhileMasked) {
    Interrupts interrupts;
    const Events events(kVectorCount);
    enable(interrupts, Interrupts::kMsixIndex, events);
    interrupts.set_masked(Interrupts::kMsixIndex, 2, 2, true);
    interrupts.raise(2);
    interrupts.raise(2);
    interrupts.raise(1);
    EXPECT_EQ(events.take(2), 0u);
    EXPECT_EQ(events.take(1), 1u);
    EXPECT_EQ(interrupts.pending(), 1u << 2);
    interrupts.set_masked(Interrupts::kMsixIndex, 2, 2, false);
    EXPECT_EQ(events.take(2), 1u) << "one interrupt, however often it was raised";
    EXPECT_EQ(events.take(3), 0u);
    EXPECT_EQ(interrupts.pending(), 0u);

    interrupts.set_masked(Interrupts::kMsixIndex, 2, 1, true);
    interrupts.raise(2);
    interrupts.clear_pending();
    interrupts.set_masked(Interrupts::kMsixIndex, 2, 1, false);
    EXPECT_EQ(events.take(2), 0u) << "a reset forgets what was pending";
}

TEST(Interrupts, StopWhenDisabled) {
    Interrupts interrupts;
    const Events msix(1), error(1), request(1);
    enable(interrupts, Interrupts::kMsixIndex, msix);
    enable(interrupts, Interrupts::kErrorIndex, error);
    enable(interrupts, Interrupts::kRequestIndex, request);
    interrupts.raise_error();
    interrupts.request_release();
    EXPECT_EQ(error.take(0), 1u);
    EXPECT_EQ(request.take(0), 1u);
    interrupts.disable(Interrupts::kMsixIndex);
    interrupts.raise(0);
    EXPECT_EQ(msix.take(0), 0u);
    interrupts.raise_error();
    EXPECT_EQ(error.take(0), 1u) << "the other types stay";
    interrupts.disable_all();
    interrupts.raise_error();
    interrupts.request_release();
    EXPECT_EQ(error.take(0), 0u);
    EXPECT_EQ(request.take(0), 0u);
}

TEST(Interrupts, MayBeRaisedByManyThreadsWhileTheClientChangesThem) {
    Interrupts interrupts;
    const Events events(kVectorCount);
    constexpr unsigned kEach = 2000;
    {
        std::vector<std::jthread> threads;
        threads.reserve(3);
        for (unsigned t = 0; t < 3; t++) {
            threads.emplace_back([&interrupts] {
                for (unsigned i = 0; i < kEach; i++)
                    interrupts.raise(i % kVectorCount);
            });
        }
        for (unsigned i = 0; i < 200; i++) {
            enable(interrupts, Interrupts::kMsixIndex, events);
            interrupts.set_masked(Interrupts::kMsixIndex, 0, kVectorCount, i % 2 == 0);
            if (i % 10 == 0) interrupts.disable_all();
        }
    }
    const Interrupts::Counters counters = interrupts.counters();
    EXPECT_EQ(counters.raised, 3u * kEach);
    uint64_t seen = 0;
    for (unsigned v = 0; v < kVectorCount; v++)
        seen += events.take(v);
    EXPECT_EQ(seen, counters.sent) << "each signal that was counted has arrived";
}

}  // namespace
}  // namespace orrery::emu
