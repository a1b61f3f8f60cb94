#include "tools/step/gdb.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "emulator/gdb/replay_server.h"

namespace orrery::step {
namespace {

volatile std::sig_atomic_t g_stop = 0;

}  // namespace

int serve_gdb(const std::string& trace, unsigned port) {
    auto replayer = emu::Replayer::open(trace);
    if (!replayer) {
        fmt::print(stderr, "orrery-step: {}\n", replayer.error());
        return 1;
    }
    std::signal(SIGINT, [](int) { g_stop = 1; });
    std::signal(SIGTERM, [](int) { g_stop = 1; });
    const auto served = emu::gdb::serve_replay(
        **replayer, static_cast<std::uint16_t>(port),
        [](std::uint16_t bound) {
            fmt::print("waiting for gdb on port {}: gdb-multiarch -ex 'target remote :{}' orrery-fw.elf\n",
                       bound, bound);
            std::fflush(stdout);
        },
        [] { return g_stop != 0; });
    if (!served) {
        fmt::print(stderr, "orrery-step: {}\n", served.error());
        return 1;
    }
    return 0;
}

}  // namespace orrery::step
