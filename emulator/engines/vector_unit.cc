#include "emulator/engines/vector_unit.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include "emulator/engines/vector_core.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kMaxGroups = std::uint64_t{1} << 31;
constexpr std::uint32_t kMaxItems = 1024;
constexpr std::uint32_t kMaxCores = 256;
constexpr std::uint32_t kMaxPorts = 64;

__extension__ using Wide = unsigned __int128;

bool valid(const orr_desc_kernel& desc) {
    if (desc.op != ORR_DESC_KERNEL || desc.flags != 0 || desc.reserved1 != 0) return false;
    if (desc.reserved2[0] != 0 || desc.reserved2[1] != 0 || desc.entry % 2 != 0) return false;
    if (Wide{desc.grid_x} * desc.grid_y * desc.grid_z - 1 >= kMaxGroups) return false;
    if (std::uint64_t{desc.block_x} * desc.block_y * desc.block_z - 1 >= kMaxItems) return false;
    return desc.local_bytes <= ORR_LOCAL_BYTES;
}

VectorConfig in_range(VectorConfig config) {
    config.cores = std::clamp(config.cores, 1u, kMaxCores);
    config.ports = std::clamp(config.ports, 1u, kMaxPorts);
    config.quantum = std::max<std::uint64_t>(config.quantum, 1);
    return config;
}

}  // namespace

class VectorUnit::Impl {
  public:
    class Port;

    struct Core {
        Core(Impl& unit_, std::uint32_t number, const VectorConfig& config, Mmu& mmu)
            : unit(unit_),
              core(number, config.hz, config.item_cycles, mmu),
              event(Event::of<&Core::on_event>(this)) {}
        void on_event(ModelTime now) { unit.on_core(*this, now); }

        Impl& unit;
        VectorCore core;
        Event event;
        Port* port = nullptr;  // whose group it runs; nullptr: free
        bool group_done = false;
        ModelTime taken = 0;  // when its port got it
    };

    class Port final : public EnginePort {
      public:
        Port(Impl& unit, std::uint32_t number)
            : unit_(unit), number_(number), event_(Event::of<&Port::on_event>(this)) {}

        std::uint32_t kind() const override { return ORR_ENGINE_VECTOR; }
        bool busy() const override { return busy_; }
        bool start(const DescriptorWords& descriptor, std::uint32_t tag) override;
        void abort() override;
        void reset() override;
        ModelTime used() const override;
        std::uint32_t active() const override { return static_cast<std::uint32_t>(active_); }

        bool has_group() const { return launched_ && next_group_ < launch_.groups(); }
        void give_group(Core& core, ModelTime now);
        void group_done();
        // The core is another's now; it was this port's since core.taken.
        void give_back(const Core& core, ModelTime at) { used_ += at - core.taken; }
        // Ends the dispatch at model time `at`: cores that run it are free at once.
        void stop(std::uint32_t status, std::uint64_t fault, std::uint64_t detail, ModelTime at);

      private:
        void on_event(ModelTime now);
        void end(std::uint32_t status, std::uint64_t fault, std::uint64_t detail, ModelTime at);

        Impl& unit_;
        std::uint32_t number_;
        Event event_;
        bool busy_ = false;
        bool launched_ = false;  // its groups may go to cores
        bool ended_ = false;     // completion_ stands, and the event hands it in
        KernelLaunch launch_;
        std::uint64_t next_group_ = 0;
        std::uint64_t active_ = 0;  // groups on cores
        ModelTime used_ = 0;        // core time of the groups that are no longer on cores
        Completion completion_;
    };

    Impl(const VectorConfig& config, EngineContext& context) : config_(in_range(config)), context_(context) {
        for (std::uint32_t i = 0; i < config_.cores; ++i)
            cores_.emplace_back(*this, i, config_, context.mmu);
        for (std::uint32_t i = 0; i < config_.ports; ++i)
            ports_.emplace_back(*this, config_.first_port + i);
    }

    // Hands groups to free cores, round robin over the ports that have some.
    void distribute(ModelTime now) {
        for (Core& core : cores_) {
            if (core.port != nullptr) continue;
            Port* const port = next_port();
            if (port == nullptr) return;
            port->give_group(core, now);
        }
    }

    Port* next_port() {
        for (std::uint32_t i = 0; i < config_.ports; ++i) {
            Port& port = ports_[(turn_ + i) % config_.ports];
            if (!port.has_group()) continue;
            turn_ = (turn_ + i + 1) % config_.ports;
            return &port;
        }
        return nullptr;
    }

