// orrery-run: the ranks of a program over one VM or several.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/child/child.h"
#include "tools/run/profile.h"
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
    std::string profile, profile_with;
    app.add_option("-n", ranks, "Number of processes, 1 to 64")->required();
    app.add_option("--vms", vms, "Number of VMs (default 1)");
    app.add_option("--profile", profile, "One profile of all ranks, in this file (orrery-prof record)");
    app.add_option("--profile-with", profile_with,
                   "Options of orrery-prof record, as one word: '--counters --samples 20' (quotes in it as a "
                   "shell's; not -o)");
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
    if (!profile_with.empty() && profile.empty())
        return wrong(kExitUsage, "--profile-with wants --profile FILE");
    const auto record_options = orrery::run::profile_options(profile_with);
    if (!record_options) return wrong(kExitUsage, "--profile-with: " + record_options.error().text);
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
    std::unique_ptr<orrery::run::RankProfiles> profiles;
    if (!profile.empty()) {
        auto made = orrery::run::RankProfiles::create(value_of(more, "--share"), folder, ranks);
        if (!made) return wrong(kExitSetup, made.error().text);
        profiles = *std::move(made);
        const std::vector<std::string> options = profiles->options();
        command.insert(command.end(), options.begin(), options.end());
    }
    command.insert(command.end(),
                   {"--env", "ORR_TOKEN=" + token, "--", "orrery-ranks", fmt::format("{}", ranks)});
    if (profiles) {
        command.insert(command.end(), {"--profiles", profiles->guest_folder(), "orrery-prof", "record"});
        command.insert(command.end(), record_options->begin(), record_options->end());
        command.emplace_back("--");
    }
    command.insert(command.end(), dashes + 1, given.end());
    if (profiles) {
        // Nobody else would end the machine.
        const auto ended = orrery::child::run(command, [parent = ::getpid()] {
            ::prctl(PR_SET_PDEATHSIG, SIGTERM);
            if (::getppid() != parent) ::raise(SIGTERM);  // it ended before that
        });
        if (!ended) return wrong(kExitSetup, ended.error().text);
        const int status = orrery::child::exit_status(*ended);
        const auto merged = profiles->merge(profile);
        if (!merged) fmt::print(stderr, "orrery-run: error: {}\n", merged.error().text);
        return merged || status != 0 ? status : kExitSetup;
    }
    std::vector<char*> words;
    for (std::string& word : command)
        words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    return wrong(kExitSetup, fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
}
