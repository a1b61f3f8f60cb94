// What the checks of kernels find: one mistake, as its launch's completion and the card's log tell it.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/core/bus.h"

namespace orrery::emu {

enum class FindingKind : std::uint8_t {
    kRace,          // `second` and `first` touch the same bytes, and nothing orders them
    kOutside,       // `second` touches bytes of work-group memory that the launch did not ask for, or of a
                    // heap that are in no allocation
    kBelowStack,    // `second` touches its stack below its stack pointer
    kNeverWritten,  // `second` reads bytes of its stack that it has never written, or of an allocation that
                    // nobody has
};

struct Side {
    std::uint64_t group = 0;
    std::uint32_t item = 0;
    std::uint64_t pc = 0;
    AccessKind kind = AccessKind::kLoad;
};

struct Finding {
    FindingKind kind = FindingKind::kRace;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    bool beside = false;  // `first` is of another launch
    Side first;           // of a race: the one that this run did first
    Side second;
};

// What ORR_DONE_TRAP says of a launch with such findings, of which `finding` was the first.
struct FindingWords {
    std::uint64_t fault = 0, detail = 0, item = 0, other = 0;
};
FindingWords words_of(const Finding& finding, std::uint64_t findings, std::uint64_t entry);

// For the log.
std::string to_string(const Finding& finding, std::uint64_t entry);

}  // namespace orrery::emu
