// What small kernels cost, alone and by the hundred. Times in nanoseconds of the guest's clock.
#pragma once

#include <orrery/orrery.hpp>

#include <cstdint>
#include <vector>

namespace orrery::bench {

class LaunchBench {
  public:
    LaunchBench();

    // A kernel of 8 groups with 100 instructions each, from before the launch until its end is known here.
    std::vector<double> latency(int launches);
    // A hundred of them one after the other, on a card that is at work: the calls that start them, as
    // launches or as one graph.
    std::vector<double> starts(int rounds, bool as_graph);
    // The same until all have ended.
    std::vector<double> until_end(int rounds, bool as_graph);
    // Stores that a launch makes to the registers of a card that is at work, which a hypervisor would have to
    // trap: of each of so many rounds of a hundred launches.
    std::vector<double> register_writes(int rounds);
    // One launch's call, as often, each on a card that sleeps.
    std::vector<double> waking(int rounds);

    // Launches for ever, between two breakpoints each, for instructions_of_a_launch().
    [[noreturn]] void between_breakpoints() const;

  private:
    void start() const;
    void start_hundred(bool as_graph) const;

    Library library_;
    orrFunction_t kernel_;
    Stream stream_;
    DeviceArray<std::uint64_t> card_{1};
    Graph graph_{empty};
    GraphExec exec_{empty};
};

// Instructions of a program in a launch. It is another process, started as this program with --launches,
// which then calls between_breakpoints(): a program that is stepped through cannot step itself. tool: for
// ORR_PROF_TOOL of that process, which has none if it is null.
std::vector<double> instructions_of_a_launch(int launches, const char* tool);

}  // namespace orrery::bench
