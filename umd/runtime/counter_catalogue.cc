#include "umd/runtime/counter_catalogue.h"

#include <orrery/hw/counters.h>

#include <algorithm>
#include <array>

namespace orrery::umd {
namespace {

// Above all numbers, so that nobody takes a counter for an index.
constexpr orrCounter_t kFirst = 0x1000;

#define ORR_NAMED(number, NAME, name, unit) {name, unit, nullptr},
constexpr CatalogueEntry kNamed[] = {ORR_COUNTER_LIST(ORR_NAMED)};
#undef ORR_NAMED

constexpr const char* meaning(std::size_t number) {
    switch (number) {
        case ORR_CTR_CORE_INSTRUCTIONS:
            return "Instructions of the firmware.";
        case ORR_CTR_CORE_BUSY_PS:
            return "Model time in which the control core did not sleep.";
        case ORR_CTR_CORE_INTERRUPTS:
            return "Interrupts that the firmware took.";
        case ORR_CTR_DOORBELLS:
            return "Doorbells that the card found rung.";
        case ORR_CTR_KICKS:
            return "Writes to kick pages, which wake the card.";
        case ORR_CTR_HOST_INTERRUPTS:
            return "Interrupts sent to the host.";
        case ORR_CTR_GUEST_ERRORS:
            return "Accesses of the host to registers that made no sense.";
        case ORR_CTR_UNIMPLEMENTED:
            return "Accesses to what the card does not have.";
        case ORR_CTR_MMU_TLB_HITS:
            return "Translations found in the TLB.";
        case ORR_CTR_MMU_TLB_MISSES:
            return "Translations that walked the page tables.";
        case ORR_CTR_MMU_FAULTS:
            return "Translations that failed.";
        case ORR_CTR_COPY_JOBS:
            return "Descriptors that the copy engines finished.";
        case ORR_CTR_COPY_BYTES:
            return "Bytes that the copy engines moved or filled.";
        case ORR_CTR_COPY_BUSY_PS:
            return "Model time in which copy engines worked, the sum over the engines.";
        case ORR_CTR_VECTOR_JOBS:
            return "Kernels that the vector cores finished.";
        case ORR_CTR_VECTOR_GROUPS:
            return "Work-groups that the vector cores ran.";
        case ORR_CTR_VECTOR_ITEMS:
            return "Work-items that the vector cores ran.";
        case ORR_CTR_VECTOR_INSTRUCTIONS:
            return "Instructions of kernels.";
        case ORR_CTR_VECTOR_BUSY_PS:
            return "Model time in which vector cores worked, the sum over the cores.";
        case ORR_CTR_SEMAPHORE_SIGNALS:
            return "Signals that the semaphore unit carried out.";
        case ORR_CTR_LINK_TX_MESSAGES:
            return "Messages sent over links.";
        case ORR_CTR_LINK_TX_BYTES:
            return "Payload sent over links.";
        case ORR_CTR_LINK_RX_MESSAGES:
            return "Messages received over links.";
        case ORR_CTR_LINK_RX_BYTES:
            return "Payload received over links.";
        case ORR_CTR_LINK_DENIED:
            return "Messages of other cards to memory that was not granted to them.";
        case ORR_CTR_LINK_STRAGGLERS:
            return "Messages whose model time was in this card's past.";
        case ORR_CTR_RESETS:
            return "Resets of the card since power-on.";
        case ORR_CTR_DMA_MAPS:
            return "Ranges of host memory that were made visible to the card.";
        case ORR_CTR_CORE_STALL_PS:
            return "Model time in which the control core waited for memory or engines.";
        case ORR_CTR_SLOT_PACKETS:
            return "Packets that went from a ring slot straight to an engine.";
        case ORR_CTR_PREEMPTIONS:
            return "Kernels that were interrupted for others.";
        case ORR_CTR_SAVED_BYTES:
            return "Bytes of state saved for interrupted kernels.";
        case ORR_CTR_VRAM_BYTES:
            return "Bytes that went into and out of the card's memory, as its bandwidth is charged for them.";
        case ORR_CTR_CORE_RESTARTS:
            return "Restarts of the control core alone.";
        case ORR_CTR_VECTOR_AHEAD:
            return "Instructions of kernels that host threads computed ahead of their model time.";
        case ORR_CTR_LINK_FORWARDED:
            return "Messages between other cards that this card passed on.";
        case ORR_CTR_LINK_DROPPED:
            return "Messages between other cards that this card could not pass on.";
        case ORR_CTR_BARRIER_RELEASES:
            return "Rounds of barriers of several cards that this card saw completed.";
        case ORR_CTR_BARRIER_FAILURES:
            return "Barriers of several cards that failed while this card was a member.";
        case ORR_CTR_BARRIER_DENIED:
            return "Messages for barriers from cards that are no members or had another key.";
        default:
            return nullptr;
    }
}

constexpr auto kCatalogue = [] {
    std::array<CatalogueEntry, ORR_COUNTER_COUNT> entries{};
    for (std::size_t i = 0; i < entries.size(); ++i)
        entries[i] = {kNamed[i].name, kNamed[i].unit, meaning(i)};
    return entries;
}();
static_assert(std::ranges::none_of(kCatalogue,
                                   [](const CatalogueEntry& entry) { return entry.meaning == nullptr; }));

}  // namespace

std::size_t catalogued(std::size_t counters) {
    return std::min(counters, kCatalogue.size());
}

const CatalogueEntry& catalogue_entry(std::size_t number) {
    return kCatalogue.at(number);
}

std::optional<std::size_t> find_in_catalogue(std::string_view name) {
    const auto found =
        std::ranges::find_if(kCatalogue, [&](const CatalogueEntry& entry) { return name == entry.name; });
    if (found == kCatalogue.end()) return std::nullopt;
    return static_cast<std::size_t>(found - kCatalogue.begin());
}

orrCounter_t counter_of(std::size_t number) {
    return kFirst + static_cast<orrCounter_t>(number);
}

std::optional<std::size_t> number_of(orrCounter_t counter) {
    if (counter < kFirst || counter - kFirst >= kCatalogue.size()) return std::nullopt;
    return counter - kFirst;
}

}  // namespace orrery::umd
