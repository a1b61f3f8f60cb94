#include "umd/samples/histogram/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace {

class File {
  public:
    explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (fd_ < 0) throw InputError(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    ~File() { ::close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int fd() const { return fd_; }

  private:
    int fd_;
};

}  // namespace

std::vector<std::string> default_files() {
    std::vector<std::string> files;
    utsname system{};
    ::uname(&system);
    for (const std::string& path :
         {std::string("/usr/share/common-licenses/GPL-3"), fmt::format("/boot/vmlinuz-{}", system.release)}) {
        if (::access(path.c_str(), R_OK) == 0) files.push_back(path);
    }
    return files;
}

std::vector<std::byte> read_input(const std::string& path, std::size_t limit) {
    const File file(path);
    struct stat info{};
    if (::fstat(file.fd(), &info) != 0) throw InputError(fmt::format("{}: {}", path, std::strerror(errno)));
    if (!S_ISREG(info.st_mode)) throw InputError(fmt::format("{}: not a regular file", path));
    const auto size = static_cast<std::size_t>(info.st_size);
    if (size == 0) throw InputError(fmt::format("{}: the file is empty, there is nothing to count", path));
    if (size > limit) {
        throw InputError(fmt::format(
            "{}: {} bytes do not fit into the {} bytes that are free on the cards: take a smaller file, more "
            "cards (--cards) or larger ones (orrery-vm --vram)",
            path, size, limit));
    }
    std::vector<std::byte> bytes(size);
    std::size_t got = 0;
    while (got < size) {
        const ssize_t n = ::read(file.fd(), bytes.data() + got, size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw InputError(fmt::format("{}: {}", path, std::strerror(errno)));
        if (n == 0) throw InputError(fmt::format("{}: it became shorter while it was read", path));
        got += static_cast<std::size_t>(n);
    }
    return bytes;
}
