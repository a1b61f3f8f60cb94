// A TCP port on the loopback interface that serves one debugger at a time.
//
// No thread of its own: whoever owns the target calls service() when a descriptor of fds() is readable, or
// now and then.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "emulator/base/unique_fd.h"
#include "emulator/gdb/session.h"
#include "emulator/gdb/target.h"

namespace orrery::emu::gdb {

class Server {
  public:
    // Listens on 127.0.0.1:port; 0 takes any free port.
    static std::expected<std::unique_ptr<Server>, std::string> create(std::uint16_t port);

    std::uint16_t port() const { return port_; }
    // The descriptor to wait for, and for what: the debugger's, or the listening one.
    int fd() const { return client_ ? client_.get() : listener_.get(); }
    short events() const;
    bool attached() const { return session_ != nullptr; }
    // A debugger let the target go, and it has not stopped yet.
    bool running() const { return session_ != nullptr && session_->running(); }
    // A debugger asked for the target's end since the last call.
    bool take_kill() { return std::exchange(killed_, false); }

    // Takes a debugger, reads and answers what there is, looks whether the target stopped. Never blocks: a
    // debugger that does not take its answers is not read until it does. true: something happened.
    bool service(Target& target);

  private:
    Server() = default;
    bool accept(Target& target);
    void refuse_others();
    bool receive();
    bool send();
    void hang_up();

    UniqueFd listener_;
    UniqueFd client_;
    std::unique_ptr<Session> session_;
    std::uint16_t port_ = 0;
    bool killed_ = false;
};

}  // namespace orrery::emu::gdb
