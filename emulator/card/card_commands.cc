// What the host orders: boot, resets, memory and grants.
#include <algorithm>
#include <atomic>
#include <utility>

#include "emulator/card/card.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {
// Of an image, read and hashed in one event.
constexpr std::uint64_t kBootPiece = 16 << 10;
}  // namespace

bool Card::is_quiet(Command::Kind kind) {
    using enum Command::Kind;
    return kind != kBootStart && kind != kRestartCore && kind != kMailbox && kind != kGrant &&
           kind != kNode && kind != kRoute && kind != kRouteKey && kind != kForward && kind != kDrain &&
           kind != kNote && kind != kLinkReset && kind != kBarrier && kind != kSink;
}

bool Card::drain_commands(bool quiet) {
    bool any = false;
    while (!commands_.empty() && (!quiet || is_quiet(commands_.front().kind))) {
        carry_out(commands_.front());
        publish();
        commands_.pop();
        any = true;
    }
    return any;
}

void Card::carry_out(const Command& command) {
    if (vector_unit_ != nullptr) vector_unit_->join();
    switch (command.kind) {
        case Command::Kind::kBootStart:
            start_boot(command);
            break;
        case Command::Kind::kReset:
            reset();
            break;
        case Command::Kind::kRestartCore:
            restart_core();
            break;
        case Command::Kind::kMailbox:
            if (faults_ != nullptr) {
                const Fault fault = faults_->at(FaultPoint::kMailbox);
                if (fault.action == FaultAction::kDrop) break;
                if (fault.action != FaultAction::kNone)
                    faults_->later(fault.delay, [this] { ring_mailbox(); });
                if (fault.action == FaultAction::kDelay) break;
            }
            send_mailbox_ring();
            break;
        case Command::Kind::kNode:
            set_node(command.number);
            break;
        case Command::Kind::kRoute:
            set_route(command);
            break;
        case Command::Kind::kRouteKey:
            peers_.set_key(command.number, command.a);
            file_.route_keys.fetch_add(1, std::memory_order_release);
            break;
        case Command::Kind::kForward:
            if (LinkPort* link = links_[command.number].get()) {
                // Whoever knows of fewer losses has judged the ways without the last.
                const std::uint32_t losses =
                    file_.links[command.number].losses.load(std::memory_order_relaxed);
                if ((command.a & ORR_LINK_IF_LOSSES) != 0 &&
                    command.a >> ORR_LINK_LOSSES_SHIFT != (losses & 0xffffu))
                    break;
                link->set_forward((command.a & ORR_LINK_FORWARD) != 0);
                publish_link(command.number);
            }
            break;
        case Command::Kind::kDrain:
            // Where nothing comes nothing is left.
            if (LinkPort* link = links_[command.number].get())
                link->drain(command.a != 0);
            else
                file_.links[command.number].drained.fetch_add(1, std::memory_order_release);
            break;
        case Command::Kind::kNote: {
            LinkPort* link = links_[command.number].get();
            const std::uint32_t fault = link != nullptr ? link->note(static_cast<std::uint32_t>(command.a),
                                                                     std::as_bytes(std::span(command.note)))
                                                        : ORR_FAULT_PEER_DOWN;
            file_.note_fault.store(fault, std::memory_order_relaxed);
            file_.notes_sent.fetch_add(1, std::memory_order_release);
            break;
        }
        case Command::Kind::kLinkReset:
            if (LinkPort* link = links_[command.number].get()) {
                link->reset_link();
                publish_link(command.number);
            }
            file_.links[command.number].resets.fetch_add(1, std::memory_order_release);
            break;
        case Command::Kind::kGrant:
            grant(command);
            break;
        case Command::Kind::kBarrier:
            barrier(command);
            break;
        case Command::Kind::kMulticast:
            multicast(command);
            break;
        case Command::Kind::kSnapshot:
            snapshot(command);
            break;
        case Command::Kind::kSink:
            set_sink(command);
            break;
        case Command::Kind::kSinkAsk:
            sink_.ask(command.number);
            break;
        case Command::Kind::kSample:
            set_sample(command.number, command.a, command.b);
            break;
        case Command::Kind::kSamplePc:
            set_pc_period(command.number);
            break;
        case Command::Kind::kTraceCore:
            trace_core(command.number, command.a, command.b);
            break;
        case Command::Kind::kBusMaster:
            quiesce();
            host_.set_enabled(command.number != 0);
            mmu_->flush_host();
            vector_unit_->flush();
            break;
        case Command::Kind::kAtomics:
            quiesce();
            host_.set_atomics(command.number != 0 && config_.host_atomics);
            mmu_->flush_host();
            vector_unit_->flush();
            break;
        case Command::Kind::kMap:
            map(command);
            break;
        case Command::Kind::kUnmap:
            unmap(command);
            break;
        case Command::Kind::kClientGone:
            power_on();
            break;
    }
}

