// A file that is open.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

namespace orrery::prof {

inline std::string reason() {
    return std::generic_category().message(errno);
}

class File {
  public:
    File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    bool is_open() const { return fd_ >= 0; }
    bool is_regular() const {
        struct stat found{};
        return ::fstat(fd_, &found) == 0 && S_ISREG(found.st_mode);
    }
    // In a folder that a VM shares with its host (9P). The kernel asks the host what file system it is, so
    // the type that statfs() has is the host's.
    bool is_with_host() const {
        struct stat found{};
        if (::fstat(fd_, &found) != 0) return false;
        const std::string device = fmt::format(" {}:{} ", major(found.st_dev), minor(found.st_dev));
        std::ifstream mounts("/proc/self/mountinfo");
        for (std::string line; std::getline(mounts, line);) {
            const auto type = line.find(" - ");
            if (type != std::string::npos && line.compare(type, 6, " - 9p ") == 0 && line.find(device) < type)
                return true;
        }
        return false;
    }
    bool write(const void* data, std::size_t bytes) const {
        const char* at = static_cast<const char*>(data);
        while (bytes > 0) {
            const ssize_t done = ::write(fd_, at, bytes);
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) return false;
            at += done;
            bytes -= static_cast<std::size_t>(done);
        }
        return true;
    }
    // Less than was asked for at its end only. Nothing: it could not be read, and reason() says why.
    std::optional<std::size_t> read(void* data, std::size_t bytes, std::uint64_t offset) const {
        std::size_t done = 0;
        while (done < bytes) {
            const ssize_t got = ::pread(fd_, static_cast<char*>(data) + done, bytes - done,
                                        static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return {};
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }
    bool is_stored() const { return ::fdatasync(fd_) == 0; }
    // What was written is gone, and the next is written in its place.
    bool empty() const { return ::ftruncate(fd_, 0) == 0 && ::lseek(fd_, 0, SEEK_SET) == 0; }
    // It is still the one of this name.
    bool is_at(const std::string& path) const {
        struct stat open{}, there{};
        return ::fstat(fd_, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
               open.st_dev == there.st_dev && open.st_ino == there.st_ino;
    }
    std::uint64_t size() const {
        const off_t end = ::lseek(fd_, 0, SEEK_END);
        return end < 0 ? 0 : static_cast<std::uint64_t>(end);
    }

  private:
    const int fd_;
};

}  // namespace orrery::prof
