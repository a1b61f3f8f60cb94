// The scheduler's figures, in model time: the same in every run. For the test that holds them to their goals,
// and for the benchmark that shows them.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "tools/scenario/runner.h"

namespace orrery::policy {

struct Figure {
    std::string name;
    double value = 0;
    std::string unit;
    double goal = 0;
    bool at_most = true;  // or at least
    bool holds() const { return at_most ? value <= goal : value >= goal; }
};
using Figures = std::expected<std::vector<Figure>, std::string>;

// Cycles of the control core a packet, from the counters; goals: 400 with one busy queue, 800 with 1,024.
Figures dispatch_figures();
// Jain's index of equal queues, and how far queues of weights 1:2:4 are from their shares.
Figures share_figures();
// From doorbell to engine while a kernel of seconds holds all cores.
Figures preemption_figures();
// The longest that the lowest class waits while higher ones could use everything.
Figures waiting_figures();
// How much less others get done when one queue misbehaves, in 1/100.
Figures guard_figures();

}  // namespace orrery::policy
