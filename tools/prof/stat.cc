#include <algorithm>
#include <map>
#include <utility>

#include "tools/prof/show.h"
#include "tools/prof/spans.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;

struct Sum {
    std::uint64_t count = 0, errors = 0, total_ns = 0, longest_ns = 0;
    void add(std::uint64_t ns, bool error) {
        ++count;
        errors += error ? 1 : 0;
        total_ns += ns;
        longest_ns = std::max(longest_ns, ns);
    }
};
using Sums = std::map<std::string, Sum>;

// Names are of anybody's file: a terminal gets no control characters, and a line no end.
std::string plain(std::string_view text) {
    std::string good(text);
    for (char& c : good) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return good;
}

std::string time(std::uint64_t ns) {
    return text::duration(ns > text::kNever / 1000 ? text::kNever : ns * 1000);
}

std::string table(const Sums& sums, const char* title, bool errors) {
    std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
    std::ranges::sort(rows, std::greater{},
                      [](const auto& row) { return std::pair(row.second.total_ns, row.first); });
    std::vector<text::Table::Head> heads = {{title},
                                            {"count", Align::kRight},
                                            {"total", Align::kRight},
                                            {"mean", Align::kRight},
                                            {"longest", Align::kRight}};
    if (errors) heads.push_back({"errors", Align::kRight});
    text::Table shown(std::move(heads));
    for (const auto& [name, sum] : rows) {
        std::vector<std::string> cells = {name, text::grouped(sum.count), time(sum.total_ns),
                                          time(sum.total_ns / sum.count), time(sum.longest_ns)};
        if (errors) cells.push_back(sum.errors == 0 ? "" : text::grouped(sum.errors));
        shown.row(std::move(cells));
    }
    return shown.text("  ");
}

std::string process_text(const Process& process) {
    Sums calls, ranges, marks;
    for (const CallRecord& call : process.calls)
        calls[plain(process.text(call.head.text))].add(call.end_ns - call.begin_ns, call.error != 0);
    const auto name = [&](std::uint32_t text, std::uint32_t domain) {
        const std::string own = plain(process.text(text));
        return domain == 0 ? own : plain(process.text(domain)) + ": " + own;
    };
    for (const Span& span : spans_of(process))
        ranges[name(span.text, span.domain)].add(span.end_ns - span.begin_ns, false);
    std::size_t moments = 0;
    for (const auto& range : process.ranges)
        moments += range.type == Type::kMark ? 1 : 0;
    std::string text = fmt::format("process {}: {}\n", process.pid, plain(process.command));
    text += table(calls, "call", true) + table(ranges, "range", false);
    if (calls.empty() && ranges.empty()) text += "  nothing was recorded\n";
    if (moments > 0) text += fmt::format("  markers: {}\n", text::grouped(moments));
    if (process.lost > 0)
        text += fmt::format("  {} records were lost: record with a larger --limit\n",
                            text::grouped(process.lost));
    if (!process.ended) text += "  it did not end by exit(): a call in which it was is not here\n";
    return text;
}

}  // namespace

std::string stat_text(const Profile& profile) {
    std::string text;
    for (const Process& process : profile.processes)
        text += (text.empty() ? "" : "\n") + process_text(process);
    return text;
}

}  // namespace orrery::prof
