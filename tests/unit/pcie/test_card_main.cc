// The test card as a process, for QEMU: pcie-test-card SOCKET [msix|msi|single]. It prints a line for each
// event, and ends on SIGTERM.
#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

#include "emulator/pcie/server.h"
#include "tests/unit/pcie/test_card.h"

namespace {

orrery::emu::VfioUserServer* the_server = nullptr;

void on_signal(int) {
    the_server->request_stop();
}

}  // namespace

int main(int argc, char** argv) {
    using namespace orrery;
    if (argc < 2) {
        fmt::print(stderr, "usage: {} SOCKET [msix|msi|single]\n", argv[0]);
        return 2;
    }
    const std::string_view mode = argc > 2 ? argv[2] : "msix";
    const auto interrupts_mode = mode == "msix"  ? emu::InterruptMode::kMsix
                                 : mode == "msi" ? emu::InterruptMode::kMsi
                                                 : emu::InterruptMode::kSingle;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    emu::Interrupts interrupts;
    test::TestCard card(interrupts);
    auto server = emu::VfioUserServer::create(argv[1], card.description(interrupts_mode), card, interrupts,
                                              [&](std::string_view line) {
                                                  for (const std::string& event : card.take_events())
                                                      fmt::print("event: {}\n", event);
                                                  fmt::print("log: {}\n", line);
                                              });
    if (!server) {
        fmt::print(stderr, "{}\n", server.error());
        return 1;
    }
    the_server = server->get();
    std::signal(SIGTERM, on_signal);
    std::signal(SIGINT, on_signal);
    fmt::print("ready\n");
    const auto done = (*server)->run();
    for (const std::string& event : card.take_events())
        fmt::print("event: {}\n", event);
    const auto counters = (*server)->counters();
    const auto sent = interrupts.counters();
    fmt::print("messages {} errors {} maps {} without-fd {} unmaps {} resets {} interrupts {} dropped {}\n",
               counters.messages, counters.errors, counters.dma_maps, counters.dma_maps_no_fd,
               counters.dma_unmaps, counters.resets, sent.sent, sent.dropped);
    if (card.broken_promises() != 0) {
        fmt::print(stderr, "{} calls broke the contract of PciDevice\n", card.broken_promises());
        return 1;
    }
    return done ? 0 : 1;
}
