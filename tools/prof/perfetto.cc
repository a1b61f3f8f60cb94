#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perfetto.pb.h"
#include "tools/prof/counter_series.h"
#include "tools/prof/show.h"
#include "tools/prof/steps.h"
#include "tools/prof/stream_events.h"

namespace orrery::prof {
namespace {

namespace pb = orrery::perfetto;

// Names are of anybody's file, and a message's strings are UTF-8.
std::string utf8(std::string_view text) {
    std::string good;
    for (const char c : text)
        good += static_cast<unsigned char>(c) < 0x80 ? c : '?';
    return good;
}

// Perfetto knows a process by its number alone, and machines number theirs alike: those of the first machine
// keep what they have, others get what no process of Linux has.
class Pids {
  public:
    std::int32_t of(const Process& process) {
        const auto [found, is_new] = pids_.try_emplace({process.machine_at, process.pid}, 0);
        if (is_new) {
            found->second = process.machine_at == 0 && process.pid <= kMost
                                ? static_cast<std::int32_t>(process.pid)
                                : ++last_;
        }
        return found->second;
    }

  private:
    static constexpr std::int32_t kMost = 1 << 22;
    std::map<std::pair<std::size_t, std::uint64_t>, std::int32_t> pids_;
    std::int32_t last_ = kMost;
};

// What work is for Perfetto's GPU tracks: a stage, on a queue of the hardware.
struct Stage {
    const char* name;
    const char* queue;
    const char* description;
};
constexpr std::array<Stage, 5> kStages = {{
    {"other", "other", "what the card says no more of"},
    {"copy", "copy engines", "copies and fills"},
    {"fill", "copy engines", "copies and fills"},
    {"kernel", "vector cores", "kernels"},
    {"wait", "waits", "queues that wait for a semaphore"},
}};
std::size_t stage_of(const Work& work) {
    const auto operation = static_cast<std::size_t>(work.operation());
    return operation < kStages.size() ? operation : 0;
}

class Writer {
  public:
    explicit Writer(const Model& model) : model_(model) {
        pb::TracePacket& packet = this->packet();
        packet.set_sequence_flags(kCleared);
        for (std::size_t i = 0; i < kStages.size(); ++i) {
            auto& stage = *packet.mutable_interned_data()->add_gpu_specifications();
            stage.set_iid(kFirstStage + i);
            stage.set_name(kStages[i].name);
            stage.set_category(static_cast<Operation>(i) == Operation::kKernel
                                   ? pb::InternedGpuRenderStageSpecification::COMPUTE
                                   : pb::InternedGpuRenderStageSpecification::OTHER);
        }
    }

    void add(const Activity& activity) {
        const Process& process = *activity.process;
        process_track_ = ++last_track_;
        pid_ = pids_.of(process);
        pb::TrackDescriptor& described = describe(process_track_);
        described.mutable_process()->set_pid(pid_);
        described.mutable_process()->set_process_name(
            (process.machine_at == 0
                 ? ""
                 : fmt::format("process {} of machine {}: ", process.pid, process.machine_at + 1)) +
            utf8(process.command));
        auto& context = *packet().mutable_interned_data()->add_graphics_contexts();
        context.set_iid(++last_context_);
        context.set_pid(pid_);
        tracks_.clear();
        device_tracks_.clear();
        // From a call to all that the card did for it.
        std::multimap<std::uint64_t, std::uint64_t> flows;
        found_.clear();
        add_work(activity, flows);
        add_stages(activity);
        add_counters(activity);
        add_steps(activity);
        for (const CallRecord& call : process.calls) {
            const Slice made = slice(process, track(process, call.thread, 0), call.head.text, "call",
                                     call.begin_ns, call.end_ns, call.correlation, call.external);
            for (auto [at, end] = flows.equal_range(call.correlation); at != end; ++at)
                made.begin.add_flow_ids(at->second);
            for (auto [at, end] = found_.equal_range(&call); at != end; ++at)
                made.end.add_terminating_flow_ids(at->second);
        }
        for (const Span& span : activity.spans) {
            slice(process, track(process, span.thread, span.domain), span.text, "range", span.begin_ns,
                  span.end_ns, span.correlation, span.external);
        }
        for (const auto& [type, range] : process.ranges) {
            if (type != Type::kMark) continue;
            auto& event = at(range.ns, Order::kBegin, 0, pb::TrackEvent::TYPE_INSTANT,
                             track(process, range.thread, range.domain));
            event.set_name(utf8(process.text(range.head.text)));
            event.add_categories("mark");
        }
    }

