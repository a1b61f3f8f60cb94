#include "emulator/card/card.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <orrery/hw/pci.h>

#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {
// An idle card whose next message is further ahead than this does not live through the time until then.
constexpr ModelTime kLeastJump = 100'000 * kPsPerNs;
// Of an image, read and hashed in one event.
constexpr std::uint64_t kBootPiece = 16 << 10;

// For checks of kernels: as much as VRAM needs that is touched as a whole, but of the host a quarter.
std::uint64_t most_for_checks(std::uint64_t vram_bytes) {
    const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
    const std::uint64_t all = 4 * vram_bytes;
    return pages <= 0 || bytes <= 0
               ? all
               : std::min(all, static_cast<std::uint64_t>(pages) / 4 * static_cast<std::uint64_t>(bytes));
}
}  // namespace

std::expected<std::unique_ptr<Card>, std::string> Card::create(CardConfig config) {
    if (config.uid == 0) return std::unexpected("the card's uid must not be 0");
    if (config.vram_bytes == 0) config.vram_bytes = config.sku.vram_bytes;
    if (const auto good = check_vram_size(config.vram_bytes); !good) return std::unexpected(good.error());
    auto vram = Vram::create(config.vram_bytes);
    if (!vram) return std::unexpected(vram.error());
    std::unique_ptr<Card> card(new Card(std::move(config), *std::move(vram)));
    if (const auto built = card->build(); !built) return std::unexpected(built.error());
    return card;
}

Card::Card(CardConfig config, Vram vram)
    : config_(std::move(config)),
      errors_(counters_, config_.log),
      vram_(std::move(vram)),
      memory_({.vram_bytes_per_second = config_.sku.copy_vram_bytes_per_s,
               .pcie_bytes_per_second = config_.sku.copy_host_bytes_per_s,
               .vram_latency_ps = config_.sku.memory_latency_ps,
               .pcie_latency_ps = config_.sku.memory_host_latency_ps}) {
    memory_.vram().count_in(counters_, ORR_CTR_VRAM_BYTES);
}

Card::~Card() {
    if (core_) core_->finish_recording();
    report_recording();
}

std::expected<void, std::string> Card::build_recorder() {
    if (config_.record.empty()) return {};
    auto made = Recorder::create(config_.record, {.program = config_.program,
                                                  .sku_name = config_.sku.name,
                                                  .sku_text = config_.sku.text,
                                                  .uid = config_.uid,
                                                  .seed = config_.faults ? config_.faults->seed : 0,
                                                  .plan_text = config_.faults ? config_.faults->text : "",
                                                  .cycle_ps = config_.sku.cycle_ps,
                                                  .start_ps = events_.now(),
                                                  .vram_bytes = vram_.size(),
                                                  .hw_version = ORR_HW_VERSION,
                                                  .symbols = std::move(config_.symbols),
                                                  .write = config_.record_write,
                                                  .keyframe_cost = config_.record_keyframe_cost});
    if (!made) return std::unexpected(made.error());
    recorder_ = *std::move(made);
    core_->record(recorder_.get());
    recorder_->writer().on_room([this] { wake(); });
    doorbells_->on_ring([this](std::uint32_t tag, std::uint64_t value, unsigned page, unsigned slot) {
        core_->note(ORR_OTRACE_NOTE_DOORBELL, {tag, value, page, slot});
    });
    return {};
}

void Card::flush_recording() {
    core_->flush_recording();
    // On its own thread the card has somebody to serve.
    if (recorder_ != nullptr && !running()) recorder_->writer().drain();
    report_recording();
}

void Card::store_recording() {
    if (recorder_ == nullptr) return;
    core_->flush_recording();
    recorder_->writer().drain();
    report_recording();
}

bool Card::recording_waits() {
    if (recorder_ == nullptr) return false;
    RecordWriter& writer = recorder_->writer();
    const bool waits = !writer.room() && !writer.failed();
    if (waits && !running()) {
        writer.wait_for_room();
        return false;
    }
    if (waits != recording_waits_) {
        errors_.note("recording to {}: {}", recorder_->file().string(),
                     waits ? "its disk does not keep up, and the card's model time waits for it"
                           : "the disk keeps up again");
        recording_waits_ = waits;
    }
    return waits;
}

