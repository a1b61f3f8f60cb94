// gdb on a recording: what orrery-step --gdb PORT calls.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "emulator/api/replayer.h"

namespace orrery::emu::gdb {

// Answers a "monitor" command that the server does not know; nothing: neither does it.
using MonitorHook = std::function<std::optional<std::string>(const std::string& command)>;

// Serves `replayer` to one debugger after another on 127.0.0.1:port (0: any free port), until `stop` says
// true (asked some ten times a second) or a debugger kills the target. `listening` is called once with the
// port. A debugger that names no file of its own gets `program`, the ELF of what was recorded; empty: none.
std::expected<void, std::string> serve_replay(Replayer& replayer, std::uint16_t port,
                                              const std::function<void(std::uint16_t port)>& listening,
                                              const std::function<bool()>& stop,
                                              const MonitorHook& monitor = {},
                                              std::span<const std::uint8_t> program = {});

}  // namespace orrery::emu::gdb
