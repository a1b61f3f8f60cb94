// What the runtime needs of the operating system: cards, buffers, an address space a card, queues. The only
// implementation in the product is drm_winsys.h; unit tests bring a card that lives in the process.
//
// Threads: all functions may be called from any thread; an object is destroyed by one thread when nobody uses
// it. Lifetime: a Bo or HwQueue may outlive its Device object (it holds what it needs).
#pragma once

#include <sys/types.h>

#include <drm.h>
#include <drm/orrery_accel.h>
#include <orrery/hw/link.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "umd/winsys/doorbell.h"
#include "umd/winsys/error.h"
#include "umd/winsys/unique_fd.h"

namespace orrery::umd {

enum class BoKind : std::uint8_t { kVram, kSystem };

inline bool is_up(const drm_orr_query_link& link) {
    return link.state == ORR_LINK_UP || link.state == ORR_LINK_DEGRADED;
}

// What lets a card of another machine write to a buffer: see DRM_IOCTL_ORR_FABRIC_EXPORT.
struct FabricKey {
    std::uint64_t object = 0;
    std::uint64_t size = 0;  // of the buffer
    std::uint32_t node = 0;
    std::array<std::uint8_t, 16> secret{};
    bool operator==(const FabricKey&) const = default;
};

// A buffer object. Destruction closes it; the caller has unbound it before.
class Bo {
  public:
    virtual ~Bo() = default;
    virtual std::uint64_t size() const = 0;  // bytes, whole pages
    // Maps all of it for the CPU at an address of the system's choice; the same address when called again.
    virtual Result<void*> map() = 0;
    virtual void unmap() = 0;
    // A dma-buf by which another process can have it too: it lives as long as one of them has it.
    virtual Result<UniqueFd> export_fd() = 0;
    // semaphore: needs ORR_FEATURE_FABRIC_SEMAPHORES; it begins with one, which is closed when no machine is
    // left that may signal it. Lives until revoke_fabric(), which has to come before the end of the Bo.
    virtual Result<FabricKey> export_fabric(bool semaphore) = 0;
    virtual void revoke_fabric(const FabricKey& key) = 0;
};

// A buffer that another process has exported.
struct ForeignBo {
    std::unique_ptr<Bo> bo;
    BoKind kind = BoKind::kVram;
};

struct QueueState {
    std::uint64_t completed = 0;  // packets
    std::uint64_t error = 0;      // ORR_QERR_*
    std::uint64_t error_index = 0;
    std::uint64_t error_address = 0;
    std::uint64_t error_detail = 0;
    std::uint64_t error_item = ~std::uint64_t{0};  // of the ring, as error_other; see orr_ring
    std::uint64_t error_other = 0;
    bool deadlock = false;  // not done, and in a cycle of waits that stands; Device::deadlock() shows it
};

// How a queue is scheduled. Zeros: the defaults of driver and firmware.
struct QueueOptions {
    std::uint32_t priority = ORR_QUEUE_PRIORITY_NORMAL;
    std::uint32_t weight = 0;
    std::uint32_t slice_us = 0;
    std::uint32_t limit_us = 0;  // model time of a dispatch; 0: the firmware's default
    std::string name{};          // printable ASCII, at most kMaxName bytes; empty: the driver makes one

