#include "emulator/link/shared_area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace orrery::emu::link {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::unexpected<std::string> error(const char* what) {
    return std::unexpected(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

SharedArea::SharedArea(SharedArea&& other) noexcept
    : inbox_(std::exchange(other.inbox_, nullptr)), fd_(std::exchange(other.fd_, -1)) {}

SharedArea& SharedArea::operator=(SharedArea&& other) noexcept {
    if (this != &other) {
        reset();
        inbox_ = std::exchange(other.inbox_, nullptr);
        fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
}

SharedArea::~SharedArea() {
    reset();
}

void SharedArea::reset() {
    if (inbox_ != nullptr) ::munmap(inbox_, sizeof(Inbox));
    if (fd_ >= 0) ::close(fd_);
    inbox_ = nullptr;
    fd_ = -1;
}

std::expected<SharedArea, std::string> SharedArea::map(int fd) {
    SharedArea area;
    area.fd_ = fd;
    void* at = ::mmap(nullptr, sizeof(Inbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return error("cannot map the link's shared memory");
    area.inbox_ = static_cast<Inbox*>(at);
    return area;
}

std::expected<SharedArea, std::string> SharedArea::create() {
    const int fd = ::memfd_create("orrery-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return error("cannot make the link's shared memory");
    if (::ftruncate(fd, static_cast<off_t>(sizeof(Inbox))) != 0 ||
        ::fcntl(fd, F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
        auto failed = error("cannot size and seal the link's shared memory");
        ::close(fd);
        return failed;
    }
    return map(fd);
}

std::expected<SharedArea, std::string> SharedArea::adopt(int fd) {
    struct stat info{};
    const int seals = ::fcntl(fd, F_GET_SEALS);
    const char* why = nullptr;
    if (seals < 0 || (seals & kSeals) != kSeals) {
        why = "the peer's shared memory is not sealed against resizing";
    } else if (::fstat(fd, &info) != 0 || info.st_size != static_cast<off_t>(sizeof(Inbox))) {
        why = "the peer's shared memory has the wrong size";
    }
    if (why != nullptr) {
        ::close(fd);
        return std::unexpected(std::string(why));
    }
    return map(fd);
}

void put_payload(Channel& channel, std::uint64_t at, const void* from, std::uint64_t bytes) {
    const auto* data = static_cast<const std::uint8_t*>(from);
    const std::uint64_t front = std::min(bytes, kPayloadBytes - at);
    std::memcpy(channel.payload + at, data, front);
    std::memcpy(channel.payload, data + front, bytes - front);
}

void get_payload(const Channel& channel, std::uint64_t at, void* to, std::uint64_t bytes) {
    auto* data = static_cast<std::uint8_t*>(to);
    const std::uint64_t front = std::min(bytes, kPayloadBytes - at);
    std::memcpy(data, channel.payload + at, front);
    std::memcpy(data + front, channel.payload, bytes - front);
}

void copy_payload(const Channel& from, std::uint64_t from_at, Channel& to, std::uint64_t to_at,
                  std::uint64_t bytes) {
    while (bytes != 0) {
        const std::uint64_t piece = std::min({bytes, kPayloadBytes - from_at, kPayloadBytes - to_at});
        std::memcpy(to.payload + to_at, from.payload + from_at, piece);
        from_at = (from_at + piece) % kPayloadBytes;
        to_at = (to_at + piece) % kPayloadBytes;
        bytes -= piece;
    }
}

}  // namespace orrery::emu::link
