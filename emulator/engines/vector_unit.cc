// The work distributor: which dispatch gets the next free core, and what cores do at their events.
#include "emulator/engines/vector_unit.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/engines/vector_unit_impl.h"
#include "emulator/memory/tlb_counters.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr std::uint32_t kMaxPorts = 64;
constexpr std::uint32_t kPriorities = 4;
// Small ones: checks give their room back before it is short.
constexpr std::size_t kMostParked = 4096;
// What 64 save areas of 256 cores each hold.
constexpr std::size_t kMostOwing = 16'384;
// A core looks whether its group is to be saved once in this time.
constexpr std::uint64_t kQuantaPerSecond = 500'000;

// Of most quanta of small kernels.
bool no_vectors(const WorkCounts& counts) {
    std::uint64_t any = counts.active | counts.lanes;
    for (const std::uint64_t each : counts.instructions)
        any |= each;
    for (const std::uint64_t each : counts.flops)
        any |= each;
    return any == 0;
}

VectorConfig in_range(VectorConfig config) {
    config.cores = std::clamp(config.cores, 1u, kMaxCores);
    config.ports = std::clamp(config.ports, 1u, kMaxPorts);
    const std::uint64_t longest = std::max<std::uint64_t>(config.hz / kQuantaPerSecond, 1);
    config.quantum = std::clamp<std::uint64_t>(config.quantum, 1, longest);
    return config;
}

}  // namespace

VectorUnit::Impl::Impl(const VectorConfig& wanted, EngineContext& context_)
    : config(in_range(wanted)), context(context_) {
    check_room = {.limit = config.check_bytes, .used = 0, .spare = [this] {
                      for (Parked& each : parked) {
                          if (each.check->gave_up()) continue;
                          each.check->give_up();
                          return true;
                      }
                      return false;
                  }};
    // Checks look at accesses in the order of model time.
    if (config.threads > 0 && config.cores > 1 && config.l1_bytes != 0 && config.check == 0)
        ahead = std::make_unique<RunAhead>(config.threads, config.cores, config.quantum);
    for (std::uint32_t i = 0; i < config.cores; ++i) {
        cores.emplace_back(*this, i, config, context.mmu);
        free.add(i);
    }
    if (ahead != nullptr) {
        for (Core& core : cores)
            core.event.set_apart();
        context.events.before_others([](void* self) { static_cast<Impl*>(self)->join(); }, this);
    }
    for (std::uint32_t i = 0; i < config.ports; ++i)
        ports.emplace_back(*this, config.first_port + i);
    std::vector<VectorCore*> harts;
    for (Core& core : cores)
        harts.push_back(&core.core);
    debugger = std::make_unique<KernelDebugger>(
        std::move(harts),
        [this](std::uint32_t core) {
            return cores[core].port != nullptr && cores[core].phase == Core::Phase::kRunning;
        },
        [this] { settle(); });
}

void VectorUnit::Impl::distribute(ModelTime now) {
    while (with_groups != 0 && free.size() > 0) {
        Port* const port = choose(now);
        if (port == nullptr) return;
        std::uint64_t groups = 1;
        if (port->resident())
            groups = port->waiting_groups();
        else if (std::has_single_bit(with_groups))  // all the others have none
            groups = std::min<std::uint64_t>(port->waiting_groups(), free.size());
        for (; groups > 0; --groups)
            port->give_group(cores[free.lowest()], now);
        if (port->waiting_groups() == 0) with_groups &= ~port->bit();
    }
}

