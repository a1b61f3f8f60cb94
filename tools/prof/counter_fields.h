// What is counted of a kernel or copy, by the names that profiles are exported and shown with.
#pragma once

#include <array>
#include <cstdint>

#include "tools/prof/format.h"

namespace orrery::prof {

struct CounterField {
    const char* name;
    std::uint64_t WorkCountersRecord::* value;
};
inline constexpr std::array<CounterField, 31> kCounterFields = {{
    {"busy_ps", &WorkCountersRecord::busy_ps},
    {"vram_read", &WorkCountersRecord::vram_read},
    {"vram_written", &WorkCountersRecord::vram_written},
    {"host_read", &WorkCountersRecord::host_read},
    {"host_written", &WorkCountersRecord::host_written},
    {"link_read", &WorkCountersRecord::link_read},
    {"link_written", &WorkCountersRecord::link_written},
    {"moved", &WorkCountersRecord::moved},
    {"queued_ps", &WorkCountersRecord::queued_ps},
    {"groups", &WorkCountersRecord::groups},
    {"items", &WorkCountersRecord::items},
    {"instructions", &WorkCountersRecord::instructions},
    {"latency_ps", &WorkCountersRecord::latency_ps},
    {"bandwidth_ps", &WorkCountersRecord::bandwidth_ps},
    {"link_ps", &WorkCountersRecord::link_ps},
    {"launch_ps", &WorkCountersRecord::launch_ps},
    {"barriers", &WorkCountersRecord::barriers},
    {"simd_int", &WorkCountersRecord::simd_int},
    {"simd_fp", &WorkCountersRecord::simd_fp},
    {"simd_moves", &WorkCountersRecord::simd_moves},
    {"simd_loads", &WorkCountersRecord::simd_loads},
    {"simd_stores", &WorkCountersRecord::simd_stores},
    {"simd_config", &WorkCountersRecord::simd_config},
    {"lanes_active", &WorkCountersRecord::lanes_active},
    {"lanes", &WorkCountersRecord::lanes},
    {"flops_f16", &WorkCountersRecord::flops_f16},
    {"flops_f32", &WorkCountersRecord::flops_f32},
    {"flops_f64", &WorkCountersRecord::flops_f64},
    {"tlb_lookups", &WorkCountersRecord::tlb_lookups},
    {"tlb_misses", &WorkCountersRecord::tlb_misses},
    {"tlb_walked", &WorkCountersRecord::tlb_walked},
}};

}  // namespace orrery::prof
