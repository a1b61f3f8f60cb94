// The rules of `orrery-prof explain`: a table of what each looks at and what it advises.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/prof/analysis.h"
#include "tools/prof/steps.h"

namespace orrery::prof {

// Where the time of a card went, each moment in one place, as shares of its span.
struct Shares {
    double kernels =
        0;  // in which vector cores worked, counted as if all did at once; the sum of the next six
    double compute = 0, bandwidth = 0, latency = 0, link = 0, item_launch = 0;
    double uncounted = 0;      // of kernels without counters
    double unused_cores = 0;   // a kernel ran, and cores had nothing to do
    double others_cores = 0;   // or had kernels of other processes of the profile
    double kernel_launch = 0;  // to the first work-group of kernels
    double host_copies = 0;    // copies from and to the host, and no kernel
    double peer_copies = 0;    // the same of other cards
    double inner_copies = 0;   // of the card's own memory, and fills
    double small_copies = 0;   // what copies of few bytes took beyond their bytes, and no kernel ran
    std::array<double, kIdleKinds> idle{};

    double idle_of(Idle why) const { return idle[static_cast<std::size_t>(why)]; }
};
Shares shares_of(const DeviceSums& sums);

struct Facts {
    const Activity& activity;
    const Sums& sums;
    const DeviceSums& device;
    const Shares& shares;
    const BarrierLasts& lasts;
    CounterSums counters;  // of all kernels of the device
    Roofline roofline;
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