VectorUnit::Impl::Port* VectorUnit::Impl::choose(ModelTime now) {
    std::uint32_t wanted = 0;  // bit: some port of this priority has a group
    for (std::uint64_t left = with_groups; left != 0; left &= left - 1) {
        const auto number = static_cast<std::uint32_t>(std::countr_zero(left));
        if (ports[number].has_group())
            wanted |= 1u << ports[number].priority();
        else
            with_groups &= ~(std::uint64_t{1} << number);
    }
    for (std::uint32_t priority = kPriorities; priority-- > 0;) {
        if ((wanted >> priority & 1) == 0) continue;
        Port* resident = nullptr;
        Port* best = nullptr;
        Pass best_place = 0;
        bool second = false;
        for (std::uint64_t left = with_groups; left != 0; left &= left - 1) {
            Port& port = ports[static_cast<std::uint32_t>(std::countr_zero(left))];
            if (port.priority() != priority) continue;
            if (port.resident() && (resident == nullptr || port.serial() < resident->serial()))
                resident = &port;
            // One alone needs no comparison.
            if (best == nullptr) {
                best = &port;
                continue;
            }
            if (!second) best_place = place_of(*best, now);
            second = true;
            const Pass place = place_of(port, now);
            // Of equals the one that has been there longest: who was just put back on a port has its turn
            // behind those that have not had theirs.
            const auto rank = [](const Port& one) { return std::pair(one.active(), one.serial()); };
            if (place < best_place || (place == best_place && rank(port) < rank(*best))) {
                best = &port;
                best_place = place;
            }
        }
        // It waits for all its cores, and the others of this priority and below for it.
        if (resident != nullptr) return resident->waiting_groups() <= free.size() ? resident : nullptr;
        if (best != nullptr) return best;
    }
    return nullptr;
}

// What it was charged, and what its groups on cores have taken beyond that.
Pass VectorUnit::Impl::place_of(const Port& port, ModelTime now) const {
    Pass place = port.pass();
    port.cores().for_each([&](std::uint32_t number) {
        const ModelTime held = now - cores[number].taken;
        if (held > cores[number].expected) place += port.cost(held - cores[number].expected);
    });
    return place;
}

Pass VectorUnit::Impl::pass_of_newcomer(const Port& newcomer, ModelTime now) const {
    bool any = false;
    Pass least = 0;
    for (const Port& port : ports) {
        if (&port == &newcomer || !port.shares() || port.priority() != newcomer.priority()) continue;
        const Pass place = place_of(port, now);
        least = any ? std::min(least, place) : place;
        any = true;
    }
    return least;
}

void VectorUnit::Impl::release(Core& core, ModelTime now) {
    core.port->take_back(core, now);
    core.port = nullptr;
    free.add(core.number);
}

void VectorUnit::Impl::save(Core& core, ModelTime now) {
    join();
    core.phase = Core::Phase::kSaving;
    SavedGroup group = core.core.save();
    group.record.owed = keep(core.port->launch(), group.record.group, core.port->area(), core.peers.leave());
    carry(core, core.port->store(group), config.save_core_ps, now);
}

void VectorUnit::Impl::carry(Core& core, std::uint64_t bytes, ModelTime after, ModelTime now) {
    core.carried = bytes;
    core.after_carry = after;
    carry_on(core, now);
}

// A piece at a time, so that others get their share.
void VectorUnit::Impl::carry_on(Core& core, ModelTime now) {
    Resource& vram = context.memory.vram(ORR_CTR_VRAM_VECTOR_BYTES);
    const std::uint64_t piece = std::min(core.carried, vram.piece());
    const ModelTime through = vram.reserve(now, piece);
    const bool saves = core.phase == Core::Phase::kSaving;
    core.port->job_counter().add(saves ? ORR_JOB_VRAM_WRITTEN : ORR_JOB_VRAM_READ, piece);
    core.carried -= piece;
    context.events.schedule(core.event, core.carried != 0 ? through : later(through, core.after_carry));
}

MemoryCosts VectorUnit::Impl::memory_costs() const {
    if (config.l1_bytes == 0) return {};
    const auto cycles = [&](ModelTime latency) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((Wide{latency} * config.hz + kPsPerSecond - 1) / kPsPerSecond);
    };
    const MemorySystem& memory = context.memory;
    const ModelTime vram = memory.config().vram_latency_ps, host = memory.config().pcie_latency_ps;
    return {.l1_bytes = config.l1_bytes,
            .vram_cycles = cycles(vram),
            .host_cycles = cycles(host),
            .tlb_entries = config.tlb_entries,
            .most_vram = most_bytes(memory.vram(), vram),
            .most_from_host = most_bytes(memory.from_host(), host),
            .most_to_host = most_bytes(memory.to_host(), 0)};
}

