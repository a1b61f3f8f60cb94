// What follows from a profile: how busy engines were, what took how long, how near to its bound, and why
// nothing ran when nothing did. Times are of the model unless a name says ns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/prof/intervals.h"
#include "tools/prof/model.h"

namespace orrery::prof {

// How often, how long.
// By a number that each has, the largest first; of equal ones those first that came first. (libstdc++'s
// stable_sort warns of itself.)
template <typename Row, typename Key>
void largest_first(std::vector<Row>& rows, const Key& key) {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t one, std::size_t other) {
        const auto a = std::invoke(key, rows[one]), b = std::invoke(key, rows[other]);
        return a != b ? a > b : one < other;
    });
    std::vector<Row> sorted;
    sorted.reserve(rows.size());
    for (const std::size_t i : order)
        sorted.push_back(std::move(rows[i]));
    rows = std::move(sorted);
}

struct Totals {
    std::uint64_t count = 0, failed = 0, total_ps = 0, shortest_ps = 0, longest_ps = 0;

    void add(std::uint64_t ps, bool fails) {
        shortest_ps = count == 0 ? ps : std::min(shortest_ps, ps);
        longest_ps = std::max(longest_ps, ps);
        total_ps += ps;
        failed += fails ? 1 : 0;
        ++count;
    }
    std::uint64_t mean_ps() const { return count == 0 ? 0 : total_ps / count; }
};

// Where a kernel is below the roofline of its card: of all its runs that were counted.
struct Roofline {
    std::uint64_t runs = 0;
    std::uint64_t ps = 0;         // in which any of them ran: side by side they are counted once
    double flops = 0, bytes = 0;  // of VRAM
    double intensity() const { return bytes > 0 ? flops / bytes : 0; }                     // FLOP/byte
    double gflops() const { return ps == 0 ? 0 : 1e3 * flops / static_cast<double>(ps); }  // achieved
    double gb_per_s() const { return ps == 0 ? 0 : 1e3 * bytes / static_cast<double>(ps); }
    // What the card takes at least for that, if it did nothing else: to compute it, and to move it.
    double compute_ps = 0, memory_ps = 0;
    bool by_memory() const { return memory_ps >= compute_ps; }
    double least_ps() const { return std::max(compute_ps, memory_ps); }
    // Of what is attainable, 1 at most but for rounding; 0: the bounds are not known.
    double share() const { return ps == 0 ? 0 : least_ps() / static_cast<double>(ps); }
    double attainable_gflops() const { return least_ps() > 0 ? 1e3 * flops / least_ps() : 0; }
    void add(const Roofline& others);  // but for the time: who has both sees what was side by side
};

// Kernels as they were launched: the parts of one that was preempted are one run.
class KernelRuns {
  public:
    struct Run {
        std::uint64_t ps = 0;        // of its parts until now
        std::uint64_t last_end = 0;  // of the part before this one; of the first: 0
        bool done = false;           // this is its last part
    };
    // In the order in which they began.
    Run add(const Work& part) {
        const auto at = open_.try_emplace({part.record->stream, part.record->index}).first;
        Run run = at->second;
        run.ps += part.ps();
        run.done = part.outcome() != Outcome::kPreempted;
        at->second = {run.ps, part.record->end_ps, false};
        if (run.done) open_.erase(at);
        return run;
    }

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, Run> open_;  // by stream and packet
};

// What counters of several pieces of work add up to.
struct CounterSums {
    std::uint64_t runs = 0;
    std::uint64_t used_ps = 0;  // as work has it: with what hands groups over to cores
    std::uint64_t busy_ps = 0, latency_ps = 0, bandwidth_ps = 0, link_ps = 0, launch_ps = 0, queued_ps = 0;
    std::uint64_t pause_ps = 0;
    std::uint64_t instructions = 0, simd = 0, simd_int = 0, lanes = 0, lanes_active = 0;
    std::uint64_t vram_bytes = 0, host_bytes = 0, link_bytes = 0;
    void add(const Work& work);  // that was counted
    void add(const CounterSums& others);
    double share(std::uint64_t ps) const {
        return busy_ps == 0 ? 0 : static_cast<double>(ps) / static_cast<double>(busy_ps);
    }
    // In which cores waited for nothing.
    std::uint64_t computing_ps() const {
        return busy_ps - std::min(busy_ps, latency_ps + bandwidth_ps + link_ps + launch_ps + pause_ps);
    }
    double of_instructions(std::uint64_t count) const {
        return instructions == 0 ? 0 : static_cast<double>(count) / static_cast<double>(instructions);
    }
    double lanes_used() const {
        return lanes == 0 ? 0 : static_cast<double>(lanes_active) / static_cast<double>(lanes);
    }
};