    // A track's slices have to come in the order of their times, the outer one first.
    std::string text() {
        std::ranges::sort(events_, {}, &Event::order);
        for (auto& event : events_)
            *trace_.add_packet() = std::move(event.packet);
        return trace_.SerializeAsString();
    }

  private:
    // Of events of one moment: ends, inner ones first, those of waits behind those of what they waited for;
    // then begins, outer ones first.
    enum class Order : std::uint8_t { kEnd, kEndOfWait, kBegin };
    struct Event {
        std::tuple<std::uint64_t, Order, std::uint64_t, std::size_t> order;
        pb::TracePacket packet;
    };
    struct Slice {
        pb::TrackEvent& begin;
        pb::TrackEvent& end;
    };

    void add_work(const Activity& activity, std::multimap<std::uint64_t, std::uint64_t>& flows) {
        const Process& process = *activity.process;
        lanes_.clear();
        std::vector<pb::TrackEvent*> ends;
        for (const Work& one : activity.work) {
            const WorkRecord* const work = one.record;
            const std::uint64_t track =
                lane_track(activity, work->device, work->stream, one.lane, work->stream_name);
            const auto [begin_ns, end_ns] = times(activity, one);
            const Slice made =
                slice(process, track, work->head.text, "work", begin_ns, end_ns, work->correlation,
                      work->external, one.operation() == Operation::kWait ? Order::kEndOfWait : Order::kEnd);
            ends.push_back(&made.end);
            note(made.begin, "begin_ps", work->begin_ps);
            note(made.begin, "end_ps", work->end_ps);
            note(made.begin, "used_ps", work->used_ps);
            if (work->correlation == 0) continue;
            flows.emplace(work->correlation, ++last_flow_);
            made.begin.add_terminating_flow_ids(last_flow_);
        }
        std::map<const SignalRecord*, pb::TrackEvent*> signals;
        add_stream_events(activity, flows, signals);
        // From the signal, or the end of what it came behind, to the end of the wait, which may have begun
        // before it.
        const SignalIndex index(activity);
        for (std::size_t i = 0; i < ends.size(); ++i) {
            add_finder(activity, activity.work[i], *ends[i]);
            if (const SignalRecord* const ender = index.ender_of(activity.work[i])) {
                const auto event = signals.find(ender);
                if (event != signals.end() &&
                    moment_ns(activity, *ender) <= times(activity, activity.work[i]).second) {
                    event->second->add_flow_ids(++last_flow_);
                    ends[i]->add_terminating_flow_ids(last_flow_);
                    continue;
                }
            }
            const std::uint32_t cause = activity.work[i].cause;
            if (cause == kNone) continue;
            // By clocks that are not known well enough it would go back in time.
            if (times(activity, activity.work[cause]).second > times(activity, activity.work[i]).second)
                continue;
            ends[cause]->add_flow_ids(++last_flow_);
            ends[i]->add_terminating_flow_ids(last_flow_);
        }
    }
    // From the end of work to the end of the call that found it.
    void add_finder(const Activity& activity, const Work& work, pb::TrackEvent& end) {
        if (work.found_by == kNone) return;
        const CallRecord& call = activity.process->calls[work.found_by];
        end.add_flow_ids(++last_flow_);
        found_.emplace(&call, last_flow_);
    }
    // Signals and marks, as moments of their streams' tracks.
    void add_stream_events(const Activity& activity, std::multimap<std::uint64_t, std::uint64_t>& flows,
                           std::map<const SignalRecord*, pb::TrackEvent*>& signals) {
        const auto moment = [&](const auto& record, std::string_view name, const char* category,
                                std::uint64_t ns) -> pb::TrackEvent& {
            const std::uint64_t track =
                lane_track(activity, record.device, record.stream, 0, record.stream_name);
            auto& event = at(ns, Order::kBegin, 0, pb::TrackEvent::TYPE_INSTANT, track);
            event.set_name(utf8(name));
            event.add_categories(category);
            note(event, "correlation", record.correlation);
            note(event, "external", record.external);
            note(event, "time_ps", record.time_ps);
            if (record.correlation != 0) {
                flows.emplace(record.correlation, ++last_flow_);
                event.add_terminating_flow_ids(last_flow_);
            }
            return event;
        };
        for (const SignalRecord& signal : activity.process->signals) {
            const auto ns = moment_ns(activity, signal);
            if (!ns) continue;
            auto& event = moment(signal, title_of(activity, signal), "signal", *ns);
            note(event, "semaphore", signal.semaphore);
            note(event, "value", signal.value);
            note(event, "waiters", signal.waiters);
            signals.emplace(&signal, &event);
        }
        for (const StreamMarkRecord& mark : activity.process->stream_marks) {
            if (activity.device(mark.device) == nullptr) continue;
            if (const auto ns = moment_ns(activity, mark))
                moment(mark, activity.text(mark.head.text), "stream mark", *ns);
        }
    }
    std::uint64_t lane_track(const Activity& activity, std::uint32_t device, std::uint64_t stream,
                             std::uint32_t lane, std::uint32_t name) {
        // The host has one on each card.
        const std::uint64_t parent = device_track(activity, device);
        const auto [track, is_new] = lanes_.try_emplace({device, stream, lane}, last_track_ + 1);
        if (is_new) {
            pb::TrackDescriptor& described = describe(++last_track_);
            described.set_name(utf8(activity.text(name)));
            described.set_parent_uuid(parent);
        }
        return track->second;
    }
    // What happened within calls, in tracks of its own.
    void add_steps(const Activity& activity) {
        const Process& process = *activity.process;
        for (const StepRow& row : step_rows(activity)) {
            const DeviceModel* const own =
                row.device < 0 ? nullptr : activity.device(static_cast<std::uint32_t>(row.device));
            const std::uint64_t parent =
                own == nullptr ? process_track_ : device_track(activity, own->number);
            const std::uint64_t track = ++last_track_;
            pb::TrackDescriptor& described = describe(track);
            described.set_name(utf8(row.title));
            described.set_parent_uuid(parent);
            for (const StepRecord* const step : row.steps) {
                std::uint64_t begin_ns = step->begin_ns, end_ns = step->end_ns;
                if (own != nullptr) {
                    const Stretch& stretch = own->stretch_of(*step);
                    begin_ns = stretch.ns(step->begin_ps);
                    end_ns = stretch.ns(step->end_ps);
                }
                auto& event = slice(process, track, step->head.text, "step", begin_ns, end_ns,
                                    step->correlation, step->external)
                                  .begin;
                note(event, "round", step->round);
                note(event, "number", step->number);
            }
        }
    }

