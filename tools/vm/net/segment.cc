#include "tools/vm/net/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

#include "tools/vm/runtime_dir.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestName = 15;  // leaves room for the rest of a socket's path, 107 bytes in all
constexpr int kNobody = -1;               // as a descriptor that poll() looks at
constexpr int kBacklog = kLargestNumber;  // every member can wait for one that has not begun to accept
constexpr int kPause = 50;                // milliseconds between two tries
constexpr unsigned kTriesToRemove = 10;

fs::path socket_of(const fs::path& directory, unsigned number) {
    return directory / fmt::format("{}.sock", number);
}

sockaddr_un address_of(const fs::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string text = path.string();
    std::memcpy(address.sun_path, text.data(), std::min(text.size(), sizeof address.sun_path - 1));
    return address;
}

Fd new_socket() {
    return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Until it is time for another try; false: somebody wants no more of them.
bool pause(int stop) {
    pollfd wanted{stop, POLLIN, 0};
    return ::poll(&wanted, 1, kPause) <= 0;
}

std::unexpected<Failure> stopped() {
    return fail("--net: stopped before the run was on the network");
}

// A connection to a member; none if there is no such member, and the socket of one that is gone is removed.
// One that is there and has no room for more is waited for: without it the segment would have a hole.
Result<std::optional<Fd>> reach(const fs::path& path, int stop,
                                std::chrono::steady_clock::duration patience) {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    const sockaddr_un address = address_of(path);
    for (;;) {
        Fd fd = new_socket();
        if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
        if (errno == EINTR) continue;
        if (errno == ECONNREFUSED) ::unlink(path.c_str());
        if (errno != EAGAIN) return std::nullopt;
        if (std::chrono::steady_clock::now() >= give_up)
            return fail(
                fmt::format("--net: run {} of this name answers nobody: is it stopped? End it, or "
                            "try again when it has started",
                            path.stem().string()));
        if (!pause(stop)) return stopped();
    }
}

// The directory, locked; none if somebody else has locked it. The last member removes it, so what was locked
// may be gone already.
Result<std::optional<Fd>> try_lock(const fs::path& path) {
    for (;;) {
        if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
            return fail(fmt::format("--net: cannot make {}: {}", path.string(), std::strerror(errno)));
        Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!fd && errno == ENOENT) continue;
        struct stat opened;
        struct stat named;
        if (!fd || ::fstat(fd.get(), &opened) != 0 || opened.st_uid != ::getuid() ||
            (opened.st_mode & 077) != 0)
            return fail(
                fmt::format("--net: {} is not a directory of yours alone: remove it, or take another name",
                            path.string()));
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK) return std::nullopt;
            return fail(fmt::format("--net: cannot lock {}: {}", path.string(), std::strerror(errno)));
        }
        if (::stat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino) return fd;
    }
}

// Who holds the lock may be waiting for a member, with the patience of its own run.
Result<Fd> lock_directory(const fs::path& path, int stop) {
    for (;;) {
        auto lock = try_lock(path);
        if (!lock) return std::unexpected(lock.error());
        if (*lock) return std::move(**lock);
        if (!pause(stop)) return stopped();
    }
}

Fd listen_at(const fs::path& path) {
    Fd fd = new_socket();
    const sockaddr_un address = address_of(path);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), kBacklog) != 0)
        fd.reset();
    return fd;
}

}  // namespace

std::optional<SegmentPlace> parse_place(const std::string& text) {
    SegmentPlace place{text.substr(0, text.find(':')), 0};
    if (place.name.empty() || place.name.size() > kLongestName ||
        place.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
            std::string::npos)
        return std::nullopt;
    if (place.name.size() == text.size()) return place;
    const char* begin = text.data() + place.name.size() + 1;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(begin, end, place.number);
    if (error != std::errc{} || rest != end || place.number < 1 || place.number > kLargestNumber)
        return std::nullopt;
    return place;
}

std::string segment_address(unsigned number) {
    return fmt::format("10.79.0.{}", number);
}

std::string segment_mac(unsigned number) {
    return fmt::format("52:54:00:4f:00:{:02x}", number);
}

Result<Segment> Segment::join(const SegmentPlace& place, int stop,
                              std::chrono::steady_clock::duration patience) {
    Segment segment;  // goes after the lock does, and takes it again
    const fs::path directory = runtime_base() / fmt::format("orrery-net-{}-{}", ::getuid(), place.name);
    const auto lock = lock_directory(directory, stop);
    if (!lock) return std::unexpected(lock.error());
    segment.directory_ = directory;
    for (unsigned number = 1; number <= kLargestNumber; ++number) {
        const fs::path path = socket_of(segment.directory_, number);
        if (std::error_code error; fs::exists(path, error)) {
            auto peer = reach(path, stop, patience);
            if (!peer) return std::unexpected(peer.error());
            if (*peer) {
                if (number == place.number)
                    return fail(fmt::format("--net {}:{}: another run has this number", place.name, number));
                segment.peers_.push_back(std::move(**peer));
                continue;
            }
        }
        if (segment.listener_ || (place.number != 0 && place.number != number)) continue;
        segment.listener_ = listen_at(path);
        if (!segment.listener_)
            return fail(fmt::format("--net: cannot listen at {}: {}", path.string(), std::strerror(errno)));
        segment.number_ = number;
    }
    if (!segment.listener_)
        return fail(fmt::format("--net {}: all {} numbers are taken", place.name, kLargestNumber));
    return segment;
}

Segment::~Segment() {
    if (directory_.empty()) return;
    if (listener_) ::unlink(socket_of(directory_, number_).c_str());
    // If it was the last. One that leaves holds the lock for a moment only; one that joins and waits for a
    // member does so for long, and removes the directory itself when it leaves.
    for (unsigned tries = 0; tries < kTriesToRemove; ++tries) {
        const auto lock = try_lock(directory_);
        if (lock && *lock) ::rmdir(directory_.c_str());
        if (!lock || *lock) return;
        pause(kNobody);
    }
}

std::optional<Fd> Segment::accept() const {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return std::nullopt;
    return fd;
}

}  // namespace orrery::vm
