#include "tools/prof/tables.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <vector>

#include "tools/prof/counter_fields.h"
#include "tools/prof/pc_lines.h"
#include "tools/prof/queues.h"
#include "tools/prof/ranges.h"
#include "tools/prof/steps.h"
#include "tools/prof/stream_events.h"
#include "tools/prof/work_sums.h"

namespace orrery::prof {
namespace {

using text::Result;

constexpr Column kProcesses[] = {{"process"},  {"pid"},  {"parent"}, {"command", true},
                                 {"begin_ns"}, {"lost"}, {"ended"},  {"pinned_peak"}};
constexpr Column kCards[] = {{"process"},    {"device"},       {"sku", true},    {"pci", true},
                             {"uid"},        {"vram_bytes"},   {"core_hz"},      {"vector_hz"},
                             {"vlen"},       {"copy_engines"}, {"vector_ports"}, {"vector_cores"},
                             {"link_ports"}, {"memory_peak"}};
constexpr Column kNumbers[] = {{"process"}, {"device"}, {"key", true}, {"value"}};
constexpr Column kLinks[] = {{"process"},   {"device"}, {"port"},  {"peer_device"}, {"peer_uid"},
                             {"peer_port"}, {"state"},  {"lanes"}, {"gbit_per_s"},  {"latency_ns"}};
constexpr Column kCalls[] = {{"call"},   {"process"},     {"name", true}, {"thread"}, {"begin_ns"},
                             {"end_ns"}, {"correlation"}, {"external"},   {"error"}};
constexpr Column kRanges[] = {{"process"}, {"domain", true}, {"name", true}, {"thread"}, {"begin_ns"},
                              {"end_ns"},  {"correlation"},  {"external"},   {"open"},   {"range"}};
constexpr Column kMarks[] = {{"process"}, {"domain", true}, {"name", true}, {"thread"},
                             {"ns"},      {"correlation"},  {"external"}};
constexpr std::size_t kSums = 6;
constexpr Column kStreams[] = {{"process"}, {"stream"}, {"device"}, {"name", true}};
constexpr Column kWork[] = {{"work"},        {"process"},     {"device"},          {"stream"},
                            {"packet"},      {"name", true},  {"operation", true}, {"outcome", true},
                            {"begin_ps"},    {"end_ps"},      {"used_ps"},         {"submitted_ns"},
                            {"call"},        {"correlation"}, {"external"},        {"thread"},
                            {"lane"},        {"bytes"},       {"direction", true}, {"source"},
                            {"destination"}, {"groups"},      {"items"},           {"wait_from", true},
                            {"wait_stream"}, {"wait_packet"}, {"wait_name", true}, {"cause"},
                            {"semaphore"},   {"wait_value"},  {"signal"},          {"reduces"}};
constexpr Column kSignals[] = {
    {"signal"},     {"process"},      {"device"}, {"stream"},      {"packet"},        {"by", true},
    {"name", true}, {"semaphore"},    {"value"},  {"time_ps"},     {"outcome", true}, {"memory"},
    {"waiters"},    {"submitted_ns"}, {"call"},   {"correlation"}, {"external"},      {"thread"}};
constexpr Column kStreamMarks[] = {{"process"},      {"device"},      {"stream"},   {"packet"},
                                   {"domain", true}, {"name", true},  {"time_ps"},  {"since_ps"},
                                   {"submitted_ns"}, {"correlation"}, {"external"}, {"thread"}};
constexpr auto kCounters = [] {
    std::array<Column, 3 + kCounterFields.size()> columns{{{"work"}, {"cores"}}};
    std::ranges::transform(kCounterFields, columns.begin() + 2,
                           [](const CounterField& field) { return Column{field.name}; });
    columns.back() = {"link_ports"};
    return columns;
}();
// Sums of work, of what the first ones name.
template <std::size_t kKeys>
constexpr auto sum_columns(const Column (&keys)[kKeys]) {
    std::array<Column, kKeys + kSums + kCounterFields.size()> columns{};
    constexpr std::array<Column, kSums> kNames{
        {{"work"}, {"kernels"}, {"copies"}, {"kernel_ps"}, {"copy_ps"}, {"counted"}}};
    auto to = std::ranges::copy(keys, columns.begin()).out;
    to = std::ranges::copy(kNames, to).out;
    std::ranges::transform(kCounterFields, to, [](const CounterField& field) { return Column{field.name}; });
    return columns;
}
constexpr auto kRangeWork = sum_columns({{"range"}});
constexpr auto kStreamWork = sum_columns({{"process"}, {"stream"}, {"device"}});
constexpr Column kStreamQueues[] = {
    {"process"},    {"stream"},    {"device"},       {"work"},       {"launches"}, {"launch_ps"},
    {"longest_ps"}, {"held_back"}, {"held_back_ps"}, {"late"},       {"late_ps"},  {"unknown"},
    {"unknown_ps"}, {"waits"},     {"wait_ps"},      {"least_deep"}, {"most_deep"}};
constexpr auto kProcessWork = sum_columns({{"process"}, {"device"}});
constexpr Column kSamples[] = {{"process"},       {"device"}, {"time_ps"},
                               {"counter", true}, {"value"},  {"unit", true}};
constexpr Column kPcSamples[] = {{"process"},    {"device"},         {"core"},         {"time_ps"},
                                 {"stream"},     {"packet"},         {"kernel", true}, {"offset"},
                                 {"work_group"}, {"function", true}, {"source", true}, {"stall", true},
                                 {"count"},      {"period_ps"}};
constexpr Column kSteps[] = {{"process"},      {"of", true},   {"owner"},       {"round"},    {"number"},
                             {"name", true},   {"kind", true}, {"device"},      {"lane"},     {"members"},
                             {"begin_ps"},     {"end_ps"},     {"begin_ns"},    {"end_ns"},   {"stream"},
                             {"first_packet"}, {"end_packet"}, {"correlation"}, {"external"}, {"thread"},
                             {"last_rank"}};
constexpr Column kMemory[] = {{"process"},     {"device"},  {"ns"},    {"thread"},
                              {"correlation"}, {"address"}, {"bytes"}, {"in_use"}};
constexpr Column kLost[] = {{"process"}, {"device"}, {"what", true}, {"at_least"}};

const char* name_of(Operation operation) {
    static constexpr const char* kNames[] = {"other", "copy", "fill", "kernel", "wait"};
    const auto number = static_cast<std::size_t>(operation);
    return number < std::size(kNames) ? kNames[number] : "unknown";
}
const char* name_of(Outcome outcome) {
    static constexpr const char* kNames[] = {"done", "preempted", "failed"};
    const auto number = static_cast<std::size_t>(outcome);
    return number < std::size(kNames) ? kNames[number] : "unknown";
}
const char* name_of(From from) {
    static constexpr const char* kNames[] = {"unknown", "stream", "host", "outside"};
    const auto number = static_cast<std::size_t>(from);
    return number < std::size(kNames) ? kNames[number] : "unknown";
}

const char* name_of(StepOf of) {
    static constexpr const char* kNames[] = {"unknown", "graph", "tasks", "group"};
    const auto number = static_cast<std::size_t>(of);
    return kNames[number < std::size(kNames) ? number : 0];
}

// Rows of the profile, numbered over all processes where they have a number.
class Writer {
  public:
    Writer(const Model& model, TableSink& sink) : model_(model), sink_(sink) {}

