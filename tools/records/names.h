// The words for what the firmware's trace records and tables hold as numbers. The same words are shown
// and can be typed in expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::records {

std::string state_name(std::uint64_t state);          // ORR_TSTATE_*: "ready"
std::string state_phrase(std::uint64_t state);        // behind a queue's name: "waits for its turn"
std::string rule_name(std::uint64_t rule);            // ORR_RULE_*: "share"
std::string resource_name(std::uint64_t resource);    // ORR_RESOURCE_*: "vector"
std::string resource_phrase(std::uint64_t resource);  // "a vector port"
std::string class_name(std::uint64_t priority);       // ORR_PRIORITY_*: "normal"
std::string engine_kind_name(std::uint64_t kind);     // ORR_ENGINE_*: "copy"
std::string packet_name(std::uint64_t opcode);        // ORR_PKT_*: "DISPATCH"
std::string mail_name(std::uint64_t opcode);          // ORR_MBOX_*: "QUEUE_CREATE"
std::string mail_status_name(std::uint64_t status);   // ORR_STATUS_*
std::string done_name(std::uint64_t status);          // ORR_DONE_*: "ok"
std::string queue_error_name(std::uint64_t error);    // ORR_QERR_*: "TIMEOUT"
std::string fault_name(std::uint64_t fault);          // ORR_FAULT_*
std::string wake_name(std::uint64_t cause);           // ORR_WAKE_*
std::string gang_name(std::uint64_t what);            // ORR_GANG_*
std::string preempt_name(std::uint64_t how);          // SOC_PREEMPT_*
std::string record_name(std::uint64_t type);          // ORR_TRACE_*: "decision"

// How decisions about a kind of engine, and queues that wait for a port of it, are told.
struct EngineTrace {
    std::uint64_t kind;      // ORR_ENGINE_*
    std::uint64_t resource;  // ORR_RESOURCE_*
    std::uint64_t waiting;   // ORR_TSTATE_*
};
std::span<const EngineTrace> engine_traces();

// The number behind a word of the above (states, rules, resources, classes, record types), for expressions.
// A word that stands for different numbers in different lists is found by the list's name first:
// "rule.share".
std::optional<std::uint64_t> number_of(std::string_view list, std::string_view word);
// Lists: "state", "rule", "resource", "class", "event", in this order of search.
std::vector<std::string_view> word_lists();
std::vector<std::string_view> words_of(std::string_view list);

}  // namespace orrery::records
