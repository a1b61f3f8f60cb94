#include "tools/scenario/runner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include <orrery/fw/packet.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/trace_sink.h>

#include "tools/scenario/collector.h"
#include "tools/scenario/machine.h"
#include "tools/scenario/packets.h"
#include "tools/scenario/sku_text.h"
#include "tools/scenario/spin.h"

namespace orrery::scenario {

namespace {

constexpr std::uint64_t kRead = ORR_PTE_READ, kWrite = ORR_PTE_WRITE, kExec = ORR_PTE_EXEC;
constexpr std::uint64_t kHostTarget = std::uint64_t{ORR_TARGET_HOST} << ORR_PTE_TARGET_SHIFT;
constexpr std::uint64_t kPeerTarget = std::uint64_t{ORR_TARGET_PEER} << ORR_PTE_TARGET_SHIFT;
// A scenario starts at a round model time, so that its times are easy to find in a recording.
constexpr Ps kStartGrain = kMs;
constexpr Ps kRestartDelay = 20 * kUs;

std::uint64_t ring_bytes(std::uint64_t entries) {
    return sizeof(orr_ring) + entries * ORR_PACKET_SIZE;
}

// What a queue is on its card.
struct Placed {
    std::uint32_t card = 0, number = 0, asid = 0, page = 0, slot = 0;
    std::uint64_t ring_at = 0;  // bus address or VRAM offset
    std::uint64_t entries = 0, generation = 0, producer = 0;
    std::uint8_t* ring = nullptr;
    bool gone = false;
};

class Runner {
  public:
    Runner(const Scenario& scenario, const Options& options)
        : scenario_(scenario),
          options_(options),
          collector_(scenario, options.keep_records, options.keep_history) {}

    std::expected<Result, std::string> run() {
        if (auto made = make_cards(); !made) return std::unexpected(made.error());
        if (auto placed = place_queues(); !placed) return std::unexpected(placed.error());
        if (auto set = set_up(); !set) return std::unexpected(set.error());
        play();
        return finish();
    }

  private:
    using Done = std::expected<void, std::string>;

    Machine& machine(std::uint32_t card) { return *machines_[card]; }
    // The port of card `from` that leads to card `to`: every two cards are linked.
    static std::uint32_t node_of(std::uint32_t card) { return card + 1; }
    static std::uint32_t port_to(std::uint32_t from, std::uint32_t to) { return to < from ? to : to - 1; }

    Done make_cards();
    Done link_up();
    Done place_queues();
    Done set_up();
    Done set_up_card(std::uint32_t card);
    Done set_up_contexts(std::uint32_t card);
    Done map_context(std::uint32_t card, std::uint32_t asid);
    Done name(std::uint32_t card, std::uint32_t kind, std::uint32_t number, const std::string& text);
    // Behind all else in the card's host memory.
    std::uint64_t sink_at(std::uint32_t card) {
        return kRamBase + machine(card).card().ram().size() - sizeof(orr_trace_sink) - options_.profile_bytes;
    }
    void profile(std::uint32_t card);
    void schedule();
    void submit(const Submit& submit);
    void act(const Action& action);
    void restart(std::uint32_t card);
    void play();
    bool round(Ps end);
    bool all_done();
    std::expected<Result, std::string> finish();

