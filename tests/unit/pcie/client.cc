#include "tests/unit/pcie/client.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace orrery::test {
namespace {

constexpr size_t kMaxFds = 64;

}  // namespace

std::vector<std::byte> operator+(std::vector<std::byte> a, std::span<const std::byte> b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::vector<std::byte> message(uint16_t command, std::span<const std::byte> payload, uint16_t id,
                               uint32_t flags) {
    return bytes_of(wire::Header{.id = id,
                                 .command = command,
                                 .size = static_cast<uint32_t>(sizeof(wire::Header) + payload.size()),
                                 .flags = flags,
                                 .error = 0}) +
           payload;
}

std::vector<std::byte> qemu_version() {
    static constexpr std::string_view caps =
        R"({"capabilities": {"migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, "max_msg_fds": 16, )"
        R"("max_data_xfer_size": 1048576, "max_dma_maps": 65535, "pgsizes": 4096, "write_multiple": true}})";
    return bytes_of(wire::Version{0, 0}) + std::as_bytes(std::span(caps.data(), caps.size())) +
           std::vector<std::byte>(1);
}

std::optional<Client> Client::connect(const std::string& path) {
    emu::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
    return Client(std::move(fd));
}

bool Client::send(std::span<const std::byte> bytes, std::span<const int> fds) {
    while (!bytes.empty()) {
        iovec iov{const_cast<std::byte*>(bytes.data()), bytes.size()};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
        msghdr header{};
        header.msg_iov = &iov;
        header.msg_iovlen = 1;
        if (!fds.empty()) {
            header.msg_control = control.data();
            header.msg_controllen = CMSG_SPACE(fds.size_bytes());
            cmsghdr* c = CMSG_FIRSTHDR(&header);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN(fds.size_bytes());
            std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
        }
        const ssize_t put = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return false;
        fds = {};
        bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return true;
}

std::optional<ClientReply> Client::receive() {
    ClientReply reply;
    const auto fill = [&](std::span<std::byte> into) {
        while (!into.empty()) {
            iovec iov{into.data(), into.size()};
            alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
            msghdr header{};
            header.msg_iov = &iov;
            header.msg_iovlen = 1;
            header.msg_control = control.data();
            header.msg_controllen = control.size();
            const ssize_t got = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
                for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                    int fd = -1;
                    std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
                    reply.fds.emplace_back(fd);
                }
            }
            into = into.subspan(static_cast<size_t>(got));
        }
        return true;
    };
    if (!fill(std::as_writable_bytes(std::span(&reply.header, 1)))) return {};
    if (reply.header.size < sizeof reply.header || reply.header.size > wire::kMaxMessage) return {};
    reply.payload.resize(reply.header.size - sizeof reply.header);
    if (!fill(reply.payload)) return {};
    return reply;
}

std::optional<ClientReply> Client::call(uint16_t command, std::span<const std::byte> payload,
                                        std::span<const int> fds) {
    const uint16_t id = next_id_++;
    if (!send(message(command, payload, id), fds)) return {};
    auto reply = receive();
    if (!reply || reply->header.id != id || reply->header.command != command ||
        (reply->header.flags & wire::kFlagTypeMask) != wire::kFlagReply) {
        return {};
    }
    return reply;
}

int Client::error_of(uint16_t command, std::span<const std::byte> payload, std::span<const int> fds) {
    const auto reply = call(command, payload, fds);
    return reply ? reply->error() : -1;
}

bool Client::negotiate() {
    const auto reply = call(wire::kVersion, qemu_version());
    return reply && reply->ok();
}

bool Client::map(uint64_t address, uint64_t size, int fd, uint64_t offset, uint32_t flags) {
    const wire::DmaMap map{
        .argsz = sizeof map, .flags = flags, .offset = offset, .address = address, .size = size};
    return error_of(wire::kDmaMap, bytes_of(map), fd < 0 ? std::span<const int>() : std::span(&fd, 1)) == 0;
}

int Client::set_irqs(uint32_t index, uint32_t start, uint32_t count, uint32_t flags, std::span<const int> fds,
                     std::span<const std::byte> data) {
    const wire::IrqSet set{.argsz = static_cast<uint32_t>(sizeof set + data.size()),
                           .flags = flags,
                           .index = index,
                           .start = start,
                           .count = count};
    return error_of(wire::kDeviceSetIrqs, bytes_of(set) + data, fds);
}

std::optional<ClientReply> Client::region_info(uint32_t index, uint32_t argsz) {
    wire::RegionInfo info{};
    info.argsz = argsz;
    info.index = index;
    return call(wire::kDeviceGetRegionInfo, bytes_of(info));
}

}  // namespace orrery::test