// One way over PCIe, as other doorbells.
void Card::send_mailbox_ring() {
    const ModelTime latency = config_.sku.pcie_doorbell_ps;
    if (latency == 0) return ring_mailbox();
    const ModelTime arrival = later(events_.now(), latency);
    // Two that arrive together are one.
    if (mailbox_rings_.empty() || mailbox_rings_.back() != arrival) mailbox_rings_.push_back(arrival);
    if (!mailbox_event_.scheduled()) events_.schedule(mailbox_event_, arrival);
}

void Card::on_mailbox(ModelTime) {
    mailbox_rings_.pop_front();
    if (!mailbox_rings_.empty()) events_.schedule(mailbox_event_, mailbox_rings_.front());
    ring_mailbox();
}

void Card::ring_mailbox() {
    if (core_->state() != ControlCore::State::kRunning) return;
    core_->note(ORR_OTRACE_NOTE_MAILBOX, {});
    soc_->ring_mailbox();
}

void Card::start_boot(const Command& command) {
    if (file_.state.load(std::memory_order_relaxed) != ORR_STATE_RESET) {
        errors_.guest("ORR_R_BOOT_START was written while the card is not in reset: ignored");
        return;
    }
    file_.state.store(ORR_STATE_BOOTING, std::memory_order_release);
    file_.boot_status.store(ORR_BOOT_BUSY, std::memory_order_release);
    boot_arg_ = command.c;
    // The image is read once, piece by piece: what the guest does to its memory later changes nothing. Its
    // size is the guest's claim, and a claim over the limit is not copied.
    const std::uint64_t bytes =
        std::max<std::uint64_t>(1, std::min<std::uint64_t>(command.b, ORR_IMAGE_MAX_SIZE));
    const auto span = host_.find(command.a, bytes, false);
    image_bus_ = command.a;
    image_bytes_ = command.b;
    if (span.data == nullptr || span.bytes < bytes) {
        return fail_boot({.status = ORR_BOOT_BAD_ADDRESS, .reason = "no such memory"});
    }
    if (command.b > ORR_IMAGE_MAX_SIZE) {
        return fail_boot({.status = ORR_BOOT_BAD_HEADER, .reason = "longer than an image may be"});
    }
    image_.emplace();
    events_.schedule(boot_event_, later(events_.now(), config_.sku.boot_ps));
}

void Card::fail_boot(const BootResult& result) {
    errors_.guest("boot failed with status {} (detail {:#x}): {}; image of {} bytes at bus address {:#x}",
                  result.status, result.detail, result.reason, image_bytes_, image_bus_);
    image_.reset();
    file_.boot_detail.store(result.detail, std::memory_order_release);
    file_.state.store(ORR_STATE_BOOT_FAILED, std::memory_order_release);
    file_.boot_status.store(result.status, std::memory_order_release);
}

// A piece of the image, or, after the last, the end.
void Card::boot(ModelTime now) {
    const std::uint64_t done = image_->size();
    if (const std::uint64_t bytes = std::min(image_bytes_ - done, kBootPiece); bytes != 0) {
        const auto span = host_.find(image_bus_ + done, bytes, false);
        if (span.data == nullptr || span.bytes < bytes) {
            return fail_boot({.status = ORR_BOOT_BAD_ADDRESS, .reason = "its memory went meanwhile"});
        }
        image_->take({span.data, bytes});
        return events_.schedule(boot_event_, later(now, duration_ps(bytes, config_.sku.boot_bytes_per_s)));
    }
    const bool warm = soc_->boot_count() > 0;
    const BootResult result = image_->finish(config_.key, core_->sram(), warm ? Load::kKeep : Load::kClear);
    if (result.status != ORR_BOOT_OK) return fail_boot(result);
    if (recorder_ != nullptr) recorder_->image(image_->image());
    image_.reset();
    file_.boot_detail.store(result.detail, std::memory_order_release);
    soc_->set_boot(result.entry, boot_arg_);
    core_->start(warm);
    file_.boot_status.store(result.status, std::memory_order_release);
}

