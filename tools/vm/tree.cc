#include "tools/vm/tree.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "tools/vm/files.h"
#include "tools/vm/process.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr unsigned kDebugPatience = 6;

// The directory that a script of tools/vm names when it is asked for --path; its own message if it has none.
Result<fs::path> ask_for_path(const char* script, const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv{(source_dir() / "tools/vm" / script).string(), "--path"};
    argv.insert(argv.end(), more.begin(), more.end());
    auto text = capture(argv);
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

// The directory of modules.dep in what --modules names: itself, or where `make modules_install` puts it.
Result<fs::path> own_modules(const fs::path& given, const std::string& release) {
    std::error_code error;
    for (const auto& directory : {given, given / "lib/modules" / release, given / release})
        if (fs::exists(directory / "modules.dep", error)) return fs::absolute(directory);
    return fail(fmt::format(
        "--modules {}: no modules of kernel {} (neither modules.dep nor lib/modules/{}/modules.dep): "
        "'make modules_install INSTALL_MOD_PATH=DIRECTORY' in the kernel's build puts them there",
        given.string(), release, release));
}

Result<Kernel> own_kernel(const Options& options) {
    Kernel kernel{"own", "", fs::absolute(options.kernel), {}};
    auto image = read_file(kernel.image);
    if (!image) return fail(fmt::format("--kernel: {}", image.error().text));
    const auto release = bzimage_release(*image);
    if (!release)
        return fail(
            fmt::format("--kernel {}: this is no bzImage; a kernel's build makes it at arch/x86/boot/bzImage",
                        options.kernel));
    kernel.release = *release;
    if (!options.modules.empty()) {
        auto modules = own_modules(options.modules, *release);
        if (!modules) return std::unexpected(modules.error());
        kernel.modules = *modules;
    }
    return kernel;
}

}  // namespace

std::optional<std::string> bzimage_release(const std::string& image) {
    // Documentation/arch/x86/boot.rst: "HdrS" at 0x202, and at 0x20e where the version's text stands, less
    // 0x200.
    constexpr std::size_t kMagic = 0x202;
    constexpr std::size_t kVersion = 0x20e;
    if (image.size() < kVersion + 2 || image.compare(kMagic, 4, "HdrS") != 0) return std::nullopt;
    const auto byte = [&image](std::size_t at) { return static_cast<unsigned char>(image[at]); };
    const std::size_t at = 0x200u + byte(kVersion) + 256u * byte(kVersion + 1);
    const auto end = image.find_first_of(std::string_view(" \0", 2), at);
    if (at >= image.size() || end == std::string::npos || end == at || end - at > 64) return std::nullopt;
    return image.substr(at, end - at);
}

Result<Kernel> find_kernel(const Tree& tree, const Options& options) {
    if (options.kernel.find('/') != std::string::npos) return own_kernel(options);
    return tree.kernel(options.kernel);
}

Result<RootImage> find_root(const std::string& name) {
    const auto directory = ask_for_path("root.sh", {name});
    if (!directory) return std::unexpected(directory.error());
    RootImage root{*directory / "image.squashfs", {}};
    std::ifstream files(*directory / "files");
    for (std::string path; std::getline(files, path);)
        if (const auto parent = fs::path(path).parent_path();
            parent == "/usr/lib/x86_64-linux-gnu" || parent == "/usr/lib64")
            root.libraries.insert(fs::path(path).filename().string());
    return root;
}

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
        fmt::format(
            "the VM tree has no kernel '{}'; it has {}; there is also debug, and a bzImage is given by "
            "its path",
            name_or_release, known),
        kExitUsage);
}

std::vector<std::string> Tree::program(const std::string& path_in_tree) const {
    return {(path_ / "lib64/ld-linux-x86-64.so.2").string(), "--library-path",
            (path_ / "usr/lib/x86_64-linux-gnu").string(), (path_ / path_in_tree).string()};
}

std::optional<fs::path> Tree::guest_program(const std::string& name, const Kernel& kernel) const {
    for (const auto& path : {path_ / "usr/libexec/orrery" / fmt::format("{}-{}", name, kernel.release),
                             path_ / "usr/bin" / name})
        if (std::error_code error; fs::exists(path, error)) return path;
    return std::nullopt;
}

fs::path Tree::cache() const {
    const char* xdg = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const fs::path base =
        xdg != nullptr && *xdg != '\0' ? fs::path(xdg) : fs::path(home ? home : "/tmp") / ".cache";
    return base / "orrery" / ("for-" + path_.filename().string());
}

}  // namespace orrery::vm
