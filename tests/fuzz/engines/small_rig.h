// A small memory system whose page tables a fuzzer writes.
#pragma once

#include "tests/fuzz/engines/input.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {

// VRAM 1 MiB, host memory 64 KiB. Entries come from the input: any bits, or something close to sense. Once a
// run: engines may write to the tables, and then the rig must not follow them any more.
inline void fuzz_tables(Rig& rig, Input& input, std::uint64_t base) {
    const unsigned count = input.take<std::uint8_t>() % 24;
    for (unsigned i = 0; i < count; ++i) {
        const auto how = input.take<std::uint8_t>();
        const auto value = input.take<std::uint64_t>();
        const std::uint64_t va = base + (how & 15u) * ORR_PAGE_SIZE;
        const std::uint64_t page = value % 256 * ORR_PAGE_SIZE;
        const std::uint64_t rights = (value >> 8 & 7) << 2;
        switch (how >> 4) {
            case 0:
                *rig.entry(va, 0) = value;
                break;  // whatever it is
            case 1:
                *rig.entry(va, 1) = value;
                return;  // the tables below may be anywhere now
            case 2:
                *rig.entry(va, 2) = value;
                return;
            case 3:
                rig.map(va, ORR_PAGE_SIZE, ORR_TARGET_HOST, Rig::kHostBase + page % 0x20000, rights);
                break;
            case 4:
                rig.map(va, ORR_PAGE_SIZE, ORR_TARGET_PEER, page, rights, value >> 16 & 7);
                break;
            default:
                rig.map(va, ORR_PAGE_SIZE, ORR_TARGET_VRAM, page, rights);
                break;
        }
    }
}

}  // namespace orrery::emu::test
