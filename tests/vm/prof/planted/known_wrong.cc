// What explain is known to say wrongly, and why that is wrong. One that it says right fails the test.
#include <algorithm>
#include <array>

#include "tests/vm/prof/planted/cases.h"

namespace planted {
namespace {

constexpr std::array<Known, 1> kKnown{{
    {"blind2_decode_tokens", "host is not what it names first",
     "the host takes longer than the card for each token, but by the host's clock less than the emulation of "
     "the card's kernels, of which the rule wants it to be as much"},
}};

}  // namespace

const Known* known_wrong(std::string_view name) {
    const auto found = std::ranges::find(kKnown, name, &Known::name);
    return found == kKnown.end() ? nullptr : &*found;
}

}  // namespace planted
