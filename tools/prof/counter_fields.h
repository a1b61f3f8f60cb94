// What is counted of a kernel or copy, by the names that profiles are exported and shown with.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tools/prof/format.h"

namespace orrery::prof {

struct CounterField {
    const char* name;
    std::uint64_t WorkCountersRecord::* value;
    const char* counter;  // the card's that goes up by it; its own name where there is none
    const char* unit;
};
// In the order of the record.
inline constexpr std::array<CounterField, 41> kCounterFields = {{
    {"busy_ps", &WorkCountersRecord::busy_ps, "vector_busy_ps", "ps"},
    {"vram_read", &WorkCountersRecord::vram_read, "vram_read", "bytes"},
    {"vram_written", &WorkCountersRecord::vram_written, "vram_written", "bytes"},
    {"host_read", &WorkCountersRecord::host_read, "host_read", "bytes"},
    {"host_written", &WorkCountersRecord::host_written, "host_written", "bytes"},
    {"link_read", &WorkCountersRecord::link_read, "link_read", "bytes"},
    {"link_written", &WorkCountersRecord::link_written, "link_written", "bytes"},
    {"moved", &WorkCountersRecord::moved, "copy_bytes", "bytes"},
    {"queued_ps", &WorkCountersRecord::queued_ps, "vector_queued_ps", "ps"},
    {"groups", &WorkCountersRecord::groups, "vector_groups", "work-groups"},
    {"items", &WorkCountersRecord::items, "vector_items", "work-items"},
    {"instructions", &WorkCountersRecord::instructions, "vector_instructions", "instructions"},
    {"latency_ps", &WorkCountersRecord::latency_ps, "vector_latency_ps", "ps"},
    {"bandwidth_ps", &WorkCountersRecord::bandwidth_ps, "vector_bandwidth_ps", "ps"},
    {"link_ps", &WorkCountersRecord::link_ps, "vector_link_ps", "ps"},
    {"launch_ps", &WorkCountersRecord::launch_ps, "vector_launch_ps", "ps"},
    {"barriers", &WorkCountersRecord::barriers, "vector_barriers", "arrivals"},
    {"simd_int", &WorkCountersRecord::simd_int, "vector_simd_int", "instructions"},
    {"simd_fp", &WorkCountersRecord::simd_fp, "vector_simd_fp", "instructions"},
    {"simd_moves", &WorkCountersRecord::simd_moves, "vector_simd_moves", "instructions"},
    {"simd_loads", &WorkCountersRecord::simd_loads, "vector_simd_loads", "instructions"},
    {"simd_stores", &WorkCountersRecord::simd_stores, "vector_simd_stores", "instructions"},
    {"simd_config", &WorkCountersRecord::simd_config, "vector_simd_config", "instructions"},
    {"lanes_active", &WorkCountersRecord::lanes_active, "vector_lanes_active", "elements"},
    {"lanes", &WorkCountersRecord::lanes, "vector_lanes", "elements"},
    {"flops_f16", &WorkCountersRecord::flops_f16, "vector_flops_f16", "operations"},
    {"flops_f32", &WorkCountersRecord::flops_f32, "vector_flops_f32", "operations"},
    {"flops_f64", &WorkCountersRecord::flops_f64, "vector_flops_f64", "operations"},
    {"tlb_lookups", &WorkCountersRecord::tlb_lookups, "vector_tlb_lookups", "lookups"},
    {"tlb_misses", &WorkCountersRecord::tlb_misses, "vector_tlb_misses", "lookups"},
    {"tlb_walked", &WorkCountersRecord::tlb_walked, "vector_tlb_walked", "entries"},
    {"copy_setup_ps", &WorkCountersRecord::copy_setup_ps, "copy_setup_ps", "ps"},
    {"copy_rows_ps", &WorkCountersRecord::copy_rows_ps, "copy_rows_ps", "ps"},
    {"copy_vram_ps", &WorkCountersRecord::copy_vram_ps, "copy_vram_ps", "ps"},
    {"copy_pcie_ps", &WorkCountersRecord::copy_pcie_ps, "copy_pcie_ps", "ps"},
    {"copy_latency_ps", &WorkCountersRecord::copy_latency_ps, "copy_latency_ps", "ps"},
    {"copy_translation_ps", &WorkCountersRecord::copy_translation_ps, "copy_translation_ps", "ps"},
    {"copy_link_ps", &WorkCountersRecord::copy_link_ps, "copy_link_ps", "ps"},
    {"copy_credit_ps", &WorkCountersRecord::copy_credit_ps, "copy_credit_ps", "ps"},
    {"copy_peer_ps", &WorkCountersRecord::copy_peer_ps, "copy_peer_ps", "ps"},
    {"pause_ps", &WorkCountersRecord::pause_ps, "vector_pause_ps", "ps"},
}};

// A record ends in front of the first that is not known, as the card or whoever wrote it does not count it.
inline bool knows(const WorkCountersRecord& record, std::uint64_t WorkCountersRecord::* value) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&record);
    return reinterpret_cast<const std::byte*>(&(record.*value) + 1) - begin <= record.head.bytes;
}
// The first so many of kCounterFields.
inline std::size_t known_fields(const WorkCountersRecord& record) {
    const auto unknown = std::ranges::find_if_not(
        kCounterFields, [&](const CounterField& field) { return knows(record, field.value); });
    return static_cast<std::size_t>(unknown - kCounterFields.begin());
}

}  // namespace orrery::prof
