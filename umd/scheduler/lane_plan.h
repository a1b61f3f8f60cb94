// Lays a graph's nodes onto lanes (hardware queues, or threads for host nodes) and finds the waits that are
// needed between them. Knows no cards: numbers in, numbers out.
//
// Two nodes share a lane only if one comes after the other anyway, so lanes never serialise what is
// independent, until a device has kMaxLanes of them. A wait is left out if the lane knows already that the
// node is done: each lane carries, for every lane, the position that it has heard of, directly or through
// others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "umd/winsys/error.h"

namespace orrery::umd {

constexpr int kHostLane = -1;  // "device" of host nodes
constexpr std::uint32_t kNoLane = ~0u;

struct PlanNode {
    int device = kHostLane;
    std::vector<std::uint32_t> after;  // node numbers; any order, duplicates allowed
    std::uint64_t writes_to = 0;       // bit of each other device whose memory it may write
    bool apart = false;  // a host node that is all that leads from what is before it to what is behind it
};

struct LaneWait {
    std::uint32_t lane = 0;
    std::uint32_t position = 0;  // of the node in that lane
};

struct PlannedNode {
    std::uint32_t node = 0;       // number in the input; kArrival: only tells that writes have arrived
    std::vector<LaneWait> waits;  // before it
    std::uint64_t signals = 0;    // bit of each device whose lanes wait for it
    bool signals_host = false;    // a host lane waits for it
};
constexpr std::uint32_t kArrival = ~0u;

struct PlannedLane {
    int device = kHostLane;
    std::vector<PlannedNode> nodes;
    bool starts = false;  // nothing else of the graph comes before its first node
    bool ends = false;    // nothing else of the graph waits for all that its last node stands for
    std::uint64_t unarrived =
        0;  // plans of one lane only: devices to which its writes are under way at the end
};

struct LanePlan {
    std::vector<PlannedLane> lanes;
    std::uint32_t edges = 0;  // of the input, without duplicates
    std::uint32_t waits = 0;
    std::uint32_t signals = 0;
};

constexpr std::uint32_t kMaxLanes = 32;  // a device

// Fails on a cycle, naming a node of it, and on a number out of range.
Result<LanePlan> plan_lanes(std::span<const PlanNode> nodes, std::uint32_t max_lanes = kMaxLanes);

}  // namespace orrery::umd
