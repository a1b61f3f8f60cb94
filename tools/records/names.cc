#include "tools/records/names.h"

#include <fmt/format.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/soc.h>

#include <array>
#include <span>

namespace orrery::records {
namespace {

struct Name {
    std::uint64_t number;
    std::string_view word;
};

constexpr std::array kStates = {
    Name{ORR_TSTATE_IDLE, "idle"},
    Name{ORR_TSTATE_READY, "ready"},
    Name{ORR_TSTATE_TURN, "turn"},
    Name{ORR_TSTATE_COPY_PORT, "copy_port"},
    Name{ORR_TSTATE_VECTOR_PORT, "vector_port"},
    Name{ORR_TSTATE_SEMAPHORE, "semaphore"},
    Name{ORR_TSTATE_OWN, "own_packets"},
    Name{ORR_TSTATE_SUSPENDED, "suspended"},
    Name{ORR_TSTATE_QUOTA, "quota"},
    Name{ORR_TSTATE_GANG, "gang"},
    Name{ORR_TSTATE_STOPPED, "stopped"},
};
constexpr std::array kRules = {
    Name{ORR_RULE_ONLY, "only"},       Name{ORR_RULE_PRIORITY, "priority"}, Name{ORR_RULE_SHARE, "share"},
    Name{ORR_RULE_BOUND, "bound"},     Name{ORR_RULE_RESUME, "resume"},     Name{ORR_RULE_GANG, "gang"},
    Name{ORR_RULE_PREEMPT, "preempt"}, Name{ORR_RULE_SLICE, "slice"},       Name{ORR_RULE_NOBODY, "nobody"},
};
constexpr std::array kResources = {
    Name{ORR_RESOURCE_TURN, "core"},
    Name{ORR_RESOURCE_COPY, "copy"},
    Name{ORR_RESOURCE_VECTOR, "vector"},
    Name{ORR_RESOURCE_SLOT, "slot"},
};
constexpr std::array kClasses = {
    Name{ORR_PRIORITY_LOW, "low"},
    Name{ORR_PRIORITY_NORMAL, "normal"},
    Name{ORR_PRIORITY_HIGH, "high"},
    Name{ORR_PRIORITY_REALTIME, "realtime"},
};
#define KIND_NAME(NAME, word) Name{ORR_ENGINE_##NAME, word},
constexpr Name kKinds[] = {ORR_ENGINE_KIND_LIST(KIND_NAME)};
#undef KIND_NAME
constexpr std::array kPackets = {
    Name{ORR_PKT_NOP, "NOP"},           Name{ORR_PKT_COPY, "COPY"},
    Name{ORR_PKT_FILL, "FILL"},         Name{ORR_PKT_DISPATCH, "DISPATCH"},
    Name{ORR_PKT_WAIT, "WAIT"},         Name{ORR_PKT_SIGNAL, "SIGNAL"},
    Name{ORR_PKT_BARRIER, "BARRIER"},   Name{ORR_PKT_TIMESTAMP, "TIMESTAMP"},
    Name{ORR_PKT_INDIRECT, "INDIRECT"}, Name{ORR_PKT_MATRIX, "MATRIX"},
    Name{ORR_PKT_GANG, "GANG"},         Name{ORR_PKT_FAIL, "FAIL"},
    Name{ORR_PKT_REDUCE, "REDUCE"},     Name{ORR_PKT_COPIES, "COPIES"},
};
constexpr std::array kMails = {
    Name{ORR_MBOX_PING, "PING"},
    Name{ORR_MBOX_VERSION, "VERSION"},
    Name{ORR_MBOX_CONTEXT_CREATE, "CONTEXT_CREATE"},
    Name{ORR_MBOX_CONTEXT_DESTROY, "CONTEXT_DESTROY"},
    Name{ORR_MBOX_QUEUE_CREATE, "QUEUE_CREATE"},
    Name{ORR_MBOX_QUEUE_DESTROY, "QUEUE_DESTROY"},
    Name{ORR_MBOX_TLB_FLUSH, "TLB_FLUSH"},
    Name{ORR_MBOX_QUEUE_ARM, "QUEUE_ARM"},
    Name{ORR_MBOX_QUEUE_INFO, "QUEUE_INFO"},
    Name{ORR_MBOX_NAME, "NAME"},
    Name{ORR_MBOX_QUEUE_SET, "QUEUE_SET"},
    Name{ORR_MBOX_QUEUE_STATS, "QUEUE_STATS"},
    Name{ORR_MBOX_QUOTA_SET, "QUOTA_SET"},
    Name{ORR_MBOX_CRASH, "CRASH"},
    Name{ORR_MBOX_QUEUE_ABORT, "QUEUE_ABORT"},
    Name{ORR_MBOX_SEM_CLOSE, "SEM_CLOSE"},
};
constexpr std::array kMailStatus = {
    Name{ORR_STATUS_OK, "ok"},
    Name{ORR_STATUS_NOT_SUPPORTED, "not supported"},
    Name{ORR_STATUS_INVALID, "invalid"},
    Name{ORR_STATUS_EXISTS, "exists"},
    Name{ORR_STATUS_NO_ENTRY, "no entry"},
    Name{ORR_STATUS_BUSY, "busy"},
    Name{ORR_STATUS_NO_RESOURCE, "no resource"},
    Name{ORR_STATUS_FAULT, "fault"},
};
constexpr std::array kDone = {
    Name{ORR_DONE_OK, "ok"},           Name{ORR_DONE_BAD_DESC, "bad descriptor"},
    Name{ORR_DONE_FAULT, "fault"},     Name{ORR_DONE_TRAP, "trap"},
    Name{ORR_DONE_ABORTED, "aborted"}, Name{ORR_DONE_PREEMPTED, "preempted"},
};
constexpr std::array kQueueErrors = {
    Name{ORR_QERR_NONE, "none"},
    Name{ORR_QERR_BAD_OPCODE, "BAD_OPCODE"},
    Name{ORR_QERR_NOT_IMPLEMENTED, "NOT_IMPLEMENTED"},
    Name{ORR_QERR_BAD_PACKET, "BAD_PACKET"},
    Name{ORR_QERR_BAD_INDEX, "BAD_INDEX"},
    Name{ORR_QERR_RING_FAULT, "RING_FAULT"},
    Name{ORR_QERR_FAULT, "FAULT"},
    Name{ORR_QERR_KERNEL_TRAP, "KERNEL_TRAP"},
    Name{ORR_QERR_TIMEOUT, "TIMEOUT"},
    Name{ORR_QERR_BAD_DESC, "BAD_DESC"},
    Name{ORR_QERR_FIRMWARE, "FIRMWARE"},
    Name{ORR_QERR_GANG, "GANG"},
    Name{ORR_QERR_LOST, "LOST"},
    Name{ORR_QERR_POISON, "POISON"},
    Name{ORR_QERR_ABORTED, "ABORTED"},
    Name{ORR_QERR_WAIT_LIMIT, "WAIT_LIMIT"},
    Name{ORR_QERR_ABANDONED, "ABANDONED"},
    Name{ORR_QERR_PEER_LOST, "PEER_LOST"},
};
constexpr std::array kFaults = {
    Name{ORR_FAULT_NO_CONTEXT, "an address space without a root"},
    Name{ORR_FAULT_NON_CANONICAL, "no address of the card's"},
    Name{ORR_FAULT_NOT_MAPPED, "not mapped"},
    Name{ORR_FAULT_PERMISSION, "not allowed by the mapping"},
    Name{ORR_FAULT_RESERVED_BIT, "a malformed entry"},
    Name{ORR_FAULT_TABLE_RANGE, "a page table outside VRAM"},
    Name{ORR_FAULT_PAGE_RANGE, "neither card memory nor mapped for DMA"},
    Name{ORR_FAULT_PEER_READ, "a read of another card's memory"},
    Name{ORR_FAULT_PEER_DOWN, "the link is down"},
    Name{ORR_FAULT_PEER_DENIED, "refused by the other card"},
    Name{ORR_FAULT_MISALIGNED, "misaligned"},
    Name{ORR_FAULT_PEER_KEY, "refused by the other card: another key"},
    Name{ORR_FAULT_NO_ROUTE, "no link leads there"},
};
constexpr std::array kWakes = {
    Name{ORR_WAKE_LOCAL, "a signal of this card"},
    Name{ORR_WAKE_PEER, "a signal of a linked card"},
    Name{ORR_WAKE_MAP, "a change of its mappings"},
    Name{ORR_WAKE_CLOSED, "nobody being left who may signal"},
};
constexpr std::array kGangs = {
    Name{ORR_GANG_JOINED, "joined"}, Name{ORR_GANG_HELD, "held"}, Name{ORR_GANG_GO, "go"},
    Name{ORR_GANG_FAILED, "failed"}, Name{ORR_GANG_OFF, "off"},
};
constexpr std::array kPreempts = {
    Name{SOC_PREEMPT_GROUP, "at the next work-group border"},
    Name{SOC_PREEMPT_NOW, "at once, inside the kernel"},
};
constexpr std::array kRecords = {
    Name{ORR_TRACE_START, "start"},       Name{ORR_TRACE_MAIL, "mail"},
    Name{ORR_TRACE_CONTEXT, "context"},   Name{ORR_TRACE_QUEUE, "queue"},
    Name{ORR_TRACE_DOORBELL, "doorbell"}, Name{ORR_TRACE_STATE, "state"},
    Name{ORR_TRACE_DECISION, "decision"}, Name{ORR_TRACE_START_JOB, "start_job"},
    Name{ORR_TRACE_END_JOB, "end_job"},   Name{ORR_TRACE_PREEMPT, "preempt"},
    Name{ORR_TRACE_RESUME, "resume"},     Name{ORR_TRACE_WAIT, "wait"},
    Name{ORR_TRACE_WAKE, "wake"},         Name{ORR_TRACE_SIGNAL, "signal"},
    Name{ORR_TRACE_POKE, "poke"},         Name{ORR_TRACE_RETIRE, "retire"},
    Name{ORR_TRACE_ERROR, "error"},       Name{ORR_TRACE_DEADLOCK, "deadlock"},
    Name{ORR_TRACE_QUOTA, "quota"},       Name{ORR_TRACE_GANG, "gang"},
    Name{ORR_TRACE_SLOT, "slot"},         Name{ORR_TRACE_NAME, "name"},
};

// What a firmware that is newer than this tool may hold is shown, not refused.
std::string find(std::span<const Name> names, std::uint64_t number, std::string_view what) {
    for (const Name& name : names)
        if (name.number == number) return std::string(name.word);
    return fmt::format("{} {}", what, number);
}

struct WordList {
    std::string_view name;
    std::span<const Name> names;
};
constexpr std::array kLists = {
    WordList{"state", kStates},  WordList{"rule", kRules},    WordList{"resource", kResources},
    WordList{"class", kClasses}, WordList{"event", kRecords},
};

}  // namespace

std::string state_name(std::uint64_t state) {
    return find(kStates, state, "state");
}
std::string state_phrase(std::uint64_t state) {
    switch (state) {
        case ORR_TSTATE_IDLE:
            return "is idle";
        case ORR_TSTATE_READY:
            return "is ready: waits for its turn";
        case ORR_TSTATE_TURN:
            return "has its turn: the core works for it";
        case ORR_TSTATE_COPY_PORT:
            return "waits for a copy engine";
        case ORR_TSTATE_VECTOR_PORT:
            return "waits for a vector port";
        case ORR_TSTATE_SEMAPHORE:
            return "waits for a semaphore";
        case ORR_TSTATE_OWN:
            return "waits for its own packets";
        case ORR_TSTATE_SUSPENDED:
            return "is suspended: its dispatch was preempted";
        case ORR_TSTATE_QUOTA:
            return "waits for the next period: its context is over its quota";
        case ORR_TSTATE_GANG:
            return "waits for the other members of its gang";
        case ORR_TSTATE_STOPPED:
            return "has stopped";
        default:
            return "is in " + state_name(state);
    }
}
std::string rule_name(std::uint64_t rule) {
    return find(kRules, rule, "rule");
}
std::string resource_name(std::uint64_t resource) {
    return find(kResources, resource, "resource");
}
std::string resource_phrase(std::uint64_t resource) {
    switch (resource) {
        case ORR_RESOURCE_TURN:
            return "the core's turn";
        case ORR_RESOURCE_COPY:
            return "a copy engine";
        case ORR_RESOURCE_VECTOR:
            return "a vector port";
        case ORR_RESOURCE_SLOT:
            return "a ring slot";
        default:
            return resource_name(resource);
    }
}
std::string class_name(std::uint64_t priority) {
    return find(kClasses, priority, "class");
}
std::string engine_kind_name(std::uint64_t kind) {
    return find(kKinds, kind, "kind");
}
std::span<const EngineTrace> engine_traces() {
#define ENGINE_TRACE(NAME, resource, waiting) {ORR_ENGINE_##NAME, resource, waiting},
    static constexpr EngineTrace kAll[] = {ORR_TRACE_ENGINE_LIST(ENGINE_TRACE)};
#undef ENGINE_TRACE
    return kAll;
}
std::string packet_name(std::uint64_t opcode) {
    return find(kPackets, opcode, "opcode");
}
std::string mail_name(std::uint64_t opcode) {
    return find(kMails, opcode, "command");
}
std::string mail_status_name(std::uint64_t status) {
    return find(kMailStatus, status, "status");
}
std::string done_name(std::uint64_t status) {
    return find(kDone, status, "status");
}
std::string queue_error_name(std::uint64_t error) {
    return find(kQueueErrors, error, "error");
}
std::string fault_name(std::uint64_t fault) {
    return find(kFaults, fault, "fault");
}
std::string wake_name(std::uint64_t cause) {
    return find(kWakes, cause, "cause");
}
std::string gang_name(std::uint64_t what) {
    return find(kGangs, what, "step");
}
std::string preempt_name(std::uint64_t how) {
    return find(kPreempts, how, "mode");
}
std::string record_name(std::uint64_t type) {
    return find(kRecords, type, "record");
}

std::optional<std::uint64_t> number_of(std::string_view list, std::string_view word) {
    for (const WordList& l : kLists) {
        if (!list.empty() && l.name != list) continue;
        for (const Name& name : l.names)
            if (name.word == word) return name.number;
    }
    return std::nullopt;
}

std::vector<std::string_view> word_lists() {
    std::vector<std::string_view> names;
    names.reserve(std::size(kLists));
    for (const WordList& list : kLists)
        names.push_back(list.name);
    return names;
}

std::vector<std::string_view> words_of(std::string_view list) {
    std::vector<std::string_view> words;
    for (const WordList& l : kLists)
        if (l.name == list)
            for (const Name& name : l.names)
                words.push_back(name.word);
    return words;
}

}  // namespace orrery::records
