#include "umd/scheduler/graph_exec.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/quiet_thread.h"

namespace orrery::umd {
namespace {

constexpr std::uint32_t kMinEntries = 64, kMaxEntries = ORR_RING_MAX_ENTRIES;
constexpr std::uint64_t kArgsAlignment = 64;

}  // namespace

Result<std::shared_ptr<GraphExec>> GraphExec::create(Runtime& runtime, std::span<const GraphNode> graph) {
    std::shared_ptr<GraphExec> exec(new GraphExec(runtime));
    ORR_TRY(built, exec->build({graph.begin(), graph.end()}));
    return exec;
}

// Nodes without work of a device's own go where the node before (or, at the start, after) them is.
Status GraphExec::place_nodes(std::span<const GraphNode> graph, std::vector<PlanNode>& nodes) const {
    const auto& given = graph;
    std::vector<int> device(given.size(), kHostLane);
    std::vector<std::uint8_t> known(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        device[i] = on_host(given[i].kind) ? kHostLane : given[i].device;
        known[i] = given[i].kind == NodeKind::kPacket || on_host(given[i].kind);
    }
    const auto follow = [&](std::size_t node, std::size_t neighbour) {
        if (known[node] != 0 || known[neighbour] == 0 || device[neighbour] == kHostLane) return false;
        device[node] = device[neighbour];
        known[node] = 1;
        return true;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < given.size(); ++i) {
            for (const std::uint32_t before : given[i].after)
                changed |= follow(i, before);
        }
        if (changed) continue;
        for (std::size_t i = 0; i < given.size(); ++i) {
            for (const std::uint32_t before : given[i].after)
                changed |= follow(before, i);
        }
    }
    nodes.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        nodes[i].device = device[i];
        nodes[i].after = given[i].after;
        nodes[i].writes_to = given[i].writes_to;
        if (device[i] == kHostLane) {
            if (on_host(given[i].kind)) continue;
            nodes[i].device = 0;  // an empty graph part of a thread without a card
        }
        ORR_TRY(context, runtime_.context(nodes[i].device));
        if (!given[i].kernel) continue;
        for (const Context* peer : (*context)->peers())
            nodes[i].writes_to |= 1ull << peer->device();
    }
    return {};
}

Status GraphExec::check_link(int from, int to) const {
    ORR_TRY(linked, runtime_.linked(from, to));
    if (*linked) return {};
    return fail(orrErrorPeerAccess,
                "a node on device {} comes after one on device {}, but no way over links that are up joins "
                "them: orrery-smi "
                "shows the links",
                to, from);
}

Result<std::shared_ptr<SemaphoreSlot>> GraphExec::slot(Lane& lane, int device) {
    auto& slot = lane.slots[device];
    if (slot == nullptr) {
        ORR_TRY(waiting, runtime_.context(device));
        ORR_TRY(taken, (*waiting)->semaphores().take(true));
        if (lane.device != device && lane.device != kHostLane) {
            if (auto linked = check_link(lane.device, device); !linked)
                return std::unexpected(linked.error());
            ORR_TRY(shared, (*waiting)->memory().share_block(*(*taken)->block, lane.device));
        }
        slot = std::move(*taken);
    }
    return slot;
}

Result<std::shared_ptr<SemaphoreSlot>> GraphExec::start_slot(int device, int source) {
    auto& slot = start_slots_[device];
    if (slot == nullptr) {
        ORR_TRY(waiting, runtime_.context(device));
        ORR_TRY(taken, (*waiting)->semaphores().take(true));
        slot = std::move(*taken);
    }
    if (source != device) {
        ORR_TRY(linked, check_link(source, device));
        ORR_TRY(shared, runtime_.memory().share_block(*slot->block, source));
    }
    return slot;
}

std::uint64_t GraphExec::take_args(Lane& lane, std::span<const std::byte> args, std::uint64_t& used) {
    const std::uint64_t va = lane.args.va() + used;
    std::memcpy(lane.args.data() + used, args.data(), args.size());
    used += round_up(args.size(), kArgsAlignment);
    return va;
}

Status GraphExec::make_stream(Lane& lane) {
    // Two launches fit, so that one can be prepared while the other runs.
    const std::uint64_t wanted = 2 * (lane.packets.size() + 4);
    if (lane.packets.size() + 4 > kMaxEntries) {
        return fail(orrErrorOutOfMemory, "{} packets in one queue: a graph has at most {} a queue, split it",
                    lane.packets.size(), kMaxEntries - 4);
    }
    const auto entries = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(std::bit_ceil(wanted), kMinEntries, kMaxEntries));
    ORR_TRY(stream, Stream::create(*lane.context, entries, 0));
    lane.stream = std::move(*stream);
    return {};
}

