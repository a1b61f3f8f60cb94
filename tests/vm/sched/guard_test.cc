// One queue misbehaves, the others' throughput stays.
#include <atomic>
#include <random>
#include <thread>

#include "tests/vm/kmod/device.h"
#include "tests/vm/sched/bench.h"

namespace orrery::sched_test {
namespace {

using kmod_test::File;
using kmod_test::Queue;

constexpr std::uint64_t kRingVa = 0x10000000;

class Guard : public ::testing::Test {
  protected:
    // Model time of a row of kernels on half of the cores.
    std::uint64_t batch() {
        ++round_;
        gate_.wait_on(stream_, round_);
        const Mark begin(stream_);
        for (unsigned i = 0; i < 10; ++i)
            count_.launch(stream_);
        const Mark end(stream_);
        gate_.signal(round_);
        return end.ps() - begin.ps();
    }
    // The slowest of the batches that run while `more` says so, at least three.
    template <typename More>
    std::uint64_t slowest(More more) {
        std::uint64_t worst = 0;
        for (unsigned i = 0; i < 3 || more(); ++i)
            worst = std::max(worst, batch());
        return worst;
    }
    void expect_undisturbed(std::uint64_t time) const {
        EXPECT_LE(time, alone_ + alone_ / 20) << "alone it takes " << alone_;
    }
    void SetUp() override {
        batch();
        alone_ = batch();
    }

    Card card_{0};
    Stream stream_{"bystander"};
    Semaphore gate_{"bystander's gate"};
    // Long enough that a turn of the control core for somebody else, some microseconds, does not count.
    Count count_{card_, 4, 300};
    std::uint64_t round_ = 0;
    std::uint64_t alone_ = 0;
};

TEST_F(Guard, ADispatchThatRunsOverItsLimit) {
    std::atomic<bool> dead{false};
    const Stream guilty("guilty", 0, 0, 0, 20'000);
    const TestArgs args{nullptr, 0, 0};
    ASSERT_OK(orrLaunchKernel(card_.kernel("spin_for_ever"), {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0,
                              guilty.get()));
    std::thread waiter([&] {
        EXPECT_FAIL(orrStreamSynchronize(guilty.get()), orrErrorLaunchTimeout, "limit of model time");
        dead.store(true);
    });
    const std::uint64_t time = slowest([&] { return !dead.load(); });
    waiter.join();
    expect_undisturbed(time);
}

TEST_F(Guard, ASemaphoreStorm) {
    std::atomic<bool> stop{false};
    std::thread storm([&] {
        const Stream stream("storm");
        const Semaphore semaphore("storm");
        for (std::uint64_t value = 1; !stop.load(); ++value) {
            semaphore.signal_on(stream, value);
            semaphore.wait_on(stream, value);
        }
    });
    const std::uint64_t time = slowest([] { return false; });
    stop.store(true);
    storm.join();
    expect_undisturbed(time);
}

// A queue that is never empty, of packets that cost the engines nothing.
TEST_F(Guard, ARunawayQueue) {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> packets{0};
    std::thread runaway([&] {
        constexpr std::uint32_t kEntries = 1024;
        const File file = kmod_test::open_card();
        std::uint32_t vm = 0;
        ASSERT_EQ(kmod_test::create_vm(file.get(), vm), 0);
        Queue queue(file.get(), vm, kRingVa, kEntries);
        ASSERT_EQ(queue.error(), 0);
        const std::vector<orr_packet> half(kEntries / 2, kmod_test::nop());
        for (std::uint64_t written = 0; !stop.load();) {
            written = queue.submit(half);
            while (std::atomic_ref(queue.ring().consumer).load(std::memory_order_acquire) + kEntries / 2 <
                   written)
                std::this_thread::yield();
            packets.store(written);
        }
    });
    while (packets.load() == 0)
        std::this_thread::yield();
    const std::uint64_t before = packets.load();
    const std::uint64_t time = slowest([&] { return packets.load() == before; });
    stop.store(true);
    runaway.join();
    expect_undisturbed(time);
}

TEST_F(Guard, MalformedPackets) {
    std::atomic<bool> stop{false};
    std::thread vandal([&] {
        std::mt19937_64 random;
        const File file = kmod_test::open_card();
        std::uint32_t vm = 0;
        ASSERT_EQ(kmod_test::create_vm(file.get(), vm), 0);
        for (std::uint64_t n = 0; n < 40 || !stop.load(); ++n) {
            // However long it goes on, the same ones.
            if (n % 40 == 0) random.seed(20261121);
            Queue queue(file.get(), vm, kRingVa + (n << 20));
            ASSERT_EQ(queue.error(), 0);
            orr_packet packet{};
            // A known opcode with nonsense, or nonsense throughout.
            packet.header.opcode = static_cast<std::uint16_t>(random() % 16);
            for (auto& word : packet.word)
                word = random() >> random() % 64;
            if (random() % 2 == 0) packet.header.flags = static_cast<std::uint16_t>(random());
            if (packet.header.opcode == ORR_PKT_NOP) packet.header.flags = 0x8000;
            if (packet.header.opcode == ORR_PKT_WAIT) packet.word[2] = 1;
            drm_orr_queue_wait state{};
            ASSERT_EQ(queue.run({&packet, 1}, state), 0);
            EXPECT_NE(state.error, 0u) << "opcode " << packet.header.opcode;
        }
    });
    const std::uint64_t time = slowest([] { return false; });
    stop.store(true);
    vandal.join();
    expect_undisturbed(time);
}

}  // namespace
}  // namespace orrery::sched_test
