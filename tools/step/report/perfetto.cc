#include <orrery/fw/trace.h>

#include <algorithm>
#include <map>

#include "perfetto.pb.h"
#include "tools/records/names.h"
#include "tools/step/report/export.h"
#include "tools/step/words.h"

namespace orrery::step {
namespace {

namespace pb = orrery::perfetto;

// Track ids. Any numbers do that differ; those of a card have its number above bit 32.
constexpr std::uint64_t kCard = 1, kCore = 2, kReady = 3, kRunning = 4;
constexpr std::uint64_t kEngines = 0x1000, kQueues = 0x10000, kLinks = 0x1000'0000;
constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kCleared = 1;  // the sequence begins: nothing before it is needed

class Writer {
  public:
    // What follows is of this card; its descriptor comes first.
    void select(std::size_t number, const ExportCard& card) {
        base_ = std::uint64_t{number} << 32;
        card_ = &card;
    }
    void process(std::size_t number, const ExportCard& card) {
        select(number, card);
        rank_ = 0;
        pb::TrackDescriptor& track = descriptor(kCard, card.name);
        track.mutable_process()->set_pid(static_cast<std::int32_t>(number + 1));
        track.mutable_process()->set_process_name(card.name);
        track.set_child_ordering(pb::TrackDescriptor::EXPLICIT);
    }
    void track(std::uint64_t id, const std::string& name, bool counter = false) {
        pb::TrackDescriptor& track = descriptor(id, name);
        track.set_parent_uuid(base_ + kCard);
        track.set_sibling_order_rank(rank_++);
        if (counter) track.mutable_counter()->set_unit_name("queues");
    }

    pb::TrackEvent& event(Time time, std::uint64_t track, pb::TrackEvent::Type type) {
        return event_at(card_->system(time), track, type);
    }
    pb::TrackEvent& event_at(Time system, std::uint64_t track, pb::TrackEvent::Type type) {
        pb::TracePacket& packet = *trace_.add_packet();
        packet.set_timestamp(system / 1000);
        packet.set_trusted_packet_sequence_id(kSequence);
        pb::TrackEvent& event = *packet.mutable_track_event();
        event.set_type(type);
        event.set_track_uuid(base_ + track);
        return event;
    }
    pb::TrackEvent& slice(std::uint64_t track, const std::string& name, Time start, Time end) {
        pb::TrackEvent& begin = event(start, track, pb::TrackEvent::TYPE_SLICE_BEGIN);
        begin.set_name(name);
        note(begin, "start_ps", start);
        note(begin, "duration_ps", end - start);
        event(end, track, pb::TrackEvent::TYPE_SLICE_END);
        return begin;
    }
    // Of a link: by system time.
    pb::TrackEvent& crossing(std::uint64_t track, const Crossing& one, Time start, Time end) {
        pb::TrackEvent& begin = event_at(start, track, pb::TrackEvent::TYPE_SLICE_BEGIN);
        begin.set_name(operation_name(one.operation));
        note(begin, "what", describe(one));
        note(begin, "first", one.first);
        note(begin, "channel", one.channel);
        note(begin, "from_node", one.source);
        note(begin, "to_node", one.destination);
        note(begin, "start_ps", start);
        note(begin, "duration_ps", end - start);
        event_at(end, track, pb::TrackEvent::TYPE_SLICE_END);
        return begin;
    }
    void counter(std::uint64_t track, Time time, std::int64_t value) {
        event(time, track, pb::TrackEvent::TYPE_COUNTER).set_counter_value(value);
    }
    static void note(pb::TrackEvent& event, const char* name, std::uint64_t value) {
        pb::DebugAnnotation& annotation = *event.add_debug_annotations();
        annotation.set_name(name);
        annotation.set_uint_value(value);
    }
    static void note(pb::TrackEvent& event, const char* name, const std::string& value) {
        pb::DebugAnnotation& annotation = *event.add_debug_annotations();
        annotation.set_name(name);
        annotation.set_string_value(value);
    }
    std::uint64_t new_flow() { return ++flow_; }
    std::string finish() {
        std::string bytes;
        trace_.SerializeToString(&bytes);
        return bytes;
    }

  private:
    pb::TrackDescriptor& descriptor(std::uint64_t id, const std::string& name) {
        pb::TracePacket& packet = *trace_.add_packet();
        packet.set_trusted_packet_sequence_id(kSequence);
        if (trace_.packet_size() == 1) packet.set_sequence_flags(kCleared);
        pb::TrackDescriptor& track = *packet.mutable_track_descriptor();
        track.set_uuid(base_ + id);
        track.set_name(name);
        return track;
    }

