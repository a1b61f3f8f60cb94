// What a graph has on threads of the host: its host nodes, and what goes between cards that no way of links
// joins. Where it has any of the latter, all order between such cards goes by the host, and so do its start
// and its end, whatever stream it is launched into: a card cannot signal one that it does not reach.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/scheduler/graph_exec.h"

namespace orrery::umd {

Result<bool> GraphExec::relay(std::vector<GraphNode>& graph, std::vector<PlanNode>& nodes) const {
    const auto count = static_cast<std::uint32_t>(graph.size());
    const auto add = [&](std::vector<std::uint32_t> after) {
        GraphNode& node = graph.emplace_back();
        node.kind = NodeKind::kRelay;
        nodes.push_back({.device = kHostLane, .after = std::move(after)});
        return static_cast<std::uint32_t>(graph.size() - 1);
    };
    std::map<std::pair<int, int>, bool> linked;
    std::map<std::uint32_t, std::uint32_t> behind;  // relays, by the node before them
    for (std::uint32_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < nodes[i].after.size(); ++k) {
            const std::uint32_t before = nodes[i].after[k];
            const int from = nodes[before].device, to = nodes[i].device;
            if (from == kHostLane || to == kHostLane || from == to) continue;
            auto known = linked.find({from, to});
            if (known == linked.end()) {
                ORR_TRY(there, runtime_.linked(from, to));
                known = linked.emplace(std::pair(from, to), *there).first;
            }
            if (known->second) continue;
            if (!behind.contains(before)) behind.emplace(before, add({before}));
            nodes[i].after[k] = behind[before];
        }
    }
    if (by_host_ == 0 && behind.empty()) return false;
    std::vector<bool> last(count, true);
    for (const PlanNode& node : nodes) {
        for (const std::uint32_t before : node.after)
            last[before] = false;
    }
    const std::uint32_t start = add({});
    std::vector<std::uint32_t> ends;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (nodes[i].after.empty()) nodes[i].after.push_back(start);
        if (last[i]) ends.push_back(i);
    }
    (void)add(std::move(ends));
    for (PlanNode& node : nodes)
        node.apart = node.device == kHostLane;
    return true;
}

std::uint32_t GraphExec::edges_of(std::span<const GraphNode> graph) {
    std::uint32_t edges = 0;
    for (const GraphNode& node : graph)
        edges += static_cast<std::uint32_t>(std::set(node.after.begin(), node.after.end()).size());
    return edges;
}

Status GraphExec::push_host_steps(const std::shared_ptr<Stream>& stream, std::uint64_t start_index) {
    const int end_device = stream->context().device();
    for (auto& host : hosts_) {
        const PlannedLane& planned = plan_.lanes[host->lane];
        Lane& lane = lanes_[host->lane];
        for (std::uint32_t position = 0; position < planned.nodes.size(); ++position) {
            const PlannedNode& node = planned.nodes[position];
            const GraphNode& given = host_nodes_.at(node.node);
            HostStep step;
            step.function = given.function;
            step.user = given.user;
            if (given.kind == NodeKind::kByHost) {
                step.copy = given.between;
                step.device = given.device;
                const Transfer& transfer = given.between->transfer;
                step.devices = 1ull << transfer.dst_memory->device | 1ull << transfer.src_memory->device;
            }
            if (steps_wanted() && given.kind != NodeKind::kRelay) {
                const bool copies = step.copy != nullptr;
                step.told.step = make_step(copies ? orrProfStepCopy : orrProfStepHost, orrProfOwnerGraph,
                                           owner_, node.node, -1);
                step.told.step.round = launches_ + 1;
                step.told.step.lane = host->lane;
                step.told.name = copies ? "copy by the host" : "host node";
                step.told.marks = StepMarks::here();
            }
            if (position == 0 && planned.starts) {
                step.streams.emplace_back(stream, start_index);
                // Behind the end of the last launch, whatever stream that was into.
                for (const auto& other : hosts_) {
                    if (relayed_ && other != host && plan_.lanes[other->lane].ends)
                        step.hosts.push_back(
                            {other->lane, launches_ * plan_.lanes[other->lane].nodes.size()});
                }
            }
            for (const LaneWait& wait : node.waits) {
                const Lane& from = lanes_[wait.lane];
                if (from.device == kHostLane) {
                    step.hosts.push_back(
                        {wait.lane, launches_ * plan_.lanes[wait.lane].nodes.size() + wait.position + 1});
                } else {
                    step.streams.emplace_back(from.stream, index_behind(from, from.end_of[wait.position]));
                }
            }
            std::uint64_t signals = node.signals;
            if (planned.ends && position + 1 == planned.nodes.size()) signals |= 1ull << end_device;
            for (int device = 0; device < 64; ++device) {
                if ((signals >> device & 1) == 0) continue;
                ORR_TRY(to, slot(lane, device));
                const std::uint64_t value = launches_ * span(host->lane) + position + 1;
                step.signals.emplace_back((*to)->context, make_semaphore(ORR_PKT_SIGNAL, (*to)->va, value));
            }
            if (step.copy != nullptr) runtime_.host_copies().begin(step.devices);
            const std::lock_guard lock(host_mutex_);
            host->steps.push_back(std::move(step));
            ++host->pushed;
        }
    }
    host_changed_.notify_all();
    return {};
}

