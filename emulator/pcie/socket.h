// UNIX stream sockets that carry vfio-user messages and the descriptors that belong to them.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/base/unique_fd.h"
#include "emulator/pcie/protocol.h"

namespace orrery::emu {

// Listens on `path` for this user only. A socket file that nobody listens on any more is replaced.
std::expected<UniqueFd, std::string> listen_unix(const std::string& path);

struct Message {
    wire::Header header{};
    std::span<const std::byte> payload;  // valid until the next receive()
    std::vector<UniqueFd> fds;           // closed with the message, unless taken out
};

// One client. Nothing blocks except in the wait function, which a stop request ends.
class Connection {
  public:
    enum class Status {
        kOk,
        kClosed,   // the other side is gone, or the wait was ended
        kGarbage,  // no valid message starts here: the stream cannot be followed any further
    };
    // Waits until `fd` has one of `events` (as poll(2)) or is in error; false when the caller wants to stop.
    using Wait = std::function<bool(int fd, short events)>;

    Connection(UniqueFd fd, Wait wait);

    // Receives one whole command. With kGarbage, error() says why. The command stays in the socket until the
    // next call: if this process ends before the answer is on its way, whoever else holds the socket finds
    // it.
    Status receive(Message& message);
    // Sends one whole message, with `fd` attached unless it is -1.
    Status send(std::span<const std::byte> bytes, int fd);

    // Ends the connection for everybody who holds it, without leaving anything unread: the client sees the
    // end of the stream, not a reset, which aborts QEMU 11.1.
    void hang_up();

    const std::string& error() const { return error_; }

  private:
    Status peek(std::span<std::byte> into, std::vector<UniqueFd>* fds);
    void forget_peeked();
    Status receive_exactly(std::span<std::byte> into, std::vector<UniqueFd>& fds, bool closing_is_fine);
    Status garbage(std::string why);
    Status fds_lost();

    UniqueFd fd_;
    Wait wait_;
    std::unique_ptr<std::byte[]> buffer_;
    size_t peeked_ = 0;  // bytes of the command at hand that are still in the socket
    std::string error_;
};

}  // namespace orrery::emu
