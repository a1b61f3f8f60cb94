#include "tools/apigen/clang.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;

// Headers whose names begin so are for kernels, and declare nothing of the API.
constexpr std::string_view kForKernels = "kernel";

// Freestanding: the headers of the C library of the machine that builds take no part.
constexpr const char* kClang = "clang-19 --target=x86_64-linux-gnu -ffreestanding -std=c11";

// Text that a child can open: it may be longer than a command line.
class Text {
  public:
    explicit Text(const std::string& text) : fd_(::memfd_create("orrery-apigen", 0)) {
        if (fd_ < 0 || ::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            throw Problem("no memory for the source of a probe");
    }
    ~Text() { ::close(fd_); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    std::string path() const { return fmt::format("/dev/fd/{}", fd_); }

  private:
    const int fd_;
};

std::string output_of(const std::string& command) {
    std::FILE* const pipe = ::popen(command.c_str(), "re");
    if (pipe == nullptr) throw Problem("cannot start: " + command);
    std::string text;
    std::array<char, 65536> piece{};
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
        text.append(piece.data(), got);
    if (::pclose(pipe) != 0)
        throw Problem("failed (is clang-19 installed, and are the headers C?): " + command);
    return text;
}

}  // namespace

std::string clang(const std::string& folder, const std::string& options, const std::string& source) {
    std::vector<fs::path> headers;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(folder) / "orrery"))
        headers.push_back(entry.path());
    std::ranges::sort(headers);
    std::string includes;
    for (const auto& header : headers) {
        if (header.extension() == ".h" && !header.filename().string().starts_with(kForKernels))
            includes += fmt::format(" -include '{}'", header.string());
    }
    const Text text(source + "\n");
    return output_of(fmt::format("{} -I'{}'{} {} -x c {}", kClang, folder, includes, options, text.path()));
}

bool OwnFiles::has(const std::string& file) {
    const auto [known, is_new] = known_.try_emplace(file, false);
    if (is_new) {
        const fs::path path = fs::weakly_canonical(file);
        known->second = std::ranges::mismatch(folder_, path).in1 == folder_.end();
    }
    return known->second;
}

}  // namespace orrery::apigen
