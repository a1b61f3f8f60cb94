#include "tools/bench/figures.h"

#include <algorithm>
#include <array>
#include <regex>
#include <utility>

namespace orrery::bench {
namespace {

using enum Goal::Kind;
using enum Statistic;

constexpr std::uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

// Groups of one card on host threads.
constexpr Goal kThreadsGoal = {kOfYardstickAtLeast, 0.85};
Figure of_threads(std::string_view name, Goal goal = {}) {
    return {name, "threads", {1}, "threads", "/s", "two cards at once", goal};
}

// Of two cards of the SKU *previous*, whose links have one rate.
Figure of_link(std::string_view name, Goal goal = {}) {
    return {name, "p2p", {256 * kKiB, kMiB, 16 * kMiB}, "B", "GB/s", "payload of the link", goal};
}

// Of several cards at once, or over several links.
Figure of_links(std::string_view name, std::string_view suite, double goal) {
    return {name, suite, {}, "", "GB/s", "what the links allow", {kOfYardstickAtLeast, goal}};
}

// Of several cards that send to one: no more than 2 points of a hundred from the same for each.
Figure of_shares(std::string_view name, std::string_view suite, unsigned senders, Goal::Kind kind) {
    const double even = 100.0 / senders;
    const double bound = even + (kind == kOfYardstickAtLeast ? -2 : 2);
    return {name, suite, {}, "", "%", "the same for each", {kind, bound / even}};
}

// A task graph on 2, 4 and 8 cards that keep step.
Figure of_graph(std::string_view name, std::vector<std::uint64_t> cards) {
    return {name, "graphs", std::move(cards), "cards", "ms", "bound", {kOfYardstickAtMost, 1.15}};
}

// Samples on cards that keep step.
Figure of_step(std::string_view name) {
    return {name, "lockstep", {2, 4, 8}, "cards", "s", "running free"};
}

const std::array kSuites = {
    Suite{"card", "a card beside NVMe, in a VM",
          "$BIN/orrery-vm --nvme --timeout 600 --file $BIN/../lib/bench-idle-tool.so"
          " -- orrery-bench-guest --sizes $SIZES"},
    Suite{"compute", "vector code in a VM, beside this host's CPU and qemu-riscv64",
          "$BIN/bench_compute $BIN/orrery-vm --timeout 600 -- bench_compute_guest"},
    Suite{"memory", "memory of a card's process",
          "$BIN/bench_memory $SIZES emulator/skus/orrery-1.toml $BIN/orrery-vm"},
    Suite{"core", "the interpreter beside Unicorn", "$BIN/bench_core $SIZES"},
    Suite{"engines", "engines beside memcpy", "$BIN/bench_engines $SIZES"},
    Suite{"launches", "small kernels", "$BIN/bench_engines --launches $SIZES"},
    Suite{"checks", "kernels that are checked", "$BIN/bench_engines --checks $SIZES"},
    Suite{"jobs", "small work, in the card alone", "$BIN/bench_jobs"},
    Suite{"threads", "kernels on two threads of the host", "$BIN/bench_threads $SIZES"},
    Suite{"run", "make run, with all built", "", "make --no-print-directory run", 3},
    Suite{"boot", "from boot to the first result", "", "$BIN/orrery-vm --cards 2 -- histogram", 3},
    Suite{"failure", "failures, until who waits is told", "$BIN/orrery-vm --timeout 300 -- bench_failure"},
    Suite{"link", "links that are cut",
          "$BIN/orrery-vm --timeout 300 --cards 2 --faults '1:link count=all fail' -- bench_failure --links"},
    // The cards keep step: nothing that crosses the link is late because the host was.
    Suite{"p2p", "two linked cards, in model time",
          "$BIN/orrery-vm --timeout 300 --cards 2 --sku orrery-0 --vram 512M --sync lockstep"
          " -- orrery-bench-p2p --measure $SIZES"},
    Suite{"p2p_chain", "four cards in a chain, in model time",
          "$BIN/orrery-vm --timeout 300 --cards 4 --topology chain --vram 512M --sync lockstep"
          " -- orrery-bench-p2p --measure-pattern 'copies over 3 links' --measure-pattern '3 to 1'"},
    Suite{"p2p_chain_0", "four cards of the SKU orrery-0 in a chain, in model time",
          "$BIN/orrery-vm --timeout 300 --cards 4 --topology chain --sku orrery-0 --vram 512M --sync lockstep"
          " -- orrery-bench-p2p --prefix 'orrery-0: ' --measure-pattern 'copies over 3 links'"
          " --measure-pattern '3 to 1'"},
    Suite{"p2p_mesh", "eight cards, each linked with each, in model time",
          "$BIN/orrery-vm --timeout 300 --cards 8 --topology mesh --sku orrery-0 --vram 512M --memory 2G"
          " --sync lockstep -- orrery-bench-p2p --measure-pattern 'all to all'"
          " --measure-pattern 'all to all, real time'"},
    Suite{
        "p2p_star", "eight cards, of which one passes on for the others, in model time",
        "$BIN/orrery-vm --timeout 300 --topology tools/bench/star.toml --sku orrery-0 --vram 512M --memory 2G"
        " --sync lockstep -- orrery-bench-p2p --measure-pattern '7 to 1'"},
    Suite{"graphs", "task graphs on several cards, in model time",
          "$BIN/bench_graphs $SIZES orrery-0 $BIN/orrery-vm"},
    Suite{"lockstep", "samples on cards that keep step, beside those that run free",
          "$BIN/bench_lockstep $SIZES $BIN/orrery-vm"},
    Suite{"message", "a message over a link, beside a bare ring, between threads", "$BIN/bench_link"},
    Suite{"p2p_host", "copies over a link, beside memcpy",
          "$BIN/orrery-vm --timeout 300 --cards 2 -- orrery-bench-p2p --measure-host $SIZES"},
    // A card dies once only, so many are needed; that the last VM ends badly is what was asked for.
    Suite{"death", "cards that die",
          "for vm in 1 2; do $BIN/orrery-vm --timeout 300 --cards 16 --memory 2G --allow-card-exit"
          " --faults 'dispatch first=1 die' -- bench_failure --cards || true; done > $OUT/deaths.txt;"
          " $BIN/bench_failure --times 32 < $OUT/deaths.txt"},
    Suite{"trace", "recording and going back", "$BIN/bench_trace $SIZES"},
    Suite{"step", "stepping in a recording", "$BIN/bench_step"},
    Suite{"prof", "tracing and counters of programs in a VM",
          "$BIN/bench_prof $BIN/orrery-vm --timeout 900 -- sh -c 'bench_prof_guest # orrery-prof'"},
    Suite{"page", "the page of a profile of a million slices", "$BIN/bench_prof_html"},
    Suite{"endtoend", "tasks end to end, beside StarPU, in a VM",
          "$BIN/orrery-vm --timeout 600 -- bench_end_to_end"},
    Suite{"tasks", "the task scheduler", "$BIN/bench_tasks"},
};

const std::array kFigures = {
    Figure{"empty job", "card", {}, "", "us", "NVMe read of 4 KiB, depth 1", {kOfYardstickAtMost, 0.018}},
    Figure{"job in a batch of 32", "card", {}, "", "us", "NVMe read, depth 32", {kFasterAtLeast, 25}},
    Figure{"small kernel", "card", {}, "", "us", "NVMe read of 4 KiB, depth 1", {kOfYardstickAtMost, 0.06}},
    Figure{"start of a graph of 100 kernels",
           "card",
           {},
           "",
           "us",
           "starts of 100 launches",
           {kFasterAtLeast, 5}},
    Figure{"graph of 100 kernels", "card", {}, "", "us", "100 launches"},
    Figure{"launch on a card at work, writes to registers", "card", {}, "", "", "", {kAtMost, 0}},
    Figure{"launch that wakes the card", "card", {}, "", "us", ""},
    Figure{"launch, instructions", "card", {}, "", "", ""},
    Figure{"launch beside an idle tool, instructions",
           "card",
           {},
           "",
           "",
           "without a tool",
           {kOfYardstickAtMost, 1}},
    Figure{"SGEMM 128^3", "card", {}, "", "ms", "", {kHostTime, 40}},
    Figure{"copy to card, pinned", "card", {64 * kKiB, kMiB, 64 * kMiB}, "B", "GB/s", "memcpy"},
    Figure{"copy from card, pinned", "card", {64 * kKiB, kMiB, 64 * kMiB}, "B", "GB/s", "memcpy"},
    Figure{"copy to card, pageable", "card", {64 * kKiB, kMiB, 64 * kMiB}, "B", "GB/s", "memcpy"},
    Figure{"copy from card, pageable", "card", {64 * kKiB, kMiB, 64 * kMiB}, "B", "GB/s", "memcpy"},
    // Arrays of 64 MiB. Where nothing is said of real time it is the card's time on CPUs beside a thread's.
    Figure{"saxpy", "compute", {}, "", "GB/s", "native", {kOfYardstickAtLeast, 0.45}},
    Figure{"triad", "compute", {}, "", "GB/s", "native", {kOfYardstickAtLeast, 0.45}},
    Figure{"reduction", "compute", {}, "", "GB/s", "native", {kOfYardstickAtLeast, 0.45}},
    Figure{"saxpy, real time", "compute", {}, "", "GB/s", "native"},
    Figure{"triad, real time", "compute", {}, "", "GB/s", "native"},
    Figure{"reduction, real time", "compute", {}, "", "GB/s", "native"},
    Figure{"saxpy, qemu-riscv64", "compute", {}, "", "GB/s", "native"},
    Figure{"triad, qemu-riscv64", "compute", {}, "", "GB/s", "native"},
    Figure{"reduction, qemu-riscv64", "compute", {}, "", "GB/s", "native"},
    Figure{"SGEMM 512^3", "compute", {}, "", "GF/s", "native, intrinsics", {kOfYardstickAtLeast, 0.25}},
    Figure{"SGEMM 512^3, real time", "compute", {}, "", "GF/s", "native, intrinsics"},
    Figure{"64 MiB to card, in a row", "compute", {}, "", "GB/s", "memcpy", {kOfYardstickAtLeast, 0.95}},
    Figure{"64 MiB from card, in a row", "compute", {}, "", "GB/s", "memcpy", {kOfYardstickAtLeast, 0.95}},
    Figure{"64 MiB to card, once", "compute", {}, "", "GB/s", "memcpy"},
    Figure{"64 MiB from card, once", "compute", {}, "", "GB/s", "memcpy"},
    Figure{
        "SGEMM 512^3, model time", "compute", {}, "", "GF/s", "the SKU's peak", {kOfYardstickAtLeast, 0.8}},
    Figure{"fused attention, model time",
           "compute",
           {},
           "",
           "GF/s",
           "the SKU's peak",
           {kOfYardstickAtLeast, 0.6}},
    Figure{"triad, model time", "compute", {}, "", "GB/s", "the SKU's peak", {kOfYardstickAtLeast, 0.9}},
    Figure{"card process, beside VRAM", "memory", {8, 64, 256}, "cores", "MiB", "", {kAtMost, 100, kMost}},
    Figure{"card process with 4 threads, beside VRAM",
           "memory",
           {8, 64, 256},
           "cores",
           "MiB",
           "",
           {kAtMost, 100, kMost}},
    // The goal is for long runs.
    Figure{"interpreter",
           "core",
           {100, 1000, 10'000'000},
           "instr.",
           "MIPS",
           "Unicorn, counting",
           {kOfYardstickAtLeast, 7.5, kMedian, 10'000'000}},
    Figure{"interpreter, to the end", "core", {}, "", "MIPS", "Unicorn, running free"},
    Figure{"copy engine, to card", "engines", {64 * kMiB}, "B", "GB/s", "memcpy", {kOfYardstickAtLeast, 0.9}},
    Figure{
        "copy engine, from card", "engines", {64 * kMiB}, "B", "GB/s", "memcpy", {kOfYardstickAtLeast, 0.9}},
    // A fifth of what it took before decoded code was kept over launches (1 item: 14.4 us).
    Figure{
        "launch of a small kernel", "launches", {1, 8, 32}, "items", "us", "", {kHostTime, 2.9, kMedian, 1}},
    Figure{"empty job, card alone", "jobs", {}, "", "us", ""},
    Figure{"small kernel, card alone", "jobs", {}, "", "us", ""},
    Figure{"kernel, long items", "engines", {}, "", "MIPS", ""},
    Figure{"kernel, short items", "engines", {}, "", "MIPS", ""},
    Figure{"kernel, histogram", "engines", {}, "", "MIPS", ""},
    // 1: races, 2: memory (emulator/api/checks.h).
    Figure{"checked: scalar code in registers", "checks", {1, 2}, "check", "/s", "unchecked"},
    Figure{"checked: scalar code with a stack, and memory", "checks", {1, 2}, "check", "/s", "unchecked"},
    Figure{"checked: vector code in registers", "checks", {1, 2}, "check", "/s", "unchecked"},
    Figure{"checked: vector stream, a = b + c", "checks", {1, 2}, "check", "/s", "unchecked"},
    Figure{"memory of a check", "checks", {1}, "check", "B", "of what was touched", {kOfYardstickAtMost, 4}},
    of_threads("groups, scalar code in registers", kThreadsGoal),
    of_threads("groups, scalar code in registers, CPU time"),
    of_threads("groups, scalar code with a stack, and memory", kThreadsGoal),
    of_threads("groups, scalar code with a stack, and memory, CPU time"),
    of_threads("groups, vector code in registers", kThreadsGoal),
    of_threads("groups, vector code in registers, CPU time"),
    of_threads("groups, product of two matrices", kThreadsGoal),
    of_threads("groups, product of two matrices, CPU time"),
    of_threads("groups, vector stream: a = b + c", kThreadsGoal),
    of_threads("groups, vector stream: a = b + c, CPU time"),
    Figure{"make run", "run", {}, "", "s", "", {kHostTime, 20}},
    Figure{"boot to first result", "boot", {}, "", "s", "", {kHostTime, 10}},
    Figure{"trap, told to its stream", "failure", {}, "", "ms", "", {kHostTime, 100, kP95}},
    Figure{"trap, told to a dependent", "failure", {}, "", "ms", "", {kHostTime, 100, kP95}},
    Figure{"process killed, told", "failure", {}, "", "ms", "", {kHostTime, 100, kP95}},
    Figure{"link cut, told", "link", {}, "", "ms", "", {kHostTime, 100, kP95}},
    of_link("copy to a neighbour, model time", {kOfYardstickAtLeast, 0.95}),
    of_link("copies to a neighbour in a row, model time"),
    of_link("copies to a neighbour, two at a time, model time", {kOfYardstickAtLeast, 0.95}),
    of_link("copies both ways, model time"),
    Figure{"signal to a neighbour, model time", "p2p", {}, "", "ns", "latency of the link"},
    of_links("copies over 3 links, model time", "p2p_chain", 0.9),
    of_links("3 to 1, model time", "p2p_chain", 0.95),
    of_shares("3 to 1, least share", "p2p_chain", 3, kOfYardstickAtLeast),
    of_shares("3 to 1, largest share", "p2p_chain", 3, kOfYardstickAtMost),
    of_links("orrery-0: copies over 3 links, model time", "p2p_chain_0", 0.9),
    of_links("orrery-0: 3 to 1, model time", "p2p_chain_0", 0.95),
    of_shares("orrery-0: 3 to 1, least share", "p2p_chain_0", 3, kOfYardstickAtLeast),
    of_shares("orrery-0: 3 to 1, largest share", "p2p_chain_0", 3, kOfYardstickAtMost),
    of_links("all to all, model time", "p2p_mesh", 0.9),
    of_links("all to all, real time, model time", "p2p_mesh", 0.9),
    of_links("7 to 1, model time", "p2p_star", 0.95),
    of_shares("7 to 1, least share", "p2p_star", 7, kOfYardstickAtLeast),
    of_shares("7 to 1, largest share", "p2p_star", 7, kOfYardstickAtMost),
    of_graph("graph on a chain, costs unknown", {2, 4, 8}),
    of_graph("graph on a chain, costs known", {2, 4, 8}),
    of_graph("graph on a ring, costs unknown", {4, 8}),
    of_graph("graph on a ring, costs known", {4, 8}),
    of_graph("graph on a mesh, costs unknown", {4, 8}),
    of_graph("graph on a mesh, costs known", {4, 8}),
    // It is off by default unless it costs less than 15 %.
    of_step("histogram, in step"),
    of_step("histogram, in step, real time"),
    of_step("cholesky, in step"),
    of_step("cholesky, in step, real time"),
    of_step("halo, in step"),
    of_step("halo, in step, real time"),
    of_step("pipeline, in step"),
    of_step("pipeline, in step, real time"),
    Figure{
        "link message, one way", "message", {}, "", "ns", "the same in a bare ring", {kOfYardstickAtMost, 2}},
    Figure{"copy to a neighbour, host time",
           "p2p_host",
           {64 * kMiB},
           "B",
           "GB/s",
           "memcpy",
           {kOfYardstickAtLeast, 0.4}},
    Figure{"card killed, told", "death", {}, "", "ms", "", {kHostTime, 100, kP95}},
    Figure{"recording, busy core", "trace", {}, "", "x", "", {kAtMost, 1.05}},
    // With the writer's CPU and what is waited for it: shown, as it is the machine's second CPU's too.
    Figure{"recording, busy core, real time", "trace", {}, "", "x", ""},
    Figure{"recording, firmware, real time", "trace", {}, "", "x", ""},
    Figure{"recording, firmware", "trace", {}, "", "x", "", {kAtMost, 1.10}},
    // It is on by default: no dearer than recording.
    Figure{"flight recorder, busy core", "trace", {}, "", "x", ""},
    Figure{"flight recorder, firmware", "trace", {}, "", "x", "", {kAtMost, 1.10}},
    Figure{"flight recorder, busy core, of recording to a file", "trace", {}, "", "x", "", {kAtMost, 1.02}},
    Figure{"flight recorder, firmware, of recording to a file", "trace", {}, "", "x", "", {kAtMost, 1.02}},
    Figure{"opening, busy core", "trace", {10}, "s", "s", "", {kHostTime, 5}},
    Figure{"step back, busy core", "trace", {10}, "s", "ms", "", {kHostTime, 50, kMost}},
    Figure{"step back, firmware", "trace", {}, "", "ms", "", {kHostTime, 50, kMost}},
    Figure{"opening a scenario", "step", {}, "", "s", "", {kHostTime, 5}},
    Figure{"back insn", "step", {}, "", "ms", "", {kHostTime, 50, kMost}},
    Figure{"back event", "step", {}, "", "ms", "", {kHostTime, 50, kMost}},
    Figure{"back decision", "step", {}, "", "ms", "", {kHostTime, 50, kMost}},
    Figure{"goto anywhere", "step", {}, "", "ms", "", {kHostTime, 50, kMost}},
    Figure{"step decision", "step", {}, "", "ms", ""},
    Figure{"why", "step", {}, "", "ms", ""},
    // Of the same work without: time on CPUs of QEMU and the card together.
    Figure{"mix, activity tracing", "prof", {}, "", "x", "", {kAtMost, 1.05}},
    Figure{"mix, activity tracing, real time", "prof", {}, "", "x", ""},
    Figure{"mix, counters of all work", "prof", {}, "", "x", "", {kAtMost, 1.02}},
    Figure{"mix, counters of all work, real time", "prof", {}, "", "x", ""},
    Figure{"mix, activity tracing with counters", "prof", {}, "", "x", ""},
    Figure{"mix, activity tracing with counters, real time", "prof", {}, "", "x", ""},
    Figure{"mix, runs of which records were lost", "prof", {}, "", "", "", {kAtMost, 0, kMost}},
    // Nothing but launches of a kernel of 800 instructions: what a call, and a record, costs at most.
    Figure{"storm, activity tracing", "prof", {}, "", "x", ""},
    Figure{"storm, activity tracing, real time", "prof", {}, "", "x", ""},
    Figure{"storm, counters of all work", "prof", {}, "", "x", ""},
    Figure{"storm, counters of all work, real time", "prof", {}, "", "x", ""},
    Figure{"storm, activity tracing with counters", "prof", {}, "", "x", ""},
    Figure{"storm, activity tracing with counters, real time", "prof", {}, "", "x", ""},
    Figure{"storm, runs of which records were lost", "prof", {}, "", "", ""},
    // A million a second.
    Figure{"a record of a full ring, told", "prof", {}, "", "ns", "", {kHostTime, 1000}},
    Figure{"a record of a full ring, told, lost", "prof", {}, "", "", "", {kAtMost, 0, kMost}},
    Figure{"a record of a full ring, recorded", "prof", {}, "", "ns", ""},
    Figure{"a record of a full ring, recorded, lost", "prof", {}, "", "", "", {kAtMost, 0, kMost}},
    // On the host, with a card that does nothing else: from record to record.
    Figure{"records while others come, a million a second", "prof", {}, "", "ns", "", {kAtMost, 1010}},
    Figure{"records while others come, a million a second, time on a CPU", "prof", {}, "", "ns", ""},
    Figure{
        "records while others come, a million a second, lost", "prof", {}, "", "", "", {kAtMost, 0, kMost}},
    Figure{"records while others come, a million a second, waiting at most", "prof", {}, "", "", ""},
    Figure{"records while others come, as many as can be", "prof", {}, "", "ns", ""},
    Figure{"records while others come, as many as can be, time on a CPU", "prof", {}, "", "ns", ""},
    Figure{"records while others come, as many as can be, lost", "prof", {}, "", "", ""},
    Figure{"records while others come, as many as can be, waiting at most", "prof", {}, "", "", ""},
    Figure{"making the page", "page", {}, "", "s", ""},
    Figure{"opening the page", "page", {}, "", "s", "", {kHostTime, 3, kMost}},
    Figure{"frames, everything in sight, moved", "page", {}, "", "ms", "", {kHostTime, 50, kP95}},
    Figure{"frames, zoomed in and out", "page", {}, "", "ms", "", {kHostTime, 50, kP95}},
    Figure{"frames, a fiftieth in sight, moved", "page", {}, "", "ms", "", {kHostTime, 50, kP95}},
    Figure{"task end to end, on host", "endtoend", {1, 32}, "chains", "us", "starpu_task_*, on host"},
    Figure{"task end to end, on card", "endtoend", {1, 32}, "chains", "us", "starpu_task_*, on host"},
    Figure{"task, planned: cholesky", "tasks", {1, 2, 8}, "cards", "ns", "ten inserts under a lock"},
    Figure{"task, planned: layered", "tasks", {1, 2, 8}, "cards", "ns", "ten inserts under a lock"},
    Figure{"task, planned: fork-join", "tasks", {1, 2, 8}, "cards", "ns", "ten inserts under a lock"},
};

}  // namespace

std::span<const Figure> figures() {
    return kFigures;
}

std::span<const Suite> suites() {
    return kSuites;
}

std::set<std::string_view> suites_that_match(const std::string& name) {
    if (const auto suite = std::ranges::find(kSuites, name, &Suite::name); suite != kSuites.end())
        return {suite->name};
    const std::regex wanted(name);
    const auto matches = [&](std::string_view one) {
        return std::regex_search(one.begin(), one.end(), wanted);
    };
    std::set<std::string_view> found;
    for (const Figure& figure : figures()) {
        if (matches(figure.name) || matches(figure.suite)) found.insert(figure.suite);
    }
    return found;
}

}  // namespace orrery::bench
