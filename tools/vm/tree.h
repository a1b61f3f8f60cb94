// The VM tree that tools/vm/tree.sh makes: QEMU, the guest kernels and their modules.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/vm/options.h"
#include "tools/vm/result.h"

namespace orrery::vm {

struct Kernel {
    std::string name;               // "lts", "backports", "debug" or "own"
    std::string release;            // as uname -r says
    std::filesystem::path image;    // what QEMU boots
    std::filesystem::path modules;  // the directory of modules.dep; empty: it has none
    // How many times as long as a kernel of Debian's this one may take; it stretches every limit of a run.
    unsigned patience = 1;
};

class Tree {
  public:
    // Asks tree.sh of this checkout where the tree is. A missing tree is an error that names the command to
    // make it.
    static Result<Tree> find();

    const std::filesystem::path& path() const { return path_; }
    // A kernel of the tree, or "debug": the one that tools/vm/debug-kernel.sh built.
    Result<Kernel> kernel(const std::string& name_or_release) const;

    // A command line that starts a program of the tree through the tree's own loader: no chroot, no root.
    std::vector<std::string> program(const std::string& path_in_tree) const;

    // A program of the tree that guests may ask for, as it fits a kernel; nothing if the tree has none.
    std::optional<std::filesystem::path> guest_program(const std::string& name, const Kernel& kernel) const;

    // Where things made out of this tree are kept between runs.
    std::filesystem::path cache() const;

  private:
    std::filesystem::path path_;
    std::vector<Kernel> kernels_;
};

// The kernel that --kernel names: one of the tree's, or a bzImage (what contains a '/') with the modules of
// --modules.
Result<Kernel> find_kernel(const Tree& tree, const Options& options);

// What `uname -r` will say under this bzImage, read out of its boot header; nothing if it is no bzImage.
std::optional<std::string> bzimage_release(const std::string& image);

// An image that tools/vm/root.sh makes, for --root.
struct RootImage {
    std::filesystem::path image;
    std::set<std::string, std::less<>> libraries;  // names of the shared libraries in its default directories
};

// The one of that name. A missing one is an error that names the command to make it.
Result<RootImage> find_root(const std::string& name);

std::filesystem::path source_dir();

}  // namespace orrery::vm
