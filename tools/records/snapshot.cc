#include "tools/records/snapshot.h"

#include <algorithm>
#include <cstring>

#include "tools/records/names.h"

namespace orrery::records {
namespace {

// Reads fields of one table by name; the names are looked up once.
class Reader {
  public:
    Reader(const Inspect& inspect, Sram sram, std::string_view table)
        : table_(inspect.table(table)), sram_(sram) {}
    std::uint32_t rows() const { return table_ == nullptr ? 0 : table_->rows; }
    const Inspect::Field* field(std::string_view name) const {
        return table_ == nullptr ? nullptr : table_->field(name);
    }
    std::uint64_t number(std::uint32_t row, const Inspect::Field* field) const {
        return field == nullptr ? 0 : read_cell(sram_, *table_, row, *field).bits;
    }
    std::string text(std::uint32_t row, const Inspect::Field* field) const {
        return field == nullptr ? "" : show(read_cell(sram_, *table_, row, *field));
    }

  private:
    const Inspect::Table* table_;
    Sram sram_;
};

template <typename Row>
struct Column {
    const Inspect::Field* field;
    std::uint64_t Row::* to;
};

template <typename Row, std::size_t N>
void read_columns(const Reader& reader, std::uint32_t n, const Column<Row> (&columns)[N], Row& row) {
    row.number = n;
    for (const Column<Row>& column : columns)
        row.*column.to = reader.number(n, column.field);
}

void read_queues(const Inspect& inspect, Sram sram, std::vector<QueueRow>& to) {
    const Reader reader(inspect, sram, "queue");
    const Column<QueueRow> columns[] = {
        {reader.field("context"), &QueueRow::context},
        {reader.field("priority"), &QueueRow::priority},
        {reader.field("weight"), &QueueRow::weight},
        {reader.field("slice_us"), &QueueRow::slice_us},
        {reader.field("state"), &QueueRow::state},
        {reader.field("producer"), &QueueRow::producer},
        {reader.field("next"), &QueueRow::next},
        {reader.field("retired"), &QueueRow::retired},
        {reader.field("in_flight"), &QueueRow::in_flight},
        {reader.field("vtime"), &QueueRow::vtime},
        {reader.field("vtime_turn"), &QueueRow::vtime_turn},
        {reader.field("used_ps"), &QueueRow::used_ps},
        {reader.field("ready_since_ps"), &QueueRow::ready_since_ps},
        {reader.field("wait_memory"), &QueueRow::wait_memory},
        {reader.field("wait_value"), &QueueRow::wait_value},
        {reader.field("wait_va"), &QueueRow::wait_va},
        {reader.field("error"), &QueueRow::error},
        {reader.field("generation"), &QueueRow::generation},
        {reader.field("slot"), &QueueRow::slot},
    };
    const auto* exists = reader.field("exists");
    const auto* vtime = reader.field("vtime");
    const auto* name = reader.field("name");
    for (std::uint32_t n = 0; n < reader.rows(); ++n) {
        if (exists != nullptr && reader.number(n, exists) == 0) continue;
        QueueRow row;
        read_columns(reader, n, columns, row);
        for (const EngineTrace& one : engine_traces()) {
            const auto* own = reader.field("vtime_" + engine_kind_name(one.kind));
            if (own != nullptr) row.vtime_of_engine[one.kind] = reader.number(n, own);
        }
        if (reader.field("vtime_turn") == nullptr) row.vtime_turn = row.vtime;
        row.vtime_text = reader.text(n, vtime);
        row.name = reader.text(n, name);
        to.push_back(std::move(row));
    }
}

void read_contexts(const Inspect& inspect, Sram sram, std::vector<ContextRow>& to) {
    const Reader reader(inspect, sram, "context");
    const Column<ContextRow> columns[] = {
        {reader.field("queues"), &ContextRow::queues},
        {reader.field("quota"), &ContextRow::quota_permille},
        {reader.field("quota_period_us"), &ContextRow::quota_period_us},
        {reader.field("used_ps"), &ContextRow::used_ps},
    };
    const auto* exists = reader.field("exists");
    const auto* throttled = reader.field("throttled");
    const auto* name = reader.field("name");
    for (std::uint32_t n = 0; n < reader.rows(); ++n) {
        if (exists != nullptr && reader.number(n, exists) == 0) continue;
        ContextRow row;
        read_columns(reader, n, columns, row);
        row.throttled = reader.number(n, throttled) != 0;
        row.name = reader.text(n, name);
        to.push_back(std::move(row));
    }
}

void read_ports(const Inspect& inspect, Sram sram, std::vector<PortRow>& to) {
    const Reader reader(inspect, sram, "port");
    const Column<PortRow> columns[] = {
        {reader.field("kind"), &PortRow::kind},
        {reader.field("queue"), &PortRow::queue},
        {reader.field("index"), &PortRow::index},
        {reader.field("started_ps"), &PortRow::started_ps},
        {reader.field("deadline_ps"), &PortRow::deadline_ps},
        {reader.field("preempting"), &PortRow::preempting},
    };
    const auto* busy = reader.field("busy");
    for (std::uint32_t n = 0; n < reader.rows(); ++n) {
        PortRow row;
        read_columns(reader, n, columns, row);
        row.busy = reader.number(n, busy) != 0;
        if (row.kind != 0) to.push_back(row);
    }
}

}  // namespace

const QueueRow* Snapshot::queue(std::uint32_t number) const {
    const auto found = std::ranges::lower_bound(queues, number, {}, &QueueRow::number);
    return found == queues.end() || found->number != number ? nullptr : &*found;
}

Snapshot take_snapshot(const Inspect& inspect, Sram sram) {
    Snapshot snapshot;
    read_queues(inspect, sram, snapshot.queues);
    read_contexts(inspect, sram, snapshot.contexts);
    read_ports(inspect, sram, snapshot.ports);
    return snapshot;
}

std::optional<orr_policy> find_policy(Sram sram) {
    for (std::size_t at = 0; at + sizeof(orr_policy) <= sram.size(); at += 8) {
        orr_policy policy{};
        std::memcpy(&policy.magic, sram.data() + at, sizeof policy.magic);
        if (policy.magic != ORR_POLICY_MAGIC) continue;
        std::memcpy(&policy, sram.data() + at, sizeof policy);
        if (policy.version == ORR_POLICY_VERSION && policy.bytes == sizeof policy) return policy;
    }
    return std::nullopt;
}

}  // namespace orrery::records
