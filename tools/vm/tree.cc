#include "tools/vm/tree.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "tools/vm/process.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr unsigned kDebugPatience = 6;

// The directory that a script of tools/vm names when it is asked for --path; its own message if it has none.
Result<fs::path> ask_for_path(const char* script) {
    auto text = capture({(source_dir() / "tools/vm" / script).string(), "--path"});
    if (text) return fs::path(text->substr(0, text->find('\n')));
    std::string reason = text.error().text;
    if (const auto at = reason.find("error: "); at != std::string::npos) reason.erase(0, at + 7);
    while (reason.ends_with('\n'))
        reason.pop_back();
    return fail(reason);
}

Result<Kernel> debug_kernel() {
    const auto directory = ask_for_path("debug-kernel.sh");
    if (!directory) return std::unexpected(directory.error());
    Kernel kernel{"debug", "", *directory / "vmlinuz", *directory / "modules", kDebugPatience};
    std::ifstream(*directory / "release") >> kernel.release;
    return kernel;
}

}  // namespace

fs::path source_dir() {
    return ORRERY_SOURCE_DIR;
}

Result<Tree> Tree::find() {
    const auto path = ask_for_path("tree.sh");
    if (!path) return std::unexpected(path.error());
    Tree tree;
    tree.path_ = *path;
    std::ifstream list(tree.path_ / "etc/orrery/kernels");
    for (std::string name, release; list >> name >> release;)
        tree.kernels_.push_back({name, release, tree.path_ / "boot" / ("vmlinuz-" + release),
                                 tree.path_ / "lib/modules" / release});
    if (tree.kernels_.empty()) return fail(fmt::format("{} lists no kernels", tree.path_.string()));
    return tree;
}

Result<Kernel> Tree::kernel(const std::string& name_or_release) const {
    if (name_or_release == "debug") return debug_kernel();
    std::string known;
    for (const auto& kernel : kernels_) {
        if (kernel.name == name_or_release || kernel.release == name_or_release) return kernel;
        known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", kernel.name, kernel.release);
    }
    return fail(
        fmt::format("the VM tree has no kernel '{}'; it has {}; there is also debug", name_or_release, known),
        kExitUsage);
}

std::vector<std::string> Tree::program(const std::string& path_in_tree) const {
    return {(path_ / "lib64/ld-linux-x86-64.so.2").string(), "--library-path",
            (path_ / "usr/lib/x86_64-linux-gnu").string(), (path_ / path_in_tree).string()};
}

fs::path Tree::cache() const {
    const char* xdg = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const fs::path base =
        xdg != nullptr && *xdg != '\0' ? fs::path(xdg) : fs::path(home ? home : "/tmp") / ".cache";
    return base / "orrery" / ("for-" + path_.filename().string());
}

}  // namespace orrery::vm
