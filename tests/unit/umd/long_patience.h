// So that whoever ends by the library's patience with what is on a link is told, by minutes, from who ends at
// once on a machine that stands still for a while.
#pragma once

#include <chrono>
#include <cstdint>

#include "umd/runtime/patience.h"

namespace orrery::umd::test {

// As long as it lives, for all of the process.
class LongPatience {
  public:
    static constexpr std::chrono::seconds kShort{60}, kLong{240};

    LongPatience() : before_(landing_patience().exchange(std::chrono::nanoseconds(kLong).count())) {}
    ~LongPatience() { landing_patience().store(before_); }
    LongPatience(const LongPatience&) = delete;
    LongPatience& operator=(const LongPatience&) = delete;

  private:
    const std::int64_t before_;
};

}  // namespace orrery::umd::test
