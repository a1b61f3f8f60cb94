// The inside of the vector unit: its cores, its ports and how they come together. Not for anybody outside
// emulator/engines.
#pragma once

#include <array>
#include <bitset>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/engines/ahead/run_ahead.h"
#include "emulator/engines/core_set.h"
#include "emulator/engines/save_area.h"
#include "emulator/engines/vector_core.h"
#include "emulator/engines/vector_unit.h"

namespace orrery::emu {

inline constexpr std::uint32_t kMaxCores = CoreSet::kMost;
static_assert(PeerPort::kMostRequests / 2 >= kMaxCores);
// Of what vector loads of a core may ask for at once, so much is asked of other cards ahead.
inline constexpr std::uint64_t kMostAhead = 16 << 10;

// A port's place in the queue for cores, in picoseconds of core time << 16 for one unit of weight.
// Differences can be negative.
__extension__ using Pass = __int128;

class VectorUnit::Impl {
  public:
    class Port;

    struct Core {
        enum class Phase : std::uint8_t {
            kRunning,  // at its event: the next quantum, or what the port is to do instead
            kDone,     // at its event: its group is done
            kStopped,  // at its event: its kernel ends, as `stopped` says
            kSaving,   // at its event: its group is in the save area
        };
        Core(Impl& unit_, std::uint32_t number_, const VectorConfig& config, Mmu& mmu)
            : unit(unit_),
              number(number_),
              core(number_, config.vlen, config.datapath_bits, config.hz, config.item_cycles,
                   config.most_work, unit.memory_costs(), config.check != 0, mmu, peers,
                   unit.ahead == nullptr ? &unit.code : nullptr),
              event(Event::of<&Core::on_event>(this)),
              peers(unit.context, event, std::min(config.in_flight, kMostAhead / kMemoryLine) * kMemoryLine,
                    unit.config.cores),
              vram_reads(unit.in_flight(unit.context.memory.config().vram_latency_ps)),
              host_reads(unit.in_flight(unit.context.memory.config().pcie_latency_ps)) {}
        void on_event(ModelTime now) { unit.on_core(*this, now); }

        Impl& unit;
        const std::uint32_t number;
        VectorCore core;
        Event event;
        PeerAccess peers;
        // Since when it waits for these.
        ModelTime asked = kNever;
        // The quantum whose time passes: since when, when its cycles are over, and its waits among them.
        struct Busy {
            ModelTime since = kNever, computed = 0, latency = 0, launch = 0, pause = 0;
        };
        Busy busy;
        bool sampled = false;  // the core has samples of its quantum
        Port* port = nullptr;  // whose group it has; nullptr: free
        Phase phase = Phase::kRunning;
        std::optional<Quantum> open;  // that is being computed
        Quantum stopped;
        std::uint64_t cut = 0;  // cycles of quanta that were full, and are one with the next
        // What the last quantum asked of memory and is not through yet, and when all else of it is.
        Traffic owed;
        ModelTime computed = 0;
        // Of the group that is saved or loaded: bytes that have still to pass VRAM, and what comes after
        // them.
        std::uint64_t carried = 0;
        ModelTime after_carry = 0;
        ModelTime answered = 0;  // when the last answer comes to a vector load
        // What its requests in flight let through.
        Resource vram_reads, host_reads;
        ModelTime taken = 0;     // when its port got it
        std::uint64_t turn = 0;  // counts groups that were given to cores
        ModelTime expected = 0;  // how long the port was charged for it in advance
        Pass charge = 0;         // and how much
    };

    Impl(const VectorConfig& config, EngineContext& context);

