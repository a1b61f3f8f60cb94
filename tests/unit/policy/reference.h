// The policy once more, written from its description alone, for a card with one vector port: classes in
// order, in a class the queue that has used the least for its weight, a preempted job before the others of
// its class.
#pragma once

#include <string>

#include "tests/unit/policy/history.h"

namespace orrery::policy {

struct Judgement {
    std::string wrong;          // the first choice that the model would not have made; empty: none
    std::uint64_t choices = 0;  // that were judged: more than one queue could have been next
};

// For scenarios in which all is submitted at once and consists of kernels that no slice cuts; together
// shorter than the bound, which the model leaves out. Choices within `settle` of the start are not judged:
// not everybody is there yet.
Judgement judge(const scenario::Scenario& scenario, const History& history);

// Such a scenario.
scenario::Scenario one_port_scenario(std::uint64_t seed);

}  // namespace orrery::policy
