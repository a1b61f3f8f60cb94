#include "tests/unit/umd/fake_winsys.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <orrery/fw/failure.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

#include "umd/runtime/clock.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

// Descriptors that stand for buffers, as dma-bufs do: files without content, known by their numbers.
std::map<std::pair<dev_t, ino_t>, std::weak_ptr<FakePages>> g_exported;
std::mutex g_exported_mutex;

Result<UniqueFd> exported(const std::shared_ptr<FakePages>& pages) {
    UniqueFd fd(::memfd_create("fake dma-buf", MFD_CLOEXEC));
    struct stat stat{};
    if (fd.get() < 0 || ::fstat(fd.get(), &stat) != 0) return fail_errno(errno, "exporting a buffer");
    const std::lock_guard lock(g_exported_mutex);
    g_exported[{stat.st_dev, stat.st_ino}] = pages;
    return fd;
}

std::shared_ptr<FakePages> behind(int fd) {
    struct stat stat{};
    if (::fstat(fd, &stat) != 0) return nullptr;
    const std::lock_guard lock(g_exported_mutex);
    const auto found = g_exported.find({stat.st_dev, stat.st_ino});
    return found == g_exported.end() ? nullptr : found->second.lock();
}

// What other machines may have, by number.
struct FakeExport {
    FabricKey key;
    std::weak_ptr<FakePages> pages;
    bool semaphore = false;
};
std::map<std::uint64_t, FakeExport> g_fabric;
std::uint64_t g_fabric_keys = 0;
std::mutex g_fabric_mutex;

std::uint32_t node_of(const FakeCard& card) {
    return static_cast<std::uint32_t>(card.number) + 1;
}

std::uint64_t abandoned_word(const FakeCard& card) {
    return ORR_FAILURE_WORD(ORR_QERR_ABANDONED, card.uid & 0xff, ORR_FAILURE_NO_QUEUE, 0);
}

class FakeBo final : public Bo {
  public:
    // signals: another machine's semaphore, which this card may signal while the Bo lives.
    FakeBo(std::shared_ptr<FakePages> pages, FakeCard& card, bool signals = false)
        : pages_(std::move(pages)), card_(card), signals_(signals) {}
    ~FakeBo() override {
        if (signals_) {
            FakeSignallers::all().remove(pages_->data, &card_, abandoned_word(card_));
            pages_->owner.wake();
        }
        const std::lock_guard lock(card_.mutex());
        for (const auto& [va, mapping] : card_.mappings) {
            if (card_.as_another_process) break;  // another one of this process may be
            EXPECT_NE(mapping.pages, pages_) << "a buffer was closed while it was bound at " << va;
        }
        pages_.reset();
    }
    std::uint64_t size() const override { return pages_->size; }
    Result<void*> map() override { return pages_->data; }
    void unmap() override {}
    Result<UniqueFd> export_fd() override { return exported(pages_); }
    Result<FabricKey> export_fabric(bool semaphore) override {
        if (card_.fabric_errno != 0) return fail_errno(card_.fabric_errno, "making a handle");
        const std::lock_guard lock(g_fabric_mutex);
        FabricKey key{++g_fabric_keys, pages_->size, node_of(card_), {}};
        key.secret.fill(static_cast<std::uint8_t>(0x50 + key.object));
        g_fabric[key.object] = {key, pages_, semaphore};
        return key;
    }
    void revoke_fabric(const FabricKey& key) override {
        const std::lock_guard lock(g_fabric_mutex);
        EXPECT_EQ(g_fabric.erase(key.object), 1u);
        pages_->revoked.store(true);
        for (FakeCard* peer : card_.peers())
            FakeSignallers::all().remove(pages_->data, peer, abandoned_word(*peer));
        card_.wake();
    }
    const std::shared_ptr<FakePages>& pages() const { return pages_; }

  private:
    std::shared_ptr<FakePages> pages_;
    FakeCard& card_;
    const bool signals_;
};

