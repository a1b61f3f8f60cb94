#include "umd/winsys/drm_winsys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <xf86drm.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "umd/winsys/drm_device.h"

namespace orrery::umd {

std::uint32_t Device::number() {
    return 0;
}

bool Device::meets(std::uint32_t /*node*/) {
    return true;
}

Result<drm_orr_query_way> Device::way_to_node(std::uint32_t /*node*/) {
    return drm_orr_query_way{};
}

Result<WaitCycle> Device::cycle(const Waiter& /*waiter*/) {
    return WaitCycle{};
}

Result<std::vector<UniqueFd>> Device::make_barrier(const std::vector<BarrierSeat>& /*seats*/) {
    return std::vector<UniqueFd>{};
}

Result<std::unique_ptr<Bo>> Device::import_barrier(int /*fd*/) {
    return fail(orrErrorNotSupported, "the driver of {} knows no barriers of several cards", info().node);
}

Result<std::unique_ptr<Bo>> Device::make_multicast(const std::vector<MulticastMember>& /*members*/,
                                                   std::uint64_t /*size*/, bool /*read*/) {
    return fail(
        orrErrorNotSupported,
        "{} writes to one card at a time: multicasts need a card of hardware 2.5 and the driver of this "
        "release",
        info().node);
}

Status Device::want_work(WorkWanted /*wanted*/) {
    return fail(orrErrorNotSupported,
                "{} does not say when it does what: that needs a card of hardware 2.6 and the driver of this "
                "release",
                info().node);
}

Result<WorkRead> Device::read_work(std::span<drm_orr_work_record> /*records*/,
                                   std::span<drm_orr_work_counters> /*counters*/) {
    return std::unexpected(Device::want_work(WorkWanted::kRecords).error());
}

Status Device::want_samples(std::uint32_t /*period_ns*/, const std::array<std::uint64_t, 2>& /*set*/) {
    return fail(
        orrErrorNotSupported,
        "{} takes no samples of its counters: that needs a card of hardware 2.10 and the driver of this "
        "release",
        info().node);
}

Result<SampleRead> Device::read_samples(std::span<std::uint64_t> /*words*/) {
    return std::unexpected(Device::want_samples(0, {}).error());
}

Status Device::want_pcs(const PcWanted& /*wanted*/) {
    return fail(
        orrErrorNotSupported,
        "{} does not say where its vector cores are: that needs a card of hardware 2.12 and the driver "
        "of this release",
        info().node);
}

Result<PcRead> Device::read_pcs(std::span<drm_orr_pc_record> /*records*/) {
    return std::unexpected(Device::want_pcs({}).error());
}

Result<drm_orr_query_way> Device::way(std::uint64_t peer_uid) {
    drm_orr_query_way way{};
    way.peer_uid = peer_uid;
    ORR_TRY(card, query());
    for (std::uint32_t port = 0; port < card->link_ports; ++port) {
        ORR_TRY(one, link(port));
        if (!is_up(*one) || one->peer_uid != peer_uid) continue;
        way.links = 1;
        way.port = port;
        way.gbps = one->gbps;
        way.latency_ns = one->latency_ns;
        way.version = one->losses;
        break;
    }
    return way;
}

std::unexpected<Error> fail_errno(int number, std::string_view what) {
    const std::string text = fmt::format("{}: {}", what, std::strerror(number));
    switch (number) {
        case ENODEV:
            return fail(orrErrorDeviceLost,
                        "{}. The card was reset or removed: look at the kernel log (dmesg), then start the "
                        "process again",
                        text);
        case ENOMEM:
        case ENOSPC:
            return fail(orrErrorOutOfMemory, "{}. Free memory, or see who uses it: orrery-smi", text);
        case EDQUOT:
            return fail(
                orrErrorOutOfMemory,
                "{}: this process, or its user, holds its share of the card's 256 grants; each buffer "
                "takes one for each card that may write to it. Use fewer and larger buffers",
                what);
        case ETIMEDOUT:
            return fail(orrErrorTimeout, "{}. The card is late: its host is busy, or it is held; try again",
                        text);
        case EXDEV:
            return fail(orrErrorPeerAccess,
                        "{}. No way over links that are up joins the two cards: orrery-smi shows the links",
                        text);
        case EOPNOTSUPP:
        case ENOTTY:
            return fail(orrErrorNotSupported, "{}. The driver is older than this library", text);
        default:
            return fail(orrErrorSystem, "{}", text);
    }
}

std::unexpected<Error> fail_fabric(int number, const FabricKey& key, const std::string& node) {
    switch (number) {
        case EINVAL:
            return fail(orrErrorInvalidValue,
                        "the handle is of card {}, which is of this machine, or of none that there can be: "
                        "processes of one machine share with orrIpcExportMemory and the like",
                        key.node);
        case EACCES:
            return fail(orrErrorInvalidHandle,
                        "card {}, which is another machine's, does not know the handle: it was revoked, who "
                        "made it has freed the memory or ended, or it was made up",
                        key.node);
        case EXDEV:
            return fail(
                orrErrorPeerAccess,
                "no link of {} leads to card {}, which is another machine's, nor does a switch: a card "
                "at the other end of a link or behind a switch has to import it, and the link has to "
                "be up (orrery-smi links)",
                node, key.node);
        case ENOTCONN:
        case ESTALE:
            return fail(
                orrErrorPeerAccess,
                "card {}, which is another machine's, or the link to it from {} has just gone, or come "
                "back: try again, and if its owner has made new handles, with those",
                key.node, node);
        case EPROTO:
            return fail(orrErrorPeerAccess,
                        "the driver of card {}, which is another machine's, answered {} with what makes no "
                        "sense: both machines should have the same version of the driver",
                        key.node, node);
        case EBUSY:
            return fail(orrErrorTimeout,
                        "card {}, which is another machine's, waits until an older mapping of that memory is "
                        "gone from this machine, or its driver does not answer: try again",
                        key.node);
        case EOWNERDEAD:
            return fail(orrErrorAbandoned,
                        "the semaphore of card {}, which is another machine's, is closed: all who had "
                        "imported it are gone, so its owner has to make a new one",
                        key.node);
        case ETIMEDOUT:
            return fail(orrErrorTimeout,
                        "the driver of card {}, which is another machine's, does not answer: is that machine "
                        "running?",
                        key.node);
        case ENOSPC:
        case EDQUOT:
            return fail(orrErrorOutOfMemory,
                        "card {}, which is another machine's, has no grants left for the handle, or it "
                        "was imported too often: its owner has to use fewer and larger buffers",
                        key.node);
        default:
            return fail_errno(number, fmt::format("importing memory of card {} on {}", key.node, node));
    }
}

namespace {

// Plain words, as a child after fork() reads them. More cards than that stay open in children.
struct CardFile {
    std::atomic<int> fd{-1};
};
std::array<CardFile, 64> g_card_files;

}  // namespace

void remember_card_file(int fd) {
    for (auto& file : g_card_files) {
        int empty = -1;
        if (file.fd.compare_exchange_strong(empty, fd)) return;
    }
}

void forget_card_file(int fd) {
    for (auto& file : g_card_files) {
        int mine = fd;
        if (fd >= 0 && file.fd.compare_exchange_strong(mine, -1)) return;
    }
}

void close_inherited_cards() {
    for (auto& file : g_card_files) {
        const int fd = file.fd.exchange(-1);
        if (fd >= 0) ::close(fd);
    }
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kDriverName = "orrery";

// "0000:01:00.0" of the node's parent device; empty when it is not on PCI.
std::string pci_address_of(int fd) {
    struct stat node{};
    if (::fstat(fd, &node) != 0) return {};
    std::error_code error;
    const fs::path device = fs::read_symlink(
        fmt::format("/sys/dev/char/{}:{}/device", major(node.st_rdev), minor(node.st_rdev)), error);
    if (error) return {};
    std::string name = device.filename();
    return name.size() == 12 && name[4] == ':' && name[7] == ':' ? name : std::string{};
}

// Of the driver, as ORR_MAKE_VERSION; nothing if it is somebody else's.
std::optional<std::uint32_t> driver_version(int fd) {
    const std::unique_ptr<drmVersion, void (*)(drmVersionPtr)> version(drmGetVersion(fd), drmFreeVersion);
    if (version == nullptr || version->name == nullptr || std::strcmp(version->name, kDriverName) != 0)
        return std::nullopt;
    const auto part = [](int number) { return static_cast<std::uint32_t>(number) & 0xff; };
    return ORR_MAKE_VERSION(part(version->version_major), part(version->version_minor),
                            part(version->version_patchlevel));
}

class DrmWinsys final : public Winsys {
  public:
    Result<std::vector<std::unique_ptr<Device>>> open_devices() override {
        struct Found {
            DeviceInfo info;
            UniqueFd fd;
        };
        std::vector<Found> found;
        std::string refused;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator("/dev/accel", error)) {
            const std::string node = entry.path();
            if (!entry.path().filename().string().starts_with("accel")) continue;
            UniqueFd fd(::open(node.c_str(), O_RDWR | O_CLOEXEC));
            if (fd.get() < 0) {
                refused = fmt::format("{}: {}", node, std::strerror(errno));
                continue;
            }
            const auto version = driver_version(fd.get());
            if (!version) continue;
            std::string address = pci_address_of(fd.get());
            found.push_back({{node, std::move(address), *version}, std::move(fd)});
        }
        // A card of somebody else may be closed to us; one of ours that is closed must not be passed over
        // in silence when nothing else is there.
        if (found.empty() && !refused.empty()) {
            return fail(orrErrorNoDevice, "{}. Be root or in the group that owns the node (ls -l /dev/accel)",
                        refused);
        }
        std::ranges::sort(found, {},
                          [](const Found& f) { return std::pair(f.info.pci_address, f.info.node); });
        std::vector<std::unique_ptr<Device>> devices;
        devices.reserve(found.size());
        for (auto& f : found)
            devices.push_back(make_drm_device(std::move(f.info), std::move(f.fd)));
        return devices;
    }
};

}  // namespace

std::unique_ptr<Winsys> make_drm_winsys() {
    return std::make_unique<DrmWinsys>();
}

}  // namespace orrery::umd