void Card::report_recording() {
    if (recorder_ == nullptr || !recorder_->failed() || recording_failed_) return;
    recording_failed_ = true;
    errors_.report(ErrorKind::kHostError, "{}", recorder_->error());
}

std::expected<void, std::string> Card::build_faults() {
    if (!config_.faults && config_.control.empty()) return {};
    Faults::Hooks hooks;
    hooks.die = config_.die ? config_.die : [] { ::kill(::getpid(), SIGKILL); };
    // A rule may strike for ever; a log may not grow for ever.
    hooks.struck = [this](const Faults::Struck& fault) {
        constexpr std::uint64_t kMost = 64;
        if (fault.number <= kMost)
            errors_.note("fault plan: {} {:#x}, pass {}: {}{}", name_of(fault.point), fault.subject,
                         fault.pass, name_of(fault.action),
                         fault.number == kMost ? "; what follows is not written" : "");
    };
    faults_ = std::make_unique<Faults>(config_.faults.value_or(FaultPlan{}), events_, std::move(hooks));
    if (config_.control.empty()) return {};
    auto control =
        FaultControl::create(config_.control.string(), *faults_,
                             [this](std::uint64_t port, bool in) -> std::expected<void, std::string> {
                                 LinkPort* link = port < links_.size() ? links_[port].get() : nullptr;
                                 if (link == nullptr)
                                     return std::unexpected(fmt::format("there is no link at port {}", port));
                                 if (in) return link->plug();
                                 link->unplug();
                                 return {};
                             });
    if (!control) return std::unexpected(control.error());
    fault_control_ = *std::move(control);
    return {};
}

