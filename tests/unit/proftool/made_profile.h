// Profiles as bytes, made by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/format.h"
#include "tools/prof/model.h"

namespace orrery::prof::test {

inline StepRecord step_of(StepOf of, StepKind kind, std::uint32_t text, std::int32_t device,
                          std::uint64_t begin, std::uint64_t end) {
    StepRecord step{};
    step.head = {static_cast<std::uint16_t>(Type::kStep), sizeof step, text};
    step.of = static_cast<std::uint16_t>(of);
    step.kind = static_cast<std::uint16_t>(kind);
    step.device = device;
    step.owner = 3;
    step.correlation = 7;
    (device < 0 ? step.begin_ns : step.begin_ps) = begin;
    (device < 0 ? step.end_ns : step.end_ps) = end;
    return step;
}

// By a stream, whose number its name has too.
inline SignalRecord signal_of(std::uint32_t name, std::uint32_t stream, std::uint64_t index,
                              std::uint64_t time_ps, std::uint64_t value) {
    SignalRecord signal{};
    signal.head = {static_cast<std::uint16_t>(Type::kSignal), sizeof signal, name};
    signal.thread = 100;
    signal.submitted_ns = 2'100;
    signal.correlation = 7;
    signal.stream = signal.stream_name = stream;
    signal.index = index;
    signal.time_ps = time_ps;
    signal.semaphore = 4;
    signal.value = value;
    return signal;
}
inline StreamMarkRecord mark_of(std::uint32_t name, std::uint32_t stream, std::uint64_t index,
                                std::uint64_t time_ps) {
    StreamMarkRecord mark{};
    mark.head = {static_cast<std::uint16_t>(Type::kStreamMark), sizeof mark, name};
    mark.thread = 100;
    mark.submitted_ns = 2'150;
    mark.stream = mark.stream_name = stream;
    mark.index = index;
    mark.time_ps = time_ps;
    return mark;
}

class MadePart {
  public:
    explicit MadePart(std::uint64_t pid = 100, std::string_view command = "program") {
        head.magic = kPartMagic;
        head.pid = pid;
        head.begin_ns = 1'000;
        head.ended = 1;
        std::memcpy(head.command, command.data(), command.size());
    }
    std::uint32_t text(std::string_view text) {
        RecordHead record{static_cast<std::uint16_t>(Type::kText),
                          static_cast<std::uint16_t>((sizeof(RecordHead) + text.size() + 8) / 8 * 8),
                          ++texts_};
        add(record);
        records_.append(text);
        records_.append(record.bytes - sizeof record - text.size(), '\0');
        return texts_;
    }
    void call(std::uint32_t text, std::uint64_t begin, std::uint64_t end, std::uint32_t thread = 100,
              std::int32_t error = 0) {
        CallRecord record{
            {static_cast<std::uint16_t>(Type::kCall), sizeof record, text}, begin, end, 7, 0, thread, error};
        add(record);
    }
    void range(Type type, std::uint32_t text, std::uint64_t ns, std::uint32_t domain = 0,
               std::uint32_t thread = 100) {
        RangeRecord record{{static_cast<std::uint16_t>(type), sizeof record, text}, ns, 0, 0, thread, domain};
        add(record);
    }
    void work(std::uint32_t text, std::uint32_t stream, std::uint64_t begin_ps, std::uint64_t end_ps,
              std::uint64_t correlation = 7, std::uint32_t device = 0, std::uint16_t outcome = 0) {
        WorkRecord record{};
        record.head = {static_cast<std::uint16_t>(Type::kWork), sizeof record, text};
        record.thread = 100;
        record.device = device;
        record.submitted_ns = 2'100;
        record.correlation = correlation;
        record.stream = stream;
        record.begin_ps = begin_ps;
        record.end_ps = end_ps;
        record.stream_name = stream;
        record.outcome = outcome;
        add(record);
    }
    // What a copy, a wait or a kernel is of is set by the caller.
    WorkRecord work_of(Operation operation, std::uint32_t text, std::uint32_t stream, std::uint64_t begin_ps,
                       std::uint64_t end_ps, std::uint64_t index = 0) const {
        WorkRecord record{};
        record.head = {static_cast<std::uint16_t>(Type::kWork), sizeof record, text};
        record.thread = 100;
        record.submitted_ns = 2'100;
        record.correlation = 7;
        record.stream = stream;
        record.index = index;
        record.begin_ps = begin_ps;
        record.end_ps = end_ps;
        record.used_ps = end_ps - begin_ps;
        record.stream_name = stream;
        record.operation = static_cast<std::uint16_t>(operation);
        record.source = record.destination = static_cast<std::int32_t>(Place::kUnknown);
        record.known = 1;
        return record;
    }
    void copy(std::uint32_t text, std::uint32_t stream, std::uint64_t begin_ps, std::uint64_t end_ps,
              std::uint64_t bytes, std::int32_t source, std::int32_t destination, bool reduces = false) {
        WorkRecord record = work_of(Operation::kCopy, text, stream, begin_ps, end_ps);
        record.bytes = bytes;
        record.source = source;
        record.destination = destination;
        record.reduces = reduces ? 1 : 0;
        add(record);
    }
    // Its name is a text of the part.
    void card(std::uint32_t device, std::uint32_t name, std::uint32_t pci, std::uint32_t cores = 8,
              std::uint64_t uid = 77) {
        CardRecord record{};
        record.head = {static_cast<std::uint16_t>(Type::kCard), sizeof record, name};
        record.device = device;
        record.pci = pci;
        record.uid = uid;
        record.vram_bytes = std::uint64_t{256} << 20;
        record.core_hz = record.vector_hz = 1'000'000'000;
        record.vlen = 2'048;
        record.copy_engines = 2;
        record.vector_ports = 4;
        record.vector_cores = cores;
        record.link_ports = 4;
        add(record);
    }
    void sku(std::uint32_t device, std::string_view key, std::uint64_t value) {
        const std::uint32_t name = text(key);
        add(SkuRecord{{static_cast<std::uint16_t>(Type::kSku), sizeof(SkuRecord), name}, device, 0, value});
    }
    // As orrery-1 is.
    void orrery_1(std::uint32_t device) {
        card(device, text("Orrery 1"), text("0000:01:00.0"));
        sku(device, "copy.vram_gb_per_s", 800);
        sku(device, "copy.host_gb_per_s", 32);
        sku(device, "copy.engine_gb_per_s", 400);
        sku(device, "copy.setup_ps", 200'000);
        sku(device, "link.gbit_per_s", 400);
        sku(device, "vector.cores", 8);
        sku(device, "vector.hz", 1'000'000'000);
        sku(device, "vector.datapath_bits", 2'048);
        sku(device, "vector.launch_ps", 500'000);
    }
    void memory(std::int32_t device, std::uint64_t ns, std::int64_t bytes, std::uint64_t in_use) {
        add(MemoryRecord{{static_cast<std::uint16_t>(Type::kMemory), sizeof(MemoryRecord), 0},
                         device,
                         100,
                         ns,
                         7,
                         0x1000,
                         bytes,
                         in_use});
    }
    // Counters of a device by number, name and unit, and what they had come to at moments.
    void sample_set(std::uint32_t device, std::uint64_t period_ps, std::vector<SampledCounter> counters) {
        SampleSetRecord set{};
        set.head = {static_cast<std::uint16_t>(Type::kSampleSet),
                    static_cast<std::uint16_t>(sizeof set + counters.size() * sizeof(SampledCounter)), 0};
        set.device = device;
        set.count = static_cast<std::uint32_t>(counters.size());
        set.period_ps = period_ps;
        add(set);
        for (const SampledCounter& counter : counters)
            add(counter);
    }
    void sample(std::uint32_t device, std::uint64_t time_ps, const std::vector<std::uint64_t>& values) {
        SampleRecord sample{};
        sample.head = {static_cast<std::uint16_t>(Type::kSample),
                       static_cast<std::uint16_t>(sizeof sample + values.size() * 8), 0};
        sample.device = device;
        sample.count = static_cast<std::uint32_t>(values.size());
        sample.time_ps = time_ps;
        add(sample);
        for (const std::uint64_t value : values)
            add(value);
    }
    template <typename Record>
    void add(const Record& record) {
        records_.append(reinterpret_cast<const char*>(&record), sizeof record);
    }
    // As who does not know what is behind these bytes of it writes it.
    template <typename Record>
    void add_first(Record record, std::size_t bytes) {
        record.head.bytes = static_cast<std::uint16_t>(bytes);
        records_.append(reinterpret_cast<const char*>(&record), bytes);
    }
    std::string bytes() const {
        PartHead own = head;
        own.bytes = records_.size();
        return std::string(reinterpret_cast<const char*>(&own), sizeof own) + records_;
    }

    PartHead head{};

  private:
    std::string records_;
    std::uint32_t texts_ = 0;
};

inline std::string made_profile(const std::string& parts, std::uint32_t major = kFormatMajor) {
    FileHead head{{}, major, kFormatMinor};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + parts;
}

// As it is read.
inline Model made_model(const std::string& parts) {
    auto profile = parse_profile(made_profile(parts));
    EXPECT_TRUE(profile) << profile.error().text;
    return Model(*std::move(profile));
}

inline std::string two_calls() {
    MadePart part;
    const auto copy = part.text("orrMemcpy"), step = part.text("step"), io = part.text("io");
    part.range(Type::kRangeBegin, step, 1'500);
    part.call(copy, 2'000, 2'500);
    part.call(copy, 2'500, 4'000, 101, 1);
    part.range(Type::kRangeBegin, step, 2'600, io);
    part.range(Type::kRangeEnd, 0, 3'000);
    part.range(Type::kMark, step, 3'100, io);
    part.range(Type::kRangeEnd, 0, 3'500, io);
    part.range(Type::kRangeEnd, 0, 3'600, io);  // its beginning is not here
    return part.bytes();
}

// Two launches of a call and a copy of another, of which two overlap; and one on another card.
inline std::string some_work() {
    MadePart part;
    const auto launch = part.text("orrGraphLaunch"), kernel = part.text("saxpy"), copy = part.text("copy"),
               stream = part.text("stream 'x' on device 0");
    part.call(launch, 2'000, 2'500);
    part.work(kernel, stream, 5'000'000, 7'000'000);
    part.work(kernel, stream, 6'000'000, 6'500'000);
    part.work(copy, stream, 7'000'000, 7'000'400, 9);
    part.work(copy, stream, 100, 400, 0, 1, 2);
    part.add(WorkLostRecord{{static_cast<std::uint16_t>(Type::kWorkLost), sizeof(WorkLostRecord), 0}, 1, 0});
    for (const std::uint32_t count : {1'000u, 234u})
        part.add(WorkLostRecord{
            {static_cast<std::uint16_t>(Type::kWorkLost), sizeof(WorkLostRecord), 0}, 0, count});
    part.add(SamplesLostRecord{{static_cast<std::uint16_t>(Type::kSamplesLost), sizeof(SamplesLostRecord), 0},
                               0,
                               static_cast<std::uint32_t>(Type::kSample),
                               12});
    return part.bytes();
}

}  // namespace orrery::prof::test
