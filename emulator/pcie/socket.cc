#include "emulator/pcie/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "emulator/base/descriptors.h"

namespace orrery::emu {
namespace {

std::string reason() {
    return std::strerror(errno);
}

// Whether a process still listens on the socket file.
bool is_alive(const sockaddr_un& address) {
    UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!probe) return true;
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
    return errno != ECONNREFUSED;
}

// Takes the descriptors that came with a message. False: some were lost.
bool take_fds(msghdr& header, std::vector<UniqueFd>& fds) {
    take_descriptors(header, [&](UniqueFd fd) { fds.push_back(std::move(fd)); });
    return (header.msg_flags & MSG_CTRUNC) == 0 && fds.size() <= wire::kMaxMessageFds;
}

}  // namespace

std::expected<UniqueFd, std::string> listen_unix(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        return std::unexpected(
            fmt::format("socket path '{}' has {} bytes, but 1 to {} are possible: choose a "
                        "shorter directory",
                        path, path.size(), sizeof address.sun_path - 1));
    }
    std::memcpy(address.sun_path, path.data(), path.size());

    struct stat info{};
    if (::lstat(path.c_str(), &info) == 0) {
        if (!S_ISSOCK(info.st_mode)) {
            return std::unexpected(
                fmt::format("'{}' exists and is not a socket: choose another socket path", path));
        }
        if (is_alive(address)) {
            return std::unexpected(
                fmt::format("another process listens on '{}': stop it or choose another socket path", path));
        }
        ::unlink(path.c_str());
    }

    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return std::unexpected(fmt::format("cannot create a socket: {}", reason()));
    // Only this user may connect. The mode of the socket object becomes the file's at bind(), without a
    // moment in which the file is open to others; umask would concern other threads.
    ::fchmod(fd.get(), 0600);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return std::unexpected(fmt::format("cannot bind '{}': {}", path, reason()));
    }
    if (::listen(fd.get(), 4) != 0) {
        const std::string why = reason();
        ::unlink(path.c_str());
        return std::unexpected(fmt::format("cannot listen on '{}': {}", path, why));
    }
    return fd;
}

Connection::Connection(UniqueFd fd, Wait wait)
    : fd_(std::move(fd)),
      wait_(std::move(wait)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(wire::kMaxMessage)) {}

Connection::Status Connection::garbage(std::string why) {
    error_ = std::move(why);
    return Status::kGarbage;
}

Connection::Status Connection::fds_lost() {
    return garbage(
        "descriptors were lost: more than 16 in one message, or this process has too many open files");
}

Connection::Status Connection::receive_exactly(std::span<std::byte> into, std::vector<UniqueFd>& fds,
                                               bool closing_is_fine) {
    bool started = false;
    while (!into.empty()) {
        iovec iov{into.data(), into.size()};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(wire::kMaxMessageFds * sizeof(int))> control;
        msghdr header{};
        header.msg_iov = &iov;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) return Status::kClosed;
            if (!wait_(fd_.get(), POLLIN)) return Status::kClosed;
            continue;
        }
        if (!take_fds(header, fds)) return fds_lost();
        if (got == 0) {
            if (closing_is_fine && !started) return Status::kClosed;
            return garbage("the stream ends inside a message");
        }
        started = true;
        into = into.subspan(static_cast<size_t>(got));
    }
    return Status::kOk;
}

// A look at the next bytes without taking them; kClosed too if they are not all there. The kernel looks on
// into the messages behind, up to the first with descriptors, and gives those. Behind one that has
// descriptors it stops: so it is asked for one byte more, and if that comes the descriptors are not of this
// message.
Connection::Status Connection::peek(std::span<std::byte> into, std::vector<UniqueFd>* fds) {
    std::byte beyond{};
    std::array<iovec, 2> parts{{{into.data(), into.size()}, {&beyond, 1}}};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(wire::kMaxMessageFds * sizeof(int))> control;
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = 1;
    if (fds != nullptr) {
        header.msg_iovlen = 2;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
    }
    const ssize_t got = ::recvmsg(fd_.get(), &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return Status::kClosed;
    const auto bytes = static_cast<size_t>(got);
    bool complete = true;
    if (fds != nullptr) {
        complete = take_fds(header, *fds);
        if (bytes != into.size()) fds->clear();
    }
    if (bytes < into.size()) return Status::kClosed;
    return complete || bytes > into.size() ? Status::kOk : fds_lost();
}

void Connection::forget_peeked() {
    std::array<std::byte, 4096> scratch;
    while (peeked_ != 0) {
        const ssize_t got =
            ::recv(fd_.get(), scratch.data(), std::min(peeked_, scratch.size()), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        peeked_ -= static_cast<size_t>(got);
    }
    peeked_ = 0;
}

void Connection::hang_up() {
    ::shutdown(fd_.get(), SHUT_RDWR);
    std::array<std::byte, 4096> scratch;
    for (;;) {
        const ssize_t got = ::recv(fd_.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EINTR)) return;
    }
}

Connection::Status Connection::receive(Message& message) {
    message.fds.clear();
    message.payload = {};
    forget_peeked();
    if (!wait_(fd_.get(), POLLIN)) return Status::kClosed;
    // What comes in pieces, which QEMU's messages do not, has to be taken.
    std::array<std::byte, sizeof(wire::Header)> raw;
    const bool whole = peek(raw, nullptr) == Status::kOk;
    if (!whole) {
        if (const Status s = receive_exactly(raw, message.fds, true); s != Status::kOk) return s;
    }
    std::memcpy(&message.header, raw.data(), sizeof message.header);

    const wire::Header& header = message.header;
    if (header.size < sizeof header || header.size > wire::kMaxMessage) {
        return garbage(fmt::format("message of {} bytes; {} to {} are valid", header.size, sizeof header,
                                   wire::kMaxMessage));
    }
    if ((header.flags & wire::kFlagTypeMask) != wire::kFlagCommand) {
        return garbage(fmt::format("message of type {}, where only commands are expected",
                                   header.flags & wire::kFlagTypeMask));
    }
    if (whole) {
        const Status s = peek({buffer_.get(), header.size}, &message.fds);
        if (s == Status::kGarbage) return s;
        if (s == Status::kOk) {
            peeked_ = header.size;
            message.payload = std::span(buffer_.get(), header.size).subspan(sizeof header);
            return s;
        }
        message.fds.clear();
        if (const Status taken = receive_exactly(raw, message.fds, true); taken != Status::kOk) return taken;
    }
    const std::span<std::byte> payload(buffer_.get(), header.size - sizeof header);
    if (const Status s = receive_exactly(payload, message.fds, false); s != Status::kOk) return s;
    message.payload = payload;
    return Status::kOk;
}

Connection::Status Connection::send(std::span<const std::byte> bytes, int fd) {
    while (!bytes.empty()) {
        const ssize_t put = send_with_descriptor(fd_.get(), bytes, fd, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) return Status::kClosed;
            if (!wait_(fd_.get(), POLLOUT)) return Status::kClosed;
            continue;
        }
        fd = -1;  // went with the first bytes
        bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return Status::kOk;
}

}  // namespace orrery::emu
