#include "tools/cards/processes.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>

namespace orrery::cards {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end == text.data()) return std::nullopt;
    return value;
}

// One open file of the driver's; `client` tells duplicates of a descriptor.
struct Client {
    bool ours = false;
    std::uint64_t client = 0;
    Process use;
};

Client read_fdinfo(const fs::path& file) {
    Client found;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string_view key(line.data(), colon);
        std::string_view value(line);
        value.remove_prefix(std::min(value.find_first_not_of(" \t", colon + 1), value.size()));
        if (key == "drm-driver") found.ours = value == "orrery";
        if (key == "drm-pdev") found.use.address = value;
        const std::uint64_t number = number_of(value).value_or(0);
        if (key == "drm-client-id") found.client = number;
        if (key == "orrery-time-vector") found.use.vector_ns = number;
        if (key == "orrery-time-copy") found.use.copy_ns = number;
        if (key.starts_with("drm-total-") && !key.starts_with("drm-total-cycles-")) {
            const std::uint64_t unit = value.ends_with("KiB")   ? 1 << 10
                                       : value.ends_with("MiB") ? 1 << 20
                                                                : 1;
            found.use.memory_bytes += number * unit;
        }
    }
    return found;
}

// A process calls itself what it likes: nothing of it may mean anything to a terminal.
std::string name_of(const fs::path& process) {
    std::string name;
    std::getline(std::ifstream(process / "comm"), name);
    std::ranges::replace_if(name, [](char c) { return c < ' ' || c > '~'; }, '?');
    return name;
}

// False: its files may not be read.
bool add_process(const fs::path& folder, int pid, std::vector<Process>& processes) {
    const std::size_t first = processes.size();
    std::set<std::uint64_t> seen;
    std::error_code error;
    for (fs::directory_iterator file(folder / "fdinfo", error), end; !error && file != end;
         file.increment(error)) {
        const Client client = read_fdinfo(file->path());
        if (!client.ours || !seen.insert(client.client).second) continue;
        const auto begin = processes.begin() + static_cast<std::ptrdiff_t>(first);
        auto known = std::find_if(begin, processes.end(),
                                  [&](const Process& p) { return p.address == client.use.address; });
        if (known == processes.end()) {
            known = processes.insert(known, {pid, name_of(folder), client.use.address, 0, 0, 0});
        }
        known->memory_bytes += client.use.memory_bytes;
        known->vector_ns += client.use.vector_ns;
        known->copy_ns += client.use.copy_ns;
    }
    return error != std::errc::permission_denied;
}

}  // namespace

std::vector<Process> find_processes(const fs::path& proc, std::size_t* hidden) {
    std::vector<Process> processes;
    std::error_code error;
    for (fs::directory_iterator entry(proc, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const auto pid = number_of(name);
        if (!pid || *pid > 1u << 30 || static_cast<int>(*pid) == ::getpid()) continue;
        if (!add_process(entry->path(), static_cast<int>(*pid), processes) && hidden != nullptr) ++*hidden;
    }
    std::ranges::sort(processes, [](const Process& a, const Process& b) {
        return a.pid != b.pid ? a.pid < b.pid : a.address < b.address;
    });
    return processes;
}

}  // namespace orrery::cards
