// What a launch of a kernel cost the host in the order of model time, on the card's thread, of all that it
// computed. It depends on the host and its threads, and is no part of the model: it leaves the card only on
// the host's side.
#pragma once

#include <cstdint>

#include <orrery/hw/engine.h>

#include "emulator/time/event_queue.h"

namespace orrery::emu {

// Why a launch ran in order from some point on.
enum class InOrder : std::uint8_t {
    kNot,
    kNoThreads,
    kBefore,   // a launch of its kernel did a short while ago
    kShort,    // its groups are not worth handing over
    kStopped,  // a group came to what must not be done ahead of its time, at a pc
    kMet,      // a group has read or written what another wrote
};

struct LaunchAccount {
    orr_desc_kernel desc{};
    std::uint32_t port = 0, status = 0;  // ORR_DONE_*
    ModelTime start_ps = 0, end_ps = 0;
    std::uint64_t instructions = 0;
    std::uint64_t ahead = 0;  // of them: computed ahead of their time, on any thread
    // Of the groups that were begun before a core got them: those that it got, and those that it did not.
    std::uint64_t right_guesses = 0, wrong_guesses = 0;
    InOrder cause = InOrder::kNot;
    std::uint64_t group = 0, pc = 0;  // with which it began
};

}  // namespace orrery::emu
