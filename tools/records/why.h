// Why a decision went as it did: its candidates, the rule that chose, and why not each other one.
#pragma once

#include <string>
#include <vector>

#include "tools/records/history.h"
#include "tools/records/snapshot.h"

namespace orrery::records {

// A queue that waits for the resource, or a packet of it that was preempted and waits to go on.
struct Candidate {
    QueueRow row;
    std::uint64_t index = 0;  // of the packet that would start or go on
    std::string state;        // "ready", "suspended", "running", ...
    std::uint64_t vtime = 0;  // of the resource that is decided about
    Time since = kNever;      // it is a candidate from here on; kNever: not known
    bool suspended = false;
    bool running = false;  // on a port: decisions about the cores behind the ports
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
    std::vector<std::string> others;    // what the queues that are no candidates do: "2 idle", ...
};

// `snapshot` and `policy` (may be null): at the decision's record.
Why explain(const History& history, std::size_t decision, const Snapshot& snapshot, const orr_policy* policy);

}  // namespace orrery::records
