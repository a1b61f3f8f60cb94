#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "tools/prof/analysis.h"
#include "tools/prof/links.h"
#include "tools/prof/pc_lines.h"
#include "tools/prof/ranges.h"
#include "tools/prof/show.h"
#include "tools/prof/steps.h"
#include "tools/prof/work_sums.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;
using Json = nlohmann::ordered_json;

std::string of_share(double share) {
    return fmt::format("{:.1f} %", share * 100);
}

std::string bar(double share) {
    constexpr std::size_t kWidth = 24;
    const double clipped = std::clamp(share, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(std::lround(clipped * kWidth));
    return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "]";
}

std::string number(double value) {
    return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string card_title(const DeviceModel& device, const Activity& activity) {
    std::string title = fmt::format("device {}", device.number);
    if (device.card == nullptr) return title;
    return fmt::format("{}: {}, {}", title, plain(activity.text(device.card->head.text)),
                       plain(activity.text(device.card->pci)));
}

// By the number that the process gave it, if it knows one.
std::string card_name(const Activity& activity, std::uint64_t uid) {
    for (const DeviceModel& device : activity.devices)
        if (device.card != nullptr && device.card->uid == uid) return fmt::format("device {}", device.number);
    return fmt::format("card {:#x}", uid);
}

std::string why_idle(const DeviceSums& sums) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < kIdleKinds; ++i) {
        if (sums.idle_ps[i] > 0) order.push_back(i);
    }
    largest_first(order, [&](std::size_t i) { return sums.idle_ps[i]; });
    std::string text;
    for (const std::size_t i : order) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(static_cast<Idle>(i)),
                            of_share(sums.share(sums.idle_ps[i])));
    }
    return text;
}

// Columns for sums of work, and their cells.
void add_sum_heads(std::vector<text::Table::Head>& heads, bool counted) {
    for (const char* head : {"kernels", "copies", "card time"})
        heads.push_back({head, Align::kRight});
    if (!counted) return;
    for (const char* head : {"FLOP", "GFLOP/s", "VRAM", "PCIe", "links"})
        heads.push_back({head, Align::kRight});
    heads.push_back({""});
}
void add_sum_cells(std::vector<std::string>& cells, const WorkSums& sums) {
    using C = WorkCountersRecord;
    cells.push_back(text::grouped(sums.kernels));
    cells.push_back(text::grouped(sums.copies));
    cells.push_back(text::duration(sums.kernel_ps + sums.copy_ps));
    if (sums.counted == 0) return;
    const std::uint64_t flops = sums[&C::flops_f16] + sums[&C::flops_f32] + sums[&C::flops_f64];
    cells.push_back(text::grouped(flops));
    cells.push_back(sums.kernel_ps == 0
                        ? ""
                        : number(1e3 * static_cast<double>(flops) / static_cast<double>(sums.kernel_ps)));
    cells.push_back(bytes_text(sums[&C::vram_read] + sums[&C::vram_written]));
    cells.push_back(bytes_text(sums[&C::host_read] + sums[&C::host_written]));
    cells.push_back(bytes_text(sums[&C::link_read] + sums[&C::link_written]));
    cells.push_back(sums.counted == sums.work ? "" : fmt::format("{} not counted", sums.work - sums.counted));
}

// Of a device's streams, what took longest first.
std::vector<std::pair<const StreamModel*, WorkSums>> sums_of_streams(const Activity& activity,
                                                                     const DeviceModel& device) {
    const std::vector<WorkSums> sums = stream_sums(activity);
    std::vector<std::pair<const StreamModel*, WorkSums>> all;
    for (const std::uint32_t stream : device.streams) {
        if (sums[stream].work > 0) all.emplace_back(&activity.streams[stream], sums[stream]);
    }
    largest_first(all, [](const auto& one) { return one.second.kernel_ps + one.second.copy_ps; });
    return all;
}

class DeviceText {
  public:
    DeviceText(const Activity& activity, const DeviceSums& sums, const LinkTraffic& traffic, std::size_t top)
        : activity_(activity), sums_(sums), device_(*sums.device), traffic_(traffic), top_(top) {}

