// A graph on hardware queues: prepared packets for each lane of its plan (lane_plan.h), whose semaphore
// values a launch moves on. Each pair of lane and waiting card has a timeline semaphore in that card's
// memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "umd/prof/steps.h"
#include "umd/scheduler/graph.h"
#include "umd/scheduler/lane_plan.h"

namespace orrery::umd {

// Thread safe.
class GraphExec {
  public:
    // graph: its nodes.
    static Result<std::shared_ptr<GraphExec>> create(Runtime& runtime, std::span<const GraphNode> graph);
    // Waits for its launches.
    ~GraphExec();
    GraphExec(const GraphExec&) = delete;
    GraphExec& operator=(const GraphExec&) = delete;

    Status launch(const std::shared_ptr<Stream>& stream);
    orrGraphExecInfo info() const;

  private:
    // A semaphore packet whose value is base, and more by span(lane) each launch; kStart: by 1.
    struct Patch {
        std::uint32_t packet;
        std::uint32_t lane;
        std::uint64_t base;
    };
    static constexpr std::uint32_t kStart = ~0u;
    // With a kernel of each, for error texts.
    using Modules = std::map<std::weak_ptr<Module>, const char*, std::owner_less<>>;
    // A signal on another card: its value is base, and more by the lane's span each launch.
    struct LaneCrossing {
        std::uint32_t packet;
        std::shared_ptr<SemaphoreSlot> slot;
        std::uint64_t base;
    };
    struct EventStep {
        std::uint32_t packet;  // comes before this one
        std::shared_ptr<Event> event;
        bool record;
    };
    struct Lane {
        int device = kHostLane;
        Context* context = nullptr;
        std::shared_ptr<Stream> stream;
        std::vector<orr_packet> packets;
        std::vector<OpNote> notes;
        std::vector<Patch> patches;
        std::vector<LaneCrossing> crossings;
        std::vector<EventStep> events;
        std::vector<std::uint32_t> end_of;  // packets up to the end of each node
        struct Step {
            std::uint32_t packet;
            std::uint32_t node;
        };
        std::vector<Step> steps;  // packets that are the work of a node
        struct Sent {
            std::uint32_t packets;  // up to here
            std::uint64_t index;    // of the stream behind them
        };
        std::vector<Sent> sent;                               // of the last launch
        std::map<int, std::shared_ptr<SemaphoreSlot>> slots;  // by the device that waits
        PinnedBuffer args;
    };
    // A step of a host lane, counted over all launches.
    struct HostWait {
        std::uint32_t lane = 0;
        std::uint64_t position = 0;
    };
    struct HostStep {
        orrHostFn_t function = nullptr;
        void* user = nullptr;
        std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> streams;  // wait until they are there
        std::vector<HostWait> hosts;
        std::vector<std::pair<Context*, orr_packet>> signals;
        std::shared_ptr<const BetweenCards> copy;  // by `device`, of memory of these
        int device = kHost;
        std::uint64_t devices = 0;
        StepNote told;  // if somebody wants to know
    };
    struct HostLane {
        std::uint32_t lane = 0;
        std::deque<HostStep> steps;
        std::uint64_t pushed = 0, done = 0;  // steps of all launches
        std::jthread thread;
    };
    struct Ends {
        std::shared_ptr<Stream> stream;
        std::uint64_t index = 0;
    };

    explicit GraphExec(Runtime& runtime) : runtime_(runtime) {}
    Status build(std::vector<GraphNode> graph);
    Status place_nodes(std::span<const GraphNode> graph, std::vector<PlanNode>& nodes) const;
    // Adds relays where cards are not linked. False: there are none.
    Result<bool> relay(std::vector<GraphNode>& graph, std::vector<PlanNode>& nodes) const;
    static bool on_host(NodeKind kind) {
        return kind == NodeKind::kHostCall || kind == NodeKind::kByHost || kind == NodeKind::kRelay;
    }
    // As given, without duplicates.
    static std::uint32_t edges_of(std::span<const GraphNode> graph);
    Status build_lane(std::span<const GraphNode> graph, std::uint32_t number);
    Status make_stream(Lane& lane);
    static std::uint64_t take_args(Lane& lane, std::span<const std::byte> args, std::uint64_t& used);
    Result<std::shared_ptr<SemaphoreSlot>> slot(Lane& lane, int device);
    Result<std::shared_ptr<SemaphoreSlot>> start_slot(int device, int source);
    Status check_link(int from, int to) const;
    std::uint64_t span(std::uint32_t lane) const { return plan_.lanes[lane].nodes.size() + 1; }
    Status prepare_ends(int device);
    void patch(Lane& lane);
    // Of the packets [from, to) of a lane.
    std::vector<StepNote> steps(std::uint32_t number, std::uint32_t from, std::uint32_t to) const;
    Status submit(std::uint32_t number, Stream& stream, std::span<Context* const> peers);
    Status launch_single(const std::shared_ptr<Stream>& stream);
    static std::uint64_t index_behind(const Lane& lane, std::uint32_t packets);
    Status launch_lanes(const std::shared_ptr<Stream>& stream);
    Status push_host_steps(const std::shared_ptr<Stream>& stream, std::uint64_t start_index);
    void run_host_lane(const std::stop_token& stop, HostLane& host);
    Status run_host_step(const std::stop_token& stop, const HostStep& step);
    Status copy_by_host(const HostStep& step);
    void end_hosts();
    Status wait_hosts(const std::stop_token& stop, const HostStep& step);
    // Keeps the code that a launch runs until it is submitted: from then on, who unloads it waits.
    Result<std::vector<std::shared_ptr<Module>>> hold_code() const;
    Status check_alive();
    Status make_room(const std::shared_ptr<Stream>& stream);
    Status order_behind_last(const std::shared_ptr<Stream>& stream);
    void give_up(const Error& error);
    void fail_signals(const HostStep& step, const Error& error);

    Runtime& runtime_;
    const std::uint64_t owner_ = next_step_owner();
    mutable std::mutex mutex_;  // launches
    LanePlan plan_;
    std::vector<Lane> lanes_;
    Modules modules_;
    std::map<std::uint32_t, GraphNode> host_nodes_;              // by number
    std::map<int, std::shared_ptr<SemaphoreSlot>> start_slots_;  // by device of the lanes
    std::set<int> ends_ready_;                                   // devices of streams that were launched into
    std::uint64_t launches_ = 0;
    std::uint64_t doorbells_ = 0;
    std::uint32_t nodes_ = 0, edges_ = 0, by_host_ = 0;
    bool relayed_ = false;  // it begins and ends by the host: see relay()
    Ends last_;
    Fate fate_;  // of all launches: after a failure the semaphores' values are anybody's guess

    std::mutex host_mutex_;
    std::condition_variable_any host_changed_;
    std::vector<std::unique_ptr<HostLane>> hosts_;
};

}  // namespace orrery::umd
