#include "tools/step/init_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace orrery::step {
namespace {

constexpr const char* kLocal = ".orrery-step";

std::string of_user() {
    const char* config = std::getenv("XDG_CONFIG_HOME");
    const char* home = std::getenv("HOME");
    if (config != nullptr && *config != '\0') return std::string(config) + "/orrery/step";
    if (home != nullptr && *home != '\0') return std::string(home) + "/.config/orrery/step";
    return "";
}

}  // namespace

std::vector<std::string> init_files(std::string& note) {
    std::vector<std::string> files;
    std::error_code error;
    if (const std::string file = of_user(); !file.empty() && std::filesystem::is_regular_file(file, error))
        files.push_back(file);
    struct stat status{};
    if (::stat(kLocal, &status) != 0 || !S_ISREG(status.st_mode)) return files;
    if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        note =
            ".orrery-step is not read: it must be yours, and writable by nobody else ('source .orrery-step' "
            "runs it)";
        return files;
    }
    files.emplace_back(kLocal);
    return files;
}

}  // namespace orrery::step
