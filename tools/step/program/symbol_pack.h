// The symbols and sources that a recording carries of its firmware (struct orr_otrace_symbols).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/step/words.h"

namespace orrery::step {

struct SymbolPack {
    std::vector<std::uint8_t> elf;               // debug information and symbols, no code
    std::map<std::string, std::string> sources;  // by their names from the root of the source tree

    // `pack` as the recording has it; `image_elf` is what ran: another firmware's symbols are refused.
    static Result<SymbolPack> open(std::span<const std::uint8_t> pack, std::vector<std::uint8_t> image_elf);
};

}  // namespace orrery::step