struct KernelSums {
    std::string name;
    Totals totals;
    std::uint64_t used_ps = 0;  // summed over vector cores
    std::uint64_t groups = 0;   // of the last run
    std::uint64_t least_groups = ~std::uint64_t{0}, most_groups = 0;
    CounterSums counters;
    Roofline roofline;
    // Of VRAM's bandwidth, what was used while it ran, by whatever ran then.
    double vram_use = 0;
    // Share of the card's cores that were at work while it ran; 0: not known.
    double core_use(std::uint32_t cores) const;
    // No group of its launch was there that it could pause for.
    bool is_alone() const { return most_groups == 1; }
};

struct CopySums {
    Direction direction = Direction::kUnknown;
    bool reduces = false;
    std::int32_t peer = -1;  // the other device, of kFromPeer and kToPeer
    Totals totals;
    std::uint64_t bytes = 0;
    double best_ps = 0;           // at the bound, of those that have one
    std::optional<double> bound;  // GB/s
    double gb_per_s() const {
        return totals.total_ps == 0 ? 0
                                    : 1e3 * static_cast<double>(bytes) / static_cast<double>(totals.total_ps);
    }
    std::string way() const;  // between which memories
    std::string name() const { return copy_name(way(), reduces); }
};

// Who ended a wait, as people call it: the name of the semaphore, or who signalled.
struct WaitSums {
    std::string from;
    From kind = From::kUnknown;
    Totals totals;
};

// What it takes to bring work to an engine that waits for it is less than this.
inline constexpr std::uint64_t kLongestLaunchPs = 20'000'000;

// Why the engines of a card had nothing of this process to do.
enum class Idle : std::uint8_t {
    kHost,       // the host submitted what came next only when it knew that all before was done, or late
    kHostWait,   // a stream waited for a signal of the host
    kOutside,    // a stream waited for another process or machine
    kOtherCard,  // a stream waited for work of another card
    kHeldBack,   // work was there, and others had the cores, or a quota was used up
    kLaunch,     // work that was there was brought to an engine
};
inline constexpr std::size_t kIdleKinds = 6;
const char* name_of(Idle idle);

// A time in which no engine of the card did anything for this process.
struct Gap {
    Interval time;
    Idle why = Idle::kLaunch;
    std::uint32_t ended_by = kNone;  // the work that began then, of Activity::work
    std::string who;                 // of waits: as WaitSums::from
};

struct DeviceSums {
    const DeviceModel* device = nullptr;
    std::uint64_t span_ps = 0;               // from the first work to the end of the last
    Intervals vector, copy, engines;         // busy with kernels, with copies or fills, with any
    std::map<Direction, Intervals> copy_by;  // fills are kInside
    std::uint64_t overlap_ps = 0;            // of kernels and copies
    std::uint64_t kernel_used_ps = 0;        // of all vector cores
    std::vector<Gap> gaps;                   // the longest first
    std::array<std::uint64_t, kIdleKinds> idle_ps{};
    std::map<std::string, std::uint64_t> idle_who;  // of gaps with a `who`
    std::uint64_t preemptions = 0;
    std::uint64_t preempted_ps = 0;  // between the parts of kernels, all added up
    std::uint64_t quota_permille = 0,
                  quota_period_us = 0;  // of the cores, for this process; 0: none is known
    std::vector<KernelSums> kernels;    // what took most first, as those below
    Roofline roofline;                  // of all kernels
    std::vector<CopySums> copies;
    Totals fills;
    std::vector<WaitSums> waits;

    std::uint64_t vector_ps() const { return length_of(vector); }
    std::uint64_t copy_ps() const { return length_of(copy); }
    std::uint64_t busy_ps() const { return length_of(engines); }
    double share(std::uint64_t ps) const {
        return span_ps == 0 ? 0 : static_cast<double>(ps) / static_cast<double>(span_ps);
    }
};

struct CallSums {
    std::string name;
    Totals totals;  // of the host's time
};

struct Sums {
    const Activity* activity = nullptr;
    std::vector<DeviceSums> devices;  // that did something
    std::vector<CallSums> calls;      // what took most first
    // By the host's clock: from the first submission to the end of the last call that waits for cards; and of
    // that, when no card had anything to do, as all had been waited for.
    std::uint64_t working_ns = 0, nothing_submitted_ns = 0;
    std::uint64_t own_ns = 0;  // of the latter, in no call of the API: the program's own
};

Sums sums_of(const Activity& activity);
// Of a call that returns when the card has done something: what comes behind it in its thread was submitted
// then only.
bool is_blocking(std::string_view call);

}  // namespace orrery::prof
