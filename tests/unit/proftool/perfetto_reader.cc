#include "tests/unit/proftool/perfetto_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>

namespace orrery::prof::test {
namespace {

enum class Kind : std::uint8_t { kNumber, kFixed, kDouble, kText, kMessage };

struct Field {
    std::uint32_t number;
    const char* name;
    Kind kind;
    const char* message = nullptr;  // of kMessage
    std::uint64_t most = ~std::uint64_t{0};
};
using Schema = std::map<std::string_view, std::vector<Field>>;

const Schema& schema() {
    using enum Kind;
    static const Schema all = {
        {"Trace", {{1, "packet", kMessage, "TracePacket"}}},
        {"TracePacket",
         {{8, "timestamp", kNumber},
          {10, "trusted_packet_sequence_id", kNumber},
          {11, "track_event", kMessage, "TrackEvent"},
          {12, "interned_data", kMessage, "InternedData"},
          {13, "sequence_flags", kNumber, nullptr, 3},
          {53, "gpu_render_stage_event", kMessage, "GpuRenderStageEvent"},
          {60, "track_descriptor", kMessage, "TrackDescriptor"}}},
        {"TrackDescriptor",
         {{1, "uuid", kNumber},
          {2, "name", kText},
          {3, "process", kMessage, "ProcessDescriptor"},
          {4, "thread", kMessage, "ThreadDescriptor"},
          {5, "parent_uuid", kNumber},
          {8, "counter", kMessage, "CounterDescriptor"}}},
        {"ProcessDescriptor", {{1, "pid", kNumber}, {6, "process_name", kText}}},
        {"ThreadDescriptor", {{1, "pid", kNumber}, {2, "tid", kNumber}, {5, "thread_name", kText}}},
        {"CounterDescriptor", {{6, "unit_name", kText}}},
        {"TrackEvent",
         {{4, "debug_annotations", kMessage, "DebugAnnotation"},
          {9, "type", kNumber, nullptr, 4},
          {11, "track_uuid", kNumber},
          {22, "categories", kText},
          {23, "name", kText},
          {30, "counter_value", kNumber},
          {44, "double_counter_value", kDouble},
          {47, "flow_ids", kFixed},
          {48, "terminating_flow_ids", kFixed}}},
        {"DebugAnnotation", {{3, "uint_value", kNumber}, {6, "string_value", kText}, {10, "name", kText}}},
        {"InternedData",
         {{23, "graphics_contexts", kMessage, "InternedGraphicsContext"},
          {24, "gpu_specifications", kMessage, "InternedGpuRenderStageSpecification"}}},
        {"InternedGraphicsContext", {{1, "iid", kNumber}, {2, "pid", kNumber}, {3, "api", kNumber}}},
        {"InternedGpuRenderStageSpecification",
         {{1, "iid", kNumber},
          {2, "name", kText},
          {3, "description", kText},
          {4, "category", kNumber, nullptr, 2}}},
        {"GpuRenderStageEvent",
         {{1, "event_id", kNumber},
          {2, "duration", kNumber},
          {5, "context", kNumber},
          {6, "extra_data", kMessage, "ExtraData"},
          {11, "gpu_id", kNumber},
          {13, "hw_queue_iid", kNumber},
          {14, "stage_iid", kNumber},
          {17, "name", kText},
          {18, "event_wait_ids", kNumber}}},
        {"ExtraData", {{1, "name", kText}, {2, "value", kText}}},
    };
    return all;
}

struct Value {
    std::uint64_t number = 0;
    std::string_view bytes;
};

// The fields of one message by name; texts and messages as they stand in the file.
struct Message {
    std::multimap<std::string_view, Value> fields;

    bool has(std::string_view name) const { return fields.contains(name); }
    std::uint64_t number(std::string_view name) const {
        const auto found = fields.find(name);
        return found == fields.end() ? 0 : found->second.number;
    }
    std::string_view bytes(std::string_view name) const {
        const auto found = fields.find(name);
        return found == fields.end() ? std::string_view() : found->second.bytes;
    }
    std::string text(std::string_view name) const { return std::string(bytes(name)); }
    std::vector<Value> all(std::string_view name) const {
        std::vector<Value> values;
        for (auto [at, end] = fields.equal_range(name); at != end; ++at)
            values.push_back(at->second);
        return values;
    }
};

class Bytes {
  public:
    explicit Bytes(std::string_view rest) : rest_(rest) {}
    bool empty() const { return rest_.empty(); }
    std::optional<std::uint64_t> varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80) return value;
        }
        return {};
    }
    std::optional<std::uint64_t> fixed() {
        if (rest_.size() < 8) return {};
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 8; ++i)
            value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
        rest_.remove_prefix(8);
        return value;
    }
    std::optional<std::string_view> some(std::uint64_t size) {
        if (rest_.size() < size) return {};
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }

  private:
    std::string_view rest_;
};

