#include "tools/prof/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "tools/prof/analysis.h"
#include "tools/prof/show.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;
using Json = nlohmann::ordered_json;
using Kind = Change::Kind;

constexpr double kSignificant = 0.01;

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::kKernel:
            return "kernel";
        case Kind::kCopy:
            return "copy";
        case Kind::kWait:
            return "wait";
        case Kind::kCall:
            break;
    }
    return "call";
}

using Samples = std::map<std::pair<Kind, std::string>, Change>;

void gather(const Activity& activity, Sample Change::* side, Samples& samples) {
    const auto add = [&](Kind kind, std::string name, std::uint64_t ps) {
        Change& change = samples[{kind, name}];
        change.kind = kind;
        change.name = std::move(name);
        (change.*side).values.push_back(static_cast<double>(ps));
    };
    KernelRuns runs;
    for (const Work& one : activity.work) {
        switch (one.operation()) {
            case Operation::kKernel:
                if (const KernelRuns::Run run = runs.add(one); run.done)
                    add(Kind::kKernel, std::string(activity.name(one)), run.ps);
                break;
            case Operation::kCopy:
                add(Kind::kCopy, copy_name(name_of(direction_of(*one.record)), one.reduces()), one.ps());
                break;
            case Operation::kFill:
                add(Kind::kCopy, "fill", one.ps());
                break;
            case Operation::kWait:
                add(Kind::kWait,
                    one.record->from_name == 0 ? "without a name"
                                               : std::string(activity.text(one.record->from_name)),
                    one.ps());
                break;
            case Operation::kOther:
                break;
        }
    }
    for (const CallRecord& call : activity.process->calls)
        add(Kind::kCall, std::string(activity.text(call.head.text)), (call.end_ns - call.begin_ns) * 1000);
}

std::string time_of(double ps) {
    return text::duration(static_cast<std::uint64_t>(std::min(std::max(ps, 0.0), 1.8e19)));
}
std::string signed_time(double ps) {
    return ps == 0 ? "0" : (ps < 0 ? "-" : "+") + time_of(std::abs(ps));
}
std::string signed_percent(double from, double to) {
    if (from == to) return "";
    return from <= 0 ? "new" : fmt::format("{:+.1f} %", 100 * (to - from) / from);
}
std::string spread(const Sample& sample) {
    if (sample.values.empty()) return "";
    const double share = sample.mean() > 0 ? 100 * sample.deviation() / sample.mean() : 0;
    return time_of(sample.mean()) + (share >= 0.05 ? fmt::format(" +-{:.1f} %", share) : "");
}
std::string verdict(const Change& change) {
    if (change.a.values.empty()) return "only in B";
    if (change.b.values.empty()) return "only in A";
    const char* const equal = change.kind == Kind::kCall ? "equal" : "exactly equal";
    if (change.equal) return equal;
    // As their values are sorted: one single value, and not as often.
    if (change.a.values.front() == change.b.values.back() &&
        change.b.values.front() == change.a.values.back())
        return fmt::format("each {}", equal);
    const auto n = static_cast<double>(change.a.values.size()),
               m = static_cast<double>(change.b.values.size());
    // Two in so many: what chance gives at least, if all of one side are larger.
    const double least = 2 / std::exp(std::lgamma(n + m + 1) - std::lgamma(n + 1) - std::lgamma(m + 1));
    if (least > kSignificant) return "too few to tell";
    const std::string p = change.p < 0.0001 ? "p < 0.0001" : fmt::format("p = {:.2g}", change.p);
    return change.p < kSignificant ? p + ", significant" : p + ", may be chance";
}

// Of a device number: times of a run, the mean of a side's files.
struct DeviceTimes {
    double span = 0, kernels = 0, copies = 0, overlap = 0, idle = 0;
};
std::map<std::uint32_t, DeviceTimes> devices_of(std::span<const Model> side) {
    std::map<std::uint32_t, DeviceTimes> devices;
    const auto files = static_cast<double>(side.size());
    for (const Model& model : side) {
        for (const Activity& activity : model.processes) {
            const Sums sums = sums_of(activity);
            for (const DeviceSums& one : sums.devices) {
                DeviceTimes& times = devices[one.device->number];
                times.span += static_cast<double>(one.span_ps) / files;
                times.kernels += static_cast<double>(one.vector_ps()) / files;
                times.copies += static_cast<double>(one.copy_ps()) / files;
                times.overlap += static_cast<double>(one.overlap_ps) / files;
                times.idle += static_cast<double>(one.span_ps - std::min(one.span_ps, one.busy_ps())) / files;
            }
        }
    }
    return devices;
}

std::string devices_text(std::span<const Model> a, std::span<const Model> b) {
    const auto before = devices_of(a), after = devices_of(b);
    std::map<std::uint32_t, std::pair<DeviceTimes, DeviceTimes>> both;
    for (const auto& [device, times] : before)
        both[device].first = times;
    for (const auto& [device, times] : after)
        both[device].second = times;
    text::Table table({{"cards, model time"},
                       {"A", Align::kRight},
                       {"B", Align::kRight},
                       {"change", Align::kRight},
                       {"", Align::kRight}});
    for (const auto& [device, times] : both) {
        const auto row = [&](const std::string& name, double DeviceTimes::* which) {
            const double from = times.first.*which, to = times.second.*which;
            table.row({name, time_of(from), time_of(to), from == to ? "equal" : signed_time(to - from),
                       signed_percent(from, to)});
        };
        row(fmt::format("device {}, first work to last", device), &DeviceTimes::span);
        row("  kernels ran", &DeviceTimes::kernels);
        row("  copies ran", &DeviceTimes::copies);
        row("  both at once", &DeviceTimes::overlap);
        row("  nothing ran", &DeviceTimes::idle);
    }
    return table.text("  ");
}

