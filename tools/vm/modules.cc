#include "tools/vm/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tools/vm/files.h"
#include "tools/vm/process.h"

namespace orrery::vm {

namespace fs = std::filesystem;

std::string module_name(const std::string& path) {
    std::string name = fs::path(path).filename().string();
    name.resize(std::min(name.size(), name.find(".ko")));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

ModuleIndex ModuleIndex::parse(const std::string& modules_dep) {
    ModuleIndex index;
    std::istringstream lines(modules_dep);
    for (std::string line; std::getline(lines, line);) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        // depmod lists all that is needed, directly or not, and what must be loaded first stands last.
        std::istringstream words(line.substr(colon + 1));
        std::vector<std::string> order;
        for (std::string word; words >> word;)
            order.push_back(word);
        std::reverse(order.begin(), order.end());
        order.push_back(line.substr(0, colon));
        index.load_order_[module_name(order.back())] = std::move(order);
    }
    return index;
}

bool ModuleIndex::resolve(const std::string& name, std::vector<std::string>& order) const {
    const auto found = load_order_.find(module_name(name));
    if (found == load_order_.end()) return false;
    for (const auto& file : found->second)
        if (std::find(order.begin(), order.end(), file) == order.end()) order.push_back(file);
    return true;
}

std::string ModuleIndex::file(const std::string& name) const {
    const auto found = load_order_.find(module_name(name));
    return found == load_order_.end() ? "" : found->second.back();
}

namespace {

// .modinfo is a run of NUL-terminated "key=value" strings; no other section holds these keys after a NUL.
std::string modinfo(const std::string& elf, const std::string& key) {
    const std::string wanted = '\0' + key + '=';
    const auto at = elf.find(wanted);
    return at == std::string::npos ? "" : elf.c_str() + at + wanted.size();
}

}  // namespace

std::string module_release(const std::string& elf) {
    const std::string magic = modinfo(elf, "vermagic");
    return magic.substr(0, magic.find(' '));
}

std::vector<std::string> module_dependencies(const std::string& elf) {
    std::vector<std::string> names;
    std::istringstream list(modinfo(elf, "depends"));
    for (std::string name; std::getline(list, name, ',');)
        if (!name.empty()) names.push_back(name);
    return names;
}

Result<std::string> uncompressed(const Tree& tree, const Kernel& kernel, const std::string& relative) {
    fs::path source = kernel.modules / relative;
    if (source.extension() == ".ko") return read_file(source);
    if (source.extension() != ".xz")
        return fail(fmt::format("{}: only plain modules and .xz are known here", source.string()));
    auto argv = tree.program("usr/bin/xz");
    argv.insert(argv.end(), {"--decompress", "--stdout", source.string()});
    // A kernel of one's own is built again under the same release.
    if (kernel.name == "own") return capture(argv);
    fs::path target = tree.cache() / kernel.release / (module_name(relative) + ".ko");
    std::error_code error;
    if (fs::exists(target, error)) return read_file(target);
    auto bytes = capture(argv);
    if (!bytes) return bytes;
    if (auto kept = keep(target, *bytes); !kept) return std::unexpected(kept.error());
    return bytes;
}

}  // namespace orrery::vm
