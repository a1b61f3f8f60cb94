#include "tools/run/ranks.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

namespace orrery::run {

Share share_of(unsigned ranks, unsigned vms, unsigned vm) {
    const unsigned each = ranks / vms, more = ranks % vms;
    return {vm * each + std::min(vm, more), each + (vm < more ? 1 : 0)};
}

std::string profile_of(unsigned rank) {
    return fmt::format("rank{}.prof", rank);
}

std::string make_token(unsigned vms) {
    std::array<unsigned char, 32> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return {};
    std::string text = vms > 1 ? "orrg1-dir-" : "orrg1-unix-";
    for (std::size_t i = 0; i < random.size(); ++i)
        text += fmt::format("{}{:02x}", i == random.size() / 2 ? "-" : "", random[i]);
    return vms > 1 ? text + "-/share" : text;
}

}  // namespace orrery::run
