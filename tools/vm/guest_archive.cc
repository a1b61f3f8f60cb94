#include "tools/vm/guest_archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tools/vm/debug_info.h"
#include "tools/vm/files.h"
#include "tools/vm/programs.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxCpioFile = 0xffffffff;  // eight hexadecimal digits of the format

Result<void> fits_cpio(const fs::path& host) {
    std::error_code error;
    const auto size = fs::file_size(host, error);
    if (error) return fail(fmt::format("cannot read {}: {}", host.string(), error.message()));
    if (size > kMaxCpioFile) return fail(fmt::format("{} is larger than 4 GiB: use --share", host.string()));
    return {};
}

// Directories that a Debian has as links into /usr, and the loader looks into by itself.
constexpr std::array<std::string_view, 4> kInUsr = {"bin", "sbin", "lib", "lib64"};
constexpr std::string_view kLibraries = "/usr/lib/x86_64-linux-gnu";

std::string merged(std::string_view path) {
    const std::string_view first = path.substr(1, path.find('/', 1) - 1);
    const bool in_usr = std::find(kInUsr.begin(), kInUsr.end(), first) != kInUsr.end();
    return (in_usr ? "/usr" : "") + std::string(path);
}

}  // namespace

std::uint64_t size_of_all(const fs::path& host) {
    std::error_code error;
    if (fs::is_regular_file(host, error)) return fs::file_size(host, error);
    std::uint64_t bytes = 0;
    fs::recursive_directory_iterator entry(host, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        std::error_code unreadable;  // carry() says so
        if (!entry->is_regular_file(unreadable) || entry->is_symlink(unreadable)) continue;
        if (const auto size = entry->file_size(unreadable); !unreadable) bytes += size;
    }
    return bytes;
}

std::string GuestArchive::at(std::string_view guest) const {
    return root_ ? root_->layer + merged(guest) : std::string(guest);
}

// Where a shared library of this host goes; empty: nowhere, because the guest has its own, which its programs
// were made with.
std::string GuestArchive::library_place(const std::string& library) const {
    if (!root_) return library;
    const std::string directory = merged(fs::path(library).parent_path().string());
    if (directory != kLibraries && directory != "/usr/lib64" && directory != "/usr/lib") return at(library);
    const std::string name = fs::path(library).filename().string();
    return root_->libraries.contains(name) ? "" : fmt::format("{}{}/{}", root_->layer, kLibraries, name);
}

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
        const std::string place = library_place(library);
        if (place.empty() || cpio_.contains(place)) continue;
        // A library goes in once, whatever its folder calls it.
        std::error_code error;
        const fs::path file_itself = fs::canonical(library, error);
        std::string real = place;
        if (!error && file_itself.parent_path() == fs::canonical(fs::path(library).parent_path(), error)) {
            const std::string own_name = file_itself.filename().string();
            real = (fs::path(place).parent_path() / own_name).string();
            if (real != place) cpio_.symlink(place, own_name);
        }
        if (cpio_.contains(real)) continue;
        const auto file = FileView::open(library);
        if (!file) return std::unexpected(file.error());
        cpio_.file(real, slim(file->bytes()), 0755);
    }
    return {};
}

// In an image there may be a debugger.
std::string GuestArchive::slim(std::string_view bytes) const {
    return root_ ? std::string(bytes) : without_debug_info(bytes);
}

Result<void> GuestArchive::need(const fs::path& host, const std::string& guest) {
    if (cpio_.contains(at(guest))) return {};
    if (auto fits = fits_cpio(host); !fits) return fits;
    const auto file = FileView::open(host);
    if (!file) return std::unexpected(file.error());
    struct stat info;
    const bool executable = ::stat(host.c_str(), &info) == 0 && (info.st_mode & 0111) != 0;
    const std::string loader = elf_interpreter(file->bytes());
    cpio_.file(at(guest), slim(file->bytes()), executable ? 0755 : 0644);
    return loader.empty() ? Result<void>{} : add_libraries(host, loader, true);
}

Result<void> GuestArchive::carry_entry(const fs::path& host, const std::string& guest) {
    struct stat info;
    if (::lstat(host.c_str(), &info) != 0)
        return fail(fmt::format("cannot read {}: {}", host.string(), std::strerror(errno)));
    std::error_code error;
    if (S_ISLNK(info.st_mode)) {
        cpio_.symlink(at(guest), fs::read_symlink(host, error).string());
        return {};
    }
    if (S_ISDIR(info.st_mode)) {
        cpio_.directory(at(guest), info.st_mode & 07777);
        return {};
    }
    if (!S_ISREG(info.st_mode))
        return fail(fmt::format("--file: {} is neither a file nor a folder nor a link", host.string()));
    if (auto fits = fits_cpio(host); !fits) return fits;
    auto bytes = read_file(host);
    if (!bytes) return std::unexpected(bytes.error());
    if (!cpio_.file(at(guest), *bytes, info.st_mode & 07777)) return {};
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
    const auto file = FileView::open(host);
    if (!file) return std::unexpected(file.error());
    if (!runnable_here(file->bytes())) return {};
    return add_libraries(host, kHostLoader, false);
}

}  // namespace orrery::vm