Status GraphExec::build_lane(std::span<const GraphNode> graph, std::uint32_t number) {
    Lane& lane = lanes_[number];
    const PlannedLane& planned = plan_.lanes[number];
    lane.device = planned.device;
    if (lane.device == kHostLane) return {};
    ORR_TRY(context, runtime_.context(lane.device));
    lane.context = *context;
    std::uint64_t args_bytes = 0, args_used = 0;
    for (const PlannedNode& node : planned.nodes) {
        if (node.node != kArrival) args_bytes += round_up(graph[node.node].args.size(), kArgsAlignment);
    }
    if (args_bytes != 0) {
        ORR_TRY(buffer, PinnedBuffer::create(runtime_.memory(), lane.device, round_up(args_bytes, kPage)));
        lane.args = std::move(*buffer);
    }
    const auto push = [&](const orr_packet& packet, OpNote note) {
        lane.packets.push_back(packet);
        lane.notes.push_back(note);
    };
    const auto push_semaphore = [&](std::uint16_t opcode, const SemaphoreSlot& on, std::uint32_t source,
                                    std::uint64_t value) {
        lane.patches.push_back({static_cast<std::uint32_t>(lane.packets.size()), source, value});
        push(make_semaphore(opcode, on.va, value),
             {opcode == ORR_PKT_WAIT ? Op::kWait : Op::kSignal, nullptr});
    };
    if (planned.starts && lanes_.size() > 1) {
        ORR_TRY(start, start_slot(lane.device, lane.device));
        push_semaphore(ORR_PKT_WAIT, **start, kStart, 1);
    }
    for (std::uint32_t position = 0; position < planned.nodes.size(); ++position) {
        const PlannedNode& node = planned.nodes[position];
        for (const LaneWait& wait : node.waits) {
            ORR_TRY(from, slot(lanes_[wait.lane], lane.device));
            push_semaphore(ORR_PKT_WAIT, **from, wait.lane, wait.position + 1);
        }
        if (node.node != kArrival) {
            const GraphNode& given = graph[node.node];
            if (given.kind == NodeKind::kPacket) {
                orr_packet packet = given.packet;
                if (!given.args.empty()) {
                    packet.word[given.args_word] = take_args(lane, given.args, args_used);
                }
                lane.steps.push_back({static_cast<std::uint32_t>(lane.packets.size()), node.node});
                push(packet, given.note);
            } else if (given.event != nullptr) {
                lane.events.push_back({static_cast<std::uint32_t>(lane.packets.size()), given.event,
                                       given.kind == NodeKind::kEventRecord});
            }
        }
        for (int device = 0; device < 64; ++device) {
            if ((node.signals >> device & 1) == 0) continue;
            ORR_TRY(to, slot(lane, device));
            if (device != lane.device)
                lane.crossings.push_back(
                    {static_cast<std::uint32_t>(lane.packets.size()), *to, position + 1});
            push_semaphore(ORR_PKT_SIGNAL, **to, number, position + 1);
        }
        lane.end_of.push_back(static_cast<std::uint32_t>(lane.packets.size()));
    }
    return {};
}

Status GraphExec::build(std::vector<GraphNode> graph) {
    for (const GraphNode& node : graph) {
        if (node.kernel) modules_.try_emplace(node.module, node.note.name);
    }
    ORR_TRY(code, hold_code());
    for (GraphNode& node : graph) {
        ORR_TRY(chosen, choose_way(runtime_, node));
        nodes_ += node.kind != NodeKind::kEmpty;
        by_host_ += node.kind == NodeKind::kByHost;
    }
    std::vector<PlanNode> nodes;
    ORR_TRY(placed, place_nodes(graph, nodes));
    ORR_TRY(relayed, relay(graph, nodes));
    ORR_TRY(plan, plan_lanes(nodes));
    plan_ = std::move(*plan);
    relayed_ = *relayed;
    edges_ = *relayed ? edges_of(graph) : plan_.edges;
    lanes_.resize(plan_.lanes.size());
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
        lanes_[lane].device = plan_.lanes[lane].device;
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
        ORR_TRY(built, build_lane(graph, lane));
    }
    const bool host = std::ranges::any_of(lanes_, [](const Lane& l) { return l.device == kHostLane; });
    for (std::uint32_t i = 0; host && i < graph.size(); ++i) {
        if (on_host(graph[i].kind)) host_nodes_.emplace(i, graph[i]);
    }
    if (lanes_.size() == 1 && !host) return {};  // its stream is made when a launch cannot do without
    for (Lane& lane : lanes_) {
        if (lane.device == kHostLane) continue;
        ORR_TRY(made, make_stream(lane));
    }
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
        if (lanes_[lane].device != kHostLane) continue;
        auto made = std::make_unique<HostLane>();
        made->lane = lane;
        made->thread = start_quiet_thread(
            [this, raw = made.get()](const std::stop_token& stop) { run_host_lane(stop, *raw); });
        hosts_.push_back(std::move(made));
    }
    return {};
}

