#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "tools/prof/ranges.h"
#include "tools/prof/report_parts.h"
#include "tools/prof/show.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;

// What cards counted for what was submitted in each range: sums, and rates by the time of its kernels.
std::string ranges_text(const Activity& activity, std::size_t top) {
    const std::vector<NamedRange> ranges = named_ranges(activity);
    std::vector<text::Table::Head> heads = {{"ranges"}, {"count", Align::kRight}};
    add_sum_heads(heads,
                  std::ranges::any_of(ranges, [](const NamedRange& one) { return one.sums.counted > 0; }));
    text::Table table(std::move(heads));
    for (const NamedRange& one : std::span(ranges).first(std::min(ranges.size(), top))) {
        std::vector<std::string> cells = {plain(one.name), text::grouped(one.count)};
        add_sum_cells(cells, one.sums);
        table.row(std::move(cells));
    }
    if (table.empty()) return "";
    std::string text = "\n" + table.text("  ");
    if (ranges.size() > top) text += fmt::format("  and {} more (--top N)\n", ranges.size() - top);
    return text;
}

std::string calls_text(const Sums& sums, std::size_t top) {
    text::Table table({{"calls, host time"},
                       {"count", Align::kRight},
                       {"total", Align::kRight},
                       {"mean", Align::kRight},
                       {"longest", Align::kRight},
                       {"errors", Align::kRight}});
    for (const CallSums& one : std::span(sums.calls).first(std::min(sums.calls.size(), top))) {
        table.row({plain(one.name), text::grouped(one.totals.count), text::duration(one.totals.total_ps),
                   text::duration(one.totals.mean_ps()), text::duration(one.totals.longest_ps),
                   one.totals.failed == 0 ? "" : text::grouped(one.totals.failed)});
    }
    if (table.empty()) return "";
    std::string text = "\n" + table.text("  ");
    if (sums.calls.size() > top) text += fmt::format("  and {} more (--top N)\n", sums.calls.size() - top);
    return text;
}

std::string steps_text(const Activity& activity, std::size_t top) {
    const auto all = step_sums(activity);
    text::Table table({{"steps within calls"},
                       {"what"},
                       {"of"},
                       {"count", Align::kRight},
                       {"total", Align::kRight},
                       {"mean", Align::kRight},
                       {"longest", Align::kRight}});
    for (const StepSums& one : std::span(all).first(std::min(all.size(), top))) {
        table.row({plain(one.name), name_of(one.kind), one.owner + (one.host ? ", host" : ""),
                   text::grouped(one.count), text::duration(one.total_ps),
                   text::duration(one.timed == 0 ? 0 : one.total_ps / one.timed),
                   text::duration(one.longest_ps)});
    }
    if (table.empty()) return "";
    std::string text = "\n" + table.text("  ");
    if (all.size() > top) text += fmt::format("  and {} more (--top N)\n", all.size() - top);
    return text;
}

std::string lasts_text(const Activity& activity, const BarrierLasts& lasts) {
    const std::vector<LastRank> ranks = last_ranks(activity, lasts);
    const bool several =
        std::ranges::any_of(ranks, [&](const LastRank& one) { return one.owner != ranks.front().owner; });
    std::string text;
    for (const LastRank& one : ranks) {
        text += fmt::format("{} rank {}{} ({})", text.empty() ? "" : ",", one.rank,
                            several ? " of " + one.owner : "", text::grouped(one.count));
    }
    return text.empty() ? "" : "  last at its barriers in streams:" + text + "\n";
}

std::string process_text(const Model& model, const Activity& activity, const OfAll& of_all, std::size_t top) {
    const Sums sums = sums_of(activity);
    const Process& process = *activity.process;
    std::string text = process_title(model, activity);
    if (sums.working_ns > 0) {
        text += fmt::format(
            "  {} of host time from the first submission to the last wait, in {} of it nothing was "
            "submitted\n",
            text::duration(sums.working_ns * 1000),
            of_share(static_cast<double>(sums.nothing_submitted_ns) / static_cast<double>(sums.working_ns)));
    }
    if (activity.host_memory_peak > 0)
        text += fmt::format("  pinned memory: {} at most\n", bytes_text(activity.host_memory_peak));
    for (const DeviceSums& device : sums.devices)
        text += device_text(activity, device, of_all.traffic, top);
    text += steps_text(activity, top) + lasts_text(activity, of_all.lasts);
    text += ranges_text(activity, top) + calls_text(sums, top);
    if (sums.devices.empty() && sums.calls.empty()) text += "  nothing was recorded\n";
    return text + missing_text(process);
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
    static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit)
        value /= 1024;
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string report_text(const Model& model, std::size_t top) {
    std::string text = machines_text(model);
    const OfAll of_all(model);
    for (const Activity& activity : model.processes)
        text += (text.empty() ? "" : "\n") + process_text(model, activity, of_all, top);
    return text;
}

}  // namespace orrery::prof
