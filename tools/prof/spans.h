// Ranges as spans with a begin and an end.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tools/prof/profile.h"

namespace orrery::prof {

struct Span {
    std::uint32_t text, domain, thread;
    std::uint64_t begin_ns, end_ns, correlation, external;
    bool open;  // it had not ended where the profile ends
};

// In the order in which they began. The end of one whose beginning is not in the profile is left out.
inline std::vector<Span> spans_of(const Process& process) {
    std::vector<Span> spans;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> open;
    std::uint64_t last = process.begin_ns;
    for (const CallRecord& call : process.calls)
        last = std::max(last, call.end_ns);
    for (const auto& [type, range] : process.ranges) {
        last = std::max(last, range.ns);
        auto& stack = open[{range.thread, range.domain}];
        if (type == Type::kRangeBegin) {
            stack.push_back(spans.size());
            spans.push_back({range.head.text, range.domain, range.thread, range.ns, range.ns,
                             range.correlation, range.external, true});
        } else if (type == Type::kRangeEnd && !stack.empty()) {
            Span& span = spans[stack.back()];
            stack.pop_back();
            span.end_ns = std::max(span.begin_ns, range.ns);
            span.open = false;
        }
    }
    for (Span& span : spans) {
        if (span.open) span.end_ns = std::max(span.begin_ns, last);
    }
    return spans;
}

}  // namespace orrery::prof