std::string section(const std::vector<Change>& changes, Kind kind, const char* title, double a_files,
                    double b_files, std::size_t top) {
    text::Table table({{title},
                       {"count A", Align::kRight},
                       {"B", Align::kRight},
                       {"mean A", Align::kRight},
                       {"B", Align::kRight},
                       {"change", Align::kRight},
                       {"in total", Align::kRight},
                       {""}});
    std::size_t all = 0, equal = 0;
    for (const Change& change : changes) {
        if (change.kind != kind) continue;
        equal += change.equal ? 1 : 0;
        if (++all > top) continue;
        table.row({plain(change.name), text::grouped(change.a.values.size()),
                   text::grouped(change.b.values.size()), spread(change.a), spread(change.b),
                   change.a.values.empty() || change.b.values.empty()
                       ? ""
                       : signed_percent(change.a.mean(), change.b.mean()),
                   signed_time(change.b.total() / b_files - change.a.total() / a_files), verdict(change)});
    }
    if (table.empty()) return "";
    std::string text = "\n" + table.text("  ");
    if (all > top) text += fmt::format("  and {} more (--top N), {} in all are equal\n", all - top, equal);
    return text;
}

}  // namespace

double Sample::total() const {
    return std::accumulate(values.begin(), values.end(), 0.0);
}
double Sample::mean() const {
    return values.empty() ? 0 : total() / static_cast<double>(values.size());
}
double Sample::deviation() const {
    if (values.size() < 2) return 0;
    const double middle = mean();
    double sum = 0;
    for (const double value : values)
        sum += (value - middle) * (value - middle);
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double mann_whitney(std::span<const double> a, std::span<const double> b) {
    if (a.empty() || b.empty()) return 1;
    std::vector<std::pair<double, bool>> all;  // and whether it is of a
    for (const double value : a)
        all.emplace_back(value, true);
    for (const double value : b)
        all.emplace_back(value, false);
    std::ranges::sort(all);
    double ranks = 0, ties = 0;
    for (std::size_t i = 0; i < all.size();) {
        std::size_t end = i, of_a = 0;
        for (; end < all.size() && all[end].first == all[i].first; ++end)
            of_a += all[end].second ? 1 : 0;
        const auto count = static_cast<double>(end - i);
        ranks += static_cast<double>(of_a) * (static_cast<double>(i + end + 1) / 2);
        ties += count * count * count - count;
        i = end;
    }
    const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size()), both = n + m;
    const double u = ranks - n * (n + 1) / 2;
    const double variance = n * m / 12 * (both + 1 - ties / (both * (both - 1)));
    if (variance <= 0) return 1;  // all are the same
    const double z = std::max(0.0, std::abs(u - n * m / 2) - 0.5) / std::sqrt(variance);
    return std::erfc(z / std::sqrt(2.0));
}

std::vector<Change> changes_of(std::span<const Model> a, std::span<const Model> b) {
    Samples samples;
    for (const Model& model : a) {
        for (const Activity& activity : model.processes)
            gather(activity, &Change::a, samples);
    }
    for (const Model& model : b) {
        for (const Activity& activity : model.processes)
            gather(activity, &Change::b, samples);
    }
    std::vector<Change> changes;
    for (auto& [key, change] : samples) {
        std::ranges::sort(change.a.values);
        std::ranges::sort(change.b.values);
        change.equal = change.a.values == change.b.values;
        if (!change.equal) change.p = mann_whitney(change.a.values, change.b.values);
        changes.push_back(std::move(change));
    }
    const auto files = std::pair(static_cast<double>(a.size()), static_cast<double>(b.size()));
    std::ranges::sort(changes, {}, [&](const Change& change) {
        return std::tuple(change.kind,
                          -std::abs(change.b.total() / files.second - change.a.total() / files.first),
                          change.name);
    });
    return changes;
}

std::string compare_text(std::span<const Model> a, std::span<const Model> b, std::size_t top) {
    const auto changes = changes_of(a, b);
    const auto a_files = static_cast<double>(a.size()), b_files = static_cast<double>(b.size());
    std::string text = devices_text(a, b);
    text += section(changes, Kind::kKernel, "kernels, model time", a_files, b_files, top);
    text += section(changes, Kind::kCopy, "copies, model time", a_files, b_files, top);
    text += section(changes, Kind::kWait, "waits for", a_files, b_files, top);
    text += section(changes, Kind::kCall, "calls, host time", a_files, b_files, top);
    return text.empty() ? "nothing was recorded in either\n" : text;
}

std::string compare_json(std::span<const Model> a, std::span<const Model> b) {
    Json all = {{"files_a", a.size()}, {"files_b", b.size()}, {"changes", Json::array()}};
    const auto side = [](const Sample& sample) -> Json {
        return {{"count", sample.values.size()},
                {"total_ps", sample.total()},
                {"mean_ps", sample.mean()},
                {"deviation_ps", sample.deviation()}};
    };
    for (const Change& change : changes_of(a, b)) {
        all["changes"].push_back({{"kind", name_of(change.kind)},
                                  {"name", change.name},
                                  {"a", side(change.a)},
                                  {"b", side(change.b)},
                                  {"equal", change.equal},
                                  {"p", change.p},
                                  {"significant", !change.equal && change.p < kSignificant}});
    }
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::prof
