#include "umd/prof/holders.h"

#include <algorithm>

#include "umd/prof/profiler.h"

namespace orrery::umd {

void Holders::forget_ended() {
    std::erase_if(all_, [](orrProfSubscription_t each) { return !Profiler::get().wants(each, 0); });
}

bool Holders::empty() {
    forget_ended();
    return all_.empty();
}

bool Holders::has(orrProfSubscription_t one) const {
    return std::ranges::find(all_, one) != all_.end();
}

bool Holders::only(orrProfSubscription_t one) {
    forget_ended();
    return std::ranges::all_of(all_, [&](orrProfSubscription_t each) { return each == one; });
}

void Holders::add(orrProfSubscription_t one) {
    if (!has(one)) all_.push_back(one);
}

void Holders::remove(orrProfSubscription_t one) {
    std::erase(all_, one);
}

std::string Holders::other_than(orrProfSubscription_t one) const {
    const auto other = std::ranges::find_if(all_, [&](orrProfSubscription_t each) { return each != one; });
    return other == all_.end() ? "nobody" : Profiler::get().name_of(*other);
}

}  // namespace orrery::umd
