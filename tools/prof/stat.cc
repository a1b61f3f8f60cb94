#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tools/prof/ranges.h"
#include "tools/prof/show.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;

struct Sum {
    std::uint64_t count = 0, errors = 0, total_ps = 0, longest_ps = 0;
    void add(std::uint64_t ps, bool error) {
        ++count;
        errors += error ? 1 : 0;
        total_ps += ps;
        longest_ps = std::max(longest_ps, ps);
    }
};
using Sums = std::map<std::string, Sum>;

std::uint64_t ps(std::uint64_t ns) {
    return ns > text::kNever / 1000 ? text::kNever : ns * 1000;
}

std::string table(const Sums& sums, const std::string& title, bool errors) {
    std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
    std::ranges::sort(rows, std::greater{},
                      [](const auto& row) { return std::pair(row.second.total_ps, row.first); });
    std::vector<text::Table::Head> heads = {{title},
                                            {"count", Align::kRight},
                                            {"total", Align::kRight},
                                            {"mean", Align::kRight},
                                            {"longest", Align::kRight}};
    if (errors) heads.push_back({"errors", Align::kRight});
    text::Table shown(std::move(heads));
    for (const auto& [name, sum] : rows) {
        std::vector<std::string> cells = {name, text::grouped(sum.count), text::duration(sum.total_ps),
                                          text::duration(sum.total_ps / sum.count),
                                          text::duration(sum.longest_ps)};
        if (errors) cells.push_back(sum.errors == 0 ? "" : text::grouped(sum.errors));
        shown.row(std::move(cells));
    }
    return shown.text("  ");
}

// What cards did for what was submitted in each range.
std::string ranges_table(const Activity& activity) {
    text::Table shown({{"range, on cards"},
                       {"kernels", Align::kRight},
                       {"their time", Align::kRight},
                       {"copies", Align::kRight},
                       {"their time", Align::kRight}});
    for (const NamedRange& one : named_ranges(activity)) {
        const RangeSums& sums = one.sums;
        shown.row({plain(one.name), text::grouped(sums.kernels), text::duration(sums.kernel_ps),
                   text::grouped(sums.copies), text::duration(sums.copy_ps)});
    }
    return shown.text("  ");
}

std::string process_text(const Model& model, const Activity& activity) {
    const Process& process = *activity.process;
    Sums calls, ranges, marks;
    for (const CallRecord& call : process.calls)
        calls[plain(process.text(call.head.text))].add(ps(call.end_ns - call.begin_ns), call.error != 0);
    const auto name = [&](std::uint32_t text, std::uint32_t domain) {
        const std::string own = plain(process.text(text));
        return domain == 0 ? own : plain(process.text(domain)) + ": " + own;
    };
    for (const Span& span : activity.spans)
        ranges[name(span.text, span.domain)].add(ps(span.end_ns - span.begin_ns), false);
    std::size_t moments = 0;
    for (const auto& range : process.ranges)
        moments += range.type == Type::kMark ? 1 : 0;
    std::map<std::uint32_t, Sums> devices;
    std::map<std::tuple<std::uint32_t, std::size_t, std::uint64_t>, std::pair<Sum*, std::uint64_t>> parts;
    for (const Work& work : activity.work) {
        Sum& sum = devices[work.record->device][plain(activity.name(work))];
        const std::tuple run(work.record->device, work.stream, work.record->index);
        // A run that was preempted is several parts, of which the last one says how it ended.
        if (work.outcome() == Outcome::kPreempted) {
            parts[run] = {&sum, parts[run].second + work.ps()};
            continue;
        }
        const auto before = parts.extract(run);
        sum.add(work.ps() + (before.empty() ? 0 : before.mapped().second),
                work.outcome() == Outcome::kFailed);
    }
    for (const auto& [run, part] : parts)
        part.first->add(part.second, false);
    std::string text = process_title(model, activity);
    text += table(calls, "call", true) + table(ranges, "range", false);
    text += ranges_table(activity);
    for (const auto& [device, work] : devices)
        text += table(work, fmt::format("device {}, model time", device), true);
    if (calls.empty() && ranges.empty() && devices.empty()) text += "  nothing was recorded\n";
    if (moments > 0) text += fmt::format("  markers: {}\n", text::grouped(moments));
    return text + missing_text(process);
}

}  // namespace

std::string plain(std::string_view text) {
    std::string good(text);
    for (char& c : good) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return good;
}

std::string missing_text(const Process& process) {
    std::string text;
    if (process.lost > 0)
        text += fmt::format("  {} records were lost: record with a larger --limit\n",
                            text::grouped(process.lost));
    for (const std::uint32_t device : process.lost_work)
        text += fmt::format("  some work of device {} was told too late, and is not here\n", device);
    for (const auto& [device, lost] : process.lost_samples)
        text += fmt::format("  {} samples of device {} were lost\n", text::grouped(lost.counters + lost.pcs),
                            device);
    if (!process.ended) text += "  it did not end by exit(): a call in which it was is not here\n";
    return text;
}

std::string process_title(const Model& model, const Activity& activity) {
    const Process& process = *activity.process;
    const std::string machine = model.profile.machines.size() > 1
                                    ? fmt::format(" of machine {}", process.machine_at + 1)
                                    : std::string();
    return fmt::format("process {}{}: {}\n", process.pid, machine, plain(process.command));
}

std::string machines_text(const Model& model) {
    const std::vector<Machine>& machines = model.profile.machines;
    std::string text;
    for (std::size_t i = 1; i < machines.size(); ++i) {
        text += machines[i].aligned
                    ? fmt::format("machine {}: its host's clock is known to {} by that of machine 1\n", i + 1,
                                  text::duration(ps(machines[i].offset.error_ns)))
                    : fmt::format(
                          "machine {}: nothing says how its host's clock is to that of machine 1 (cards "
                          "that do not keep step)\n",
                          i + 1);
    }
    return text;
}

std::string stat_text(const Model& model) {
    std::string text = machines_text(model);
    for (const Activity& activity : model.processes)
        text += (text.empty() ? "" : "\n") + process_text(model, activity);
    return text;
}

}  // namespace orrery::prof