void Card::start_core_for_test(std::uint64_t entry) {
    if (file_.state.load(std::memory_order_relaxed) != ORR_STATE_RESET) return;
    file_.state.store(ORR_STATE_BOOTING, std::memory_order_release);
    soc_->set_boot(entry, 0);
    core_->start();
}

void Card::reset() {
    counters_.add(ORR_CTR_RESETS);
    if (faults_ != nullptr) faults_->reset();
    events_.cancel(boot_event_);
    events_.cancel(interrupt_event_);
    interrupts_.clear();
    events_.cancel(mailbox_event_);
    mailbox_rings_.clear();
    image_.reset();
    for (const auto& engine : copy_engines_)
        engine->reset();
    vector_unit_->reset();
    if (checked_memory_ != nullptr) checked_memory_->reset();
    doorbells_->reset();
    memory_.reset();
    mmu_->reset();
    windows_->reset();
    soc_->reset();
    core_->reset();
    (void)sink_.set(0, 0, 0);
    sink_.ask(0);
    set_sample(0, 0, 0);
    set_pc_period(0);
    trace_core(0, 0, 0);
    core_->set_trace_sink(nullptr);
    file_.sinks_done.store(0, std::memory_order_relaxed);
    file_.sink_fault.store(ORR_FAULT_NONE, std::memory_order_relaxed);
    barriers_->reset(!keeps_step());
    file_.barriers_done.store(0, std::memory_order_relaxed);
    file_.barrier_fault.store(ORR_FAULT_NONE, std::memory_order_relaxed);
    for (LinkPort* link : active_links_)
        link->reset();
    set_node(0);
    peers_.forget_routes();
    for (auto& route : file_.routes)
        route.store(0, std::memory_order_relaxed);
    file_.route_keys.store(0, std::memory_order_relaxed);
    for (auto& link : file_.links) {
        link.grants_done.store(0, std::memory_order_relaxed);
        link.drained.store(0, std::memory_order_relaxed);
        link.resets.store(0, std::memory_order_relaxed);
        link.control.store(0, std::memory_order_relaxed);
    }
    file_.multicasts_done.store(0, std::memory_order_relaxed);
    file_.multicast_fault.store(ORR_FAULT_NONE, std::memory_order_relaxed);
    file_.notes_sent.store(0, std::memory_order_relaxed);
    file_.note_fault.store(ORR_FAULT_NONE, std::memory_order_relaxed);
    file_.snapshot_done.store(0, std::memory_order_relaxed);
    file_.irq_status.store(0, std::memory_order_relaxed);
    file_.irq_mask.store(0, std::memory_order_relaxed);
    publish_core_reset();
    file_.reset_count.fetch_add(1, std::memory_order_release);
}

// Engines, MMU, doorbells, links and what they have for the core go on: the firmware that comes finds them.
void Card::restart_core() {
    if (file_.state.load(std::memory_order_relaxed) == ORR_STATE_RESET) {
        errors_.guest("ORR_R_CORE_RESTART was written while the core waits for ORR_R_BOOT_START: ignored");
        return;
    }
    counters_.add(ORR_CTR_CORE_RESTARTS);
    errors_.note("the control core is restarted");
    // What was written before the restart is there before it: the mailbox's state outlives it.
    while (!mailbox_rings_.empty())
        on_mailbox(events_.now());
    events_.cancel(mailbox_event_);
    events_.cancel(boot_event_);
    image_.reset();
    windows_->reset();
    soc_->restart();
    core_->reset(ORR_OTRACE_NOTE_RESTART);
    publish_core_reset();
}

void Card::publish_core_reset() {
    core_halt_seen_ = false;
    file_.boot_detail.store(0, std::memory_order_relaxed);
    file_.boot_status.store(ORR_BOOT_IDLE, std::memory_order_relaxed);
    file_.progress.store(0, std::memory_order_relaxed);
    file_.heartbeat.store(0, std::memory_order_relaxed);
    file_.halt_cause.store(0, std::memory_order_relaxed);
    file_.halt_pc.store(0, std::memory_order_relaxed);
    file_.halt_tval.store(0, std::memory_order_relaxed);
    file_.state.store(ORR_STATE_RESET, std::memory_order_release);
}

// The next client is another VM: it must find nothing of this one.
void Card::power_on() {
    reset();
    host_.remove_all();
    host_.set_enabled(false);
    host_.set_atomics(false);
    vram_.clear();
    doorbells_->clear_pages();
}