// Empty behind the first thing that is wrong.
Message decode(std::string_view bytes, std::string_view type) {
    Message message;
    Bytes rest(bytes);
    const std::vector<Field>& fields = schema().at(type);
    while (!rest.empty()) {
        const auto tag = rest.varint();
        if (!tag) {
            ADD_FAILURE() << type << " is cut";
            return message;
        }
        const auto field = std::ranges::find(fields, *tag >> 3, &Field::number);
        if (field == fields.end()) {
            ADD_FAILURE() << type << " has no field " << (*tag >> 3);
            return message;
        }
        const unsigned wire = *tag & 7,
                       expected = field->kind == Kind::kNumber                                  ? 0
                                  : field->kind == Kind::kFixed || field->kind == Kind::kDouble ? 1
                                                                                                : 2;
        Value value;
        bool good = wire == expected;
        if (good && wire == 2) {
            const auto size = rest.varint();
            const auto taken = size ? rest.some(*size) : std::nullopt;
            good = taken.has_value();
            value.bytes = taken.value_or("");
        } else if (good) {
            const auto number = wire == 0 ? rest.varint() : rest.fixed();
            good = number.has_value() && *number <= field->most;
            value.number = number.value_or(0);
        }
        if (!good) {
            ADD_FAILURE() << type << "." << field->name << " is of another type, out of range or cut";
            return message;
        }
        if (field->kind == Kind::kText) {
            EXPECT_TRUE(
                std::ranges::all_of(value.bytes, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
                << type << "." << field->name;
        }
        message.fields.emplace(field->name, value);
    }
    return message;
}

class Reader {
  public:
    PerfettoTrace read(std::string_view bytes) {
        const Message whole = decode(bytes, "Trace");
        bool first = true;
        for (const Value& value : whole.all("packet")) {
            const Message packet = decode(value.bytes, "TracePacket");
            EXPECT_NE(packet.number("trusted_packet_sequence_id"), 0u);
            // Else readers take nothing that has an iid.
            EXPECT_EQ(first, (packet.number("sequence_flags") & 1) != 0);
            first = false;
            if (packet.has("interned_data")) intern(packet.bytes("interned_data"));
            if (packet.has("track_descriptor")) describe(packet.bytes("track_descriptor"));
            if (packet.has("timestamp")) {
                EXPECT_GE(packet.number("timestamp"), last_);
                last_ = packet.number("timestamp");
            }
            if (packet.has("track_event")) event(packet.bytes("track_event"));
            if (packet.has("gpu_render_stage_event")) {
                EXPECT_NE(packet.number("sequence_flags") & 2, 0u);
                stage(packet.bytes("gpu_render_stage_event"));
            }
        }
        for (const auto& [track, open] : open_)
            EXPECT_TRUE(open.empty()) << trace_.tracks[track].name;
        EXPECT_TRUE(flows_.empty()) << flows_.size() << " flows have no end";
        return std::move(trace_);
    }

  private:
    void intern(std::string_view bytes) {
        const Message data = decode(bytes, "InternedData");
        for (const Value& value : data.all("graphics_contexts")) {
            const Message context = decode(value.bytes, "InternedGraphicsContext");
            EXPECT_TRUE(contexts_.emplace(context.number("iid"), context.number("pid")).second);
        }
        for (const Value& value : data.all("gpu_specifications")) {
            const Message one = decode(value.bytes, "InternedGpuRenderStageSpecification");
            EXPECT_TRUE(
                names_.try_emplace(one.number("iid"), one.text("name"), one.number("category")).second);
        }
    }
    void describe(std::string_view bytes) {
        const Message described = decode(bytes, "TrackDescriptor");
        PerfettoTrace::Track track;
        track.name = described.text("name");
        track.parent = described.number("parent_uuid");
        if (described.has("process")) {
            const Message process = decode(described.bytes("process"), "ProcessDescriptor");
            track.pid = static_cast<std::int32_t>(process.number("pid"));
            track.name = process.text("process_name");
        }
        if (described.has("thread")) {
            const Message thread = decode(described.bytes("thread"), "ThreadDescriptor");
            track.pid = static_cast<std::int32_t>(thread.number("pid"));
            track.tid = static_cast<std::int32_t>(thread.number("tid"));
        }
        if (described.has("counter")) {
            track.counter = true;
            track.unit = decode(described.bytes("counter"), "CounterDescriptor").text("unit_name");
        }
        EXPECT_TRUE(track.parent == 0 || trace_.tracks.contains(track.parent)) << track.name;
        EXPECT_NE(described.number("uuid"), 0u);
        EXPECT_TRUE(trace_.tracks.emplace(described.number("uuid"), std::move(track)).second);
    }
    void event(std::string_view bytes) {
        enum { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
        const Message event = decode(bytes, "TrackEvent");
        const std::uint64_t uuid = event.number("track_uuid"), type = event.number("type");
        const auto track = trace_.tracks.find(uuid);
        ASSERT_NE(track, trace_.tracks.end());
        EXPECT_EQ(track->second.counter, type == kCounter);
        auto& open = open_[uuid];
        if (type == kCounter) {
            EXPECT_TRUE(event.has("double_counter_value"));
            track->second.values.emplace_back(last_,
                                              std::bit_cast<double>(event.number("double_counter_value")));
            return;
        }
        std::size_t slice = trace_.slices.size();
        if (type == kEnd) {
            ASSERT_FALSE(open.empty());
            slice = open.back();
            open.pop_back();
            trace_.slices[slice].end = last_;
        } else {
            PerfettoTrace::Slice begun{
                uuid, last_, last_, event.text("name"), event.text("categories"), {}, type == kInstant};
            for (const Value& value : event.all("debug_annotations")) {
                const Message note = decode(value.bytes, "DebugAnnotation");
                begun.notes[note.text("name")] = note.number("uint_value");
            }
            trace_.slices.push_back(std::move(begun));
            if (type == kBegin) open.push_back(slice);
        }
        // As Perfetto: the first one begins it, and one that ends what nobody began is nothing.
        for (const Value& flow : event.all("flow_ids"))
            EXPECT_TRUE(flows_.emplace(flow.number, slice).second) << "a flow has two beginnings";
        for (const Value& flow : event.all("terminating_flow_ids")) {
            const auto begun = flows_.find(flow.number);
            if (begun == flows_.end()) continue;
            trace_.flows.emplace_back(begun->second, slice);
            flows_.erase(begun);
        }
    }
    void stage(std::string_view bytes) {
        const Message event = decode(bytes, "GpuRenderStageEvent");
        ASSERT_TRUE(contexts_.contains(event.number("context")));
        ASSERT_TRUE(names_.contains(event.number("hw_queue_iid")));
        ASSERT_TRUE(names_.contains(event.number("stage_iid")));
        PerfettoTrace::Stage made;
        made.id = event.number("event_id");
        made.begin = last_;
        made.length = event.number("duration");
        made.gpu = static_cast<std::int32_t>(event.number("gpu_id"));
        made.pid = static_cast<std::int32_t>(contexts_[event.number("context")]);
        made.name = event.text("name");
        made.queue = names_[event.number("hw_queue_iid")].first;
        std::tie(made.stage, made.category) = names_[event.number("stage_iid")];
        for (const Value& wait : event.all("event_wait_ids"))
            made.waits.push_back(wait.number);
        for (const Value& value : event.all("extra_data")) {
            const Message extra = decode(value.bytes, "ExtraData");
            made.extra[extra.text("name")] = extra.text("value");
        }
        trace_.stages.push_back(std::move(made));
    }

    PerfettoTrace trace_;
    std::uint64_t last_ = 0;
    std::map<std::uint64_t, std::vector<std::size_t>> open_;  // of a track
    std::map<std::uint64_t, std::size_t> flows_;
    std::map<std::uint64_t, std::uint64_t> contexts_;
    std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> names_;  // with the category
};

}  // namespace

PerfettoTrace read_perfetto(std::string_view bytes) {
    return Reader().read(bytes);
}

}  // namespace orrery::prof::test
