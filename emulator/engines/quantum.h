// What a vector core computes at one event, as a value: a core makes it (VectorCore::compute), and the unit
// plays it in model time (VectorUnit::Impl::play), which says how long it takes beside all that others do.
// Computing looks at nothing of the model but `began`.
#pragma once

#include <cstdint>

#include <orrery/hw/engine.h>

#include "emulator/core/bus.h"
#include "emulator/core/work_counts.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

struct Quantum {
    enum class End : std::uint8_t { kMore, kGroupDone, kStopped };

    // --- what is to be done ---
    ModelTime began = 0;       // for the time CSR
    std::uint64_t budget = 0;  // cycles; the last instruction may take more

    // --- what was done ---
    End end = End::kMore;
    std::uint64_t cycles = 0;
    std::uint64_t instructions = 0;
    std::uint64_t items = 0;     // finished
    AccessCounts accesses = {};  // what it asked of memory; waits for single loads are among the cycles
    WorkCounts counts = {};
    std::uint64_t launch = 0;    // of `cycles`: starts of items
    std::uint64_t barriers = 0;  // items that came to one
    // Its accesses have come to a piece of what memory lets through, before its cycles were done: what
    // follows goes on where it stops, without a wait for its last answer.
    bool full = false;
    // For the host: pages that had to be asked for (kFetchLookups for one of code), and all that it did
    // beside what cycles say, see Hart::allow().
    std::uint64_t lookups = 0, work = 0;
    // kStopped: ORR_DONE_FAULT or ORR_DONE_TRAP, and what goes with it.
    std::uint32_t status = ORR_DONE_OK;
    std::uint64_t fault = 0;
    std::uint64_t detail = 0;
    std::uint64_t other = 0;
};

}  // namespace orrery::emu
