#include "tools/vm/guest_archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "tools/vm/modules.h"
#include "tools/vm/programs.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxCpioFile = 0xffffffff;  // eight hexadecimal digits of the format

Result<std::string> bytes_of(const fs::path& host) {
    std::error_code error;
    const auto size = fs::file_size(host, error);
    if (error) return fail(fmt::format("cannot read {}: {}", host.string(), error.message()));
    if (size > kMaxCpioFile) return fail(fmt::format("{} is larger than 4 GiB: use --share", host.string()));
    return read_file(host);
}

}  // namespace

Result<void> GuestArchive::add_libraries(const fs::path& host, const std::string& loader, bool all) {
    auto closure = library_closure(host, loader, libraries_);
    if (!closure && all) return std::unexpected(closure.error());
    if (!closure) {
        notes_.push_back(closure.error().text);
        return {};
    }
    if (!closure->missing.empty()) {
        const std::string text = fmt::format("{} needs libraries that are not here: {}", host.string(),
                                             fmt::join(closure->missing, ", "));
        if (all) return fail(text);
        notes_.push_back(text);
    }
    for (const auto& library : closure->paths) {
        if (cpio_.contains(library)) continue;
        auto bytes = read_file(library);
        if (!bytes) return std::unexpected(bytes.error());
        cpio_.file(library, *bytes, 0755);
    }
    return {};
}

Result<void> GuestArchive::need(const fs::path& host, const std::string& guest) {
    if (cpio_.contains(guest)) return {};
    auto bytes = bytes_of(host);
    if (!bytes) return std::unexpected(bytes.error());
    struct stat info;
    const bool executable = ::stat(host.c_str(), &info) == 0 && (info.st_mode & 0111) != 0;
    cpio_.file(guest, *bytes, executable ? 0755 : 0644);
    const std::string loader = elf_interpreter(*bytes);
    return loader.empty() ? Result<void>{} : add_libraries(host, loader, true);
}

Result<void> GuestArchive::carry_entry(const fs::path& host, const std::string& guest) {
    struct stat info;
    if (::lstat(host.c_str(), &info) != 0)
        return fail(fmt::format("cannot read {}: {}", host.string(), std::strerror(errno)));
    std::error_code error;
    if (S_ISLNK(info.st_mode)) {
        cpio_.symlink(guest, fs::read_symlink(host, error).string());
        return {};
    }
    if (S_ISDIR(info.st_mode)) {
        cpio_.directory(guest, info.st_mode & 07777);
        return {};
    }
    if (!S_ISREG(info.st_mode))
        return fail(fmt::format("--file: {} is neither a file nor a folder nor a link", host.string()));
    auto bytes = bytes_of(host);
    if (!bytes) return std::unexpected(bytes.error());
    if (!cpio_.file(guest, *bytes, info.st_mode & 07777)) return {};
    const std::string loader = runnable_here(*bytes) ? elf_interpreter(*bytes) : "";
    return loader.empty() ? Result<void>{} : add_libraries(host, loader, false);
}

Result<void> GuestArchive::carry(const fs::path& given, const std::string& guest) {
    std::error_code error;
    const fs::path host = fs::canonical(given, error);  // a link that is named itself is followed
    if (error) return fail(fmt::format("--file: {}: {}", given.string(), error.message()));
    if (auto done = carry_entry(host, guest); !done || !fs::is_directory(host, error)) return done;
    fs::recursive_directory_iterator entry(host, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
        if (auto done =
                carry_entry(entry->path(), guest + "/" + entry->path().lexically_relative(host).string());
            !done)
            return done;
    if (error) return fail(fmt::format("cannot read all of {}: {}", host.string(), error.message()));
    return {};
}

Result<void> GuestArchive::libraries_of(const fs::path& host) {
    auto bytes = bytes_of(host);
    if (!bytes) return std::unexpected(bytes.error());
    if (!runnable_here(*bytes)) return {};
    return add_libraries(host, kHostLoader, false);
}

}  // namespace orrery::vm
