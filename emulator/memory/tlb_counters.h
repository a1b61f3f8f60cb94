// Counters of what was looked up in an engine's tags of pages.
#pragma once

#include "emulator/base/tlb_tags.h"
#include "emulator/probes/counters.h"

namespace orrery::emu {

static_assert(ORR_CTR_VECTOR_TLB_MISSES == ORR_CTR_VECTOR_TLB_LOOKUPS + 1 &&
              ORR_CTR_VECTOR_TLB_WALKED == ORR_CTR_VECTOR_TLB_LOOKUPS + 2);
static_assert(ORR_CTR_COPY_TLB_MISSES == ORR_CTR_COPY_TLB_LOOKUPS + 1 &&
              ORR_CTR_COPY_TLB_WALKED == ORR_CTR_COPY_TLB_LOOKUPS + 2);
static_assert(ORR_CTR_CORE_TLB_MISSES == ORR_CTR_CORE_TLB_LOOKUPS + 1 &&
              ORR_CTR_CORE_TLB_WALKED == ORR_CTR_CORE_TLB_LOOKUPS + 2);

// `all`: the counter of all lookups, which those of the missed ones and of entries follow.
inline void count_lookups(Counters& counters, orr_counter all, const TlbLookups& lookups) {
    if (lookups.all != 0) counters.add(all, lookups.all);
    if (lookups.missed == 0) return;
    counters.add(static_cast<orr_counter>(all + 1), lookups.missed);
    counters.add(static_cast<orr_counter>(all + 2), lookups.walked);
}

}  // namespace orrery::emu
