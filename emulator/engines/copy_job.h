// What a copy engine is asked for, whatever the layout of its descriptor (orrery/hw/engine.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <orrery/hw/engine.h>

#include "emulator/check/checked_memory.h"
#include "emulator/memory/peer.h"
#include "emulator/memory/reduction.h"

namespace orrery::emu {

// Words of SOC_ENGINE_DESC.
using DescriptorWords = std::array<std::uint64_t, 8>;

struct CopyJob {
    enum class Kind : std::uint8_t { kCopy, kFill, kReduce, kList, kTell };
    Kind kind = Kind::kCopy;
    std::uint32_t asid = 0;
    std::uint64_t total = 0;  // bytes

    // Which row: its number along each dimension.
    using Place = std::array<std::uint64_t, ORR_BOX_DIMENSIONS>;
    // One side of the rows; of a list's entry that is being copied: one row.
    struct Side {
        std::uint64_t base = 0;
        // From row to row along each dimension; all-ones where that leaves 64 bits.
        std::array<std::uint64_t, ORR_BOX_DIMENSIONS> stride{};
        std::uint64_t at(const Place& place) const {
            std::uint64_t va = base;
            for (std::size_t n = 0; n < place.size(); ++n)
                va += place[n] * stride[n];
            return va;
        }
    };
    Side src, dst;
    std::uint64_t row_bytes = 0;
    Place count{1, 1, 1, 1};  // rows along each dimension; the product fits in 64 bits
    std::uint64_t rows() const { return count[0] * count[1] * count[2] * count[3]; }
    // Row number `row`, below rows(), and back.
    Place place_of(std::uint64_t row) const;
    std::uint64_t row_of(const Place& place) const;

    std::uint64_t pattern = 0;
    std::uint32_t pattern_bytes = 0;

    ReduceLoop reduce = nullptr;
    LinkReduction how;                // the same, for a switch
    std::uint32_t element_bytes = 1;  // what may not be torn

    std::uint64_t list = 0;
    std::uint32_t entries = 0;

    Tell tell;

    // The last byte's address does not fit in 64 bits: it must not come back as a good one.
    bool wraps(const Side& side) const;
};

// Nothing: ORR_DONE_BAD_DESC. Says nothing of addresses.
std::optional<CopyJob> copy_job(const DescriptorWords& words);
// Of a descriptor that stood in memory, for the address space `asid`.
std::optional<CopyJob> long_copy_job(std::span<const std::uint64_t> words, std::uint32_t asid);

}  // namespace orrery::emu
