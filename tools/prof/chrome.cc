#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/prof/counter_series.h"
#include "tools/prof/show.h"
#include "tools/prof/steps.h"
#include "tools/prof/stream_events.h"

namespace orrery::prof {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
  public:
    explicit Writer(const Model& model) : model_(model), begin_ns_(model.profile.begin_ns) {}

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

    // Each device of a process is a process of the timeline.
    void add_work(const Activity& activity) {
        const Process& process = *activity.process;
        devices_.clear();
        lanes_.clear();
        std::vector<Place> places;
        for (const Work& one : activity.work) {
            const WorkRecord* const work = one.record;
            const std::uint64_t track =
                lane_track(activity, work->device, work->stream, one.lane, work->stream_name);
            const DeviceModel& own = *activity.device(work->device);
            const double begin = own.stretch_of(one).us(work->begin_ps, begin_ns_);
            const double length = static_cast<double>(one.ps()) / 1e6;
            events_.push_back({{"ph", "X"},
                               {"cat", "work"},
                               {"name", process.text(work->head.text)},
                               {"pid", pid_},
                               {"tid", track},
                               {"ts", begin},
                               {"dur", length},
                               {"args",
                                {{"correlation", work->correlation},
                                 {"begin_ps", work->begin_ps},
                                 {"end_ps", work->end_ps},
                                 {"used_ps", work->used_ps},
                                 {"outcome", work->outcome}}}});
            // Their last moment is within them: what ends at it may be followed by another.
            places.push_back({pid_, track, begin + length - std::min(length / 2, 0.001)});
            if (work->correlation == 0) continue;
            flow("submit", {number_of(process), work->thread, microseconds(work->submitted_ns)},
                 {pid_, track, begin});
        }
        const auto signals = add_stream_events(activity);
        const SignalIndex index(activity);
        for (std::size_t i = 0; i < places.size(); ++i) {
            add_finder(activity, activity.work[i], places[i]);
            if (const SignalRecord* const ender = index.ender_of(activity.work[i])) {
                const auto place = signals.find(ender);
                if (place != signals.end() && place->second.us <= places[i].us) {
                    flow("wait", place->second, places[i]);
                    continue;
                }
            }
            const std::uint32_t cause = activity.work[i].cause;
            // By clocks that are not known well enough it may go back in time.
            if (cause == kNone || places[cause].us > places[i].us) continue;
            flow("wait", places[cause], places[i]);
        }
        for (const CounterSeries& series : counter_series(activity)) {
            pid_ = device_pid(activity, series.device);
            for (const CounterSeries::Point& point : series.points) {
                const double ns = static_cast<double>(point.ns) - static_cast<double>(begin_ns_);
                events_.push_back({{"ph", "C"},
                                   {"name", series.name},
                                   {"pid", pid_},
                                   {"tid", 0},
                                   {"ts", ns / 1000},
                                   {"args", {{series.unit, point.rate}}}});
            }
        }
    }

    // What happened within calls, in rows of its own: beside the threads, and beside the device's streams.
    void add_steps(const Activity& activity) {
        const Process& process = *activity.process;
        for (const StepRow& row : step_rows(activity)) {
            pid_ = number_of(process);
            const DeviceModel* own = nullptr;
            if (row.device >= 0) {
                own = activity.device(static_cast<std::uint32_t>(row.device));
                pid_ = device_pid(activity, own->number);
            }
            const std::uint64_t tid = kFirstTrack + made_tracks_++;
            name("thread_name", tid, row.title);
            for (const StepRecord* const step : row.steps) {
                Json event = slice(process, step->head.text, "step", tid, step->begin_ns, step->end_ns);
                if (own != nullptr) {
                    event["ts"] = own->stretch_of(*step).us(step->begin_ps, begin_ns_);
                    event["dur"] = static_cast<double>(step->end_ps - step->begin_ps) / 1e6;
                }
                event["args"] = {{"kind", name_of(kind_of(*step))},
                                 {"round", step->round},
                                 {"number", step->number},
                                 {"correlation", step->correlation}};
                events_.push_back(std::move(event));
            }
        }
    }

    std::string text() const {
        const Json all = {{"displayTimeUnit", "ns"}, {"traceEvents", events_}};
        return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }

