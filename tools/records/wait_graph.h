// Who waits for whom: queues that stand at a semaphore, and the queue whose signal would let them go on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/records/history.h"

namespace orrery::records {

struct WaitEdge {
    std::size_t wait = 0;  // in History::waits()
    std::uint32_t queue = 0;
    // The queue that has the signal: as the firmware's search for deadlocks found it, or as the rest of the
    // recording shows it.
    std::optional<std::uint32_t> holder;
    bool found_by_firmware = false;
    bool in_cycle = false;
    std::optional<std::uint64_t> last_value;  // of the semaphore, as signals before this moment set it
    Time woken = kNever;                      // when it goes on, if it does in this recording
};

struct WaitGraph {
    std::vector<WaitEdge> edges;  // in order of queue numbers
    std::vector<std::vector<std::uint32_t>>
        cycles;  // queues, each waiting for the next, the last for the first
};

// At a position; `step` as in Record::step: a wait whose record stands exactly there has not begun.
WaitGraph wait_graph(const History& history, std::uint64_t step);

}  // namespace orrery::records