    Result<void> write() {
        table("process", kProcesses, [&](const Activity& each, std::uint64_t process) {
            const Process& of = *each.process;
            row({process, of.pid, of.parent, std::string_view(of.command), of.begin_ns, of.lost,
                 std::uint64_t{of.ended}, each.host_memory_peak});
        });
        table("card", kCards, [&](const Activity& each, std::uint64_t process) {
            for (const DeviceModel& device : each.devices) {
                if (device.card == nullptr) continue;
                const CardRecord& card = *device.card;
                row({process, n(card.device), each.text(card.head.text), each.text(card.pci), card.uid,
                     card.vram_bytes, card.core_hz, card.vector_hz, card.vlen, n(card.copy_engines),
                     n(card.vector_ports), n(card.vector_cores), n(card.link_ports), device.memory_peak});
            }
        });
        table("sku", kNumbers, [&](const Activity& each, std::uint64_t process) {
            for (const SkuRecord& sku : each.process->sku)
                row({process, n(sku.device), each.text(sku.head.text), sku.value});
        });
        table("link", kLinks, [&](const Activity& each, std::uint64_t process) {
            for (const LinkRecord& link : each.process->links) {
                row({process, n(link.device), n(link.port), s(link.peer_device), link.peer_uid,
                     n(link.peer_port), n(link.state), n(link.lanes), n(link.gbit_per_s),
                     n(link.latency_ns)});
            }
        });
        write_host();
        write_cards();
        return result_;
    }

