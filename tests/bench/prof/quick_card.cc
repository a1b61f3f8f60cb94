#include "tests/bench/prof/quick_card.h"

#include <orrery/fw/trace.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/runtime.h"

extern "C" {
#include "kmod/orr_sink_rule.h"
}

namespace orrery::bench {
namespace {

using umd::Result;
using umd::Status;
using namespace std::chrono_literals;

constexpr std::uint32_t kJobWords = 6;
constexpr std::uint64_t kJobPs = 10'000;

}  // namespace

class QuickSystem::Card {
  public:
    struct Queue {
        orr_ring* ring = nullptr;
        std::uint32_t entries = 0, number = 0;
    };
    Card()
        : bytes_((sizeof(orr_trace_sink) + ORR_SINK_BYTES) / sizeof(std::uint64_t)),
          sink_(reinterpret_cast<orr_trace_sink*>(bytes_.data())),
          ring_{sink_, 0},
          thread_([this](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  work();
                  std::this_thread::sleep_for(50us);
              }
          }) {}

    void add(const Queue& queue) {
        const std::lock_guard lock(mutex_);
        queues_.push_back(queue);
    }
    void remove(std::uint32_t number) {
        const std::lock_guard lock(mutex_);
        std::erase_if(queues_, [&](const Queue& one) { return one.number == number; });
    }
    void want(bool wanted) {
        const std::lock_guard lock(mutex_);
        if (std::exchange(wanted_, wanted) != wanted) next_ = orr_sink_head(&ring_);
    }
    // As orr_work.c does.
    umd::WorkRead read(std::span<drm_orr_work_record> records) {
        constexpr std::uint32_t kMost = 16'384;
        umd::WorkRead read{};
        orr_sink_place place{};
        bool lost = !orr_sink_look(&ring_, &place, next_);
        most_ = std::max(most_.load(), (place.end - place.next) / kJobWords);
        while (!lost && read.count < records.size()) {
            std::array<std::uint64_t, kJobWords> words{};
            const auto step = orr_sink_next(&ring_, &place, kMost, words.data(), kJobWords);
            lost = step == ORR_SINK_LOST;
            if (step != ORR_SINK_RECORD) break;
            drm_orr_work_record& record = records[read.count++];
            record = {};
            record.kind = ORR_WORK_JOB;
            record.time_ps = words[0];
            record.queue = ORR_TRACE_A(words[1]);
            record.index = words[2];
            record.start_ps = words[3];
            record.end_ps = words[4];
            record.used_ps = words[5];
        }
        next_ = place.next;
        read.lost = lost;
        read.more = place.next < place.end;
        return read;
    }
    std::uint64_t recorded() const { return recorded_; }
    std::uint64_t most_waiting() { return most_.exchange(0); }

    orr_doorbell_page* doorbells() { return &doorbells_; }
    std::byte* kicks() { return kicks_.data(); }

  private:
    void work() {
        const std::lock_guard lock(mutex_);
        for (const Queue& queue : queues_) {
            const std::uint64_t end = std::atomic_ref(queue.ring->producer).load(std::memory_order_acquire);
            std::uint64_t at = queue.ring->consumer;
            if (at == end) continue;
            const auto* const packets = reinterpret_cast<const orr_packet*>(queue.ring + 1);
            for (; at != end; ++at) {
                const auto opcode = packets[at & (queue.entries - 1)].header.opcode;
                if (opcode != ORR_PKT_SIGNAL && opcode != ORR_PKT_WAIT && wanted_) record(queue.number, at);
            }
            queue.ring->consumer_time_ps = now_ps_;
            std::atomic_ref(queue.ring->consumer).store(end, std::memory_order_release);
        }
    }
    void record(std::uint32_t queue, std::uint64_t index) {
        const std::uint64_t begin = now_ps_;
        now_ps_ += kJobPs;
        const std::array<std::uint64_t, kJobWords> words{
            now_ps_, ORR_TRACE_HEADER(ORR_TRACE_END_JOB, kJobWords - 2, queue, 0), index, begin, now_ps_,
            kJobPs};
        auto* const ring = reinterpret_cast<std::uint64_t*>(sink_ + 1);
        const std::uint64_t head = sink_->head;
        for (std::size_t i = 0; i < words.size(); ++i)
            std::atomic_ref(ring[(head + i) % ORR_SINK_RING]).store(words.at(i), std::memory_order_relaxed);
        std::atomic_ref(sink_->head).store(head + kJobWords, std::memory_order_release);
        ++recorded_;
    }

    std::vector<std::uint64_t> bytes_;
    orr_trace_sink* const sink_;
    const orr_sink_ring ring_;
    std::mutex mutex_;  // of the queues, and of what is wanted
    std::vector<Queue> queues_;
    bool wanted_ = false;
    std::uint64_t next_ = 0;  // of who reads, one at a time
    std::uint64_t now_ps_ = 1'000'000;
    std::atomic<std::uint64_t> recorded_{0}, most_{0};
    orr_doorbell_page doorbells_{};
    std::array<std::byte, ORR_DB_PAGE_SIZE> kicks_{};
    std::jthread thread_;  // the last one: it uses all of them
};