    // The same work as what ran on each card's engines, whoever's it is.
    void add_stages(const Activity& activity) {
        for (std::size_t i = 0; i < activity.work.size(); ++i) {
            const Work& one = activity.work[i];
            const WorkRecord& work = *one.record;
            const std::size_t stage = stage_of(one);
            const std::int32_t gpu = gpu_of(activity, work.device);
            const std::uint64_t queue = queue_of(gpu, stage, activity, work.device);
            const auto [begin_ns, end_ns] = times(activity, one);
            pb::TracePacket& packet = new_event(begin_ns, Order::kBegin, ~(end_ns - begin_ns));
            packet.set_sequence_flags(kNeedsState);
            auto& event = *packet.mutable_gpu_render_stage_event();
            event.set_event_id(last_event_ + 1 + i);
            event.set_duration(end_ns - begin_ns);
            event.set_context(last_context_);
            event.set_gpu_id(gpu);
            event.set_hw_queue_iid(queue);
            event.set_stage_iid(kFirstStage + stage);
            event.set_name(utf8(activity.name(one)));
            if (one.cause != kNone) event.add_event_wait_ids(last_event_ + 1 + one.cause);
            extra(event, "stream", utf8(activity.text(work.stream_name)));
            extra(event, "correlation", std::to_string(work.correlation));
            extra(event, "begin_ps", std::to_string(work.begin_ps));
            extra(event, "end_ps", std::to_string(work.end_ps));
            if (work.bytes != 0) extra(event, "bytes", std::to_string(work.bytes));
            if (work.groups != 0) extra(event, "groups", std::to_string(work.groups));
        }
        last_event_ += activity.work.size();
    }
    static void extra(pb::GpuRenderStageEvent& event, const char* name, const std::string& value) {
        auto& added = *event.add_extra_data();
        added.set_name(name);
        added.set_value(value);
    }
    // A card is one, by whatever number processes have it.
    std::int32_t gpu_of(const Activity& activity, std::uint32_t device) {
        const DeviceModel* const own = activity.device(device);
        const bool known = own->card != nullptr && own->card->uid != 0;
        // Two machines may each have one of that number.
        const auto key = known ? GpuKey(nullptr, activity.process->machine_at, own->card->uid)
                               : GpuKey(activity.process, 0, device);
        return gpus_.try_emplace(key, static_cast<std::int32_t>(gpus_.size())).first->second;
    }
    std::uint64_t queue_of(std::int32_t gpu, std::size_t stage, const Activity& activity,
                           std::uint32_t device) {
        const auto [found, is_new] =
            queues_.try_emplace({gpu, kStages[stage].queue}, kFirstQueue + queues_.size());
        if (!is_new) return found->second;
        const DeviceModel& own = *activity.device(device);
        const std::string card =
            own.card == nullptr
                ? fmt::format("device {} of process {}", device, activity.process->pid)
                : utf8(activity.text(own.card->head.text)) + " " + utf8(activity.text(own.card->pci));
        auto& queue = *packet().mutable_interned_data()->add_gpu_specifications();
        queue.set_iid(found->second);
        // With the card, as there are readers that know queues by their names alone.
        queue.set_name(
            fmt::format("{}, {}{}", kStages[stage].queue, card, of_machine(model_, *activity.process)));
        queue.set_description(kStages[stage].description);
        return found->second;
    }

