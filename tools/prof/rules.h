// The rules of `orrery-prof explain`: a table of what each looks at and what it advises.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/prof/analysis.h"
#include "tools/prof/shares.h"
#include "tools/prof/steps.h"

namespace orrery::prof {

struct Facts {
    const Activity& activity;
    const Sums& sums;
    const DeviceSums& device;
    const Shares& shares;
    const BarrierLasts& lasts;
    CounterSums counters;  // of all kernels of the device
};

// What a rule says of a device; nothing: it does not apply.
struct Said {
    double share = 0;
    std::string title{};  // "": the rule's
    std::string evidence{}, bound{}, gap{};
    std::string advice{};  // "": the rule's
    bool at_bound = false;
};
struct Rule {
    std::string_view name;
    std::string_view title;
    std::string_view advice;
    std::optional<Said> (*look)(const Facts& facts);
};
std::span<const Rule> rules();

}  // namespace orrery::prof
