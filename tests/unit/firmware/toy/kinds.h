// Two kinds of engines that no card has, as rows of the firmware's tables (engine_kinds.h): `toy` has long
// jobs that can be preempted, `fixed` cannot be preempted. Their packets are of the reserved opcodes; word 1
// is the work, and must not be 0.
#pragma once

#define ORR_ENGINE_TOY 3u
#define ORR_ENGINE_FIXED 4u
#define TOY_RESOURCE 5u
#define TOY_WAITING 11u

#define ORRERY_FW_EXTRA_KINDS                \
    {.kind = ORR_ENGINE_TOY,                 \
     .opcodes = 1u << ORR_PKT_MATRIX,        \
     .trace_resource = TOY_RESOURCE,         \
     .waiting = TOY_WAITING,                 \
     .usage = kNoUsage,                      \
     .tenant_lag_ps = kEngineLagPs,          \
     .vtime_column = "vtime_toy",            \
     .used_column = "toy_ps",                \
     .preemption = Preemption::kNow,         \
     .areas = Areas::kMost,                  \
     .cores = false,                         \
     .all_words = true},                     \
        {.kind = ORR_ENGINE_FIXED,           \
         .opcodes = 1u << ORR_PKT_INDIRECT,  \
         .trace_resource = TOY_RESOURCE + 1, \
         .waiting = TOY_WAITING + 1,         \
         .usage = kNoUsage,                  \
         .tenant_lag_ps = kEngineLagPs,      \
         .vtime_column = "vtime_fixed",      \
         .used_column = "fixed_ps",          \
         .preemption = Preemption::kNone,    \
         .areas = Areas::kMost,              \
         .cores = false,                     \
         .all_words = true},

#define TOY_PACKET(opcode)                                                                                 \
    {opcode, 0, [](const uint64_t(&words)[kPacketWords]) { return words[1] == 0 ? bad_word(1) : kValid; }, \
     [](const uint64_t(&words)[kPacketWords]) { return words[1]; }}

#define ORRERY_FW_EXTRA_PACKETS TOY_PACKET(ORR_PKT_MATRIX), TOY_PACKET(ORR_PKT_INDIRECT),
