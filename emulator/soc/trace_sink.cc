#include "emulator/soc/trace_sink.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include <orrery/hw/mmu.h>

namespace orrery::emu {

std::uint32_t TraceSink::set(std::uint64_t base, std::uint32_t bytes, std::uint64_t types) {
    words_ = 0;
    have_ = 0;
    if (bytes == 0) return ORR_FAULT_NONE;
    if (!std::has_single_bit(bytes) || bytes < kSmallest || bytes > kLargest) return ORR_FAULT_PAGE_RANGE;
    if (base % sizeof(orr_trace_sink) != 0) return ORR_FAULT_MISALIGNED;
    base_ = base;
    types_ = types;
    words_ = bytes / sizeof(std::uint64_t);
    head_ = 0;
    return ORR_FAULT_NONE;
}

void TraceSink::word(std::uint64_t word, ModelTime now) {
    if (!begun_) return;
    if (have_ == 0) {
        record_[have_++] = now;
        want_ = ORR_SINK_WORDS(word);
    }
    record_[have_++] = word;
    if (have_ < want_) return;
    const std::uint64_t type = record_[1] & 0xff;
    if (type < 64 && (types_ >> type & 1) != 0) put(std::span(record_).first(have_));
    have_ = 0;
}

void TraceSink::job_ended(const Completion& completion, const JobCounts& counts) {
    if (!wants_jobs()) return;
    std::array<std::uint64_t, 5 + ORR_JOB_COUNTERS> record{completion.end_ps, 0, completion.start_ps,
                                                           completion.end_ps, 0};
    std::size_t size = 5;
    for (std::size_t n = 0; n < counts.value.size(); ++n) {
        if (counts.value[n] == 0) continue;
        record[4] |= std::uint64_t{1} << n;
        record[size++] = counts.value[n];
    }
    record[1] = ORR_SINK_JOB | (size - 2) << 8 | std::uint64_t{completion.port & 0xffff} << 16 |
                std::uint64_t{completion.status} << 32;
    put(std::span(record).first(size));
}

void TraceSink::was_at(const PcSample& sample) {
    if (!on()) return;
    put(std::array<std::uint64_t, 6>{sample.first_ps,
                                     (sample.of_cycles ? ORR_SINK_STEP : ORR_SINK_PC) | 4u << 8 |
                                         std::uint64_t{sample.port & 0xffff} << 16 |
                                         (std::uint64_t{sample.core} | std::uint64_t{sample.cause} << 16)
                                             << 32,
                                     sample.job_start_ps, sample.pc, sample.group,
                                     std::uint64_t{sample.asid} | std::uint64_t{sample.count} << 32});
}

void TraceSink::sample(ModelTime now, std::span<const std::uint64_t> counters) {
    if (!on()) return;
    std::array<std::uint64_t, ORR_SINK_MARGIN> record{now, 0, sample_set_[0], sample_set_[1]};
    std::size_t size = 4;
    for (std::size_t n = 0; n < counters.size() && n < 128; ++n)
        if ((sample_set_.at(n / 64) >> n % 64 & 1) != 0) record.at(size++) = counters[n];
    record[1] = ORR_SINK_SAMPLE | (size - 2) << 8 | std::uint64_t{++samples_} << 32;
    put(std::span(record).first(size));
}

void TraceSink::put(std::span<const std::uint64_t> record) {
    const std::uint64_t place = head_ % words_,
                        first = std::min<std::uint64_t>(record.size(), words_ - place);
    const std::uint64_t ring = base_ + sizeof(orr_trace_sink);
    if (!store(ring + place * sizeof(std::uint64_t), record.data(), first)) return;
    if (!store(ring, record.data() + first, record.size() - first)) return;
    const auto span = host_.look(base_, sizeof head_, true);
    if (span.data == nullptr || span.bytes < sizeof head_) return;
    // A guest may map memory at any address.
    if (reinterpret_cast<std::uintptr_t>(span.data) % sizeof head_ != 0) return;
    head_ += record.size();
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(span.data)).store(head_, std::memory_order_release);
}

bool TraceSink::store(std::uint64_t address, const std::uint64_t* words, std::uint64_t count) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(words);
    for (std::uint64_t left = count * sizeof(std::uint64_t); left > 0;) {
        const auto span = host_.look(address, left, true);
        if (span.data == nullptr || span.bytes == 0) return false;
        std::memcpy(span.data, from, span.bytes);
        address += span.bytes;
        from += span.bytes;
        left -= span.bytes;
    }
    return true;
}

}  // namespace orrery::emu
