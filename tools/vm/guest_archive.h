// What goes into the guest's initial root file system, with what it needs there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/vm/cpio.h"
#include "tools/vm/result.h"

namespace orrery::vm {

// A root for the command that is not the archive itself.
struct OtherRoot {
    std::string layer;                             // the folder of the archive that is laid over that root
    std::set<std::string, std::less<>> libraries;  // what that root has of its own, by name
};

// Bytes of a file, or of all files in a folder, without reading them.
std::uint64_t size_of_all(const std::filesystem::path& host);

class GuestArchive {
  public:
    // `libraries` is searched before the host's own directories of shared libraries.
    explicit GuestArchive(std::filesystem::path libraries, std::optional<OtherRoot> root = {})
        : libraries_(std::move(libraries)), root_(std::move(root)) {}

    Cpio& cpio() { return cpio_; }

    // Where in the archive the command sees this path. A Debian has /bin, /lib … in /usr.
    std::string at(std::string_view guest) const;

    // Guest paths below are those that the command sees.
    //
    // A file that is needed; a program with all of its libraries. They go in without debug information.
    Result<void> need(const std::filesystem::path& host, const std::string& guest);

    // A file or a folder as it is: bytes, modes, symbolic links. A program that this host can run brings its
    // libraries, as far as they are here; what is not here, or is foreign, is no obstacle.
    Result<void> carry(const std::filesystem::path& host, const std::string& guest);

    // Only the libraries of a program or library of this host.
    Result<void> libraries_of(const std::filesystem::path& host);

    // What carry() left out, a line each.
    const std::vector<std::string>& notes() const { return notes_; }

  private:
    Result<void> carry_entry(const std::filesystem::path& host, const std::string& guest);
    Result<void> add_libraries(const std::filesystem::path& host, const std::string& loader, bool all);

    std::string library_place(const std::string& library) const;
    std::string slim(std::string_view bytes) const;

    std::filesystem::path libraries_;
    std::optional<OtherRoot> root_;
    Cpio cpio_;
    std::vector<std::string> notes_;
};

}  // namespace orrery::vm
