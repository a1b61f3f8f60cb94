// The keeper: a small process that outlives the card's and answers for it.
//
// A client cannot stand a connection that breaks. QEMU 11.1 aborts when it breaks with a request unread (the
// read of the next header fails with ECONNRESET, and its error is set twice), it aborts when memory is mapped
// after the break, and a virtual CPU whose request was under way stands until the time-out. So the keeper
// holds a second descriptor of the connection. While the card lives it sleeps. When the card's process is
// gone, for whatever reason, it answers the client as an empty slot would: reads give all-ones, writes
// vanish, the rest is acknowledged, until the client lets go.
#pragma once

#include <cstdio>
#include <expected>
#include <string>

#include "emulator/base/unique_fd.h"

namespace orrery::emu {

class Keeper {
  public:
    // Forks, so it must come before the first thread, and with SIGTERM, SIGINT and SIGHUP blocked: the keeper
    // ends by itself. `log` takes one line, when it takes over.
    static std::expected<Keeper, std::string> start(std::FILE* log);

    // The client on `connection` is looked after from now on.
    void hold(int connection) const noexcept;
    // It was disconnected on purpose.
    void release() const noexcept;

  private:
    explicit Keeper(UniqueFd channel) : channel_(std::move(channel)) {}
    UniqueFd channel_;
};

// What the keeper does with a connection: answers until the client closes it. The first request may have been
// answered by the card already, which then did not live to take it from the socket.
void answer_for_the_dead(int connection);

}  // namespace orrery::emu