class FakeQueue final : public HwQueue {
  public:
    FakeQueue(FakeCard& card, FakeCard::Queue& queue) : card_(card), queue_(&queue), number_(queue.slot + 1) {
        doorbell_ = Doorbell(card.doorbells, card.kick_page, queue.slot, queue.generation);
    }
    ~FakeQueue() override { FakeQueue::destroy(); }
    void abort() override {
        const std::lock_guard lock(card_.mutex());
        if (queue_ != nullptr && !card_.lost()) card_.stop(*queue_, ORR_QERR_ABORTED, 0, 0);
    }
    void destroy() override {
        const std::lock_guard lock(card_.mutex());
        if (queue_ != nullptr) {
            if (!card_.idle(*queue_)) abort();
            card_.end_signals(*queue_);
        }
        card_.queues.remove_if([&](const FakeCard::Queue& q) { return &q == queue_; });
        queue_ = nullptr;
    }
    Result<drm_orr_queue_stats> stats() override {
        const std::lock_guard lock(card_.mutex());
        if (queue_ == nullptr) return fail_errno(ENOENT, "statistics of a queue");
        drm_orr_queue_stats stats{};
        stats.jobs = queue_->completed;
        return stats;
    }
    Status set(const QueueOptions& options) override {
        const std::lock_guard lock(card_.mutex());
        if (queue_ == nullptr) return fail_errno(ENOENT, "setting a queue");
        const std::string name = queue_->options.name;
        queue_->options = options;
        queue_->options.name = name;
        return {};
    }
    Status declare_signal(std::uint64_t va) override {
        const std::lock_guard lock(card_.mutex());
        auto semaphore = find(va);
        if (!semaphore) return std::unexpected(semaphore.error());
        if (queue_->state.error != 0) return fail_errno(EIO, "declaring a signaller");
        FakeSignallers::all().add(*semaphore, queue_);
        return {};
    }
    Status remove_signal(std::uint64_t va) override {
        const std::lock_guard lock(card_.mutex());
        auto semaphore = find(va);
        if (!semaphore) return std::unexpected(semaphore.error());
        FakeSignallers::all().remove(*semaphore, queue_, card_.abandoned_by(*queue_));
        card_.wake();
        return {};
    }
    std::uint32_t number() const override { return number_; }
    std::uint32_t firmware_number() const override { return number_; }
    Result<QueueState> wait(std::uint64_t index, std::int64_t deadline_ns) override {
        card_.count_wait();
        if (card_.on_wait) card_.on_wait();
        if (const int number = card_.wait_errno.exchange(0)) return fail_errno(number, "waiting for a queue");
        while (true) {
            if (card_.lost()) return fail_errno(ENODEV, "waiting for a queue");
            {
                const std::lock_guard lock(card_.mutex());
                if (queue_ == nullptr) return fail(orrErrorInvalidHandle, "the queue is gone");
                queue_->state.completed = queue_->completed;
                if (queue_->completed >= index || queue_->state.error != 0) return queue_->state;
                if (!card_.deadlock.empty()) {
                    QueueState state{};
                    state.deadlock = true;
                    return state;
                }
            }
            if (now_ns() >= deadline_ns) return QueueState{};
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

  private:
    Result<std::byte*> find(std::uint64_t va) {
        if (!card_.knows_signallers) return fail_errno(EOPNOTSUPP, "declaring a signaller");
        if (card_.lost()) return fail_errno(ENODEV, "declaring a signaller");
        if (queue_ == nullptr) return fail_errno(ENOENT, "declaring a signaller");
        std::uint64_t fault = 0;
        auto* memory = card_.translate(va, sizeof(orr_semaphore), ORR_BIND_WRITE, &fault);
        if (memory == nullptr || va % sizeof(orr_semaphore) != 0)
            return fail_errno(EFAULT, "declaring a signaller");
        return memory;
    }

    FakeCard& card_;
    FakeCard::Queue* queue_;  // under the card's mutex; null: destroyed
    const std::uint32_t number_;
};

class FakeDevice final : public Device {
  public:
    explicit FakeDevice(FakeCard& card) : card_(card) {
        info_ = {fmt::format("/dev/accel/accel{}", card.number),
                 fmt::format("0000:0{}:00.0", card.number + 1), card.driver_version};
    }
    const DeviceInfo& info() const override { return info_; }

    Result<drm_orr_query_device> query() override {
        if (card_.lost()) return fail_errno(ENODEV, "device query");
        const std::lock_guard lock(card_.mutex());
        drm_orr_query_device query{};
        query.uid = card_.uid;
        query.vram_size = card_.vram_bytes;
        query.vector_cores = FakeCard::kVectorCores;
        query.vector_ports = card_.vector_ports;
        query.vram_used = card_.vram_used;
        query.link_ports = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(card_.peers().size()));
        query.max_ring_entries = ORR_RING_MAX_ENTRIES;
        query.counters = card_.counters;
        query.features = (card_.checks_memory ? ORR_FEATURE_TELL : 0) |
                         (card_.host_atomics ? ORR_FEATURE_HOST_ATOMICS : 0) |
                         (card_.in_step ? ORR_FEATURE_IN_STEP : 0) |
                         (card_.peer_reads ? ORR_FEATURE_PEER_READS : 0) |
                         (card_.fabric_semaphores ? ORR_FEATURE_FABRIC_SEMAPHORES : 0) |
                         (card_.has_barriers ? ORR_FEATURE_BARRIERS : 0);
        card_.sku_name.copy(reinterpret_cast<char*>(query.sku_name), sizeof query.sku_name);
        card_.vector_isa.copy(reinterpret_cast<char*>(query.vector_isa), sizeof query.vector_isa);
        return query;
    }
    Result<std::vector<std::uint64_t>> counters() override { return std::vector<std::uint64_t>{1, 2, 3, 4}; }
    Result<drm_orr_query_link> link(std::uint32_t port) override {
        drm_orr_query_link link{};
        if (card_.on_link) card_.on_link();
        if (card_.lost()) return fail_errno(ENODEV, "link query");
        link.port = port;
        if (port < card_.peers().size()) {
            link.latency_ns = 300;
            const FakeCard& peer = *card_.peers()[port];
            link.state = card_.reaches(peer) ? ORR_LINK_UP : ORR_LINK_DOWN;
            link.peer_uid = peer.uid;
            link.losses = card_.link_losses() + peer.link_losses();
            card_.tell_link_counts(link);
        }
        return link;
    }

    // As the driver names the link that ended the way before.
    Result<drm_orr_query_way> way(std::uint64_t peer_uid) override {
        auto way = Device::way(peer_uid);
        if (!way || !card_.names_losses) return way;
        for (std::uint32_t port = 0; port < card_.peers().size(); ++port) {
            const FakeCard& peer = *card_.peers()[port];
            const std::uint32_t losses = card_.link_losses() + peer.link_losses();
            if (peer.uid != peer_uid) continue;
            if (info_.driver_version >= ORR_MAKE_VERSION(1, 17, 0)) {
                way->version = 1 + losses;
                way->settled = 1 + std::min(losses, card_.settled_losses.load());
                if (losses == 0) continue;
                way->lost_version = losses;
            } else {
                if (losses == 0) continue;
                way->lost_version = losses - 1;
            }
            way->lost_uid = card_.uid;
            way->lost_peer_uid = peer_uid;
            way->lost_port = port;
        }
        if (way->lost_uid == 0 && info_.driver_version >= ORR_MAKE_VERSION(1, 19, 0))
            name_loss_between(peer_uid, *way);
        return way;
    }

    Result<std::vector<drm_orr_wait_edge>> deadlock() override {
        const std::lock_guard lock(card_.mutex());
        return card_.deadlock;
    }

    Result<std::vector<UniqueFd>> make_barrier(const std::vector<BarrierSeat>& seats) override {
        if (card_.barrier_errno != 0) return fail_errno(card_.barrier_errno, "making a barrier");
        return Device::make_barrier(seats);
    }

    Status create_vm(Quota quota) override {
        const std::lock_guard lock(card_.mutex());
        if (card_.lost()) return fail_errno(ENODEV, "making an address space");
        EXPECT_FALSE(card_.has_vm) << "one address space a process";
        card_.has_vm = true;
        card_.quota = quota;
        return {};
    }
    Result<std::unique_ptr<Bo>> create_bo(std::uint64_t size, BoKind kind) override {
        const std::lock_guard lock(card_.mutex());
        if (card_.lost()) return fail_errno(ENODEV, "allocating");
        EXPECT_EQ(size % 4096, 0u);
        if (kind == BoKind::kVram && size > card_.vram_bytes - card_.vram_used) {
            return fail_errno(ENOMEM, "allocating card memory");
        }
        return std::make_unique<FakeBo>(std::make_shared<FakePages>(card_, size, kind), card_);
    }
    Result<std::unique_ptr<Bo>> import_bo(Bo& other) override {
        if (card_.refuse_import != 0 && --card_.refuse_import == 0) return fail_errno(EXDEV, "importing");
        const auto& pages = static_cast<FakeBo&>(other).pages();
        if (card_.probed.load() == pages.get()) return fail_errno(EEXIST, "importing");
        // The driver notices that links are down before it notices that the card is gone.
        if (pages->kind == BoKind::kVram && !card_.reaches(pages->owner))
            return fail_errno(EXDEV, "importing");
        if (card_.lost()) return fail_errno(ENODEV, "importing");
        return std::make_unique<FakeBo>(pages, card_);
    }
    // Nothing reaches its members.
    Result<std::unique_ptr<Bo>> make_multicast(const std::vector<MulticastMember>& members,
                                               std::uint64_t size, bool read) override {
        if (info_.driver_version < ORR_MAKE_VERSION(1, 9, 0))
            return Device::make_multicast(members, size, read);
        return create_bo(size, BoKind::kSystem);
    }
    // A process cannot have what it has exported: tests play another one with `as_another_process`.
    Result<std::optional<ForeignBo>> import_fd(int fd) override {
        const auto pages = behind(fd);
        if (pages == nullptr)
            return fail(orrErrorInvalidValue, "file descriptor {} is no memory that could be imported", fd);
        if (card_.lost()) return fail_errno(ENODEV, "importing");
        if (card_.probe_errno != 0) return fail_errno(card_.probe_errno, "importing");
        if (&pages->owner != &card_) {
            card_.probed.store(pages.get());
            if (card_.on_probe) card_.on_probe();
            card_.probed.store(nullptr);
            return std::nullopt;
        }
        if (!card_.as_another_process) return fail(orrErrorInvalidValue, "this process has it already");
        return ForeignBo{std::make_unique<FakeBo>(pages, card_), pages->kind};
    }
    Result<std::unique_ptr<Bo>> import_fabric(const FabricKey& key) override {
        if (card_.fabric_errno != 0) return fail_fabric(card_.fabric_errno, key, info_.node);
        if (key.node == node_of(card_)) return fail_fabric(EINVAL, key, info_.node);
        const auto owner = std::ranges::find_if(
            card_.peers(), [&](const FakeCard* peer) { return node_of(*peer) == key.node; });
        if (owner == card_.peers().end() || !card_.reaches(**owner))
            return fail_fabric(EXDEV, key, info_.node);
        const std::lock_guard lock(g_fabric_mutex);
        const auto found = g_fabric.find(key.object);
        const auto pages =
            found == g_fabric.end() || found->second.key != key ? nullptr : found->second.pages.lock();
        if (pages == nullptr) return fail_fabric(EACCES, key, info_.node);
        if (found->second.semaphore) FakeSignallers::all().add(pages->data, &card_);
        return std::make_unique<FakeBo>(pages, card_, found->second.semaphore);
    }
    Status bind(Bo& bo, std::uint64_t offset, std::uint64_t va, std::uint64_t size,
                std::uint32_t flags) override {
        const std::lock_guard lock(card_.mutex());
        const auto& pages = static_cast<FakeBo&>(bo).pages();
        if (va % 4096 != 0 || size % 4096 != 0 || offset % 4096 != 0 || size == 0 || flags == 0 ||
            va < ORR_VA_START || va + size > ORR_VA_END || offset + size > pages->size) {
            return fail_errno(EINVAL, "binding");
        }
        const auto after = card_.mappings.lower_bound(va);
        if (after != card_.mappings.end() && after->first < va + size) return fail_errno(EEXIST, "binding");
        if (after != card_.mappings.begin() && std::prev(after)->first + std::prev(after)->second.size > va) {
            return fail_errno(EEXIST, "binding");
        }
        const bool peer = pages->kind == BoKind::kVram && &pages->owner != &card_;
        if (peer) {
            const std::uint32_t read = card_.peer_reads && pages->owner.peer_reads ? ORR_BIND_READ : 0;
            EXPECT_EQ(flags & ~read, ORR_BIND_WRITE) << "cards read only those that do that, too";
            if (card_.grants == card_.max_grants) return fail_errno(ENOSPC, "granting");
            ++card_.grants;
        }
        card_.mappings[va] = {pages, offset, size, flags};
        return {};
    }
    Status unbind(std::uint64_t va, std::uint64_t size) override {
        const std::lock_guard lock(card_.mutex());
        for (auto it = card_.mappings.lower_bound(va); it != card_.mappings.end() && it->first < va + size;) {
            EXPECT_LE(it->first + it->second.size, va + size);
            if (it->second.pages->kind == BoKind::kVram && &it->second.pages->owner != &card_) --card_.grants;
            it = card_.mappings.erase(it);
        }
        return {};
    }
    Status want_work(WorkWanted wanted) override {
        const std::lock_guard lock(card_.mutex());
        if (!card_.records_work) return Device::want_work(wanted);
        if (wanted == WorkWanted::kCounters && card_.counters_busy) {
            --card_.counters_busy;
            return fail(orrErrorSystem, "a debugger holds the card");
        }
        card_.counters_wanted = wanted == WorkWanted::kCounters;
        if (card_.work_wanted && wanted != WorkWanted::kNone) return {};
        card_.work_wanted = wanted != WorkWanted::kNone;
        card_.work_records.clear();
        card_.work_overrun = false;
        card_.work_read_at = std::chrono::steady_clock::now();
        return {};
    }
    Result<WorkRead> read_work(std::span<drm_orr_work_record> records,
                               std::span<drm_orr_work_counters> counters) override {
        std::function<void()> then;
        auto read = read_work_now(records, counters, then);
        if (then) then();
        return read;
    }
    Result<WorkRead> read_work_now(std::span<drm_orr_work_record> records,
                                   std::span<drm_orr_work_counters> counters, std::function<void()>& then) {
        const std::lock_guard lock(card_.mutex());
        then = card_.on_work_read;
        if (card_.lost()) return fail(orrErrorDeviceLost, "gone");
        const auto now = std::chrono::steady_clock::now();
        const auto since = now - std::exchange(card_.work_read_at, now);
        const bool overrun = std::exchange(card_.work_overrun, false) ||
                             (card_.work_lives.count() != 0 && since > card_.work_lives);
        if (overrun) card_.work_records.clear();
        WorkRead read{.lost = std::exchange(card_.work_lost, false) || overrun};
        while (read.count < records.size() && !card_.work_records.empty()) {
            const auto& [record, counted] = card_.work_records.front();
            if (!counters.empty()) {
                drm_orr_work_counters& did = counters[read.count];
                did = {};
                did.known = counted ? card_.counters_known : 0;
                for (std::uint64_t n = 0; counted && n < std::size(did.value); ++n)
                    did.value[n] = 1000 * record.index + n;
            }
            records[read.count++] = record;
            card_.work_records.pop_front();
        }
        read.more = !card_.work_records.empty();
        return read;
    }
    Status want_samples(std::uint32_t period_ns, const std::array<std::uint64_t, 2>& set) override {
        const std::lock_guard lock(card_.mutex());
        if (!card_.takes_samples) return Device::want_samples(period_ns, set);
        card_.sample_ns = period_ns;
        card_.sample_set = set;
        card_.sample_words.clear();
        return {};
    }
    // Two samples of two counters at a time.
    Result<SampleRead> read_samples(std::span<std::uint64_t> words) override {
        const std::lock_guard lock(card_.mutex());
        SampleRead read{};
        while (read.words < 8 && read.words < words.size() && !card_.sample_words.empty()) {
            words[read.words++] = card_.sample_words.front();
            card_.sample_words.pop_front();
        }
        read.more = !card_.sample_words.empty();
        if (!read.more) read.lost = std::exchange(card_.samples_lost, false);
        return read;
    }
    Status want_pcs(const PcWanted& wanted) override {
        const std::lock_guard lock(card_.mutex());
        if (!card_.says_pcs) return Device::want_pcs(wanted);
        card_.pc_ns = wanted.period_ns;
        card_.pc_core = wanted.core;
        return {};
    }
    // Two at a time.
    Result<PcRead> read_pcs(std::span<drm_orr_pc_record> records) override {
        const std::lock_guard lock(card_.mutex());
        PcRead read{.lost = std::exchange(card_.pcs_lost, false)};
        while (read.count < 2 && read.count < records.size() && !card_.pc_records.empty()) {
            records[read.count++] = card_.pc_records.front();
            card_.pc_records.pop_front();
        }
        read.more = !card_.pc_records.empty();
        return read;
    }
    Result<std::unique_ptr<HwQueue>> create_queue(std::uint64_t ring_va, std::uint32_t entries,
                                                  const QueueOptions& options) override {
        if (card_.on_make_queue) card_.on_make_queue();
        const std::lock_guard lock(card_.mutex());
        std::uint64_t fault = 0;
        auto* ring = card_.translate(ring_va, sizeof(orr_ring) + entries * 64ull,
                                     ORR_BIND_READ | ORR_BIND_WRITE, &fault);
        if (ring == nullptr || !std::has_single_bit(entries) || ring_va % 64 != 0) {
            return fail_errno(EINVAL, "making a queue");
        }
        std::uint32_t slot = 0;  // the first that is free, as the driver does
        while (std::ranges::any_of(card_.queues, [&](const auto& q) { return q.slot == slot; }))
            ++slot;
        if (slot >= ORR_DB_SLOTS) return fail_errno(ENOSPC, "making a queue");
        // A slot is used again: its doorbell still holds the last queue's value.
        card_.queues.push_back(
            {ring_va, entries, slot, ++card_.generations, 0, {}, false, options, 0, 0, 0, {}, 0});
        return std::make_unique<FakeQueue>(card_, card_.queues.back());
    }

  private:
    // Of a way over one card, whose first link has been lost.
    void name_loss_between(std::uint64_t peer_uid, drm_orr_query_way& way) const {
        const auto is_it = [&](const FakeCard* card) { return card->uid == peer_uid; };
        if (std::ranges::any_of(card_.peers(), is_it)) return;
        for (std::uint32_t port = 0; port < card_.peers().size(); ++port) {
            const FakeCard& between = *card_.peers()[port];
            if (card_.link_losses() + between.link_losses() == 0 ||
                std::ranges::none_of(between.peers(), is_it))
                continue;
            way.lost_uid = card_.uid;
            way.lost_peer_uid = between.uid;
            way.lost_port = port;
        }
    }
    DeviceInfo info_;
    FakeCard& card_;
};

}  // namespace

