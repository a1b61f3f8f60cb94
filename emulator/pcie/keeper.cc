#include "emulator/pcie/keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "emulator/base/descriptors.h"
#include "emulator/pcie/protocol.h"

namespace orrery::emu {
namespace {

// The largest read that a client's CPU makes; longer ones get an error, which reads as all-ones too.
constexpr size_t kMaxRead = 4096;

bool wait_for(int fd, short events) {
    pollfd polled{fd, events, 0};
    while (::poll(&polled, 1, -1) < 0)
        if (errno != EINTR) return false;
    return true;
}

// Descriptors that come along have no room and are closed.
bool read_exactly(int fd, std::span<std::byte> into) {
    while (!into.empty()) {
        const ssize_t got = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
        if (got == 0) return false;
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN || !wait_for(fd, POLLIN)) return false;
            continue;
        }
        into = into.subspan(static_cast<size_t>(got));
    }
    return true;
}

bool write_exactly(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN || !wait_for(fd, POLLOUT)) return false;
            continue;
        }
        bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return true;
}

// The payload of a request: its front, the rest is read and forgotten.
bool read_payload(int fd, size_t size, std::span<std::byte> front) {
    const size_t kept = std::min(size, front.size());
    if (!read_exactly(fd, front.first(kept))) return false;
    std::array<std::byte, 4096> rest;
    for (size_t left = size - kept; left != 0;) {
        const size_t piece = std::min(left, rest.size());
        if (!read_exactly(fd, std::span(rest).first(piece))) return false;
        left -= piece;
    }
    return true;
}

// All-ones, if that much can be given.
bool answer_read(int fd, wire::Header header, const wire::RegionAccess& access) {
    std::array<std::byte, sizeof header + sizeof access + kMaxRead> reply;
    if (access.count > kMaxRead) return false;
    header.size = static_cast<uint32_t>(sizeof header + sizeof access + access.count);
    std::memcpy(reply.data(), &header, sizeof header);
    std::memcpy(reply.data() + sizeof header, &access, sizeof access);
    std::ranges::fill(std::span(reply).subspan(sizeof header + sizeof access), std::byte{0xff});
    return write_exactly(fd, std::span(reply).first(header.size));
}

// Questions about the device, which have no true answer any more.
bool is_question(uint16_t command) {
    switch (command) {
        case wire::kDmaMap:
        case wire::kDmaUnmap:
        case wire::kDeviceSetIrqs:
        case wire::kRegionWrite:
        case wire::kDeviceReset:
            return false;
        default:
            return true;
    }
}

// Names what happened, in the card's log.
void say_so(int log) {
    constexpr std::string_view kLine =
        "orrery-card: the card's process has ended under its client: from now on it reads as all-ones\n";
    static_cast<void>(::write(log, kLine.data(), kLine.size()) < 0);
}

// The newest message on the channel: a connection (and a byte), or just a byte. False: the card is gone.
bool listen_to_card(int channel, UniqueFd& connection) {
    std::byte byte{};
    iovec iov{&byte, 1};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control;
    msghdr header{};
    header.msg_iov = &iov;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(channel, &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    connection.reset();
    take_descriptors(header, [&](UniqueFd fd) { connection = std::move(fd); });
    return true;
}

// Keeps nothing of the card's but the channel and the log: no one waits for a pipe that only the keeper has.
void let_go_of_the_rest(int channel, int log) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {0, 1, 2})
        if (null >= 0 && fd != log) ::dup2(null, fd);
    const auto [low, high] = std::minmax(channel, std::max(log, 2));
    if (low > 3) ::close_range(3, static_cast<unsigned>(low) - 1, 0);
    if (high > low + 1) ::close_range(static_cast<unsigned>(low) + 1, static_cast<unsigned>(high) - 1, 0);
    ::close_range(static_cast<unsigned>(high) + 1, ~0u, 0);
}

[[noreturn]] void keep(int channel, int log) {
    ::prctl(PR_SET_NAME, "orrery-keeper");
    if (log > 2) log = ::fcntl(log, F_DUPFD, 3);
    let_go_of_the_rest(channel, log);
    UniqueFd connection;
    while (listen_to_card(channel, connection)) {
    }
    if (connection) {
        pollfd polled{connection.get(), 0, 0};
        if (::poll(&polled, 1, 0) == 0) say_so(log);
        ::close(log);
        answer_for_the_dead(connection.get());
    }
    ::_exit(0);
}

}  // namespace

void answer_for_the_dead(int connection) {
    for (bool first = true;; first = false) {
        wire::Header header;
        if (!read_exactly(connection, std::as_writable_bytes(std::span(&header, 1)))) return;
        if (header.size < sizeof header) return;
        wire::RegionAccess access{};
        const size_t payload = header.size - sizeof header;
        if (!read_payload(connection, payload, std::as_writable_bytes(std::span(&access, 1)))) return;
        if ((header.flags & wire::kFlagNoReply) != 0) continue;
        const bool read = header.command == wire::kRegionRead && payload == sizeof access;
        header.flags = wire::kFlagReply;
        header.error = 0;
        // The client may not wait for an answer to the first request any more. It then reads the header of
        // one and no further, so nothing may follow.
        if (read && !first && access.count <= kMaxRead) {
            if (!answer_read(connection, header, access)) return;
            continue;
        }
        if (read || is_question(header.command)) {
            header.flags |= wire::kFlagError;
            header.error = ENODEV;
        }
        header.size = sizeof header;
        if (!write_exactly(connection, std::as_bytes(std::span(&header, 1)))) return;
    }
}

std::expected<Keeper, std::string> Keeper::start(std::FILE* log) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return std::unexpected(fmt::format("cannot create a socket pair: {}", std::strerror(errno)));
    UniqueFd card(pair[0]);
    UniqueFd keeper(pair[1]);
    const pid_t pid = ::fork();
    if (pid < 0)
        return std::unexpected(fmt::format("cannot start the card's keeper: {}", std::strerror(errno)));
    if (pid == 0) {
        card.reset();
        keep(keeper.get(), ::fileno(log));
    }
    return Keeper(std::move(card));
}

void Keeper::hold(int connection) const noexcept {
    const std::byte byte{};
    static_cast<void>(send_with_descriptor(channel_.get(), {&byte, 1}, connection, MSG_NOSIGNAL) < 0);
}

void Keeper::release() const noexcept {
    const std::byte byte{};
    static_cast<void>(::send(channel_.get(), &byte, 1, MSG_NOSIGNAL) < 0);
}

}  // namespace orrery::emu
