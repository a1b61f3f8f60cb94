#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/prof/pc_lines.h"
#include "tools/prof/queues.h"
#include "tools/prof/ranges.h"
#include "tools/prof/report_parts.h"
#include "tools/prof/show.h"
#include "tools/prof/stream_events.h"

namespace orrery::prof {
namespace {

using Json = nlohmann::ordered_json;

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
        json["counters"][kCounterFields[i].name] = sums.counter(i) ? Json(*sums.counter(i)) : Json();
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
        Json row = {{"direction", one.way()}, {"reduction", one.reduces}};
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
    Json& signals = json["signals"] = Json::array();
    for (const SignalSums& one : signal_sums(activity, device.number)) {
        signals.push_back({{"semaphore", one.semaphore},
                           {"by", one.by},
                           {"count", one.count},
                           {"waits_ended", one.ended},
                           {"over_links", one.over_links},
                           {"failed", one.failed}});
    }
    Json& marks = json["stream_marks"] = Json::array();
    for (const MarkRow& one : mark_rows(activity, device.number)) {
        marks.push_back({{"name", activity.text(one.mark->head.text)},
                         {"domain", activity.text(one.mark->domain)},
                         {"stream", one.mark->stream},
                         {"time_ps", one.mark->time_ps == 0 ? Json() : Json(one.mark->time_ps)},
                         {"since_ps", one.since_ps ? Json(*one.since_ps) : Json()}});
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
    Json& queues = json["queues"] = Json::array();
    for (const QueueSums& one : queue_sums(activity, device)) {
        const StreamModel& stream = activity.streams[one.stream];
        Json row = {{"name", activity.text(stream.name)}, {"stream", stream.number}, {"work", one.work}};
        for (const auto& [name, totals] : {std::pair("launches", &one.launches),
                                           {"held_back", &one.held_back},
                                           {"late", &one.late},
                                           {"unknown", &one.unknown},
                                           {"waits", &one.waits}})
            row[name] = json_of(*totals);
        row["deepest"] =
            one.deepest ? Json{{"least", one.deepest->least}, {"most", one.deepest->most}} : Json();
        queues.push_back(std::move(row));
    }
    if (const auto counts = queue_counts(activity, device)) {
        json["queue_counters"] = {{"ps", counts->ps},
                                  {"packets", counts->packets},
                                  {"depth", counts->depth},
                                  {"latency_us", counts->latency_us}};
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
                     {"cut_at", process.cut ? Json(process.cut->at) : Json()},
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