std::uint64_t VectorUnit::Impl::most_bytes(const Resource& way, ModelTime latency) const {
    const std::uint64_t piece = std::min(way.piece(), Resource(in_flight(latency)).piece());
    // The instruction that comes to it is completed: eight registers, if it is not one of those that stop
    // inside.
    return piece - std::min<std::uint64_t>(piece / 2, config.vlen);
}

// When a quantum is over: what it computed is known, and now its accesses share memory with all others'.
void VectorUnit::Impl::price(Core& core, const Quantum& did, ModelTime now) {
    const MemoryConfig& memory = context.memory.config();
    const AccessCounts& accesses = did.accesses;
    core.computed = later(now, duration_ps(did.cycles, config.hz));
    const auto stream = [&](Resource& reads, std::uint64_t bytes, ModelTime latency) {
        if (bytes == 0) return;
        const ModelTime through = reads.reserve(now, bytes);
        core.computed = std::max(core.computed, through);
        core.answered = std::max(core.answered, later(through, latency));
    };
    stream(core.vram_reads, accesses.vram.streamed, memory.vram_latency_ps);
    stream(core.host_reads, accesses.host.streamed, memory.pcie_latency_ps);
    if (!did.full) core.computed = std::max(core.computed, std::exchange(core.answered, 0));
    core.owed = {.vram = accesses.vram.read + accesses.vram.written,
                 .from_host = accesses.host.read,
                 .to_host = accesses.host.written};
    core.busy = {.since = now,
                 .computed = later(now, duration_ps(did.cycles, config.hz)),
                 .latency = duration_ps(accesses.waited, config.hz),
                 .launch = duration_ps(did.launch, config.hz),
                 .pause = duration_ps(did.counts.paused, config.hz)};
    if (!core.owed.any()) return context.events.schedule(core.event, core.computed);
    move_owed(core, now);
}

// A piece at a time, so that others get their share.
void VectorUnit::Impl::move_owed(Core& core, ModelTime now) {
    MemorySystem& memory = context.memory;
    const Traffic piece{.vram = std::min(core.owed.vram, memory.vram().piece()),
                        .from_host = std::min(core.owed.from_host, memory.from_host().piece()),
                        .to_host = std::min(core.owed.to_host, memory.to_host().piece())};
    const ModelTime through = memory.reserve(now, piece, ORR_CTR_VRAM_VECTOR_BYTES);
    core.owed -= piece;
    if (core.owed.any()) return context.events.schedule(core.event, through);
    context.events.schedule(core.event, std::max(through, core.computed));
}

void VectorUnit::Impl::on_core(Core& core, ModelTime now) {
    if (core.carried != 0) return carry_on(core, now);
    if (core.owed.any()) return move_owed(core, now);
    count_busy(core, now);
    Port& port = *core.port;
    if ((!core.peers.idle() || core.asked != kNever) && !ask_peers(core, now)) return;
    if (core.phase == Core::Phase::kStopped) {
        port.stop(core, core.stopped, now);
        return distribute(now);
    }
    if (core.phase != Core::Phase::kRunning) {
        const bool done = core.phase == Core::Phase::kDone;
        release(core, now);
        if (done) {
            port.group_done(now);
        } else {
            port.group_saved(now);
        }
        distribute(now);
        if (ahead != nullptr && core.port == nullptr) ahead->drop_guess(core.number);
        return;
    }
    // A group that ended when it was computed once more ends before it could be saved.
    const bool saves = port.saves() && !core.open && (ahead == nullptr || ahead->idle(core.number));
    if (saves && !core.core.is_ahead()) return save(core, now);
    if (!core.open && ahead != nullptr && play_ahead(core, now)) return;
    if (samples() && !core.open) begin_samples(core, now);
    // A group that is saved takes the time of its single steps, and does no more.
    Quantum did{.began = context.events.to_system(now), .budget = saves ? 1 : config.quantum - core.cut};
    if (core.open) did = *std::exchange(core.open, std::nullopt);
    // However many goes it costs the host, for the model it is one.
    if (!core.core.compute(did)) {
        core.open = did;
        return context.events.again(core.event);
    }
    play(core, did, now);
}

