// Runs what the core issues on cards. A lane is one hardware queue with a timeline semaphore that its
// commands signal; each card has a lane for tasks of each worker and one for copies from and to the host,
// each pair of linked cards has lanes for copies and for passing signals on. Commands go down before what
// they wait for is done: the cards wait for each other. Only what waits for a host task, or for a card
// without a link, is held back until that is done.
//
// Threads: one at a time.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <orrery/task.h>

#include "umd/prof/steps.h"
#include "umd/runtime/range_allocator.h"
#include "umd/runtime/runtime.h"
#include "umd/scheduler/core.h"
#include "umd/scheduler/cost_model.h"

namespace orrery::umd {

// A kernel on each card of a graph.
struct TaskKernel {
    std::string name;
    std::vector<std::shared_ptr<const Function>> functions;
};

// What a task does.
struct TaskWork {
    std::string name;
    std::shared_ptr<TaskKernel> kernel;  // null: a host task, or a merge
    orrDim3 grid{}, block{};
    std::size_t local_bytes = 0;
    std::vector<std::byte> args;
    std::vector<std::int32_t> offsets;  // of each access
    orrTaskHostFn_t function = nullptr;
    void* user = nullptr;
    StepMarks marks = {};  // of the call that submitted it, if somebody wants to know
};

class RuntimeExecutor final : public Executor {
  public:
    // Called by poll() and recover().
    class Listener {
      public:
        virtual ~Listener() = default;
        virtual void completed(TaskId task, Ps start, Ps finish) = 0;
        virtual void failed(TaskId task, const Error& error) = 0;
    };

    // limit_us: of kernels, as in QueueOptions.
    static Result<std::unique_ptr<RuntimeExecutor>> create(Runtime& runtime, std::span<const int> devices,
                                                           std::uint32_t limit_us);
    // Ends what is in flight.
    ~RuntimeExecutor() override;
    RuntimeExecutor(const RuntimeExecutor&) = delete;
    RuntimeExecutor& operator=(const RuntimeExecutor&) = delete;

    const Machine& machine() const { return machine_; }
    int device(unsigned card) const { return cards_[card].device; }
    // The cards' model clocks keep step, so that nothing which they send each other comes late.
    bool in_step() const { return in_step_; }
    // Of its SKU, without white space.
    const std::string& sku(unsigned card) const { return cards_[card].sku; }
    // Channels are as fast as `costs` says; those that it does not know are measured first.
    void calibrate(CostModel& costs);
    // What tasks take there beside the first card; for Core::set_machine().
    void set_slowness(unsigned card, double slowness) { machine_.slowness[card] = slowness; }
    Result<std::shared_ptr<TaskKernel>> load(std::span<const std::byte> image, const std::string& name);
    Result<std::shared_ptr<TaskKernel>> load(const std::shared_ptr<const Function>& function);

    // In the order of Core::add_data(). host: pinned memory with its contents, or 0.
    void add_data(std::uint64_t bytes, std::uint64_t host);
    void set_merge(DataId data, std::shared_ptr<TaskKernel> kernel, orrDim3 grid, orrDim3 block);
    bool has_merge(DataId data) const { return data_[data].merge != nullptr; }
    // Its place in host memory; made at first use.
    Result<std::byte*> host_memory(DataId data);

    void attach(const Core& core, const std::deque<TaskWork>& work) {
        core_ = &core;
        work_ = &work;
    }
    void transfer(const TransferCommand& command) override;
    void run(const RunCommand& command) override;
    // Rings the doorbells of what was issued.
    void flush();
    // Tells what has ended, and submits what was held back; true if there was anything.
    bool poll(Listener& listener);
    bool idle() const;
    bool cards_work() const;
    // From any thread, for good: nothing more is submitted.
    void stop() { stopped_.store(true); }
    bool stopped() const { return stopped_.load(); }
    // A command failed: nothing that waits for it can go on; or it was stopped. See recover().
    bool broken() const { return fate_->ended() || (stopped() && !gave_up_); }
    // A queue takes milliseconds to make. After some of them others should have their turn; poll() goes on.
    bool made_enough() const { return made_ >= kQueuesAtOnce; }
    // Sees what can still end to its end, and tells what cannot. False: not over yet, call it again later. No
    // host task runs meanwhile.
    bool recover(Listener& listener);
    // When that is over, or nobody wants what is in flight: gives up all that has not ended, with the queues
    // that stopped. Then the caller lets the core reissue().
    void start_anew();
    // Bits of cards that were found to be gone when the last recovery ended. Links that were are not in the
    // machine any more.
    unsigned lost_cards() const { return lost_cards_; }

