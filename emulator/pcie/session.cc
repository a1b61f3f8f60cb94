#include "emulator/pcie/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "emulator/pcie/version.h"

namespace orrery::emu {
namespace {

using wire::Command;

constexpr unsigned kMaxComplaints = 32;

// The payload as a T, if it has exactly that size.
template <typename T>
std::optional<T> exactly(std::span<const std::byte> payload) {
    if (payload.size() != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
}

// The T in front of the payload.
template <typename T>
std::optional<T> front(std::span<const std::byte> payload) {
    return payload.size() < sizeof(T) ? std::nullopt : exactly<T>(payload.first(sizeof(T)));
}

// An eventfd, and nothing that a write could block on, fill or raise SIGPIPE with.
bool is_eventfd(int fd) {
    std::array<char, 64> target{};
    const std::string path = fmt::format("/proc/self/fd/{}", fd);
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    return size > 0 && std::string_view(target.data(), static_cast<size_t>(size)) == "anon_inode:[eventfd]";
}

bool make_nonblocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ((flags & O_NONBLOCK) != 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

// Memory that can be mapped: a file (memfd, shared memory, hugetlbfs) that covers the range. A file that
// shrinks later is the client's lie, which only sealing could prevent.
bool covers(int fd, uint64_t offset, uint64_t size) {
    struct stat info{};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0) return false;
    const auto length = static_cast<uint64_t>(info.st_size);
    return offset % wire::kDmaPageSize == 0 && offset <= length && size <= length - offset;
}

}  // namespace

Session::Session(PciFunction& function, PciDevice& device, Interrupts& interrupts, const Log& log)
    : function_(function),
      device_(device),
      interrupts_(interrupts),
      log_(log),
      reply_(std::make_unique_for_overwrite<std::byte[]>(wire::kMaxMessage)) {}

Session::~Session() {
    function_.power_on();
    for (const DmaTable::Range& range : dma_.all())
        device_.dma_unmap(range.address, range.size);
    if (negotiated_) device_.client_gone();
}

void Session::complain(std::string_view what) {
    complaints_++;
    if (complaints_ > kMaxComplaints || !log_) return;
    log_(what);
    if (complaints_ == kMaxComplaints) log_("vfio-user: more complaints about this client are not written");
}

template <typename T>
size_t Session::put(size_t at, const T& value) {
    std::memcpy(reply_payload() + at, &value, sizeof value);
    return at + sizeof value;
}

Session::Reply Session::handle(Message& message) {
    why_.clear();
    const Result result = dispatch(message);
    message.fds.clear();
    if (result.error != 0) {
        counters_.errors++;
        complain(fmt::format("vfio-user: command {} failed: {}{}{}", message.header.command,
                             std::strerror(result.error), why_.empty() ? "" : ": ", why_));
    }
    Reply reply;
    reply.hang_up = result.hang_up;
    if ((message.header.flags & wire::kFlagNoReply) != 0) return reply;
    const size_t size = sizeof(wire::Header) + (result.error == 0 ? result.size : 0);
    const wire::Header header{
        .id = message.header.id,
        .command = message.header.command,
        .size = static_cast<uint32_t>(size),
        .flags = wire::kFlagReply | (result.error == 0 ? 0 : wire::kFlagError),
        .error = static_cast<uint32_t>(result.error),
    };
    std::memcpy(reply_.get(), &header, sizeof header);
    reply.bytes = std::span(reply_.get(), size);
    if (result.error == 0) reply.fd = result.fd;
    return reply;
}

Session::Result Session::dispatch(Message& message) {
    const uint16_t command = message.header.command;
    const std::span<const std::byte> payload = message.payload;
    if (!negotiated_ && command != Command::kVersion) {
        why_ = "the first message must be VERSION";
        return hang_up(EPROTO);
    }
    if (!message.fds.empty() && command != Command::kDmaMap && command != Command::kDeviceSetIrqs) {
        why_ = "this command carries no descriptors";
        return fail(EINVAL);
    }
    switch (command) {
        case Command::kVersion:
            return version(payload);
        case Command::kDmaMap:
            return dma_map(message);
        case Command::kDmaUnmap:
            return dma_unmap(payload);
        case Command::kDeviceGetInfo:
            return device_info(payload);
        case Command::kDeviceGetRegionInfo:
            return region_info(payload);
        case Command::kDeviceGetIrqInfo:
            return irq_info(payload);
        case Command::kDeviceSetIrqs:
            return set_irqs(message);
        case Command::kRegionRead:
            return region_read(payload);
        case Command::kRegionWrite:
            return region_write(payload);
        case Command::kDeviceReset:
            if (!payload.empty()) return fail(EINVAL);
            counters_.resets++;
            function_.reset(ResetKind::kBus);
            return ok();
        case Command::kDeviceGetRegionIoFds:  // QEMU asks for none (no ioeventfd)
        case Command::kDmaRead:               // these two go to clients
        case Command::kDmaWrite:
        case Command::kDirtyPages:        // no migration
        case Command::kRegionWriteMulti:  // not negotiated
        case Command::kDeviceFeature:
        case Command::kMigDataRead:
        case Command::kMigDataWrite:
            return fail(ENOTSUP);
        default:
            return fail(ENOSYS);
    }
}

Session::Result Session::version(std::span<const std::byte> payload) {
    if (negotiated_) {
        why_ = "the version is negotiated already";
        return fail(EINVAL);
    }
    const auto reply = negotiate(payload);
    if (!reply) {
        why_ = reply.error().why;
        return hang_up(reply.error().error);
    }
    negotiated_ = true;
    device_.client_attached();
    const size_t at = put(0, reply->version);
    const size_t text = reply->capabilities.size() + 1;  // with the NUL
    std::memcpy(reply_payload() + at, reply->capabilities.c_str(), text);
    return ok(at + text);
}

Session::Result Session::dma_map(Message& message) {
    const auto map = exactly<wire::DmaMap>(message.payload);
    if (!map || message.fds.size() > 1 || (map->flags & ~(wire::kDmaReadable | wire::kDmaWritable)) != 0) {
        return fail(EINVAL);
    }
    if (const int error = dma_.check_map(map->address, map->size); error != 0) {
        why_ = fmt::format("range {:#x} + {:#x}", map->address, map->size);
        return fail(error);
    }
    UniqueFd fd = message.fds.empty() ? UniqueFd() : std::move(message.fds[0]);
    if (fd && !covers(fd.get(), map->offset, map->size)) {
        why_ = fmt::format("the descriptor is not a file that covers offset {:#x} + {:#x}", map->offset,
                           map->size);
        return fail(EINVAL);
    }
    if (!fd && map->address == 0) {
        // Only guest RAM sits at address 0. A card that cannot reach it would probe and then lose data, so
        // the client's next question is refused too; hanging up at this point makes QEMU 11.1 abort.
        ram_is_private_ = true;
        why_ =
            "guest RAM is not shared with the card: start QEMU with -object "
            "memory-backend-memfd,id=ram,size=SIZE,share=on -machine q35,memory-backend=ram";
        return fail(EINVAL);
    }
    const bool has_fd = static_cast<bool>(fd);
    const int error = device_.dma_map({.address = map->address,
                                       .size = map->size,
                                       .fd = std::move(fd),
                                       .offset = has_fd ? map->offset : 0,
                                       .readable = (map->flags & wire::kDmaReadable) != 0,
                                       .writable = (map->flags & wire::kDmaWritable) != 0});
    if (error != 0) {
        why_ = fmt::format("range {:#x} + {:#x} cannot be mapped into the card", map->address, map->size);
        return fail(error);
    }
    dma_.add(map->address, map->size);
    counters_.dma_maps++;
    if (!has_fd) counters_.dma_maps_no_fd++;
    return ok();
}

Session::Result Session::dma_unmap(std::span<const std::byte> payload) {
    const auto unmap = exactly<wire::DmaUnmap>(payload);
    if (!unmap || (unmap->flags & ~wire::kUnmapAll) != 0) return fail(EINVAL);
    std::vector<DmaTable::Range> ranges;
    if ((unmap->flags & wire::kUnmapAll) != 0) {
        if (unmap->address != 0 || unmap->size != 0) return fail(EINVAL);
        ranges = dma_.all();
    } else if (const int error = dma_.find(unmap->address, unmap->size, ranges); error != 0) {
        why_ =
            fmt::format("range {:#x} + {:#x} is malformed or cuts a mapped one", unmap->address, unmap->size);
        return fail(error);
    }
    for (const DmaTable::Range& range : ranges) {
        device_.dma_unmap(range.address, range.size);
        dma_.remove(range.address);
        counters_.dma_unmaps++;
    }
    return ok(put(0, *unmap));
}

Session::Result Session::device_info(std::span<const std::byte> payload) {
    const auto asked = exactly<wire::DeviceInfo>(payload);
    if (!asked || asked->argsz < sizeof(wire::DeviceInfo)) return fail(EINVAL);
    if (ram_is_private_) {
        why_ = "guest RAM is not shared with the card";
        return fail(EINVAL);
    }
    return ok(put(0, wire::DeviceInfo{.argsz = sizeof(wire::DeviceInfo),
                                      .flags = wire::kDeviceFlagReset | wire::kDeviceFlagPci,
                                      .num_regions = wire::kRegionCount,
                                      .num_irqs = Interrupts::kIndexCount}));
}

uint64_t Session::region_size(uint32_t index) const {
    if (index < kBarCount) return function_.description().bars[index].size;
    return index == wire::kRegionConfig ? kConfigSize : 0;
}

Session::Result Session::region_info(std::span<const std::byte> payload) {
    const auto asked = exactly<wire::RegionInfo>(payload);
    if (!asked || asked->argsz < sizeof(wire::RegionInfo) || asked->index >= wire::kRegionCount) {
        return fail(EINVAL);
    }
    wire::RegionInfo info{.argsz = sizeof(wire::RegionInfo),
                          .flags = 0,
                          .index = asked->index,
                          .cap_offset = 0,
                          .size = region_size(asked->index),
                          .offset = 0};
    if (info.size != 0) info.flags = wire::kRegionFlagRead | wire::kRegionFlagWrite;
    if (asked->index >= kBarCount || function_.description().bars[asked->index].mapped.empty()) {
        return ok(put(0, info));
    }

    const Bar& bar = function_.description().bars[asked->index];
    info.flags |= wire::kRegionFlagMmap;
    info.offset = bar.fd_offset;
    const bool whole = bar.mapped.size() == 1 && bar.mapped[0].size == bar.size;
    size_t end = sizeof info;
    if (!whole) {
        info.flags |= wire::kRegionFlagCaps;
        info.cap_offset = sizeof info;
        end = put(end, wire::SparseMmap{.id = wire::kCapSparseMmap,
                                        .version = 1,
                                        .next = 0,
                                        .nr_areas = static_cast<uint32_t>(bar.mapped.size()),
                                        .reserved = 0});
        for (const MappedArea& area : bar.mapped)
            end = put(end, wire::SparseArea{area.offset, area.size});
    }
    info.argsz = static_cast<uint32_t>(end);
    put(0, info);
    // A client with too small a buffer learns the size, and asks again for the rest and the descriptor. QEMU
    // takes this first reply only with a valid cap_offset, though nothing is there yet.
    if (asked->argsz < end) return ok(sizeof info);
    return with_fd(end, bar.fd);
}

Session::Result Session::irq_info(std::span<const std::byte> payload) {
    const auto asked = exactly<wire::IrqInfo>(payload);
    if (!asked || asked->argsz < sizeof(wire::IrqInfo) || asked->index >= Interrupts::kIndexCount) {
        return fail(EINVAL);
    }
    const uint32_t count = function_.vector_count(asked->index);
    return ok(put(0, wire::IrqInfo{.argsz = sizeof(wire::IrqInfo),
                                   .flags = count == 0 ? 0 : wire::kIrqFlagEventfd | wire::kIrqFlagMaskable,
                                   .index = asked->index,
                                   .count = count}));
}

Session::Result Session::set_irqs(Message& message) {
    const auto set = front<wire::IrqSet>(message.payload);
    if (!set || set->argsz < sizeof(wire::IrqSet) || set->index >= Interrupts::kIndexCount)
        return fail(EINVAL);
    const uint32_t data = set->flags & (wire::kIrqDataNone | wire::kIrqDataBool | wire::kIrqDataEventfd);
    const uint32_t action =
        set->flags & (wire::kIrqActionMask | wire::kIrqActionUnmask | wire::kIrqActionTrigger);
    if ((data | action) != set->flags || !std::has_single_bit(data) || !std::has_single_bit(action)) {
        return fail(EINVAL);
    }
    const uint32_t vectors = function_.vector_count(set->index);
    if (set->start > vectors || set->count > vectors - set->start) return fail(EINVAL);
    const std::span<const std::byte> bools = message.payload.subspan(sizeof(wire::IrqSet));
    if (bools.size() != (data == wire::kIrqDataBool ? set->count : 0)) return fail(EINVAL);
    if (data != wire::kIrqDataEventfd && !message.fds.empty()) return fail(EINVAL);

    if (data == wire::kIrqDataEventfd) {
        // One descriptor a vector, or none: the vectors lose theirs.
        if (action != wire::kIrqActionTrigger) return fail(ENOTSUP);
        if (set->count == 0 || (!message.fds.empty() && message.fds.size() != set->count))
            return fail(EINVAL);
        for (const UniqueFd& fd : message.fds) {
            if (is_eventfd(fd.get()) && make_nonblocking(fd.get())) continue;
            why_ = "a descriptor is not an eventfd";
            return fail(EINVAL);
        }
        message.fds.resize(set->count);
        interrupts_.set_eventfds(set->index, set->start, message.fds);
        return ok();
    }
    if (set->count == 0) {
        if (data != wire::kIrqDataNone || action != wire::kIrqActionTrigger || set->start != 0) {
            return fail(EINVAL);
        }
        interrupts_.disable(set->index);
        return ok();
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (data == wire::kIrqDataBool && bools[i] == std::byte{0}) continue;
        if (action == wire::kIrqActionTrigger) {
            interrupts_.trigger(set->index, set->start + i, 1);
        } else {
            interrupts_.set_masked(set->index, set->start + i, 1, action == wire::kIrqActionMask);
        }
    }
    return ok();
}

int Session::check_access(const wire::RegionAccess& access) const {
    if (access.region >= wire::kRegionCount || access.count == 0) return EINVAL;
    if (access.count > wire::kMaxTransfer) return E2BIG;
    const uint64_t size = region_size(access.region);
    return access.offset <= size && access.count <= size - access.offset ? 0 : EINVAL;
}

Session::Result Session::region_read(std::span<const std::byte> payload) {
    const auto access = exactly<wire::RegionAccess>(payload);
    if (!access) return fail(EINVAL);
    if (const int error = check_access(*access); error != 0) return fail(error);
    const size_t at = put(0, *access);
    const std::span<std::byte> out(reply_payload() + at, access->count);
    if (access->region == wire::kRegionConfig) {
        function_.config_read(access->offset, out);
    } else {
        function_.bar_read(access->region, access->offset, out);
    }
    return ok(at + access->count);
}

Session::Result Session::region_write(std::span<const std::byte> payload) {
    const auto access = front<wire::RegionAccess>(payload);
    if (!access) return fail(EINVAL);
    if (const int error = check_access(*access); error != 0) return fail(error);
    const std::span<const std::byte> in = payload.subspan(sizeof *access);
    if (in.size() != access->count) return fail(EINVAL);
    if (access->region != wire::kRegionConfig) {
        function_.bar_write(access->region, access->offset, in);
    } else if (function_.config_write(access->offset, in)) {
        counters_.resets++;
    }
    return ok(put(0, *access));
}

}  // namespace orrery::emu
