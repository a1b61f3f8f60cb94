#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/prof/counter_fields.h"
#include "tools/prof/counter_series.h"
#include "tools/prof/counts.h"
#include "tools/prof/ranges.h"
#include "tools/prof/show.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;
constexpr const char* kClock = "time_ps";  // the counter that all rates are of

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
        const WorkSums& sums = one.sums;
        shown.row({plain(one.name), text::grouped(sums.kernels), text::duration(sums.kernel_ps),
                   text::grouped(sums.copies), text::duration(sums.copy_ps)});
    }
    return shown.text("  ");
}

std::string unknown_text(std::size_t counters) {
    return counters == 0 ? "" : fmt::format("    and {} that are not known\n", counters);
}

// Of the whole card, between the first and the last sample of each set of counters.
std::string samples_text(const Activity& activity) {
    const Process& process = *activity.process;
    const auto sets = samples_of_sets(process);
    std::string text;
    for (std::size_t number = 0; number < sets.size(); ++number) {
        const Process::SampleSet& set = process.sample_sets[number];
        if (sets[number].size() < 2) continue;
        const Process::Sample &first = *sets[number].front(), &last = *sets[number].back();
        const DeviceModel* const device = activity.device(set.device);
        const std::uint64_t passed = last.time_ps - first.time_ps;
        std::vector<Count> counts;
        const auto ups = went_up(process, set, first, last);
        std::size_t unknown = 0;
        for (std::size_t i = 0; i < ups.size(); ++i) {
            const std::string name(process.text(set.counters[i].name));
            if (name == kClock) continue;
            if (ups[i])
                counts.emplace_back(name, std::string(process.text(set.counters[i].unit)), *ups[i]);
            else
                ++unknown;
        }
        // What rates are of is known whether it is sampled or not.
        counts.emplace_back(kClock, "ps", passed);
        text += fmt::format("\n  device {}: the card's counters in {} of model time, by {} samples\n",
                            set.device, text::duration(passed), text::grouped(sets[number].size()));
        text += counts_text(counts, device == nullptr || device->card == nullptr
                                        ? 0
                                        : static_cast<double>(device->card->vector_hz));
        text += unknown_text(unknown);
    }
    return text;
}

// Of each card's kernels, copies and fills of this process, and nobody else's.
std::string counted_text(const Activity& activity) {
    std::string text;
    for (const DeviceModel& device : activity.devices) {
        std::array<std::uint64_t, kCounterFields.size()> sums{};
        std::uint64_t kernels = 0, others = 0, copying = 0;
        std::size_t known = sums.size();  // the first so many, of all of it
        for (const std::uint32_t i : device.work) {
            const Work& work = activity.work[i];
            if (work.counters == nullptr) continue;
            const bool kernel = work.operation() == Operation::kKernel;
            (kernel ? kernels : others) += work.runs();
            if (!kernel) copying += work.counters->busy_ps;
            known = std::min(known, known_fields(*work.counters));
            for (std::size_t field = 0; field < sums.size(); ++field)
                sums[field] += work.counters->*kCounterFields[field].value;
        }
        if (kernels + others == 0) continue;
        std::vector<Count> counts;
        for (std::size_t field = 0; field < known; ++field) {
            const CounterField& own = kCounterFields[field];
            const bool busy = own.value == &WorkCountersRecord::busy_ps;
            counts.emplace_back(own.counter, own.unit, busy ? sums[field] - copying : sums[field]);
        }
        if (known > 0) counts.emplace_back("copy_busy_ps", "ps", copying);
        counts.emplace_back("vector_jobs", "descriptors", kernels);
        text += fmt::format("\n  device {}: counted for its {} kernels, {} copies and fills\n", device.number,
                            text::grouped(kernels), text::grouped(others));
        text += counts_text(counts, device.card == nullptr ? 0 : static_cast<double>(device.card->vector_hz));
        text += unknown_text(sums.size() - known);
    }
    return text;
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
    text += samples_text(activity) + counted_text(activity);
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
    for (const auto& [device, count] : process.lost_work)
        text += count == 0
                    ? fmt::format("  some work of device {} was told too late, and is not here\n", device)
                    : fmt::format(
                          "  {} kernels, copies or fills of device {} were told too late, and are not here\n",
                          text::grouped(count), device);
    for (const auto& [device, lost] : process.lost_samples)
        text += fmt::format("  {} samples of device {} were lost\n", text::grouped(lost.counters + lost.pcs),
                            device);
    if (process.cut)
        text +=
            fmt::format("  its part was spoilt from byte {} on: what it recorded behind that is not here\n",
                        text::grouped(process.cut->at));
    if (!process.ended)
        text += "  it did not end by exit(), or had not when this was saved: what it did last is not here\n";
    return text;
}

std::string of_machine(const Model& model, const Process& process) {
    return model.profile.machines.size() < 2 ? "" : fmt::format(" of machine {}", process.machine_at + 1);
}

std::string process_title(const Model& model, const Activity& activity) {
    const Process& process = *activity.process;
    return fmt::format("process {}{}: {}\n", process.pid, of_machine(model, process), plain(process.command));
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
