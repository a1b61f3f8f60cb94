#include "emulator/sync/area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace orrery::emu::sync {

namespace {

std::unexpected<std::string> failed(const std::filesystem::path& file, const char* what) {
    return std::unexpected(fmt::format("{}: {}: {}", file.string(), what, std::strerror(errno)));
}

std::unexpected<std::string> not_ours(const std::filesystem::path& file) {
    return std::unexpected(
        fmt::format("{}: is not the file of a lockstep of this build: remove it", file.string()));
}

struct flock byte(unsigned slot, int type) {
    struct flock lock{};
    lock.l_type = static_cast<short>(type);
    lock.l_whence = SEEK_SET;
    lock.l_start = slot;
    lock.l_len = 1;
    return lock;
}

}  // namespace

std::expected<SharedArea, std::string> SharedArea::open(const std::filesystem::path& file) {
    UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return failed(file, "the lockstep's file cannot be opened");
    // Whoever comes first fills it in; the others wait for that, less than a moment.
    struct flock making = byte(kMembers, F_WRLCK);
    for (unsigned tries = 0; ::fcntl(fd.get(), F_OFD_SETLK, &making) != 0; ++tries) {
        if (tries == 500) return failed(file, "another process keeps it locked");
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return failed(file, "cannot be read");
    const bool is_new = info.st_size == 0;
    if (is_new && ::ftruncate(fd.get(), sizeof(Area)) != 0)
        return failed(file, "cannot be made large enough");
    if (!is_new && info.st_size != static_cast<off_t>(sizeof(Area))) return not_ours(file);
    void* at = ::mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) return failed(file, "cannot be mapped");
    Area* area = static_cast<Area*>(at);
    if (is_new) {
        area = new (at) Area{};
        area->version = kVersion;
        area->magic = kMagic;
    }
    making = byte(kMembers, F_UNLCK);
    ::fcntl(fd.get(), F_OFD_SETLK, &making);
    SharedArea made(std::move(fd), area);
    if (area->magic != kMagic || area->version != kVersion) return not_ours(file);
    return made;
}

SharedArea::SharedArea(SharedArea&& other) noexcept
    : fd_(std::move(other.fd_)), area_(std::exchange(other.area_, nullptr)) {}

SharedArea::~SharedArea() {
    if (area_ != nullptr) ::munmap(area_, sizeof(Area));
}

bool SharedArea::hold(unsigned slot) const {
    struct flock lock = byte(slot, F_WRLCK);
    return ::fcntl(fd_.get(), F_OFD_SETLK, &lock) == 0;
}

void SharedArea::give_back(unsigned slot) const {
    struct flock lock = byte(slot, F_UNLCK);
    ::fcntl(fd_.get(), F_OFD_SETLK, &lock);
}

bool SharedArea::held_by_another(unsigned slot) const {
    struct flock lock = byte(slot, F_WRLCK);
    return ::fcntl(fd_.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace orrery::emu::sync
