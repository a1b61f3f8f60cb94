// Who wakes up a wait: an interrupt, and not the look at the card every now and then. How much is done in an
// interrupt.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <thread>

#include "tests/vm/kmod/fixture.h"

namespace orrery::kmod_test {
namespace {

class Waits : public RootTest {
  protected:
    // Without a sleep in the driver.
    void poll_until(const Queue& queue, std::uint64_t index) const {
        drm_orr_queue_wait out{};
        while (wait(fd(), queue.number(), index, 0, out) == ETIME)
            ::usleep(100);
        EXPECT_EQ(out.completed, index);
    }
};

TEST_F(Waits, OneThatEndedEarlyDoesNotDelayTheNext) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    // Looks at the card, one each 50 ms, may come between a completion and its interrupt, where that takes
    // long: of a CPU that stands for a second all in that time. Where the interrupt wakes nobody all do.
    constexpr int kRounds = 200;
    int on_time = 0;
    for (int round = 0; round < kRounds && on_time < 10; ++round) {
        const unsigned late = wait_statistic(0, "late_wakeups");
        const std::uint64_t first = 2 * static_cast<std::uint64_t>(round) + 1;
        drm_orr_queue_wait out{};
        ASSERT_EQ(wait(fd(), queue.number(), first, 0.001, out), ETIME);
        queue.submit(nop());
        poll_until(queue, first);
        std::thread submitter([&] {
            ::usleep(20'000);
            queue.submit(nop());
        });
        EXPECT_EQ(wait(fd(), queue.number(), first + 1, kLong, out), 0);
        submitter.join();
        on_time += wait_statistic(0, "late_wakeups") == late ? 1 : 0;
    }
    EXPECT_EQ(on_time, 10) << "of " << kRounds;
}

TEST_F(Waits, ManyFencesAtOnceAreNotDoneInOneInterrupt) {
    constexpr std::uint32_t kFences = 800;
    Queue queue(fd(), vm_, kRingVa, 1024);
    ASSERT_EQ(queue.error(), 0);
    // Completed all at once: they stand behind a wait.
    Buffer gate;
    ASSERT_EQ(make_buffer(fd(), vm_, 0x40000000, 4096, ORR_BO_SYSTEM, gate), 0);
    Queue opener(fd(), vm_, kRingVa + (1 << 20));
    ASSERT_EQ(opener.error(), 0);
    queue.submit(wait_for(gate.va, 1));
    const std::uint32_t timeline = make_syncobj(fd());
    for (std::uint32_t i = 1; i <= kFences; ++i)
        ASSERT_EQ(put_fence(fd(), queue.number(), i, timeline, i), 0) << i;
    queue.submit(std::vector<orr_packet>(kFences - 1, nop()));
    opener.submit(signal(gate.va, 1));
    EXPECT_EQ(wait_point(fd(), timeline, kFences, kLong), 0);
    EXPECT_LE(wait_statistic(0, "most_in_interrupt"), 64u);
}

// Processes are killed while the firmware works on their questions. Its replies come when nobody waits for
// them.
TEST_F(Waits, RepliesToTheDeadDoNoHarm) {
    const unsigned left = wait_statistic(0, "left_commands");
    for (int round = 0; round < 40; ++round) {
        const int end = killed_while_asking(1'000 * static_cast<unsigned>(round), [](const auto& tell) {
            const File mine = open_card();
            std::uint32_t vm = 0;
            if (create_vm(mine.get(), vm) != 0) ::_exit(1);
            Queue queue(mine.get(), vm, kRingVa);
            const auto ask = [&] {
                drm_orr_queue_stats stats{};
                stats.queue = queue.number();
                while (call(mine.get(), DRM_IOCTL_ORR_QUEUE_STATS, &stats) == 0) {
                }
                ::_exit(2);
            };
            std::thread other(ask);
            tell();
            ask();
        });
        ASSERT_EQ(end, 1000 + SIGKILL) << "it ended by itself";
    }
    EXPECT_GT(wait_statistic(0, "left_commands"), left) << "nobody was killed at the right moment";
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    EXPECT_EQ(queue.run(std::vector{nop()}), 0);
}

}  // namespace
}  // namespace orrery::kmod_test
