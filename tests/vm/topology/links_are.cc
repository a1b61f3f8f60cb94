// links_are SHAPE: waits until the links that make this shape of all cards are up (the VM's time limit ends
// it), and fails if one leads elsewhere or if there is one more.
#include <orrery/orrery.h>

#include <chrono>
#include <map>
#include <thread>

#include "tools/topology/topology.h"

namespace {

using namespace orrery::topology;

bool is_up(const orrLinkInfo& link) {
    return link.state == orrLinkStateUp || link.state == orrLinkStateDegraded;
}

[[noreturn]] void fail(const std::string& what) {
    fmt::print(stderr, "links_are: {}\n", what);
    std::exit(1);
}

void check(orrError_t code) {
    if (code != orrSuccess) fail(fmt::format("{}: {}", orrGetErrorName(code), orrGetLastErrorText()));
}

}  // namespace

int main(int argc, char** argv) {
    const auto shape = argc == 2 ? shape_named(argv[1]) : std::nullopt;
    if (!shape) fail("which shape?");
    int devices = 0;
    check(orrGetDeviceCount(&devices));
    const auto wanted = make(*shape, static_cast<unsigned>(devices));
    if (!wanted) fail(wanted.error().text);
    std::map<Port, Port> ways;
    for (const Link& link : wanted->links) {
        ways[link.first] = link.second;
        ways[link.second] = link.first;
    }
    for (int device = 0; device < devices; ++device) {
        orrDeviceProp prop = ORR_INIT(orrDeviceProp);
        check(orrGetDeviceProperties(&prop, device));
        for (unsigned port = 0; port < prop.link_ports; ++port) {
            const auto way = ways.find({static_cast<unsigned>(device), port});
            orrLinkInfo link = ORR_INIT(orrLinkInfo);
            for (;;) {
                check(orrDeviceGetLink(&link, device, static_cast<int>(port)));
                if (way == ways.end() || is_up(link)) break;
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            }
            if (way == ways.end()) {
                if (is_up(link)) fail(fmt::format("device {} port {} leads somewhere", device, port));
                continue;
            }
            if (link.peer_device != static_cast<int>(way->second.card) || link.peer_port != way->second.port)
                fail(fmt::format("device {} port {} leads to device {} port {}, not to device {} port {}",
                                 device, port, link.peer_device, link.peer_port, way->second.card,
                                 way->second.port));
            ways.erase(way);
        }
    }
    if (!ways.empty()) fail("a device has too few ports");
    fmt::print("a {} of {} cards, {} links\n", shape_name(*shape), devices, wanted->links.size());
    return 0;
}