    void add_counters(const Activity& activity) {
        for (const CounterSeries& series : counter_series(activity)) {
            const std::uint64_t device = device_track(activity, series.device);
            pb::TrackDescriptor& described = describe(++last_track_);
            described.set_name(utf8(series.name));
            described.set_parent_uuid(device);
            described.mutable_counter()->set_unit_name(utf8(series.unit));
            for (const CounterSeries::Point& point : series.points) {
                at(point.ns, Order::kBegin, 0, pb::TrackEvent::TYPE_COUNTER, last_track_)
                    .set_double_counter_value(point.rate);
            }
        }
    }

    // Slices of no length would end before they begin.
    static std::pair<std::uint64_t, std::uint64_t> times(const Activity& activity, const Work& one) {
        const Stretch& stretch = activity.device(one.record->device)->stretch_of(one);
        const std::uint64_t begin = stretch.ns(one.record->begin_ps);
        return {begin, std::max(stretch.ns(one.record->end_ps), begin + 1)};
    }
    std::uint64_t device_track(const Activity& activity, std::uint32_t device) {
        const auto [found, is_new] = device_tracks_.try_emplace(device, last_track_ + 1);
        if (is_new) {
            describe(++last_track_).set_name(device_title(model_, activity, device));
        }
        return found->second;
    }
    pb::TracePacket& packet() {
        pb::TracePacket& made = *trace_.add_packet();
        made.set_trusted_packet_sequence_id(1);
        return made;
    }
    pb::TrackDescriptor& describe(std::uint64_t track) {
        pb::TrackDescriptor& described = *packet().mutable_track_descriptor();
        described.set_uuid(track);
        return described;
    }
    std::uint64_t track(const Process& process, std::uint32_t thread, std::uint32_t domain) {
        const auto [found, is_new] = tracks_.try_emplace({thread, domain}, last_track_ + 1);
        if (!is_new) return found->second;
        pb::TrackDescriptor& described = describe(++last_track_);
        if (domain == 0) {
            described.mutable_thread()->set_pid(pid_);
            described.mutable_thread()->set_tid(static_cast<std::int32_t>(thread));
        } else {
            described.set_name(utf8(process.text(domain)) + " of thread " + std::to_string(thread));
            described.set_parent_uuid(process_track_);
        }
        return found->second;
    }
    pb::TracePacket& new_event(std::uint64_t ns, Order order, std::uint64_t length) {
        events_.push_back({{ns, order, length, events_.size()}, {}});
        pb::TracePacket& packet = events_.back().packet;
        packet.set_timestamp(ns);
        packet.set_trusted_packet_sequence_id(1);
        return packet;
    }
    pb::TrackEvent& at(std::uint64_t ns, Order order, std::uint64_t length, pb::TrackEvent::Type type,
                       std::uint64_t track) {
        pb::TrackEvent& event =
            *new_event(ns, order, order == Order::kBegin ? ~length : length).mutable_track_event();
        event.set_type(type);
        event.set_track_uuid(track);
        return event;
    }
    Slice slice(const Process& process, std::uint64_t track, std::uint32_t text, const char* category,
                std::uint64_t begin, std::uint64_t end, std::uint64_t correlation, std::uint64_t external,
                Order order = Order::kEnd) {
        // One of no length would end before it begins.
        end = std::max(end, begin + 1);
        auto& ended = at(end, order, end - begin, pb::TrackEvent::TYPE_SLICE_END, track);
        auto& event = at(begin, Order::kBegin, end - begin, pb::TrackEvent::TYPE_SLICE_BEGIN, track);
        event.set_name(utf8(process.text(text)));
        event.add_categories(category);
        note(event, "correlation", correlation);
        note(event, "external", external);
        return {event, ended};
    }
    static void note(pb::TrackEvent& event, const char* name, std::uint64_t value) {
        if (value == 0) return;
        auto& added = *event.add_debug_annotations();
        added.set_name(name);
        added.set_uint_value(value);
    }