    std::string text() const {
        return fmt::format("\n  {}, {} of model time from its first work to its last\n",
                           card_title(device_, activity_), text::duration(sums_.span_ps)) +
               clock() + engines() + memory() + kernels() + lines() + copies() + streams() + gaps() +
               waits() + links();
    }

  private:
    std::string engines() const {
        text::Table table({{"engines"}, {""}, {"share", Align::kRight}, {"time", Align::kRight}, {""}});
        const auto row = [&](const char* name, std::uint64_t ps, std::string note) {
            const double share = sums_.share(ps);
            table.row({name, bar(share), of_share(share), text::duration(ps), std::move(note)});
        };
        const std::uint64_t vector = sums_.vector_ps(), copy = sums_.copy_ps();
        std::string cores;
        if (device_.cores() > 0 && vector > 0) {
            cores = fmt::format("{} of {} vector cores at work meanwhile",
                                of_share(static_cast<double>(sums_.kernel_used_ps) /
                                         (static_cast<double>(vector) * device_.cores())),
                                device_.cores());
        }
        row("kernels", vector, cores);
        row("copies", copy,
            copy == 0 || vector == 0
                ? ""
                : fmt::format("{} of that beside kernels",
                              of_share(static_cast<double>(sums_.overlap_ps) / static_cast<double>(copy))));
        row("nothing", sums_.span_ps - std::min(sums_.span_ps, sums_.busy_ps()), why_idle(sums_));
        std::string text = table.text("    ");
        if (sums_.preemptions > 0) {
            text += fmt::format("    kernels were interrupted {} times, for {} together\n",
                                text::grouped(sums_.preemptions), text::duration(sums_.preempted_ps));
        }
        return text;
    }
    std::string clock() const {
        if (device_.clock_worst_ns == 0) return "";
        return fmt::format("    clock: by the host's to {} (half of what it did), {} at most{}\n",
                           text::duration(device_.clock_error_ns * 1000),
                           text::duration(device_.clock_worst_ns * 1000),
                           device_.on_host_clock ? "" : ", and of some not at all");
    }
    std::string memory() const {
        if (device_.memory_peak == 0) return "";
        std::string text = fmt::format("    memory: {}", bytes_text(device_.memory_peak));
        if (device_.card != nullptr) text += " of " + bytes_text(device_.card->vram_bytes);
        return text + " at most\n";
    }
    std::string kernels() const {
        const bool counted =
            std::ranges::any_of(sums_.kernels, [](const KernelSums& one) { return one.roofline.runs > 0; });
        const std::uint32_t cores = device_.cores();
        std::vector<text::Table::Head> heads = {{"kernels"},
                                                {"count", Align::kRight},
                                                {"total", Align::kRight},
                                                {"mean", Align::kRight},
                                                {"share", Align::kRight},
                                                {"groups", Align::kRight},
                                                {"cores", Align::kRight}};
        if (counted) {
            for (const char* head : {"FLOP/byte", "GFLOP/s", "GB/s", "roof"})
                heads.push_back({head, Align::kRight});
            heads.push_back({""});
        }
        text::Table table(std::move(heads));
        for (const KernelSums& one : first(sums_.kernels)) {
            const double use = one.core_use(cores);
            std::vector<std::string> cells = {plain(one.name),
                                              text::grouped(one.totals.count),
                                              text::duration(one.totals.total_ps),
                                              text::duration(one.totals.mean_ps()),
                                              of_share(sums_.share(one.totals.total_ps)),
                                              one.groups == 0 ? "" : text::grouped(one.groups),
                                              use == 0 ? "" : of_share(use)};
            if (const Roofline& roof = one.roofline; roof.runs > 0) {
                cells.push_back(number(roof.intensity()));
                cells.push_back(number(roof.gflops()));
                cells.push_back(number(roof.gb_per_s()));
                cells.push_back(roof.share() == 0 ? "" : of_share(roof.share()));
                cells.emplace_back(roof.share() == 0  ? ""
                                   : roof.by_memory() ? "of VRAM's bandwidth"
                                                      : "of the peak");
            }
            table.row(std::move(cells));
        }
        std::string text = block(table, sums_.kernels.size());
        if (!sums_.kernels.empty() && !counted)
            text += "    no roofline: kernels were not counted (record --counters)\n";
        return text;
    }
    std::string copies() const {
        text::Table table({{"copies"},
                           {"count", Align::kRight},
                           {"bytes", Align::kRight},
                           {"total", Align::kRight},
                           {"mean", Align::kRight},
                           {"GB/s", Align::kRight},
                           {"at most", Align::kRight},
                           {"", Align::kRight}});
        for (const CopySums& one : sums_.copies) {
            const bool known = one.bytes > 0;
            table.row({one.name(), text::grouped(one.totals.count), known ? bytes_text(one.bytes) : "",
                       text::duration(one.totals.total_ps), text::duration(one.totals.mean_ps()),
                       known ? number(one.gb_per_s()) : "", one.bound ? number(*one.bound) : "",
                       one.bound && one.totals.total_ps > 0
                           ? of_share(one.best_ps / static_cast<double>(one.totals.total_ps))
                           : ""});
        }
        if (sums_.fills.count > 0) {
            table.row({"fills", text::grouped(sums_.fills.count), "", text::duration(sums_.fills.total_ps),
                       text::duration(sums_.fills.mean_ps())});
        }
        return block(table, 0);
    }
    std::string gaps() const {
        text::Table table({{"longest gaps"}, {"length", Align::kRight}, {"why"}, {"what came then"}, {"by"}});
        for (const Gap& gap : first(sums_.gaps)) {
            std::string then, by;
            if (gap.ended_by != kNone) {
                const Work& work = activity_.work[gap.ended_by];
                then = plain(activity_.name(work));
                by = call_of(work);
            }
            table.row(
                {"at " + text::duration(gap.time.begin - device_.begin_ps),
                 text::duration(gap.time.end - gap.time.begin),
                 gap.who.empty() ? name_of(gap.why) : fmt::format("{}: {}", name_of(gap.why), plain(gap.who)),
                 then, by});
        }
        return block(table, sums_.gaps.size());
    }
    std::string call_of(const Work& work) const {
        if (work.call == kNone) return "";
        return plain(activity_.text(activity_.process->calls[work.call].head.text));
    }
    std::string waits() const {
        text::Table table({{"streams waited for"},
                           {"count", Align::kRight},
                           {"total", Align::kRight},
                           {"mean", Align::kRight},
                           {"longest", Align::kRight}});
        for (const WaitSums& one : first(sums_.waits)) {
            table.row({plain(one.from), text::grouped(one.totals.count), text::duration(one.totals.total_ps),
                       text::duration(one.totals.mean_ps()), text::duration(one.totals.longest_ps)});
        }
        return block(table, sums_.waits.size());
    }
    std::string lines() const {
        const std::vector<PcLine> all = pc_lines(activity_, device_.number);
        std::uint64_t samples = 0;
        for (const PcLine& line : all)
            samples += line.total;
        text::Table table({{"lines of kernels"},
                           {"kernel"},
                           {"samples", Align::kRight},
                           {"of all", Align::kRight},
                           {"at what"}});
        for (const PcLine& line : first(all)) {
            // Without its folders.
            const std::string_view source = line.source.substr(line.source.rfind('/') + 1);
            table.row({source.empty() ? fmt::format("offset {:#x}", line.offset) : plain(source),
                       plain(line.kernel), text::grouped(line.total),
                       of_share(static_cast<double>(line.total) / static_cast<double>(samples)),
                       stalls_text(line)});
        }
        return block(table, all.size());
    }
    std::string streams() const {
        const auto all = sums_of_streams(activity_, device_);
        if (all.size() < 2) return "";  // what the one did, the tables above have
        std::vector<text::Table::Head> heads = {{"streams"}};
        WorkSums whole;
        for (const auto& [stream, sums] : all)
            whole.add(sums);
        add_sum_heads(heads, whole.counted > 0);
        text::Table table(std::move(heads));
        const auto add = [&](std::string name, const WorkSums& sums) {
            std::vector<std::string> cells = {std::move(name)};
            add_sum_cells(cells, sums);
            table.row(std::move(cells));
        };
        for (const auto& [stream, sums] : first(all))
            add(plain(activity_.text(stream->name)), sums);
        add("all of the process", whole);
        return block(table, all.size());
    }
    std::string links() const {
        const std::vector<LinkSums> all = traffic_.of(activity_, device_);
        const bool copied = std::ranges::any_of(
            all, [](const LinkSums& one) { return one.sent.bytes + one.received.bytes > 0; });
        std::vector<text::Table::Head> heads = {
            {"links"}, {"to"}, {"GB/s", Align::kRight}, {"latency", Align::kRight}};
        if (copied) {
            for (const char* head : {"copied there", "GB/s", "", "copied here", "GB/s", ""})
                heads.push_back({head, Align::kRight});
        }
        heads.push_back({""});
        text::Table table(std::move(heads));
        for (const LinkSums& one : all) {
            std::string ports;
            bool degraded = false;
            for (const LinkRecord* link : one.ports) {
                ports += fmt::format("{}{}", ports.empty() ? "" : ", ", link->port);
                degraded = degraded || link->state == kLinkDegraded;
            }
            const LinkRecord& link = one.first();
            std::vector<std::string> cells = {
                fmt::format("port{} {}", one.ports.size() == 1 ? "" : "s", ports),
                link.peer_device >= 0 ? fmt::format("device {}", link.peer_device)
                                      : fmt::format("node {:#x}", link.peer_uid),
                number(one.gb_per_s), text::duration(std::uint64_t{link.latency_ns} * 1000)};
            for (const LinkSums::Way* way : {&one.sent, &one.received}) {
                if (!copied) break;
                const bool any = way->bytes > 0 && way->ps > 0;
                cells.push_back(any ? bytes_text(way->bytes) : "");
                cells.push_back(any ? number(way->gb_per_s()) : "");
                cells.push_back(any && one.gb_per_s > 0 ? of_share(one.share(*way)) : "");
            }
            cells.emplace_back(degraded ? "degraded" : "");
            table.row(std::move(cells));
        }
        return block(table, 0) + beyond() + elsewhere() + (all.empty() ? "" : link_counters(all));
    }
    std::string beyond() const {
        std::string text;
        for (const LinkTraffic::Beyond& one : traffic_.beyond(activity_, device_)) {
            for (const auto& [way, name] : {std::pair(one.sent, "to"), std::pair(one.received, "from")}) {
                if (way.bytes == 0) continue;
                text += fmt::format(
                    "    {} copied {} {} ({} GB/s), which switches or other cards pass on; over which of its "
                    "ports is not told\n",
                    bytes_text(way.bytes), name, card_name(activity_, one.uid), number(way.gb_per_s()));
            }
        }
        return text;
    }
    std::string elsewhere() const {
        const auto [sent, received] = traffic_.elsewhere(activity_, device_);
        std::string text;
        for (const auto& [way, name] : {std::pair(sent, "to"), std::pair(received, "from")}) {
            if (way.bytes == 0) continue;
            text += fmt::format(
                "    {} copied {} cards of other machines or several cards at once ({} GB/s); over which "
                "link "
                "is not told\n",
                bytes_text(way.bytes), name, number(way.gb_per_s()));
        }
        return text;
    }
    std::string link_counters(const std::vector<LinkSums>& all) const {
        const auto counts = link_counts(activity_, device_);
        if (!counts) return "    what kernels sent and what was sent again is not known (record --samples)\n";
        double rate = 0;
        for (const LinkSums& one : all)
            rate += one.gb_per_s;
        const auto way = [&](std::uint64_t bytes) {
            const LinkSums::Way carried{bytes, counts->ps};
            return fmt::format("{} ({} GB/s{})", bytes_text(bytes), number(carried.gb_per_s()),
                               rate > 0 ? ", " + of_share(carried.gb_per_s() / rate) : "");
        };
        return fmt::format(
            "    all ports in {}, whoever used them: sent {}, received {}; {} frames sent again, of {} "
            "messages; no room at the other end for {}\n",
            text::duration(counts->ps), way(counts->sent), way(counts->received),
            text::grouped(counts->retries), text::grouped(counts->messages),
            text::duration(counts->credit_ps));
    }

