#include "tools/vm/net/switch.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace orrery::vm {

namespace {

constexpr std::size_t kHeader = 4;
constexpr std::size_t kLargestFrame = 69632;  // QEMU's own limit
// Of what one end has not taken. Beyond it frames are lost, as on a full wire; TCP sends them again.
constexpr std::size_t kMostPending = std::size_t{4} << 20;

std::size_t frame_size(std::string_view bytes) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < kHeader; ++i)
        size = size << 8 | static_cast<unsigned char>(bytes[i]);
    return size;
}

}  // namespace

Switch::Switch(Segment segment, Fd guest) : segment_(std::move(segment)), guest_{std::move(guest), {}, {}} {
    ::fcntl(guest_.fd.get(), F_SETFL, O_NONBLOCK);
    for (Fd& peer : segment_.take_peers())
        peers_.push_back({std::move(peer), {}, {}});
}

std::vector<pollfd> Switch::wanted() const {
    std::vector<pollfd> fds{{segment_.listener(), POLLIN, 0}};
    const auto add = [&fds](const Link& link) {
        const short events = static_cast<short>(link.out.empty() ? POLLIN : POLLIN | POLLOUT);
        if (link.fd) fds.push_back({link.fd.get(), events, 0});
    };
    add(guest_);
    for (const Link& peer : peers_)
        add(peer);
    return fds;
}

void Switch::handle(int fd) {
    if (fd == segment_.listener()) {
        while (auto peer = segment_.accept())
            peers_.push_back({std::move(*peer), {}, {}});
        return;
    }
    const auto look = [this, fd](Link& link) {
        if (link.fd.get() != fd) return;
        write_to(link);
        read_from(link);
    };
    look(guest_);
    for (Link& peer : peers_)
        look(peer);
    std::erase_if(peers_, [](const Link& peer) { return !peer.fd; });
}

void Switch::read_from(Link& link) {
    char buffer[65536];
    const ssize_t n = ::read(link.fd.get(), buffer, sizeof buffer);
    if (n > 0) {
        link.in.append(buffer, static_cast<std::size_t>(n));
        deliver(link);
    }
    const bool ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    const bool nonsense = link.in.size() >= kHeader && frame_size(link.in) > kLargestFrame;
    if (ended || nonsense) link.fd.reset();
}

// All whole frames that have come.
void Switch::deliver(Link& from) {
    std::string_view rest = from.in;
    while (rest.size() >= kHeader) {
        const std::size_t whole = kHeader + frame_size(rest);
        if (frame_size(rest) > kLargestFrame || rest.size() < whole) break;
        if (&from == &guest_)
            for (Link& peer : peers_)
                send(peer, rest.substr(0, whole));
        else
            send(guest_, rest.substr(0, whole));
        rest.remove_prefix(whole);
    }
    from.in.erase(0, from.in.size() - rest.size());
}

void Switch::send(Link& link, std::string_view frame) {
    if (!link.fd || link.out.size() > kMostPending) return;
    link.out += frame;
    write_to(link);
}

void Switch::write_to(Link& link) {
    if (!link.fd || link.out.empty()) return;
    const ssize_t n = ::send(link.fd.get(), link.out.data(), link.out.size(), MSG_NOSIGNAL);
    if (n > 0) link.out.erase(0, static_cast<std::size_t>(n));
    // A broken connection shows when it is read.
}

}  // namespace orrery::vm
