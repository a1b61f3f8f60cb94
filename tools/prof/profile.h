// A profile that was recorded, as it is in memory.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/format.h"
#include "tools/text/result.h"

namespace orrery::prof {

// Texts are numbers of the process's `texts`.
struct Process {
    struct Range {
        Type type;
        RangeRecord record;
    };
    std::uint64_t pid = 0, parent = 0, begin_ns = 0;
    std::uint64_t lost = 0;
    bool ended = false;  // in order
    std::string command;
    std::vector<std::string> texts = {""};
    std::vector<CallRecord> calls;  // in the order in which they ended, as the next
    std::vector<Range> ranges;
    std::vector<WorkRecord> work;
    std::set<std::uint32_t> lost_work;  // devices of which some is not here

    // Of the file, so of anybody's: not for a terminal as it is.
    std::string_view text(std::uint32_t number) const { return texts[number]; }
};

struct Profile {
    std::vector<Process> processes;  // in the order in which they began
    std::uint64_t begin_ns = 0;      // the first moment in it
};

// Everything in it has been checked: texts are there, times are in order.
text::Result<Profile> read_profile(const std::string& file);
text::Result<Profile> parse_profile(std::string_view bytes);

}  // namespace orrery::prof
