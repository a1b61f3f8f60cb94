// How long what is on a link is waited for, before whoever waits gives up.
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::umd {

// A write crosses a link in microseconds; this is for peers that are gone, and cards that nobody gives time.
// Of the process; tests make it longer.
inline std::atomic<std::int64_t>& landing_patience() {
    static std::atomic<std::int64_t> ns{20'000'000'000};
    return ns;
}
inline std::int64_t landing_patience_ns() {
    return landing_patience().load(std::memory_order_relaxed);
}

}  // namespace orrery::umd
