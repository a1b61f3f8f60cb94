// What passes through a switch from one node to another. Behind something that was lost nothing goes on: no
// signal without the write before it. Only software knows what was on its way; what it sends in another epoch
// goes on. What comes from the card itself may be of an older one, as copies to all are: of these nothing
// goes on any more. Of two epochs the newer is less than half of all ahead. Switches further on get them in
// order, and do not hear of it when a driver begins to count anew.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "emulator/link/wire.h"

namespace orrery::emu {

class Flows {
  public:
    // Whether a message may leave by that port. `first`: this is its sender's own switch.
    bool may_pass(const link::Message& message, unsigned port, bool first) {
        Flow& flow = at(message);
        if ((first && is_older(message, flow)) || (flow.lost && flow.epoch == message.epoch)) return false;
        flow = {.epoch = message.epoch, .lost = false, .port = static_cast<std::uint8_t>(port)};
        return true;
    }
    // It did not. True: software has to hear of it. Now and then again, if it goes on all the same.
    bool lost(const link::Message& message, bool first) {
        Flow& flow = at(message);
        if (first && is_older(message, flow)) return false;
        if (flow.lost && flow.epoch == message.epoch) return ++flow.dropped % kAgain == 0;
        flow.epoch = message.epoch;
        flow.lost = true;
        flow.dropped = 0;
        return true;
    }
    // What was sent by that port, or to that node, may be lost. `told` hears of the nodes to which it was.
    template <class Told>
    void lose_port(unsigned port, Told told) {
        lose([&](std::uint32_t, const Flow& flow) { return flow.port == port; }, told);
    }
    void lose_node(std::uint32_t node) {
        lose([&](std::uint32_t to, const Flow&) { return to == node; }, [](std::uint32_t) {});
    }
    // The card at that node begins anew, and so do its epochs.
    void forget(std::uint32_t node) {
        std::erase_if(flows_, [&](const auto& flow) {
            return flow.first / ORR_NODES == node || flow.first % ORR_NODES == node;
        });
    }
    std::size_t size() const { return flows_.size(); }

  private:
    struct Flow {
        std::uint16_t epoch = 0;
        bool lost = false;  // of that epoch
        std::uint8_t port = 0xff;
        std::uint32_t dropped = 0;
    };
    static constexpr std::uint32_t kAgain = 64;
    static bool is_older(const link::Message& message, const Flow& flow) {
        return static_cast<std::int16_t>(message.epoch - flow.epoch) < 0;
    }
    Flow& at(const link::Message& message) {
        const std::uint32_t key = message.source * ORR_NODES + message.destination;
        return flows_.try_emplace(key, Flow{.epoch = message.epoch}).first->second;
    }
    template <class Which, class Told>
    void lose(Which which, Told told) {
        for (auto& [key, flow] : flows_) {
            if (flow.lost || !which(key % ORR_NODES, flow)) continue;
            flow.lost = true;
            flow.dropped = 0;
            told(key % ORR_NODES);
        }
    }

    // By source and destination: as many as cards that are there name nodes.
    std::unordered_map<std::uint32_t, Flow> flows_;
};

}  // namespace orrery::emu