    template <typename Row>
    std::span<const Row> first(const std::vector<Row>& rows) const {
        return std::span(rows).first(std::min(rows.size(), top_));
    }
    std::string block(const text::Table& table, std::size_t all) const {
        if (table.empty()) return "";
        std::string text = "\n" + table.text("    ");
        if (all > top_) text += fmt::format("    and {} more (--top N)\n", text::grouped(all - top_));
        return text;
    }

    static constexpr std::uint32_t kLinkDegraded = 4;  // as orrLinkState has it
    const Activity& activity_;
    const DeviceSums& sums_;
    const DeviceModel& device_;
    const LinkTraffic& traffic_;
    const std::size_t top_;
};

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

// What is found once for all processes.
struct OfAll {
    explicit OfAll(const Model& model) : lasts(model), traffic(model) {}

    BarrierLasts lasts;
    LinkTraffic traffic;
};

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
        text += DeviceText(activity, device, of_all.traffic, top).text();
    text += steps_text(activity, top) + lasts_text(activity, of_all.lasts);
    text += ranges_text(activity, top) + calls_text(sums, top);
    if (sums.devices.empty() && sums.calls.empty()) text += "  nothing was recorded\n";
    return text + missing_text(process);
}

Json json_of(const Totals& totals) {
    return {{"count", totals.count},
            {"failed", totals.failed},
            {"total_ps", totals.total_ps},
            {"shortest_ps", totals.shortest_ps},
            {"longest_ps", totals.longest_ps}};
}

