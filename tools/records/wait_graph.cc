#include "tools/records/wait_graph.h"

#include <orrery/fw/trace.h>

#include <algorithm>
#include <map>
#include <set>

namespace orrery::records {
namespace {

// An edge of a deadlock report that belongs to this very wait.
const DeadlockEdge* reported(const History& history, const Wait& wait) {
    for (const Deadlock& deadlock : history.deadlocks())
        for (const DeadlockEdge& edge : deadlock.edges)
            if (edge.waits == wait.queue && edge.memory == wait.memory && edge.value == wait.value &&
                edge.step >= wait.from_step && edge.step <= wait.to_step)
                return &edge;
    return nullptr;
}

void find_cycles(WaitGraph& graph) {
    std::map<std::uint32_t, std::size_t> by_queue;
    for (std::size_t i = 0; i < graph.edges.size(); ++i)
        by_queue[graph.edges[i].queue] = i;
    std::set<std::uint32_t> done;
    for (const WaitEdge& start : graph.edges) {
        // A queue waits for one semaphore at a time: from each there is one way on.
        std::vector<std::uint32_t> path;
        std::uint32_t at = start.queue;
        while (true) {
            const auto edge = by_queue.find(at);
            const auto seen = std::ranges::find(path, at);
            if (seen != path.end()) {
                std::vector<std::uint32_t> cycle(seen, path.end());
                for (const std::uint32_t queue : cycle)
                    graph.edges[by_queue[queue]].in_cycle = true;
                graph.cycles.push_back(std::move(cycle));
                break;
            }
            if (edge == by_queue.end() || done.contains(at) || !graph.edges[edge->second].holder) break;
            path.push_back(at);
            at = *graph.edges[edge->second].holder;
        }
        done.insert(path.begin(), path.end());
    }
}

}  // namespace

WaitGraph wait_graph(const History& history, std::uint64_t step) {
    WaitGraph graph;
    std::map<std::uint64_t, std::uint64_t> values;
    for (const Record& record : history.records()) {
        if (record.step >= step) break;
        if (record.type == ORR_TRACE_SIGNAL) values[record.word[0]] = record.word[1];
        if (record.type == ORR_TRACE_WAKE) values[record.word[0]] = record.word[1];
    }
    for (std::size_t i = 0; i < history.waits().size(); ++i) {
        const Wait& wait = history.waits()[i];
        if (wait.from_step >= step || wait.to_step < step) continue;
        WaitEdge edge;
        edge.wait = i;
        edge.queue = wait.queue;
        edge.woken = wait.wake != 0 ? wait.to : kNever;
        if (const auto value = values.find(wait.memory); value != values.end())
            edge.last_value = value->second;
        if (const DeadlockEdge* found = reported(history, wait)) {
            edge.holder = found->holds;
            edge.found_by_firmware = true;
            if (!edge.last_value) edge.last_value = found->now;
        } else if (wait.signalled_by) {
            edge.holder = wait.signalled_by;
        }
        graph.edges.push_back(edge);
    }
    std::ranges::sort(graph.edges, {}, [](const WaitEdge& edge) { return std::pair(edge.queue, edge.wait); });
    find_cycles(graph);
    return graph;
}

}  // namespace orrery::records