GraphExec::~GraphExec() {
    // Host threads first end what was launched: lanes may wait for them.
    if (last_.stream != nullptr) (void)last_.stream->wait(last_.index);
    bool whole = last_.stream == nullptr || last_.stream->done(last_.index);
    for (const Lane& lane : lanes_) {
        if (lane.stream != nullptr && !lane.stream->synchronize()) whole = false;
    }
    end_hosts();
    for (Lane& lane : lanes_) {
        if (lane.stream != nullptr) lane.stream->close();
        for (auto& [device, slot] : lane.slots)
            slot->lost |= !whole;
    }
    for (auto& [device, slot] : start_slots_)
        slot->lost |= !whole;
}

// Lets a stream of `device` wait for the last node of each lane that nothing else waits for.
Status GraphExec::prepare_ends(int device) {
    if (ends_ready_.contains(device)) return {};
    for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
        const PlannedLane& planned = plan_.lanes[number];
        Lane& lane = lanes_[number];
        if (!planned.ends) continue;
        ORR_TRY(to, slot(lane, device));
        if (lane.device == kHostLane || (planned.nodes.back().signals >> device & 1) != 0) continue;
        const auto packet = static_cast<std::uint32_t>(lane.packets.size());
        lane.patches.push_back({packet, number, planned.nodes.size()});
        if (device != lane.device) lane.crossings.push_back({packet, *to, planned.nodes.size()});
        lane.packets.push_back(make_semaphore(ORR_PKT_SIGNAL, (*to)->va, planned.nodes.size()));
        lane.notes.push_back({Op::kSignal, nullptr});
    }
    ends_ready_.insert(device);
    return {};
}

void GraphExec::patch(Lane& lane) {
    for (const Patch& p : lane.patches)
        lane.packets[p.packet].word[1] = p.base + launches_ * (p.lane == kStart ? 1 : span(p.lane));
}

std::vector<StepNote> GraphExec::steps(std::uint32_t number, std::uint32_t from, std::uint32_t to) const {
    std::vector<StepNote> steps;
    if (!steps_wanted()) [[likely]]
        return steps;
    const Lane& lane = lanes_[number];
    // By their packets.
    for (auto at = std::ranges::lower_bound(lane.steps, from, {}, &Lane::Step::packet);
         at != lane.steps.end() && at->packet < to; ++at) {
        const auto& [packet, node] = *at;
        const OpNote& note = lane.notes[packet];
        const std::uint32_t opcode = lane.packets[packet].header.opcode;
        const orrProfStepKind kind = note.op == Op::kKernel     ? orrProfStepKernel
                                     : note.op == Op::kFill     ? orrProfStepFill
                                     : opcode == ORR_PKT_REDUCE ? orrProfStepReduction
                                                                : orrProfStepCopy;
        StepNote& step = steps.emplace_back();
        step.from = packet - from;
        step.to = step.from + 1;
        step.step = make_step(kind, orrProfOwnerGraph, owner_, node, lane.device);
        step.step.round = launches_ + 1;
        step.step.lane = number;
        step.name = kind == orrProfStepKernel ? note.name
                    : kind == orrProfStepFill ? "fill"
                                              : copy_name(opcode);
        step.marks = StepMarks::here();
    }
    return steps;
}

