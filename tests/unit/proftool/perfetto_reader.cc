#include "tests/unit/proftool/perfetto_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <istream>
#include <optional>
#include <regex>
#include <tuple>

namespace orrery::prof::test {
namespace {

// As the public messages have it; `most` is ours.
struct Field {
    std::uint32_t number;
    const char* name;
    std::string_view type;  // of a number, text, enumeration or message
    bool repeated = false;
    std::uint64_t most = ~std::uint64_t{0};
};
constexpr bool kMany = true;
using Schema = std::map<std::string_view, std::vector<Field>>;
using Enumerations = std::map<std::string_view, std::vector<std::pair<std::string_view, unsigned>>>;

const Schema& schema() {
    static const Schema all = {
        {"Trace", {{1, "packet", "TracePacket", kMany}}},
        {"TracePacket",
         {{8, "timestamp", "uint64"},
          {10, "trusted_packet_sequence_id", "uint32"},
          {11, "track_event", "TrackEvent"},
          {12, "interned_data", "InternedData"},
          {13, "sequence_flags", "uint32", false, 3},
          {53, "gpu_render_stage_event", "GpuRenderStageEvent"},
          {60, "track_descriptor", "TrackDescriptor"}}},
        {"TrackDescriptor",
         {{1, "uuid", "uint64"},
          {2, "name", "string"},
          {3, "process", "ProcessDescriptor"},
          {4, "thread", "ThreadDescriptor"},
          {5, "parent_uuid", "uint64"},
          {8, "counter", "CounterDescriptor"},
          {11, "child_ordering", "ChildTracksOrdering"},
          {12, "sibling_order_rank", "int32"}}},
        {"ProcessDescriptor", {{1, "pid", "int32"}, {6, "process_name", "string"}}},
        {"ThreadDescriptor", {{1, "pid", "int32"}, {2, "tid", "int32"}, {5, "thread_name", "string"}}},
        {"CounterDescriptor", {{6, "unit_name", "string"}}},
        {"TrackEvent",
         {{4, "debug_annotations", "DebugAnnotation", kMany},
          {9, "type", "Type"},
          {11, "track_uuid", "uint64"},
          {22, "categories", "string", kMany},
          {23, "name", "string"},
          {30, "counter_value", "int64"},
          {44, "double_counter_value", "double"},
          {47, "flow_ids", "fixed64", kMany},
          {48, "terminating_flow_ids", "fixed64", kMany}}},
        {"DebugAnnotation",
         {{3, "uint_value", "uint64"}, {6, "string_value", "string"}, {10, "name", "string"}}},
        {"InternedData",
         {{23, "graphics_contexts", "InternedGraphicsContext", kMany},
          {24, "gpu_specifications", "InternedGpuRenderStageSpecification", kMany}}},
        {"InternedGraphicsContext", {{1, "iid", "uint64"}, {2, "pid", "int32"}}},
        {"InternedGpuRenderStageSpecification",
         {{1, "iid", "uint64"},
          {2, "name", "string"},
          {3, "description", "string"},
          {4, "category", "RenderStageCategory"}}},
        {"GpuRenderStageEvent",
         {{1, "event_id", "uint64"},
          {2, "duration", "uint64"},
          {5, "context", "uint64"},
          {6, "extra_data", "ExtraData", kMany},
          {11, "gpu_id", "int32"},
          {13, "hw_queue_iid", "uint64"},
          {14, "stage_iid", "uint64"},
          {17, "name", "string"},
          {18, "event_wait_ids", "uint64", kMany}}},
        {"ExtraData", {{1, "name", "string"}, {2, "value", "string"}}},
    };
    return all;
}

const Enumerations& enumerations() {
    static const Enumerations all = {
        {"ChildTracksOrdering",
         {{"UNKNOWN", 0}, {"LEXICOGRAPHIC", 1}, {"CHRONOLOGICAL", 2}, {"EXPLICIT", 3}}},
        {"Type",
         {{"TYPE_UNSPECIFIED", 0},
          {"TYPE_SLICE_BEGIN", 1},
          {"TYPE_SLICE_END", 2},
          {"TYPE_INSTANT", 3},
          {"TYPE_COUNTER", 4}}},
        {"RenderStageCategory", {{"OTHER", 0}, {"GRAPHICS", 1}, {"COMPUTE", 2}}},
    };
    return all;
}

// How a value of this type stands in the file, and what it may be.
struct Form {
    unsigned wire;
    std::uint64_t most;
};
Form form_of(const Field& field) {
    if (field.type == "fixed64" || field.type == "double") return {1, field.most};
    if (field.type == "string" || schema().contains(field.type)) return {2, field.most};
    const auto values = enumerations().find(field.type);
    return {0, values == enumerations().end() ? field.most : values->second.back().second};
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
        const auto wire = static_cast<unsigned>(*tag & 7);
        const Form form = form_of(*field);
        Value value;
        bool good = wire == form.wire;
        if (good && wire == 2) {
            const auto size = rest.varint();
            const auto taken = size ? rest.some(*size) : std::nullopt;
            good = taken.has_value();
            value.bytes = taken.value_or("");
        } else if (good) {
            const auto number = wire == 0 ? rest.varint() : rest.fixed();
            good = number.has_value() && *number <= form.most;
            value.number = number.value_or(0);
        }
        if (!good) {
            ADD_FAILURE() << type << "." << field->name << " is of another type, out of range or cut";
            return message;
        }
        if (field->type == "string") {
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

std::vector<std::string> wrong_in_proto(std::istream& proto) {
    static const std::regex kBeside(R"(\s*//.*$|^\s+|\s+$)"), kOther(R"((syntax|package|option)\b.*;)"),
        kOpens(R"((message|enum) (\w+) \{)"), kValue(R"((\w+) = (\d+);)"),
        kField(R"((optional|repeated) (\w+) (\w+) = (\d+);)");
    const auto is_value = [](const std::string& of, const std::string& line) {
        std::smatch is;
        const auto all = enumerations().find(of);
        return all != enumerations().end() && std::regex_match(line, is, kValue) &&
               std::ranges::any_of(all->second, [&](const auto& value) {
                   return value.first == is[1].str() && std::to_string(value.second) == is[2];
               });
    };
    const auto is_field = [](const std::string& of, const std::string& line) {
        std::smatch is;
        const auto all = schema().find(of);
        return all != schema().end() && std::regex_match(line, is, kField) &&
               std::ranges::any_of(all->second, [&](const Field& field) {
                   return field.repeated == (is[1] == "repeated") && field.type == is[2].str() &&
                          field.name == is[3] && std::to_string(field.number) == is[4];
               });
    };
    std::vector<std::string> wrong, inside;
    for (std::string line; std::getline(proto, line);) {
        line = std::regex_replace(line, kBeside, "");
        std::smatch is;
        if (line.empty() || std::regex_match(line, is, kOther)) continue;
        if (std::regex_match(line, is, kOpens)) {
            inside.push_back(is[2]);
            if (!schema().contains(inside.back()) && !enumerations().contains(inside.back()))
                wrong.push_back("no " + inside.back() + " is published");
        } else if (line == "}" && !inside.empty()) {
            inside.pop_back();
        } else {
            const std::string of = inside.empty() ? "" : inside.back();
            if (!is_value(of, line) && !is_field(of, line)) wrong.push_back(of + ": " + line);
        }
    }
    return wrong;
}

}  // namespace orrery::prof::test
