#include "emulator/link/socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "emulator/base/descriptors.h"

namespace orrery::emu::link {

namespace {

constexpr int kSocketType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

const sockaddr* generic(const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

// Somebody may have died and left the file; a living listener answers or has its queue full.
bool is_stale(const std::string& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
    const UniqueFd probe(::socket(AF_UNIX, kSocketType, 0));
    const sockaddr_un address = address_of(path);
    if (!probe) return false;
    return ::connect(probe.get(), generic(address), sizeof address) != 0 && errno == ECONNREFUSED;
}

std::expected<UniqueFd, std::string> listen_on(const std::string& path) {
    if (is_stale(path)) ::unlink(path.c_str());
    UniqueFd fd(::socket(AF_UNIX, kSocketType, 0));
    const sockaddr_un address = address_of(path);
    const mode_t old = ::umask(0177);
    const bool bound = fd && ::bind(fd.get(), generic(address), sizeof address) == 0;
    const int why = errno;
    ::umask(old);
    if (!bound) {
        return std::unexpected(fmt::format("cannot listen for a link on {}: {}{}", path, std::strerror(why),
                                           why == EADDRINUSE ? " (is another card using it?)" : ""));
    }
    if (::listen(fd.get(), 4) != 0) {
        return std::unexpected(fmt::format("cannot listen for a link on {}: {}", path, std::strerror(errno)));
    }
    return fd;
}

void watch(int epoll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

Socket::Socket(bool listen, std::string path, UniqueFd epoll, UniqueFd timer, UniqueFd listener)
    : listen_(listen),
      path_(std::move(path)),
      epoll_(std::move(epoll)),
      timer_(std::move(timer)),
      listener_(std::move(listener)) {
    watch(epoll_.get(), timer_.get());
    if (listener_) watch(epoll_.get(), listener_.get());
    set_timer(!listen_);
}

Socket::~Socket() {
    if (listener_) ::unlink(path_.c_str());
}

std::expected<Socket, std::string> Socket::create(bool listen, std::string path) {
    if (path.empty() || path.size() >= sizeof(sockaddr_un{}.sun_path)) {
        return std::unexpected(fmt::format("the link's socket path has {} bytes; use 1 to {}", path.size(),
                                           sizeof(sockaddr_un{}.sun_path) - 1));
    }
    UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!epoll || !timer) {
        return std::unexpected(fmt::format("cannot make a link's descriptors: {}", std::strerror(errno)));
    }
    UniqueFd listener;
    if (listen) {
        auto made = listen_on(path);
        if (!made) return std::unexpected(made.error());
        listener = std::move(*made);
    }
    return Socket(listen, std::move(path), std::move(epoll), std::move(timer), std::move(listener));
}

void Socket::set_timer(bool on) {
    if (on == timer_on_) return;
    timer_on_ = on;
    itimerspec spec{};
    if (on) {
        spec.it_interval.tv_nsec = kTickMs * 1'000'000L;
        spec.it_value.tv_nsec = spec.it_interval.tv_nsec;
    }
    ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
}

void Socket::keep_ticking(bool on) {
    keep_ticking_ = on;
    set_timer(on || (!listen_ && !peer_ && !unplugged_));
}

void Socket::hang_up() {
    peer_.reset();
    keep_ticking(false);
}

void Socket::unplug() {
    unplugged_ = true;
    hang_up();
    if (listener_) ::unlink(path_.c_str());
    listener_.reset();
}

std::expected<void, std::string> Socket::plug() {
    if (!std::exchange(unplugged_, false)) return {};
    if (listen_) {
        auto listener = listen_on(path_);
        if (!listener) {
            unplugged_ = true;
            return std::unexpected(listener.error());
        }
        listener_ = std::move(*listener);
        watch(epoll_.get(), listener_.get());
    }
    keep_ticking(keep_ticking_);
    return {};
}

bool Socket::take_peer(UniqueFd fd) {
    peer_ = std::move(fd);
    watch(epoll_.get(), peer_.get());
    keep_ticking(keep_ticking_);
    return true;
}

bool Socket::accept_peer() {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    // A port has one peer: who comes second is turned away, and may come again.
    return fd && !peer_ && take_peer(std::move(fd));
}

bool Socket::connect_peer() {
    UniqueFd fd(::socket(AF_UNIX, kSocketType, 0));
    const sockaddr_un address = address_of(path_);
    return fd && ::connect(fd.get(), generic(address), sizeof address) == 0 && take_peer(std::move(fd));
}

SocketEvent Socket::next(Received& received) {
    if (peer_) {
        const SocketEvent event = receive(received);
        if (event != SocketEvent::kNone) return event;
    }
    if (listener_ && accept_peer()) return SocketEvent::kConnected;
    std::uint64_t expired = 0;
    if (timer_on_ && ::read(timer_.get(), &expired, sizeof expired) > 0) {
        return !listen_ && !peer_ && connect_peer() ? SocketEvent::kConnected : SocketEvent::kTick;
    }
    return SocketEvent::kNone;
}

SocketEvent Socket::receive(Received& received) {
    received = Received{};
    iovec part{received.data.data(), received.data.size()};
    // Room for more descriptors than anybody may send, so that none is left open unseen.
    alignas(cmsghdr) std::array<char, CMSG_SPACE(16 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(peer_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return SocketEvent::kNone;
    if (got <= 0) {
        hang_up();
        return SocketEvent::kClosed;
    }
    received.bytes = static_cast<std::size_t>(got);
    take_descriptors(message, [&](UniqueFd fd) {
        received.fd = std::move(fd);
        ++received.fds;
    });
    return SocketEvent::kMessage;
}

bool Socket::send(const void* data, std::size_t bytes, int fd) {
    if (!peer_) return false;
    const std::span all(static_cast<const std::byte*>(data), bytes);
    return send_with_descriptor(peer_.get(), all, fd, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes);
}

}  // namespace orrery::emu::link
