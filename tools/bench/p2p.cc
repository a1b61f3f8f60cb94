#include "tools/bench/p2p.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/text/shell.h"

namespace orrery::bench {
namespace {

int status_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

nlohmann::ordered_json output_of(const std::string& line) {
    std::FILE* pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error(fmt::format("cannot start: {}", line));
    std::string text;
    char part[4096];
    while (const std::size_t got = std::fread(part, 1, sizeof part, pipe))
        text.append(part, got);
    auto json = nlohmann::ordered_json::parse(text, nullptr, false);
    if (::pclose(pipe) != 0 || json.is_discarded()) throw std::runtime_error(fmt::format("failed: {}", line));
    return json;
}

}  // namespace

std::string pairs_command(const P2pOptions& options, const std::filesystem::path& programs, bool model) {
    const bool named = !options.topology.empty();
    std::string text =
        fmt::format("{} --topology {} --timeout 0 --memory 2G", text::shell_quote(programs / "orrery-vm"),
                    text::shell_quote(named ? options.topology : "ring"));
    if (options.cards || !named) text += fmt::format(" --cards {}", options.cards.value_or(4));
    if (!options.sku.empty()) text += " --sku " + text::shell_quote(options.sku);
    if (!options.vram.empty()) text += " --vram " + text::shell_quote(options.vram);
    text += fmt::format(" --sync {} -- orrery-bench-p2p {}", model ? "lockstep" : "free",
                        options.patterns ? "--patterns"
                        : model          ? "--model"
                                         : "--host");
    if (!options.size.empty()) text += " --size " + text::shell_quote(options.size);
    if (options.json) text += " --json";
    return text;
}

int measure_pairs(const P2pOptions& options, const std::filesystem::path& programs) {
    if (options.patterns) return status_of(std::system(pairs_command(options, programs, true).c_str()));
    if (options.json) {
        nlohmann::ordered_json all;
        all["model"] = output_of(pairs_command(options, programs, true));
        all["host"] = output_of(pairs_command(options, programs, false));
        fmt::print("{}\n", all.dump(2));
        return std::fflush(stdout) == 0 ? 0 : 1;
    }
    for (const bool model : {true, false}) {
        if (const int status = status_of(std::system(pairs_command(options, programs, model).c_str()));
            status != 0)
            return status;
        if (model) fmt::print("\n");
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace orrery::bench
