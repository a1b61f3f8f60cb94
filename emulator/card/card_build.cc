// How a card is put together.
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

#include "emulator/api/checks.h"
#include "emulator/engines/checked_spaces.h"
#include "emulator/link/cable.h"

namespace orrery::emu {

namespace {

// An idle card whose next message is further ahead than this does not live through the time until then.
constexpr ModelTime kLeastJump = 100'000 * kPsPerNs;

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
    memory_.count_in(counters_);
}

Card::~Card() {
    if (core_) finish_recording();
    report_recording();
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
        FaultControl::create(config_.control.string(), *faults_, [this](std::uint64_t port, bool in) {
            return move_cable(port < links_.size() ? links_[port].get() : nullptr, port, in);
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
    host_.set_atomics(false);

    if (auto built = build_lockstep(); !built) return built;
    barriers_ = std::make_unique<BarrierUnit>(
        events_, vram_, peers_, counters_,
        BarrierUnit::Hooks{
            .poke =
                [this](std::uint64_t offset) {
                    core_->note(ORR_OTRACE_NOTE_POKE, {offset});
                    soc_->poked(offset, Pokes::kBarrierLane);
                },
            .room_to_arm = [this] { return soc_->room_to_arm(); },
            .act_at = [this] { return time_for_news(); },
            .changed =
                [this] { file_.barrier_states.store(barriers_->states(), std::memory_order_release); }});
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
        link.forward_ns = sku.link_forward_ns;
        link.retries = sku.link_retries;
        link.retrain_ns = sku.link_retrain_ns;
        link.faults = faults_.get();
        const unsigned port = link.port;
        LinkHooks hooks;
        hooks.in_step = [this, port](std::uint64_t peer) {
            if (lockstep_ == nullptr) return false;
            const bool has = keeps_step() && lockstep_->has(peer);
            errors_.note("link {}: card {:#x} {}", port, peer,
                         has ? "keeps step with this one" : "does not keep step: its messages may be late");
            return has;
        };
        hooks.sent = [this](std::uint64_t peer, ModelTime arrival) {
            lockstep_->sent(peer, arrival);
            // The core may be in the middle of a chunk.
            if (horizon_.scheduled()) events_.schedule(horizon_, events_.from_system(lockstep_->granted()));
        };
        hooks.arrived = [this](std::uint64_t offset, std::uint64_t bytes) {
            if (checked_memory_ != nullptr) checked_memory_->wrote(offset, bytes);
            memory_.vram(ORR_CTR_VRAM_LINK_BYTES)
                .reserve(events_.now(), lines_of(offset, bytes) * kMemoryLine);
        };
        hooks.comes_here = [this, port](std::uint32_t node) { return peers_.port_of(node) == port; };
        hooks.epoch_of = [this](std::uint32_t node) { return peers_.epoch_of(node); };
        hooks.key_of = [this](std::uint32_t node) { return peers_.key_of(node); };
        hooks.onward = [this](std::uint32_t node) -> LinkPort* {
            const unsigned onward = peers_.port_of(node);
            return onward < links_.size() ? links_[onward].get() : nullptr;
        };
        hooks.noted = [this, port](std::uint32_t node, bool passed, std::span<const std::byte> data) {
            // Who has a route comes by that.
            if (peers_.knows(node) && peers_.port_of(node) != port)
                counters_.add(ORR_CTR_LINK_DENIED);
            else if (notes_.put(port << ORR_NOTE_PORT_SHIFT | node | (passed ? ORR_NOTE_PASSED : 0), data))
                raise(ORR_IRQ_LINK);
        };
        hooks.drained = [this](std::uint32_t drained, std::uint32_t drains) {
            file_.links[drained].drained.fetch_add(drains, std::memory_order_release);
        };
        hooks.poke = [this, port](std::uint64_t offset) {
            core_->note(ORR_OTRACE_NOTE_POKE, {offset});
            soc_->poked(offset, port);
        };
        hooks.poke_room = [this, port] { return soc_->poke_room(port); };
        hooks.barrier = [this](const link::Message& message) { return barriers_->take(message); };
        if (is_recorded())
            hooks.crossed = [this, port](const link::Message& message, unsigned channel, bool sent) {
                link_log_.crossed(port, channel, message, sent);
            };
        hooks.changed = [this](std::uint32_t changed, std::uint32_t) {
            publish_link(changed);
            if (is_recorded()) link_log_.changed(*links_[changed]);
            barriers_->ways_changed();
            raise(ORR_IRQ_LINK);
        };
        hooks.refused = [this](std::uint32_t by, std::uint32_t node, std::uint32_t fault) {
            errors_.note("link {}: node {} refused a write or signal of this card ({})", by, node,
                         fault == ORR_FAULT_PEER_KEY ? "its key is wrong" : "nothing grants it");
            raise(ORR_IRQ_LINK);
        };
        hooks.bad_key = [this](std::uint32_t by, std::uint32_t node) {
            errors_.note("link {}: node {} came with a wrong key: nothing of that was done", by, node);
            raise(ORR_IRQ_LINK);
        };
        hooks.peer_shows = [this](std::uint32_t shows) { peer_shows(shows); };
        hooks.jumped = [this, port](ModelTime gap) { jumped(gap, port); };
        hooks.may_jump = [this] { return !keeps_step(); };
        hooks.act_at = [this] { return time_for_news(); };
        // Only by itself: who drives several cards in the order of their times leaves no card behind.
        hooks.may_skip = [this, port](ModelTime when) {
            if (keeps_step() || when - events_.now() <= kLeastJump || !running()) return false;
            // Of several ports the one whose message comes first. What another one has not seen yet is seen
            // in this round, so this is asked again.
            const LinkPort* const asks = links_[port].get();
            const bool first = std::ranges::all_of(active_links_, [&](const LinkPort* each) {
                return each->next_arrival() >= when && (each == asks || !each->has_unseen());
            });
            return first && waits_for_timer_or_peers() && core_->timer() < when;
        };
        auto made = LinkPort::create(std::move(link), events_, vram_, counters_, errors_, std::move(hooks));
        if (!made) return std::unexpected(made.error());
        links_[port] = *std::move(made);
        peers_.attach(port, links_[port].get());
        active_links_.push_back(links_[port].get());
    }

    windows_ = std::make_unique<Windows>(vram_, host_, *mmu_, peers_, events_, memory_, counters_, sku);
    windows_->attach(*barriers_);
    soc_ =
        std::make_unique<SocRegisters>(sku, config_.uid, vram_.size(), events_, *doorbells_, *mmu_, *windows_,
                                       memory_, counters_, errors_, static_cast<SocEffects&>(*this));
    soc_->set_faults(faults_.get());
    workers_ = std::make_unique<Workers>(config_.workers);
    const std::uint64_t for_checks = most_for_checks(config_.vram_bytes), for_memory = for_checks / 8;
    if ((config_.check & kCheckMemory) != 0)
        checked_memory_ = std::make_unique<CheckedMemory>(checked_spaces(*mmu_), for_memory);
    mmu_->before_change([this] { quiesce(); });
    engine_context_ = std::make_unique<EngineContext>(
        EngineContext{events_, vram_, *mmu_, memory_, counters_, peers_, &errors_, workers_.get(),
                      [this](const Completion& completion) { soc_->completed(completion); },
                      checked_memory_.get(), &sink_});
    std::vector<EnginePort*> ports;
    const CopyRates rates{.setup_ps = sku.copy_setup_ps,
                          .row_ps = sku.copy_row_ps,
                          .engine_bytes_per_second = sku.copy_engine_bytes_per_s,
                          .in_flight = sku.copy_in_flight,
                          .peer_reads = sku.link_reads,
                          .tlb_entries = sku.copy_tlb_entries};
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
    vector.tlb_entries = sku.vector_tlb_entries;
    vector.check = config_.check;
    vector.check_bytes = for_checks - for_memory;
    vector.threads = config_.threads;
    if (!config_.launches.empty()) {
        auto log = LaunchLog::create(config_.launches, *mmu_);
        if (!log) return std::unexpected(log.error());
        launch_log_ = *std::move(log);
        vector.account = [this](const LaunchAccount& launch) { launch_log_->note(launch); };
    }
    vector_unit_ = std::make_unique<VectorUnit>(vector, *engine_context_);
    for (std::uint32_t i = 0; i < sku.vector_ports; ++i)
        ports.push_back(&vector_unit_->port(i));
    soc_->attach_engines(std::move(ports));
    soc_->on_poke_room([this](unsigned port) {
        if (port < links_.size() && links_[port] != nullptr) links_[port]->poke_room();
    });
    core_ = std::make_unique<ControlCore>(sku, events_, *soc_, *windows_, counters_, errors_);
    for (unsigned port = 0; port < ORR_LINK_MAX_PORTS; ++port)
        publish_link(port);
    if (auto built = build_debuggers(); !built) return built;
    return build_recorder();
}

}  // namespace orrery::emu