    // Host tasks that may run now.
    std::vector<TaskId> take_host_tasks();
    void host_task_done(TaskId task);
    // Addresses of the task's data in host memory.
    Result<std::vector<void*>> host_addresses(TaskId task);
    // What is told of it, without when it was.
    StepNote step_of(orrProfStepKind kind, TaskId task, int device) const;

    struct Figures {
        std::uint64_t packets = 0, waits = 0, doorbells = 0;
    };
    const Figures& figures() const { return figures_; }

  private:
    using LaneId = std::uint32_t;
    enum class LaneKind : std::uint8_t { kRun, kUp, kDown, kPeer, kRelay };
    struct Wait {
        LaneId lane = 0;
        std::uint64_t position = 0;
    };
    struct InFlight {
        TaskId task = kNoTask;  // kNoTask: nobody's
        CommandId command = 0;
        bool run = false;
        std::uint64_t position = 0;
        std::uint64_t packets = 0;  // of the stream, up to its end
        std::uint32_t slot = 0;     // run: of arguments and time stamps
        std::vector<Wait> waits;
    };
    struct Lane {
        Lane(LaneKind lane_kind, unsigned runs_on, unsigned signalled)
            : kind(lane_kind), card(runs_on), signals(signalled) {}

        LaneKind kind;
        unsigned card;                   // that runs it
        unsigned signals;                // card in whose memory its semaphore lies
        std::shared_ptr<Stream> stream;  // null: none yet, or a failure took it
        std::shared_ptr<SemaphoreSlot> slot;
        std::uint64_t position = 0;        // of the last signal
        std::uint64_t packets = 0;         // of the stream, with the batch
        std::vector<std::uint64_t> known;  // by lane: position that has been waited for, directly or not
        std::deque<std::vector<std::uint64_t>> clocks;  // `known` at the last positions
        std::vector<orr_packet> batch;
        std::vector<OpNote> notes;
        std::vector<StepNote> steps;  // of the batch
        std::deque<InFlight> in_flight;
        std::map<LaneId, std::uint64_t> relayed;  // relay: position of that lane that has been passed on
        std::uint64_t done_packets = 0;
        PinnedBuffer scratch;  // run: kSlots times arguments and time stamps
        std::uint64_t runs = 0;
    };
    enum class RefState : std::uint8_t { kNone, kHeld, kSubmitted, kDone };
    struct Ref {
        RefState state = RefState::kNone;
        bool host = false;
        LaneId lane = 0;
        std::uint32_t epoch = 0;
        std::uint64_t position = 0;
        std::vector<Wait> passed;  // host: what it waited for, for whoever waits for it
    };
    struct Held {
        bool run = false;
        TransferCommand transfer{};
        RunCommand command{};
        std::vector<CommandId> after;
        std::vector<unsigned> partials;
    };
    struct Replica {
        std::array<std::uint64_t, kMaxNodes> at{};
        std::array<std::uint64_t, kMaxNodes> partial{};                   // a node's own part
        std::map<std::pair<unsigned, unsigned>, std::uint64_t> received;  // {node, origin}
    };
    struct Data {
        std::uint64_t bytes = 0;
        Replica place;
        std::shared_ptr<TaskKernel> merge;
        orrDim3 grid{}, block{};
    };
    struct Card {
        int device = 0;
        Context* context = nullptr;
        std::string sku = {};
        std::array<std::string, kMaxCards> links = {};  // to each card: what a port says of it
        std::array<Ps, kMaxCards> link_latency = {};
        std::vector<RangeAllocator> arenas;       // of its memory
        std::vector<RangeAllocator> host_arenas;  // of host memory that it made; a lost one makes none
        Ps base = 0;
        std::uint64_t* base_stamp = nullptr;
    };

