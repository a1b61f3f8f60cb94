#include "tests/vm/prof/planted/cases.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
void preemption_by_share();
void quota_quarter();
void quota_tenth();
void link_copies();
void link_kernel();
void rank_relay();
void rank_in_step();
void none_nothing_done();
void none_pipeline();
void none_at_peak();
void none_one_short_kernel();
void none_in_step();
void vram_columns();
void vram_swap_by_copy();
void latency_tickets();
void latency_host_table();
void launch_small_copies();
void host_pageable_input();
void host_asks_each_step();
void copy_behind_null_stream();
void imbalance_few_groups();
void imbalance_buckets();
void preemption_by_gangs();
void quota_beside_another();
void link_halo();
void rank_full_buffers();
void rank_with_border();
void none_two_halves();
void none_matrices();
void none_halo_hidden();
void none_beside_quota();

namespace {

constexpr Case kCases[] = {
    {"compute_floats", "compute", "multiply-adds in registers on all cores", compute_floats, 0},
    {"compute_integers", "compute", "whole numbers only, so no FLOP at all", compute_integers, 0},
    {"compute_scalar", "compute", "scalar code on all cores", compute_scalar, 0},
    {"vram_triad", "vram_bandwidth", "twelve bytes for each multiply-add", vram_triad, 0},
    {"vram_sum", "vram_bandwidth", "reads 16 MiB and adds them up", vram_sum, 0},
    {"latency_chase", "latency", "each load waits for the one before", latency_chase, 0},
    {"latency_search", "latency", "the same, and some scalar code for each", latency_search, 0},
    {"vram_gather", "vram_bandwidth", "lines of which a sixteenth is used", vram_gather, 0},
    {"launch_small_kernels", "launch", "400 kernels of less than a microsecond", launch_small_kernels, 0},
    {"launch_relay", "launch", "150 small kernels, each of which waits for the other stream", launch_relay,
     0},
    {"host_between", "host", "looks at each result, and works for longer before the next launch",
     host_between, 0},
    {"host_allocates", "host", "allocates and frees around each kernel", host_allocates, 0},
    {"copy_in_one_stream", "copy_not_overlapped", "copies and kernels of one length, one after the other",
     copy_in_one_stream, 0},
    {"copy_behind_events", "copy_not_overlapped", "two streams whose events keep them apart",
     copy_behind_events, 0},
    {"imbalance_one_long", "imbalance", "one work-group has twelve times the others' work",
     imbalance_one_long, 0},
    {"imbalance_tail", "imbalance", "one work-group more than cores", imbalance_tail, 0},
    {"preemption_by_urgent", "preemption", "another process has urgent kernels", preemption_by_urgent, 0},
    {"preemption_by_share", "preemption", "another process has a larger share", preemption_by_share, 0},
    {"quota_quarter", "quota", "a quarter of the card", quota_quarter, 0},
    {"quota_tenth", "quota", "a tenth of the card", quota_tenth, 0},
    {"link_copies", "link", "8 MiB at a time to the other card", link_copies, 0},
    {"link_kernel", "link", "a kernel reads its input from the other card", link_kernel, 0},
    {"rank_relay", "other_card", "card 1 waits for what card 0 makes", rank_relay, 1},
    {"rank_in_step", "rank", "barriers, and card 1 has six times the work", rank_in_step, 0,
     "waiting for rank 1"},
    {"none_nothing_done", "none", "allocates, and launches nothing", none_nothing_done, 0},
    {"none_pipeline", "none", "copies there and back and kernels side by side, all of them busy",
     none_pipeline, 0},
    {"none_at_peak", "none", "one kernel after the other at the peak", none_at_peak, 0},
    {"none_one_short_kernel", "none", "one kernel of some microseconds", none_one_short_kernel, 0},
    {"none_in_step", "none", "barriers between cards that have the same to do", none_in_step, 0},
    {"vram_columns", "vram_bandwidth", "a matrix by columns, which do not fit into the cache", vram_columns, 0},
    {"vram_swap_by_copy", "vram_bandwidth", "copies results back into the input instead of swapping pointers", vram_swap_by_copy, 0},
    {"latency_tickets", "latency", "atomics on one counter, each of which is waited for", latency_tickets, 0},
    {"latency_host_table", "latency", "entry by entry through a table in the host's memory", latency_host_table, 0},
    {"launch_small_copies", "launch", "2.4 MiB in pieces of 4 KiB", launch_small_copies, 0},
    {"host_pageable_input", "host", "waits for each copy from ordinary memory, which the host copies itself", host_pageable_input, 0},
    {"host_asks_each_step", "host", "looks after each step of 2 us whether that was the last", host_asks_each_step, 0},
    {"copy_behind_null_stream", "copy_not_overlapped", "four streams, all of them behind the null stream", copy_behind_null_stream, 0},
    {"imbalance_few_groups", "imbalance", "three groups on eight cores, and a quota that never counts", imbalance_few_groups, 0},
    {"imbalance_buckets", "imbalance", "sorts buckets of which two have most", imbalance_buckets, 0},
    {"preemption_by_gangs", "preemption", "another process has kernels over both cards", preemption_by_gangs, 0},
    {"quota_beside_another", "quota", "a fifth of the card, and another process takes the rest", quota_beside_another, 0},
    {"link_halo", "link", "what neighbours need takes longer than their kernels", link_halo, 0},
    {"rank_full_buffers", "other_card", "card 0 waits until card 1 has used a buffer", rank_full_buffers, 0},
    {"rank_with_border", "rank", "barriers, and card 0 has four times the work", rank_with_border, 1, "waiting for rank 0"},
    {"none_two_halves", "none", "two streams, each with half of the cores", none_two_halves, 0},
    {"none_matrices", "none", "a product of matrices out of registers", none_matrices, 0},
    {"none_halo_hidden", "none", "what neighbours need comes while they work", none_halo_hidden, 0},
    {"none_beside_quota", "none", "another process may have a twentieth of the card", none_beside_quota, 0},
};

}  // namespace

const Case* find(std::string_view name) {
    const auto* const found = std::ranges::find(kCases, name, &Case::name);
    return found == std::end(kCases) ? nullptr : found;
}

std::string judge(const Case& one, std::istream& explained) {
    const auto json = nlohmann::json::parse(explained);
    const std::string_view limit = one.limit;
    std::string said;
    for (const auto& process : json.at("processes"))
        for (const auto& device : process.at("devices")) {
            if (device.at("device") != one.device) continue;
            const auto& findings = device.at("findings");
            // What is at its bound limits, too, where the program has nothing else.
            const auto more = std::ranges::find_if(findings, [](const auto& f) { return !f.at("at_bound"); });
            const std::string_view verdict = device.at("verdict").get_ref<const std::string&>();
            const auto is_it = [&](const auto& finding) {
                return finding.at("rule") == limit &&
                       finding.at("title").template get_ref<const std::string&>().find(one.title) !=
                           std::string::npos;
            };
            if (limit == "none"
                    ? verdict.starts_with("nothing") || verdict.starts_with("too short")
                    : (!findings.empty() && is_it(findings[0])) || (more != findings.end() && is_it(*more)))
                return "";
            said += fmt::format(" {}", verdict);
        }
    return fmt::format("{} is {} ({}), and explain says:{}", one.name, limit, one.why, said);
}

void list() {
    for (const Case& one : kCases)
        fmt::print("{}\n", one.name);
}

}  // namespace planted
