// gdb on a recording: what orrery-step --gdb PORT calls.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "emulator/trace/replayer.h"

namespace orrery::emu::gdb {

// Serves `replayer` to one debugger after another on 127.0.0.1:port (0: any free port), until `stop` says
// true (asked some ten times a second) or a debugger kills the target. `listening` is called once with the
// port.
std::expected<void, std::string> serve_replay(Replayer& replayer, std::uint16_t port,
                                              const std::function<void(std::uint16_t port)>& listening,
                                              const std::function<bool()>& stop);

}  // namespace orrery::emu::gdb
