// Some cards with links between them, without the cards' cores: each with ports, routes and a clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/link/barrier_unit.h"
#include "emulator/time/rate.h"
#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {

inline constexpr ModelTime kLatency = 500 * kPsPerNs, kSwitching = 150 * kPsPerNs;
inline constexpr std::uint64_t kRate = 50'000'000'000;

// What a message of so many bytes takes of a wire.
inline ModelTime on_wire(std::uint64_t bytes) {
    return duration_ps(std::max<std::uint64_t>(bytes, 64), kRate);
}

struct NetCard {
    explicit NetCard(std::uint32_t its_node, std::uint32_t its_silence_ms = 10'000)
        : node(its_node),
          silence_ms(its_silence_ms),
          vram(*Vram::create(8 << 20)),
          errors(counters, log.get()) {}

    void add(std::uint32_t port, bool listen, const std::string& path) {
        LinkConfig config;
        config.port = port;
        config.uid = node;
        config.listen = listen;
        config.path = path;
        config.forward_ns = static_cast<std::uint32_t>(kSwitching / kPsPerNs);
        config.faults = &faults;
        config.peer_silence_ms = silence_ms;
        LinkHooks hooks;
        hooks.poke = [this](std::uint64_t offset) { pokes.push_back(offset); };
        hooks.poke_room = [this] { return !stuck; };
        hooks.comes_here = [this, port](std::uint32_t from) { return peers.port_of(from) == port; };
        hooks.epoch_of = [this](std::uint32_t other) { return peers.epoch_of(other); };
        hooks.key_of = [this](std::uint32_t other) { return peers.key_of(other); };
        hooks.bad_key = [this](std::uint32_t, std::uint32_t from) { bad_keys.push_back(from); };
        hooks.onward = [this](std::uint32_t to) -> LinkPort* {
            const unsigned by = peers.port_of(to);
            return by < ports.size() ? ports[by].get() : nullptr;
        };
        hooks.arrived = [this](std::uint64_t offset, std::uint64_t bytes) {
            arrivals.push_back(events.system_now());
            if (on_arrival) on_arrival(offset, bytes);
        };
        hooks.changed = [this](std::uint32_t, std::uint32_t) {
            ++interrupts;
            barriers.ways_changed();
        };
        hooks.noted = [this, port](std::uint32_t from, bool passed, std::span<const std::byte> data) {
            notes.push_back({port, from, passed, data[0]});
        };
        hooks.barrier = [this](const link::Message& message) { return barriers.take(message); };
        hooks.drained = [this](std::uint32_t, std::uint32_t drains) { drained += drains; };
        hooks.in_step = [this](std::uint64_t) { return static_cast<bool>(on_sent); };
        hooks.may_jump = [this] { return !on_sent; };
        hooks.sent = [this](std::uint64_t peer, ModelTime arrival) { on_sent(peer, arrival); };
        ports.at(port) = std::move(*LinkPort::create(config, events, vram, counters, errors, hooks));
        peers.attach(port, ports[port].get());
        ports[port]->set_node(node);
    }
    // Whether its log has a line with this.
    bool has_said(const std::string& what) {
        errors.flush();
        std::rewind(log.get());
        std::string all;
        for (int c = 0; (c = std::fgetc(log.get())) != EOF;)
            all += static_cast<char>(c);
        return all.find(what) != std::string::npos;
    }
    void route(std::uint32_t to, std::uint32_t port, std::uint32_t epoch = 0, std::uint32_t more = 0) {
        if (!peers.set_route(to, ORR_ROUTE_VALID | port | more | epoch << ORR_ROUTE_EPOCH_SHIFT))
            throw std::runtime_error("route");
        barriers.ways_changed();
    }
    void grant_all(std::uint32_t slot, std::uint32_t to) {
        for (auto& port : ports)
            if (port) port->set_grant(slot, 0, vram.size(), to);
    }
    LinkSend write(std::uint32_t to, std::uint64_t offset, std::span<const std::byte> data) {
        PeerPort* port = peers.towards(to);
        return port != nullptr ? port->write(to, offset, data) : LinkSend{.fault = peers.fault_of(to)};
    }
    LinkSend write(std::uint32_t to, std::uint64_t offset, std::uint64_t bytes, std::uint8_t value) {
        return write(to, offset, std::vector<std::byte>(bytes, std::byte{value}));
    }
    std::uint32_t signal(std::uint32_t to, std::uint64_t offset, std::uint64_t value) {
        PeerPort* port = peers.towards(to);
        return port != nullptr ? port->signal(to, offset, value) : peers.fault_of(to);
    }
    orr_semaphore semaphore(std::uint64_t offset) {
        orr_semaphore read{};
        std::memcpy(&read, vram.at(offset, sizeof read), sizeof read);
        return read;
    }
    std::uint32_t note(std::uint32_t to, std::uint32_t port, std::uint8_t first) {
        const std::vector<std::byte> data(ORR_NOTE_BYTES, std::byte{first});
        return ports.at(port)->note(to, data);
    }
    std::uint8_t byte(std::uint64_t offset) { return *vram.at(offset, 1); }

    std::uint32_t node, silence_ms;
    EventQueue events;
    Vram vram;
    Counters counters;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> log{std::tmpfile(), std::fclose};
    Errors errors;
    Faults faults{{}, events, {.die = [] {}, .struck = {}}};
    Peers peers;
    BarrierUnit barriers{events,
                         vram,
                         peers,
                         counters,
                         {.poke = [this](std::uint64_t offset) { pokes.push_back(offset); },
                          .room_to_arm = {},
                          .act_at = {},
                          .changed = {}}};
    bool stuck = false;  // its core takes no pokes
    std::vector<std::uint64_t> pokes;
    std::vector<ModelTime> arrivals;
    std::vector<std::uint32_t> bad_keys;  // whose they were, as the port's owner is told
    struct Noted {
        std::uint32_t port, from;
        bool passed;
        std::byte first;
        bool operator==(const Noted&) const = default;
    };
    std::vector<Noted> notes;
    std::function<void(std::uint64_t offset, std::uint64_t bytes)> on_arrival;
    std::function<void(std::uint64_t peer, ModelTime arrival)> on_sent;  // set: it keeps step with all
    unsigned interrupts = 0, drained = 0;
    std::array<std::unique_ptr<LinkPort>, ORR_LINK_MAX_PORTS> ports;
};

enum class Shape : std::uint8_t { kChain, kRing, kMesh };

// Card n has node n + 1. In a chain port 1 leads up and port 0 down; a ring closes it. In a mesh each card
// has a link to each other, in their order.
class Net {
  public:
    Net(unsigned number, bool ring) : Net(number, ring ? Shape::kRing : Shape::kChain) {}
    Net(unsigned number, Shape shape, std::uint32_t silence_ms = 10'000) : shape_(shape) {
        for (unsigned n = 0; n < number; ++n)
            cards.push_back(std::make_unique<NetCard>(n + 1, silence_ms));
        for (unsigned n = 0; n < number; ++n) {
            const unsigned last = shape == Shape::kMesh ? number : n + 2;
            if (shape == Shape::kChain && n + 1 == number) break;
            for (unsigned to = n + 1; to < last; ++to) {
                const unsigned other = to % number;
                const std::string path =
                    folder_.file("net" + std::to_string(n) + "-" + std::to_string(other));
                paths_.push_back(path);
                cards[n]->add(port_of_link(n, other, 1), true, path);
                cards[other]->add(port_of_link(other, n, 0), false, path);
            }
        }
        // Up and down again, card 0 being on top: a way goes through card 0 or not round the ring at all.
        for (unsigned from = 0; from < number; ++from) {
            for (unsigned to = 0; to < number; ++to) {
                if (from == to) continue;
                cards[from]->route(to + 1, port_towards(from, to));
                cards[to]->grant_all(from, from + 1);
            }
        }
    }
    ~Net() {
        for (const std::string& path : paths_)
            ::unlink(path.c_str());
    }
    bool up() {
        for (int i = 0; i < 1000; ++i) {
            bool all = true;
            for (auto& card : cards) {
                for (auto& port : card->ports) {
                    if (!port) continue;
                    port->service();
                    all &= port->state() == ORR_LINK_UP;
                }
            }
            if (all) return true;
            ::usleep(2000);
        }
        return false;
    }
    void forward(bool on = true) {
        for (auto& card : cards)
            for (auto& port : card->ports)
                if (port) port->set_forward(on);
    }
    // Who is first in time goes first, until nobody has anything to do or `until` has come.
    void run(ModelTime until = kNever) {
        for (;;) {
            bool did = false;
            for (auto& card : cards)
                for (auto& port : card->ports)
                    if (port) did |= port->poll();
            NetCard* first = nullptr;
            for (auto& card : cards) {
                const ModelTime next = card->events.next_time();
                if (next != kNever && next <= until && (first == nullptr || next < first->events.next_time()))
                    first = card.get();
            }
            if (first != nullptr) did |= first->events.run_next(until == kNever ? kNever - 1 : until);
            if (!did) return;
        }
    }
    NetCard& operator[](unsigned n) { return *cards[n]; }
    std::uint64_t sum(orr_counter counter) {
        std::uint64_t all = 0;
        for (auto& card : cards)
            all += card->counters.get(counter);
        return all;
    }

    std::vector<std::unique_ptr<NetCard>> cards;

  private:
    unsigned port_of_link(unsigned from, unsigned to, unsigned otherwise) const {
        if (shape_ != Shape::kMesh) return otherwise;
        return to < from ? to : to - 1;
    }
    // Of a ring the link between the last two cards and the first is used by ways that begin or end at card
    // 0.
    unsigned port_towards(unsigned from, unsigned to) const {
        const auto number = static_cast<unsigned>(cards.size());
        if (shape_ != Shape::kRing) return port_of_link(from, to, to > from ? 1 : 0);
        const unsigned up = (to + number - from) % number;
        if (2 * up != number) return 2 * up < number ? 1 : 0;
        // As tests/model/protocol/routing.pml has it, both ways the same.
        if (from % 2 == 1) return from < to ? 0 : 1;
        return from < to ? 1 : 0;
    }
    Shape shape_;
    TempFolder folder_;
    std::vector<std::string> paths_;
};

}  // namespace orrery::emu::test
