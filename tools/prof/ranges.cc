#include "tools/prof/ranges.h"

#include <algorithm>
#include <utility>

#include "tools/prof/analysis.h"

namespace orrery::prof {

RangeTree::RangeTree(const Activity& activity) : activity_(activity), parents_(activity.spans.size(), kNone) {
    for (std::uint32_t i = 0; i < activity.spans.size(); ++i) {
        const Span& span = activity.spans[i];
        auto& track = tracks_[span.thread][span.domain];
        // Ranges of a thread and domain are a stack: what began last and has not ended is around it.
        std::uint32_t around = track.empty() ? kNone : track.back();
        while (around != kNone && activity.spans[around].end_ns < span.begin_ns)
            around = parents_[around];
        parents_[i] = around;
        track.push_back(i);
    }
}

std::vector<std::uint32_t> RangeTree::innermost(const Work& one) const {
    std::uint32_t thread = one.record->thread;
    std::uint64_t ns = one.record->submitted_ns;
    if (one.call != kNone) {
        const CallRecord& call = activity_.process->calls[one.call];
        thread = call.thread;
        ns = call.begin_ns;
    }
    std::vector<std::uint32_t> all;
    const auto tracks = tracks_.find(thread);
    if (tracks == tracks_.end()) return all;
    for (const auto& [domain, track] : tracks->second) {
        const auto behind = std::ranges::upper_bound(
            track, ns, {}, [&](std::uint32_t span) { return activity_.spans[span].begin_ns; });
        std::uint32_t span = behind == track.begin() ? kNone : *std::prev(behind);
        while (span != kNone && activity_.spans[span].end_ns < ns)
            span = parents_[span];
        if (span != kNone) all.push_back(span);
    }
    return all;
}

std::vector<WorkSums> RangeTree::sums() const {
    std::vector<WorkSums> all(activity_.spans.size());
    for (const Work& one : activity_.work) {
        for (const std::uint32_t span : innermost(one))
            all[span].add(one);
    }
    // What lies within another one began after it.
    for (std::size_t i = all.size(); i-- > 0;) {
        if (parents_[i] != kNone) all[parents_[i]].add(all[i]);
    }
    return all;
}

std::vector<NamedRange> named_ranges(const Activity& activity) {
    const RangeTree tree(activity);
    const std::vector<WorkSums> sums = tree.sums();
    std::map<std::pair<std::uint32_t, std::uint32_t>, NamedRange> named;  // domain and text
    for (std::uint32_t i = 0; i < sums.size(); ++i) {
        const Span& span = activity.spans[i];
        std::uint32_t around = tree.parent(i);
        while (around != kNone && activity.spans[around].text != span.text)
            around = tree.parent(around);
        if (around != kNone) continue;
        NamedRange& one = named[{span.domain, span.text}];
        ++one.count;
        one.host_ns += span.end_ns - span.begin_ns;
        one.sums.add(sums[i]);
    }
    std::vector<NamedRange> rows;
    for (auto& [key, one] : named) {
        if (one.sums.work == 0) continue;
        const auto [domain, text] = key;
        one.name = domain == 0 ? std::string() : std::string(activity.text(domain)) + ": ";
        one.name += activity.text(text);
        rows.push_back(std::move(one));
    }
    largest_first(rows, [](const NamedRange& row) { return row.sums.kernel_ps + row.sums.copy_ps; });
    return rows;
}

}  // namespace orrery::prof
