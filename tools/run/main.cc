// orrery-run: the ranks of a program over one VM or several.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/run/ranks.h"
#include "tools/topology/topology.h"

namespace {

constexpr int kExitUsage = 120;  // as orrery-vm's
constexpr int kExitSetup = 121;

int wrong(int status, const std::string& text) {
    fmt::print(stderr, "orrery-run: error: {}\n{}", text,
               status == kExitUsage ? "Try: orrery-run --help\n" : "");
    return status;
}

// The value of an option, if it is there.
std::optional<std::string> value_of(const std::vector<std::string>& words, const std::string& option) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == option) return i + 1 < words.size() ? words[i + 1] : "";
        if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
    }
    return std::nullopt;
}

// Whether they say how many cards there are, as a topology's file may, and no shape does.
bool count_cards(const std::vector<std::string>& words) {
    const auto topology = value_of(words, "--topology");
    return value_of(words, "--cards") || (topology && !orrery::topology::shape_named(*topology));
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "orrery-run -n RANKS [--vms N] [OPTIONS of orrery-vm] -- PROGRAM [ARGUMENT...]\n"
        "Starts RANKS processes of PROGRAM, evenly over the VMs, each told its rank (docs/vm.md); ends all "
        "when "
        "one fails.",
        "orrery-run"};
    unsigned ranks = 0, vms = 1;
    app.add_option("-n", ranks, "Number of processes, 1 to 64")->required();
    app.add_option("--vms", vms, "Number of VMs (default 1)");
    app.allow_extras();
    const std::vector<std::string> given(argv + 1, argv + argc);
    const auto dashes = std::ranges::find(given, "--");
    std::vector<std::string> own(given.begin(), dashes);
    std::ranges::reverse(own);
    try {
        app.parse(own);
    } catch (const CLI::Success& told) {
        return app.exit(told);
    } catch (const CLI::ParseError& error) {
        return wrong(kExitUsage, error.what());
    }
    if (dashes == given.end() || dashes + 1 == given.end())
        return wrong(kExitUsage, "no program: give one after '--'");
    if (ranks < 1 || ranks > orrery::run::kMaxRanks)
        return wrong(kExitUsage, fmt::format("-n takes 1 to {}", orrery::run::kMaxRanks));
    if (vms < 1 || vms > ranks)
        return wrong(kExitUsage, fmt::format("--vms takes 1 to {}: each VM has a rank or more", ranks));
    const std::string token = orrery::run::make_token(vms);
    if (token.empty()) return wrong(kExitSetup, "no random bytes for the group's token");

    std::error_code error;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    std::vector<std::string> command{(folder / "orrery-vm").string(), "--vms", fmt::format("{}", vms),
                                     "--no-prefix"};
    const std::vector<std::string> more = app.remaining();
    // A card for each rank, unless somebody says how many there are.
    if (!count_cards(more))
        command.insert(command.end(), {"--cards", fmt::format("{}", (ranks + vms - 1) / vms)});
    command.insert(command.end(), more.begin(), more.end());
    command.insert(command.end(),
                   {"--env", "ORR_TOKEN=" + token, "--", "orrery-ranks", fmt::format("{}", ranks)});
    command.insert(command.end(), dashes + 1, given.end());
    std::vector<char*> words;
    for (std::string& word : command)
        words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    return wrong(kExitSetup, fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
}
