// Of the work of bench_prof_guest, which bench_prof knows too.
#pragma once

namespace orrery::bench {

// Products of matrices, with four pieces of work each.
constexpr int kMixRounds = 400;
constexpr int kStormRounds = 100, kStormLaunches = 100;
// Runs of a few seconds each in which records are drained while others come.
constexpr int kSteadyRuns = 7;
constexpr double kSteadySeconds = 5;
// Records that wait in the card's ring, which has room for 43,000, one each from launches of a graph.
constexpr int kDrained = 40'000, kGraphLaunches = 100;

}  // namespace orrery::bench