  private:
    static std::uint64_t n(std::uint32_t number) { return number; }
    static std::int64_t s(std::int32_t number) { return number; }

    void write_host() {
        std::uint64_t number = 0;
        table("call", kCalls, [&](const Activity& each, std::uint64_t process) {
            first_call_.push_back(number);
            for (const CallRecord& call : each.process->calls) {
                row({number++, process, each.text(call.head.text), n(call.thread), call.begin_ns, call.end_ns,
                     call.correlation, call.external, s(call.error)});
            }
        });
        std::uint64_t ranges = 0;
        table("range", kRanges, [&](const Activity& each, std::uint64_t process) {
            for (const Span& span : each.spans) {
                row({process, each.text(span.domain), each.text(span.text), n(span.thread), span.begin_ns,
                     span.end_ns, span.correlation, span.external, std::uint64_t{span.open}, ranges++});
            }
        });
        ranges = 0;
        table("range_work", kRangeWork, [&](const Activity& each, std::uint64_t) {
            for (const WorkSums& sums : RangeTree(each).sums())
                write_sums<1>({ranges++}, sums);
        });
        table("mark", kMarks, [&](const Activity& each, std::uint64_t process) {
            for (const auto& [type, mark] : each.process->ranges) {
                if (type != Type::kMark) continue;
                row({process, each.text(mark.domain), each.text(mark.head.text), n(mark.thread), mark.ns,
                     mark.correlation, mark.external});
            }
        });
        table("memory", kMemory, [&](const Activity& each, std::uint64_t process) {
            for (const MemoryRecord& memory : each.process->memory) {
                row({process, s(memory.device), memory.ns, n(memory.thread), memory.correlation,
                     memory.address, memory.bytes, memory.in_use});
            }
        });
    }
    void write_cards() {
        table("stream", kStreams, [&](const Activity& each, std::uint64_t process) {
            for (const StreamModel& stream : each.streams)
                row({process, stream.number, n(stream.device), each.text(stream.name)});
        });
        table("stream_work", kStreamWork, [&](const Activity& each, std::uint64_t process) {
            const std::vector<WorkSums> sums = stream_sums(each);
            for (std::size_t i = 0; i < sums.size(); ++i)
                write_sums<3>({process, each.streams[i].number, n(each.streams[i].device)}, sums[i]);
        });
        table("stream_queue", kStreamQueues, [&](const Activity& each, std::uint64_t process) {
            for (const DeviceModel& device : each.devices) {
                for (const QueueSums& one : queue_sums(each, device)) {
                    row({process, each.streams[one.stream].number, n(device.number), one.work,
                         one.launches.count, one.launches.total_ps, one.launches.longest_ps,
                         one.held_back.count, one.held_back.total_ps, one.late.count, one.late.total_ps,
                         one.unknown.count, one.unknown.total_ps, one.waits.count, one.waits.total_ps,
                         one.deepest ? Value(one.deepest->least) : Value(),
                         one.deepest ? Value(one.deepest->most) : Value()});
                }
            }
        });
        table("process_work", kProcessWork, [&](const Activity& each, std::uint64_t process) {
            const std::vector<WorkSums> sums = stream_sums(each);
            for (const DeviceModel& device : each.devices) {
                WorkSums all;
                for (const std::uint32_t stream : device.streams)
                    all.add(sums[stream]);
                write_sums<2>({process, n(device.number)}, all);
            }
        });
        write_signals();
        std::uint64_t first = 0;
        table("work", kWork, [&](const Activity& each, std::uint64_t process) {
            const SignalIndex signals(each);
            for (std::size_t i = 0; i < each.work.size(); ++i)
                write_work(each, process, first, i, signals.ender_of(each.work[i]));
            first += each.work.size();
        });
        first = 0;
        table("work_counters", kCounters, [&](const Activity& each, std::uint64_t) {
            for (std::size_t i = 0; i < each.work.size(); ++i) {
                if (each.work[i].counters != nullptr) write_counters(first + i, *each.work[i].counters);
            }
            first += each.work.size();
        });
        table("sample", kSamples, [&](const Activity& each, std::uint64_t process) {
            for (const Process::Sample& sample : each.process->samples) {
                const Process::SampleSet& set = each.process->sample_sets[sample.set];
                for (std::size_t i = 0; i < set.counters.size(); ++i) {
                    row({process, n(set.device), sample.time_ps, each.text(set.counters[i].name),
                         each.process->sample_values[sample.first + i], each.text(set.counters[i].unit)});
                }
            }
        });
        table("pc_sample", kPcSamples, [&](const Activity& each, std::uint64_t process) {
            for (const PcSampleRecord& sample : each.process->pc_samples) {
                row({process, n(sample.device), n(sample.core), sample.time_ps, sample.stream, sample.index,
                     each.text(sample.head.text), sample.offset, sample.group, each.text(sample.function),
                     each.text(sample.source), name_of_stall(sample.stall), count_of(sample),
                     sample.period_ps});
            }
        });
        const BarrierLasts lasts(model_);
        table("step", kSteps, [&](const Activity& each, std::uint64_t process) {
            for (const StepRecord& step : each.process->steps)
                write_step(each, process, step, lasts);
        });
        table("lost", kLost, [&](const Activity& each, std::uint64_t process) {
            if (each.process->lost > 0) row({process, {}, "records", each.process->lost});
            if (each.process->cut)
                row({process, {}, "bytes", std::max<std::uint64_t>(each.process->cut->bytes, 1)});
            for (const auto& [device, count] : each.process->lost_work)
                row({process, n(device), "work", std::max<std::uint64_t>(count, 1)});
            for (const auto& [device, lost] : each.process->lost_samples) {
                if (lost.counters > 0) row({process, n(device), "samples", lost.counters});
                if (lost.pcs > 0) row({process, n(device), "pc samples", lost.pcs});
            }
        });
    }
    void write_signals() {
        std::uint64_t number = 0;
        table("signal", kSignals, [&](const Activity& each, std::uint64_t process) {
            first_signal_.push_back(number);
            std::map<std::uint64_t, std::uint64_t> calls;  // by correlation
            for (const CallRecord& call : each.process->calls) {
                const auto at = static_cast<std::uint64_t>(&call - each.process->calls.data());
                if (call.correlation != 0) calls.try_emplace(call.correlation, first_call_[process] + at);
            }
            for (const SignalRecord& signal : each.process->signals) {
                const auto call = calls.find(signal.correlation);
                row({number++, process, n(signal.device), signal.stream == 0 ? Value() : Value(signal.stream),
                     signal.stream == 0 ? Value() : Value(signal.index), each.text(signal.stream_name),
                     signal.head.text == 0 ? Value() : Value(each.text(signal.head.text)),
                     signal.semaphore == 0 ? Value() : Value(signal.semaphore), signal.value, signal.time_ps,
                     name_of(static_cast<Outcome>(signal.outcome)), s(signal.memory), n(signal.waiters),
                     signal.submitted_ns, call == calls.end() ? Value() : Value(call->second),
                     signal.correlation, signal.external, n(signal.thread)});
            }
        });
        table("stream_mark", kStreamMarks, [&](const Activity& each, std::uint64_t process) {
            for (const DeviceModel& device : each.devices) {
                for (const MarkRow& one : mark_rows(each, device.number)) {
                    const StreamMarkRecord& mark = *one.mark;
                    row({process, n(mark.device), mark.stream, mark.index, each.text(mark.domain),
                         each.text(mark.head.text), mark.time_ps == 0 ? Value() : Value(mark.time_ps),
                         one.since_ps ? Value(*one.since_ps) : Value(), mark.submitted_ns, mark.correlation,
                         mark.external, n(mark.thread)});
                }
            }
        });
    }
    void write_work(const Activity& each, std::uint64_t process, std::uint64_t first, std::size_t i,
                    const SignalRecord* ender) {
        const Work& one = each.work[i];
        const WorkRecord& work = *one.record;
        const bool copies = one.operation() == Operation::kCopy, waits = one.operation() == Operation::kWait;
        const bool known = work.known != 0;
        const auto if_known = [&](bool is, Value value) { return known && is ? value : Value(); };
        const bool by_stream = waits && static_cast<From>(work.from) == From::kStream;
        row({first + i,
             process,
             n(work.device),
             work.stream,
             work.index,
             each.name(one),
             name_of(one.operation()),
             name_of(one.outcome()),
             work.begin_ps,
             work.end_ps,
             work.used_ps,
             work.submitted_ns,
             one.call == kNone ? Value() : Value(first_call_[process] + one.call),
             work.correlation,
             work.external,
             n(work.thread),
             n(one.lane),
             if_known(copies || one.operation() == Operation::kFill, work.bytes),
             if_known(copies, prof::name_of(direction_of(work))),
             if_known(copies, s(work.source)),
             if_known(copies || one.operation() == Operation::kFill, s(work.destination)),
             if_known(one.operation() == Operation::kKernel, work.groups),
             if_known(one.operation() == Operation::kKernel, n(work.items)),
             if_known(waits, name_of(static_cast<From>(work.from))),
             if_known(by_stream, work.from_stream),
             if_known(by_stream, work.from_index),
             work.from_name == 0 ? Value() : Value(each.text(work.from_name)),
             one.cause == kNone ? Value() : Value(first + one.cause),
             waits && work.semaphore != 0 ? Value(work.semaphore) : Value(),
             waits && work.semaphore != 0 ? Value(work.value) : Value(),
             ender == nullptr ? Value()
                              : Value(first_signal_[process] +
                                      static_cast<std::uint64_t>(ender - each.process->signals.data())),
             if_known(copies, n(one.reduces() ? 1 : 0))});
    }
    void write_step(const Activity& each, std::uint64_t process, const StepRecord& step,
                    const BarrierLasts& lasts) {
        const auto of_card = [&](std::uint64_t value) { return on_host(step) ? Value() : Value(value); };
        const auto timed = [&](std::uint64_t value) { return has_time(step) ? of_card(value) : Value(); };
        const auto of_host = [&](std::uint64_t value) { return on_host(step) ? Value(value) : Value(); };
        const auto last = lasts.last(each, step);
        row({process,
             name_of(static_cast<StepOf>(step.of)),
             step.owner,
             step.round,
             step.number,
             each.text(step.head.text),
             prof::name_of(kind_of(step)),
             of_card(static_cast<std::uint32_t>(step.device)),
             n(step.lane),
             n(step.members),
             timed(step.begin_ps),
             timed(step.end_ps),
             of_host(step.begin_ns),
             of_host(step.end_ns),
             of_card(step.stream),
             of_card(step.first_index),
             of_card(step.end_index),
             step.correlation,
             step.external,
             n(step.thread),
             last ? Value(*last) : Value()});
    }
    template <std::size_t kKeys>
    void write_sums(const std::array<Value, kKeys>& keys, const WorkSums& sums) {
        if (sums.work == 0) return;
        std::array<Value, kKeys + kSums + kCounterFields.size()> values{};
        const std::array<Value, kSums> known{sums.work,      sums.kernels, sums.copies,
                                             sums.kernel_ps, sums.copy_ps, sums.counted};
        auto to = std::ranges::copy(keys, values.begin()).out;
        to = std::ranges::copy(known, to).out;
        for (std::size_t i = 0; i < kCounterFields.size(); ++i, ++to) {
            if (const auto sum = sums.counter(i)) *to = *sum;
        }
        row(values);
    }
    void write_counters(std::uint64_t work, const WorkCountersRecord& c) {
        std::array<Value, kCounters.size()> values{work, n(c.cores)};
        const auto if_known = [&](std::uint64_t WorkCountersRecord::* value) {
            return knows(c, value) ? Value(c.*value) : Value();
        };
        values.back() = if_known(&WorkCountersRecord::link_ports);
        std::ranges::transform(kCounterFields, values.begin() + 2,
                               [&](const CounterField& field) { return if_known(field.value); });
        row(values);
    }

    template <typename Rows>
    void table(std::string_view name, std::span<const Column> columns, Rows&& rows) {
        columns_ = columns.size();
        if (result_) result_ = sink_.begin({name, columns});
        for (std::size_t i = 0; result_ && i < model_.processes.size(); ++i)
            rows(model_.processes[i], i);
        if (result_) result_ = sink_.end();
    }
    void row(std::initializer_list<Value> values) { row(std::span(values.begin(), values.size())); }
    void row(std::span<const Value> values) {
        if (result_ && values.size() != columns_)
            result_ = text::fail("a row has another length than its table");
        if (result_) result_ = sink_.row(values);
    }

    const Model& model_;
    TableSink& sink_;
    Result<void> result_;
    std::size_t columns_ = 0;
    std::vector<std::uint64_t> first_call_, first_signal_;  // of each process
};

}  // namespace

Result<void> write_tables(const Model& model, TableSink& sink) {
    return Writer(model, sink).write();
}

}  // namespace orrery::prof
