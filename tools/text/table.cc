#include "tools/text/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::text {
namespace {

// In characters: names may be UTF-8.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table::text(std::string_view indent) const {
    if (rows_.empty()) return "";
    std::vector<std::size_t> widths;
    widths.reserve(heads_.size());
    for (const Head& head : heads_)
        widths.push_back(width_of(head.title));
    for (const auto& row : rows_)
        for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
            widths[i] = std::max(widths[i], width_of(row[i]));
    std::string text;
    const auto line = [&](auto&& cell) {
        std::string out(indent);
        for (std::size_t i = 0; i < heads_.size(); ++i) {
            const std::string_view content = cell(i);
            const std::string pad(widths[i] - width_of(content), ' ');
            if (i > 0) out += "  ";
            if (heads_[i].align == Align::kRight) out += pad;
            out += content;
            if (heads_[i].align == Align::kLeft) out += pad;
        }
        out.erase(out.find_last_not_of(' ') + 1);
        text += out + '\n';
    };
    const bool titled = std::ranges::any_of(heads_, [](const Head& head) { return !head.title.empty(); });
    if (titled) line([&](std::size_t i) { return heads_[i].title; });
    for (const auto& row : rows_)
        line([&](std::size_t i) { return i < row.size() ? std::string_view(row[i]) : std::string_view(); });
    return text;
}

std::string Style::wrap(std::string_view code, std::string_view text) const {
    if (!colour) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace orrery::text
