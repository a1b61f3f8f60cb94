// Link ports of two cards without the cards, on one thread or in two processes.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/link/link_port.h"

namespace orrery::emu::test {

// A card's node is its number; two that are joined are mostly these.
inline constexpr std::uint32_t kA = 0xa, kB = 0xb;

// A folder for sockets that goes with its owner.
class TempFolder {
  public:
    TempFolder() {
        char name[] = "/tmp/orrery-link-XXXXXX";
        if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = name;
    }
    ~TempFolder() {
        ::unlink(file("link").c_str());
        ::rmdir(path_.c_str());
    }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

struct LinkCard {
    LinkCard(std::uint64_t uid, bool listen, std::string path, std::uint32_t port_number = 0)
        : vram(*Vram::create(8 << 20)), errors(counters, nullptr) {
        config.uid = uid;
        config.listen = listen;
        config.path = std::move(path);
        config.port = port_number;
        open();
    }
    void open() {
        LinkHooks hooks;
        hooks.poke = [this](std::uint64_t offset) { pokes.push_back(offset); };
        hooks.poke_room = [this] { return !poke_lane_full; };
        hooks.changed = [this](std::uint32_t, std::uint32_t state) { states.push_back(state); };
        hooks.comes_here = [this](std::uint32_t node) { return node != elsewhere; };
        hooks.may_skip = [this](ModelTime) { return idle; };
        hooks.may_jump = [this] { return !in_step; };
        hooks.act_at = [this] { return std::max(events.now(), acts_at); };
        hooks.in_step = [this](std::uint64_t) { return in_step; };
        hooks.sent = [this](std::uint64_t, ModelTime arrival) { sent.push_back(arrival); };
        auto made = LinkPort::create(config, events, vram, counters, errors, hooks);
        if (!made) throw std::runtime_error(made.error());
        port = std::move(*made);
        port->set_node(node());
    }
    std::uint32_t node() const { return static_cast<std::uint32_t>(config.uid); }
    // What a card loop does in a round; true: something happened.
    bool round() {
        bool did = port->poll();
        did |= events.run_due() > 0;
        return did;
    }
    // Idle: jumps to the next event.
    bool idle_round() {
        bool did = round();
        if (!did && events.next_time() != kNever) did = events.run_next(kNever - 1);
        return did;
    }
    void wait(int ms) {
        pollfd fd{port->poll_fd(), POLLIN, 0};
        ::poll(&fd, 1, ms);
        port->service();
    }
    std::uint64_t* words(std::uint64_t offset) {
        return reinterpret_cast<std::uint64_t*>(vram.data() + offset);
    }

    LinkConfig config;
    EventQueue events;
    Vram vram;
    Counters counters;
    Errors errors;
    std::vector<std::uint64_t> pokes;
    std::vector<std::uint32_t> states;
    bool idle = false;  // as LinkHooks::may_skip
    bool poke_lane_full = false;
    std::uint32_t elsewhere = 0;    // a node that comes by another port
    bool in_step = false;           // with every peer
    ModelTime acts_at = 0;          // no sooner on what the peer's process does
    std::vector<ModelTime> sent{};  // to peers in step: arrivals
    std::unique_ptr<LinkPort> port;
};

// Services both until `done`; false after many tries (the connecting side tries every 50 ms).
inline bool settle(LinkCard& a, LinkCard& b, const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
        a.wait(5);
        b.wait(5);
    }
    return done();
}
inline bool connect(LinkCard& a, LinkCard& b) {
    return settle(a, b, [&] { return a.port->state() == ORR_LINK_UP && b.port->state() == ORR_LINK_UP; });
}

}  // namespace orrery::emu::test
