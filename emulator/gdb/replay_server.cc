#include "emulator/api/replay_server.h"

#include <poll.h>

#include "emulator/gdb/replay_target.h"
#include "emulator/gdb/server.h"

namespace orrery::emu::gdb {

std::expected<void, std::string> serve_replay(Replayer& replayer, std::uint16_t port,
                                              const std::function<void(std::uint16_t port)>& listening,
                                              const std::function<bool()>& stop, const MonitorHook& monitor,
                                              std::span<const std::uint8_t> program) {
    auto server = Server::create(port);
    if (!server) return std::unexpected(server.error());
    ReplayTarget target(replayer, monitor, program);
    if (listening) listening((*server)->port());
    while (!stop || !stop()) {
        // While the target runs, service() works for some milliseconds at a time.
        pollfd wait{(*server)->fd(), (*server)->events(), 0};
        if (!(*server)->running()) ::poll(&wait, 1, 100);
        (*server)->service(target);
        if ((*server)->take_kill()) return {};
    }
    return {};
}

}  // namespace orrery::emu::gdb