    void on_core(Core& core, ModelTime now) {
        Port& port = *core.port;
        if (core.group_done) {
            core.port = nullptr;
            core.group_done = false;
            port.give_back(core, now);
            port.group_done();
            return distribute(now);
        }
        const Quantum did = core.core.run(config_.quantum, now);
        const ModelTime took = duration_ps(did.cycles, config_.hz);
        context_.counters.add(ORR_CTR_VECTOR_INSTRUCTIONS, did.instructions);
        context_.counters.add(ORR_CTR_VECTOR_ITEMS, did.items);
        context_.counters.add(ORR_CTR_VECTOR_BUSY_PS, took);
        if (did.end == Quantum::End::kStopped) {
            port.stop(did.status, did.fault, did.detail, later(now, took));
            return distribute(now);
        }
        core.group_done = did.end == Quantum::End::kGroupDone;
        context_.events.schedule(core.event, later(now, took));
    }

    void free_cores_of(Port& port) {
        for (Core& core : cores_) {
            if (core.port != &port) continue;
            context_.events.cancel(core.event);
            port.give_back(core, context_.events.now());
            core.port = nullptr;
            core.group_done = false;
        }
    }

    const VectorConfig config_;
    EngineContext& context_;
    std::deque<Core> cores_;  // events do not move
    std::deque<Port> ports_;
    std::uint32_t turn_ = 0;    // port that is asked first
    std::uint64_t serial_ = 0;  // of the last launch
};

bool VectorUnit::Impl::Port::start(const DescriptorWords& descriptor, std::uint32_t tag) {
    if (busy_) return false;
    const ModelTime now = unit_.context_.events.now();
    static_assert(sizeof descriptor == sizeof launch_.desc);
    std::memcpy(&launch_.desc, descriptor.data(), sizeof launch_.desc);
    launch_.serial = ++unit_.serial_;
    busy_ = true;
    launched_ = ended_ = false;
    next_group_ = active_ = 0;
    used_ = 0;
    completion_ = {.port = number_, .tag = tag, .start_ps = now};
    unit_.context_.counters.add(ORR_CTR_VECTOR_JOBS);
    if (!valid(launch_.desc)) {
        end(ORR_DONE_BAD_DESC, 0, 0, now);
    } else {
        unit_.context_.events.schedule(event_, later(now, unit_.config_.launch_ps));
    }
    return true;
}

void VectorUnit::Impl::Port::end(std::uint32_t status, std::uint64_t fault, std::uint64_t detail,
                                 ModelTime at) {
    completion_.status = status;
    completion_.fault = fault;
    completion_.detail = detail;
    ended_ = true;
    launched_ = false;
    unit_.context_.events.schedule(event_, at);
}

void VectorUnit::Impl::Port::stop(std::uint32_t status, std::uint64_t fault, std::uint64_t detail,
                                  ModelTime at) {
    unit_.free_cores_of(*this);
    active_ = 0;
    end(status, fault, detail, at);
}

void VectorUnit::Impl::Port::abort() {
    if (!busy_ || ended_) return;
    const ModelTime now = unit_.context_.events.now();
    stop(ORR_DONE_ABORTED, 0, 0, now);
    unit_.distribute(now);
}

ModelTime VectorUnit::Impl::Port::used() const {
    if (!busy_) return 0;
    ModelTime used = used_;
    for (const Core& core : unit_.cores_) {
        if (core.port == this) used += unit_.context_.events.now() - core.taken;
    }
    return used;
}

void VectorUnit::Impl::Port::reset() {
    unit_.free_cores_of(*this);
    unit_.context_.events.cancel(event_);
    busy_ = launched_ = ended_ = false;
    active_ = 0;
}

void VectorUnit::Impl::Port::on_event(ModelTime now) {
    if (!ended_) {
        launched_ = true;
        return unit_.distribute(now);
    }
    completion_.end_ps = now;
    completion_.used_ps = used_;
    busy_ = ended_ = false;
    const Completion completion = completion_;  // the callee may start the next
    unit_.context_.done(completion);
}

void VectorUnit::Impl::Port::give_group(Core& core, ModelTime now) {
    core.port = this;
    core.group_done = false;
    core.taken = now;
    core.core.take(launch_, next_group_++);
    ++active_;
    unit_.context_.events.schedule(core.event, later(now, unit_.config_.group_ps));
}

void VectorUnit::Impl::Port::group_done() {
    unit_.context_.counters.add(ORR_CTR_VECTOR_GROUPS);
    --active_;
    if (active_ == 0 && next_group_ == launch_.groups()) {
        end(ORR_DONE_OK, 0, 0, unit_.context_.events.now());
    }
}

VectorUnit::VectorUnit(const VectorConfig& config, EngineContext& context)
    : impl_(std::make_unique<Impl>(config, context)) {}
VectorUnit::~VectorUnit() = default;

EnginePort& VectorUnit::port(std::uint32_t index) {
    return impl_->ports_.at(index);
}
const VectorConfig& VectorUnit::config() const {
    return impl_->config_;
}

void VectorUnit::reset() {
    for (auto& port : impl_->ports_)
        port.reset();
    impl_->turn_ = 0;
    flush();
}

void VectorUnit::flush() {
    for (auto& core : impl_->cores_)
        core.core.flush();
}

}  // namespace orrery::emu