bool VectorUnit::Impl::ask_peers(Core& core, ModelTime now) {
    Port& port = *core.port;
    const bool waited = core.asked != kNever;
    // Of a group that is saved what is on its way goes with it.
    if (!port.saves() || core.phase != Core::Phase::kRunning) {
        // What it has stored before it stopped has no promise: it ends now, with its own cause.
        if (port.saves() && core.phase == Core::Phase::kStopped) {
            core.peers.forget();
            core.asked = kNever;
            return true;
        }
        const PeerAccess::Next next = core.peers.go_on(port.kernel().asid, port.ways(), now);
        const PeerAccess::Moved moved = core.peers.take_moved();
        port.job_counter().add(ORR_JOB_LINK_READ, moved.read);
        port.job_counter().add(ORR_JOB_LINK_WRITTEN, moved.written);
        if (next == PeerAccess::Next::kWaits) {
            if (!waited) core.asked = now;
            return false;
        }
        if (next == PeerAccess::Next::kFailed) {
            port.stop(core,
                      {.status = ORR_DONE_FAULT,
                       .fault = core.peers.fault().code,
                       .detail = core.peers.fault().va,
                       .other = core.peers.fault_pc()},
                      now);
            distribute(now);
            return false;
        }
    }
    count_asked(core, now);
    return true;
}

// What of the quantum's time has passed.
void VectorUnit::Impl::count_busy(Core& core, ModelTime now) {
    const Core::Busy busy = std::exchange(core.busy, {});
    if (busy.since == kNever) return;
    if (std::exchange(core.sampled, false)) tell_samples(core, busy, now);
    const ModelTime passed = now - busy.since;
    context.counters.add(ORR_CTR_VECTOR_BUSY_PS, passed);
    if (now > busy.computed) context.counters.add(ORR_CTR_VECTOR_BANDWIDTH_PS, now - busy.computed);
    // One that was cut off has not waited for more than there was of it.
    const ModelTime latency = std::min(busy.latency, passed);
    const ModelTime launch = std::min(busy.launch, passed - latency);
    context.counters.add(ORR_CTR_VECTOR_LATENCY_PS, latency);
    const ModelTime pause = std::min(busy.pause, passed - latency - launch);
    context.counters.add(ORR_CTR_VECTOR_LAUNCH_PS, launch);
    context.counters.add(ORR_CTR_VECTOR_PAUSE_PS, pause);
    JobCounter& job = core.port->job_counter();
    if (!job.on()) return;
    job.add(ORR_JOB_BUSY_PS, passed);
    if (now > busy.computed) job.add(ORR_JOB_BANDWIDTH_PS, now - busy.computed);
    job.add(ORR_JOB_LATENCY_PS, latency);
    job.add(ORR_JOB_LAUNCH_PS, launch);
    job.add(ORR_JOB_PAUSE_PS, pause);
}

void VectorUnit::Impl::count_asked(Core& core, ModelTime now) {
    if (core.asked == kNever) return;
    if (samples()) tell_link_samples(core, core.asked, now);
    const ModelTime waited = now - std::exchange(core.asked, kNever);
    context.counters.add(ORR_CTR_VECTOR_BUSY_PS, waited);
    context.counters.add(ORR_CTR_VECTOR_LINK_PS, waited);
    core.port->job_counter().add(ORR_JOB_BUSY_PS, waited);
    core.port->job_counter().add(ORR_JOB_LINK_PS, waited);
}

bool VectorUnit::Impl::play_ahead(Core& core, ModelTime now) {
    start_ahead(core);
    Quantum quantum{.began = context.events.to_system(now)};
    switch (ahead->next(core.number, quantum)) {
        case RunAhead::Next::kNone:
            settle();
            return false;
        case RunAhead::Next::kWait:
            context.events.again(core.event);
            return true;
        case RunAhead::Next::kPlay:
            if (quantum.end == Quantum::End::kGroupDone &&
                core.port->only_short(ahead->was_short(core.number)))
                go_in_order(core, InOrder::kShort);
            context.counters.add(ORR_CTR_VECTOR_AHEAD, quantum.instructions);
            core.port->computed_ahead(quantum.instructions);
            guess_next(core);
            play(core, quantum, now);
            return true;
        case RunAhead::Next::kGoOn:
            quantum.began = context.events.to_system(now);
            core.open = quantum;
            go_in_order(core, InOrder::kStopped);
            return false;
        case RunAhead::Next::kOrder:
            break;
    }
    go_in_order(core, InOrder::kMet);
    return false;
}

