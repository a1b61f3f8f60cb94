// A head of fixed size with the descriptors, then the bytes; on a socket of packets each is one.
#include "umd/runtime/fd_message.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "umd/runtime/clock.h"

namespace orrery::umd {
namespace {

struct Head {
    std::uint32_t magic;
    std::uint32_t fds;
    std::uint64_t bytes;
};
static_assert(sizeof(Head) == kMessageHeadBytes);
constexpr std::uint32_t kMagic = 0x3149524f;  // "ORI1"

class Deadline {
  public:
    explicit Deadline(std::uint64_t limit_ns) : start_(now_ns()), limit_(limit_ns) {}
    // Until the socket can be read or written. Once the limit has passed it is only looked at, and as often
    // as a message takes that is there whole: who sends byte by byte gets no more time than others.
    Status wait(int socket, short events, const char* what) {
        while (true) {
            const auto passed = static_cast<std::uint64_t>(now_ns() - start_);
            // Rounded up, and looked at again: not early, and no limit is not a long one.
            const std::uint64_t left_ms =
                passed >= limit_ ? 0 : std::min<std::uint64_t>((limit_ - passed) / 1'000'000 + 1, 60'000);
            if (left_ms == 0 && late_++ == kLateLooks)
                return fail(orrErrorTimeout, "{}: not whole after {} ns", what, passed);
            pollfd poll{socket, events, 0};
            const int ready = ::poll(&poll, 1, static_cast<int>(left_ms));
            if (ready > 0 && (poll.revents & POLLNVAL) != 0) return fail_errno(EBADF, what);
            if (ready > 0) return {};
            if (ready < 0 && errno != EINTR) return fail_errno(errno, what);
            if (ready == 0 && left_ms == 0)
                return fail(orrErrorTimeout, "{}: the other side did nothing for {} ns", what, passed);
        }
    }

    bool passed() const { return static_cast<std::uint64_t>(now_ns() - start_) >= limit_; }

  private:
    static constexpr int kLateLooks = 2;  // head and bytes
    const std::int64_t start_;
    const std::uint64_t limit_;
    int late_ = 0;
};

// The descriptors that a control message carries; those that the other side did not send, as a socket with
// SO_PASSPIDFD gets them, are closed.
std::vector<UniqueFd> take_fds(msghdr& message) {
    constexpr int kScmPidfd = 4;  // SCM_PIDFD, which older headers do not have
    std::vector<UniqueFd> sent;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || (c->cmsg_type != SCM_RIGHTS && c->cmsg_type != kScmPidfd))
            continue;
        for (std::size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(c) + at, sizeof number);
            UniqueFd fd(number);
            if (c->cmsg_type == SCM_RIGHTS) sent.push_back(std::move(fd));
        }
    }
    return sent;
}

std::unexpected<Error> ended(const char* what) {
    return fail(orrErrorAborted, "{}: the other side has closed the socket, or its process has ended", what);
}

// Once: 0 bytes mean the end.
Result<std::size_t> receive_some(int socket, std::span<std::byte> into, std::vector<UniqueFd>* fds,
                                 Deadline& deadline) {
    constexpr const char* kWhat = "receiving from a socket";
    // Room for more than one of ours has, so that what somebody else sends is got and closed.
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * kMaxMessageFds * sizeof(int))> control{};
    while (true) {
        ORR_TRY(ready, deadline.wait(socket, POLLIN, kWhat));
        iovec part{into.data(), into.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0 && errno == ECONNRESET) return ended(kWhat);
        if (got < 0) return fail_errno(errno, kWhat);
        std::vector<UniqueFd> came = take_fds(message);
        // All of a message's come with its first byte.
        const bool misplaced = !came.empty() && (fds == nullptr || !fds->empty());
        if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || misplaced) {
            return fail(orrErrorInvalidValue,
                        "{}: what came is no message of orrIpcSend, or this process has no room for its file "
                        "descriptors (ulimit -n)",
                        kWhat);
        }
        if (!came.empty()) *fds = std::move(came);
        return static_cast<std::size_t>(got);
    }
}

Status receive_all(int socket, std::span<std::byte> into, std::vector<UniqueFd>* fds, Deadline& deadline) {
    while (!into.empty()) {
        ORR_TRY(got, receive_some(socket, into, fds, deadline));
        if (*got == 0) return ended("receiving from a socket");
        into = into.subspan(*got);
    }
    return {};
}

Status send_all(int socket, std::span<const std::byte> bytes, std::span<const int> fds, Deadline& deadline) {
    constexpr const char* kWhat = "sending through a socket";
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxMessageFds * sizeof(int))> control{};
    while (!bytes.empty()) {
        iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (!fds.empty()) {
            message.msg_control = control.data();
            message.msg_controllen = CMSG_SPACE(fds.size_bytes());
            cmsghdr* const c = CMSG_FIRSTHDR(&message);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN(fds.size_bytes());
            std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
        }
        const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
            fds = {};  // they went with the first byte
        } else if (errno == EAGAIN) {
            ORR_TRY(ready, deadline.wait(socket, POLLOUT, kWhat));
        } else if (errno == ETOOMANYREFS && !deadline.passed()) {
            // So many of the user's descriptors are under way: until some have been received.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return ended(kWhat);
        } else if (errno != EINTR) {
            return fail_errno(errno, kWhat);
        }
    }
    return {};
}

}  // namespace

Status send_message(int socket, std::span<const int> fds, std::span<const std::byte> bytes,
                    std::uint64_t limit_ns) {
    Deadline deadline(limit_ns);
    const Head head{kMagic, static_cast<std::uint32_t>(fds.size()), bytes.size()};
    ORR_TRY(sent, send_all(socket, std::as_bytes(std::span(&head, 1)), fds, deadline));
    return send_all(socket, bytes, {}, deadline);
}

Result<FdMessage> receive_message(int socket, std::size_t room_fds, std::size_t room_bytes,
                                  std::uint64_t limit_ns) {
    Deadline deadline(limit_ns);
    Head head{};
    FdMessage message;
    ORR_TRY(got, receive_all(socket, std::as_writable_bytes(std::span(&head, 1)), &message.fds, deadline));
    if (head.magic != kMagic || head.fds != message.fds.size() || head.bytes > kMaxMessageBytes)
        return fail(orrErrorInvalidValue, "what came through the socket is no message of orrIpcSend");
    message.bytes.resize(head.bytes);
    ORR_TRY(rest, receive_all(socket, message.bytes, nullptr, deadline));
    if (head.fds > room_fds || head.bytes > room_bytes) {
        return fail(orrErrorInvalidValue,
                    "a message with {} file descriptors and {} bytes came, and there is room for {} and {}",
                    head.fds, head.bytes, room_fds, room_bytes);
    }
    return message;
}

}  // namespace orrery::umd
