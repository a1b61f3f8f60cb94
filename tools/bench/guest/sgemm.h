// A matrix product in single precision on the first card, with a kernel as one writes it first.
#pragma once

#include <vector>

namespace orrery::bench {

inline constexpr unsigned kSgemmSize = 128;

// Nanoseconds from the launch until the product is in host memory, one value a round. Throws if it is wrong.
std::vector<double> sgemm_times(int rounds);

}  // namespace orrery::bench
