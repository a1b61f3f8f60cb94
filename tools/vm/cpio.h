// Writes a cpio archive in the "newc" format, which the kernel unpacks as its initial root file system.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace orrery::vm {

class Cpio {
  public:
    // Guest paths are absolute; directories above them are made. A path given twice keeps its first entry,
    // except that file() and symlink() on a path that is already there return false.
    void directory(std::string_view path, unsigned mode = 0755);
    bool file(std::string_view path, std::string_view bytes, unsigned mode = 0644);
    bool symlink(std::string_view path, std::string_view target);
    bool contains(std::string_view path) const;

    // Ends the archive. Nothing may be added after it.
    std::string finish();

  private:
    bool add(std::string_view path, unsigned mode, std::string_view data);
    void header(std::string_view name, unsigned mode, std::size_t size);
    void pad();

    std::string archive_;
    std::set<std::string, std::less<>> names_;
    std::uint32_t inode_ = 1;
};

}  // namespace orrery::vm
