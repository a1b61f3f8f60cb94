// The records that the firmware has written to the fake chip's trace port.
#pragma once

#include <orrery/fw/trace.h>

#include <cstdint>
#include <vector>

#include "tests/unit/firmware/fake_soc.h"

namespace orrery::fw::test {

struct TraceRecord {
    std::uint32_t type, a, b;
    std::vector<std::uint64_t> words;
};

// All of a type, oldest first; ORR_TRACE_NONE: of all types.
inline std::vector<TraceRecord> trace_records(const FakeSoc& soc, std::uint32_t type = ORR_TRACE_NONE) {
    std::vector<TraceRecord> records;
    const auto& words = soc.trace_words;
    for (std::size_t at = 0; at < words.size(); at += 1 + ORR_TRACE_WORDS(words[at])) {
        const std::uint64_t header = words[at];
        if (type != ORR_TRACE_NONE && ORR_TRACE_TYPE(header) != type) continue;
        TraceRecord record{ORR_TRACE_TYPE(header), ORR_TRACE_A(header), ORR_TRACE_B(header), {}};
        for (std::size_t n = 1; n <= ORR_TRACE_WORDS(header) && at + n < words.size(); ++n)
            record.words.push_back(words[at + n]);
        records.push_back(std::move(record));
    }
    return records;
}

}  // namespace orrery::fw::test