    void on_core(Core& core, ModelTime now);
    MemoryCosts memory_costs() const;
    std::uint64_t in_flight(ModelTime latency) const { return in_flight_rate(config.in_flight, latency); }
    // Saves or loads so many bytes of a core's group; its event comes a time `after` them.
    void carry(Core& core, std::uint64_t bytes, ModelTime after, ModelTime now);
    // Hands work-groups to free cores.
    void distribute(ModelTime now);
    // Threads may compute the core's group from here on, if they may compute all groups: what runs in order
    // does not say what it touches. The group is between two quanta.
    void start_ahead(Core& core);
    // And the group that it will probably get behind the present one.
    void guess_next(Core& core);
    // What was computed ahead and played stands in memory: before anything else looks at it.
    void join() {
        if (ahead != nullptr) ahead->join();
    }
    void settle() {
        if (ahead != nullptr) ahead->settle();
    }
    void sample(ModelTime period);
    void trace(std::uint32_t core, ModelTime from, ModelTime until);
    bool samples() const { return sample_period != 0 || traced != kNoCore; }
    // The launch on this port has to be computed in the order of model time; the next ones of its kernel will
    // be for a while.
    void go_in_order(Core& core, InOrder cause);
    bool was_in_order(const orr_desc_kernel& desc);
    // Takes the cores of a port away at once; their groups are lost, but what they have asked of memory is
    // under way.
    void take_cores_of(Port& port, ModelTime now);
    std::optional<SaveArea> area_at(std::uint64_t offset) const {
        return SaveArea::at(context.vram, offset, config.cores, config.vlen);
    }
    // Checks of launches that were preempted, until they go on: known by the number in the save header, as
    // software may move save areas about. Those whose process is gone go.
    void park(const KernelLaunch& launch, std::unique_ptr<LaunchCheck> check);
    std::unique_ptr<LaunchCheck> unpark(const KernelLaunch& launch, std::uint64_t number);
    void forget_parked();
    std::unique_ptr<LaunchCheck> new_check(const KernelLaunch& launch);
    // What groups owe that were preempted, until they go on: known by the number in their record, 0: nothing.
    // `save`: where the record goes.
    std::uint64_t keep(const KernelLaunch& launch, std::uint64_t group, std::uint64_t save,
                       std::unique_ptr<PeerAccess::Owed> owed);
    // Its record is loaded (kNoArea) or saved again, by this launch.
    void owed_by(const KernelLaunch& launch, const orr_save_group& record, std::uint64_t save);
    // What was saved there does not go on.
    void forget_owed_at(std::uint64_t save);
    static constexpr std::uint64_t kNoArea = ~std::uint64_t{0};
    // nullptr: it is not there.
    std::unique_ptr<PeerAccess::Owed> take_owed(const KernelLaunch& launch, const orr_save_group& record);
    void forget_owed_if(const auto& unwanted);
    void forget_owed();
    void forget_owed_of(std::uint64_t launch);
    // The place of a port that comes to this priority now: no better than of those who are there.
    Pass pass_of_newcomer(const Port& port, ModelTime now) const;

    const VectorConfig config;
    EngineContext& context;
    ModelTime sample_period = 0, sampled_since = 0;  // 0: none
    std::uint32_t traced = kNoCore;                  // each cycle of this core
    ModelTime traced_from = 0, traced_until = 0;
    CodeStore code;          // of all cores, if they run on one thread
    std::deque<Core> cores;  // events do not move
    CoreSet free;
    bool memory_given_up = false;  // and told
    CheckRoom check_room;          // before all checks: they give theirs back
    // Of each address space: its root's changes then, and what its launches in flight have in common.
    std::map<std::uint32_t, std::pair<std::uint64_t, std::weak_ptr<SideBySide>>> side_by_side;
    std::deque<Port> ports;
    std::uint64_t with_groups =
        0;                     // a bit for each port that waits for cores, and for some that no longer do
    std::uint64_t serial = 0;  // of the last launch
    std::uint64_t turns = 0;   // groups that were given to cores
    std::unique_ptr<KernelDebugger> debugger;
    struct Parked {
        orr_desc_kernel desc;
        std::uint64_t number;        // serial of the launch that was saved
        std::uint64_t root_changes;  // of its address space
        std::unique_ptr<LaunchCheck> check;
    };
    std::deque<Parked> parked;  // the oldest first
    struct Owing {
        orr_desc_kernel desc;
        std::uint64_t serial, save, group, number, root_changes;
        std::unique_ptr<PeerAccess::Owed> owed;
    };
    static bool is_owed(const Owing& one, const KernelLaunch& launch, const orr_save_group& record);
    std::deque<Owing> owing;          // the oldest first
    std::uint64_t owed_numbers = 0;   // that were given
    std::unique_ptr<RunAhead> ahead;  // nullptr: one thread computes; ends before the cores

