// What linked cards told each other, as far as their recordings say so.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tools/records/history.h"
#include "tools/step/words.h"

namespace orrery::step {

// A recording, and where its card's clock stands on the common time line (empty: it is that line).
struct CardHistory {
    const History* history = nullptr;
    std::function<Time(Time)> system_time;

    Time system(Time own) const { return system_time ? system_time(own) : own; }
};

// A signal of a semaphore of a linked card, and the record with which that card heard of it.
struct Message {
    std::size_t from = 0, signal = 0;  // card, and in its history's records
    std::size_t to = 0, poke = 0;
};

// Records do not name their message. What woke a queue is the last signal before of the value that it saw, by
// another card, of the semaphore for which the queue waited: a process has that at the same address on all of
// its cards. If none has that address (another process signalled), the last of that value. If several cards
// sent one, nothing tells whose it was, and the message is left out; so is what woke nobody. In order of the
// cards that heard, and of time.
std::vector<Message> find_messages(const std::vector<CardHistory>& cards);

}  // namespace orrery::step
