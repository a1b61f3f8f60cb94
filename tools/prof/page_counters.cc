#include <algorithm>
#include <tuple>

#include "tools/prof/counter_fields.h"
#include "tools/prof/counter_series.h"
#include "tools/prof/page_data.h"
#include "tools/prof/pc_lines.h"

namespace orrery::prof {
namespace {

using Json = nlohmann::ordered_json;

PageColumn& column(PageColumns& columns, std::string name) {
    return columns.emplace_back(std::move(name), PageColumn{}).second;
}

void add_counters_over_time(const Model& model, std::uint64_t model_begin, PageTexts& texts, Json& sets,
                            PageColumns& columns) {
    PageColumn &times = column(columns, "sampleTime"), &values = column(columns, "sampleValue");
    for (std::size_t i = 0; i < model.processes.size(); ++i) {
        const Process& process = *model.processes[i].process;
        const auto of_set = samples_of_sets(process);
        for (std::size_t number = 0; number < of_set.size(); ++number) {
            const auto& samples = of_set[number];
            if (samples.size() < 2) continue;  // no difference
            const Process::SampleSet& set = process.sample_sets[number];
            Json counters = Json::array();
            for (const SampledCounter& counter : set.counters) {
                counters.push_back({{"name", texts.number(process, counter.name)},
                                    {"unit", texts.number(process, counter.unit)}});
            }
            times.restart();
            for (const Process::Sample* sample : samples)
                times.put_delta(sample->time_ps - std::min(model_begin, sample->time_ps));
            for (std::size_t place = 0; place < set.counters.size(); ++place) {
                values.restart();
                for (const Process::Sample* sample : samples)
                    values.put_delta(process.sample_values[sample->first + place]);
            }
            sets.push_back({{"process", i},
                            {"device", set.device},
                            {"period", std::min(set.period_ps, PageColumn::kMost)},
                            {"count", samples.size()},
                            {"counters", std::move(counters)}});
        }
    }
}

void add_memory(const Model& model, Json& memory, PageColumns& columns) {
    PageColumn &times = column(columns, "memoryTime"), &bytes = column(columns, "memoryBytes");
    for (std::size_t i = 0; i < model.processes.size(); ++i) {
        std::map<std::int32_t, std::vector<const MemoryRecord*>> of_device;
        for (const MemoryRecord& record : model.processes[i].process->memory)
            of_device[record.device].push_back(&record);
        for (auto& [device, records] : of_device) {
            std::ranges::sort(records, {}, [](const auto* record) { return std::pair(record->ns, record); });
            times.restart();
            bytes.restart();
            const std::uint64_t begin = model.profile.begin_ns;
            for (const MemoryRecord* record : records) {
                times.put_delta(record->ns - std::min(record->ns, begin));
                bytes.put_delta(record->in_use);
            }
            memory.push_back({{"process", i}, {"device", device}, {"count", records.size()}});
        }
    }
}

// How many samples of each kernel's places, by what the core was at.
Json places(const Model& model, PageTexts& texts) {
    // Kernel, function, line, and the offset where no line is known.
    using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>;
    std::map<Place, PcCounts> counts;
    for (const Activity& activity : model.processes) {
        const Process& process = *activity.process;
        for (const PcSampleRecord& sample : process.pc_samples) {
            auto& stalls =
                counts[{texts.number(process, sample.head.text), texts.number(process, sample.function),
                        texts.number(process, sample.source),
                        sample.source == 0 ? std::min(sample.offset, PageColumn::kMost) : 0}];
            stalls.at(sample.stall < kPcStalls ? sample.stall : 0) += count_of(sample);
        }
    }
    Json all = Json::array();
    for (const auto& [place, stalls] : counts) {
        const auto& [kernel, function, line, offset] = place;
        all.push_back({kernel, function, line, offset, stalls});
    }
    return all;
}

}  // namespace

void add_work_counters(const std::vector<const Work*>& work, PageData& data, PageColumns& columns) {
    PageColumn& counted = column(columns, "counted");
    std::vector<const WorkCountersRecord*> records;
    for (std::size_t i = 0; i < work.size(); ++i) {
        if (work[i]->counters == nullptr) continue;
        counted.put_delta(i);
        records.push_back(work[i]->counters);
    }
    PageColumn& cores = column(columns, "counter:cores");
    for (const WorkCountersRecord* record : records)
        cores.put(record->cores);
    PageColumn& known = column(columns, "counterKnown");
    for (const WorkCountersRecord* record : records)
        known.put(1 + known_fields(*record));  // of the names below
    Json names = {"cores"};
    for (const CounterField& field : kCounterFields) {
        PageColumn& values = column(columns, std::string("counter:") + field.name);
        for (const WorkCountersRecord* record : records)
            values.put(record->*field.value);
        names.push_back(field.name);
    }
    data.meta["counted"] = records.size();
    data.meta["counterNames"] = std::move(names);
}

void add_samples(const Model& model, std::uint64_t model_begin, PageTexts& texts, PageData& data,
                 PageColumns& columns) {
    Json sets = Json::array(), memory = Json::array();
    add_counters_over_time(model, model_begin, texts, sets, columns);
    add_memory(model, memory, columns);
    data.meta["samples"] = std::move(sets);
    data.meta["memory"] = std::move(memory);
    data.meta["places"] = places(model, texts);
}

}  // namespace orrery::prof
