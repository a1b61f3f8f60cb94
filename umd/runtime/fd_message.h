// Messages with file descriptors over a UNIX socket whose other end is not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "umd/winsys/error.h"
#include "umd/winsys/unique_fd.h"

namespace orrery::umd {

constexpr std::size_t kMaxMessageFds = 16, kMaxMessageBytes = 4096;
// With what a message begins; on a socket of packets its first packet.
constexpr std::size_t kMessageHeadBytes = 16;

struct FdMessage {
    std::vector<UniqueFd> fds;
    std::vector<std::byte> bytes;
};

// Whole, or it fails: orrErrorTimeout after limit_ns of the host's time, orrErrorAborted if the other end is
// closed. A socket on which it failed between the parts of a message is no use any more.
Status send_message(int socket, std::span<const int> fds, std::span<const std::byte> bytes,
                    std::uint64_t limit_ns);
// orrErrorInvalidValue: more than the room, or no message of ours.
Result<FdMessage> receive_message(int socket, std::size_t room_fds, std::size_t room_bytes,
                                  std::uint64_t limit_ns);

}  // namespace orrery::umd
