// Why a decision went as it did: its candidates, the rule that chose, and why not each other one.
#pragma once

#include <string>
#include <vector>

#include "tools/step/history.h"
#include "tools/step/snapshot.h"

namespace orrery::step {

struct Candidate {
    QueueRow row;
    bool chosen = false;
    std::string why;  // why it, or why not
};

struct Why {
    std::size_t number = 0;  // of the decision, from 0
    Record record;
    std::string resource;
    std::string rule;                   // "share"
    std::string rule_text;              // in words
    std::uint32_t counted = 0;          // candidates, as the firmware counted them
    std::vector<Candidate> candidates;  // chosen first, then by class and vtime
    std::string victim;                 // who must give way, in words; empty: nobody
    std::vector<std::string> others;    // what the queues that are no candidates wait for: "2 idle", ...
};

// `snapshot`: the tables at the decision's record.
Why explain(const History& history, std::size_t decision, const Snapshot& snapshot);

}  // namespace orrery::step
