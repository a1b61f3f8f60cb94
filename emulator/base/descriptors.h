// Descriptors that go along with a message over a Unix socket.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "emulator/base/unique_fd.h"

namespace orrery::emu {

// sendmsg() of bytes and, unless it is -1, a descriptor, which stays the caller's. Returns what sendmsg()
// does.
inline ssize_t send_with_descriptor(int socket, std::span<const std::byte> bytes, int fd,
                                    int flags) noexcept {
    // sendmsg() takes a pointer to non-const, and does not write through it.
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return ::sendmsg(socket, &message, flags);
}

// Calls take(UniqueFd) for each descriptor that came with a received message.
template <typename Take>
void take_descriptors(msghdr& message, Take take) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            take(UniqueFd(fd));
        }
    }
}

}  // namespace orrery::emu
