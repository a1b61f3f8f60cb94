#include "tests/vm/prof/planted/cases.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace planted {

void compute_floats();
void compute_integers();
void compute_scalar();
void vram_triad();
void vram_sum();
void latency_chase();
void latency_search();
void vram_gather();
void launch_small_kernels();
void launch_relay();
void host_between();
void host_allocates();
void copy_in_one_stream();
void copy_behind_events();
void imbalance_one_long();
void imbalance_tail();
void preemption_by_urgent();
void preemption_by_two();
void quota_quarter();
void quota_tenth();
void link_copies();
void link_kernel();
void rank_relay();
void rank_in_step();
void none_nothing_done();
void none_pipeline();
void none_mixture();
void none_one_short_kernel();
void none_in_step();

namespace {

constexpr Case kCases[] = {
    {"compute_floats", "compute", "multiply-adds in registers on all cores", compute_floats, 1},
    {"compute_integers", "compute", "whole numbers only, so no FLOP at all", compute_integers, 1},
    {"compute_scalar", "compute", "scalar code on all cores", compute_scalar, 1},
    {"vram_triad", "vram", "twelve bytes for each multiply-add", vram_triad, 1},
    {"vram_sum", "vram", "reads 16 MiB and adds them up", vram_sum, 1},
    {"latency_chase", "latency", "each load waits for the one before", latency_chase, 1},
    {"latency_search", "latency", "the same, and some scalar code for each", latency_search, 1},
    {"vram_gather", "vram", "lines of which a sixteenth is used", vram_gather, 1},
    {"launch_small_kernels", "launch", "400 kernels of less than a microsecond", launch_small_kernels, 1},
    {"launch_relay", "launch", "150 small kernels, each of which waits for the other stream", launch_relay, 1},
    {"host_between", "host", "looks at each result, and works 8 ms before the next launch", host_between, 1},
    {"host_allocates", "host", "allocates and frees around each kernel", host_allocates, 1},
    {"copy_in_one_stream", "copy", "copies and kernels of one length, one after the other", copy_in_one_stream, 1},
    {"copy_behind_events", "copy", "two streams whose events keep them apart", copy_behind_events, 1},
    {"imbalance_one_long", "imbalance", "one work-group has twelve times the others' work", imbalance_one_long, 1},
    {"imbalance_tail", "imbalance", "one work-group more than cores", imbalance_tail, 1},
    {"preemption_by_urgent", "preemption", "urgent kernels all the time", preemption_by_urgent, 1},
    {"preemption_by_two", "preemption", "two urgent streams in turn", preemption_by_two, 1},
    {"quota_quarter", "quota", "a quarter of the card", quota_quarter, 1},
    {"quota_tenth", "quota", "a tenth of the card", quota_tenth, 1},
    {"link_copies", "link", "8 MiB at a time to the other card", link_copies, 2},
    {"link_kernel", "link", "a kernel reads its input from the other card", link_kernel, 2},
    {"rank_relay", "rank", "card 1 waits for what card 0 makes", rank_relay, 2},
    {"rank_in_step", "rank", "barriers, and card 1 has six times the work", rank_in_step, 2},
    {"none_nothing_done", "none", "allocates, and launches nothing", none_nothing_done, 1},
    {"none_pipeline", "none", "copies there and back and kernels side by side, all of them busy", none_pipeline, 1},
    {"none_mixture", "none", "two kinds of kernels at two limits, half of the time each", none_mixture, 1},
    {"none_one_short_kernel", "none", "one kernel of some microseconds", none_one_short_kernel, 1},
    {"none_in_step", "none", "barriers between cards that have the same to do", none_in_step, 2},
};

}  // namespace

const Case* find(std::string_view name) {
    const auto* const found = std::ranges::find(kCases, name, &Case::name);
    return found == std::end(kCases) ? nullptr : found;
}

void list() {
    for (const Case& one : kCases)
        fmt::print("{} {} {}\n", one.name, one.limit, one.cards);
}

}  // namespace planted
