// System calls that wait for cards take as long for eight cards as for one when they are made at once.
#pragma once

#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "umd/runtime/quiet_thread.h"

namespace orrery::umd {

// Calls work(0), ..., work(count - 1), each on a thread of its own, and returns when all have. What the
// system has no thread for is done on this one.
template <typename Work>
void at_once(std::size_t count, const Work& work) {
    std::vector<std::jthread> threads;  // joined at the end
    for (std::size_t i = 1; i < count; ++i) {
        try {
            threads.push_back(start_quiet_thread([&work, i] { work(i); }));
        } catch (const std::system_error&) {
            work(i);
        }
    }
    if (count > 0) work(0);
}

}  // namespace orrery::umd
