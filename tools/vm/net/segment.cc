#include "tools/vm/net/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "tools/vm/runtime_dir.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestName = 15;  // leaves room for the rest of a socket's path, 107 bytes in all
constexpr int kBacklog = kLargestNumber;  // every member can wait for one that has not begun to accept
constexpr auto kPause = std::chrono::milliseconds(50);

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

// A connection to a member; none if there is no such member, and the socket of one that is gone is removed.
// One that is there and has no room for more is waited for: without it the segment would have a hole.
Result<std::optional<Fd>> reach(const fs::path& path, std::chrono::steady_clock::duration patience) {
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
        std::this_thread::sleep_for(kPause);
    }
}

// The directory, locked. The last member removes it, so what was locked may be gone already.
Result<Fd> lock_directory(const fs::path& path) {
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
        while (::flock(fd.get(), LOCK_EX) != 0 && errno == EINTR) {
        }
        if (::stat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino) return fd;
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

Result<Segment> Segment::join(const SegmentPlace& place, std::chrono::steady_clock::duration patience) {
    Segment segment;
    segment.directory_ = runtime_base() / fmt::format("orrery-net-{}-{}", ::getuid(), place.name);
    const auto lock = lock_directory(segment.directory_);
    if (!lock) return std::unexpected(lock.error());
    for (unsigned number = 1; number <= kLargestNumber; ++number) {
        const fs::path path = socket_of(segment.directory_, number);
        if (std::error_code error; fs::exists(path, error)) {
            auto peer = reach(path, patience);
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
    const auto lock = lock_directory(directory_);
    if (listener_) ::unlink(socket_of(directory_, number_).c_str());
    ::rmdir(directory_.c_str());  // if it was the last
}

std::optional<Fd> Segment::accept() const {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return std::nullopt;
    return fd;
}

}  // namespace orrery::vm