std::expected<void, std::string> Card::build() {
    const Sku& sku = config_.sku;
    wake_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_fd_) return std::unexpected(fmt::format("cannot make an eventfd: {}", std::strerror(errno)));
    auto doorbell_file = Doorbells::create_file();
    if (!doorbell_file) return std::unexpected(doorbell_file.error());
    auto doorbell_pages = Mapping::create(doorbell_file->get(), 0, Doorbells::kBytes, true);
    if (!doorbell_pages) {
        return std::unexpected(
            fmt::format("cannot map the doorbell pages: {}", std::strerror(doorbell_pages.error())));
    }
    if (auto built = build_faults(); !built) return built;
    doorbells_ =
        std::make_unique<Doorbells>(*std::move(doorbell_file), *std::move(doorbell_pages), counters_);
    mmu_ = std::make_unique<Mmu>(vram_, host_, counters_);
    doorbells_->set_faults(faults_.get());
    doorbells_->set_latency(events_, sku.pcie_doorbell_ps);
    mmu_->set_faults(faults_.get());
    host_.set_faults(faults_.get());
    host_.set_enabled(false);

    for (LinkConfig link : config_.links) {
        if (link.port >= sku.link_ports) {
            return std::unexpected(
                fmt::format("link port {}: this SKU has {} ports, from 0 on", link.port, sku.link_ports));
        }
        if (links_[link.port] != nullptr) {
            return std::unexpected(fmt::format("link port {} is given twice", link.port));
        }
        link.uid = config_.uid;
        link.lanes = sku.link_lanes;
        link.gbps = sku.link_gbps;
        link.latency_ns = sku.link_latency_ns;
        link.faults = faults_.get();
        const unsigned port = link.port;
        LinkHooks hooks;
        hooks.arrived = [this](std::uint64_t offset, std::uint64_t bytes) {
            memory_.vram().reserve(events_.now(), lines_of(offset, bytes) * kMemoryLine);
        };
        hooks.poke = [this, port](std::uint64_t offset) {
            core_->note(ORR_OTRACE_NOTE_POKE, {offset});
            soc_->poked(offset, port);
        };
        hooks.poke_room = [this, port] { return soc_->poke_room(port); };
        hooks.changed = [this](std::uint32_t changed, std::uint32_t) {
            publish_link(changed);
            raise(ORR_IRQ_LINK);
        };
        hooks.jumped = [this](ModelTime gap) { jumped(gap); };
        // Only by itself: who drives several cards in the order of their times leaves no card behind.
        hooks.may_skip = [this](ModelTime when) {
            return running() && core_->waits_for_timer_only() && core_->timer() < when &&
                   when - events_.now() > kLeastJump;
        };
        auto made = LinkPort::create(std::move(link), events_, vram_, counters_, errors_, std::move(hooks));
        if (!made) return std::unexpected(made.error());
        links_[port] = *std::move(made);
        peers_[port] = links_[port].get();
        active_links_.push_back(links_[port].get());
    }

    windows_ = std::make_unique<Windows>(vram_, host_, *mmu_, peers_, events_, memory_, counters_, sku);
    soc_ =
        std::make_unique<SocRegisters>(sku, config_.uid, vram_.size(), events_, *doorbells_, *mmu_, *windows_,
                                       memory_, counters_, errors_, static_cast<SocEffects&>(*this));
    soc_->set_faults(faults_.get());
    workers_ = std::make_unique<Workers>(config_.workers);
    mmu_->before_change([this] {
        workers_->quiesce();
        if (vector_unit_ != nullptr) vector_unit_->settle();
    });
    engine_context_ = std::make_unique<EngineContext>(
        EngineContext{events_, vram_, *mmu_, memory_, counters_, peers_, &errors_, workers_.get(),
                      [this](const Completion& completion) { soc_->completed(completion); }});
    std::vector<EnginePort*> ports;
    const CopyRates rates{.setup_ps = sku.copy_setup_ps,
                          .row_ps = sku.copy_row_ps,
                          .engine_bytes_per_second = sku.copy_engine_bytes_per_s,
                          .in_flight = sku.copy_in_flight};
    for (std::uint32_t i = 0; i < sku.copy_engines; ++i) {
        copy_engines_.push_back(std::make_unique<CopyEngine>(i, rates, *engine_context_, sku.vector_cores));
        ports.push_back(copy_engines_.back().get());
    }
    VectorConfig vector;
    vector.cores = sku.vector_cores;
    vector.ports = sku.vector_ports;
    vector.first_port = sku.copy_engines;
    vector.hz = sku.vector_hz;
    vector.vlen = sku.vector_vlen;
    vector.datapath_bits = sku.vector_datapath_bits;
    vector.launch_ps = sku.vector_launch_ps;
    vector.group_ps = sku.vector_group_ps;
    vector.item_cycles = sku.vector_item_cycles;
    vector.save_core_ps = sku.vector_save_core_ps;
    vector.l1_bytes = sku.vector_l1_bytes;
    vector.in_flight = sku.vector_in_flight;
    vector.check = config_.check;
    vector.check_bytes = most_for_checks(config_.vram_bytes);
    vector.threads = config_.threads;
    vector_unit_ = std::make_unique<VectorUnit>(vector, *engine_context_);
    for (std::uint32_t i = 0; i < sku.vector_ports; ++i)
        ports.push_back(&vector_unit_->port(i));
    soc_->attach_engines(std::move(ports));
    soc_->on_poke_room([this](unsigned port) {
        if (links_[port] != nullptr) links_[port]->poke_room();
    });
    core_ = std::make_unique<ControlCore>(sku, events_, *soc_, *windows_, counters_, errors_);
    for (unsigned port = 0; port < ORR_LINK_MAX_PORTS; ++port)
        publish_link(port);
    if (auto built = build_debuggers(); !built) return built;
    return build_recorder();
}

// --- what the firmware does to the host's side ---

void Card::raise(unsigned vector) {
    const ModelTime latency = config_.sku.pcie_msi_ps;
    if (latency == 0) return interrupt_arrives(vector);
    interrupts_.push_back({later(events_.now(), latency), vector});
    if (!interrupt_event_.scheduled()) events_.schedule(interrupt_event_, interrupts_.front().arrival);
}