  private:
    // Kernels that lately were not worth computing ahead, and how many launches more are not tried.
    struct Kernel {
        std::uint64_t entry = 0;
        std::uint32_t asid = 0, skip = 0;
    };
    static constexpr std::uint32_t kSkip = 15;
    Kernel& kernel_of(const orr_desc_kernel& desc) { return in_order_[desc.entry / 4 % in_order_.size()]; }

    // Gives what the core computed ahead for its event; false: there is nothing, or not yet.
    bool play_ahead(Core& core, ModelTime now);
    bool may_start_ahead(const Core& core) const;
    Port* choose(ModelTime now);
    Pass place_of(const Port& port, ModelTime now) const;
    void save(Core& core, ModelTime now);
    // What the core has for other cards. False: its event comes again, or its port has ended.
    bool ask_peers(Core& core, ModelTime now);
    void carry_on(Core& core, ModelTime now);
    void release(Core& core, ModelTime now);
    // Its effects are there; how long it takes, by what others do meanwhile.
    void play(Core& core, const Quantum& did, ModelTime now);
    void price(Core& core, const Quantum& did, ModelTime now);
    // What a core asks for before it looks whether its group is to be saved.
    std::uint64_t most_bytes(const Resource& way, ModelTime latency) const;
    void move_owed(Core& core, ModelTime now);
    void count_work(const Quantum& did);
    static void count_job(JobCounter& job, const Quantum& did);
    void count_busy(Core& core, ModelTime now);
    void count_asked(Core& core, ModelTime now);
    void begin_samples(Core& core, ModelTime now);
    void forget_samples();
    void tell_wait(const Core& core, ModelTime from, ModelTime end, std::uint64_t pc, std::uint32_t cause);
    // It was busy since then until now; it has waited for other cards.
    void tell_samples(const Core& core, const Core::Busy& busy, ModelTime now);
    void tell_link_samples(const Core& core, ModelTime since, ModelTime now);
    void tell_sample(const Core& core, ModelTime first, std::uint64_t count, std::uint64_t pc,
                     std::uint32_t cause);

    std::array<Kernel, 64> in_order_{};
};

class VectorUnit::Impl::Port final : public EnginePort {
  public:
    Port(Impl& unit, std::uint32_t number)
        : unit_(unit), number_(number), event_(Event::of<&Port::on_event>(this)) {}

    EngineKind properties() const override {
        return {.kind = ORR_ENGINE_VECTOR,
                .units = unit_.config.cores,
                .preempt = 1u << SOC_PREEMPT_GROUP | 1u << SOC_PREEMPT_NOW};
    }
    bool busy() const override { return busy_; }
    bool start(const DescriptorWords& descriptor, std::uint32_t tag) override;
    std::optional<std::uint64_t> work_of(const DescriptorWords& descriptor) const override {
        return emu::work_of(descriptor, ORR_ENGINE_VECTOR, unit_.config.cores);
    }
    bool preempt(Preempt mode, std::uint64_t save) override;
    bool resume(std::uint64_t save, std::uint32_t tag) override;
    void abort() override;
    void reset() override;
    void set_priority(std::uint32_t priority) override;
    void set_weight(std::uint32_t weight) override;
    ModelTime used() const override;
    std::uint32_t active() const override { return active_; }

    // --- for the distributor ---
    std::uint64_t bit() const { return std::uint64_t{1} << (number_ - unit_.config.first_port); }
    bool has_group() const { return shares() && waiting_groups() > 0; }
    std::uint64_t waiting_groups() const { return pending_.size() + (launch_.groups() - next_group_); }
    bool resident() const { return (launch_.desc.flags & ORR_DESC_F_RESIDENT) != 0; }
    // Takes part in the sharing of cores.
    bool shares() const { return launched_ && preempt_ == Preempt::kNo; }
    std::uint32_t priority() const { return priority_; }
    std::uint64_t serial() const { return launch_.serial; }
    Pass cost(ModelTime time) const {
        // Nearly always: fits 64 bits.
        if (time >> 48 == 0) return (time << 16) / weight_;
        return (Pass{time} << 16) / weight_;
    }
    Pass pass() const { return pass_; }
    void give_group(Core& core, ModelTime now);
    // The new group that a core gets behind its present one if the port's cores end theirs in the order in
    // which they began; nullopt: none, or guesses of this launch were wrong too often.
    std::optional<std::uint64_t> guess(const Core& core) const;
    const KernelLaunch& launch() const { return launch_; }

