// Cards without cores (tests/unit/link/net.h) on switches, all on one thread and in the order of their times.
#pragma once

#include "emulator/switch/switch.h"
#include "tests/unit/link/net.h"
#include "tests/unit/link/sender.h"

namespace orrery::emu::test {

inline constexpr ModelTime kHop = 300 * kPsPerNs;  // of the built-in model

inline FaultPlan plan(const std::string& text) {
    auto made = FaultPlan::parse(text);
    if (!made) throw std::runtime_error(made.error());
    return *made;
}

// What the driver does with a card on a switch: it forwards by port 0, has a route to each other and grants
// all.
class Star {
  public:
    explicit Star(SwitchModel the_model = {}) : model(std::move(the_model)) {}
    ~Star() {
        for (const std::string& path : paths_)
            ::unlink(path.c_str());
    }
    // Cards are added first, with nodes from 1 on; then the switches to which they are joined.
    NetCard& add_card() {
        cards.push_back(std::make_unique<NetCard>(static_cast<std::uint32_t>(cards.size() + 1)));
        return *cards.back();
    }
    std::string path() {
        paths_.push_back(folder_.file("link" + std::to_string(paths_.size())));
        return paths_.back();
    }
    // A port of a switch that is to be made: what its peer connects to.
    std::string listen(std::vector<LinkConfig>& links) {
        LinkConfig link;
        link.port = static_cast<std::uint32_t>(links.size());
        link.listen = true;
        link.path = path();
        links.push_back(link);
        return link.path;
    }
    void connect(std::vector<LinkConfig>& links, const std::string& to) {
        LinkConfig link;
        link.port = static_cast<std::uint32_t>(links.size());
        link.path = to;
        links.push_back(link);
    }
    Switch& add_switch(const std::vector<LinkConfig>& links, std::uint32_t level = 0,
                       std::optional<FaultPlan> faults = {}) {
        SwitchConfig config;
        config.uid = 0x100 + switches.size();
        config.level = level;
        config.model = model;
        config.links = links;
        config.faults = std::move(faults);
        config.die = [] {};
        switches.push_back(std::move(*Switch::create(std::move(config))));
        return *switches.back();
    }
    // All cards on one switch: card n at port n.
    void make(unsigned number, std::optional<FaultPlan> faults = {}) {
        std::vector<LinkConfig> links;
        std::vector<std::string> paths;
        for (unsigned n = 0; n < number; ++n)
            paths.push_back(listen(links));
        add_switch(links, 0, std::move(faults));
        for (const std::string& at : paths)
            add_card().add(0, false, at);
        routes();
    }
    // Each leaf has `below` cards at its first ports, and each spine all leaves in their order.
    void make_tree(unsigned leaves, unsigned below, unsigned spines) {
        std::vector<std::vector<std::string>> up(leaves);
        for (unsigned leaf = 0; leaf < leaves; ++leaf) {
            std::vector<LinkConfig> links;
            std::vector<std::string> paths;
            for (unsigned n = 0; n < below; ++n)
                paths.push_back(listen(links));
            for (unsigned n = 0; n < spines; ++n)
                up[leaf].push_back(listen(links));
            add_switch(links, 0);
            for (const std::string& at : paths)
                add_card().add(0, false, at);
        }
        for (unsigned spine = 0; spine < spines; ++spine) {
            std::vector<LinkConfig> links;
            for (unsigned leaf = 0; leaf < leaves; ++leaf)
                connect(links, up[leaf][spine]);
            add_switch(links, 1);
        }
        routes();
    }
    void routes(std::uint32_t epoch = 0) {
        for (auto& from : cards) {
            for (auto& to : cards) {
                if (from == to) continue;
                from->route(to->node, 0, epoch);
                if (epoch == 0) from->ports[0]->set_grant(to->node, 0, from->vram.size(), to->node);
            }
        }
    }
    bool up() {
        for (int i = 0; i < 30'000; ++i) {
            bool all = true;
            for (auto& card : cards) {
                card->ports[0]->service();
                all &= card->ports[0]->up();
            }
            for (auto& one : switches) {
                for (unsigned p = 0; p < Fabric::kPorts; ++p) {
                    if (LinkPort* port = one->port(p)) {
                        port->service();
                        all &= port->up();
                    }
                }
            }
            if (all) {
                run();
                for (auto& card : cards)
                    card->ports[0]->set_forward(true);
                return true;
            }
            ::usleep(2000);
        }
        return false;
    }
    // Who is first in time goes first, until nobody has anything to do.
    void run() {
        for (;;) {
            bool did = false;
            for (auto& card : cards)
                did |= card->ports[0] != nullptr && card->ports[0]->poll();
            for (auto& one : switches)
                did |= one->take_arrivals();
            EventQueue* first = nullptr;
            const auto look = [&](EventQueue& events) {
                if (events.next_time() == kNever) return;
                if (first == nullptr ||
                    events.to_system(events.next_time()) < first->to_system(first->next_time()))
                    first = &events;
            };
            for (auto& one : switches)
                look(one->events());
            for (auto& card : cards)
                look(card->events);
            if (first != nullptr) did |= first->run_next(kNever - 1);
            if (!did) return;
        }
    }
    // All cards come to one time, which is returned: what is measured begins there.
    ModelTime line_up() {
        ModelTime began = 0;
        for (auto& card : cards)
            began = std::max(began, card->events.now());
        for (auto& card : cards)
            card->events.advance_to(began);
        return began;
    }
    NetCard& operator[](unsigned n) { return *cards[n]; }
    std::uint64_t sum(orr_counter counter) {
        std::uint64_t all = 0;
        for (auto& card : cards)
            all += card->counters.get(counter);
        for (auto& one : switches)
            all += one->counters().get(counter);
        return all;
    }
    link::Route reach(unsigned from, std::uint32_t node) {
        return link::route_of(cards[from]->ports[0]->peer_reach(node));
    }

    SwitchModel model;
    std::vector<std::unique_ptr<NetCard>> cards;
    std::vector<std::unique_ptr<Switch>> switches;

  private:
    TempFolder folder_;
    std::vector<std::string> paths_;
};

}  // namespace orrery::emu::test
