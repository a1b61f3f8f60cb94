#include "tools/apigen/releases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;

std::pair<unsigned long, unsigned long> numbers(const std::string& version) {
    std::pair<unsigned long, unsigned long> found;
    const char* const end = version.data() + version.size();
    const auto [dot, first] = std::from_chars(version.data(), end, found.first);
    if (first == std::errc{} && dot != end && *dot == '.') {
        const auto [rest, second] = std::from_chars(dot + 1, end, found.second);
        if (second == std::errc{} && rest == end) return found;
    }
    throw Problem(version + " is no version of a release: MAJOR.MINOR");
}

}  // namespace

std::vector<Release> read_releases(const std::string& folder) {
    std::vector<Release> releases;
    for (const auto& entry : fs::directory_iterator(folder)) {
        Release release{entry.path().filename(), {}};
        (void)numbers(release.version);
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) {
            if (!line.empty() && !line.starts_with('#')) release.functions.push_back(line);
        }
        releases.push_back(std::move(release));
    }
    if (releases.empty()) throw Problem(folder + " holds no release");
    std::ranges::sort(releases, {}, [](const Release& release) { return numbers(release.version); });
    return releases;
}

void check_releases(const std::vector<Release>& releases, const std::vector<Function>& functions,
                    const std::string& folder) {
    std::string problems;
    std::map<std::string, std::string> listed;  // with its release
    for (const Release& release : releases) {
        for (const std::string& name : release.functions) {
            if (!listed.emplace(name, release.version).second)
                problems += fmt::format("{}/{}: {} is listed twice\n", folder, release.version, name);
        }
    }
    for (const Function& function : functions) {
        if (listed.erase(function.name) != 0) continue;
        problems +=
            fmt::format("{} declares {}, which is in no release: add it to the list of the next one, {}/{}\n",
                        function.header, function.name, folder, "MAJOR.MINOR");
    }
    for (const auto& [name, version] : listed) {
        problems += fmt::format("{}/{} has {}, which no header declares: programs use it, so it cannot go\n",
                                folder, version, name);
    }
    if (!problems.empty()) throw Problem(problems);
}

}  // namespace orrery::apigen
