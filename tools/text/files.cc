#include "tools/text/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace orrery::text {
namespace {

struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, Close>;

}  // namespace

Result<std::vector<std::uint8_t>> read_file(const std::string& file) {
    const FilePtr in(std::fopen(file.c_str(), "rb"));
    if (!in) return fail("{}: {}", file, std::strerror(errno));
    std::vector<std::uint8_t> bytes;
    std::uint8_t buffer[65536];
    std::size_t got = sizeof buffer;
    while (got == sizeof buffer) {
        got = std::fread(buffer, 1, sizeof buffer, in.get());
        bytes.insert(bytes.end(), buffer, buffer + got);
    }
    if (std::ferror(in.get()) != 0) return fail("{}: {}", file, std::strerror(errno));
    return bytes;
}

Result<void> write_file(const std::string& file, std::string_view bytes) {
    FilePtr out(std::fopen(file.c_str(), "wb"));
    if (!out) return fail("{}: {}", file, std::strerror(errno));
    const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), out.get()) == bytes.size();
    if (std::fclose(out.release()) != 0 || !whole) return fail("{}: {}", file, std::strerror(errno));
    return {};
}

}  // namespace orrery::text
