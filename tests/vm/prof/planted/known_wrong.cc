// What explain is known to say wrongly, and why that is wrong. One that it says right fails the test.
#include <algorithm>
#include <iterator>

#include "tests/vm/prof/planted/cases.h"

namespace planted {
namespace {

struct Known {
    std::string_view name;
    const char* wrong;
};
constexpr Known kKnown[] = {
    {"copy_in_one_stream", "1.6 ms of copies would be saved beside kernels that take 0.6 ms"},
    {"copy_pageable_input", "1.1 ms of copies would be saved beside kernels that take 0.5 ms"},
    {"vram_two_streams", "kernels side by side count as if each had its bytes for itself: half of the rate"},
    {"imbalance_in_steps", "cores that look whether another one has come count as computing"},
    {"none_pipeline",
     "kernels side by side count as if each had all cores: 71 % of the peak instead of 91 %"},
    {"none_two_halves", "kernels side by side count as if each had all cores: half of the peak"},
    {"none_whole_numbers",
     "some floating point in 10 of 1,950 us, and whole numbers are held against its peak"},
    {"link_halo", "names nothing: copies beside kernels do not count, though the kernels do not matter"},
};

}  // namespace

const char* known_wrong(std::string_view name) {
    const auto* const found = std::ranges::find(kKnown, name, &Known::name);
    return found == std::end(kKnown) ? nullptr : found->wrong;
}

}  // namespace planted
