#include "umd/winsys/drm_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <xf86drm.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <mutex>
#include <set>
#include <utility>

#include <orrery/hw/mmu.h>

namespace orrery::umd {
namespace {

// What buffers and queues need of their card after the Device object may be gone.
struct File {
    UniqueFd fd;
    std::string node;
    std::mutex mutex;
    std::uint32_t vm = 0;
    orr_doorbell_page* doorbells = nullptr;
    std::byte* kicks = nullptr;
    // The kernel gives a buffer that the file has already the same handle again, which two would close.
    std::mutex handles_mutex;
    std::set<std::uint32_t> handles;

    ~File() {
        forget_card_file(fd.get());
        if (doorbells != nullptr) ::munmap(doorbells, ORR_DB_PAGE_SIZE);
        if (kicks != nullptr) ::munmap(kicks, ORR_DB_PAGE_SIZE);
    }

    int ioctl(unsigned long request, void* argument) const {
        return drmIoctl(fd.get(), request, argument) == 0 ? 0 : errno;
    }
    // Of a new buffer.
    void keep(std::uint32_t handle) {
        const std::lock_guard lock(handles_mutex);
        handles.insert(handle);
    }
    void close(std::uint32_t handle) {
        const std::lock_guard lock(handles_mutex);
        handles.erase(handle);
        drm_gem_close close{};
        close.handle = handle;
        ioctl(DRM_IOCTL_GEM_CLOSE, &close);
    }
    // The buffer's handle, which is kept; its error number is negative, -EEXIST if the file has it.
    std::int64_t import(int dma_buf) {
        const std::lock_guard lock(handles_mutex);
        std::uint32_t handle = 0;
        if (drmPrimeFDToHandle(fd.get(), dma_buf, &handle) != 0) return -errno;
        return handles.insert(handle).second ? std::int64_t{handle} : -EEXIST;
    }
    std::string what(const char* call) const { return fmt::format("{} on {}", call, node); }
};

// Where a mapping of `size` bytes begins as a large page does: the card has the same addresses, and then it
// can have such pages too. The addresses are free again, so this is a wish: it may come too late, and the
// kernel then chooses others. Null: no wish.
void* wished_address(std::uint64_t size) {
    constexpr std::uint64_t kPage = ORR_HUGE_PAGE_SIZE;
    if (size < kPage) return nullptr;
    void* all = ::mmap(nullptr, size + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    ::munmap(all, size + kPage);
    return static_cast<std::byte*>(all) + -reinterpret_cast<std::uintptr_t>(all) % kPage;
}

Result<void*> map_file(const File& file, std::uint64_t size, int protection, std::uint64_t offset,
                       const char* what) {
    void* address =
        ::mmap(wished_address(size), size, protection, MAP_SHARED, file.fd.get(), static_cast<off_t>(offset));
    if (address == MAP_FAILED) return fail_errno(errno, file.what(what));
    // A child after fork() shall not reach the card through its parent's mappings.
    ::madvise(address, size, MADV_DONTFORK);
    return address;
}

class DrmBo final : public Bo {
  public:
    DrmBo(std::shared_ptr<File> file, std::uint32_t handle, std::uint64_t size, std::uint64_t mmap_offset)
        : file_(std::move(file)), handle_(handle), size_(size), mmap_offset_(mmap_offset) {}
    ~DrmBo() override {
        unmap();
        file_->close(handle_);
    }
    DrmBo(const DrmBo&) = delete;
    DrmBo& operator=(const DrmBo&) = delete;

    std::uint64_t size() const override { return size_; }
    std::uint32_t handle() const { return handle_; }
    const File& file() const { return *file_; }

    Result<void*> map() override {
        if (address_ != nullptr) return address_;
        auto mapped = map_file(*file_, size_, PROT_READ | PROT_WRITE, mmap_offset_, "mmap of a buffer");
        if (mapped) address_ = *mapped;
        return mapped;
    }
    void unmap() override {
        if (address_ != nullptr) ::munmap(std::exchange(address_, nullptr), size_);
    }
    Result<UniqueFd> export_fd() override {
        int fd = -1;
        if (drmPrimeHandleToFD(file_->fd.get(), handle_, DRM_CLOEXEC | DRM_RDWR, &fd) != 0)
            return fail_errno(errno, file_->what("exporting a buffer"));
        return UniqueFd(fd);
    }
    Result<FabricKey> export_fabric(bool semaphore) override {
        drm_orr_fabric_export made{};
        made.handle = handle_;
        made.flags = semaphore ? ORR_FABRIC_SEMAPHORE : 0;
        if (const int number = file_->ioctl(DRM_IOCTL_ORR_FABRIC_EXPORT, &made))
            return fail_errno(number, file_->what("making a handle for other machines"));
        FabricKey key{made.object, made.size, made.node, {}};
        std::ranges::copy(made.secret, key.secret.begin());
        return key;
    }
    void revoke_fabric(const FabricKey& key) override {
        drm_orr_fabric_revoke revoke{};
        revoke.object = key.object;
        file_->ioctl(DRM_IOCTL_ORR_FABRIC_REVOKE, &revoke);
    }

  private:
    std::shared_ptr<File> file_;
    std::uint32_t handle_;
    std::uint64_t size_;
    std::uint64_t mmap_offset_;
    void* address_ = nullptr;
};

class DrmQueue final : public HwQueue {
  public:
    DrmQueue(std::shared_ptr<File> file, const drm_orr_queue_create& made)
        : file_(std::move(file)), queue_(made.queue), firmware_number_(made.firmware_number) {
        doorbell_ = Doorbell(file_->doorbells, file_->kicks, made.doorbell_slot, made.generation);
    }
    ~DrmQueue() override { DrmQueue::destroy(); }
    DrmQueue(const DrmQueue&) = delete;
    DrmQueue& operator=(const DrmQueue&) = delete;

    void abort() override {
        if (destroyed_.load()) return;
        drm_orr_queue_abort abort{};
        abort.queue = queue_;
        const int number = file_->ioctl(DRM_IOCTL_ORR_QUEUE_ABORT, &abort);
        // Not stopped for sure: then it shall not be there at all. It cannot be asked any more then.
        if (number != 0 && number != ENODEV) DrmQueue::destroy();
    }

    void destroy() override {
        // Numbers are used again: never twice.
        if (destroyed_.exchange(true)) return;
        drm_orr_queue_destroy destroy{};
        destroy.queue = queue_;
        file_->ioctl(DRM_IOCTL_ORR_QUEUE_DESTROY, &destroy);
    }

    Result<QueueState> wait(std::uint64_t index, std::int64_t deadline_ns) override {
        if (destroyed_.load()) return std::unexpected(gone());
        drm_orr_queue_wait wait{};
        wait.queue = queue_;
        wait.index = index;
        wait.timeout_ns = deadline_ns;
        const int number = file_->ioctl(DRM_IOCTL_ORR_QUEUE_WAIT, &wait);
        // Then the number may have been another queue's already.
        if (destroyed_.load() || number == ECANCELED || number == ENOENT) return std::unexpected(gone());
        if (number == EDEADLK) {
            QueueState state{};
            state.deadlock = true;
            return state;
        }
        if (number != 0 && number != ETIME) return fail_errno(number, file_->what("waiting for a queue"));
        // After ETIME the outputs may not have been copied: "not done, no error" is what the caller needs.
        if (number == ETIME) return QueueState{};
        return QueueState{wait.completed,     wait.error,        wait.error_index,
                          wait.error_address, wait.error_detail, false};
    }

    Result<drm_orr_queue_stats> stats() override {
        if (destroyed_.load()) return std::unexpected(gone());
        drm_orr_queue_stats stats{};
        stats.queue = queue_;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_QUEUE_STATS, &stats)) {
            return fail_errno(number, file_->what("statistics of a queue"));
        }
        return stats;
    }