namespace {

using Card = QuickSystem::Card;

class QuickQueue final : public umd::HwQueue {
  public:
    QuickQueue(Card& card, const Card::Queue& queue) : card_(card), queue_(queue) {
        doorbell_ = umd::Doorbell(card.doorbells(), card.kicks(), queue.number, 1);
        card_.add(queue_);
    }
    ~QuickQueue() override { QuickQueue::destroy(); }
    void abort() override {}
    void destroy() override { card_.remove(queue_.number); }
    Result<umd::QueueState> wait(std::uint64_t index, std::int64_t deadline_ns) override {
        umd::QueueState state{};
        do {
            state.completed = std::atomic_ref(queue_.ring->consumer).load(std::memory_order_acquire);
            if (state.completed >= index) break;
            std::this_thread::sleep_for(20us);
        } while (umd::now_ns() < deadline_ns);
        return state;
    }
    Result<drm_orr_queue_stats> stats() override { return drm_orr_queue_stats{}; }
    Status set(const umd::QueueOptions& /*options*/) override { return {}; }
    Status declare_signal(std::uint64_t /*semaphore*/) override { return {}; }
    Status remove_signal(std::uint64_t /*semaphore*/) override { return {}; }
    std::uint32_t number() const override { return queue_.number; }
    std::uint32_t firmware_number() const override { return queue_.number; }

  private:
    Card& card_;
    const Card::Queue queue_;
};

class QuickDevice final : public umd::Device {
  public:
    QuickDevice(std::unique_ptr<umd::Device> fake, Card& card) : fake_(std::move(fake)), card_(card) {}
    const umd::DeviceInfo& info() const override { return fake_->info(); }
    Result<drm_orr_query_device> query() override { return fake_->query(); }
    Result<std::vector<std::uint64_t>> counters() override { return fake_->counters(); }
    Result<drm_orr_query_link> link(std::uint32_t port) override { return fake_->link(port); }
    Status create_vm(umd::Quota quota) override { return fake_->create_vm(quota); }
    Result<std::unique_ptr<umd::Bo>> create_bo(std::uint64_t size, umd::BoKind kind) override {
        return fake_->create_bo(size, kind);
    }
    Result<std::unique_ptr<umd::Bo>> import_bo(umd::Bo& other) override { return fake_->import_bo(other); }
    Result<std::optional<umd::ForeignBo>> import_fd(int fd) override { return fake_->import_fd(fd); }
    Result<std::unique_ptr<umd::Bo>> import_fabric(const umd::FabricKey& key) override {
        return fake_->import_fabric(key);
    }
    Status bind(umd::Bo& bo, std::uint64_t offset, std::uint64_t va, std::uint64_t size,
                std::uint32_t flags) override {
        return fake_->bind(bo, offset, va, size, flags);
    }
    Status unbind(std::uint64_t va, std::uint64_t size) override { return fake_->unbind(va, size); }
    Result<std::vector<drm_orr_wait_edge>> deadlock() override { return fake_->deadlock(); }
    // Pinned memory has the same address here and for cards.
    Result<std::unique_ptr<umd::HwQueue>> create_queue(std::uint64_t ring_va, std::uint32_t entries,
                                                       const umd::QueueOptions& /*options*/) override {
        auto* const ring = reinterpret_cast<orr_ring*>(ring_va);
        return std::make_unique<QuickQueue>(card_, Card::Queue{ring, entries, ++queues_});
    }
    Status want_work(umd::WorkWanted wanted) override {
        card_.want(wanted != umd::WorkWanted::kNone);
        return {};
    }
    Result<umd::WorkRead> read_work(std::span<drm_orr_work_record> records,
                                    std::span<drm_orr_work_counters> /*counters*/) override {
        return card_.read(records);
    }

  private:
    std::unique_ptr<umd::Device> fake_;
    Card& card_;
    std::uint32_t queues_ = 0;
};

class QuickWinsys final : public umd::Winsys {
  public:
    QuickWinsys(std::span<const std::unique_ptr<umd::test::FakeCard>> fakes, Card& card)
        : fake_(fakes), card_(card) {}
    Result<std::vector<std::unique_ptr<umd::Device>>> open_devices() override {
        auto devices = fake_.open_devices();
        if (devices) {
            for (auto& device : *devices)
                device = std::make_unique<QuickDevice>(std::move(device), card_);
        }
        return devices;
    }

  private:
    umd::test::FakeWinsys fake_;
    Card& card_;
};

}  // namespace

QuickSystem::QuickSystem() : card_(std::make_unique<Card>()) {
    fakes_.push_back(std::make_unique<umd::test::FakeCard>(0, 64 << 20));
    umd::Runtime::replace(std::make_unique<umd::Runtime>(std::make_unique<QuickWinsys>(fakes_, *card_)));
}

QuickSystem::~QuickSystem() {
    umd::Runtime::replace(nullptr);
}

std::uint64_t QuickSystem::recorded() const {
    return card_->recorded();
}

std::uint64_t QuickSystem::most_waiting() {
    return card_->most_waiting();
}

}  // namespace orrery::bench