void Card::on_interrupt(ModelTime now) {
    while (!interrupts_.empty() && interrupts_.front().arrival <= now) {
        const unsigned vector = interrupts_.front().vector;
        interrupts_.pop_front();
        interrupt_arrives(vector);
    }
    if (!interrupts_.empty()) events_.schedule(interrupt_event_, interrupts_.front().arrival);
}

void Card::interrupt_arrives(unsigned vector) {
    file_.irq_status.fetch_or(1u << vector, std::memory_order_acq_rel);
    if ((file_.irq_mask.load(std::memory_order_acquire) >> vector & 1u) != 0) return;
    if (faults_ != nullptr) {
        const Fault fault = faults_->at(FaultPoint::kMsi, vector);
        if (fault.action == FaultAction::kDrop) return;
        if (fault.action == FaultAction::kDelay)
            return faults_->later(fault.delay, [this, vector] { send_interrupt(vector); });
        if (fault.action == FaultAction::kDuplicate) send_interrupt(vector);
    }
    send_interrupt(vector);
}

void Card::send_interrupt(unsigned vector) {
    counters_.add(ORR_CTR_HOST_INTERRUPTS);
    if (config_.raise) config_.raise(vector);
}

void Card::host_interrupt(std::uint64_t vector) {
    if (vector >= ORR_IRQ_VECTORS) {
        errors_.guest("the firmware raised host interrupt {}, of which there are {}", vector,
                      ORR_IRQ_VECTORS);
        return;
    }
    raise(static_cast<unsigned>(vector));
}

void Card::progress(std::uint32_t code) {
    file_.progress.store(code, std::memory_order_release);
    if ((code & ORR_PROGRESS_READY) != 0 &&
        file_.state.load(std::memory_order_relaxed) == ORR_STATE_BOOTING) {
        file_.state.store(ORR_STATE_RUNNING, std::memory_order_release);
    }
}

void Card::heartbeat(std::uint64_t value) {
    file_.heartbeat.store(value, std::memory_order_relaxed);
}

void Card::halt(std::uint64_t code) {
    core_->halt(ORR_HALT_REQUESTED | (code & 0xffffffffu));
}

// --- commands ---

bool Card::drain_commands() {
    if (commands_.empty()) return false;
    while (!commands_.empty()) {
        carry_out(commands_.front());
        publish();
        commands_.pop();
    }
    return true;
}

void Card::carry_out(const Command& command) {
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
            ring_mailbox();
            break;
        case Command::Kind::kGrant:
            grant(command);
            break;
        case Command::Kind::kBusMaster:
            host_.set_enabled(command.number != 0);
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
    // Firmware of 1.1 takes what a pop gives for the tag as it is.
    doorbells_->tell_more(result.hw_minor >= 2);
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
    image_.reset();
    for (const auto& engine : copy_engines_)
        engine->reset();
    vector_unit_->reset();
    doorbells_->reset();
    memory_.reset();
    mmu_->reset();
    windows_->reset();
    soc_->reset();
    core_->reset();
    for (LinkPort* link : active_links_)
        link->reset();
    for (auto& link : file_.links)
        link.grants_done.store(0, std::memory_order_relaxed);
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
    vram_.clear();
    doorbells_->clear_pages();
}

void Card::map(const Command& command) {
    const auto inserted = host_.insert(std::move(**command.range));
    command.range->reset();
    *command.error = inserted ? 0 : inserted.error();
    if (inserted) counters_.add(ORR_CTR_DMA_MAPS);
}

void Card::unmap(const Command& command) {
    *command.range = host_.remove(command.a, command.b);
    if (!command.range->has_value()) return;
    mmu_->flush_host();
    vector_unit_->flush();
}