    static constexpr std::size_t kMaxName = sizeof(drm_orr_queue_create::name) - 1;
};

// Vector core time that an address space may use: permille of the card's in each period; 0: no limit.
struct Quota {
    std::uint32_t permille = 0;
    std::uint32_t period_us = 0;
};

// Who asks for a cycle: a queue of the device (HwQueue::number()), or somebody who waits for a semaphore of
// this process's address space without one.
struct Waiter {
    std::uint32_t queue = 0;
    std::uint64_t semaphore = 0, value = 0;
};

// A cycle of waits over cards and processes.
struct WaitCycle {
    std::vector<drm_orr_cycle_edge> edges;  // from who asked on; none: there is no cycle
    std::uint32_t lead = 0;                 // of them those before the cycle
    std::uint64_t stamp = 0;                // the same while the same queues wait with the same packets
};

// A hardware queue. Whoever waits for it may hold it longer than whoever ends it: destroy() ends it for both,
// and the destructor does so if nobody has.
class HwQueue {
  public:
    virtual ~HwQueue() = default;
    // Not after destroy(): the doorbell may be another queue's then.
    void ring(std::uint64_t index) const noexcept { doorbell_.ring(index); }
    // Stops it now: when this returns nothing of it runs, nor will. What it did so far can still be asked.
    virtual void abort() = 0;
    // The same, and gives it back: all calls fail from now on, also those that sleep.
    virtual void destroy() = 0;
    // Sleeps until `index` packets are done, the queue stopped, is found in a deadlock, or CLOCK_MONOTONIC
    // reached deadline_ns (then completed < index and error is 0). Errors: orrErrorDeviceLost, the card is
    // gone; orrErrorInvalidHandle, the queue is; all others tell of this call only.
    virtual Result<QueueState> wait(std::uint64_t index, std::int64_t deadline_ns) = 0;
    virtual Result<drm_orr_queue_stats> stats() = 0;
    // All but the name.
    virtual Status set(const QueueOptions& options) = 0;
    // Declares that the queue may signal the semaphore at this address: when the last one that was declared
    // has stopped or gone, or was taken back, the card closes it (DRM_IOCTL_ORR_SIGNALLER_ATTACH).
    virtual Status declare_signal(std::uint64_t semaphore) = 0;
    // Takes it back; of one that was not declared, or has stopped, nothing happens.
    virtual Status remove_signal(std::uint64_t semaphore) = 0;
    // What QUERY_DEADLOCK calls it.
    virtual std::uint32_t number() const = 0;
    // What failure words call it (orrery/fw/failure.h).
    virtual std::uint32_t firmware_number() const = 0;

  protected:
    Doorbell doorbell_;
};

struct DeviceInfo {
    std::string node;                  // "/dev/accel/accel0"
    std::string pci_address;           // "0000:01:00.0", empty if unknown
    std::uint32_t driver_version = 0;  // ORR_MAKE_VERSION
};

// Where a card has the semaphore of a barrier (DRM_IOCTL_ORR_BARRIER_CREATE).
struct BarrierSeat {
    int memory = -1;  // dma-buf of a buffer in the card's memory
    std::uint64_t offset = 0;
};

// What a card has of a multicast (DRM_IOCTL_ORR_MULTICAST_CREATE).
struct MulticastMember {
    UniqueFd memory;  // dma-buf of a buffer in the card's memory
    std::uint64_t offset = 0;
};

enum class WorkWanted : std::uint8_t { kNone, kRecords, kCounters };

// What there was to read (DRM_IOCTL_ORR_WORK_READ).
struct WorkRead {
    std::size_t count = 0;
    bool lost = false;  // read too late: some are missing behind these
    bool more = false;
};

// Where vector cores are: at each of a period, 0: not so; and of one core, if there is one, each instruction
// that begins in that time.
struct PcWanted {
    std::uint32_t period_ns = 0;
    std::optional<std::uint32_t> core{};
    std::uint64_t from_ps = 0, until_ps = 0;
    bool any() const { return period_ns != 0 || core; }
    bool operator==(const PcWanted&) const = default;
};

// What there was to read (DRM_IOCTL_ORR_PC_READ).
using PcRead = WorkRead;

// What there was to read (DRM_IOCTL_ORR_SAMPLE_READ).
struct SampleRead {
    std::size_t words = 0;  // of whole samples
    bool more = false;
    bool lost = false;  // some behind them
};

class Device {
  public:
    virtual ~Device() = default;
    virtual const DeviceInfo& info() const = 0;
    virtual Result<drm_orr_query_device> query() = 0;
    virtual Result<std::vector<std::uint64_t>> counters() = 0;
    virtual Result<drm_orr_query_link> link(std::uint32_t port) = 0;
    // Its number for other cards, in this life of its driver; 0, as here: it is not known.
    virtual std::uint32_t number();
    // Whether this driver and that of the card of another machine with this number have met, by whatever
    // port. True, as here: it is not known.
    virtual bool meets(std::uint32_t node);
    // To the card with this number; no links: there is none. Here: over one link, as drivers before 1.5 have
    // it.
    virtual Result<drm_orr_query_way> way(std::uint64_t peer_uid);
    // To the card of another machine with this number. Here, and with drivers before 1.11: there is none.
    virtual Result<drm_orr_query_way> way_to_node(std::uint32_t node);