bool VectorUnit::Impl::may_start_ahead(const Core& core) const {
    // One group alone has nobody to be ahead of.
    if (free.size() + 1 >= config.cores || debugger->attached() || core.core.is_ahead()) return false;
    if (samples()) return false;
    if (core.peers.has_stored()) return false;
    return std::ranges::none_of(ports, [](const Port& port) { return port.runs_in_order(); });
}

void VectorUnit::Impl::start_ahead(Core& core) {
    if (ahead->idle(core.number) && may_start_ahead(core)) ahead->start(core.number, core.core, core.cut);
}

void VectorUnit::Impl::guess_next(Core& core) {
    if (!ahead->may_guess(core.number) || !may_start_ahead(core)) return;
    // A guessed group finds nothing of what the present one had for other cards.
    if (!core.peers.unused()) return;
    // If others have groups, who can say whose comes next?
    if (with_groups != core.port->bit()) return;
    // Cores that begin their groups together, and so end them together, have work for all threads then.
    const auto together = std::ranges::count_if(cores, [&](const Core& other) {
        const ModelTime first = std::min(core.taken, other.taken), last = std::max(core.taken, other.taken);
        return other.port == core.port && last - first <= config.group_ps;
    });
    if (std::cmp_greater(together, config.threads)) return;
    if (const auto group = core.port->guess(core)) ahead->guess(core.number, core.port->launch(), *group);
}

void VectorUnit::Impl::go_in_order(Core& core, InOrder cause) {
    settle();
    core.port->go_in_order(cause, core.core);
    const orr_desc_kernel& desc = core.port->kernel();
    kernel_of(desc) = {.entry = desc.entry, .asid = desc.asid, .skip = kSkip};
}

bool VectorUnit::Impl::was_in_order(const orr_desc_kernel& desc) {
    Kernel& known = kernel_of(desc);
    if (known.entry != desc.entry || known.asid != desc.asid || known.skip == 0) return false;
    --known.skip;
    return true;
}

void VectorUnit::Impl::count_work(const Quantum& did) {
    if (did.barriers != 0) context.counters.add(ORR_CTR_VECTOR_BARRIERS, did.barriers);
    count_lookups(context.counters, ORR_CTR_VECTOR_TLB_LOOKUPS, did.accesses.tlb);
    for (std::uint32_t i = 0; i < kScalarClasses; ++i) {
        if (did.counts.scalar[i] != 0)
            context.counters.add(static_cast<orr_counter>(ORR_CTR_VECTOR_SCALAR_INT + i),
                                 did.counts.scalar[i]);
    }
    if (no_vectors(did.counts)) return;
    for (std::uint32_t i = 0; i < kVectorClasses; ++i)
        context.counters.add(static_cast<orr_counter>(ORR_CTR_VECTOR_SIMD_INT + i),
                             did.counts.instructions[i]);
    context.counters.add(ORR_CTR_VECTOR_LANES_ACTIVE, did.counts.active);
    context.counters.add(ORR_CTR_VECTOR_LANES, did.counts.lanes);
    for (std::uint32_t i = 0; i < did.counts.flops.size(); ++i)
        context.counters.add(static_cast<orr_counter>(ORR_CTR_VECTOR_FLOPS_F16 + i), did.counts.flops[i]);
}

