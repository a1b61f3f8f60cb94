// What explain is known to say wrongly, and why that is wrong. One that it says right fails the test.
#include <algorithm>
#include <array>

#include "tests/vm/prof/planted/cases.h"

namespace planted {
namespace {

constexpr std::array<Known, 0> kKnown{};

}  // namespace

const Known* known_wrong(std::string_view name) {
    const auto found = std::ranges::find(kKnown, name, &Known::name);
    return found == kKnown.end() ? nullptr : &*found;
}

}  // namespace planted