    // --- for its cores ---
    const orr_desc_kernel& kernel() const { return launch_.desc; }
    void go_in_order(InOrder cause, const VectorCore& core) {
        in_order_ = true;
        if (account_.cause != InOrder::kNot) return;
        account_.cause = cause;
        account_.group = core.group();
        account_.pc = core.pc();
    }
    // So many instructions have been computed, or of those so many ahead.
    void computed(std::uint64_t instructions) { account_.instructions += instructions; }
    void computed_ahead(std::uint64_t instructions) { account_.ahead += instructions; }
    JobCounter& job_counter() { return job_counter_; }
    std::uint32_t number() const { return number_; }
    ModelTime start_ps() const { return completion_.start_ps; }
    bool runs_in_order() const { return in_order_ && active_ > 0; }
    // So many short groups one after the other say that all are.
    bool only_short(bool was_short) {
        return (short_groups_ = was_short ? short_groups_ + 1 : 0) >= kShortGroups;
    }
    // Tells of a dispatch that holds the host up far longer than its model time says.
    void watch_cost(const Quantum& did);
    bool saves() const { return preempt_ == Preempt::kNow; }
    const CoreSet& cores() const { return cores_; }
    Ways& ways() { return ways_; }
    // The core is another's from now on.
    void take_back(const Core& core, ModelTime now);
    // Writes a group of this port to the save area. Gives its bytes, which have still to pass VRAM.
    std::uint64_t store(const SavedGroup& group);
    std::uint64_t area() const { return save_; }
    void group_done(ModelTime now);
    void group_saved(ModelTime now);
    // Ends the dispatch at model time `at`: cores that run it are free at once.
    void stop(std::uint32_t status, std::uint64_t fault, std::uint64_t detail, ModelTime at);
    // For what its group on this core did.
    void stop(const Core& core, const Quantum& did, ModelTime at);

  private:
    void on_event(ModelTime now);
    void begin(std::uint32_t tag, ModelTime now);
    // The number of its check.
    std::optional<std::uint64_t> load(std::uint64_t save);
    std::uint32_t take_place(std::uint32_t wanted);
    void end(std::uint32_t status, std::uint64_t fault, std::uint64_t detail, ModelTime at);
    void end_well(ModelTime now);
    void check(std::unique_ptr<LaunchCheck> check);
    void log_findings();
    void finish_save(ModelTime now);
    void go_on_saving(ModelTime now);
    void drop_pending();
    void hand_in(ModelTime now);

    Impl& unit_;
    std::uint32_t number_;
    Event event_;
    std::uint32_t priority_ = 0;
    std::uint32_t weight_ = 1;

    bool busy_ = false;
    bool launched_ = false;  // its groups may go to cores
    bool ended_ = false;     // completion_ stands, and the event hands it in
    bool in_order_ = false;  // its groups are not computed ahead
    static constexpr unsigned kShortGroups = 4;
    unsigned short_groups_ = 0;
    KernelLaunch launch_;
    std::unique_ptr<LaunchCheck> check_;
    std::uint64_t next_group_ = 0;
    Ways ways_;
    std::bitset<kMaxCores> places_;   // of item stacks: those of groups on cores and in pending_
    std::deque<SavedGroup> pending_;  // resumed, and not on a core yet: before all new groups
    std::uint32_t active_ = 0;        // groups on cores
    CoreSet cores_;                   // that it has
    ModelTime used_ = 0;              // core time of the groups that are no longer on cores
    ModelTime group_time_ = 0;        // core time of the last group that was done: what the next will take
    Pass pass_ = 0;
    Completion completion_;
    JobCounter job_counter_;
    std::bitset<kMaxCores> ran_on_;  // cores, if the job is counted
    LaunchAccount account_;
    std::uint64_t lookups_ = 0, work_ = 0, cycles_ = 0;  // what it has cost the host, and the model
    bool told_ = false;
    bool queued_ = false;  // it has come, and no core has had a group of it

    Preempt preempt_ = Preempt::kNo;
    std::uint64_t save_ = 0;   // VRAM offset of the area
    std::uint32_t saved_ = 0;  // groups in it
    std::uint64_t saved_bytes_ = 0;
    std::uint64_t unsaved_ = 0;  // of them: bytes of groups without a core that have still to pass VRAM
};

}  // namespace orrery::emu