    const Scenario& scenario_;
    const Options& options_;
    Collector collector_;
    std::vector<std::unique_ptr<Machine>> machines_;
    std::vector<std::uint64_t> data_;  // VRAM offset of the copies' data on each card
    std::vector<Placed> placed_;
    std::vector<std::uint32_t> asid_;    // of each context on its card
    std::vector<std::size_t> log_skip_;  // lines of each card that are older than the scenario
    std::size_t arrivals_left_ = 0;
    Ps start_ = 0;
};

Runner::Done Runner::make_cards() {
    const auto count = static_cast<std::uint32_t>(scenario_.cards.size());
    if (!options_.record.empty() && options_.record.size() != count)
        return std::unexpected(
            fmt::format("{} files for the recordings of {} cards", options_.record.size(), count));
    if (!options_.image.problem().empty()) return std::unexpected(options_.image.problem());
    std::vector<std::uint64_t> entries(scenario_.queues.size());
    for (const Submit& submit : scenario_.submits)
        entries[submit.queue] += submit.jobs.size();
    std::vector<std::uint64_t> ram(count, 32u << 20);
    for (std::size_t n = 0; n < entries.size(); ++n)
        ram[scenario_.card_of(scenario_.queues[n])] +=
            2 * ring_bytes(std::max<std::uint64_t>(64, entries[n])) + 8192;

    static std::atomic<unsigned> serial{0};
    const auto folder = std::filesystem::temp_directory_path() /
                        fmt::format("orrery-run-{}-{}", ::getpid(), serial.fetch_add(1));
    if (count > 1) std::filesystem::create_directory(folder);
    for (std::uint32_t n = 0; n < count; ++n) {
        Machine::Config config;
        config.card.sku = scenario_.cards[n].sku;
        config.card.sku.text = sku_text(config.card.sku);
        config.card.vram_bytes = scenario_.cards[n].vram_bytes;
        config.card.uid = n + 1;
        config.card.program = options_.program;
        config.card.symbols = options_.image.symbols();
        std::ranges::copy(Image::public_key(), config.card.key.begin());
        for (std::uint32_t peer = 0; peer < count; ++peer) {
            if (peer == n) continue;
            emu::LoneCardConfig::Link link;
            link.port = port_to(n, peer);
            link.listen = n < peer;
            link.path = (folder / fmt::format("{}-{}", std::min(n, peer), std::max(n, peer))).string();
            config.card.links.push_back(link);
        }
        if (n < options_.record.size()) config.card.record = options_.record[n];
        if (options_.profile_bytes != 0) ram[n] += options_.profile_bytes + sizeof(orr_trace_sink);
        config.card.ram_bytes = (ram[n] + 4095) / 4096 * 4096;
        config.save_areas = scenario_.save_areas;
        config.image = options_.image.signed_image();
        auto made = Machine::create(std::move(config));
        if (!made) return std::unexpected(made.error());
        machines_.push_back(*std::move(made));
    }
    Done linked;
    if (count > 1) {
        linked = link_up();
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
    }
    return linked;
}

// Links find each other in host time, before model time begins to pass.
Runner::Done Runner::link_up() {
    const auto up = [&] {
        for (std::uint32_t n = 0; n < machines_.size(); ++n) {
            for (std::uint32_t port = 0; port + 1 < machines_.size(); ++port) {
                if (machine(n).read32(ORR_R_LINK(port) + ORR_R_LINK_STATE) < ORR_LINK_UP) return false;
            }
        }
        return true;
    };
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!up()) {
        for (int rounds = 0; rounds < 1024; ++rounds) {
            for (auto& one : machines_)
                one->card().take_arrivals();
        }
        if (std::chrono::steady_clock::now() > give_up)
            return std::unexpected("the cards' links do not come up");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
}

Runner::Done Runner::place_queues() {
    const auto cards = scenario_.cards.size();
    std::vector<std::uint32_t> next_asid(cards, 1), next_queue(cards, 0);
    std::vector<std::uint32_t> next_slot(scenario_.contexts.size());
    for (const Context& context : scenario_.contexts)
        asid_.push_back(next_asid[context.card]++);
    std::vector<std::uint64_t> entries(scenario_.queues.size());
    for (const Submit& submit : scenario_.submits)
        entries[submit.queue] += submit.jobs.size();
    for (std::size_t n = 0; n < scenario_.queues.size(); ++n) {
        const Queue& queue = scenario_.queues[n];
        Placed at;
        at.card = scenario_.card_of(queue);
        at.number = next_queue[at.card]++;
        at.asid = at.page = asid_[queue.context];
        at.slot = next_slot[queue.context]++;
        at.entries = std::bit_ceil(std::max<std::uint64_t>({2, entries[n], queue.entries}));
        if (at.entries > ORR_RING_MAX_ENTRIES) {
            return std::unexpected(
                fmt::format("queue '{}' gets {} packets; a scenario may give it {}: spread them", queue.name,
                            entries[n], ORR_RING_MAX_ENTRIES));
        }
        const std::uint64_t bytes = ring_bytes(at.entries);
        Machine& on = machine(at.card);
        at.ring_at = queue.ring_in_vram ? on.take_vram(bytes) : on.take_host(bytes);
        if (at.ring_at == 0) {
            return std::unexpected(
                fmt::format("no room for the ring of queue '{}': give the card more vram", queue.name));
        }
        at.ring = queue.ring_in_vram ? on.vram(at.ring_at) : on.host(at.ring_at);
        placed_.push_back(at);
        collector_.place(static_cast<std::uint32_t>(n), at.card, at.number);
    }
    return {};
}

Runner::Done Runner::map_context(std::uint32_t card, std::uint32_t asid) {
    Machine& on = machine(card);
    bool good = on.map(asid, kCodeVa, kCodeOffset, kSmallBytes, kRead | kExec);
    good &= on.map(asid, kSemaphoreVa, kSemaphoreOffset, kSmallBytes, kRead | kWrite);
    good &= on.map(asid, kBoardVa, kBoardOffset, kSmallBytes, kRead | kWrite);
    good &= on.map(asid, kStampVa, kBoardOffset + kSmallBytes, kSmallBytes, kRead | kWrite);
    good &= on.map(asid, kVramDataVa, data_[card], 2 * kDataBytes, kRead | kWrite);
    good &= on.map(asid, kHostDataVa, kRamBase + (16u << 20), 2 * kDataBytes, kRead | kWrite | kHostTarget);
    for (std::uint32_t peer = 0; peer < scenario_.cards.size(); ++peer) {
        if (peer == card) continue;
        const std::uint64_t bits =
            kRead | kWrite | kPeerTarget | std::uint64_t{node_of(peer)} << ORR_PTE_NODE_SHIFT;
        good &= on.map(asid, peer_va(peer), kSemaphoreOffset, 2 * kSmallBytes, bits);
        good &= on.map(asid, peer_va(peer) + kPeerData, data_[peer], kDataBytes, bits);
    }
    for (std::size_t n = 0; n < placed_.size(); ++n) {
        const Placed& at = placed_[n];
        if (at.card != card || at.asid != asid) continue;
        const std::uint64_t bytes = (ring_bytes(at.entries) + 4095) / 4096 * 4096;
        good &= on.map(asid, kRingVa + at.number * kRingStride, at.ring_at, bytes,
                       kRead | kWrite | (scenario_.queues[n].ring_in_vram ? 0 : kHostTarget));
    }
    if (!good) return std::unexpected("no room for page tables: give the card more vram");
    return {};
}

Runner::Done Runner::name(std::uint32_t card, std::uint32_t kind, std::uint32_t number,
                          const std::string& text) {
    std::array<std::uint64_t, 5> words{};
    std::memcpy(words.data(), text.data(), std::min<std::size_t>(text.size(), ORR_NAME_BYTES - 1));
    auto reply = machine(card).call(ORR_MBOX_NAME,
                                    {number | std::uint64_t{kind} << 32, words[0], words[1], words[2], 0, 0});
    // A firmware without names is a good firmware.
    if (!reply) return std::unexpected(reply.error());
    return {};
}

Runner::Done Runner::set_up_contexts(std::uint32_t card) {
    Machine& on = machine(card);
    const auto refused = [](const char* what, const std::string& which, const orr_mbox_message& reply) {
        return std::unexpected(fmt::format("the firmware refuses {} '{}': status {}, argument {}", what,
                                           which, reply.status, reply.detail));
    };
    for (std::size_t n = 0; n < scenario_.contexts.size(); ++n) {
        const Context& context = scenario_.contexts[n];
        if (context.card != card) continue;
        if (auto mapped = map_context(card, asid_[n]); !mapped) return mapped;
        auto reply = on.call(ORR_MBOX_CONTEXT_CREATE, {asid_[n], on.root(asid_[n]), asid_[n],
                                                       context.quota | std::uint64_t{context.period_us} << 32,
                                                       context.user | std::uint64_t{context.process} << 32});
        if (!reply) return std::unexpected(reply.error());
        if (reply->status != ORR_STATUS_OK) return refused("context", context.name, *reply);
        if (auto named = name(card, ORR_NAME_CONTEXT, asid_[n], context.name); !named) return named;
    }
    for (std::size_t n = 0; n < placed_.size(); ++n) {
        Placed& at = placed_[n];
        if (at.card != card) continue;
        const Queue& queue = scenario_.queues[n];
        // The defaults are written as such: an older firmware takes those only.
        const std::uint64_t weight = queue.weight == ORR_WEIGHT_DEFAULT ? 0 : queue.weight;
        auto reply = on.call(ORR_MBOX_QUEUE_CREATE,
                             {at.number | std::uint64_t{at.asid} << 32, kRingVa + at.number * kRingStride,
                              at.entries, at.slot | std::uint64_t{queue.priority} << 32, queue.limit_us,
                              weight | std::uint64_t{queue.slice_us} << 32});
        if (!reply) return std::unexpected(reply.error());
        if (reply->status != ORR_STATUS_OK) return refused("queue", queue.name, *reply);
        at.generation = reply->arg[0];
        if (auto named = name(card, ORR_NAME_QUEUE, at.number, queue.name); !named) return named;
    }
    return {};
}

Runner::Done Runner::set_up_card(std::uint32_t card) {
    Machine& on = machine(card);
    on.on_event = [this, card](Ps at, const orr_mbox_message& message) {
        collector_.message(at, card, message);
    };
    on.on_halt = [this, card] { restart(card); };
    collector_.listen(card, on.card());
    std::memcpy(on.vram(kCodeOffset), kSpinCode.data(), sizeof kSpinCode);
    std::memcpy(on.vram(kCodeOffset + kTrapEntry), kTrapCode.data(), sizeof kTrapCode);
    for (std::uint32_t gang = 0; gang < scenario_.gangs.size(); ++gang) {
        const auto table = peers_table(scenario_, gang, card);
        std::memcpy(on.vram(peers_offset(gang)), table.data(), table.size() * 8);
    }
    on.write32(ORR_R_NODE, node_of(card));
    for (std::uint32_t peer = 0; peer < scenario_.cards.size(); ++peer) {
        if (peer == card) continue;
        const std::uint64_t link = ORR_R_LINK(port_to(card, peer));
        on.write32(ORR_R_ROUTE(node_of(peer)), ORR_ROUTE_VALID | port_to(card, peer));
        on.write32(link + ORR_R_LINK_GRANT_NODE, node_of(peer));
        const std::array<std::array<std::uint64_t, 2>, 2> grants = {
            {{kSemaphoreOffset, 2 * kSmallBytes}, {data_[card], kDataBytes}}};
        for (std::uint32_t slot = 0; slot < grants.size(); ++slot) {
            on.write64(link + ORR_R_LINK_GRANT_BASE, grants[slot][0]);
            on.write64(link + ORR_R_LINK_GRANT_SIZE, grants[slot][1]);
            on.write32(link + ORR_R_LINK_GRANT_CMD, slot | ORR_LINK_GRANT_SET);
        }
    }
    if (options_.profile_bytes != 0) profile(card);
    if (auto booted = on.boot(); !booted) return booted;
    return set_up_contexts(card);
}

void Runner::profile(std::uint32_t card) {
    Machine& on = machine(card);
    on.write64(ORR_R_SINK_BASE, sink_at(card));
    on.write64(ORR_R_SINK_TYPES, ~std::uint64_t{0});
    on.write32(ORR_R_SINK_ASK, ORR_SINK_ASK_JOBS);
    on.write64(ORR_R_SINK_SET, ~std::uint64_t{0});
    on.write64(ORR_R_SINK_SET_HIGH, ~std::uint64_t{0});
    on.write32(ORR_R_SINK_PERIOD, ORR_SINK_PERIOD_MIN);
    on.write32(ORR_R_SINK_PC_PERIOD, ORR_SINK_PC_PERIOD_MIN);
    on.write64(ORR_R_SINK_STEP_UNTIL, ~std::uint64_t{0});
    on.write32(ORR_R_SINK_STEP_CORE, 1);
    on.write32(ORR_R_SINK_BYTES, options_.profile_bytes);
}

Runner::Done Runner::set_up() {
    if (scenario_.gangs.size() > kMaxGangs) return std::unexpected("there may be 128 gangs");
    for (auto& one : machines_) {
        data_.push_back(one->take_vram(2 * kDataBytes, 2u << 20));
        if (data_.back() == 0)
            return std::unexpected("no room for the data of copies: give the card more vram");
        if (one->take_host(0) > kRamBase + (16u << 20)) continue;
    }
    for (std::uint32_t n = 0; n < machines_.size(); ++n) {
        if (auto set = set_up_card(n); !set)
            return std::unexpected(fmt::format("card {}: {}", n, set.error()));
    }
    Ps ready = 0;
    for (auto& one : machines_)
        ready = std::max(ready, one->now());
    start_ = scenario_.start != 0 ? scenario_.start : (ready / kStartGrain + 1) * kStartGrain;
    if (ready >= start_) {
        return std::unexpected(fmt::format(
            "the cards have booted and made the queues at {} of their model time: a scenario cannot start "
            "at {}; write a later start",
            time_text(ready), time_text(start_)));
    }
    return {};
}

// --- what happens ---

void Runner::submit(const Submit& submit) {
    --arrivals_left_;
    Placed& at = placed_[submit.queue];
    if (at.gone) return;
    auto& ring = *reinterpret_cast<orr_ring*>(at.ring);
    for (const Job& job : submit.jobs) {
        const orr_packet packet =
            make_packet(scenario_, at.card, job, static_cast<std::uint32_t>(at.producer));
        std::memcpy(at.ring + sizeof(orr_ring) + at.producer % at.entries * ORR_PACKET_SIZE, &packet,
                    sizeof packet);
        collector_.submitted(submit.queue, at.producer, machine(at.card).now(), job);
        ++at.producer;
    }
    std::atomic_ref(ring.producer).store(at.producer, std::memory_order_release);
    machine(at.card).ring(at.page, at.slot, ORR_DB_VALUE(at.generation, at.producer));
}

void Runner::act(const Action& action) {
    --arrivals_left_;
    switch (action.kind) {
        case Action::Kind::kQueueSet: {
            const Placed& at = placed_[action.queue];
            machine(at.card).send(ORR_MBOX_QUEUE_SET, {at.number, action.priority,
                                                       action.weight | std::uint64_t{action.slice_us} << 32});
            return;
        }
        case Action::Kind::kQuotaSet:
            machine(scenario_.contexts[action.context].card)
                .send(ORR_MBOX_QUOTA_SET,
                      {asid_[action.context], action.quota | std::uint64_t{action.period_us} << 32});
            return;
        case Action::Kind::kQueueDestroy: {
            Placed& at = placed_[action.queue];
            at.gone = true;
            machine(at.card).send(ORR_MBOX_QUEUE_DESTROY, {at.number});
            return;
        }
        case Action::Kind::kRing: {
            const Placed& at = placed_[action.queue];
            machine(at.card).ring(at.page, at.slot, ORR_DB_VALUE(at.generation, action.value));
            return;
        }
        case Action::Kind::kCrash: {
            const std::uint64_t queue =
                action.queue == Action::kNobody ? ~std::uint64_t{0} : placed_[action.queue].number;
            machine(action.card).send(ORR_MBOX_CRASH, {queue}, {}, ORR_MBOX_F_NO_REPLY);
            return;
        }
        case Action::Kind::kPoke: {
            Machine& on = machine(scenario_.semaphores[action.semaphore].card);
            const std::uint64_t offset = kSemaphoreOffset + action.semaphore * sizeof(orr_semaphore);
            const orr_semaphore now{action.value, on.now()};
            std::memcpy(on.vram(offset), &now, sizeof now);
            on.card().poke(offset);
            return;
        }
    }
}

// What a driver does when the control core has halted: the firmware anew, engines and SRAM as they are.
void Runner::restart(std::uint32_t card) {
    Machine& on = machine(card);
    on.at(on.now() + kRestartDelay, [&on] { on.restart(); });
}

void Runner::schedule() {
    for (const Submit& one : scenario_.submits) {
        ++arrivals_left_;
        machine(placed_[one.queue].card).at(start_ + one.at, [this, &one] { submit(one); });
    }
    for (const Action& one : scenario_.actions) {
        std::uint32_t card = one.card;
        if (one.kind == Action::Kind::kQueueSet || one.kind == Action::Kind::kQueueDestroy ||
            one.kind == Action::Kind::kRing)
            card = placed_[one.queue].card;
        if (one.kind == Action::Kind::kQuotaSet) card = scenario_.contexts[one.context].card;
        if (one.kind == Action::Kind::kPoke) card = scenario_.semaphores[one.semaphore].card;
        ++arrivals_left_;
        machine(card).at(start_ + one.at, [this, &one] { act(one); });
    }
}

// Every card goes on as far as no message of another could still reach it. The order is one of model time and
// of the cards' numbers, so it is the same in every run.
bool Runner::round(Ps end) {
    std::vector<Ps> next;
    next.reserve(machines_.size());
    for (auto& one : machines_)
        next.push_back(one->next_activity());
    bool any = false;
    for (std::uint32_t n = 0; n < machines_.size(); ++n) {
        Ps horizon = end;
        const Ps ahead = std::max<Ps>(scenario_.cards[n].sku.link_latency_ns * emu::kPsPerNs, 1);
        for (std::uint32_t other = 0; other < machines_.size(); ++other) {
            if (other != n) horizon = std::min(horizon, emu::later(next[other], ahead));
        }
        if (next[n] >= horizon) continue;
        any |= machine(n).step(horizon);
    }
    return any;
}

bool Runner::all_done() {
    if (arrivals_left_ != 0) return false;
    return std::ranges::all_of(placed_, [&](const Placed& at) {
        const auto& ring = *reinterpret_cast<const orr_ring*>(at.ring);
        return at.gone || ring.consumer >= at.producer || ring.error != 0;
    });
}

void Runner::play() {
    schedule();
    for (auto& one : machines_)
        log_skip_.push_back(one->log().size());
    collector_.begin(start_, machines_);
    const Ps end = start_ + scenario_.until;
    const auto poll = [&] {
        for (std::uint32_t n = 0; n < placed_.size(); ++n) {
            if (!collector_.outstanding(n)) continue;
            const auto& ring = *reinterpret_cast<const orr_ring*>(placed_[n].ring);
            collector_.consumed(n, ring.consumer, ring.consumer_time_ps);
        }
    };
    while (round(end)) {
        poll();
        if (all_done()) break;
    }
    poll();
    collector_.end(all_done(), machines_);
    for (auto& one : machines_)
        one->card().finish_recording();
}

std::expected<Result, std::string> Runner::finish() {
    Result result = collector_.take();
    for (std::uint32_t n = 0; n < placed_.size(); ++n) {
        const Placed& at = placed_[n];
        const orr_queue_status& status = machine(at.card).status(at.number);
        QueueResult& out = result.queues.emplace_back();
        out.name = scenario_.queues[n].name;
        out.card = at.card;
        out.number = at.number;
        out.submitted = at.producer;
        out.completed = status.completed;
        out.error = status.error;
        out.error_index = status.error_index;
        out.error_address = status.error_address;
        out.error_detail = status.error_detail;
        if (at.gone) continue;
        const auto reply = machine(at.card).call(ORR_MBOX_QUEUE_STATS, {at.number});
        if (!reply || reply->status != ORR_STATUS_OK) continue;
        out.has_stats = true;
        out.vector_ps = reply->arg[0];
        out.copy_ps = reply->arg[1];
        out.finished = reply->arg[2];
        out.preempted = reply->arg[3];
        out.ready_ps = reply->arg[4];
        out.longest_ready_ps = reply->arg[5];
    }
    for (std::uint32_t n = 0; n < machines_.size(); ++n) {
        const auto lines = machine(n).log();
        for (std::size_t line = log_skip_[n]; line < lines.size(); ++line)
            result.log.push_back(fmt::format("card {}: {}", n, lines[line]));
        if (options_.profile_bytes == 0) continue;
        const std::uint8_t* const sink = machine(n).host(sink_at(n));
        Result::Sink& out = result.sinks.emplace_back();
        std::memcpy(&out.head, sink, sizeof out.head);
        out.ring.resize(options_.profile_bytes / sizeof(std::uint64_t));
        std::memcpy(out.ring.data(), sink + sizeof(orr_trace_sink), options_.profile_bytes);
    }
    return result;
}

}  // namespace

std::expected<Result, std::string> run(const Scenario& scenario, const Options& options) {
    if (const std::string wrong = scenario.check(); !wrong.empty()) return std::unexpected(wrong);
    return Runner(scenario, options).run();
}

}  // namespace orrery::scenario