std::array<std::uint64_t, ORR_COUNTER_COUNT> Card::snapshot() {
    vector_unit_->join();
    soc_->charge_waiting();
    const ModelTime now = events_.now();
    std::uint64_t retries = 0, waited = 0, without_room = 0;
    for (const LinkPort* link : active_links_) {
        retries += link->counts().retries.get();
        waited += link->counts().waited_ps.get();
        without_room += link->without_room_ps();
    }
    std::array<std::uint64_t, ORR_COUNTER_COUNT> all;
    for (unsigned n = 0; n < all.size(); ++n)
        all[n] = counters_.get(n);
    all[ORR_CTR_CORE_BUSY_PS] -= core_->busy_ahead();
    all[core_->activity()] -= core_->busy_ahead();
    for (const auto& engine : copy_engines_) {
        all[ORR_CTR_COPY_BUSY_PS] += engine->used();
        const CopyLedger::Times times = engine->times();
        for (std::size_t cause = 0; cause < times.size(); ++cause)
            all[CopyLedger::counter_of(cause)] += times[cause];
    }
    all[ORR_CTR_VECTOR_BUSY_PS] += vector_unit_->busy_now();
    all[ORR_CTR_VECTOR_LINK_PS] += vector_unit_->waits_now();
    const auto found = [&](orr_counter counter, std::uint64_t value) {
        counters_.set(counter, value);
        all[counter] = value;
    };
    found(ORR_CTR_TIME_PS, now);
    found(ORR_CTR_CORE_IDLE_PS, now - all[ORR_CTR_CORE_BUSY_PS]);
    found(ORR_CTR_COPY_IDLE_PS, now * copy_engines_.size() - all[ORR_CTR_COPY_BUSY_PS]);
    found(ORR_CTR_VECTOR_IDLE_PS, now * vector_unit_->config().cores - all[ORR_CTR_VECTOR_BUSY_PS]);
    found(ORR_CTR_LINK_RETRIES, retries);
    found(ORR_CTR_LINK_WAIT_PS, waited);
    found(ORR_CTR_LINK_CREDIT_PS, without_room);
    return all;
}

// Time that passes for nobody: the profiling path is free.
void Card::snapshot(const Command& command) {
    const auto tag = static_cast<std::uint32_t>(command.a % ORR_SNAPSHOT_ALIGN);
    const auto all = snapshot();
    static_assert(sizeof all <= ORR_SNAPSHOT_ALIGN);
    const auto place = host_.look(command.a - tag, sizeof all, true);
    const bool there = place.data != nullptr && place.bytes == sizeof all;
    // Word by word: nobody sees half of one.
    for (std::size_t i = 0; there && i < all.size(); ++i)
        std::atomic_ref(reinterpret_cast<std::uint64_t*>(place.data)[i])
            .store(all[i], std::memory_order_relaxed);
    file_.snapshot_done.store(tag | (there ? ORR_FAULT_NONE : ORR_FAULT_PAGE_RANGE) << 16,
                              std::memory_order_release);
}

void Card::quiesce() {
    workers_->quiesce();
    if (vector_unit_ != nullptr) vector_unit_->settle();
}

void Card::map(const Command& command) {
    quiesce();
    const auto inserted = host_.insert(std::move(**command.range));
    command.range->reset();
    *command.error = inserted ? 0 : inserted.error();
    if (inserted) counters_.add(ORR_CTR_DMA_MAPS);
}

void Card::unmap(const Command& command) {
    quiesce();
    *command.range = host_.remove(command.a, command.b);
    if (!command.range->has_value()) return;
    mmu_->flush_host();
    vector_unit_->flush();
}

void Card::set_node(std::uint32_t node) {
    for (LinkPort* link : active_links_)
        link->set_node(node);
    file_.node.store(node, std::memory_order_release);
}

void Card::set_route(const Command& command) {
    if (peers_.set_route(command.number, command.a))
        file_.routes[command.number].store(static_cast<std::uint32_t>(command.a), std::memory_order_release);
    for (LinkPort* link : active_links_)
        link->routes_changed();
    barriers_->ways_changed();
}

