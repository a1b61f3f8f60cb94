// Random scenarios for what random_scenario() leaves out, each about one thing. Seeds make them; one card.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/scenario/scenario.h"

namespace orrery::policy {

// Gangs of several rounds between other kernels.
scenario::Scenario gang_scenario(std::uint64_t seed);

// 1,024 queues in four contexts, all at once, for 64 ring slots.
scenario::Scenario many_queues_scenario(std::uint64_t seed);

// Contexts with quotas, and more work than those allow.
scenario::Scenario quota_scenario(std::uint64_t seed);

// The core is crashed and restarted in the middle of random_scenario(). `guilty`: every second time a queue
// looks guilty; then nobody waits for another.
scenario::Scenario restart_scenario(std::uint64_t seed, bool guilty);

// REALTIME, HIGH and NORMAL work: the two lower ones always, REALTIME half of the time, on all cores; and now
// and then something short of class LOW, from the queues of number `first_low` on.
scenario::Scenario load_scenario(std::uint64_t seed, std::uint32_t& first_low);

// Each queue waits for the signal of another, or of nobody, and then gives its own. `cycles`: the queues of
// each circle, from its lowest number on, each before the one that it waits for. Who waits behind a circle
// waits for ever too, and is in none.
scenario::Scenario wait_scenario(std::uint64_t seed, std::vector<std::vector<std::uint32_t>>& cycles);

}  // namespace orrery::policy
