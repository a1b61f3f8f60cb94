#include "tools/prof/pc_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace orrery::prof {

const char* name_of_stall(std::uint32_t stall) {
    static constexpr std::array<const char*, kPcStalls> kNames{"computing", "latency", "bandwidth", "link",
                                                               "launch",    "barrier", "pause"};
    return stall < kNames.size() ? kNames.at(stall) : "unknown";
}

std::vector<PcLine> pc_lines(const Activity& activity, std::uint32_t device) {
    // Texts of a process are numbers, and the same one has one.
    using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>;
    std::map<Place, PcCounts> counts;
    for (const PcSampleRecord& sample : activity.process->pc_samples) {
        if (sample.device != device) continue;
        PcCounts& own = counts[{sample.head.text, sample.function, sample.source,
                                sample.source == 0 ? sample.offset : 0}];
        own.at(sample.stall < kPcStalls ? sample.stall : 0) += count_of(sample);
    }
    std::vector<PcLine> lines;
    for (const auto& [place, own] : counts) {
        const auto& [kernel, function, source, offset] = place;
        PcLine line{.kernel = activity.text(kernel),
                    .function = activity.text(function),
                    .source = activity.text(source),
                    .offset = offset,
                    .counts = own};
        for (const std::uint64_t count : own)
            line.total += count;
        lines.push_back(line);
    }
    std::ranges::sort(lines, [](const PcLine& a, const PcLine& b) {
        return std::tie(b.total, a.kernel, a.source, a.offset, a.function) <
               std::tie(a.total, b.kernel, b.source, b.offset, b.function);
    });
    return lines;
}

std::string stalls_text(const PcLine& line) {
    std::array<std::uint32_t, kPcStalls> order{};
    for (std::uint32_t i = 0; i < order.size(); ++i)
        order.at(i) = i;
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(line.counts.at(b), a) < std::pair(line.counts.at(a), b);
    });
    std::string text;
    for (const std::uint32_t i : order) {
        if (line.counts.at(i) == 0) break;
        text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name_of_stall(i),
                            100.0 * static_cast<double>(line.counts.at(i)) / static_cast<double>(line.total));
    }
    return text;
}

}  // namespace orrery::prof