Result<std::vector<std::unique_ptr<Device>>> FakeWinsys::open_devices() {
    std::vector<std::unique_ptr<Device>> devices;
    for (const auto& card : cards_)
        devices.push_back(std::make_unique<FakeDevice>(*card));
    return devices;
}

FakeSystem::FakeSystem(int cards, std::uint64_t vram_bytes) {
    for (int i = 0; i < cards; ++i) {
        cards_.push_back(std::make_unique<FakeCard>(i, vram_bytes));
        if (i % 2 == 1)
            cards_[static_cast<std::size_t>(i)]->link_to(*cards_[static_cast<std::size_t>(i - 1)]);
    }
    Runtime::replace(std::make_unique<Runtime>(std::make_unique<FakeWinsys>(cards_)));
}

FakeSystem::~FakeSystem() {
    Runtime::replace(nullptr);
    for (const auto& card : cards_)
        card->drop_arrivals(nullptr);
    for (const auto& card : cards_) {
        const std::lock_guard lock(card->mutex());
        EXPECT_EQ(card->live_pages, 0) << "buffers leaked on card " << card->number;
        EXPECT_TRUE(card->mappings.empty()) << "mappings leaked on card " << card->number;
        EXPECT_TRUE(card->queues.empty()) << "queues leaked on card " << card->number;
        EXPECT_EQ(card->vram_used, 0u);
        EXPECT_EQ(card->grants, 0u);
    }
}

}  // namespace orrery::umd::test