  private:
    struct Place {
        std::uint64_t pid, tid;
        double us;
    };
    void flow(const char* what, const Place& from, const Place& to) {
        Json event = {{"ph", "s"},       {"cat", what},     {"name", what}, {"id", ++flows_},
                      {"pid", from.pid}, {"tid", from.tid}, {"ts", from.us}};
        events_.push_back(event);
        event["ph"] = "f";
        event["bp"] = "e";
        event["pid"] = to.pid;
        event["tid"] = to.tid;
        event["ts"] = to.us;
        events_.push_back(std::move(event));
    }
    // From the end of work to the call that found it.
    void add_finder(const Activity& activity, const Work& work, const Place& end) {
        if (work.found_by == kNone) return;
        const CallRecord& call = activity.process->calls[work.found_by];
        // Work that stands a little late, as clocks are not known to the nanosecond, was found within the
        // call all the same.
        const double us = std::max(microseconds(work.record->found_ns), end.us);
        flow("done", end, {number_of(*activity.process), call.thread, us});
    }
    std::uint64_t lane_track(const Activity& activity, std::uint32_t device, std::uint64_t stream,
                             std::uint32_t lane, std::uint32_t text) {
        pid_ = device_pid(activity, device);
        const auto [track, is_new] = lanes_.try_emplace({device, stream, lane}, kFirstTrack + made_tracks_);
        made_tracks_ += is_new ? 1 : 0;
        if (is_new) name("thread_name", track->second, activity.text(text));
        return track->second;
    }
    // Signals and marks, as moments of their streams; where the former stand.
    std::map<const SignalRecord*, Place> add_stream_events(const Activity& activity) {
        std::map<const SignalRecord*, Place> signals;
        const auto add = [&](const auto& record, std::string_view text, const char* category,
                             std::uint64_t ns) {
            const std::uint64_t track =
                lane_track(activity, record.device, record.stream, 0, record.stream_name);
            const double us = (static_cast<double>(ns) - static_cast<double>(begin_ns_)) / 1000;
            Json args = {{"correlation", record.correlation}};
            if (record.time_ps != 0) args["time_ps"] = record.time_ps;
            events_.push_back({{"ph", "i"},
                               {"s", "t"},
                               {"cat", category},
                               {"name", text},
                               {"pid", pid_},
                               {"tid", track},
                               {"ts", us},
                               {"args", std::move(args)}});
            return Place{pid_, track, us};
        };
        for (const SignalRecord& signal : activity.process->signals) {
            if (const auto ns = moment_ns(activity, signal))
                signals.emplace(&signal, add(signal, title_of(activity, signal), "signal", *ns));
        }
        for (const StreamMarkRecord& mark : activity.process->stream_marks) {
            const auto ns = moment_ns(activity, mark);
            if (ns && activity.device(mark.device) != nullptr)
                add(mark, activity.text(mark.head.text), "stream mark", *ns);
        }
        return signals;
    }
    std::uint64_t device_pid(const Activity& activity, std::uint32_t device) {
        const auto [found, is_new] = devices_.try_emplace(device, kFirstTrack + made_devices_ + 1);
        if (is_new) {
            ++made_devices_;
            pid_ = found->second;
            name("process_name", pid_, device_title(model_, activity, device));
        }
        return found->second;
    }
    // Machines number their processes alike.
    static std::uint64_t number_of(const Process& process) {
        return process.pid + process.machine_at * 100'000'000;
    }
    std::string title(const Process& process) const {
        return model_.profile.machines.size() < 2
                   ? process.command
                   : fmt::format("machine {}: {}", process.machine_at + 1, process.command);
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
    const Model& model_;
    const std::uint64_t begin_ns_;
    std::uint64_t pid_ = 0, made_devices_ = 0, flows_ = 0, made_tracks_ = 0;
    std::map<std::uint32_t, std::uint64_t> devices_;  // of the process, as processes of the timeline
    // Of a device, a stream of it and what overlaps in that.
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, std::uint64_t> lanes_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> tracks_;  // of this process's domains
    Json events_ = Json::array();
};

}  // namespace

std::string device_title(const Model& model, const Activity& activity, std::uint32_t number) {
    const DeviceModel& device = *activity.device(number);
    return fmt::format("device {} of process {}{}, {}", number, activity.process->pid,
                       of_machine(model, *activity.process),
                       device.on_host_clock
                           ? fmt::format("the host's time to {} us", (device.stretches.worst_ns + 999) / 1000)
                           : std::string("model time"));
}

std::string chrome_json(const Model& model) {
    Writer writer(model);
    for (const Activity& activity : model.processes) {
        writer.add(activity);
        writer.add_work(activity);
        writer.add_steps(activity);
    }
    return writer.text();
}

}  // namespace orrery::prof
