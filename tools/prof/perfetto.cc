#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "perfetto.pb.h"
#include "tools/prof/show.h"

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

class Writer {
  public:
    void add(const Activity& activity) {
        const Process& process = *activity.process;
        process_track_ = ++last_track_;
        pb::TrackDescriptor& described = describe(process_track_);
        described.mutable_process()->set_pid(static_cast<std::int32_t>(process.pid));
        described.mutable_process()->set_process_name(utf8(process.command));
        tracks_.clear();
        // From a call to all that the card did for it.
        std::multimap<std::uint64_t, std::uint64_t> flows;
        add_work(activity, flows);
        for (const CallRecord& call : process.calls) {
            auto& event = slice(process, track(process, call.thread, 0), call.head.text, "call",
                                call.begin_ns, call.end_ns, call.correlation, call.external);
            for (auto [at, end] = flows.equal_range(call.correlation); at != end; ++at)
                event.add_flow_ids(at->second);
        }
        for (const Span& span : activity.spans) {
            slice(process, track(process, span.thread, span.domain), span.text, "range", span.begin_ns,
                  span.end_ns, span.correlation, span.external);
        }
        for (const auto& [type, range] : process.ranges) {
            if (type != Type::kMark) continue;
            auto& event =
                at(range.ns, 0, pb::TrackEvent::TYPE_INSTANT, track(process, range.thread, range.domain));
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
    struct Event {
        // Of events of one moment: ends, inner ones first, then begins, outer ones first.
        std::tuple<std::uint64_t, bool, std::uint64_t, std::size_t> order;
        pb::TracePacket packet;
    };

    void add_work(const Activity& activity, std::multimap<std::uint64_t, std::uint64_t>& flows) {
        const Process& process = *activity.process;
        std::map<std::uint32_t, std::uint64_t> devices;
        std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> lanes;
        for (const Work& one : activity.work) {
            const WorkRecord* const work = one.record;
            const DeviceModel& own = *activity.device(work->device);
            const auto [device, new_device] = devices.try_emplace(work->device, last_track_ + 1);
            if (new_device) {
                describe(++last_track_)
                    .set_name(fmt::format("device {} of process {}, model time", work->device, process.pid));
            }
            const auto [track, is_new] = lanes.try_emplace({work->stream, one.lane}, last_track_ + 1);
            if (is_new) {
                pb::TrackDescriptor& described = describe(++last_track_);
                described.set_name(utf8(process.text(work->stream_name)));
                described.set_parent_uuid(device->second);
            }
            auto& event = slice(process, track->second, work->head.text, "work", own.ns(work->begin_ps),
                                own.ns(work->end_ps), work->correlation, work->external);
            note(event, "begin_ps", work->begin_ps);
            note(event, "used_ps", work->used_ps);
            if (work->correlation == 0) continue;
            flows.emplace(work->correlation, ++last_flow_);
            event.add_terminating_flow_ids(last_flow_);
        }
    }
    pb::TrackDescriptor& describe(std::uint64_t track) {
        auto& packet = *trace_.add_packet();
        packet.set_trusted_packet_sequence_id(1);
        packet.mutable_track_descriptor()->set_uuid(track);
        return *packet.mutable_track_descriptor();
    }
    std::uint64_t track(const Process& process, std::uint32_t thread, std::uint32_t domain) {
        const auto [found, is_new] = tracks_.try_emplace({thread, domain}, last_track_ + 1);
        if (!is_new) return found->second;
        pb::TrackDescriptor& described = describe(++last_track_);
        if (domain == 0) {
            described.mutable_thread()->set_pid(static_cast<std::int32_t>(process.pid));
            described.mutable_thread()->set_tid(static_cast<std::int32_t>(thread));
        } else {
            described.set_name(utf8(process.text(domain)) + " of thread " + std::to_string(thread));
            described.set_parent_uuid(process_track_);
        }
        return found->second;
    }
    pb::TrackEvent& at(std::uint64_t ns, std::uint64_t length, pb::TrackEvent::Type type,
                       std::uint64_t track) {
        const bool begin = type != pb::TrackEvent::TYPE_SLICE_END;
        events_.push_back({{ns, begin, begin ? ~length : length, events_.size()}, {}});
        pb::TracePacket& packet = events_.back().packet;
        packet.set_timestamp(ns);
        packet.set_trusted_packet_sequence_id(1);
        packet.mutable_track_event()->set_type(type);
        packet.mutable_track_event()->set_track_uuid(track);
        return *packet.mutable_track_event();
    }
    pb::TrackEvent& slice(const Process& process, std::uint64_t track, std::uint32_t text,
                          const char* category, std::uint64_t begin, std::uint64_t end,
                          std::uint64_t correlation, std::uint64_t external) {
        // One of no length would end before it begins.
        end = std::max(end, begin + 1);
        at(end, end - begin, pb::TrackEvent::TYPE_SLICE_END, track);
        auto& event = at(begin, end - begin, pb::TrackEvent::TYPE_SLICE_BEGIN, track);
        event.set_name(utf8(process.text(text)));
        event.add_categories(category);
        note(event, "correlation", correlation);
        note(event, "external", external);
        return event;
    }
    static void note(pb::TrackEvent& event, const char* name, std::uint64_t value) {
        if (value == 0) return;
        auto& added = *event.add_debug_annotations();
        added.set_name(name);
        added.set_uint_value(value);
    }

    pb::Trace trace_;
    std::deque<Event> events_;  // those that were given out stay in place
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> tracks_;  // of the process
    std::uint64_t last_track_ = 0, process_track_ = 0, last_flow_ = 0;
};

}  // namespace

std::string perfetto_trace(const Model& model) {
    Writer writer;
    for (const Activity& activity : model.processes)
        writer.add(activity);
    return writer.text();
}

}  // namespace orrery::prof