Json optional(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Bounds& bounds) {
    return {{"vram_gb_per_s", optional(bounds.vram_gb_per_s)},
            {"host_gb_per_s", optional(bounds.host_gb_per_s)},
            {"copy_engine_gb_per_s", optional(bounds.copy_engine_gb_per_s)},
            {"link_gb_per_s", optional(bounds.link_gb_per_s)},
            {"gflops_f16", optional(bounds.gflops_f16)},
            {"gflops_f32", optional(bounds.gflops_f32)},
            {"gflops_f64", optional(bounds.gflops_f64)}};
}

Json json_of(const KernelSums& kernel, std::uint32_t cores) {
    Json json = {{"name", kernel.name}};
    json.update(json_of(kernel.totals));
    json["used_ps"] = kernel.used_ps;
    json["groups"] = kernel.groups;
    json["core_use"] = kernel.core_use(cores);
    if (const Roofline& roof = kernel.roofline; roof.runs > 0) {
        json["roofline"] = {{"runs", roof.runs},
                            {"flops", roof.flops},
                            {"vram_bytes", roof.bytes},
                            {"intensity", roof.intensity()},
                            {"gflops", roof.gflops()},
                            {"gb_per_s", roof.gb_per_s()},
                            {"attainable_gflops", roof.attainable_gflops()},
                            {"share", roof.share()},
                            {"bound", roof.by_memory() ? "vram" : "compute"}};
    }
    return json;
}