    Status set(const QueueOptions& options) override {
        if (destroyed_.load()) return std::unexpected(gone());
        drm_orr_queue_set set{};
        set.queue = queue_;
        set.priority = options.priority;
        set.weight = options.weight;
        set.slice_us = options.slice_us;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_QUEUE_SET, &set)) {
            return fail_priority(number, options, file_->what("setting a queue's priority"));
        }
        return {};
    }

    Status declare_signal(std::uint64_t semaphore) override {
        return signaller(DRM_IOCTL_ORR_SIGNALLER_ATTACH, semaphore, "declaring who signals a semaphore");
    }
    Status remove_signal(std::uint64_t semaphore) override {
        return signaller(DRM_IOCTL_ORR_SIGNALLER_DETACH, semaphore, "taking back who signals a semaphore");
    }

    std::uint32_t number() const override { return queue_; }
    std::uint32_t firmware_number() const override { return firmware_number_; }

    static std::unexpected<Error> fail_priority(int number, const QueueOptions& options,
                                                const std::string& what) {
        if (number == EACCES && options.priority == ORR_QUEUE_PRIORITY_REALTIME) {
            return fail(orrErrorSystem,
                        "{}: the real-time priority needs CAP_SYS_NICE: run as root, or setcap "
                        "cap_sys_nice+ep the program",
                        what);
        }
        return fail_errno(number, what);
    }

  private:
    Status signaller(unsigned long request, std::uint64_t semaphore, const char* what) const {
        if (destroyed_.load()) return std::unexpected(gone());
        drm_orr_signaller signaller{};
        signaller.queue = queue_;
        signaller.semaphore = semaphore;
        signaller.count = 1;
        const int number = file_->ioctl(request, &signaller);
        // What DRM says of a number that the driver does not have.
        if (number == EINVAL) return fail_errno(EOPNOTSUPP, file_->what(what));
        if (number != 0) return fail_errno(number, file_->what(what));
        return {};
    }
    static Error gone() { return {orrErrorInvalidHandle, "the stream's hardware queue has been ended"}; }

    std::shared_ptr<File> file_;
    std::uint32_t queue_;
    std::uint32_t firmware_number_;
    std::atomic<bool> destroyed_{false};
};

