// The debuggers of a card: one at the control core, one at the kernels, each with a port of its own. While
// one of them holds what it is at, the model time of the whole card stands still.
#pragma once

#include <poll.h>

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "emulator/gdb/server.h"
#include "emulator/gdb/target.h"

namespace orrery::emu {

// Card thread only.
class Debuggers {
  public:
    // Listens for one more on the loopback interface; 0: any free port. Gives the port.
    std::expected<std::uint16_t, std::string> add(std::uint16_t port, std::unique_ptr<gdb::Target> target) {
        auto server = gdb::Server::create(port);
        if (!server) return std::unexpected(server.error());
        const std::uint16_t taken = (*server)->port();
        all_.push_back({std::move(target), *std::move(server)});
        return taken;
    }
    bool any() const { return !all_.empty(); }
    bool service() {
        bool busy = false;
        for (const One& each : all_)
            busy |= each.server->service(*each.target);
        return busy;
    }
    static constexpr std::size_t kMost = 2;
    // Puts what to wait for at `fds`, which has room for kMost; how many these are.
    nfds_t descriptors(pollfd* fds) const {
        nfds_t count = 0;
        for (const One& each : all_)
            fds[count++] = {each.server->fd(), each.server->events(), 0};
        return count;
    }

  private:
    // The server goes first: a session that ends lets its target go.
    struct One {
        std::unique_ptr<gdb::Target> target;
        std::unique_ptr<gdb::Server> server;
    };
    std::vector<One> all_;
};

}  // namespace orrery::emu
