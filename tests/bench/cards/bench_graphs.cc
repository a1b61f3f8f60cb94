// bench_graphs CARDS,... SKU ORRERY-VM: a factorisation as a task graph on so many cards that keep step, in
// model time, beside the bound that its tasks have: joined in a chain, in a ring and each with each.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/cards/command.h"
#include "tests/bench/compute/guest_program.h"
#include "tools/bench/measured.h"

namespace orrery::bench {
namespace {

constexpr int kRounds = 3;
constexpr unsigned kTileRows = 64;

// So that there is slack: the work over the cards is more than twice the longest path.
unsigned tiles_for(unsigned cards) {
    return cards <= 2 ? 8 : cards <= 4 ? 12 : 16;
}

void measure(Measured& measured, const std::string& shape, unsigned cards, const std::string& sku,
             const std::string& vm) {
    Command command({vm, "--cards", fmt::format("{}", cards), "--topology", shape, "--sku", sku, "--vram",
                     "128M", "--memory", "2G", "--sync", "lockstep", "--timeout", "3000", "--",
                     "bench_graphs_guest"});
    GuestProgram guest(command.words());
    const auto add = [&](const std::string& name, const std::string& costs) {
        Measurement one{name, cards, {}, {}};
        for (int round = 0; round < kRounds; ++round) {
            const std::string what = fmt::format("{} {} {}", tiles_for(cards), kTileRows, costs);
            const Answer answer = guest.ask(what.c_str());
            one.samples.push_back(answer.seconds / 1e6);  // its two numbers are ns of model time
            one.yardstick.push_back(answer.model_ns / 1e6);
            // In the suite's log: runs of many cards take long.
            fmt::print(stderr, "{}, {} cards: {:.3f} ms, {:.3f} of its bound\n", name, cards,
                       one.samples.back(), answer.seconds / answer.model_ns);
        }
        measured.add(std::move(one));
    };
    add(fmt::format("graph on a {}, costs unknown", shape), "");
    (void)guest.ask(fmt::format("{} {} /tmp/costs", tiles_for(cards), kTileRows).c_str());
    add(fmt::format("graph on a {}, costs known", shape), "/tmp/costs");
}

int run(const std::vector<std::string>& arguments) {
    Measured measured;
    for (const unsigned cards : numbers(arguments[0])) {
        measure(measured, "chain", cards, arguments[1], arguments[2]);
        if (cards < 3) continue;  // two cards are a pair, however they are joined
        for (const char* shape : {"ring", "mesh"})
            measure(measured, shape, cards, arguments[1], arguments[2]);
    }
    return measured.print() ? 0 : 1;
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    if (argc != 4) {
        fmt::print(stderr, "usage: bench_graphs CARDS,... SKU ORRERY-VM\n");
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return orrery::bench::run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_graphs: {}\n", error.what());
        return 1;
    }
}
