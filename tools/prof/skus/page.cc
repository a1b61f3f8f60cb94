// A comparison as one page for a browser, without scripts and without a network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/prof/show.h"
#include "tools/prof/skus/compare.h"
#include "tools/prof/skus/words.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

// The colours are those of the page of a profile.
constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Cards compared</title>
<style>
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f4f6f9; --line: #d5dbe3; --text: #17202b; --quiet: #55606e;
  --s0: #0b5cad; --s1: #b45f06; --s2: #1e6b3a; --s3: #7b3fa0; --s4: #8a2b3c; --s5: #3a6f78;
  font: 14px/1.45 system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12171e; --raised: #1b222c; --line: #323c4a; --text: #e6ebf2; --quiet: #a3afbf;
    --s0: #76b5f5; --s1: #f0b95a; --s2: #7fd69c; --s3: #cfa3ec; --s4: #ff9aa8; --s5: #8fd0da;
  }
}
html, body { margin: 0; background: var(--ground); color: var(--text); }
header { padding: 8px 16px; background: var(--raised); border-bottom: 1px solid var(--line); }
h1 { font-size: 15px; margin: 0; }
main { padding: 4px 16px 32px; max-width: 1000px; }
h2 { font-size: 16px; margin: 24px 0 8px; }
p { margin: 4px 0; }
.quiet { color: var(--quiet); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
td.number, th.number { text-align: right; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--text); font-size: 12px; }
svg .quiet { fill: var(--quiet); }
svg line { stroke: var(--line); }
.s0 { fill: var(--s0); } .s1 { fill: var(--s1); } .s2 { fill: var(--s2); }
.s3 { fill: var(--s3); } .s4 { fill: var(--s4); } .s5 { fill: var(--s5); }
bdi { unicode-bidi: isolate; overflow-wrap: anywhere; }
</style>
</head>
<body>
)";

// Of a name that is anybody's: text and nothing else.
std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : valid_utf8(plain(text))) {
        switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            case '\'':
                safe += "&#39;";
                break;
            default:
                safe += c;
        }
    }
    return safe;
}

std::string name_of(const SkuRun& run) {
    return "<bdi>" + escaped(run.name) + "</bdi>";
}

template <typename Cell>
std::string table(const Comparison& all, bool numbers, Cell&& cell) {
    const char* const kind = numbers ? " class=\"number\"" : "";
    std::string html = "<div class=\"wide\"><table><thead><tr><th>class</th>";
    for (const SkuRun& run : all.skus)
        html += fmt::format("<th{}>{}</th>", kind, name_of(run));
    html += "</tr></thead><tbody>\n";
    for (std::size_t i = 0; i < work_classes().size(); ++i) {
        html += fmt::format("<tr><td>{}</td>", escaped(work_classes()[i].name));
        for (std::size_t sku = 0; sku < all.skus.size(); ++sku) {
            const bool measured = all.skus[sku].measured[i].ps != 0;
            html += fmt::format("<td{}>{}</td>", kind, measured ? escaped(cell(sku, i)) : "-");
        }
        html += "</tr>\n";
    }
    return html + "</tbody></table></div>\n";
}

// Bars on a logarithmic scale from the nearest powers of ten below and above all values; 0: no bar.
template <typename Value, typename Label>
std::string bars(const Comparison& all, std::string_view what, Value&& value, Label&& label) {
    constexpr double kLeft = 90, kWidth = 620, kBar = 14, kBetween = 14;
    double least = 1e300, most = 0;
    for (std::size_t i = 0; i < work_classes().size(); ++i) {
        for (std::size_t sku = 0; sku < all.skus.size(); ++sku) {
            const double one = value(sku, i);
            if (!(one > 0)) continue;
            least = std::min(least, one);
            most = std::max(most, one);
        }
    }
    if (!(most > 0)) return "<p>Nothing was measured.</p>\n";
    const double first = std::floor(std::log10(least) - 1e-9),
                 last = std::max(std::ceil(std::log10(most)), first + 1);
    const auto x = [&](double of) { return kLeft + kWidth * (std::log10(of) - first) / (last - first); };
    const double rows = kBar * static_cast<double>(all.skus.size()) + kBetween;
    const double height = 24 + rows * static_cast<double>(work_classes().size());
    std::string svg = fmt::format("<svg viewBox=\"0 0 860 {:.0f}\" role=\"img\" aria-label=\"{}\">\n", height,
                                  escaped(what));
    for (int power = static_cast<int>(first); power <= static_cast<int>(last); ++power) {
        const double at = x(std::pow(10, power));
        svg += fmt::format(
            "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"16\" y2=\"{1:.0f}\"/>"
            "<text class=\"quiet\" x=\"{0:.1f}\" y=\"11\" text-anchor=\"middle\">{2}</text>\n",
            at, height, escaped(label(std::pow(10, power))));
    }
    for (std::size_t i = 0; i < work_classes().size(); ++i) {
        double y = 24 + rows * static_cast<double>(i);
        svg += fmt::format("<text x=\"0\" y=\"{:.1f}\">{}</text>\n", y + rows / 2 - 2,
                           escaped(work_classes()[i].name));
        for (std::size_t sku = 0; sku < all.skus.size(); ++sku, y += kBar) {
            const double one = value(sku, i);
            if (!(one > 0)) continue;
            svg += fmt::format(
                "<rect class=\"s{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\"/>"
                "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                sku % 6, kLeft, y, std::max(1.0, x(one) - kLeft), kBar - 2, x(one) + 4, y + 11,
                escaped(label(one)));
        }
    }
    return svg + "</svg>\n";
}