    pb::Trace trace_;
    std::uint64_t base_ = 0;
    const ExportCard* card_ = nullptr;
    std::uint64_t flow_ = 0;
    std::int32_t rank_ = 0;
};

void write_jobs(Writer& writer, const History& history) {
    for (const Job& job : history.jobs()) {
        for (std::size_t i = 0; i < job.segments.size(); ++i) {
            const Segment& segment = job.segments[i];
            const Time end = segment.end == kNever ? std::max(history.end(), segment.start) : segment.end;
            const std::string name =
                fmt::format("{} {}", history.queue(job.queue, job.start()), packet_name(job.opcode));
            pb::TrackEvent& begin = writer.slice(kEngines + segment.port, name, segment.start, end);
            Writer::note(begin, "queue", job.queue);
            Writer::note(begin, "packet", job.index);
            Writer::note(begin, "size", job.size);
            Writer::note(begin, "used_ps", segment.used);
            Writer::note(begin, "status", segment.end == kNever ? "running" : done_name(segment.status));
        }
    }
}

void write_queues(Writer& writer, const History& history) {
    for (const QueueLife& queue : history.queues()) {
        for (std::size_t i = 0; i < queue.states.size(); ++i) {
            const StateChange& change = queue.states[i];
            if (change.state == ORR_TSTATE_IDLE) continue;
            const Time next = i + 1 < queue.states.size() ? queue.states[i + 1].time : history.end();
            writer.slice(kQueues + queue.number, state_name(change.state), change.time,
                         std::max(change.time, std::min(next, queue.destroyed)));
            if (change.state == ORR_TSTATE_TURN)
                writer.slice(kCore, history.queue(queue.number, change.time), change.time, next);
        }
    }
}

void write_counters(Writer& writer, const History& history) {
    std::map<std::uint32_t, std::uint32_t> states;
    std::int64_t ready = 0;
    std::int64_t last = -1;
    for (const Record& record : history.records()) {
        if (record.type == ORR_TRACE_STATE) {
            std::uint32_t& state = states[record.a];
            ready += (is_waiting(record.b) ? 1 : 0) - (is_waiting(state) ? 1 : 0);
            state = record.b;
        } else if (record.type == ORR_TRACE_QUEUE && record.b == 0xffffffffu) {
            ready -= is_waiting(states[record.a]) ? 1 : 0;
            states.erase(record.a);
        }
        if (ready != last) writer.counter(kReady, record.time, ready);
        last = ready;
    }
    std::map<Time, std::int64_t> changes;
    for (const Job& job : history.jobs()) {
        for (const Segment& segment : job.segments) {
            ++changes[segment.start];
            if (segment.end != kNever) --changes[segment.end];
        }
    }
    std::int64_t running = 0;
    for (const auto& [time, change] : changes)
        writer.counter(kRunning, time, running += change);
}

// By record: the flows to and from other cards that begin or end there.
struct Flows {
    std::map<std::size_t, std::vector<std::uint64_t>> begin, end;
};

void add_flows(pb::TrackEvent& event, const Flows& flows, std::size_t record) {
    if (const auto begin = flows.begin.find(record); begin != flows.begin.end())
        for (const std::uint64_t flow : begin->second)
            event.add_flow_ids(flow);
    if (const auto end = flows.end.find(record); end != flows.end.end())
        for (const std::uint64_t flow : end->second)
            event.add_terminating_flow_ids(flow);
}

void write_instants(Writer& writer, const History& history, const Flows& linked) {
    // A flow for each signal that woke somebody, from its record to theirs.
    std::map<std::size_t, std::vector<const Wait*>> woken;
    for (const Wait& wait : history.waits())
        if (wait.signal) woken[*wait.signal].push_back(&wait);
    const auto& records = history.records();
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Record& record = records[i];
        const std::uint32_t queue = queue_of(record);
        const std::uint64_t track = queue == ORR_TRACE_NONE ? kCore : kQueues + queue;
        switch (record.type) {
            case ORR_TRACE_DECISION: {
                pb::TrackEvent& event = writer.event(record.time, kCore, pb::TrackEvent::TYPE_INSTANT);
                event.set_name(
                    fmt::format("{}: {}", resource_name(record.b >> 8 & 0xff), rule_name(record.b & 0xff)));
                Writer::note(event, "decision", describe(record, history));
                break;
            }
            case ORR_TRACE_SIGNAL:
            case ORR_TRACE_POKE:
            case ORR_TRACE_PREEMPT:
            case ORR_TRACE_ERROR:
            case ORR_TRACE_DEADLOCK:
            case ORR_TRACE_QUOTA:
            case ORR_TRACE_DOORBELL:
            case ORR_TRACE_MAIL: {
                pb::TrackEvent& event = writer.event(record.time, track, pb::TrackEvent::TYPE_INSTANT);
                event.set_name(record_name(record.type));
                Writer::note(event, "what", describe(record, history));
                add_flows(event, linked, i);
                const auto found = woken.find(i);
                if (found == woken.end()) break;
                for (const Wait* wait : found->second) {
                    const std::uint64_t flow = writer.new_flow();
                    event.add_flow_ids(flow);
                    pb::TrackEvent& end =
                        writer.event(wait->to, kQueues + wait->queue, pb::TrackEvent::TYPE_INSTANT);
                    end.set_name("wake");
                    end.add_terminating_flow_ids(flow);
                    Writer::note(end, "semaphore", history.memory(wait->memory));
                }
                break;
            }
            default:
                break;
        }
    }
}

void write_card(Writer& writer, const ExportCard& card, const Flows& linked) {
    const History& history = *card.history;
    const std::size_t ports = std::max<std::size_t>(history.ports(), card.engine_names.size());
    for (std::size_t port = 0; port < ports; ++port) {
        const bool named = port < card.engine_names.size() && !card.engine_names[port].empty();
        writer.track(kEngines + port, named ? card.engine_names[port] : fmt::format("port {}", port));
    }
    writer.track(kCore, "control core");
    writer.track(kReady, "queues that wait for a turn or an engine", true);
    writer.track(kRunning, "engines that run", true);
    std::map<std::uint32_t, bool> done;
    for (const QueueLife& queue : history.queues())
        if (done.try_emplace(queue.number, true).second)
            writer.track(kQueues + queue.number, history.queue_row(queue.number));
    write_jobs(writer, history);
    write_queues(writer, history);
    write_counters(writer, history);
    write_instants(writer, history, linked);
}

// A direction of a link: at the end that sent, and at the one that took.
void write_link(Writer& writer, const std::vector<ExportCard>& cards, const LinkTrack& link) {
    std::vector<std::uint64_t> flows(link.crossings.size());
    const bool both = link.from.card && link.to.card;
    for (std::uint64_t& flow : flows)
        flow = both ? writer.new_flow() : 0;
    const auto arrow = [&](std::size_t n) {
        return both && link.crossings[n].sent && link.crossings[n].taken;
    };
    if (link.from.card) {
        const std::uint64_t track = kLinks + 2 * link.from.port;
        writer.select(*link.from.card, cards[*link.from.card]);
        writer.track(track, fmt::format("link port {} to {}", link.from.port, link.to.name));
        for (std::size_t n = 0; n < link.crossings.size(); ++n) {
            const Crossing& one = link.crossings[n];
            pb::TrackEvent& begin = writer.crossing(track, one, one.begin, one.left);
            if (arrow(n)) begin.add_flow_ids(flows[n]);
        }
    }
    if (link.to.card) {
        const std::uint64_t track = kLinks + 2 * link.to.port + 1;
        writer.select(*link.to.card, cards[*link.to.card]);
        writer.track(track, fmt::format("link port {} from {}", link.to.port, link.from.name));
        for (std::size_t n = 0; n < link.crossings.size(); ++n) {
            const Crossing& one = link.crossings[n];
            if (!one.taken) continue;
            pb::TrackEvent& begin = writer.crossing(track, one, one.came, one.end);
            if (arrow(n)) begin.add_terminating_flow_ids(flows[n]);
        }
    }
}

}  // namespace

std::string perfetto_trace(const std::vector<ExportCard>& cards, std::size_t most_crossings) {
    Writer writer;
    std::vector<Flows> linked(cards.size());
    for (const Message& message : find_messages(std::vector<CardHistory>(cards.begin(), cards.end()))) {
        const std::uint64_t flow = writer.new_flow();
        linked[message.from].begin[message.signal].push_back(flow);
        linked[message.to].end[message.poke].push_back(flow);
    }
    for (std::size_t n = 0; n < cards.size(); ++n) {
        writer.process(n, cards[n]);
        write_card(writer, cards[n], linked[n]);
    }
    static const std::vector<LinkBurst> kNone;
    std::vector<LinkedCard> ends;
    for (std::size_t n = 0; n < cards.size(); ++n)
        ends.push_back(
            {cards[n].uid, cards[n].bursts != nullptr ? cards[n].bursts : &kNone, fmt::format("card {}", n)});
    for (const LinkTrack& link : find_links(ends, most_crossings))
        write_link(writer, cards, link);
    return writer.finish();
}

}  // namespace orrery::step
