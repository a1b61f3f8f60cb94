// The socket of a link: finds the peer, passes one descriptor in the handshake, wakes, and tells of death.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include "emulator/base/unique_fd.h"
#include "emulator/link/wire.h"

namespace orrery::emu::link {

enum class SocketEvent : std::uint8_t {
    kNone,       // nothing more at the moment
    kConnected,  // a peer is there
    kMessage,    // see Socket::Received
    kClosed,     // the peer hung up or died; the socket looks for the next
    kTick,       // roughly every kTickMs while keep_ticking(true), or while a connecting side has no peer
};

class Socket {
  public:
    struct Received {
        std::array<std::byte, 64> data{};
        std::size_t bytes = 0;  // more than 64: it was longer, and is cut
        UniqueFd fd;            // the one descriptor that came with it
        unsigned fds = 0;       // how many came
    };
    static constexpr int kTickMs = 50;

    // Listens on `path` (mode 0600; a stale socket is replaced), or tries to connect to it for ever.
    static std::expected<Socket, std::string> create(bool listen, std::string path);
    Socket(Socket&&) noexcept = default;
    Socket& operator=(Socket&&) = delete;
    ~Socket();

    // Descriptor that is readable when next() has something to say.
    int poll_fd() const { return epoll_.get(); }
    // Never blocks.
    SocketEvent next(Received& received);
    bool connected() const { return static_cast<bool>(peer_); }

    // False: it did not go through (the peer is dead, or does not read).
    bool send(const void* data, std::size_t bytes, int fd = -1);
    // Hangs up and looks for the next peer, a connecting side not before the next tick.
    void hang_up();
    void keep_ticking(bool on);
    // No peer comes any more, and one that connects is refused, until plug().
    void unplug();
    std::expected<void, std::string> plug();

  private:
    Socket(bool listen, std::string path, UniqueFd epoll, UniqueFd timer, UniqueFd listener);
    bool accept_peer();
    bool connect_peer();
    bool take_peer(UniqueFd fd);
    SocketEvent receive(Received& received);
    void set_timer(bool on);

    bool listen_;
    std::string path_;
    UniqueFd epoll_, timer_, listener_, peer_;
    bool timer_on_ = false;
    bool keep_ticking_ = false;
    bool unplugged_ = false;
};

}  // namespace orrery::emu::link