    // Once, before bind() and create_queue().
    virtual Status create_vm(Quota quota) = 0;
    virtual Result<std::unique_ptr<Bo>> create_bo(std::uint64_t size, BoKind kind) = 0;
    // A buffer of another device of the same winsys. At most one import of a buffer a device at a time.
    virtual Result<std::unique_ptr<Bo>> import_bo(Bo& other) = 0;
    // What is behind a file descriptor that another process gave, if this card has it or made it; nothing: it
    // is another card's or another driver's. orrErrorInvalidValue: it is no buffer, or this process has it.
    virtual Result<std::optional<ForeignBo>> import_fd(int fd) = 0;
    // Memory of another machine, to be bound with ORR_BIND_WRITE alone; it has no CPU mapping.
    virtual Result<std::unique_ptr<Bo>> import_fabric(const FabricKey& key) = 0;
    // flags: ORR_BIND_*.
    virtual Status bind(Bo& bo, std::uint64_t offset, std::uint64_t va, std::uint64_t size,
                        std::uint32_t flags) = 0;
    virtual Status unbind(std::uint64_t va, std::uint64_t size) = 0;
    virtual Result<std::unique_ptr<HwQueue>> create_queue(std::uint64_t ring_va, std::uint32_t entries,
                                                          const QueueOptions& options) = 0;
    // The cycle of waits in which a queue of this process stands; empty: in none.
    virtual Result<std::vector<drm_orr_wait_edge>> deadlock() = 0;
    // The cycle that somebody cannot leave. Here: none, as with drivers before 1.6.
    virtual Result<WaitCycle> cycle(const Waiter& waiter);
    // A barrier of these cards, all with ORR_FEATURE_BARRIERS, in their barrier units: a file descriptor
    // each, of what becomes the page that the card's queues signal (import_barrier()), bound with
    // ORR_BIND_WRITE. Empty: a card has no free slot, or no way to another. Here: so, as with drivers before
    // 1.8.
    virtual Result<std::vector<UniqueFd>> make_barrier(const std::vector<BarrierSeat>& seats);
    virtual Result<std::unique_ptr<Bo>> import_barrier(int fd);
    // So many bytes, whole pages, of each member, to be bound with ORR_BIND_WRITE alone, unless it is `read`
    // combined; it has no CPU mapping. Here: not supported, as with drivers before 1.9.
    virtual Result<std::unique_ptr<Bo>> make_multicast(const std::vector<MulticastMember>& members,
                                                       std::uint64_t size, bool read);
    // Whether records of what it does for this process are wanted, and if it counts them what jobs did. Here:
    // not supported, as with drivers before 1.10.
    virtual Status want_work(WorkWanted wanted);
    // The next ones, while they are wanted; queue: QueueOptions' firmware_number(). counters: as many, or
    // none.
    virtual Result<WorkRead> read_work(std::span<drm_orr_work_record> records,
                                       std::span<drm_orr_work_counters> counters);
    // Samples of these counters are wanted, a bit each, at this period; 0: no more. Here: not supported, as
    // with drivers before 1.12.
    virtual Status want_samples(std::uint32_t period_ns, const std::array<std::uint64_t, 2>& set);
    // The next ones, as drm_orr_sample_read has them.
    virtual Result<SampleRead> read_samples(std::span<std::uint64_t> words);
    // So much is wanted; not any(): no more. Here: not supported, as with drivers
    // before 1.13.
    virtual Status want_pcs(const PcWanted& wanted);
    virtual Result<PcRead> read_pcs(std::span<drm_orr_pc_record> records);
};

// Why a card did not get the memory behind a handle of another machine. node: of the card that asked.
std::unexpected<Error> fail_fabric(int number, const FabricKey& key, const std::string& node);

class Winsys {
  public:
    virtual ~Winsys() = default;
    // Opens every card, in the order of PCI addresses. Cards that exist but cannot be opened are a failure.
    virtual Result<std::vector<std::unique_ptr<Device>>> open_devices() = 0;
};

}  // namespace orrery::umd
