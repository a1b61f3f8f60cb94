// Memory that a debugger watches.
#pragma once

#include <cstdint>

namespace orrery::emu {

struct WatchRange {
    std::uint64_t address = 0;
    std::uint64_t bytes = 8;
    bool on_read = false;
    bool on_write = true;
    bool operator==(const WatchRange&) const = default;
};

}  // namespace orrery::emu
