#include "tools/vm/cpio.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>

namespace orrery::vm {

namespace {

std::string_view without_slashes(std::string_view path) {
    while (path.starts_with('/'))
        path.remove_prefix(1);
    while (path.ends_with('/'))
        path.remove_suffix(1);
    return path;
}

}  // namespace

void Cpio::header(std::string_view name, unsigned mode, std::size_t size) {
    // inode, mode, uid, gid, links, mtime, size, device (2), rdevice (2), length of name with its NUL,
    // checksum
    fmt::format_to(std::back_inserter(archive_),
                   "070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
                   inode_++, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name.size() + 1, 0);
    archive_ += name;
    archive_ += '\0';
    pad();
}

void Cpio::pad() {
    archive_.append((4 - archive_.size() % 4) % 4, '\0');
}

bool Cpio::add(std::string_view path, unsigned mode, std::string_view data) {
    const std::string_view name = without_slashes(path);
    if (name.empty() || names_.contains(name)) return false;
    if (const auto slash = name.rfind('/'); slash != std::string_view::npos) directory(name.substr(0, slash));
    names_.emplace(name);
    header(name, mode, data.size());
    archive_ += data;
    pad();
    return true;
}

void Cpio::directory(std::string_view path, unsigned mode) {
    add(path, S_IFDIR | mode, {});
}

bool Cpio::file(std::string_view path, std::string_view bytes, unsigned mode) {
    return add(path, S_IFREG | mode, bytes);
}

bool Cpio::symlink(std::string_view path, std::string_view target) {
    return add(path, S_IFLNK | 0777, target);
}

bool Cpio::contains(std::string_view path) const {
    return names_.contains(without_slashes(path));
}

std::string Cpio::finish() {
    inode_ = 0;
    header("TRAILER!!!", 0, 0);
    return std::move(archive_);
}

}  // namespace orrery::vm