Json json_of(const Gap& gap, const Activity& activity) {
    Json json = {{"begin_ps", gap.time.begin},
                 {"length_ps", gap.time.end - gap.time.begin},
                 {"why", name_of(gap.why)}};
    if (!gap.who.empty()) json["who"] = gap.who;
    if (gap.ended_by == kNone) return json;
    const Work& work = activity.work[gap.ended_by];
    json["ended_by"] = activity.name(work);
    if (work.call != kNone) json["call"] = activity.text(activity.process->calls[work.call].head.text);
    json["correlation"] = work.record->correlation;
    return json;
}

Json json_of(const WorkSums& sums) {
    Json json = {{"kernels", sums.kernels},
                 {"copies", sums.copies},
                 {"kernel_ps", sums.kernel_ps},
                 {"copy_ps", sums.copy_ps},
                 {"counted", sums.counted}};
    for (std::size_t i = 0; i < kCounterFields.size() && sums.counted > 0; ++i)
        json["counters"][kCounterFields[i].name] = sums.counters[i];
    return json;
}

Json json_of(const LinkSums::Way& way) {
    return {{"bytes", way.bytes}, {"ps", way.ps}, {"gb_per_s", way.gb_per_s()}};
}

Json json_of(const DeviceSums& sums, const Activity& activity, const LinkTraffic& traffic, std::size_t top) {
    const DeviceModel& device = *sums.device;
    Json json = {{"device", device.number}};
    if (device.card != nullptr) {
        json["card"] = activity.text(device.card->head.text);
        json["pci_address"] = activity.text(device.card->pci);
        json["uid"] = device.card->uid;
    }
    json["bounds"] = json_of(device.bounds);
    if (device.clock_worst_ns != 0) {
        json["host_clock"] = {{"error_ns", device.clock_error_ns},
                              {"worst_ns", device.clock_worst_ns},
                              {"all", device.on_host_clock}};
    }
    json["span_ps"] = sums.span_ps;
    json["kernels_busy_ps"] = sums.vector_ps();
    json["copies_busy_ps"] = sums.copy_ps();
    json["overlap_ps"] = sums.overlap_ps;
    json["idle_ps"] = sums.span_ps - std::min(sums.span_ps, sums.busy_ps());
    json["cores_used_ps"] = sums.kernel_used_ps;
    json["memory_peak_bytes"] = device.memory_peak;
    json["preemptions"] = sums.preemptions;
    json["preempted_ps"] = sums.preempted_ps;
    Json& idle = json["idle_by_ps"] = Json::object();
    for (std::size_t i = 0; i < kIdleKinds; ++i)
        idle[name_of(static_cast<Idle>(i))] = sums.idle_ps[i];
    const std::uint32_t cores = device.cores();
    Json& kernels = json["kernels"] = Json::array();
    for (const KernelSums& one : sums.kernels)
        kernels.push_back(json_of(one, cores));
    Json& copies = json["copies"] = Json::array();
    for (const CopySums& one : sums.copies) {
        Json row = {{"direction", one.name()}};
        row.update(json_of(one.totals));
        row["bytes"] = one.bytes;
        row["gb_per_s"] = one.gb_per_s();
        row["bound_gb_per_s"] = optional(one.bound);
        copies.push_back(std::move(row));
    }
    json["fills"] = json_of(sums.fills);
    Json& gaps = json["gaps"] = Json::array();
    for (std::size_t i = 0; i < std::min(top, sums.gaps.size()); ++i)
        gaps.push_back(json_of(sums.gaps[i], activity));
    json["gap_count"] = sums.gaps.size();
    Json& waits = json["waits"] = Json::array();
    for (const WaitSums& one : sums.waits) {
        Json row = {{"from", one.from}};
        row.update(json_of(one.totals));
        waits.push_back(std::move(row));
    }
    Json& lines = json["lines"] = Json::array();
    for (const PcLine& line : pc_lines(activity, device.number)) {
        Json row = {{"kernel", line.kernel}, {"function", line.function}, {"source", line.source}};
        if (line.source.empty()) row["offset"] = line.offset;
        row["samples"] = line.total;
        for (std::uint32_t i = 0; i < kPcStalls; ++i)
            row["by"][name_of_stall(i)] = line.counts.at(i);
        lines.push_back(std::move(row));
    }
    Json& streams = json["streams"] = Json::array();
    for (const auto& [stream, own] : sums_of_streams(activity, device)) {
        Json row = {{"name", activity.text(stream->name)}, {"stream", stream->number}};
        row.update(json_of(own));
        streams.push_back(std::move(row));
    }
    Json& links = json["links"] = Json::array();
    for (const LinkRecord* link : device.links) {
        links.push_back({{"port", link->port},
                         {"peer_uid", link->peer_uid},
                         {"peer_device", link->peer_device},
                         {"gbit_per_s", link->gbit_per_s},
                         {"latency_ns", link->latency_ns}});
    }
    Json& carried = json["link_copies"] = Json::array();
    for (const LinkSums& one : traffic.of(activity, device)) {
        Json row = {{"peer_uid", one.first().peer_uid}, {"peer_device", one.first().peer_device}};
        for (const LinkRecord* link : one.ports)
            row["ports"].push_back(link->port);
        row["gb_per_s"] = one.gb_per_s;
        for (const auto& [name, way] : {std::pair("sent", one.sent), std::pair("received", one.received)}) {
            if (!one.known) {
                row[name] = nullptr;
                continue;
            }
            row[name] = json_of(way);
            row[name]["share"] = one.share(way);
        }
        carried.push_back(std::move(row));
    }
    const auto [sent_elsewhere, received_elsewhere] = traffic.elsewhere(activity, device);
    Json beyond = Json::array();
    for (const LinkTraffic::Beyond& one : traffic.beyond(activity, device))
        beyond.push_back(
            {{"peer_uid", one.uid}, {"sent", json_of(one.sent)}, {"received", json_of(one.received)}});
    json["beyond_copies"] = std::move(beyond);
    json["elsewhere_copies"] = {{"sent", json_of(sent_elsewhere)}, {"received", json_of(received_elsewhere)}};
    if (const auto counts = link_counts(activity, device)) {
        json["link_counters"] = {{"ps", counts->ps},
                                 {"sent_bytes", counts->sent},
                                 {"received_bytes", counts->received},
                                 {"retries", counts->retries},
                                 {"messages", counts->messages},
                                 {"credit_ps", counts->credit_ps}};
    }
    return json;
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

std::string report_json(const Model& model, std::size_t top) {
    Json all = {{"processes", Json::array()}};
    for (const Machine& machine : model.profile.machines) {
        Json one = {{"aligned", machine.aligned}};
        if (machine.aligned && &machine != model.profile.machines.data())
            one.update({{"ahead_ns", machine.offset.ns}, {"error_ns", machine.offset.error_ns}});
        all["machines"].push_back(std::move(one));
    }
    const OfAll of_all(model);
    for (const Activity& activity : model.processes) {
        const Sums sums = sums_of(activity);
        const Process& process = *activity.process;
        Json json = {{"pid", process.pid},
                     {"machine", process.machine_at},
                     {"command", process.command},
                     {"lost_records", process.lost},
                     {"ended", process.ended},
                     {"host_working_ns", sums.working_ns},
                     {"host_nothing_submitted_ns", sums.nothing_submitted_ns},
                     {"host_memory_peak_bytes", activity.host_memory_peak}};
        Json& devices = json["devices"] = Json::array();
        for (const DeviceSums& device : sums.devices)
            devices.push_back(json_of(device, activity, of_all.traffic, top));
        Json& ranges = json["ranges"] = Json::array();
        for (const NamedRange& one : named_ranges(activity)) {
            Json row = {{"name", one.name}, {"count", one.count}, {"host_ns", one.host_ns}};
            row.update(json_of(one.sums));
            ranges.push_back(std::move(row));
        }
        Json& steps = json["steps"] = Json::array();
        for (const StepSums& one : step_sums(activity)) {
            steps.push_back({{"of", one.owner},
                             {"name", one.name},
                             {"kind", name_of(one.kind)},
                             {"host", one.host},
                             {"count", one.count},
                             {"total_ps", one.total_ps},
                             {"longest_ps", one.longest_ps}});
        }
        Json& last = json["last_at_barriers"] = Json::array();
        for (const LastRank& one : last_ranks(activity, of_all.lasts))
            last.push_back({{"of", one.owner}, {"rank", one.rank}, {"count", one.count}});
        Json& calls = json["calls"] = Json::array();
        for (const CallSums& one : sums.calls) {
            Json row = {{"name", one.name}};
            row.update(json_of(one.totals));
            calls.push_back(std::move(row));
        }
        all["processes"].push_back(std::move(json));
    }
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::prof