    static constexpr std::uint32_t kCleared = 1, kNeedsState = 2;  // what is named by an iid
    static constexpr std::uint64_t kFirstStage = 1, kFirstQueue = kFirstStage + kStages.size();
    const Model& model_;
    pb::Trace trace_;
    Pids pids_;
    std::int32_t pid_ = 0;  // of the process, as the next
    std::map<std::uint32_t, std::uint64_t> device_tracks_;
    // Of a device, a stream of it and what overlaps in that.
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, std::uint64_t> lanes_;
    using GpuKey = std::tuple<const Process*, std::uint64_t, std::uint64_t>;
    std::map<GpuKey, std::int32_t> gpus_;
    std::map<std::pair<std::int32_t, std::string_view>, std::uint64_t> queues_;  // iids
    std::uint64_t last_context_ = 0, last_event_ = 0;
    std::multimap<const CallRecord*, std::uint64_t> found_;  // flows from work that a call found done
    std::deque<Event> events_;                               // those that were given out stay in place
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> tracks_;  // of the process
    std::uint64_t last_track_ = 0, process_track_ = 0, last_flow_ = 0;
};

}  // namespace

std::string perfetto_trace(const Model& model) {
    Writer writer(model);
    for (const Activity& activity : model.processes)
        writer.add(activity);
    return writer.text();
}

}  // namespace orrery::prof