void Card::barrier(const Command& command) {
    const std::uint32_t slot = command.number & 0xffu;
    std::uint32_t fault = ORR_FAULT_PERMISSION;
    switch (command.number & ~0xffu) {
        case ORR_BARRIER_ADD:
            fault = barriers_->add(slot, static_cast<std::uint32_t>(command.a), command.c);
            break;
        case ORR_BARRIER_ARM:
            fault = barriers_->arm(slot, command.d, command.b, command.c);
            break;
        case ORR_BARRIER_CLEAR:
            fault = barriers_->clear(slot, command.c);
            break;
        default:
            break;
    }
    file_.barrier_fault.store(fault, std::memory_order_relaxed);
    file_.barriers_done.fetch_add(1, std::memory_order_release);
}

void Card::multicast(const Command& command) {
    std::uint32_t fault = ORR_FAULT_PERMISSION;
    const bool good = command.number != 0 && command.number < ORR_NODES && command.a < ORR_NODES &&
                      command.b % ORR_PAGE_SIZE == 0 && (command.a != 0 || command.b == 0);
    if (good) {
        // A route that is on hold has a port all the same.
        const unsigned port = peers_.port_of(command.number);
        LinkPort* link = port < links_.size() ? links_[port].get() : nullptr;
        const auto node = static_cast<std::uint32_t>(command.a);
        fault = link != nullptr ? link->member(command.number, node, command.b) : ORR_FAULT_NO_ROUTE;
    }
    file_.multicast_fault.store(fault, std::memory_order_relaxed);
    file_.multicasts_done.fetch_add(1, std::memory_order_release);
}

void Card::set_sample(std::uint32_t period_ns, std::uint64_t low, std::uint64_t high) {
    sample_period_ = period_ns * kPsPerNs;
    sink_.set_sample({low, high});
    watch_for_sample();
}

void Card::watch_for_sample() {
    const bool wanted = sink_.on() && sample_period_ != 0;
    const ModelTime next = wanted ? (events_.now() / sample_period_ + 1) * sample_period_ : kNever;
    events_.watch(next, [](void* self) { static_cast<Card*>(self)->sample(); }, this);
}

// Time that passes for nobody, as a snapshot.
void Card::sample() {
    sink_.sample(events_.now(), snapshot());
    watch_for_sample();
}

void Card::set_pc_period(std::uint32_t period_ns) {
    pc_period_ = period_ns * kPsPerNs;
    follow_sink();
}

void Card::trace_core(std::uint32_t core, ModelTime from, ModelTime until) {
    step_core_ = core;
    step_from_ = from;
    step_until_ = until;
    follow_sink();
}

void Card::follow_sink() {
    vector_unit_->sample(sink_.on() ? pc_period_ : 0);
    // 0 is the number of no core here.
    vector_unit_->trace(sink_.on() ? step_core_ - 1 : VectorUnit::kNoCore, step_from_, step_until_);
}

void Card::set_sink(const Command& command) {
    const std::uint32_t fault = sink_.set(command.a, command.number, command.b);
    core_->set_trace_sink(sink_.on() ? &sink_ : nullptr);
    watch_for_sample();
    follow_sink();
    file_.sink_fault.store(fault, std::memory_order_relaxed);
    file_.sinks_done.fetch_add(1, std::memory_order_release);
}

void Card::grant(const Command& command) {
    const std::uint32_t port = command.number & 0xffffu, node = command.number >> 16;
    const auto slot = static_cast<std::uint32_t>(command.c & 0xffu);
    const auto word = static_cast<std::uint32_t>(command.c);
    const std::uint32_t verb = word & ~0xffu & ~ORR_LINK_GRANT_ALL;
    const LinkPort::GrantTerms terms{.rights = command.c >> Command::kRightsShift, .key = command.d};
    const auto at = [&](LinkPort* link) {
        if (verb == ORR_LINK_GRANT_SET) return link->set_grant(slot, command.a, command.b, node, terms);
        return link->clear_grant(slot);
    };
    bool good = verb == ORR_LINK_GRANT_SET || verb == ORR_LINK_GRANT_CLEAR;
    if (good && (command.c & ORR_LINK_GRANT_ALL) != 0) {
        // Ports without a cable have nobody to grant to.
        for (LinkPort* link : active_links_)
            good &= at(link);
    } else if (good) {
        good = links_[port] != nullptr && at(links_[port].get());
    }
    if (!good) {
        errors_.guest(
            "grant command {:#x} on link port {} to node {} for {:#x} bytes at {:#x} cannot be done", word,
            port, node, command.b, command.a);
    }
    file_.links[port].grants_done.fetch_add(1, std::memory_order_release);
}

}  // namespace orrery::emu
