#include "tools/vm/tree.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "tools/vm/process.h"

namespace orrery::vm {

namespace fs = std::filesystem;

fs::path source_dir() {
    return ORRERY_SOURCE_DIR;
}

Result<Tree> Tree::find() {
    const fs::path script = source_dir() / "tools/vm/tree.sh";
    auto text = capture({script.string(), "--path"});
    if (!text) {
        std::string reason = text.error().text;
        if (const auto at = reason.find("error: "); at != std::string::npos) reason.erase(0, at + 7);
        while (reason.ends_with('\n'))
            reason.pop_back();
        return fail(reason);
    }
    Tree tree;
    tree.path_ = text->substr(0, text->find('\n'));
    std::ifstream list(tree.path_ / "etc/orrery/kernels");
    for (Kernel kernel; list >> kernel.name >> kernel.release;)
        tree.kernels_.push_back(kernel);
    if (tree.kernels_.empty()) return fail(fmt::format("{} lists no kernels", tree.path_.string()));
    return tree;
}

Result<Kernel> Tree::kernel(const std::string& name_or_release) const {
    std::string known;
    for (const auto& kernel : kernels_) {
        if (kernel.name == name_or_release || kernel.release == name_or_release) return kernel;
        known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", kernel.name, kernel.release);
    }
    return fail(fmt::format("the VM tree has no kernel '{}'; it has {}", name_or_release, known), kExitUsage);
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