void Card::grant(const Command& command) {
    LinkPort* link = links_[command.number].get();
    const auto slot = static_cast<std::uint32_t>(command.c & 0xffu);
    const std::uint64_t verb = command.c & ~std::uint64_t{0xff};
    bool good = false;
    if (link != nullptr && slot < ORR_LINK_GRANT_SLOTS) {
        if (verb == ORR_LINK_GRANT_SET) {
            good = link->set_grant(slot, command.a, command.b);
        } else if (verb == ORR_LINK_GRANT_CLEAR) {
            good = link->clear_grant(slot);
        }
    }
    if (!good) {
        errors_.guest("grant command {:#x} on link port {} for {:#x} bytes at {:#x} cannot be done",
                      command.c, command.number, command.b, command.a);
    }
    file_.links[command.number].grants_done.fetch_add(1, std::memory_order_release);
}

// --- links ---

bool Card::poll_links() {
    bool busy = false;
    for (LinkPort* link : active_links_)
        busy |= link->poll();
    return busy;
}

bool Card::congested() const {
    return std::ranges::any_of(active_links_, [](const LinkPort* link) { return link->congested(); });
}

void Card::jumped(ModelTime gap) {
    core_->note(ORR_OTRACE_NOTE_JUMP, {gap});
    publish();
}

void Card::publish_link(unsigned port) {
    const LinkPort* link = links_[port].get();
    if (link == nullptr) return;
    RegisterFile::Link& out = file_.links[port];
    out.lanes.store(link->lanes(), std::memory_order_relaxed);
    out.peer_uid.store(link->peer_uid(), std::memory_order_relaxed);
    out.peer_port.store(link->peer_port(), std::memory_order_relaxed);
    const bool was_up = out.state.load(std::memory_order_relaxed) >= ORR_LINK_UP;
    if (was_up && link->state() < ORR_LINK_UP) out.losses.fetch_add(1, std::memory_order_relaxed);
    out.state.store(link->state(), std::memory_order_release);
}

// --- the round ---

bool Card::run_events(bool skip_idle, ModelTime limit) {
    // One event may take some 50 us of host time: look for commands between them.
    constexpr unsigned kBurst = 8;
    if (!events_.unfinished()) burst_ = kBurst;
    bool any = false;
    unsigned goes = 0;
    while (commands_.empty() && !held()) {
        // Which events fire between two chunks of the control core does not depend on how many goes they
        // take.
        if (events_.unfinished() ? goes++ == kBurst : burst_-- == 0) break;
        // A core that could run goes before time that has not come yet.
        const bool wait = core_->runnable() || (!skip_idle && core_->waits_for_timer_only());
        if (!events_.run_next(wait ? std::min(limit, events_.now()) : limit)) break;
        any = true;
    }
    return any;
}

void Card::publish() {
    file_.model_time.store(events_.system_now(), std::memory_order_release);
    if (core_->state() == ControlCore::State::kHalted && !core_halt_seen_) {
        core_halt_seen_ = true;
        const ControlCore::Halt& halt = core_->halted();
        file_.halt_cause.store(halt.cause, std::memory_order_relaxed);
        file_.halt_pc.store(halt.pc, std::memory_order_relaxed);
        file_.halt_tval.store(halt.tval, std::memory_order_relaxed);
        file_.state.store(ORR_STATE_HALTED, std::memory_order_release);
        errors_.note("the control core halted: cause {:#x}, pc {:#x}", halt.cause, halt.pc);
        raise(ORR_IRQ_FAULT);
    }
}

bool Card::take_arrivals() {
    bool busy = drain_commands();
    if (faults_ != nullptr && faults_->hung()) return busy;
    // Who rings while time stands is heard when it goes on: till then nothing would end what is on its way.
    if (!held()) busy |= doorbells_->poll();
    if (!active_links_.empty()) busy |= poll_links();
    return busy;
}

bool Card::step(bool skip_idle, ModelTime limit) {
    if (recording_waits()) return drain_commands();
    bool busy = take_arrivals();
    if (faults_ != nullptr && faults_->hung()) return busy;
    // What `skip_idle` allows concerns a core that slept already, not one that lies down in this step.
    const bool slept = core_->waits_for_timer_only();
    if (!held() && !events_.unfinished() && core_->runnable()) {
        core_->run_chunk();
        busy = true;
    }
    busy |= run_events(skip_idle && slept, limit);
    if (busy) publish();
    return busy;
}

}  // namespace orrery::emu