std::string legend(const Comparison& all) {
    std::string html = "<p>";
    for (std::size_t sku = 0; sku < all.skus.size(); ++sku) {
        html += fmt::format(
            "<svg viewBox=\"0 0 12 12\" style=\"display:inline-block;width:12px\" aria-hidden=\"true\">"
            "<rect class=\"s{}\" width=\"12\" height=\"12\"/></svg> {} ({}) &nbsp; ",
            sku % 6, name_of(all.skus[sku]), escaped(all.skus[sku].card));
    }
    return html + "</p>\n";
}

}  // namespace

std::string comparison_page(const Comparison& all) {
    const std::string base = name_of(all.skus[0]);
    std::string html = kHead;
    html += fmt::format("<header><h1>Cards compared with {}</h1></header>\n<main>\n{}", base, legend(all));
    for (const std::string& line : left_out_lines(all))
        html += fmt::format("<p><bdi>{}</bdi></p>\n", escaped(line));
    html += fmt::format(
        "<h2>Throughput, as a multiple of {}</h2>\n"
        "<p class=\"quiet\">Model time of the same work{}; a logarithmic scale.</p>\n",
        base, all.quick ? " (--quick)" : "");
    html += bars(
        all, "throughput", [&](std::size_t sku, std::size_t i) { return all.throughput(sku, i); },
        [](double times) { return times_text(times); });
    html += table(all, true, [&](std::size_t sku, std::size_t i) {
        const Measured& one = all.skus[sku].measured[i];
        const std::string rate = rate_text(i, one).value_or("rate not known");
        return text::duration(one.ps) + (rate.empty() ? "" : ", " + rate);
    });
    html +=
        "<h2>What limits it most</h2>\n<p class=\"quiet\">And for how much of its time, by the rules of "
        "orrery-prof explain.</p>\n";
    html += table(all, false,
                  [&](std::size_t sku, std::size_t i) { return limit_text(all.skus[sku].measured[i]); });
    html +=
        "<h2>Energy</h2>\n<p class=\"quiet\">The model's estimate: what cards counted times the figures of "
        "their SKU, and its static power for that time; a logarithmic scale. No product was measured.</p>\n";
    const auto energy = [&](std::size_t sku, std::size_t i) -> const std::optional<Energy>& {
        return all.skus[sku].measured[i].energy;
    };
    html += bars(
        all, "energy",
        [&](std::size_t sku, std::size_t i) { return energy(sku, i) ? energy(sku, i)->all_j() : 0.0; },
        [](double joules) { return joules_text(joules); });
    html += table(all, true, [&](std::size_t sku, std::size_t i) {
        const auto& one = energy(sku, i);
        if (!one) return std::string("not known");
        std::string parts;
        for (const auto& [name, joules] : {std::pair("static", one->static_j),
                                           {"cores", one->compute_j},
                                           {"VRAM", one->vram_j},
                                           {"PCIe", one->host_j},
                                           {"links", one->link_j}}) {
            if (joules > 0 && joules >= one->all_j() / 1000)
                parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, joules_text(joules));
        }
        return joules_text(one->all_j()) + (parts.empty() ? "" : ": " + parts);
    });
    html += fmt::format(
        "<h2>Cards of each for one of {}</h2>\n<p class=\"quiet\">Of work that is all of this class "
        "and spreads over cards without loss: a ratio of throughputs, and no more.</p>\n",
        base);
    html += table(all, true, [&](std::size_t sku, std::size_t i) {
        const double times = all.throughput(sku, i);
        return times > 0 ? fmt::format("{:.3g}", 1 / times) : std::string("-");
    });
    html += "<h2>Classes</h2>\n<table><tbody>\n";
    for (const WorkClass& one : work_classes())
        html += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(one.name), escaped(one.what));
    return html + "</tbody></table>\n</main>\n</body>\n</html>\n";
}

}  // namespace orrery::prof
