// SPDX-License-Identifier: MIT
#include "firmware/sched/show/inspect.h"

namespace orrery::fw {
namespace {

template <size_t kBytes, size_t kLength>
consteval void set_text(char (&to)[kBytes], const char (&text)[kLength]) {
    static_assert(kLength <= kBytes);
    for (size_t i = 0; i < kLength; ++i)
        to[i] = text[i];
}

template <size_t kLength>
consteval orr_inspect_field field(const char (&name)[kLength], size_t offset, size_t bytes, uint16_t format) {
    orr_inspect_field f{};
    set_text(f.name, name);
    f.offset = static_cast<uint32_t>(offset);
    f.bytes = static_cast<uint16_t>(bytes);
    f.format = format;
    return f;
}

#define FIELD(Row, name, member, format) \
    field(name, offsetof(Row, member), sizeof(Row::member), ORR_FORMAT_##format)

// A column of a kind of engine: `row` of an array of 64-bit times.
consteval orr_inspect_field time_field(const char* name, size_t offset, size_t row) {
    orr_inspect_field f{};
    for (size_t i = 0; name[i] != '\0'; ++i)
        f.name[i] = name[i];
    f.offset = static_cast<uint32_t>(offset + row * sizeof(uint64_t));
    f.bytes = sizeof(uint64_t);
    f.format = ORR_FORMAT_TIME;
    return f;
}

// Numbers of rows are shown for what is kept as a pointer or under another name.
constexpr orr_inspect_field kPlainQueueFields[] = {
    FIELD(Queue, "exists", exists, BOOL),
    FIELD(Queue, "context", context_number, UNSIGNED),
    FIELD(Queue, "priority", priority, UNSIGNED),
    FIELD(Queue, "weight", weight, UNSIGNED),
    FIELD(Queue, "slice_us", slice_us, UNSIGNED),
    FIELD(Queue, "state", state, STATE),
    FIELD(Queue, "producer", producer, UNSIGNED),
    FIELD(Queue, "next", next, UNSIGNED),
    FIELD(Queue, "retired", retired, UNSIGNED),
    FIELD(Queue, "in_flight", in_flight, UNSIGNED),
    FIELD(Queue, "suspended", suspended, UNSIGNED),
    time_field("vtime_turn", offsetof(Queue, vtime), static_cast<size_t>(Resource::kTurn)),
    FIELD(Queue, "ready_since_ps", ready_since_ps, TIME),
    FIELD(Queue, "waited_ps", stats.ready_ps, TIME),
    FIELD(Queue, "longest_wait_ps", stats.longest_ready_ps, TIME),
    FIELD(Queue, "jobs", stats.finished, UNSIGNED),
    FIELD(Queue, "preempted", stats.preempted, UNSIGNED),
    FIELD(Queue, "wait_memory", wait.memory, HEX),
    FIELD(Queue, "wait_value", wait.value, UNSIGNED),
    field("wait_va", offsetof(Queue, packet) + 8, 8, ORR_FORMAT_HEX),
    FIELD(Queue, "error", error_code, UNSIGNED),
    FIELD(Queue, "generation", generation, UNSIGNED),
    FIELD(Queue, "slot", ring_slot, UNSIGNED),
    FIELD(Queue, "doorbell", slot, UNSIGNED),
    FIELD(Queue, "name", name, TEXT),
};

// And what is kept for each kind of engine.
struct QueueFields {
    static constexpr size_t kPlain = sizeof(kPlainQueueFields) / sizeof(kPlainQueueFields[0]);
    orr_inspect_field all[kPlain + 2 * kEngineKindCount];
};
consteval QueueFields queue_fields() {
    QueueFields fields{};
    size_t n = 0;
    for (const orr_inspect_field& f : kPlainQueueFields)
        fields.all[n++] = f;
    for (const EngineKind& kind : kEngineKinds) {
        fields.all[n++] = time_field(kind.vtime_column, offsetof(Queue, vtime), kind.kind);
        fields.all[n++] = time_field(kind.used_column, offsetof(Queue, stats.used_ps), kind.kind - 1);
    }
    return fields;
}
constexpr QueueFields kQueueFields = queue_fields();

constexpr orr_inspect_field kContextFields[] = {
    FIELD(Context, "exists", exists, BOOL),
    FIELD(Context, "queues", queues, UNSIGNED),
    FIELD(Context, "quota", quota_permille, UNSIGNED),
    FIELD(Context, "quota_period_us", quota_period_us, UNSIGNED),
    FIELD(Context, "period_end_ps", period_end_ps, TIME),
    FIELD(Context, "used_ps", used_ps, TIME),
    FIELD(Context, "throttled", throttled, BOOL),
    FIELD(Context, "page", page, UNSIGNED),
    FIELD(Context, "name", name, TEXT),
};

constexpr orr_inspect_field kPortFields[] = {
    FIELD(Port, "kind", kind, UNSIGNED),
    FIELD(Port, "busy", busy, BOOL),
    FIELD(Port, "queue", number, UNSIGNED),
    FIELD(Port, "index", index, UNSIGNED),
    FIELD(Port, "started_ps", started_ps, TIME),
    FIELD(Port, "deadline_ps", deadline, TIME),
    FIELD(Port, "preempting", preempting, UNSIGNED),
    FIELD(Port, "level", level, UNSIGNED),
};

#undef FIELD

template <typename Row, size_t kFields>
orr_inspect_table table(const char* name, const Row* rows, uint32_t count,
                        const orr_inspect_field (&fields)[kFields]) {
    orr_inspect_table t = {};
    for (size_t i = 0; i + 1 < sizeof(t.name) && name[i] != '\0'; ++i)
        t.name[i] = name[i];
    t.base = reinterpret_cast<uintptr_t>(rows);
    t.stride = sizeof(Row);
    t.rows = count;
    t.fields = reinterpret_cast<uintptr_t>(fields);
    t.field_count = kFields;
    return t;
}

}  // namespace

void Inspect::init(const Tables& tables, const Port* ports) {
    tables_[0] = table("queue", tables.queues, ORR_FW_QUEUES, kQueueFields.all);
    tables_[1] = table("context", tables.contexts, ORR_FW_CONTEXTS, kContextFields);
    tables_[2] = table("port", ports, SOC_ENGINES_MAX, kPortFields);
    root_ = {ORR_INSPECT_MAGIC, 1, kTables, reinterpret_cast<uintptr_t>(tables_)};
}

}  // namespace orrery::fw