Status GraphExec::submit(std::uint32_t number, Stream& stream, std::span<Context* const> peers) {
    Lane& lane = lanes_[number];
    lane.sent.clear();
    std::uint32_t from = 0;
    std::vector<Crossing> crossings;
    const auto send = [&](std::uint32_t to, bool last) -> Status {
        if (from == to && !(last && !peers.empty())) return {};
        crossings.clear();
        for (const LaneCrossing& crossing : lane.crossings) {
            if (crossing.packet < from || crossing.packet >= to) continue;
            crossings.push_back(
                {crossing.packet - from + 1, crossing.slot, crossing.base + launches_ * span(number)});
        }
        ORR_TRY(index, stream.submit(std::span(lane.packets).subspan(from, to - from),
                                     std::span(lane.notes).subspan(from, to - from),
                                     last ? peers : std::span<Context* const>{}, crossings,
                                     steps(number, from, to)));
        ++doorbells_;
        lane.sent.push_back({to, *index});
        from = to;
        return {};
    };
    for (const EventStep& step : lane.events) {
        ORR_TRY(sent, send(step.packet, false));
        auto shared = stream.shared_from_this();
        auto done = step.record ? step.event->record(shared) : step.event->make_wait(shared);
        if (!done) return done;
        ++doorbells_;
    }
    const auto all = static_cast<std::uint32_t>(lane.packets.size());
    ORR_TRY(sent, send(all, true));
    // Events may be the last.
    if (stream.submitted() != 0 && !lane.events.empty()) lane.sent.push_back({all, stream.submitted()});
    return {};
}

std::uint64_t GraphExec::index_behind(const Lane& lane, std::uint32_t packets) {
    for (const Lane::Sent& sent : lane.sent) {
        if (sent.packets >= packets) return sent.index - (sent.packets - packets);
    }
    return lane.sent.empty() ? 0 : lane.sent.back().index;
}

// One lane: its packets go into the stream itself, unless that is another device's or too small.
Status GraphExec::launch_single(const std::shared_ptr<Stream>& stream) {
    Lane& lane = lanes_[0];
    const bool direct = &stream->context() == lane.context && lane.packets.size() <= stream->entries() / 2;
    std::vector<Context*> peers;
    for (int device = 0; device < 64; ++device) {
        if ((plan_.lanes[0].unarrived >> device & 1) == 0) continue;
        ORR_TRY(peer, runtime_.context(device));
        peers.push_back(*peer);
    }
    if (direct) return submit(0, *stream, peers);
    if (lane.stream == nullptr) {
        ORR_TRY(made, make_stream(lane));
    }
    Event before, after;
    ORR_TRY(recorded, before.record(stream));
    ORR_TRY(joined, before.make_wait(lane.stream));
    ORR_TRY(submitted, submit(0, *lane.stream, peers));
    // What went to a third card is not announced to this stream's card: see Known limits of scheduler.md.
    const auto third = [&](const Context* peer) { return peer != &stream->context(); };
    if (&stream->context() != lane.context && std::ranges::any_of(peers, third)) {
        ORR_TRY(finished, lane.stream->synchronize());
    }
    ORR_TRY(ended, after.record(lane.stream));
    doorbells_ += 4;
    return after.make_wait(stream);
}

Status GraphExec::launch_lanes(const std::shared_ptr<Stream>& stream) {
    const int device = stream->context().device();
    ORR_TRY(ends, prepare_ends(device));
    std::vector<orr_packet> joint;
    std::vector<Crossing> crossings;
    std::set<int> starts;
    for (const PlannedLane& lane : plan_.lanes) {
        if (lane.starts && lane.device != kHostLane) starts.insert(lane.device);
    }
    for (const int to : starts) {
        ORR_TRY(start, start_slot(to, device));
        joint.push_back(make_semaphore(ORR_PKT_SIGNAL, (*start)->va, launches_ + 1));
        if (to != device) crossings.push_back({joint.size(), *start, launches_ + 1});
    }
    const std::size_t start_packets = joint.size();
    for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
        if (!plan_.lanes[number].ends) continue;
        ORR_TRY(end, slot(lanes_[number], device));
        const std::uint64_t value = launches_ * span(number) + plan_.lanes[number].nodes.size();
        joint.push_back(make_semaphore(ORR_PKT_WAIT, (*end)->va, value));
    }
    std::vector<OpNote> notes(joint.size(), {Op::kWait, nullptr});
    std::fill_n(notes.begin(), start_packets, OpNote{Op::kSignal, nullptr});
    if (joint.size() > stream->entries()) {
        return fail(orrErrorOutOfMemory,
                    "{} packets at once: the graph has more ends than a stream has room for", joint.size());
    }
    for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
        Lane& lane = lanes_[number];
        if (lane.device == kHostLane) continue;
        patch(lane);
        ORR_TRY(sent, submit(number, *lane.stream, {}));
    }
    ORR_TRY(index, stream->submit(joint, notes, {}, crossings));
    ++doorbells_;
    if (hosts_.empty()) return {};
    return push_host_steps(stream, *index - joint.size() + start_packets);
}

