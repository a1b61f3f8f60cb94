// The command line of orrery-card.
#pragma once

#include <expected>
#include <string>

#include "emulator/card/card.h"
#include "emulator/pcie/device.h"

namespace orrery::emu {

struct Options {
    std::string socket;
    unsigned index = 0;
    InterruptMode interrupts = InterruptMode::kMsix;
    std::string log;  // empty: stderr
    CardConfig card;  // all but log and raise

    // Reads the files that the options name. An error is one line that says what to do; it is empty if help
    // was asked for and has been printed.
    static std::expected<Options, std::string> parse(int argc, const char* const* argv);
};

}  // namespace orrery::emu
