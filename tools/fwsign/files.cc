// SPDX-License-Identifier: MIT
#include "tools/fwsign/files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace orrery::fwsign {
namespace {

std::string failed(const char* what, const std::filesystem::path& path, int error) {
    return fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error));
}

bool write_all(int fd, std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

std::expected<Bytes, std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        return std::unexpected(fmt::format("cannot read {}: it is a directory", path.string()));
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::unexpected(failed("read", path, errno));
    // In steps: room for `limit` bytes would be set to zero for each small file.
    constexpr std::size_t kStep = 64 << 10;
    Bytes bytes;
    while (in && bytes.size() <= limit) {
        const std::size_t had = bytes.size();
        bytes.resize(had + kStep);
        in.read(reinterpret_cast<char*>(bytes.data() + had), kStep);
        bytes.resize(had + static_cast<std::size_t>(in.gcount()));
    }
    if (in.bad()) return std::unexpected(failed("read", path, errno));
    if (bytes.size() > limit)
        return std::unexpected(
            fmt::format("{} is longer than {} bytes: is it the right file?", path.string(), limit));
    return bytes;
}

std::expected<void, std::string> write_file(const std::filesystem::path& path,
                                            std::span<const std::uint8_t> bytes, unsigned mode) {
    std::string temporary = path.string() + ".XXXXXX";
    const int fd = ::mkstemp(temporary.data());
    if (fd < 0) return std::unexpected(failed("write beside", path, errno));
    const bool written = write_all(fd, bytes) && ::fchmod(fd, mode) == 0;
    int error = written ? 0 : errno;
    if (::close(fd) != 0 && error == 0) error = errno;
    if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error == 0) return {};
    ::unlink(temporary.c_str());
    return std::unexpected(failed("write", path, error));
}

}  // namespace orrery::fwsign
