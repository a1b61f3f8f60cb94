// Random packets on several queues, engines that finish in random order, doorbells at random moments; the
// model beside it says what has to be true.
#include <random>

#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint32_t kQueues = 6;
constexpr std::uint64_t kPackets = 400;

enum class Kind { kNop, kCopy, kFill, kDispatch, kSignal, kWait, kBarrier, kTimestamp };

struct Expected {
    Kind kind;
    bool ordered;
    bool started = false;
    bool finished = false;
    std::uint64_t waits_for = 0;  // value of a semaphore
};

// Queue and index travel in an address or a value, so that the chip's side can tell which packet it sees.
std::uint64_t name_of(std::uint32_t queue, std::uint64_t index) {
    return (queue + 1ull) << 32 | index << 4;
}

class Model {
  public:
    explicit Model(std::uint64_t seed) : random_(seed) {
        FakeSoc::Config config;
        config.copy_engines = 1 + pick(3);
        config.vector_ports = 1 + pick(4);
        bench_ = std::make_unique<Bench>(config);
    }

    void run() {
        ASSERT_TRUE(bench_->boot());
        for (std::uint32_t context = 1; context <= 3; ++context)
            bench_->create_context(context, context);
        for (std::uint32_t n = 0; n < kQueues; ++n)
            queues_.push_back(bench_->create_queue(n, 1 + n % 3, 8u << pick(4)));
        expected_.resize(kQueues);
        bench_->soc.on_start = [this](std::uint32_t port, const FakeSoc::Engine& engine) {
            saw_start(port, engine);
        };
        bench_->soc.on_signal = [this](std::uint32_t, std::uint64_t va, std::uint64_t value) {
            saw_signal(va, value);
        };

        for (int step = 0; step < 1'000'000 && !finished(); ++step) {
            act();
            check();
            if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
        }
        ASSERT_TRUE(finished()) << "something got stuck";
        for (std::uint32_t n = 0; n < kQueues; ++n) {
            for (std::uint64_t index = 0; index < kPackets; ++index)
                EXPECT_TRUE(expected_[n][index].started || is_quiet(expected_[n][index].kind))
                    << n << "/" << index;
            EXPECT_EQ(bench_->status(n).error, ORR_QERR_NONE);
            EXPECT_EQ(bench_->ring_of(queues_[n]).consumer, kPackets);
        }
        bench_->run();
        EXPECT_FALSE(bench_->firmware->pass());
        EXPECT_EQ(bench_->soc.timer, kEmpty);
        EXPECT_EQ(bench_->firmware->scheduler().stats().wild_completions, 0u);
        EXPECT_TRUE(bench_->soc.violations().empty()) << bench_->soc.violations().front();
    }

  private:
    std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
    static bool is_quiet(Kind kind) {
        return kind == Kind::kNop || kind == Kind::kWait || kind == Kind::kBarrier ||
               kind == Kind::kTimestamp;
    }

    void act() {
        switch (pick(8)) {
            case 0:
            case 1:
            case 2:
                push(pick(kQueues));
                break;
            case 3:
            case 4:
                finish_one();
                break;
            case 5:
                bench_->ring(queues_[pick(kQueues)]);
                break;
            default:
                for (std::uint32_t n = pick(4); n > 0; --n)
                    bench_->firmware->pass();
        }
        // Once all is submitted nothing may be left unrung.
        if (all_pushed() && !rung_all_) {
            rung_all_ = true;
            for (const ProcessQueue& queue : queues_)
                bench_->ring(queue);
        }
    }

    bool all_pushed() const {
        for (const ProcessQueue& queue : queues_) {
            if (queue.producer < kPackets) return false;
        }
        return true;
    }

    bool finished() const {
        for (std::uint32_t n = 0; n < kQueues; ++n) {
            if (bench_->status(n).completed < kPackets) return false;
        }
        return true;
    }

    void push(std::uint32_t n) {
        ProcessQueue& queue = queues_[n];
        if (queue.producer >= kPackets || queue.producer - bench_->ring_of(queue).consumer >= queue.entries)
            return;
        const std::uint64_t index = queue.producer;
        const std::uint16_t ordered = pick(4) == 0 ? ORR_PKT_F_ORDERED : 0;
        const std::uint16_t irq = pick(8) == 0 ? ORR_PKT_F_INTERRUPT : 0;
        const auto flags = static_cast<std::uint16_t>(ordered | irq);
        Expected e{.kind = Kind::kNop, .ordered = ordered != 0};
        orr_packet p = nop(flags);
        switch (pick(8)) {
            case 0:
                break;
            case 1:
            case 2:
                e.kind = Kind::kCopy;
                p = copy(name_of(n, index), flags);
                break;
            case 3: {
                e.kind = Kind::kFill;
                auto fill = fill_of(name_of(n, index));
                fill.header.flags = flags;
                p = as_packet(fill);
                break;
            }
            case 4:
                e.kind = Kind::kDispatch;
                p = dispatch(name_of(n, index), flags);
                break;
            case 5:
                e = {.kind = Kind::kSignal, .ordered = true};
                p = signal((pick(2) == 0 ? kSharedVa : kAliasVa) + 16 * n, index + 1, irq);
                break;
            case 6: {
                // Only for what is already submitted to a queue of a lower number: there is no cycle.
                e = {.kind = Kind::kWait, .ordered = false};
                const std::uint32_t other = n == 0 ? 0 : pick(n);
                e.waits_for = n == 0 ? 0 : last_signal(other);
                waited_[{n, index}] = other;
                p = wait(kSharedVa + 16 * other, e.waits_for, irq);
                break;
            }
            default:
                e = {.kind = pick(2) == 0 ? Kind::kBarrier : Kind::kTimestamp, .ordered = true};
                p = e.kind == Kind::kBarrier ? packet(ORR_PKT_BARRIER, irq)
                                             : timestamp(kSharedVa + 0x8000 + 8 * n);
        }
        expected_[n].push_back(e);
        bench_->push(queue, p);
        bench_->soc.set_memory(queue.ring, queue.producer);
        if (pick(3) != 0) bench_->ring(queue);
    }

