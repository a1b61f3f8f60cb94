// The host's clock, for limits of waits.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace orrery::umd {

// CLOCK_MONOTONIC, which the driver's time-outs count by too.
inline std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// A limit that counts from now on.
class Until {
  public:
    explicit Until(std::uint64_t limit_ns) : start_(now_ns()), limit_(limit_ns) {}
    std::uint64_t left_ns() const {
        const auto passed = static_cast<std::uint64_t>(now_ns() - start_);
        return passed >= limit_ ? 0 : limit_ - passed;
    }
    // For poll(), by pieces: rounded up.
    int left_ms() const { return static_cast<int>(std::min<std::uint64_t>(left_ns() / 1'000'000 + 1, 1000)); }
    std::uint64_t limit_ns() const { return limit_; }

  private:
    std::int64_t start_;
    std::uint64_t limit_;
};

}  // namespace orrery::umd
