#include "tools/vm/run/taken_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "tools/vm/process.h"

namespace orrery::vm {

namespace fs = std::filesystem;
namespace {

constexpr int kHow = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// What is below the share may be another thing at every look, so it is the kernel that keeps to the folder.
Fd open_below(const fs::path& share, const fs::path& rest) {
    const Fd folder(::open(share.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return {};
    open_how how{};
    how.flags = kHow;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    return Fd(static_cast<int>(::syscall(SYS_openat2, folder.get(), rest.c_str(), &how, sizeof how)));
}

Fd open_only(const fs::path& file, const fs::path& share) {
    const fs::path whole = fs::absolute(file).lexically_normal();
    // The first folder on the way that is the share: the guest has made nothing of the way to it.
    fs::path folder = whole.root_path();
    const fs::path way = whole.relative_path();
    for (auto next = way.begin(); !share.empty() && next != way.end(); folder /= *next++) {
        std::error_code error;
        if (!fs::equivalent(folder, share, error)) continue;
        fs::path rest;
        for (; next != way.end(); ++next)
            rest /= *next;
        return open_below(share, rest);
    }
    return Fd(::open(whole.c_str(), kHow));
}

}  // namespace

Result<OpenFile> open_taken(const fs::path& file, const fs::path& share, std::uint64_t most, Taken what) {
    Fd in = open_only(file, share);
    if (!in)
        return errno == ELOOP || errno == EXDEV ? fail("it is a link, or behind one; name the file itself")
                                                : fail(std::strerror(errno));
    struct stat about{};
    if (::fstat(in.get(), &about) != 0) return fail(std::strerror(errno));
    if (!S_ISREG(about.st_mode)) return fail("it is no regular file");
    const auto size = static_cast<std::uint64_t>(about.st_size);
    if (size > most && what == Taken::kWhole)
        return fail(fmt::format("it has {} bytes; {} are the most", size, most));
    const std::uint64_t bytes = std::min(size, most);
    return OpenFile{std::move(in), size - bytes, bytes};
}

}  // namespace orrery::vm
