#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/prof/show.h"

namespace orrery::prof {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
  public:
    explicit Writer(const Model& model)
        : begin_ns_(model.profile.begin_ns), machines_(model.profile.machines.size()) {}

    void add(const Activity& activity) {
        const Process& process = *activity.process;
        pid_ = number_of(process);
        tracks_.clear();  // who executes another program keeps its number, and numbers its texts anew
        name("process_name", pid_, title(process));
        for (const CallRecord& call : process.calls) {
            Json event = slice(process, call.head.text, "call", call.thread, call.begin_ns, call.end_ns);
            event["args"] = {{"correlation", call.correlation}, {"error", call.error}};
            if (call.external != 0) event["args"]["external"] = call.external;
            events_.push_back(std::move(event));
        }
        for (const Span& span : activity.spans) {
            Json event = slice(process, span.text, "range", track(process, span.thread, span.domain),
                               span.begin_ns, span.end_ns);
            event["args"] = Json::object();
            if (span.external != 0) event["args"]["external"] = span.external;
            if (span.open) event["args"]["open"] = true;
            events_.push_back(std::move(event));
        }
        for (const auto& [type, range] : process.ranges) {
            if (type != Type::kMark) continue;
            events_.push_back({{"ph", "i"},
                               {"s", "t"},
                               {"cat", "mark"},
                               {"name", process.text(range.head.text)},
                               {"pid", pid_},
                               {"tid", track(process, range.thread, range.domain)},
                               {"ts", microseconds(range.ns)}});
        }
    }

    // Each device of a process is a process of the timeline, in its own time.
    void add_work(const Activity& activity) {
        const Process& process = *activity.process;
        std::map<std::uint32_t, std::uint64_t> devices;
        std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> lanes;
        for (const Work& one : activity.work) {
            const WorkRecord* const work = one.record;
            const auto [device, new_device] = devices.try_emplace(work->device, kFirstTrack + ++devices_);
            pid_ = device->second;
            if (new_device) {
                name("process_name", pid_, device_title(activity, work->device));
            }
            const auto [track, is_new] =
                lanes.try_emplace({work->stream, one.lane}, kFirstTrack + made_tracks_);
            made_tracks_ += is_new ? 1 : 0;
            if (is_new) name("thread_name", track->second, process.text(work->stream_name));
            const DeviceModel& own = *activity.device(work->device);
            const double begin = own.us(work->begin_ps, begin_ns_);
            const double length = own.on_host_clock ? own.us(work->end_ps, begin_ns_) - begin
                                                    : static_cast<double>(one.ps()) / 1e6;
            events_.push_back({{"ph", "X"},
                               {"cat", "work"},
                               {"name", process.text(work->head.text)},
                               {"pid", pid_},
                               {"tid", track->second},
                               {"ts", begin},
                               {"dur", length},
                               {"args",
                                {{"correlation", work->correlation},
                                 {"begin_ps", work->begin_ps},
                                 {"end_ps", work->end_ps},
                                 {"used_ps", work->used_ps},
                                 {"outcome", work->outcome}}}});
            if (work->correlation == 0) continue;
            Json flow = {{"ph", "s"},
                         {"cat", "submit"},
                         {"name", "submit"},
                         {"id", ++flows_},
                         {"pid", number_of(process)},
                         {"tid", work->thread},
                         {"ts", microseconds(work->submitted_ns)}};
            events_.push_back(flow);
            flow["ph"] = "f";
            flow["bp"] = "e";
            flow["pid"] = pid_;
            flow["tid"] = track->second;
            flow["ts"] = begin;
            events_.push_back(std::move(flow));
        }
    }

    std::string text() const {
        const Json all = {{"displayTimeUnit", "ns"}, {"traceEvents", events_}};
        return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }

  private:
    // Machines number their processes alike.
    static std::uint64_t number_of(const Process& process) {
        return process.pid + process.machine_at * 100'000'000;
    }
    std::string title(const Process& process) const {
        return machines_ < 2 ? process.command
                             : fmt::format("machine {}: {}", process.machine_at + 1, process.command);
    }
    std::string device_title(const Activity& activity, std::uint32_t device) const {
        const Process& process = *activity.process;
        const DeviceModel& own = *activity.device(device);
        return fmt::format("device {} of process {}{}, {}", device, process.pid,
                           machines_ < 2 ? "" : fmt::format(" of machine {}", process.machine_at + 1),
                           own.on_host_clock
                               ? fmt::format("the host's time to {} us", (own.clock_error_ns + 999) / 1000)
                               : std::string("model time"));
    }
    double microseconds(std::uint64_t ns) const { return static_cast<double>(ns - begin_ns_) / 1000.0; }

    void name(const char* what, std::uint64_t tid, std::string_view text) {
        events_.push_back(
            {{"ph", "M"}, {"name", what}, {"pid", pid_}, {"tid", tid}, {"args", {{"name", text}}}});
    }
    // Slices of a track lie within each other, which those of two domains need not.
    std::uint64_t track(const Process& process, std::uint32_t thread, std::uint32_t domain) {
        if (domain == 0) return thread;
        const auto [found, is_new] = tracks_.try_emplace({thread, domain}, kFirstTrack + made_tracks_);
        if (is_new) {
            ++made_tracks_;
            name("thread_name", found->second,
                 std::string(process.text(domain)) + " of thread " + std::to_string(thread));
        }
        return found->second;
    }
    Json slice(const Process& process, std::uint32_t text, const char* category, std::uint64_t tid,
               std::uint64_t begin, std::uint64_t end) const {
        return {{"ph", "X"},
                {"cat", category},
                {"name", process.text(text)},
                {"pid", pid_},
                {"tid", tid},
                {"ts", microseconds(begin)},
                {"dur", static_cast<double>(end - begin) / 1000.0}};
    }

    static constexpr std::uint64_t kFirstTrack = std::uint64_t{1} << 32;  // no thread has it
    const std::uint64_t begin_ns_;
    const std::size_t machines_;
    std::uint64_t pid_ = 0, devices_ = 0, flows_ = 0, made_tracks_ = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> tracks_;  // of this process's domains
    Json events_ = Json::array();
};

}  // namespace

std::string chrome_json(const Model& model) {
    Writer writer(model);
    for (const Activity& activity : model.processes) {
        writer.add(activity);
        writer.add_work(activity);
    }
    return writer.text();
}

}  // namespace orrery::prof
