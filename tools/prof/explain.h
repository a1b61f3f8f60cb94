// What limits a run, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/analysis.h"
#include "tools/prof/steps.h"

namespace orrery::prof {

// What a rule found.
struct Finding {
    std::string_view rule;     // its name, for programs
    std::int64_t device = -1;  // -1: of the process
    double share = 0;          // of the time that it costs; of the device's span, or what `evidence` says
    std::string title;         // "VRAM bandwidth"
    std::string evidence;      // what was seen
    std::string bound;         // what there could be at most
    std::string gap;           // how far that is away
    std::string advice;        // what to try
    bool at_bound = false;     // it is what the hardware can do, and nearly reached
};

struct Explanation {
    const Activity* activity = nullptr;
    Sums sums;
    std::vector<Finding> findings;  // what costs most first
};

// Of less than this share nothing is said.
inline constexpr double kLeastShare = 0.1;
// In less model time a launch or two is all that there is to see.
inline constexpr std::uint64_t kLeastSpanPs = 50'000'000;

// lasts: of the model.
Explanation explain(const Model& model, const Activity& activity, const BarrierLasts& lasts);

// Of all processes.
std::string explain_text(const Model& model);
std::string explain_json(const Model& model);

}  // namespace orrery::prof
