#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include "tools/prof/pc_lines.h"
#include "tools/prof/queues.h"
#include "tools/prof/report_parts.h"
#include "tools/prof/show.h"
#include "tools/prof/stream_events.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;

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

class DeviceText {
  public:
    DeviceText(const Activity& activity, const DeviceSums& sums, const LinkTraffic& traffic, std::size_t top)
        : activity_(activity), sums_(sums), device_(*sums.device), traffic_(traffic), top_(top) {}

    std::string text() const {
        return fmt::format("\n  {}, {} of model time from its first work to its last\n",
                           card_title(device_, activity_), text::duration(sums_.span_ps)) +
               clock() + engines() + memory() + kernels() + lines() + copies() + streams() + queues() +
               gaps() + waits() + signals() + marks() + links();
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
    std::string queues() const {
        text::Table table({{"queues"},
                           {"work", Align::kRight},
                           {"launch, mean", Align::kRight},
                           {"longest", Align::kRight},
                           {"held back", Align::kRight},
                           {"late", Align::kRight},
                           {"not known", Align::kRight},
                           {"waits", Align::kRight},
                           {"deepest", Align::kRight}});
        std::vector<QueueSums> all = queue_sums(activity_, device_);
        largest_first(all, [](const QueueSums& one) { return one.work; });
        const auto total = [](const Totals& one) {
            return one.count == 0 ? std::string() : text::duration(one.total_ps);
        };
        for (const QueueSums& one : first(all)) {
            std::string depth;
            if (one.deepest && one.deepest->least == one.deepest->most)
                depth = text::grouped(one.deepest->most);
            else if (one.deepest)
                depth = fmt::format("{} to {}", text::grouped(one.deepest->least),
                                    text::grouped(one.deepest->most));
            const Totals& launches = one.launches;
            table.row({plain(activity_.text(activity_.streams[one.stream].name)), text::grouped(one.work),
                       launches.count == 0 ? "" : text::duration(launches.mean_ps()),
                       launches.count == 0 ? "" : text::duration(launches.longest_ps), total(one.held_back),
                       total(one.late), total(one.unknown), total(one.waits), std::move(depth)});
        }
        std::string text = block(table, all.size());
        if (const auto counts = queue_counts(activity_, device_); counts && !text.empty()) {
            text += fmt::format(
                "    all of the card's, also others': {} packets of any kind, {} at a time in rings, {} us "
                "from "
                "a doorbell to the start (means)\n",
                text::grouped(counts->packets), number(counts->depth), number(counts->latency_us));
        }
        return text;
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
    std::string signals() const {
        const std::vector<SignalSums> all = signal_sums(activity_, device_.number);
        const auto any = [&](std::uint64_t SignalSums::* what) {
            return std::ranges::any_of(all, [&](const SignalSums& one) { return one.*what > 0; });
        };
        const bool far = any(&SignalSums::over_links), failed = any(&SignalSums::failed);
        std::vector<text::Table::Head> heads = {
            {"signals of"}, {"by"}, {"count", Align::kRight}, {"waits ended", Align::kRight}};
        if (far) heads.push_back({"over links", Align::kRight});
        if (failed) heads.push_back({"failed", Align::kRight});
        text::Table table(std::move(heads));
        for (const SignalSums& one : first(all)) {
            std::vector<std::string> cells = {
                one.semaphore.empty() ? "events and what has no name" : plain(one.semaphore), plain(one.by),
                text::grouped(one.count), text::grouped(one.ended)};
            if (far) cells.push_back(text::grouped(one.over_links));
            if (failed) cells.push_back(text::grouped(one.failed));
            table.row(std::move(cells));
        }
        return block(table, all.size());
    }
    std::string marks() const {
        const std::vector<MarkRow> all = mark_rows(activity_, device_.number);
        text::Table table(
            {{"marks in streams"}, {"stream"}, {"at", Align::kRight}, {"since the last one", Align::kRight}});
        for (const MarkRow& one : first(all)) {
            const std::uint64_t ps = one.mark->time_ps;
            table.row({plain(activity_.text(one.mark->head.text)),
                       plain(activity_.text(one.mark->stream_name)),
                       ps < device_.begin_ps ? "" : text::duration(ps - device_.begin_ps),
                       one.since_ps ? text::duration(*one.since_ps) : ""});
        }
        return block(table, all.size());
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

}  // namespace

std::string of_share(double share) {
    return fmt::format("{:.1f} %", share * 100);
}

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
    // Nothing: not known.
    const auto of = [&](std::initializer_list<std::uint64_t C::*> fields) -> std::optional<std::uint64_t> {
        std::uint64_t sum = 0;
        for (const auto field : fields) {
            if (!sums.knows(field)) return {};
            sum += sums[field];
        }
        return sum;
    };
    const auto flops = of({&C::flops_f16, &C::flops_f32, &C::flops_f64});
    cells.push_back(flops ? text::grouped(*flops) : "");
    const std::uint64_t ps = sums.counted_ps();
    cells.push_back(ps == 0 || !flops ? ""
                                      : number(1e3 * static_cast<double>(*flops) / static_cast<double>(ps)));
    for (const auto bytes : {of({&C::vram_read, &C::vram_written}), of({&C::host_read, &C::host_written}),
                             of({&C::link_read, &C::link_written})})
        cells.push_back(bytes ? bytes_text(*bytes) : "");
    cells.push_back(sums.counted == sums.work ? "" : fmt::format("{} not counted", sums.work - sums.counted));
}

std::vector<std::pair<const StreamModel*, WorkSums>> sums_of_streams(const Activity& activity,
                                                                     const DeviceModel& device) {
    const std::vector<WorkSums> sums = stream_sums(activity, device);
    std::vector<std::pair<const StreamModel*, WorkSums>> all;
    for (const std::uint32_t stream : device.streams) {
        if (sums[stream].work > 0) all.emplace_back(&activity.streams[stream], sums[stream]);
    }
    largest_first(all, [](const auto& one) { return one.second.kernel_ps + one.second.copy_ps; });
    return all;
}

std::string device_text(const Activity& activity, const DeviceSums& sums, const LinkTraffic& traffic,
                        std::size_t top) {
    return DeviceText(activity, sums, traffic, top).text();
}

}  // namespace orrery::prof
