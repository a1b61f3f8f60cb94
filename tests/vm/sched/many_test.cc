// Far more queues than the card has ring slots.
#include <memory>
#include <vector>

#include "tests/vm/kmod/device.h"
#include "tests/vm/sched/bench.h"

namespace orrery::sched_test {
namespace {

using kmod_test::Buffer;
using kmod_test::File;
using kmod_test::kLong;
using kmod_test::Queue;

constexpr std::uint32_t kFiles = 3;
constexpr std::uint32_t kQueues = 340;  // of a file; all the firmware's but some for the driver's other users
constexpr std::uint64_t kRings = 0x100000000, kWords = 0x20000000;
constexpr std::uint32_t kRounds = 3;

// Its queues form a chain: each waits for the one before it, writes its number, and signals.
class Chain {
  public:
    Chain() : file_(kmod_test::open_card()) {
        EXPECT_EQ(kmod_test::create_vm(file_.get(), vm_), 0);
        EXPECT_EQ(kmod_test::make_buffer(file_.get(), vm_, kWords, 1 << 16, ORR_BO_SYSTEM, words_), 0);
        for (std::uint32_t n = 0; n < kQueues; ++n) {
            queues_.push_back(
                std::make_unique<Queue>(file_.get(), vm_, kRings + (std::uint64_t{n} << 16), 16));
            EXPECT_EQ(queues_.back()->error(), 0) << n;
        }
    }
    // The last one first, so that all are parked when the first may go.
    void submit(std::uint64_t round) {
        for (std::uint32_t n = kQueues; n-- > 0;) {
            const orr_packet packets[] = {kmod_test::wait_for(semaphore(n), round),
                                          kmod_test::fill(value(n), 8, round << 32 | n),
                                          kmod_test::signal(semaphore(n + 1), round)};
            queues_[n]->submit(packets);
        }
    }
    void start(std::uint64_t round) {
        if (starter_ == nullptr)
            starter_ = std::make_unique<Queue>(file_.get(), vm_, kRings + (std::uint64_t{kQueues} << 16), 16);
        ASSERT_EQ(starter_->error(), 0);
        starter_->submit(kmod_test::signal(semaphore(0), round));
    }
    void expect_parked(std::uint64_t round) const {
        for (const auto& queue : queues_)
            EXPECT_EQ(queue->ring().consumer, 3 * (round - 1));
    }
    void expect_done(std::uint64_t round) {
        for (std::uint32_t n = 0; n < kQueues; ++n) {
            drm_orr_queue_wait state{};
            ASSERT_EQ(kmod_test::wait(file_.get(), queues_[n]->number(), 3 * round, kLong, state), 0) << n;
            ASSERT_EQ(state.error, 0u) << n;
            EXPECT_EQ(words_.words()[(value(n) - kWords) / 8], round << 32 | n);
        }
    }

  private:
    static std::uint64_t semaphore(std::uint32_t n) { return kWords + 16 * std::uint64_t{n}; }
    static std::uint64_t value(std::uint32_t n) { return kWords + (1 << 15) + 8 * std::uint64_t{n}; }
    File file_;
    std::uint32_t vm_ = 0;
    Buffer words_;
    std::vector<std::unique_ptr<Queue>> queues_;
    std::unique_ptr<Queue> starter_;
};

TEST(ManyQueues, TakeTurnsOnTheRingSlots) {
    std::vector<std::unique_ptr<Chain>> chains;
    for (std::uint32_t n = 0; n < kFiles; ++n)
        chains.push_back(std::make_unique<Chain>());
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
        for (const auto& chain : chains)
            chain->submit(round);
        for (const auto& chain : chains)
            chain->expect_parked(round);
        for (const auto& chain : chains)
            chain->start(round);
        for (const auto& chain : chains)
            chain->expect_done(round);
    }
}

}  // namespace
}  // namespace orrery::sched_test
