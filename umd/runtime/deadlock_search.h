// Cycles of waits over queues of several cards. Each card's firmware finds those of its own; only the process
// that owns the queues can read all their rings. Knows no cards: numbers in, numbers out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::umd {

// A semaphore by its address, and a value of it.
struct SemaphorePoint {
    std::uint64_t va = 0;
    std::uint64_t value = 0;
    bool operator==(const SemaphorePoint&) const = default;
};

struct QueueView {
    std::uint64_t at = 0;  // its first unfinished packet
    bool blocked = false;  // that one waits for `wanted`, which is not there
    SemaphorePoint wanted;
    std::vector<SemaphorePoint> later;   // what its unfinished packets would signal
    std::vector<SemaphorePoint> on_way;  // what it has signalled: if it is not there, it is under way
};

// Those that cannot go on: each waits for what only others of them would signal.
std::vector<bool> find_stuck(std::span<const QueueView> queues);
// The cycle that queue `from` cannot leave: each waits for what the next one would signal, the last one for
// the first. Empty: it is not stuck, so somebody else may end it.
std::vector<std::size_t> find_cycle(std::span<const QueueView> queues, const std::vector<bool>& stuck,
                                    std::size_t from);

}  // namespace orrery::umd
