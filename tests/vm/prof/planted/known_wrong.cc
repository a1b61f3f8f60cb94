// What explain is known to say wrongly, and why that is wrong. One that it says right fails the test.
#include <algorithm>
#include <iterator>

#include "tests/vm/prof/planted/cases.h"

namespace planted {
namespace {

constexpr Known kKnown[] = {
    {"imbalance_in_steps", "imbalance is not what it names first",
     "cores that look whether another one has come count as computing: in the sums of what a launch's cores "
     "did, that is scalar code as any other"},
};

}  // namespace

const Known* known_wrong(std::string_view name) {
    const auto* const found = std::ranges::find(kKnown, name, &Known::name);
    return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace planted
