#include "tests/unit/layering/rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

namespace orrery::layering {
namespace {

// Contracts a part may include, by the prefix under which it includes them.
constexpr std::string_view kHw = "orrery/hw/";
constexpr std::string_view kFw = "orrery/fw/";
constexpr std::string_view kUapi = "drm/orrery_accel.h";

bool starts(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

std::string_view first_folder(std::string_view path) {
    return path.substr(0, path.find('/'));
}

std::string two_folders(std::string_view path) {
    const size_t first = path.find('/');
    if (first == std::string_view::npos) return std::string(path);
    const size_t second = path.find('/', first + 1);
    return std::string(path.substr(0, second));
}

// Which contract a name belongs to: "hw", "fw", "uapi", "api", or "" if it is none of ours.
std::string contract_of(std::string_view name) {
    if (starts(name, kHw)) return "hw";
    if (starts(name, kFw)) return "fw";
    if (name == kUapi || name == "orrery_accel.h") return "uapi";
    if (starts(name, "orrery/")) return "api";
    return "";
}

const std::map<std::string, std::set<std::string>, std::less<>>& allowed_contracts() {
    static const std::map<std::string, std::set<std::string>, std::less<>> map = {
        {"emulator", {"hw"}},           {"firmware", {"hw", "fw"}},
        {"kmod", {"hw", "fw", "uapi"}}, {"umd", {"hw", "fw", "uapi", "api"}},
        {"tools", {"api", "fw", "hw"}},
    };
    return map;
}

// Inside the emulator: a folder may include these others. The card joins them all.
const std::map<std::string, std::set<std::string>, std::less<>>& emulator_arrows() {
    static const std::map<std::string, std::set<std::string>, std::less<>> map = {
        {"emulator/api", {}},
        {"emulator/core", {}},
        {"emulator/pcie", {"emulator/os"}},
        {"emulator/time", {}},
        {"emulator/probes", {}},
        {"emulator/os", {}},
        {"emulator/memory",
         {"emulator/core", "emulator/faults", "emulator/os", "emulator/probes", "emulator/time"}},
        {"emulator/link",
         {"emulator/faults", "emulator/memory", "emulator/os", "emulator/probes", "emulator/time"}},
        {"emulator/engines",
         {"emulator/core", "emulator/link", "emulator/memory", "emulator/os", "emulator/probes",
          "emulator/time"}},
        {"emulator/faults", {"emulator/probes", "emulator/time"}},
        {"emulator/skus", {}},
        {"emulator/trace", {"emulator/core", "emulator/os"}},
        {"emulator/gdb", {"emulator/core", "emulator/os", "emulator/trace"}},
        {"emulator/card",
         {"emulator/core", "emulator/engines", "emulator/faults", "emulator/link", "emulator/memory",
          "emulator/gdb", "emulator/os", "emulator/pcie", "emulator/probes", "emulator/skus", "emulator/time",
          "emulator/trace"}},
    };
    return map;
}

// The tools' own libraries: who may include them. Other tools are programs, and nobody's.
const std::map<std::string, std::set<std::string>, std::less<>>& tool_arrows() {
    static const std::map<std::string, std::set<std::string>, std::less<>> map = {
        {"tools/records", {"tools/text"}},
        {"tools/scenario", {"tools/text", "tools/records"}},
        {"tools/step", {"tools/text", "tools/records", "tools/scenario"}},
    };
    return map;
}

// Inside the stepping tool, by folder below tools/step; the program itself joins them all.
const std::map<std::string, std::set<std::string>, std::less<>>& step_arrows() {
    static const std::map<std::string, std::set<std::string>, std::less<>> map = {
        {"program", {}},
        {"session", {"program"}},
        {"report", {}},
        {"commands", {"program", "session", "report"}},
    };
    return map;
}

// "records" of "tools/records/why.cc"; "" for the program's own files.
std::string step_folder(std::string_view path) {
    path.remove_prefix(std::string_view("tools/step/").size());
    const size_t slash = path.find('/');
    return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

}  // namespace

std::vector<Include> includes_of(std::string_view text) {
    std::vector<Include> found;
    std::istringstream in{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        size_t at = line.find_first_not_of(" \t");
        if (at == std::string::npos || line[at] != '#') continue;
        at = line.find_first_not_of(" \t", at + 1);
        if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
        const size_t open = line.find_first_of("\"<", at + 7);
        if (open == std::string::npos) continue;
        const size_t close = line.find_first_of("\">", open + 1);
        if (close == std::string::npos) continue;
        found.push_back({line.substr(open + 1, close - open - 1), number});
    }
    return found;
}

std::string why_forbidden(std::string_view file, std::string_view name) {
    const std::string part(first_folder(file));
    const auto rule = allowed_contracts().find(part);
    if (rule == allowed_contracts().end()) return "";  // tests and docs may include anything
    const bool in_contract = file.find("/include/") != std::string_view::npos;

    const std::string contract = contract_of(name);
    if (!contract.empty()) {
        if (!rule->second.contains(contract)) return part + " must not include the " + contract + " contract";
        return "";
    }
    // Own part by path from the root; another part's inside never.
    const std::string other(first_folder(name));
    if (other != name && allowed_contracts().contains(other)) {
        if (in_contract) return "a contract includes contracts only";
        // What replays recordings, and plays scenarios on a card, does so through what the emulator
        // publishes.
        if (part == "tools" && two_folders(name) == "emulator/api") return "";
        if (other != part) return part + " must not include the inside of " + other;
        if (part == "emulator") {
            const std::string from = two_folders(file);
            const std::string to = two_folders(name);
            const auto arrows = emulator_arrows().find(from);
            if (arrows == emulator_arrows().end()) return from + " has no row in the layering rules";
            if (from != to && to != "emulator/api" && !arrows->second.contains(to))
                return from + " must not include " + to;
        }
        if (part == "tools" && two_folders(file) != two_folders(name)) {
            const auto arrows = tool_arrows().find(two_folders(file));
            if (arrows == tool_arrows().end() || !arrows->second.contains(two_folders(name)))
                return "a tool must not include another tool's inside";
            return "";
        }
        if (starts(file, "tools/step/") && starts(name, "tools/step/")) {
            const std::string from = step_folder(file);
            const std::string to = step_folder(name);
            if (from.empty() || from == to || name == "tools/step/words.h") return "";
            const auto arrows = step_arrows().find(from);
            if (arrows == step_arrows().end())
                return "tools/step/" + from + " has no row in the layering rules";
            if (!arrows->second.contains(to))
                return "tools/step/" + from + " must not include tools/step/" + to;
        }
        return "";
    }
    if (other == "tests") return part + " must not include tests";
    if (name.find("..") != std::string_view::npos) return "no relative paths out of the folder";
    return "";
}

std::vector<std::string> source_files(const std::filesystem::path& root) {
    static constexpr std::array kEndings = {".h", ".hpp", ".c", ".cc", ".S", ".sh", ".cmake", ".ld", ".py"};
    std::vector<std::string> files;
    for (const char* part : {"kmod", "firmware", "umd", "emulator", "tools", "tests"}) {
        const auto top = root / part;
        if (!std::filesystem::is_directory(top)) continue;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
            if (!entry.is_regular_file()) continue;
            const std::string ending = entry.path().extension().string();
            if (std::ranges::find(kEndings, ending) == kEndings.end() &&
                entry.path().filename() != "CMakeLists.txt" && entry.path().filename() != "Kbuild")
                continue;
            if (entry.path().filename().string().ends_with(".mod.c")) continue;  // made by Kbuild
            files.push_back(std::filesystem::relative(entry.path(), root).generic_string());
        }
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace orrery::layering
