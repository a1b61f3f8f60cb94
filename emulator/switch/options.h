// The command line of orrery-switch.
#pragma once

#include <expected>
#include <string>

#include "emulator/switch/switch.h"

namespace orrery::emu {

struct SwitchOptions {
    SwitchConfig config;
    std::string log;  // empty: stderr

    // The error is empty if all was said (--help).
    static std::expected<SwitchOptions, std::string> parse(int argc, const char* const* argv);
};

}  // namespace orrery::emu
