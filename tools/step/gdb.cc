#include "tools/step/gdb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <vector>

#include "emulator/api/replay_server.h"
#include "tools/step/commands/debugger.h"

namespace orrery::step {
namespace {

volatile std::sig_atomic_t g_stop = 0;

// What gdb's "monitor" asks about the position at which the replay stands.
std::optional<std::string> monitor(Debugger& debugger, const std::string& line) {
    const std::string_view name = std::string_view(line).substr(0, line.find(' '));
    constexpr std::array<std::string_view, 10> kLooks = {
        "why", "queues", "waits", "contexts", "engines", "timeline", "events", "summary", "bt", "list"};
    if (std::ranges::find(kLooks, name) == kLooks.end()) return std::nullopt;
    const auto reply = debugger.execute(line);
    return reply ? reply->text : reply.error().text + "\n";
}

}  // namespace

int serve_gdb(const std::string& trace, const std::string& elf, unsigned port) {
    auto replayer = emu::Replayer::open(trace);
    if (!replayer) {
        fmt::print(stderr, "orrery-step: {}\n", replayer.error());
        return 1;
    }
    Debugger::Options options;
    options.elf = elf;
    auto debugger = Debugger::make(share_session(trace, **replayer), std::move(options));
    if (!debugger) {
        fmt::print(stderr, "orrery-step: {}\n", debugger.error().text);
        return 1;
    }
    const std::vector<std::uint8_t>& program = (*debugger)->program().elf();
    (*replayer)->seek(0);
    std::signal(SIGINT, [](int) { g_stop = 1; });
    std::signal(SIGTERM, [](int) { g_stop = 1; });
    const auto served = emu::gdb::serve_replay(
        **replayer, static_cast<std::uint16_t>(port),
        [&](std::uint16_t bound) {
            fmt::print("waiting for gdb on port {}: gdb-multiarch -ex 'target remote :{}'{}\n", bound, bound,
                       program.empty() ? " orrery-fw.elf" : "");
            std::fflush(stdout);
        },
        [] { return g_stop != 0; }, [&](const std::string& line) { return monitor(**debugger, line); },
        program);
    if (!served) {
        fmt::print(stderr, "orrery-step: {}\n", served.error());
        return 1;
    }
    return 0;
}

}  // namespace orrery::step
