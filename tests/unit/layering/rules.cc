#include "tests/unit/layering/rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

namespace orrery::layering {
namespace {

using Arrows = std::map<std::string, std::set<std::string>, std::less<>>;

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

const Arrows& allowed_contracts() {
    static const Arrows map = {
        {"emulator", {"hw"}},           {"firmware", {"hw", "fw"}},
        {"kmod", {"hw", "fw", "uapi"}}, {"umd", {"hw", "fw", "uapi", "api"}},
        {"tools", {"api", "fw", "hw"}},
    };
    return map;
}

// Inside the emulator: a folder may include these others.
const Arrows& emulator_arrows() {
    static const Arrows map = {
        // What everybody may use.
        {"emulator/base", {}},
        {"emulator/api", {}},
        {"emulator/time", {}},
        {"emulator/probes", {}},
        {"emulator/faults", {"emulator/probes", "emulator/time"}},
        {"emulator/model", {"emulator/probes", "emulator/time"}},
        // The parts of a card.
        {"emulator/core", {"emulator/base"}},
        {"emulator/check", {"emulator/base", "emulator/core"}},
        {"emulator/pcie", {"emulator/base"}},
        {"emulator/control", {"emulator/base", "emulator/faults", "emulator/pcie"}},
        {"emulator/memory", {"emulator/base", "emulator/faults", "emulator/probes", "emulator/time"}},
        {"emulator/link",
         {"emulator/base", "emulator/faults", "emulator/memory", "emulator/model", "emulator/probes",
          "emulator/time"}},
        {"emulator/engines",
         {"emulator/base", "emulator/check", "emulator/core", "emulator/memory", "emulator/model",
          "emulator/probes", "emulator/time"}},
        {"emulator/skus", {"emulator/memory", "emulator/time"}},
        {"emulator/trace", {"emulator/base", "emulator/core"}},
        {"emulator/gdb", {"emulator/base", "emulator/core", "emulator/trace"}},
        {"emulator/soc",
         {"emulator/base", "emulator/core", "emulator/engines", "emulator/faults", "emulator/memory",
          "emulator/model", "emulator/probes", "emulator/skus", "emulator/time", "emulator/trace"}},
        // The card joins them, its host's side is in front of it, and the program starts both.
        {"emulator/sync", {"emulator/base"}},
        {"emulator/switch",
         {"emulator/base", "emulator/control", "emulator/faults", "emulator/link", "emulator/memory",
          "emulator/probes", "emulator/sync", "emulator/time"}},
        {"emulator/card",
         {"emulator/base", "emulator/control", "emulator/core", "emulator/engines", "emulator/faults",
          "emulator/gdb", "emulator/link", "emulator/memory", "emulator/model", "emulator/pcie",
          "emulator/probes", "emulator/skus", "emulator/soc", "emulator/sync", "emulator/time",
          "emulator/trace"}},
        {"emulator/host",
         {"emulator/base", "emulator/card", "emulator/engines", "emulator/pcie", "emulator/soc"}},
        {"emulator/main", {"emulator/card", "emulator/host", "emulator/pcie"}},
    };
    return map;
}

// Inside the firmware. The headers of a folder of the scheduler may include those of these others. Its
// sources are parts of one class and may include all of the scheduler, but for those with a class of their
// own.
const Arrows& firmware_arrows() {
    static const Arrows map = {
        {"firmware/hal", {}},
        {"firmware/sched", {"firmware/hal"}},
        {"firmware/mailbox", {"firmware/hal", "firmware/sched"}},
        {"firmware/main", {"firmware/hal", "firmware/mailbox", "firmware/sched"}},
    };
    return map;
}

const Arrows& sched_arrows() {
    static const Arrows map = {
        {"queue", {}},
        {"policy", {"queue", "run"}},
        {"show", {"tables.h"}},
        {"run", {"queue", "show"}},
        {"sync", {"queue", "run"}},
        {"recover", {"policy", "queue", "tables.h"}},
    };
    return map;
}

// The tools' own libraries: who may include them. Other tools are programs, and nobody's.
const Arrows& tool_arrows() {
    static const Arrows map = {
        {"tools/bench", {"tools/text", "tools/topology"}},
        {"tools/bundle", {"tools/text"}},
        {"tools/child", {"tools/text"}},
        {"tools/prof", {"tools/text", "tools/cards", "tools/child"}},
        {"tools/records", {"tools/text"}},
        {"tools/run", {"tools/text", "tools/child", "tools/topology"}},
        {"tools/scenario", {"tools/text", "tools/records"}},
        {"tools/smi", {"tools/text", "tools/cards", "tools/topology"}},
        {"tools/step", {"tools/text", "tools/bundle", "tools/records", "tools/scenario"}},
        {"tools/topology", {"tools/text"}},
        {"tools/vm", {"tools/text", "tools/bundle", "tools/topology"}},
    };
    return map;
}

// Inside the stepping tool, by folder below tools/step; the program itself joins them all.
const Arrows& step_arrows() {
    static const Arrows map = {
        {"program", {}},
        {"session", {"program"}},
        {"report", {}},
        {"commands", {"program", "session", "report"}},
    };
    return map;
}

// What follows `prefix` up to the next slash: "records" of "tools/records/why.cc" after "tools/". With
// `whole` the name of a file that lies there is given too; else it is "".
std::string folder_after(std::string_view prefix, std::string_view path, bool whole = false) {
    path.remove_prefix(prefix.size());
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) return whole ? std::string(path) : "";
    return std::string(path.substr(0, slash));
}

// One part's own rule: `from` may include `to` if they are the same, or the row of `from` says so.
std::string why_not(const Arrows& arrows, const std::string& below, const std::string& from,
                    const std::string& to) {
    const auto row = arrows.find(from);
    if (row == arrows.end()) return below + from + " has no row in the layering rules";
    if (from != to && !row->second.contains(to)) return below + from + " must not include " + below + to;
    return "";
}

// Between the headers of the scheduler's folders.
std::string why_not_in_sched(std::string_view file, std::string_view name) {
    constexpr std::string_view kSched = "firmware/sched/";
    if (!starts(file, kSched) || !starts(name, kSched)) return "";
    const std::string from = folder_after(kSched, file);
    if (from.empty()) return "";
    if (!sched_arrows().contains(from)) return "firmware/sched/" + from + " has no row in the layering rules";
    static const std::set<std::string_view> own_class = {
        "firmware/sched/policy/policy.cc",  "firmware/sched/policy/quota.cc",
        "firmware/sched/queue/packets.cc",  "firmware/sched/recover/failing.cc",
        "firmware/sched/run/engines.cc",    "firmware/sched/run/slots.cc",
        "firmware/sched/sync/deadlock.cc",  "firmware/sched/sync/gang.cc",
        "firmware/sched/sync/gang_turn.cc", "firmware/sched/sync/wait_table.cc",
    };
    if (own_class.contains(file) && starts(name, "firmware/sched/scheduler"))
        return std::string(file) + " is a class of its own: it asks the scheduler through arbiter.h";
    if (!file.ends_with(".h")) return "";
    return why_not(sched_arrows(), std::string(kSched), from, folder_after(kSched, name, true));
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
            // Every folder may use, and implement, what is published.
            const std::string to =
                two_folders(name) == "emulator/api" ? two_folders(file) : two_folders(name);
            return why_not(emulator_arrows(), "", two_folders(file), to);
        }
        if (part == "firmware" && two_folders(file) != file && two_folders(name) != name) {
            const std::string why = why_not(firmware_arrows(), "", two_folders(file), two_folders(name));
            return why.empty() ? why_not_in_sched(file, name) : why;
        }
        if (part == "tools" && two_folders(file) != two_folders(name)) {
            const auto arrows = tool_arrows().find(two_folders(file));
            if (arrows == tool_arrows().end() || !arrows->second.contains(two_folders(name)))
                return "a tool must not include another tool's inside";
            return "";
        }
        if (starts(file, "tools/step/") && starts(name, "tools/step/")) {
            const std::string from = folder_after("tools/step/", file);
            const std::string to = folder_after("tools/step/", name);
            if (from.empty() || name == "tools/step/words.h") return "";
            return why_not(step_arrows(), "tools/step/", from, to);
        }
        return "";
    }
    if (other == "tests") return part + " must not include tests";
    if (name.find("..") != std::string_view::npos) return "no relative paths out of the folder";
    return "";
}

std::vector<std::string> source_files(const std::filesystem::path& root) {
    static constexpr std::array kEndings = {".h",     ".hpp", ".c",  ".cc", ".S",  ".sh",
                                            ".cmake", ".ld",  ".py", ".js", ".css"};
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
