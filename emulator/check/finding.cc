#include "emulator/check/finding.h"

#include <algorithm>

#include <fmt/format.h>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/mmu.h>

namespace orrery::emu {
namespace {

std::uint64_t number_of(AccessKind kind) {
    switch (kind) {
        case AccessKind::kStore:
            return ORR_CHECK_STORE;
        case AccessKind::kAtomic:
        case AccessKind::kAtomicLoad:
            return ORR_CHECK_ATOMIC;
        default:
            return ORR_CHECK_LOAD;
    }
}

const char* verb(AccessKind kind) {
    switch (kind) {
        case AccessKind::kStore:
            return "writes";
        case AccessKind::kAtomic:
            return "changes atomically";
        case AccessKind::kAtomicLoad:
            return "reads atomically";
        default:
            return "reads";
    }
}

std::uint64_t cause_of(const Finding& finding) {
    switch (finding.kind) {
        case FindingKind::kRace:
            return finding.beside ? ORR_TRAP_RACE_BESIDE : ORR_TRAP_RACE;
        case FindingKind::kOutside:
            return ORR_TRAP_OUTSIDE;
        case FindingKind::kBelowStack:
            return ORR_TRAP_BELOW_STACK;
        case FindingKind::kNeverWritten:
            return ORR_TRAP_NEVER_WRITTEN;
    }
    return ORR_TRAP_RACE;
}

std::uint64_t low(std::uint64_t value, unsigned bits) {
    return std::min(value, (std::uint64_t{1} << bits) - 1);
}

// What another launch runs may be further away than there are bits.
std::uint64_t offset(std::uint64_t pc, std::uint64_t entry) {
    const auto distance = static_cast<std::int64_t>(pc - entry);
    if (distance != static_cast<std::int32_t>(distance)) return ORR_CHECK_FAR;
    return static_cast<std::uint32_t>(distance);
}

std::string side(const Side& side, std::uint64_t entry) {
    return fmt::format("item {} of group {} {} at entry{:+#x}", side.item, side.group, verb(side.kind),
                       static_cast<std::int64_t>(side.pc - entry));
}

}  // namespace

FindingWords words_of(const Finding& finding, std::uint64_t findings, std::uint64_t entry) {
    FindingWords words;
    words.fault = cause_of(finding) | number_of(finding.first.kind) << 16 |
                  number_of(finding.second.kind) << 18 | low(finding.bytes, 8) << 20 |
                  std::uint64_t{finding.first.item} << 28 | low(finding.first.group, 26) << 38;
    words.detail = (finding.address & ((std::uint64_t{1} << 48) - 1)) | low(findings, 16) << 48;
    words.item = finding.second.group << ORR_DONE_ITEM_BITS | finding.second.item;
    words.other = offset(finding.second.pc, entry) | offset(finding.first.pc, entry) << 32;
    return words;
}

std::string to_string(const Finding& finding, std::uint64_t entry) {
    const std::string where = fmt::format("{} bytes at {:#x}", finding.bytes, finding.address);
    const bool in_card_memory = finding.address >> (ORR_VA_BITS - 1) == 0;
    switch (finding.kind) {
        case FindingKind::kRace:
            return fmt::format("race on {}: {}, {}{}", where, side(finding.second, entry),
                               finding.beside ? "in a launch beside it " : "", side(finding.first, entry));
        case FindingKind::kOutside:
            return fmt::format(
                "{} {}: {}", where,
                in_card_memory ? "in no allocation" : "of work-group memory that the launch did not ask for",
                side(finding.second, entry));
        case FindingKind::kBelowStack:
            return fmt::format("{} below the stack pointer: {}", where, side(finding.second, entry));
        case FindingKind::kNeverWritten:
            break;
    }
    return fmt::format("{} {} that were never written: {}", where,
                       in_card_memory ? "of an allocation" : "of the stack", side(finding.second, entry));
}

}  // namespace orrery::emu
