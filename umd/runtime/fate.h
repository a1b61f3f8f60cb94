// What became of something that works until it fails: a stream, an instantiated graph, a task graph's queues,
// a capture. One notion for all: nothing yet, or the first cause that ended it, which then stays.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "umd/winsys/error.h"

namespace orrery::umd {

// Thread safe.
class Fate {
  public:
    bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }

    // Nothing while it goes on.
    std::optional<Error> error() const {
        if (!ended()) return std::nullopt;
        const std::lock_guard lock(mutex_);
        return error_;
    }

    // The first cause stays; gives the one that counts.
    Error end(Error cause) {
        const std::lock_guard lock(mutex_);
        if (!ended_.load(std::memory_order_relaxed)) {
            error_ = std::move(cause);
            ended_.store(true, std::memory_order_release);
        }
        return error_;
    }

  private:
    mutable std::mutex mutex_;
    std::atomic<bool> ended_{false};
    Error error_;
};

}  // namespace orrery::umd
