// Contexts, queues and engines at one moment, out of the firmware's tables.
#pragma once

#include <orrery/fw/policy.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/records/inspect.h"
#include "tools/text/units.h"

namespace orrery::records {

struct QueueRow {
    std::uint32_t number = 0;
    std::uint64_t context = 0, priority = 0, weight = 0, slice_us = 0, state = 0;
    std::uint64_t producer = 0, next = 0, retired = 0, in_flight = 0;
    // What rule "share" compares; firmware may keep one for each resource.
    std::uint64_t vtime = 0, vtime_turn = 0;                 // of vector ports; of turns
    std::map<std::uint64_t, std::uint64_t> vtime_of_engine;  // by ORR_ENGINE_*, where the firmware keeps it
    std::uint64_t vtime_of(std::uint64_t kind) const {
        const auto one = vtime_of_engine.find(kind);
        return one == vtime_of_engine.end() ? vtime : one->second;
    }
    std::string vtime_text;
    Time used_ps = 0, ready_since_ps = 0;
    std::uint64_t wait_memory = 0, wait_value = 0, wait_va = 0;
    std::uint64_t error = 0, generation = 0, slot = 0xff;
    std::string name;
};
struct ContextRow {
    std::uint32_t number = 0;
    std::uint64_t queues = 0, quota_permille = 0, quota_period_us = 0;
    Time used_ps = 0;
    bool throttled = false;
    std::string name;
};
struct PortRow {
    std::uint32_t number = 0;
    std::uint64_t kind = 0;
    bool busy = false;
    std::uint64_t queue = 0, index = 0;
    Time started_ps = 0, deadline_ps = 0;
    std::uint64_t preempting = 0;
};

// Rows that exist only. A field that a firmware lacks reads as 0.
struct Snapshot {
    std::vector<QueueRow> queues;
    std::vector<ContextRow> contexts;
    std::vector<PortRow> ports;

    const QueueRow* queue(std::uint32_t number) const;
};
Snapshot take_snapshot(const Inspect& inspect, Sram sram);

// The numbers of the firmware's policy, as its image has them; nothing: it has no such object.
std::optional<orr_policy> find_policy(Sram sram);

}  // namespace orrery::records