class DrmDevice final : public Device {
  public:
    DrmDevice(DeviceInfo info, UniqueFd fd) : info_(std::move(info)), file_(std::make_shared<File>()) {
        file_->fd = std::move(fd);
        file_->node = info_.node;
        remember_card_file(file_->fd.get());
    }

    const DeviceInfo& info() const override { return info_; }

    Result<drm_orr_query_device> query() override {
        drm_orr_query_device query{};
        if (int number = file_->ioctl(DRM_IOCTL_ORR_QUERY_DEVICE, &query)) {
            return fail_errno(number, file_->what("device query"));
        }
        return query;
    }

    Result<std::vector<std::uint64_t>> counters() override {
        ORR_TRY(card, query());
        std::vector<std::uint64_t> values(card->counters);
        drm_orr_query_counters query{};
        query.values = reinterpret_cast<std::uintptr_t>(values.data());
        query.count = card->counters;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_QUERY_COUNTERS, &query)) {
            return fail_errno(number, file_->what("counter query"));
        }
        return values;
    }

    Result<drm_orr_query_link> link(std::uint32_t port) override {
        drm_orr_query_link query{};
        query.port = port;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_QUERY_LINK, &query)) {
            return fail_errno(number, file_->what("link query"));
        }
        return query;
    }

    Result<drm_orr_query_way> way(std::uint64_t peer_uid) override {
        if (info().driver_version < ORR_MAKE_VERSION(1, 5, 0)) return Device::way(peer_uid);
        drm_orr_query_way query{};
        query.peer_uid = peer_uid;
        return query_way(query);
    }

    Result<drm_orr_query_way> way_to_node(std::uint32_t node) override {
        if (info().driver_version < ORR_MAKE_VERSION(1, 11, 0)) return Device::way_to_node(node);
        drm_orr_query_way query{};
        query.node = node;
        return query_way(query);
    }

    std::uint32_t number() override {
        std::ifstream file(fmt::format("/sys/bus/pci/devices/{}/node", info().pci_address));
        std::uint32_t number = 0;
        file >> number;
        return number;
    }

    bool meets(std::uint32_t node) override {
        return is_met(fmt::format("/sys/bus/pci/devices/{}/links", info().pci_address), node);
    }

    Status create_vm(Quota quota) override {
        drm_orr_vm_create create{};
        create.quota_permille = quota.permille;
        create.quota_period_us = quota.period_us;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_VM_CREATE, &create)) {
            return fail_errno(number, file_->what("making an address space"));
        }
        file_->vm = create.vm;
        return {};
    }

    Result<std::unique_ptr<Bo>> create_bo(std::uint64_t size, BoKind kind) override {
        drm_orr_bo_create create{};
        create.size = size;
        create.flags = kind == BoKind::kVram ? ORR_BO_VRAM : ORR_BO_SYSTEM;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_BO_CREATE, &create)) {
            return fail_errno(number,
                              fmt::format("allocating {} bytes of {} memory on {}", size,
                                          kind == BoKind::kVram ? "card" : "pinned host", file_->node));
        }
        file_->keep(create.handle);
        return std::make_unique<DrmBo>(file_, create.handle, create.size, create.mmap_offset);
    }

    Result<std::unique_ptr<Bo>> import_bo(Bo& other) override {
        // All buffers of a winsys come from this file.
        auto& source = static_cast<DrmBo&>(other);
        ORR_TRY(dma_buf, source.export_fd());
        const std::int64_t handle = file_->import(dma_buf->get());
        if (handle < 0) {
            return fail_errno(static_cast<int>(-handle),
                              fmt::format("importing a buffer of {} on {}", source.file().node, file_->node));
        }
        return std::make_unique<DrmBo>(file_, static_cast<std::uint32_t>(handle), source.size(), 0);
    }

    Result<std::optional<ForeignBo>> import_fd(int fd) override {
        const std::int64_t imported = file_->import(fd);
        switch (imported) {
            case -EEXIST:
                return fail(orrErrorInvalidValue,
                            "this process has what file descriptor {} stands for already: import it once, "
                            "and free that before you import it again",
                            fd);
            case -EXDEV:       // memory of a card that is not linked to this one
            case -EOPNOTSUPP:  // of another driver, which gives it to nobody
                return std::nullopt;
            case -EBADF:
            case -EINVAL:
            case -ENOTTY:
                return fail(orrErrorInvalidValue,
                            "file descriptor {} is no memory that could be imported: give one that an "
                            "orrIpcExport call of another process made",
                            fd);
        }
        if (imported < 0) return fail_errno(static_cast<int>(-imported), file_->what("importing a buffer"));
        const auto handle = static_cast<std::uint32_t>(imported);
        drm_orr_bo_info info{};
        info.handle = handle;
        if (const int number = file_->ioctl(DRM_IOCTL_ORR_BO_INFO, &info)) {
            file_->close(handle);
            return fail_errno(number, file_->what("asking about a buffer"));
        }
        auto bo = std::make_unique<DrmBo>(file_, handle, info.size, info.mmap_offset);
        if (info.flags == 0) return std::nullopt;  // on the card's own node it would say what it is
        return ForeignBo{std::move(bo), (info.flags & ORR_BO_VRAM) != 0 ? BoKind::kVram : BoKind::kSystem};
    }

    Result<std::unique_ptr<Bo>> import_fabric(const FabricKey& key) override {
        drm_orr_fabric_import import{};
        import.object = key.object;
        import.size = key.size;
        import.node = key.node;
        std::ranges::copy(key.secret, import.secret);
        if (const int number = file_->ioctl(DRM_IOCTL_ORR_FABRIC_IMPORT, &import))
            return fail_fabric(number, key, file_->node);
        file_->keep(import.handle);
        return std::make_unique<DrmBo>(file_, import.handle, key.size, 0);
    }

    Result<std::vector<UniqueFd>> make_barrier(const std::vector<BarrierSeat>& seats) override {
        std::vector<drm_orr_barrier_member> members;
        for (const BarrierSeat& seat : seats)
            members.push_back({.memory = seat.memory, .page = 0, .offset = seat.offset});
        drm_orr_barrier_create create{};
        create.members = reinterpret_cast<std::uintptr_t>(members.data());
        create.count = static_cast<std::uint32_t>(members.size());
        std::vector<UniqueFd> pages;
        switch (const int number = file_->ioctl(DRM_IOCTL_ORR_BARRIER_CREATE, &create)) {
            case 0:
                break;
            case EBUSY:       // all slots of a card are taken
            case EDQUOT:      // by this user
            case EXDEV:       // two cards have no way to each other
            case EOPNOTSUPP:  // a card has no barrier unit
                return pages;
            default:
                return fail_errno(number, file_->what("making a barrier of several cards"));
        }
        for (const drm_orr_barrier_member& member : members)
            pages.emplace_back(member.page);
        return pages;
    }

    Result<std::unique_ptr<Bo>> import_barrier(int fd) override {
        const std::int64_t handle = file_->import(fd);
        if (handle < 0)
            return fail_errno(static_cast<int>(-handle), file_->what("importing a page of a barrier"));
        return std::make_unique<DrmBo>(file_, static_cast<std::uint32_t>(handle), ORR_PAGE_SIZE, 0);
    }

    Status want_work(WorkWanted wanted) override {
        drm_orr_work_read read{};
        read.flags = ORR_WORK_STOP;
        if (wanted != WorkWanted::kNone) {
            read.flags = ORR_WORK_START;
            ORR_TRY(card, query());
            if ((card->features & ORR_FEATURE_SIGNALS) != 0) read.flags |= ORR_WORK_SIGNALS;
            if (wanted == WorkWanted::kCounters && (card->features & ORR_FEATURE_WORK_COUNTERS) != 0)
                read.flags |= ORR_WORK_COUNTERS;
        }
        switch (const int number = file_->ioctl(DRM_IOCTL_ORR_WORK_READ, &read)) {
            case 0:
                return {};
            case EOPNOTSUPP:
            case ENOTTY:
                return Device::want_work(wanted);
            default:
                return fail_errno(number, file_->what("asking for records of its work"));
        }
    }

    Result<WorkRead> read_work(std::span<drm_orr_work_record> records,
                               std::span<drm_orr_work_counters> counters) override {
        drm_orr_work_read read{};
        if (!counters.empty()) {
            records = records.first(std::min(records.size(), counters.size()));
            read.counters = reinterpret_cast<std::uintptr_t>(counters.data());
        }
        read.records = reinterpret_cast<std::uintptr_t>(records.data());
        read.count = static_cast<std::uint32_t>(records.size());
        if (const int number = file_->ioctl(DRM_IOCTL_ORR_WORK_READ, &read); number != 0)
            return fail_errno(number, file_->what("reading records of its work"));
        return WorkRead{.count = std::min<std::size_t>(read.count, records.size()),
                        .lost = (read.flags & ORR_WORK_LOST) != 0,
                        .more = (read.flags & ORR_WORK_MORE) != 0};
    }

    Status want_samples(std::uint32_t period_ns, const std::array<std::uint64_t, 2>& set) override {
        drm_orr_sample_read read{};
        read.flags = period_ns == 0 ? ORR_WORK_STOP : ORR_WORK_START;
        read.period_ns = period_ns;
        for (std::size_t i = 0; period_ns != 0 && i < set.size(); ++i)
            read.set[i] = set.at(i);
        switch (const int number = file_->ioctl(DRM_IOCTL_ORR_SAMPLE_READ, &read)) {
            case 0:
                return {};
            case EOPNOTSUPP:
            case ENOTTY:
                return Device::want_samples(period_ns, set);
            case EBUSY:
                return fail(orrErrorSystem,
                            "another process has the samples of {}'s counters (debugfs says which: "
                            "records), or a debugger holds a card",
                            info().node);
            case EACCES:
                return fail(orrErrorSystem,
                            "samples of {}'s counters show what others do there, and need CAP_PERFMON, as "
                            "perf does for a machine's: run it as root, or give it that (setpriv "
                            "--ambient-caps); what your own kernels and copies did needs none "
                            "(orrProfWantCounters)",
                            info().node);
            default:
                return fail_errno(number, file_->what("asking for samples of its counters"));
        }
    }

    Result<SampleRead> read_samples(std::span<std::uint64_t> words) override {
        drm_orr_sample_read read{};
        read.values = reinterpret_cast<std::uintptr_t>(words.data());
        read.count = static_cast<std::uint32_t>(words.size());
        if (const int number = file_->ioctl(DRM_IOCTL_ORR_SAMPLE_READ, &read); number != 0)
            return fail_errno(number, file_->what("reading samples of its counters"));
        return SampleRead{.words = std::min<std::size_t>(read.count, words.size()),
                          .more = (read.flags & ORR_WORK_MORE) != 0,
                          .lost = (read.flags & ORR_WORK_LOST) != 0};
    }

    Status want_pcs(const PcWanted& wanted) override {
        drm_orr_pc_read read{};
        read.flags = wanted.any() ? ORR_WORK_START : ORR_WORK_STOP;
        read.period_ns = wanted.period_ns;
        if (wanted.core) {
            read.core = *wanted.core + 1;
            read.from_ps = wanted.from_ps;
            read.until_ps = wanted.until_ps;
        }
        switch (const int number = file_->ioctl(DRM_IOCTL_ORR_PC_READ, &read)) {
            case 0:
                return {};
            case EOPNOTSUPP:
            case ENOTTY:
                return Device::want_pcs(wanted);
            case EBUSY:
                return fail(orrErrorSystem,
                            "another process has the samples of {}'s vector cores (debugfs says which: "
                            "records), or a debugger holds a card",
                            info().node);
            case EACCES:
                return fail(
                    orrErrorSystem,
                    "a core's instructions, and periods of less than 300 ns for each vector core, take room "
                    "from other processes' records of {}, and need CAP_PERFMON: choose a longer period",
                    info().node);
            default:
                return fail_errno(number, file_->what("asking where its vector cores are"));
        }
    }

    Result<PcRead> read_pcs(std::span<drm_orr_pc_record> records) override {
        drm_orr_pc_read read{};
        read.records = reinterpret_cast<std::uintptr_t>(records.data());
        read.count = static_cast<std::uint32_t>(records.size());
        if (const int number = file_->ioctl(DRM_IOCTL_ORR_PC_READ, &read); number != 0)
            return fail_errno(number, file_->what("reading where its vector cores were"));
        return PcRead{.count = std::min<std::size_t>(read.count, records.size()),
                      .lost = (read.flags & ORR_WORK_LOST) != 0,
                      .more = (read.flags & ORR_WORK_MORE) != 0};
    }

    Result<std::unique_ptr<Bo>> make_multicast(const std::vector<MulticastMember>& members,
                                               std::uint64_t size, bool read) override {
        if (read) {
            ORR_TRY(card, query());
            if ((card->features & ORR_FEATURE_MULTICAST_READS) == 0)
                return fail(
                    orrErrorNotSupported,
                    "{} reads no multicasts: that needs a card of hardware 2.6 and the driver of this "
                    "release",
                    file_->node);
        }
        std::vector<drm_orr_multicast_member> parts;
        for (const MulticastMember& member : members)
            parts.push_back({.memory = member.memory.get(), .pad = 0, .offset = member.offset});
        drm_orr_multicast_create create{};
        create.members = reinterpret_cast<std::uintptr_t>(parts.data());
        create.size = size;
        create.count = static_cast<std::uint32_t>(parts.size());
        create.flags = read ? ORR_MULTICAST_READ : 0;
        switch (const int number = file_->ioctl(DRM_IOCTL_ORR_MULTICAST_CREATE, &create)) {
            case 0:
                break;
            case EOPNOTSUPP:
            case ENOTTY:
                return Device::make_multicast(members, size, read);
            case EXDEV:
                return fail(orrErrorPeerAccess,
                            "{} does not reach all of the members by one port over a switch: see orrery-smi "
                            "topo, and copy to each",
                            file_->node);
            case EBUSY:
                return fail(
                    orrErrorTimeout,
                    "{}: its link takes no more stores for now, or a debugger holds a card: try again",
                    file_->node);
            case EDQUOT:
            case ENOSPC:
                return fail(orrErrorOutOfMemory,
                            "{} has as many multicasts as it can, or as this user may have: free one",
                            file_->node);
            default:
                return fail_errno(number, file_->what("making a multicast"));
        }
        file_->keep(create.handle);
        return std::make_unique<DrmBo>(file_, create.handle, size, 0);
    }

    Status bind(Bo& bo, std::uint64_t offset, std::uint64_t va, std::uint64_t size,
                std::uint32_t flags) override {
        drm_orr_vm_bind bind{};
        bind.vm = file_->vm;
        bind.op = ORR_BIND_MAP;
        bind.handle = static_cast<DrmBo&>(bo).handle();
        bind.flags = flags;
        bind.bo_offset = offset;
        bind.va = va;
        bind.size = size;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_VM_BIND, &bind)) {
            return fail_errno(number, fmt::format("binding {} bytes at {:#x} on {}", size, va, file_->node));
        }
        return {};
    }

    Status unbind(std::uint64_t va, std::uint64_t size) override {
        drm_orr_vm_bind bind{};
        bind.vm = file_->vm;
        bind.op = ORR_BIND_UNMAP;
        bind.va = va;
        bind.size = size;
        if (int number = file_->ioctl(DRM_IOCTL_ORR_VM_BIND, &bind)) {
            return fail_errno(number,
                              fmt::format("unbinding {} bytes at {:#x} on {}", size, va, file_->node));
        }
        return {};
    }

    Result<std::vector<drm_orr_wait_edge>> deadlock() override {
        std::vector<drm_orr_wait_edge> edges(16);
        while (true) {
            drm_orr_query_deadlock query{};
            query.edges = reinterpret_cast<std::uintptr_t>(edges.data());
            query.count = static_cast<std::uint32_t>(edges.size());
            if (int number = file_->ioctl(DRM_IOCTL_ORR_QUERY_DEADLOCK, &query)) {
                return fail_errno(number, file_->what("deadlock query"));
            }
            const bool whole = query.count <= edges.size();
            edges.resize(query.count);
            if (whole) return edges;
        }
    }

    Result<WaitCycle> cycle(const Waiter& waiter) override {
        WaitCycle cycle;
        if (info().driver_version < ORR_MAKE_VERSION(1, 6, 0)) return cycle;
        cycle.edges.resize(16);
        while (true) {
            drm_orr_query_cycle query{};
            query.edges = reinterpret_cast<std::uintptr_t>(cycle.edges.data());
            query.count = static_cast<std::uint32_t>(cycle.edges.size());
            query.queue = waiter.queue;
            query.semaphore = waiter.semaphore;
            query.value = waiter.value;
            query.vm = waiter.semaphore != 0 ? file_->vm : 0;
            if (int number = file_->ioctl(DRM_IOCTL_ORR_QUERY_CYCLE, &query)) {
                return fail_errno(number, file_->what("query of cycles of waits"));
            }
            const bool whole = query.count <= cycle.edges.size();
            cycle.edges.resize(query.count);
            cycle.lead = query.lead;
            cycle.stamp = query.stamp;
            if (whole) return cycle;
        }
    }

    Result<std::unique_ptr<HwQueue>> create_queue(std::uint64_t ring_va, std::uint32_t entries,
                                                  const QueueOptions& options) override {
        drm_orr_queue_create create{};
        create.vm = file_->vm;
        create.entries = entries;
        create.ring_va = ring_va;
        create.priority = options.priority;
        create.weight = options.weight;
        create.slice_us = options.slice_us;
        create.dispatch_limit_us = options.limit_us;
        options.name.copy(reinterpret_cast<char*>(create.name), QueueOptions::kMaxName);
        if (int number = file_->ioctl(DRM_IOCTL_ORR_QUEUE_CREATE, &create)) {
            return DrmQueue::fail_priority(number, options, file_->what("making a queue"));
        }
        if (auto mapped = map_doorbells(create); !mapped) {
            drm_orr_queue_destroy destroy{};
            destroy.queue = create.queue;
            file_->ioctl(DRM_IOCTL_ORR_QUEUE_DESTROY, &destroy);
            return std::unexpected(mapped.error());
        }
        return std::make_unique<DrmQueue>(file_, create);
    }

  private:
    Result<drm_orr_query_way> query_way(drm_orr_query_way query) const {
        if (int number = file_->ioctl(DRM_IOCTL_ORR_QUERY_WAY, &query)) {
            return fail_errno(number, file_->what("way query"));
        }
        return query;
    }
    // All queues of the file share one doorbell page and one kick page.
    Status map_doorbells(const drm_orr_queue_create& made) {
        if (made.doorbell_slot >= ORR_DB_SLOTS) {
            return fail(orrErrorVersion, "{} gave doorbell slot {}, a page has {}: driver and library differ",
                        file_->node, made.doorbell_slot, ORR_DB_SLOTS);
        }
        const std::lock_guard lock(file_->mutex);
        if (file_->doorbells == nullptr) {
            ORR_TRY(page, map_file(*file_, ORR_DB_PAGE_SIZE, PROT_READ | PROT_WRITE, made.doorbell_offset,
                                   "mmap of the doorbell page"));
            file_->doorbells = static_cast<orr_doorbell_page*>(*page);
        }
        if (file_->kicks == nullptr) {
            ORR_TRY(page, map_file(*file_, ORR_DB_PAGE_SIZE, PROT_WRITE, made.kick_offset,
                                   "mmap of the kick page"));
            file_->kicks = static_cast<std::byte*>(*page);
        }
        return {};
    }

    DeviceInfo info_;
    std::shared_ptr<File> file_;
};

}  // namespace

bool is_met(const std::filesystem::path& links, std::uint32_t node) {
    bool said = false;
    std::error_code error;
    for (const auto& port : std::filesystem::directory_iterator(links, error)) {
        std::ifstream file(port.path() / "foreign_node");
        said |= file.is_open();
        for (std::uint32_t one = 0; file >> one;)
            if (one == node) return true;
    }
    return !said;
}

std::unique_ptr<Device> make_drm_device(DeviceInfo info, UniqueFd fd) {
    return std::make_unique<DrmDevice>(std::move(info), std::move(fd));
}

}  // namespace orrery::umd