void VectorUnit::Impl::count_job(JobCounter& job, const Quantum& did) {
    const AccessCounts& accesses = did.accesses;
    job.add(ORR_JOB_VRAM_READ, accesses.vram.read);
    job.add(ORR_JOB_VRAM_WRITTEN, accesses.vram.written);
    job.add(ORR_JOB_HOST_READ, accesses.host.read);
    job.add(ORR_JOB_HOST_WRITTEN, accesses.host.written);
    job.add(ORR_JOB_INSTRUCTIONS, did.instructions);
    job.add(ORR_JOB_ITEMS, did.items);
    job.add(ORR_JOB_BARRIERS, did.barriers);
    job.add(ORR_JOB_TLB_LOOKUPS, accesses.tlb.all);
    job.add(ORR_JOB_TLB_MISSES, accesses.tlb.missed);
    job.add(ORR_JOB_TLB_WALKED, accesses.tlb.walked);
    for (std::uint32_t i = 0; i < kVectorClasses; ++i)
        job.add(static_cast<orr_job_counter>(ORR_JOB_SIMD_INT + i), did.counts.instructions[i]);
    job.add(ORR_JOB_LANES_ACTIVE, did.counts.active);
    job.add(ORR_JOB_LANES, did.counts.lanes);
    for (std::uint32_t i = 0; i < did.counts.flops.size(); ++i)
        job.add(static_cast<orr_job_counter>(ORR_JOB_FLOPS_F16 + i), did.counts.flops[i]);
}

void VectorUnit::Impl::play(Core& core, const Quantum& did, ModelTime now) {
    core.port->watch_cost(did);
    context.counters.add(ORR_CTR_VECTOR_INSTRUCTIONS, did.instructions);
    core.port->computed(did.instructions);
    context.counters.add(ORR_CTR_VECTOR_ITEMS, did.items);
    count_work(did);
    if (core.port->job_counter().on()) count_job(core.port->job_counter(), did);
    if (did.end == Quantum::End::kGroupDone) core.phase = Core::Phase::kDone;
    if (did.end == Quantum::End::kStopped) {
        core.phase = Core::Phase::kStopped;
        core.stopped = did;
    }
    core.cut = did.full ? core.cut + did.cycles : 0;
    price(core, did, now);
}

void VectorUnit::Impl::take_cores_of(Port& port, ModelTime now) {
    settle();
    const CoreSet taken = port.cores();
    taken.for_each([&](std::uint32_t number) {
        count_busy(cores[number], now);
        count_asked(cores[number], now);
        cores[number].peers.forget();
        context.events.cancel(cores[number].event);
        context.memory.reserve(now, std::exchange(cores[number].owed, {}), ORR_CTR_VRAM_VECTOR_BYTES);
        release(cores[number], now);
    });
}

KernelDebugger& VectorUnit::debugger() {
    return *impl_->debugger;
}

void VectorUnit::Impl::park(const KernelLaunch& launch, std::unique_ptr<LaunchCheck> check) {
    forget_parked();
    // Some never go on.
    if (parked.size() == kMostParked) parked.pop_front();
    check->look();
    check->pause();
    parked.push_back(
        {launch.desc, launch.serial, context.mmu.root_changes(launch.desc.asid), std::move(check)});
}

std::unique_ptr<LaunchCheck> VectorUnit::Impl::unpark(const KernelLaunch& launch, std::uint64_t number) {
    forget_parked();
    // The guest can write the number.
    const auto it = std::ranges::find_if(parked, [&](const Parked& each) {
        return each.number == number && std::memcmp(&each.desc, &launch.desc, sizeof launch.desc) == 0;
    });
    if (it == parked.end()) return new_check(launch);
    auto check = std::move(it->check);
    check->go_on();
    parked.erase(it);
    return check;
}

void VectorUnit::Impl::forget_parked() {
    std::erase_if(parked, [&](const Parked& each) {
        return each.root_changes != context.mmu.root_changes(each.desc.asid);
    });
}

std::uint64_t VectorUnit::Impl::keep(const KernelLaunch& launch, std::uint64_t group, std::uint64_t save,
                                     std::unique_ptr<PeerAccess::Owed> owed) {
    if (owed == nullptr) return 0;
    forget_owed();
    if (owing.size() == kMostOwing) {
        // The oldest of its own process, if there is one.
        auto it = std::ranges::find(owing, launch.desc.asid, [](const Owing& one) { return one.desc.asid; });
        if (it == owing.end()) it = owing.begin();
        it->owed->forget();
        owing.erase(it);
    }
    owing.push_back({launch.desc, launch.serial, save, group, ++owed_numbers,
                     context.mmu.root_changes(launch.desc.asid), std::move(owed)});
    return owed_numbers;
}

bool VectorUnit::Impl::is_owed(const Owing& one, const KernelLaunch& launch, const orr_save_group& record) {
    return one.number == record.owed && one.group == record.group &&
           std::memcmp(&one.desc, &launch.desc, sizeof launch.desc) == 0;
}

