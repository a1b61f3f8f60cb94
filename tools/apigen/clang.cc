#include "tools/apigen/clang.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;

// Kernels include it; it declares nothing of the API.
constexpr const char* kForKernels = "kernel.h";

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
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / "orrery"))
        headers.push_back(entry.path());
    std::ranges::sort(headers);
    std::string includes;
    for (const auto& header : headers) {
        if (header.extension() == ".h" && header.filename() != kForKernels)
            includes += fmt::format(" -include '{}'", header.string());
    }
    return output_of(
        fmt::format("echo '{}' | clang-19 -std=c11 -I'{}'{} {} -x c -", source, folder, includes, options));
}

}  // namespace orrery::apigen
