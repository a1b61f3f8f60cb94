// The yardsticks: the same work in code for this host, on one thread.
#pragma once

#include <string_view>
#include <vector>

namespace orrery::bench {

struct Seconds {
    double real = 0, cpu = 0;
};

class Native {
  public:
    Native();
    // "saxpy", "triad", "reduction", "memcpy" of 64 MiB (and kInARow of them), "sgemm" of 512 cubed.
    Seconds seconds_of(std::string_view work);

  private:
    std::vector<float> x_, y_, z_;
    std::vector<float> a_, b_, c_;
};

}  // namespace orrery::bench
