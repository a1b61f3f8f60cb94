#include "tools/vm/guest_modules.h"

#include <fmt/format.h>

#include <sstream>

#include "tools/vm/files.h"
#include "tools/vm/modules.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

// The modules of one kernel: those in files, and those that are built in, as far as it says so.
struct Known {
    ModuleIndex index;
    std::string built_in;  // modules.builtin; empty: unknown

    bool lacks(const std::string& name) const {
        if (!index.file(name).empty() || built_in.empty()) return false;
        std::istringstream lines(built_in);
        for (std::string line; std::getline(lines, line);)
            if (module_name(line) == name) return false;
        return true;
    }
};

Result<Known> known_modules(const Kernel& kernel) {
    Known known;
    if (kernel.modules.empty()) return known;
    auto dep = read_file(kernel.modules / "modules.dep");
    if (!dep) return std::unexpected(dep.error());
    known.index = ModuleIndex::parse(*dep);
    if (auto list = read_file(kernel.modules / "modules.builtin")) known.built_in = *list;
    return known;
}

struct Need {
    bool wanted;
    const char* option;
    std::vector<const char*> modules;
};

Result<void> take_devices(const Options& options, const Kernel& kernel, const Known& known,
                          std::vector<std::string>& order) {
    const Need needs[] = {{!options.share.empty(), "--share", {"9pnet_virtio", "9p"}},
                          {!options.here.empty(), "the current folder", {"9pnet_virtio", "9p"}},
                          {options.nvme, "--nvme", {"nvme"}},
                          {options.net.has_value(), "--net", {"virtio_net"}},
                          {!options.root.empty(), "--root", {"virtio_blk", "squashfs", "overlay"}}};
    for (const auto& need : needs) {
        if (!need.wanted) continue;
        for (const char* name : need.modules) {
            if (known.lacks(name))
                return fail(fmt::format("kernel {} has no {}, which {} needs: take another kernel (--kernel)",
                                        kernel.release, name, need.option));
            known.index.resolve(name, order);
        }
    }
    return {};
}

// What to do about a module that is not there.
Failure no_orrery(const Kernel& kernel, const fs::path& file, bool given) {
    // kbuild.sh leaves one line that says why there is none.
    if (auto cause = read_file(file.parent_path() / "failed"))
        return {kExitSetup, cause->substr(0, cause->find('\n'))};
    if (given)
        return {kExitSetup,
                fmt::format("--module {}: there is no such file; tools/vm/kbuild.sh builds the one that is "
                            "taken without --module",
                            file.string())};
    if (kernel.name != "own")
        return {kExitSetup,
                fmt::format("no orrery module for kernel {} at {}: build it with tools/vm/kbuild.sh --kernel "
                            "{}, or give --no-module",
                            kernel.release, file.string(), kernel.name)};
    return {
        kExitSetup,
        fmt::format(
            "no orrery module for kernel {} ({}), neither among its --modules nor at {}: 'make -C {}/kmod "
            "KDIR=<that kernel's build>' builds one for --module {}/kmod/orrery.ko; or give --no-module",
            kernel.release, kernel.image.string(), file.string(), source_dir().string(),
            source_dir().string())};
}

Result<std::string> orrery_bytes(const Options& options, const Tree& tree, const Kernel& kernel,
                                 const Known& known, fs::path& file) {
    const bool given = !options.module_file.empty();
    const std::string installed = kernel.name == "own" && !given ? known.index.file("orrery") : "";
    if (!installed.empty()) {
        file = kernel.modules / installed;
        return uncompressed(tree, kernel, installed);
    }
    file = given ? options.module_file : source_dir() / "build/kmod" / kernel.release / "orrery.ko";
    std::error_code error;
    if (!fs::exists(file, error)) return std::unexpected(no_orrery(kernel, file, given));
    return read_file(file);
}

}  // namespace

Result<GuestModules> choose_modules(const Options& options, const Tree& tree, const Kernel& kernel) {
    auto known = known_modules(kernel);
    if (!known) return std::unexpected(known.error());
    std::vector<std::string> order;
    if (auto done = take_devices(options, kernel, *known, order); !done) return std::unexpected(done.error());

    GuestModules chosen;
    if (options.module) {
        auto bytes = orrery_bytes(options, tree, kernel, *known, chosen.orrery_file);
        if (!bytes) return std::unexpected(bytes.error());
        chosen.orrery = std::move(*bytes);
        if (const auto release = module_release(chosen.orrery); !release.empty() && release != kernel.release)
            return fail(
                fmt::format("{} is for kernel {}, and the guest boots {}: build it for that one, or give "
                            "--no-module",
                            chosen.orrery_file.string(), release, kernel.release));
        for (const auto& name : module_dependencies(chosen.orrery)) {
            if (known->index.resolve(name, order)) continue;
            if (kernel.name == "own")
                return fail(fmt::format(
                    "{} needs module '{}': give the modules of kernel {} with --modules DIRECTORY",
                    chosen.orrery_file.string(), name, kernel.release));
            return fail(
                fmt::format("{} needs module '{}', which kernel {} does not have: build it anew with "
                            "tools/vm/kbuild.sh",
                            chosen.orrery_file.string(), name, kernel.release));
        }
    }
    for (const auto& relative : order) {
        auto bytes = uncompressed(tree, kernel, relative);
        if (!bytes) return std::unexpected(bytes.error());
        chosen.first.push_back({module_name(relative), std::move(*bytes)});
    }
    return chosen;
}

}  // namespace orrery::vm
