#include "tools/apigen/releases.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;

std::pair<unsigned long, unsigned long> numbers(const std::string& version) {
    std::size_t end = 0;
    try {
        const unsigned long major = std::stoul(version, &end);
        if (end < version.size() && version[end] == '.') return {major, std::stoul(version.substr(end + 1))};
    } catch (const std::exception&) {
        // Told below.
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