std::unique_ptr<PeerAccess::Owed> VectorUnit::Impl::take_owed(const KernelLaunch& launch,
                                                              const orr_save_group& record) {
    forget_owed();
    // The guest can write the number.
    const auto it =
        std::ranges::find_if(owing, [&](const Owing& each) { return is_owed(each, launch, record); });
    if (it == owing.end()) return nullptr;
    auto owed = std::move(it->owed);
    owing.erase(it);
    return owed;
}

void VectorUnit::Impl::forget_owed_if(const auto& unwanted) {
    std::erase_if(owing, [&](const Owing& each) {
        if (!unwanted(each)) return false;
        each.owed->forget();
        return true;
    });
}

// Of those whose process is gone.
void VectorUnit::Impl::forget_owed() {
    forget_owed_if(
        [&](const Owing& each) { return each.root_changes != context.mmu.root_changes(each.desc.asid); });
}

void VectorUnit::Impl::owed_by(const KernelLaunch& launch, const orr_save_group& record, std::uint64_t save) {
    for (Owing& each : owing) {
        if (!is_owed(each, launch, record)) continue;
        each.serial = launch.serial;
        each.save = save;
    }
}

void VectorUnit::Impl::forget_owed_at(std::uint64_t save) {
    forget_owed_if([&](const Owing& each) { return each.save == save; });
}

// Of a launch that ends before it was saved as a whole.
void VectorUnit::Impl::forget_owed_of(std::uint64_t launch) {
    forget_owed_if([&](const Owing& each) { return each.serial == launch; });
}

std::unique_ptr<LaunchCheck> VectorUnit::Impl::new_check(const KernelLaunch& launch) {
    forget_parked();
    auto& [changes, known] = side_by_side[launch.desc.asid];
    auto beside = known.lock();
    const std::uint64_t now = context.mmu.root_changes(launch.desc.asid);
    if (beside == nullptr || changes != now || !beside->takes_more()) {
        beside = std::make_shared<SideBySide>(&check_room);
        known = beside;
        changes = now;
    }
    CheckedMemory* const memory = (config.check & kCheckMemory) != 0 ? context.checked : nullptr;
    return std::make_unique<LaunchCheck>(config.check, launch.items(), launch.desc.local_bytes, &check_room,
                                         memory, launch.desc.asid, std::move(beside));
}

VectorUnit::VectorUnit(const VectorConfig& config, EngineContext& context)
    : impl_(std::make_unique<Impl>(config, context)) {}
VectorUnit::~VectorUnit() {
    if (impl_->ahead != nullptr) impl_->context.events.before_others(nullptr, nullptr);
}

EnginePort& VectorUnit::port(std::uint32_t index) {
    return impl_->ports.at(index);
}
const VectorConfig& VectorUnit::config() const {
    return impl_->config;
}

void VectorUnit::settle() {
    impl_->settle();
}

ModelTime VectorUnit::busy_now() const {
    const ModelTime now = impl_->context.events.now();
    ModelTime busy = 0;
    for (const Impl::Core& core : impl_->cores) {
        if (core.busy.since != kNever) busy += now - core.busy.since;
        if (core.asked != kNever) busy += now - core.asked;
    }
    return busy;
}
ModelTime VectorUnit::waits_now() const {
    const ModelTime now = impl_->context.events.now();
    ModelTime waits = 0;
    for (const Impl::Core& core : impl_->cores)
        if (core.asked != kNever) waits += now - core.asked;
    return waits;
}

void VectorUnit::sample(ModelTime period) {
    impl_->sample(period);
}

void VectorUnit::trace(std::uint32_t core, ModelTime from, ModelTime until) {
    impl_->trace(core, from, until);
}

void VectorUnit::join() {
    impl_->join();
}

void VectorUnit::reset() {
    for (auto& port : impl_->ports)
        port.reset();
    impl_->parked.clear();
    impl_->forget_owed_if([](const Impl::Owing&) { return true; });
    flush();
}

void VectorUnit::flush() {
    settle();
    for (auto& core : impl_->cores)
        core.core.flush();
}

}  // namespace orrery::emu
