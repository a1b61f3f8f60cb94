// What cards and switches say of themselves at a switch's ports is anything: ways lead to ports that are up,
// never back to who was asked, and never up for one that stands above; and who shows a node first keeps it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "emulator/switch/fabric.h"
#include "tests/fuzz/engines/input.h"

namespace {

using namespace orrery::emu;
using orrery::emu::test::Input;

constexpr std::uint32_t kLevel = 1;

void must(bool holds) {
    if (!holds) std::abort();
}

// A few nodes and ports, so that they meet; now and then any.
std::uint32_t node_of(std::uint16_t word) {
    return word % 4 != 0 ? word % 8 : word;
}

struct Peers {
    std::array<Fabric::Port, Fabric::kPorts> ports{};
    std::map<std::pair<unsigned, std::uint32_t>, link::Reach> said;

    void change(Input& input) {
        const unsigned p = input.take<std::uint8_t>() % Fabric::kPorts;
        const auto how = input.take<std::uint8_t>();
        const std::uint32_t node = node_of(input.take<std::uint16_t>());
        if (how % 2 == 0) {
            ports[p] = {.up = how % 16 != 0,
                        .is_switch = how % 4 == 0,
                        .level = input.take<std::uint8_t>() % 4u,
                        .uid = input.take<std::uint8_t>() % 8u,
                        .node = node,
                        .mbps = input.take<std::uint32_t>()};
            if (ports[p].is_switch) ports[p].node = 0;
        } else {
            link::Reach& reach = said[{p, node}];
            reach = input.take<link::Reach>();
            if (how % 4 == 1) reach.how |= ORR_REACH_VALID;
        }
    }
    bool above(unsigned p) const { return ports[p].is_switch && ports[p].level > kLevel; }
};

void look(const Fabric& fabric, const Peers& peers) {
    for (std::uint32_t node = 1; node < ORR_NODES; ++node) {
        const unsigned onward = fabric.port_of(node);
        if (onward == Fabric::kNone) {
            for (unsigned p = 0; p < Fabric::kPorts; ++p)
                must(!fabric.shown(p, node).valid);
            continue;
        }
        must(onward < Fabric::kPorts && peers.ports[onward].up && fabric.comes_by(onward, node));
        for (unsigned p = 0; p < Fabric::kPorts; ++p) {
            const link::Route shown = fabric.shown(p, node);
            if (!shown.valid) continue;
            must(p != onward && !fabric.comes_by(p, node) && shown.links != 0);
            must(!(peers.above(p) && peers.above(onward)));
            must(shown.mbps <= peers.ports[onward].mbps);
        }
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    Fabric fabric({.uid = 0x100, .level = kLevel, .latency_ns = 500, .forward_ns = 300});
    Peers peers;
    for (unsigned round = 0; round < 8 && !input.empty(); ++round) {
        for (unsigned changes = input.take<std::uint8_t>() % 16u; changes > 0; --changes)
            peers.change(input);
        std::array<unsigned, ORR_NODES> before{};
        for (std::uint32_t node = 1; node < ORR_NODES; ++node)
            before[node] = fabric.port_of(node);
        std::array<bool, ORR_NODES> changed{};
        std::array<bool, Fabric::kPorts> refused{};
        fabric.update(
            peers.ports,
            [&](unsigned port, std::uint32_t node) {
                const auto said = peers.said.find({port, node});
                return said == peers.said.end() ? link::Route{} : link::route_of(said->second);
            },
            [&](std::uint32_t node) { changed.at(node) = true; },
            [&](unsigned port) { refused.at(port) = true; });
        // There is another card that shows it.
        for (unsigned p = 0; p < Fabric::kPorts; ++p)
            must(!refused[p] || (peers.ports[p].node != 0 && !fabric.comes_by(p, peers.ports[p].node)));
        // Whoever was reached and is not, or by another port, is told of: what was on its way may be lost.
        for (std::uint32_t node = 1; node < ORR_NODES; ++node)
            must(changed[node] == (before[node] != Fabric::kNone && before[node] != fabric.port_of(node)));
        look(fabric, peers);
    }
    return 0;
}
