#include "emulator/soc/register_names.h"

#include <span>

#include <fmt/format.h>

#include <orrery/hw/bar0.h>
#include <orrery/hw/counters.h>
#include <orrery/hw/link.h>
#include <orrery/hw/soc.h>
#include <orrery/hw/switches.h>

namespace orrery::emu {

namespace {

struct Name {
    std::uint64_t offset;
    const char* text;
};
#define N(name)     \
    Name {          \
        name, #name \
    }

// By offset; a test compares them with the headers.
constexpr Name kHost[] = {
    N(ORR_R_ID),
    N(ORR_R_HW_VERSION),
    N(ORR_R_UID),
    N(ORR_R_VRAM_SIZE),
    N(ORR_R_COPY_ENGINES),
    N(ORR_R_VECTOR_PORTS),
    N(ORR_R_VECTOR_CORES),
    N(ORR_R_LINK_PORTS),
    N(ORR_R_DOORBELL_PAGES),
    N(ORR_R_COUNTERS),
    N(ORR_R_CORE_HZ),
    N(ORR_R_VECTOR_HZ),
    N(ORR_R_SKU_NAME),
    N(ORR_R_SAVE_BYTES),
    N(ORR_R_SKU_BYTES),
    N(ORR_R_VECTOR_VLEN),
    N(ORR_R_MODEL_TIME),
    N(ORR_R_STATE),
    N(ORR_R_RESET),
    N(ORR_R_RESET_COUNT),
    N(ORR_R_CORE_RESTART),
    N(ORR_R_HELD),
    N(ORR_R_CHECKS),
    N(ORR_R_PLATFORM),
    N(ORR_R_NODE),
    N(ORR_R_ROUTE_KEYS),
    N(ORR_R_BOOT_IMAGE),
    N(ORR_R_BOOT_SIZE),
    N(ORR_R_BOOT_START),
    N(ORR_R_BOOT_STATUS),
    N(ORR_R_BOOT_DETAIL),
    N(ORR_R_BOOT_ARG),
    N(ORR_R_PROGRESS),
    N(ORR_R_HEARTBEAT),
    N(ORR_R_HALT_CAUSE),
    N(ORR_R_HALT_PC),
    N(ORR_R_HALT_TVAL),
    N(ORR_R_IRQ_STATUS),
    N(ORR_R_IRQ_MASK),
    N(ORR_R_MBOX_DOORBELL),
    N(ORR_R_VECTOR_ISA),
    N(ORR_R_BARRIER),
    N(ORR_R_BARRIER_MEMBER),
    N(ORR_R_BARRIER_KEY),
    N(ORR_R_BARRIER_RELEASE),
    N(ORR_R_BARRIER_WORD),
    N(ORR_R_BARRIER_CMD),
    N(ORR_R_BARRIER_DONE),
    N(ORR_R_BARRIER_FAULT),
    N(ORR_R_BARRIER_STATES),
    N(ORR_R_NOTE_OUT),
    N(ORR_R_NOTE_SEND),
    N(ORR_R_NOTE_SENT),
    N(ORR_R_NOTE_FAULT),
    N(ORR_R_NOTE_WAITING),
    N(ORR_R_NOTE_IN),
    N(ORR_R_NOTE_FROM),
    N(ORR_R_NOTE_TAKE),
    N(ORR_R_NOTE_DROPPED),
    N(ORR_R_MULTICAST),
    N(ORR_R_MULTICAST_MEMBER),
    N(ORR_R_MULTICAST_BASE),
    N(ORR_R_MULTICAST_CMD),
    N(ORR_R_MULTICAST_DONE),
    N(ORR_R_MULTICAST_FAULT),
    N(ORR_R_SINK),
    N(ORR_R_SINK_BYTES),
    N(ORR_R_SINK_BASE),
    N(ORR_R_SINK_TYPES),
    N(ORR_R_SINK_DONE),
    N(ORR_R_SINK_FAULT),
    N(ORR_R_SINK_ASK),
    N(ORR_R_SINK_PERIOD),
    N(ORR_R_SINK_SET),
    N(ORR_R_SINK_SET_HIGH),
    N(ORR_R_SINK_PC_PERIOD),
    N(ORR_R_SINK_STEP_CORE),
    N(ORR_R_SINK_STEP_FROM),
    N(ORR_R_SINK_STEP_UNTIL),
    N(ORR_R_SNAPSHOT),
    N(ORR_R_SNAPSHOT_DONE),
    N(ORR_R_SKU),
};
constexpr Name kLink[] = {
    N(ORR_R_LINK_STATE),         N(ORR_R_LINK_LANES),        N(ORR_R_LINK_PEER_UID),
    N(ORR_R_LINK_PEER_PORT),     N(ORR_R_LINK_GBPS),         N(ORR_R_LINK_LATENCY_NS),
    N(ORR_R_LINK_LOSSES),        N(ORR_R_LINK_GRANT_BASE),   N(ORR_R_LINK_GRANT_SIZE),
    N(ORR_R_LINK_GRANT_CMD),     N(ORR_R_LINK_GRANT_DONE),   N(ORR_R_LINK_GRANT_NODE),
    N(ORR_R_LINK_CONTROL),       N(ORR_R_LINK_DRAIN),        N(ORR_R_LINK_DRAINED),
    N(ORR_R_LINK_FORWARD_NS),    N(ORR_R_LINK_BUILT),        N(ORR_R_LINK_MBPS),
    N(ORR_R_LINK_CRC_ERRORS),    N(ORR_R_LINK_RETRIES),      N(ORR_R_LINK_RETRAINS),
    N(ORR_R_LINK_CHANGES),       N(ORR_R_LINK_TX_MESSAGES),  N(ORR_R_LINK_TX_BYTES),
    N(ORR_R_LINK_RX_MESSAGES),   N(ORR_R_LINK_RX_BYTES),     N(ORR_R_LINK_SWITCH),
    N(ORR_R_LINK_REACH_VERSION), N(ORR_R_LINK_GRANT_RIGHTS), N(ORR_R_LINK_GRANT_KEY),
    N(ORR_R_LINK_DENIED),        N(ORR_R_LINK_BAD_KEYS),     N(ORR_R_LINK_REFUSED),
    N(ORR_R_LINK_REFUSED_BY),    N(ORR_R_LINK_RESET),        N(ORR_R_LINK_RESETS),
    N(ORR_R_LINK_BAD_KEY_BY),
};
constexpr Name kReach[] = {
    N(ORR_REACH_HOW),
    N(ORR_REACH_LATENCY_NS),
    N(ORR_REACH_FABRIC),
    N(ORR_REACH_MBPS),
};
constexpr Name kSoc[] = {
    N(SOC_BOOT_ENTRY),  N(SOC_BOOT_ARG),     N(SOC_PROGRESS),   N(SOC_HEARTBEAT),     N(SOC_HALT),
    N(SOC_UID),         N(SOC_CONFIG),       N(SOC_VRAM_SIZE),  N(SOC_SAVE_BYTES),    N(SOC_BOOT_COUNT),
    N(SOC_IRQ_PENDING), N(SOC_IRQ_ENABLE),   N(SOC_MBOX_ACK),   N(SOC_TIME),          N(SOC_TIMER),
    N(SOC_HOST_IRQ),    N(SOC_SYSTEM_TIME),  N(SOC_DB_PAGE),    N(SOC_DB_SLOT),       N(SOC_DB_TAG),
    N(SOC_DB_CMD),      N(SOC_DB_POP),       N(SOC_DB_VALUE),   N(SOC_DB_RING),       N(SOC_MMU_ASID),
    N(SOC_MMU_ARG),     N(SOC_MMU_SIZE),     N(SOC_MMU_CMD),    N(SOC_WINDOW_FAULT),  N(SOC_WINDOW_FAULT_VA),
    N(SOC_MMU_RESULT),  N(SOC_MMU_FAULT),    N(SOC_SEM_ASID),   N(SOC_SEM_VA),        N(SOC_SEM_SIGNAL),
    N(SOC_SEM_STATUS),  N(SOC_POKE_POP),     N(SOC_SEM_MEMORY), N(SOC_SEM_CLOSE),     N(SOC_SEM_LAUNCH),
    N(SOC_DONE_POP),    N(SOC_DONE_STATUS),  N(SOC_DONE_FAULT), N(SOC_DONE_DETAIL),   N(SOC_DONE_START_PS),
    N(SOC_DONE_END_PS), N(SOC_DONE_USED_PS), N(SOC_DONE_ITEM),  N(SOC_LAUNCH_RESULT), N(SOC_DONE_OTHER),
    N(SOC_TRACE_1_1),
};
constexpr Name kEngine[] = {
    N(SOC_ENGINE_DESC),     N(SOC_ENGINE_START),  N(SOC_ENGINE_BUSY),    N(SOC_ENGINE_KIND),
    N(SOC_ENGINE_ABORT),    N(SOC_ENGINE_SAVE),   N(SOC_ENGINE_PREEMPT), N(SOC_ENGINE_RESUME),
    N(SOC_ENGINE_PRIORITY), N(SOC_ENGINE_WEIGHT), N(SOC_ENGINE_ACTIVE),  N(SOC_ENGINE_TAG),
    N(SOC_ENGINE_USED_PS),  N(SOC_ENGINE_LAUNCH),
};
constexpr Name kKind[] = {
    N(SOC_KIND_PORTS),
    N(SOC_KIND_UNITS),
    N(SOC_KIND_DESC_BYTES),
    N(SOC_KIND_PREEMPT),
};
constexpr Name kSlot[] = {
    N(SOC_SLOT_PACKET), N(SOC_SLOT_RING), N(SOC_SLOT_MASK), N(SOC_SLOT_NEXT), N(SOC_SLOT_LIMIT),
};
#undef N

std::string nearest(std::span<const Name> names, std::uint64_t offset) {
    const Name* best = &names.front();
    for (const Name& each : names) {
        if (each.offset <= offset) best = &each;
    }
    if (best->offset == offset) return best->text;
    return offset > best->offset ? fmt::format("{} + {:#x}", best->text, offset - best->offset)
                                 : fmt::format("{} - {:#x}", best->text, best->offset - offset);
}

// One of many alike: block `index` of `stride` bytes.
std::string in_block(const char* block, std::uint64_t stride, std::span<const Name> names, std::uint64_t at) {
    return fmt::format("{}({}) + {}", block, at / stride, nearest(names, at % stride));
}

}  // namespace

std::string name_of_host_register(std::uint64_t offset) {
    constexpr std::uint64_t kCounters = ORR_R_COUNTER(0), kLinks = ORR_R_LINK(0);
    if (offset >= kLinks && offset < ORR_R_LINK(ORR_LINK_MAX_PORTS))
        return in_block("ORR_R_LINK", ORR_R_LINK(1) - kLinks, kLink, offset - kLinks);
    if (offset >= ORR_R_ROUTE(0) && offset < ORR_R_ROUTE(ORR_NODES))
        return fmt::format("ORR_R_ROUTE({})", (offset - ORR_R_ROUTE(0)) / 4);
    if (offset >= ORR_R_ROUTE_KEY(0) && offset < ORR_R_ROUTE_KEY(ORR_NODES))
        return fmt::format("ORR_R_ROUTE_KEY({})", (offset - ORR_R_ROUTE_KEY(0)) / 8);
    if (offset >= ORR_R_REACH(0, 0) && offset < ORR_R_REACH(ORR_LINK_MAX_PORTS, 0)) {
        constexpr std::uint64_t kPort = ORR_R_REACH(1, 0) - ORR_R_REACH(0, 0);
        constexpr std::uint64_t kNode = ORR_R_REACH(0, 1) - ORR_R_REACH(0, 0);
        const std::uint64_t at = offset - ORR_R_REACH(0, 0);
        return fmt::format("ORR_R_REACH({}, {}) + {}", at / kPort, at % kPort / kNode,
                           nearest(kReach, at % kNode));
    }
    if (offset >= ORR_R_SWITCHES(0) && offset < ORR_R_SWITCHES(ORR_LINK_MAX_PORTS)) {
        const std::uint64_t at = offset - ORR_R_SWITCHES(0);
        return fmt::format("ORR_R_SWITCHES({}) + {:#x}", at / ORR_SWITCHES_BYTES, at % ORR_SWITCHES_BYTES);
    }
    if (offset >= kCounters && offset < ORR_R_COUNTER(ORR_COUNTER_COUNT))
        return fmt::format("ORR_R_COUNTER({})", (offset - kCounters) / 8);
    return nearest(kHost, offset);
}

std::string name_of_soc_register(std::uint64_t offset) {
    constexpr std::uint64_t kEngines = SOC_ENGINE(0), kSlots = SOC_SLOT(0);
    if (offset >= kSlots && offset < SOC_SLOT(SOC_SLOTS))
        return in_block("SOC_SLOT", SOC_SLOT(1) - kSlots, kSlot, offset - kSlots);
    if (offset >= kEngines && offset < SOC_ENGINE(SOC_ENGINES_MAX))
        return in_block("SOC_ENGINE", SOC_ENGINE(1) - kEngines, kEngine, offset - kEngines);
    if (offset >= SOC_KIND(0) && offset < SOC_KIND(SOC_KINDS_MAX))
        return in_block("SOC_KIND", SOC_KIND(1) - SOC_KIND(0), kKind, offset - SOC_KIND(0));
    if (offset >= SOC_ACTIVITY(0) && offset < SOC_ACTIVITY(ORR_ACTIVITIES))
        return fmt::format("SOC_ACTIVITY({})", (offset - SOC_ACTIVITY(0)) / 8);
    if (offset >= SOC_TRACE && offset < SOC_TRACE + SOC_TRACE_BYTES) {
        constexpr Name kTrace[] = {{SOC_TRACE, "SOC_TRACE"}};
        return nearest(kTrace, offset);
    }
    return nearest(kSoc, offset);
}

}  // namespace orrery::emu
