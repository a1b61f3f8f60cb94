// SPDX-License-Identifier: MIT
// The kinds of engines, and all in which they differ for the scheduler. A new kind is a row here, a row for
// each of its packets (packets.cc), and its names in traces (orrery/fw/trace.h).
#pragma once

#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <stddef.h>
#include <stdint.h>

// Tests build the firmware with a kind of their own: a header with the rows.
#ifdef ORRERY_FW_EXTRA_ENGINES
#include ORRERY_FW_EXTRA_ENGINES
#else
#define ORRERY_FW_EXTRA_KINDS
#define ORRERY_FW_EXTRA_PACKETS
#endif

namespace orrery::fw {

enum class Preemption : uint8_t {
    kNone,   // what has started runs to its end
    kNow,    // it can be saved soon, wherever it is
    kGroup,  // the same, and before that at a work-group's border
};

enum class Areas : uint8_t {
    kPage,  // a job needs a page: two for each port, which are pieces of one area
    kMost,  // kinds with long jobs divide the other areas
};

inline constexpr uint32_t kNoUsage = ~0u;

struct EngineKind {
    uint32_t kind;             // ORR_ENGINE_*, from 1 on without gaps
    uint32_t opcodes;          // bit n: packets with opcode n run on it
    uint32_t trace_resource;   // ORR_RESOURCE_*
    uint32_t waiting;          // ORR_TSTATE_* of a queue that waits for a port
    uint32_t usage;            // offset of its time in struct orr_queue_usage; kNoUsage: it has none
    uint64_t tenant_lag_ps;    // how far a tenant may lag behind in virtual time
    const char* vtime_column;  // of a queue, for debuggers
    const char* used_column;
    Preemption preemption;
    Areas areas;
    bool cores;      // its ports share the card's vector cores: classes, weights, quotas and gangs apply
    bool all_words;  // words 6 and 7 of its packets may hold something
};

inline constexpr uint64_t kEngineLagPs = 2'000'000'000;

inline constexpr EngineKind kEngineKinds[] = {
    {
        .kind = ORR_ENGINE_COPY,
        .opcodes = 1u << ORR_PKT_COPY | 1u << ORR_PKT_FILL | 1u << ORR_PKT_REDUCE | 1u << ORR_PKT_COPIES,
        .trace_resource = ORR_RESOURCE_COPY,
        .waiting = ORR_TSTATE_COPY_PORT,
        .usage = offsetof(orr_queue_usage, copy_ps),
        .tenant_lag_ps = kEngineLagPs,
        .vtime_column = "vtime_copy",
        .used_column = "copy_ps",
        .preemption = Preemption::kNow,
        .areas = Areas::kPage,
        .cores = false,
        .all_words = false,
    },
    {
        .kind = ORR_ENGINE_VECTOR,
        .opcodes = 1u << ORR_PKT_DISPATCH,
        .trace_resource = ORR_RESOURCE_VECTOR,
        .waiting = ORR_TSTATE_VECTOR_PORT,
        .usage = offsetof(orr_queue_usage, vector_ps),
        .tenant_lag_ps = kEngineLagPs,
        .vtime_column = "vtime",
        .used_column = "used_ps",
        .preemption = Preemption::kGroup,
        .areas = Areas::kMost,
        .cores = true,
        .all_words = false,
    },
    ORRERY_FW_EXTRA_KINDS};

inline constexpr size_t kEngineKindCount = sizeof(kEngineKinds) / sizeof(kEngineKinds[0]);
// Size of tables by kind; row 0 is not used.
inline constexpr uint32_t kKinds = kEngineKindCount + 1;

// Below: questions about a kind that is known only at run time, without a load from the table. The
// scheduler's hot path is made of them, so each becomes the comparisons that one would write by hand for
// these rows.

namespace detail {

consteval bool in_order() {
    for (size_t n = 0; n < kEngineKindCount; ++n) {
        if (kEngineKinds[n].kind != n + 1) return false;
    }
    return true;
}
static_assert(in_order());

#define ORRERY_FW_SAME_TRACE(NAME, resource, state)                                   \
    static_assert(kEngineKinds[ORR_ENGINE_##NAME - 1].trace_resource == (resource) && \
                  kEngineKinds[ORR_ENGINE_##NAME - 1].waiting == (state));
ORR_TRACE_ENGINE_LIST(ORRERY_FW_SAME_TRACE)
#undef ORRERY_FW_SAME_TRACE

// The kinds that have the property, a bit each.
template <typename Has>
consteval uint32_t kinds_that(Has has) {
    uint32_t kinds = 0;
    for (const EngineKind& row : kEngineKinds)
        kinds |= has(row) ? 1u << row.kind : 0u;
    return kinds;
}

consteval uint32_t bits_of(uint32_t mask) {
    uint32_t bits = 0;
    for (; mask != 0; mask &= mask - 1)
        ++bits;
    return bits;
}
consteval uint32_t lowest_of(uint32_t mask) {
    uint32_t n = 0;
    while ((mask >> n & 1) == 0)
        ++n;
    return n;
}

// Bit `n` of the mask, for n below 2^31.
template <uint32_t kMask>
constexpr bool has_bit(uint32_t n) {
    if constexpr (kMask == 0) return false;
    constexpr uint32_t kBits = bits_of(kMask);
    constexpr uint32_t kFirst = lowest_of(kMask == 0 ? 1 : kMask);
    if constexpr (kBits == 1)
        return n == kFirst;
    else if constexpr (kMask >> kFirst == (1ull << kBits) - 1)
        return n - kFirst < kBits;
    else
        return n < 32 && (kMask >> n & 1) != 0;
}

}  // namespace detail

// Its ports share the vector cores.
constexpr bool has_cores(uint32_t kind) {
    return detail::has_bit<detail::kinds_that([](const EngineKind& row) { return row.cores; })>(kind);
}
constexpr bool is_preemptible(uint32_t kind) {
    constexpr uint32_t kNot =
        detail::kinds_that([](const EngineKind& row) { return row.preemption == Preemption::kNone; });
    return !detail::has_bit<kNot>(kind);
}
// Its jobs need but a page of a save area.
constexpr bool saves_a_page(uint32_t kind) {
    return detail::has_bit<detail::kinds_that(
        [](const EngineKind& row) { return row.areas == Areas::kPage; })>(kind);
}
constexpr bool shows_all_words(uint32_t kind) {
    return detail::has_bit<detail::kinds_that([](const EngineKind& row) { return row.all_words; })>(kind);
}
constexpr bool is_known_kind(uint32_t kind) {
    return detail::has_bit<detail::kinds_that([](const EngineKind&) { return true; })>(kind);
}

// The kind whose ports share the cores, if any does.
inline constexpr uint32_t kCoreKinds = detail::kinds_that([](const EngineKind& row) { return row.cores; });
static_assert(detail::bits_of(kCoreKinds) == 1, "the card has one set of vector cores");
inline constexpr uint32_t kCoreKind = detail::lowest_of(kCoreKinds);

// A row's number as a type: what the row says is a constant in who is given it.
template <size_t kRow>
struct KindRow {
    static constexpr const EngineKind& row = kEngineKinds[kRow];
    static constexpr uint32_t kind = kEngineKinds[kRow].kind;
};

// f(KindRow) of a kind that exists.
template <size_t kRow = kEngineKindCount - 1, typename F>
[[gnu::always_inline]] inline auto for_kind(uint32_t kind, F f) {
    if constexpr (kRow == 0)
        return f(KindRow<0>{});
    else
        return kind == kEngineKinds[kRow].kind ? f(KindRow<kRow>{}) : for_kind<kRow - 1>(kind, f);
}

// f(KindRow) of the kind that runs packets with this opcode. False: none does.
template <size_t kRow = kEngineKindCount - 1, typename F>
[[gnu::always_inline]] inline bool for_packet(uint32_t opcode, F f) {
    if (detail::has_bit<kEngineKinds[kRow].opcodes>(opcode)) return f(KindRow<kRow>{});
    if constexpr (kRow == 0)
        return false;
    else
        return for_packet<kRow - 1>(opcode, f);
}

// A member of the row of a kind that exists.
template <auto kMember, size_t kRow = kEngineKindCount - 1>
constexpr auto of_kind(uint32_t kind) {
    if constexpr (kRow == 0)
        return kEngineKinds[0].*kMember;
    else
        return kind == kEngineKinds[kRow].kind ? kEngineKinds[kRow].*kMember
                                               : of_kind<kMember, kRow - 1>(kind);
}

// Packets with this opcode run on a kind that exists.
template <size_t kRow = kEngineKindCount - 1>
constexpr bool runs_on(uint32_t kind, uint32_t opcode) {
    constexpr uint32_t kOpcodes = kEngineKinds[kRow].opcodes;
    if constexpr (kRow == 0)
        return detail::has_bit<kOpcodes>(opcode);
    else
        return kind == kEngineKinds[kRow].kind ? detail::has_bit<kOpcodes>(opcode)
                                               : runs_on<kRow - 1>(kind, opcode);
}

// 0: no engine runs such packets.
template <size_t kRow = kEngineKindCount - 1>
constexpr uint32_t kind_of(uint32_t opcode) {
    if (detail::has_bit<kEngineKinds[kRow].opcodes>(opcode)) return kEngineKinds[kRow].kind;
    if constexpr (kRow == 0)
        return 0;
    else
        return kind_of<kRow - 1>(opcode);
}

}  // namespace orrery::fw
