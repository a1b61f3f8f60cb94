// The test card as a process, for QEMU: pcie-test-card --socket PATH [--irq msix|msi|single]. It prints
// "ready", and then a line for each event; it ends on SIGTERM. Other options that orrery-vm gives to a card
// are ignored.
#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

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
    std::string socket;
    std::string_view mode = "msix";
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view option = argv[i];
        if (option == "--socket") socket = argv[i + 1];
        if (option == "--irq") mode = argv[i + 1];
    }
    if (socket.empty() || (mode != "msix" && mode != "msi" && mode != "single")) {
        fmt::print(stderr, "usage: {} --socket PATH [--irq msix|msi|single]\n", argv[0]);
        return 2;
    }
    const auto interrupts_mode = mode == "msix"  ? emu::InterruptMode::kMsix
                                 : mode == "msi" ? emu::InterruptMode::kMsi
                                                 : emu::InterruptMode::kSingle;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    emu::Interrupts interrupts;
    test::TestCard card(interrupts);
    auto server = emu::VfioUserServer::create(socket, card.description(interrupts_mode), card, interrupts,
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
