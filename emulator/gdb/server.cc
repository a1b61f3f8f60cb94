#include "emulator/gdb/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace orrery::emu::gdb {

std::expected<std::unique_ptr<Server>, std::string> Server::create(std::uint16_t port) {
    std::unique_ptr<Server> made(new Server);
    const auto refuse = [&](const char* what) {
        return std::unexpected(
            fmt::format("gdb port {}: {}: {}; give another one", port, what, std::strerror(errno)));
    };
    made->listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made->listener_) return refuse("no socket");
    const int on = 1;
    ::setsockopt(made->listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(made->listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(made->listener_.get(), 1) != 0)
        return refuse("cannot listen");
    socklen_t size = sizeof address;
    if (::getsockname(made->listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
        return refuse("has no name");
    made->port_ = ntohs(address.sin_port);
    return made;
}

bool Server::accept(Target& target) {
    UniqueFd taken(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!taken) return false;
    const int on = 1;
    ::setsockopt(taken.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    client_ = std::move(taken);
    session_ = std::make_unique<Session>(target);
    return true;
}

// One at a time: a second debugger is hung up on, rather than left waiting.
void Server::refuse_others() {
    const UniqueFd other(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void Server::hang_up() {
    session_.reset();
    client_.reset();
}

bool Server::receive() {
    std::array<std::uint8_t, 4096> bytes;
    const ssize_t got = ::recv(client_.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
        session_->receive(std::span(bytes).first(static_cast<std::size_t>(got)));
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    hang_up();
    return true;
}

// What the socket takes; the rest waits. true: something went.
bool Server::send() {
    std::string& out = session_->output();
    std::size_t sent = 0;
    while (sent < out.size()) {
        const ssize_t done = ::send(client_.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
        if (done > 0) {
            sent += static_cast<std::size_t>(done);
        } else if (done == 0 || errno != EINTR) {
            if (done < 0 && errno != EAGAIN) {
                hang_up();
                return true;
            }
            break;
        }
    }
    out.erase(0, sent);
    return sent > 0;
}

short Server::events() const {
    return session_ != nullptr && !session_->output().empty() ? POLLOUT : POLLIN;
}

bool Server::service(Target& target) {
    if (session_ == nullptr) return accept(target);
    refuse_others();
    bool busy = false;
    // Its answers first: they are bounded by what it asks for before it reads them.
    if (!session_->output().empty()) busy = send();
    if (session_ == nullptr) return true;
    if (session_->output().empty()) {
        busy |= receive();
        if (session_ == nullptr) return true;
        busy |= session_->poll();
        if (!session_->output().empty()) busy |= send();
    }
    if (session_ != nullptr && session_->over() && session_->output().empty()) {
        killed_ = killed_ || session_->killed();
        hang_up();
    }
    return busy;
}

}  // namespace orrery::emu::gdb
