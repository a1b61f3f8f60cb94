#include "tools/vm/runtime_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "orrery-vm-";
constexpr std::size_t kMaxBase = 60;        // leaves room for the rest of a socket's name, 107 bytes in all
constexpr std::time_t kYoungestStale = 60;  // seconds: a run that is just starting may not hold its lock yet

Fd lock(const fs::path& path) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
    return fd;
}

void sweep(const fs::path& base) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(base, error)) {
        struct stat info;
        if (!entry.path().filename().string().starts_with(kPrefix) ||
            ::lstat(entry.path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
            info.st_uid != ::getuid() || std::time(nullptr) - info.st_mtime < kYoungestStale)
            continue;
        if (const Fd held = lock(entry.path())) fs::remove_all(entry.path(), error);
    }
}

}  // namespace

fs::path runtime_base() {
    const char* xdg = std::getenv("XDG_RUNTIME_DIR");
    if (xdg != nullptr && xdg[0] == '/' && std::strlen(xdg) <= kMaxBase && ::access(xdg, W_OK) == 0)
        return xdg;
    return "/tmp";
}

Result<RuntimeDir> RuntimeDir::make() {
    const fs::path base = runtime_base();
    sweep(base);
    std::string name = (base / fmt::format("{}XXXXXX", kPrefix)).string();
    if (::mkdtemp(name.data()) == nullptr)
        return fail(fmt::format("cannot make {}: {}", name, std::strerror(errno)));
    Fd held = lock(name);
    return RuntimeDir(name, std::move(held));
}

RuntimeDir::~RuntimeDir() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
}

}  // namespace orrery::vm
