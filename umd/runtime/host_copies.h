// Copies of launched graphs that threads of the host have still to do. A card knows nothing of them until
// they begin, so whoever frees memory of a card asks here first.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "umd/winsys/error.h"

namespace orrery::umd {

// Thread safe. Sets of devices have a bit each.
class HostCopies {
  public:
    // Of two devices' memory; from its launch until it has been done, or will not be.
    void begin(std::uint64_t devices) { count(devices, 1); }
    void end(std::uint64_t devices) { count(devices, -1); }
    // What comes before one of them is in a deadlock, or nothing is any more.
    void stuck(std::optional<Error> why) {
        const std::lock_guard lock(mutex_);
        stuck_ = std::move(why);
        changed_.notify_all();
    }
    // Returns when there is none of this device's memory; an error if that may never be.
    Status wait(int device) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return open_.at(static_cast<unsigned>(device)) == 0 || stuck_; });
        if (open_[static_cast<unsigned>(device)] != 0) return std::unexpected(*stuck_);
        return {};
    }

  private:
    void count(std::uint64_t devices, std::int64_t by) {
        const std::lock_guard lock(mutex_);
        for (unsigned device = 0; device < open_.size(); ++device)
            if ((devices >> device & 1) != 0) open_[device] += by;
        changed_.notify_all();
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::array<std::int64_t, 64> open_{};
    std::optional<Error> stuck_;
};

}  // namespace orrery::umd