    RuntimeExecutor(Runtime& runtime, std::uint32_t limit_us) : runtime_(runtime), limit_us_(limit_us) {}
    Status open(std::span<const int> devices);
    std::string channel_name(unsigned from, unsigned to) const;
    Status measure_channels(unsigned card, std::span<const std::pair<unsigned, unsigned>> unknown,
                            CostModel& costs);
    Result<LaneId> lane(LaneKind kind, unsigned card, unsigned other);
    Status open(Lane& lane);
    static void close(Lane& lane);
    void close(std::span<Lane* const> lanes);
    void close_all();
    Result<std::uint64_t> allocate(unsigned node, std::uint64_t bytes);
    void free_all(std::span<const std::uint64_t> allocations);
    Result<std::uint64_t> buffer(std::uint64_t& place, unsigned node, std::uint64_t bytes);
    void push(Lane& lane, const orr_packet& packet, OpNote note);
    // The packets from this one of the batch on are a step.
    void add_step(Lane& lane, std::size_t from, unsigned number, orrProfStepKind kind, TaskId task) const;
    // False: the command must be held back. The list may name lanes of any card.
    bool resolve(unsigned card, std::span<const CommandId> after, std::vector<Wait>& waits) const;
    Status wait(LaneId by, Wait what, std::vector<Wait>& noted);
    void finish(LaneId id, InFlight entry);
    bool submit(const Held& held);
    bool crowded() const;
    Status abandon(LaneId id, InFlight entry, Status why);
    Status submit_transfer(const TransferCommand& command, std::span<const Wait> waits);
    Status submit_run(const RunCommand& command, std::span<const Wait> waits);
    Status push_dispatches(Lane& lane, const RunCommand& command, std::uint32_t slot);
    void hold(Held held);
    void lose(const Held& held, const Error& error);
    Ref& ref(CommandId command);
    void end(Listener& listener, Lane& lane);
    bool poll_lane(Listener& listener, Lane& lane);
    void synchronise();
    void flush(Lane& lane);
    void lose_poisoned(Listener& listener, std::span<const std::pair<LaneId, Error>> poisoned);
    void lose_from_front(Listener& listener, LaneId id, const Error& error);
    void cut(unsigned a, unsigned b);
    bool find_lost_cards();
    void find_cut_links();
    bool is_lost(LaneId id) const;
    void spread_losses();
    static bool is_idle(const Lane& lane);

    static constexpr std::uint32_t kSlots = 64;        // more than the core has in flight on a card
    static constexpr std::uint64_t kSlotBytes = 8192;  // arguments, then merge arguments, then time stamps
    static constexpr std::uint64_t kMergeArgs = 4096, kMergeArgsBytes = 64;
    static constexpr std::uint64_t kStamps = kMergeArgs + 64 * kMergeArgsBytes - 64;
    static constexpr std::uint32_t kEntries = 2048;
    // Between two cards there is less to do, and there are many pairs.
    static constexpr std::uint32_t kCrossingEntries = 512;
    static constexpr unsigned kQueuesAtOnce = 8;
    static constexpr std::size_t kClocks = 512;
    static constexpr std::uint64_t kArena = 8 << 20, kHostArena = 1 << 20;

    Runtime& runtime_;
    const std::uint32_t limit_us_;
    const std::uint64_t owner_ = next_step_owner();
    const Core* core_ = nullptr;
    const std::deque<TaskWork>* work_ = nullptr;
    Machine machine_;
    bool in_step_ = true;
    std::vector<Card> cards_;
    std::vector<Data> data_;
    std::vector<std::uint64_t> allocations_;
    std::deque<Lane> lanes_;
    std::map<std::tuple<LaneKind, unsigned, unsigned>, LaneId> lane_ids_;
    std::vector<Ref> refs_;
    std::deque<Held> held_;
    struct HostTask {
        TaskId task = 0;
        CommandId command = 0;
    };
    std::vector<HostTask> host_ready_, host_running_;
    std::vector<std::pair<TaskId, Error>> lost_;
    std::vector<std::shared_ptr<TaskKernel>> kernels_;
    std::uint32_t epoch_ = 0;
    std::atomic<bool> stopped_{false};
    bool gave_up_ = false;                                   // all, after it was stopped
    unsigned made_ = 0;                                      // queues since the last poll()
    std::unique_ptr<Fate> fate_ = std::make_unique<Fate>();  // a new one after each recovery
    std::vector<std::uint64_t> lost_from_;                   // while recovering: positions, by lane
    bool synchronised_ = false;
    unsigned lost_cards_ = 0;
    Figures figures_;
};

}  // namespace orrery::umd