    std::uint64_t last_signal(std::uint32_t n) const {
        for (std::size_t index = expected_[n].size(); index-- > 0;) {
            if (expected_[n][index].kind == Kind::kSignal) return index + 1;
        }
        return 0;
    }

    void finish_one() {
        const auto busy = bench_->soc.busy_ports();
        if (busy.empty()) return;
        const std::uint32_t port = busy[pick(static_cast<std::uint32_t>(busy.size()))];
        const std::uint64_t name = names_[port];
        expected_[(name >> 32) - 1][(name & 0xffffffff) >> 4].finished = true;
        bench_->soc.finish(port);
    }

    // All before it that the chip can see must have finished.
    void check_order(std::uint32_t n, std::uint64_t index) {
        const Expected& packet = expected_[n][index];
        for (std::uint64_t before = 0; before < index; ++before) {
            const Expected& other = expected_[n][before];
            if (is_quiet(other.kind)) {
                if (other.kind == Kind::kWait) {
                    const std::uint64_t semaphore = bench_->shared(16 * waited_queue(n, before));
                    EXPECT_GE(semaphore, other.waits_for) << "passed a wait";
                }
                continue;
            }
            EXPECT_TRUE(other.started) << n << "/" << index << " started before " << before;
            if (packet.ordered) {
                EXPECT_TRUE(other.finished) << n << "/" << index << " did not wait for " << before;
            }
        }
    }

    std::uint64_t waited_queue(std::uint32_t n, std::uint64_t index) const { return waited_.at({n, index}); }

    void saw(std::uint32_t n, std::uint64_t index) {
        ASSERT_LT(n, kQueues);
        ASSERT_LT(index, expected_[n].size());
        EXPECT_FALSE(expected_[n][index].started) << n << "/" << index << " ran twice";
        expected_[n][index].started = true;
        check_order(n, index);
    }

    void saw_start(std::uint32_t port, const FakeSoc::Engine& engine) {
        const auto op = static_cast<std::uint16_t>(engine.desc[0]);
        // entry of a kernel, dst of a fill, src of a copy
        const std::uint64_t name = op == ORR_DESC_PATTERN ? engine.desc[2] : engine.desc[1];
        names_[port] = name;
        const auto n = static_cast<std::uint32_t>((name >> 32) - 1);
        EXPECT_EQ(engine.desc[0] >> 32, queues_.at(n).context);
        saw(n, (name & 0xffffffff) >> 4);
    }

    void saw_signal(std::uint64_t va, std::uint64_t value) {
        const auto n = static_cast<std::uint32_t>((va & 0xffff) / 16);
        saw(n, value - 1);
        expected_[n][value - 1].finished = true;
    }

    // Progress never runs backward, and never over something unfinished.
    void check() {
        for (std::uint32_t n = 0; n < kQueues; ++n) {
            const std::uint64_t completed = bench_->status(n).completed;
            ASSERT_GE(completed, last_completed_[n]);
            ASSERT_EQ(completed, bench_->ring_of(queues_[n]).consumer);
            for (std::uint64_t index = last_completed_[n]; index < completed; ++index) {
                const Expected& packet = expected_[n][index];
                if (!is_quiet(packet.kind)) {
                    ASSERT_TRUE(packet.finished) << n << "/" << index << " retired unfinished";
                }
            }
            last_completed_[n] = completed;
        }
    }

    std::mt19937_64 random_;
    std::unique_ptr<Bench> bench_;
    std::vector<ProcessQueue> queues_;
    std::vector<std::vector<Expected>> expected_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> waited_;
    std::map<std::uint32_t, std::uint64_t> names_;
    std::array<std::uint64_t, kQueues> last_completed_{};
    bool rung_all_ = false;
};

class RandomTest : public testing::TestWithParam<int> {};

TEST_P(RandomTest, EveryPacketOnceAndInOrder) {
    Model(static_cast<std::uint64_t>(GetParam())).run();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTest, testing::Range(1, 41));

}  // namespace
}  // namespace orrery::fw::test
