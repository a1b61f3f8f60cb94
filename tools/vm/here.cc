#include "tools/vm/here.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "tools/vm/programs.h"

namespace orrery::vm {

namespace fs = std::filesystem;

std::vector<fs::path> named_here(const std::vector<std::string>& command, const fs::path& folder) {
    std::vector<fs::path> found;
    for (const auto& word : words_of(command)) {
        const fs::path path = word;
        const fs::path within = path.lexically_normal();
        std::error_code error;
        if (word.find('/') == std::string::npos || path.is_absolute() || within.empty() ||
            *within.begin() == "..")
            continue;
        if (fs::exists(folder / within, error)) found.push_back(folder / within);
    }
    return found;
}

bool can_be_shown(const fs::path& folder) {
    constexpr std::array kWithAllBelow = {"bin",   "boot", "dev",  "etc", "lib",
                                          "lib64", "proc", "sbin", "sys", "usr"};
    constexpr std::array kThemselves = {"run", "share", "tmp", "var"};
    const fs::path below = folder.lexically_relative("/");
    if (below.empty() || below == ".") return false;
    const auto is_first = [&below](const char* name) { return *below.begin() == name; };
    if (std::any_of(kWithAllBelow.begin(), kWithAllBelow.end(), is_first)) return false;
    return std::distance(below.begin(), below.end()) > 1 ||
           std::none_of(kThemselves.begin(), kThemselves.end(), is_first);
}

bool holds_home(const fs::path& folder, const fs::path& home) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(home, error);
    if (error || !real.is_absolute() || real == "/") return false;
    return *real.lexically_relative(folder).begin() != "..";
}

}  // namespace orrery::vm