Result<std::vector<std::shared_ptr<Module>>> GraphExec::hold_code() const {
    std::vector<std::shared_ptr<Module>> held;
    held.reserve(modules_.size());
    for (const auto& [module, kernel] : modules_) {
        held.push_back(module.lock());
        if (held.back() != nullptr) continue;
        return fail(orrErrorInvalidHandle,
                    "kernel '{}' of the graph is gone: its module or library was unloaded. Unload it after "
                    "the last launch",
                    printable(kernel));
    }
    return held;
}

Status GraphExec::check_alive() {
    for (const Lane& lane : lanes_) {
        if (lane.stream == nullptr) continue;
        if (auto stopped = lane.stream->error()) fate_.end(*stopped);
    }
    const auto broken = fate_.error();
    if (!broken) return {};
    return fail(broken->code,
                "the graph cannot be launched again, as an earlier launch failed: {}. Instantiate it anew",
                broken->text);
}

// All room that the launch needs, before anything of it is submitted: a full ring may be part of a deadlock,
// which is no reason to give up the graph.
Status GraphExec::make_room(const std::shared_ptr<Stream>& stream) {
    for (const Lane& lane : lanes_) {
        if (lane.stream == nullptr) continue;
        if (auto room = lane.stream->make_room(lane.packets.size() + lane.events.size() + 1); !room)
            return room;
    }
    return stream->make_room(std::min<std::uint64_t>(3 * lanes_.size() + 8, stream->entries()));
}

// What was launched into another stream comes first.
Status GraphExec::order_behind_last(const std::shared_ptr<Stream>& stream) {
    // Where it begins and ends by the host it does this, too: push_host_steps().
    if (last_.stream == nullptr || last_.stream == stream || relayed_) return {};
    Event order;
    auto recorded = order.record(last_.stream);
    if (recorded) return order.make_wait(stream);
    if (!last_.stream->error()) return last_.stream->done(last_.index) ? Status{} : recorded;
    // That stream has ended, but perhaps not the lanes which it had started.
    for (const Lane& lane : lanes_) {
        if (lane.stream == nullptr || lane.stream->done(lane.stream->submitted())) continue;
        Event behind;
        ORR_TRY(marked, behind.record(lane.stream));
        ORR_TRY(ordered, behind.make_wait(stream));
    }
    const std::lock_guard lock(host_mutex_);
    const bool idle =
        std::ranges::all_of(hosts_, [](const auto& host) { return host->done == host->pushed; });
    if (idle) return {};
    return fail(orrErrorNotReady,
                "the stream of the last launch has ended, but not that launch's host nodes: launch it again "
                "when they have returned");
}

// Lanes wait for what will not be signalled.
void GraphExec::give_up(const Error& error) {
    const Error cause = fate_.end(error);
    for (const Lane& lane : lanes_) {
        if (lane.stream != nullptr && !lane.stream->done(lane.stream->submitted())) lane.stream->stop(cause);
    }
    const std::lock_guard lock(host_mutex_);  // nobody is between his look and his sleep
    host_changed_.notify_all();
}

Status GraphExec::launch(const std::shared_ptr<Stream>& stream) {
    // Let go behind the lock: the last one waits for the card.
    ORR_TRY(code, hold_code());
    const std::lock_guard lock(mutex_);
    ORR_TRY(alive, check_alive());
    if (auto stopped = stream->error()) return std::unexpected(*stopped);
    if (lanes_.empty()) return {};
    ORR_TRY(room, make_room(stream));
    ORR_TRY(ordered, order_behind_last(stream));
    const bool single = lanes_.size() == 1 && hosts_.empty();
    auto launched = single ? launch_single(stream) : launch_lanes(stream);
    ++launches_;  // also after a failure: its values are used up
    last_ = {stream, stream->submitted()};
    if (!launched) give_up(launched.error());
    return launched;
}

orrGraphExecInfo GraphExec::info() const {
    const std::lock_guard lock(mutex_);
    orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
    info.nodes = nodes_;
    info.edges = edges_;
    info.by_host = by_host_;
    info.waits = plan_.waits;
    info.signals = plan_.signals;
    for (const Lane& lane : lanes_) {
        if (lane.device != kHostLane) ++info.queues;
        info.packets += lane.end_of.empty() ? 0 : lane.end_of.back();
    }
    info.launches = launches_;
    info.doorbells = doorbells_;
    return info;
}

}  // namespace orrery::umd
