// What explain is known to say wrongly, and why that is wrong. One that it says right fails the test.
#include <algorithm>
#include <iterator>

#include "tests/vm/prof/planted/cases.h"

namespace planted {
namespace {

constexpr Known kKnown[] = {
    {"imbalance_in_steps", "imbalance is not what it names first",
     "cores that look whether another one has come count as computing: no record says that the launch was a "
     "cooperative one"},
};

}  // namespace

const Known* known_wrong(std::string_view name) {
    const auto* const found = std::ranges::find(kKnown, name, &Known::name);
    return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace planted