Status GraphExec::wait_hosts(const std::stop_token& stop, const HostStep& step) {
    std::unique_lock lock(host_mutex_);
    for (const HostWait& wait : step.hosts) {
        const auto host = std::ranges::find(hosts_, wait.lane, [](const auto& h) { return h->lane; });
        const bool there =
            host_changed_.wait(lock, stop, [&] { return fate_.ended() || (*host)->done >= wait.position; });
        if (!there) return fail(orrErrorInternal, "the graph is being destroyed");
    }
    if (const auto broken = fate_.error()) return std::unexpected(*broken);
    return {};
}

// In queues of its own, that cards have for such copies.
Status GraphExec::copy_by_host(const HostStep& step) {
    const Transfer& transfer = step.copy->transfer;
    const int dst = transfer.dst_memory->device, src = transfer.src_memory->device;
    ORR_TRY(own, runtime_.context(step.device));
    ORR_TRY(other, runtime_.context(step.device == dst ? src : dst));
    std::vector<std::shared_ptr<Stream>> ended;
    ORR_TRY(stream, (*own)->take_copy_stream(ended));
    auto done = copy_staged(transfer, step.copy->copy, **stream, **other);
    (*own)->give_copy_stream(std::move(*stream));
    return done;
}

Status GraphExec::run_host_step(const std::stop_token& stop, const HostStep& step) {
    for (const auto& [stream, index] : step.streams) {
        auto there = stream->wait(index);
        // Streams in a deadlock go on when somebody signals; whoever waits for them is told meanwhile.
        while (!there && !stream->error() && !stop.stop_requested() && !fate_.ended()) {
            if (by_host_ != 0) runtime_.host_copies().stuck(there.error());
            there = stream->wait(index);
        }
        if (by_host_ != 0) runtime_.host_copies().stuck(std::nullopt);
        if (!there) return there;
    }
    ORR_TRY(there, wait_hosts(stop, step));
    const bool told = step.told.step.kind != 0 && steps_wanted();
    const std::int64_t begin_ns = told ? now_ns() : 0;
    if (step.function != nullptr) step.function(step.user);
    if (step.copy != nullptr) {
        ORR_TRY(copied, copy_by_host(step));
    }
    if (told) tell_host_step(step.told, begin_ns);
    for (const auto& [context, packet] : step.signals) {
        ORR_TRY(sent, context->signal(packet));
    }
    return {};
}

// What a host node did not signal fails, so that lanes which wait for it end.
void GraphExec::fail_signals(const HostStep& step, const Error& error) {
    for (const auto& [context, packet] : step.signals)
        (void)context->fleet().fail_semaphore(*context, packet.word[0], ORR_QERR_ABORTED,
                                              "a host node of the graph", error);
}

void GraphExec::run_host_lane(const std::stop_token& stop, HostLane& host) {
    while (true) {
        HostStep step;
        {
            std::unique_lock lock(host_mutex_);
            if (!host_changed_.wait(lock, stop, [&] { return !host.steps.empty(); })) return;
            step = std::move(host.steps.front());
            host.steps.pop_front();
        }
        const auto done = run_host_step(stop, step);
        if (!done) fail_signals(step, fate_.end(done.error()));
        if (step.copy != nullptr) runtime_.host_copies().end(step.devices);
        {
            const std::lock_guard lock(host_mutex_);
            ++host.done;
        }
        host_changed_.notify_all();
    }
}

void GraphExec::end_hosts() {
    for (auto& host : hosts_)
        host->thread.request_stop();
    host_changed_.notify_all();
    for (auto& host : hosts_) {
        host->thread.join();
        for (const HostStep& step : host->steps)
            if (step.copy != nullptr) runtime_.host_copies().end(step.devices);
    }
    hosts_.clear();
}

}  // namespace orrery::umd
