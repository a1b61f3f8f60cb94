// What a copy engine is asked for, whatever the layout of its descriptor (orrery/hw/engine.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <orrery/hw/engine.h>

#include "emulator/engines/reduction.h"

namespace orrery::emu {

// Words of SOC_ENGINE_DESC.
using DescriptorWords = std::array<std::uint64_t, 8>;

struct CopyJob {
    enum class Kind : std::uint8_t { kCopy, kFill, kReduce, kList };
    Kind kind = Kind::kCopy;
    std::uint32_t asid = 0;
    std::uint64_t total = 0;  // bytes

    // One side of the rows; of a list's entry that is being copied: one row.
    struct Side {
        std::uint64_t base = 0, pitch = 0;
        std::uint64_t height = 0;  // rows from plane to plane
        std::uint64_t at(std::uint64_t plane, std::uint64_t row) const {
            return base + (plane * height + row) * pitch;
        }
    };
    Side src, dst;
    std::uint64_t row_bytes = 0, rows = 1, planes = 1;

    std::uint64_t pattern = 0;
    std::uint32_t pattern_bytes = 0;

    ReduceLoop reduce = nullptr;
    std::uint32_t element_bytes = 1;  // what may not be torn

    std::uint64_t list = 0;
    std::uint32_t entries = 0;

    // The last byte's address does not fit in 64 bits: it must not come back as a good one.
    bool wraps(const Side& side) const;
};

// Nothing: ORR_DONE_BAD_DESC. Says nothing of addresses.
std::optional<CopyJob> copy_job(const DescriptorWords& words);

}  // namespace orrery::emu
