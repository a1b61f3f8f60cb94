#include "emulator/link/cable.h"

#include <fmt/format.h>

#include "emulator/link/link_port.h"

namespace orrery::emu {

std::expected<void, std::string> move_cable(LinkPort* port, std::uint64_t number, bool in) {
    if (port == nullptr) return std::unexpected(fmt::format("there is no link at port {}", number));
    if (in) return port->plug();
    port->unplug();
    return {};
}

}  // namespace orrery::emu
