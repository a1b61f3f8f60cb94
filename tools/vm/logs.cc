#include "tools/vm/logs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <vector>

#include "tools/vm/tree.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kKeptRuns = 50;
constexpr std::uintmax_t kTailBytes = 16384;

// Names begin with the time, so the order of names is that of age. A run that is still going is among the
// newest.
void remove_oldest(const fs::path& base) {
    std::error_code error;
    std::vector<fs::path> runs;
    for (const auto& entry : fs::directory_iterator(base, error))
        if (entry.is_directory(error)) runs.push_back(entry.path());
    std::sort(runs.begin(), runs.end());
    for (std::size_t i = 0; i + kKeptRuns < runs.size(); ++i)
        fs::remove_all(runs[i], error);
}

}  // namespace

Result<fs::path> make_log_dir(const fs::path& wanted) {
    std::error_code error;
    fs::path path = wanted;
    if (path.empty()) {
        const fs::path base = source_dir() / "build/vm";
        fs::create_directories(base, error);
        remove_oldest(base);
        path = base / fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), ::getpid());
    }
    fs::create_directories(path, error);
    if (error) return fail(fmt::format("cannot make {}: {}", path.string(), error.message()));
    return fs::absolute(path);
}

std::string tail(const fs::path& log, std::size_t lines) {
    std::ifstream file(log, std::ios::binary | std::ios::ate);
    if (!file) return {};
    const auto size = static_cast<std::uintmax_t>(file.tellg());
    file.seekg(static_cast<std::streamoff>(size > kTailBytes ? size - kTailBytes : 0));
    std::vector<std::string> last;
    for (std::string line; std::getline(file, line);) {
        std::erase_if(line, [](unsigned char c) { return c < 0x20 && c != '\t'; });
        if (!line.empty()) last.push_back(std::move(line));
    }
    std::string text;
    for (std::size_t i = last.size() > lines ? last.size() - lines : 0; i < last.size(); ++i)
        text += "    " + last[i] + "\n";
    return text;
}

}  // namespace orrery::vm
