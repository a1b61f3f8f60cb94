// What happened in a run, from the firmware's trace records: the same whether the firmware ran natively on
// the chip model or as RISC-V code on a card.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "tools/scenario/scenario.h"

namespace orrery::policy {

using scenario::Ps;

struct Happening {
    enum class Kind : std::uint8_t {
        kDecision,
        kStart,
        kEnd,
        kPreempt,
        kResume,
        kRetire,
        kSignal,
        kQuota,
        kError,
        kDeadlock,
    };
    Kind kind = Kind::kStart;
    Ps at = 0;
    std::uint32_t queue = 0;  // the firmware's number: the scenario's, as there is one card
    std::uint64_t index = 0;  // kRetire: packets finished
    std::uint32_t port = 0, status = 0;
    std::uint32_t rule = 0, resource = 0;    // kDecision
    Ps used_ps = 0;                          // kEnd
    std::uint64_t semaphore = 0, value = 0;  // kSignal: address
    // kDeadlock: `queue` waits for the signal of `holder`; one of the edges of a cycle.
    std::uint32_t holder = 0, edge = 0, edges = 0;
};

struct History {
    std::vector<Happening> all;  // in order of time
    std::uint32_t copy_engines = 0, vector_ports = 0;
    std::uint64_t semaphores_at = 0;       // virtual address of semaphore 0
    std::vector<std::uint64_t> completed;  // of each queue
    std::vector<std::uint64_t> errors;
    std::vector<std::vector<Ps>> submitted;  // of each queue, of each packet
    bool done = false;
    std::vector<std::string> complaints;  // of the harness: what the firmware did to the chip
};

// A record: header and words. Nothing: a record that does not matter here.
bool decode(Ps at, const std::vector<std::uint64_t>& words, Happening& out);

// The scenario with the firmware's logic on the chip model of tests/unit/firmware, and with the real image on
// the card. One card only.
std::expected<History, std::string> run_native(const scenario::Scenario& scenario);
std::expected<History, std::string> run_on_card(const scenario::Scenario& scenario);
// With other numbers of the policy (orrery/fw/policy.h).
std::expected<History, std::string> run_on_card(
    const scenario::Scenario& scenario, const std::vector<std::pair<std::string, std::uint64_t>>& policy);

}  // namespace orrery::policy
