#include "umd/samples/histogram/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "umd/samples/support/sample.h"

namespace {

using orrery::sample::time_text;

std::string name_of(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

// Enough of JSON for a path.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out += c;
        }
    }
    return out + "\"";
}

}  // namespace

void print_table(const std::vector<FileResult>& results) {
    std::size_t width = std::string_view("file").size();  // of the column of names
    for (const FileResult& r : results)
        width = std::max(width, name_of(r.path).size());
    const char* row = "{:<{}} {:>11} {:>6} {:>10} {:>10} {:>10} {:>8}  {}\n";
    fmt::print("\nHow often does each byte value occur? Counted by the cards, checked by the CPU.\n\n");
    fmt::print(fmt::runtime(row), "file", width, "bytes", "cards", "work-items", "host time", "card time",
               "card GB/s", "correct");
    for (const FileResult& r : results) {
        std::uint64_t items = 0;
        for (const CardTimes& card : r.run.cards)
            items += card.work_items;
        fmt::print(fmt::runtime(row), name_of(r.path), width, r.bytes, r.run.cards.size(), items,
                   time_text(r.run.host_ns), time_text(r.run.model_ns),
                   fmt::format("{:.2f}", static_cast<double>(r.bytes) / r.run.model_ns),
                   r.correct ? "yes" : "NO: " + r.difference);
    }
    fmt::print("\ncard by card, in the card's own (modelled) time:\n");
    for (const FileResult& r : results) {
        for (const CardTimes& card : r.run.cards) {
            fmt::print("  {:<{}} card {}: {:>11} bytes, copy {:>9}, count {:>9}", name_of(r.path), width,
                       card.device, card.bytes, time_text(card.copy_model_ns),
                       time_text(card.count_model_ns));
            if (card.merge_model_ns > 0)
                fmt::print(", merge and result {:>9}", time_text(card.merge_model_ns));
            fmt::print("\n");
        }
    }
    fmt::print(
        "\n\"host time\" is what this machine needed to simulate it, \"card time\" what the modelled card "
        "would need.\n");
    const auto any_card = [&](auto&& which) {
        return std::ranges::any_of(results, [&](const FileResult& r) {
            return std::any_of(r.run.cards.begin() + (r.run.cards.empty() ? 0 : 1), r.run.cards.end(), which);
        });
    };
    const bool by_host = any_card([](const CardTimes& card) { return card.by_host; });
    const bool linked = any_card([](const CardTimes& card) { return !card.by_host; });
    if (linked) {
        fmt::print(
            "With several cards the partial counts crossed the link from card to card, behind a semaphore, "
            "with no host in between.\n");
    }
    if (by_host)
        fmt::print("No links lead from some to the first: their counts went through the host's memory.\n");
}

void print_json(const std::vector<FileResult>& results) {
    fmt::print("{{\"files\": [");
    const char* comma = "";
    for (const FileResult& r : results) {
        fmt::print(
            "{}\n  {{\"path\": {}, \"bytes\": {}, \"correct\": {}, \"host_ns\": {:.0f}, \"model_ns\": "
            "{:.3f}, "
            "\"cpu_ns\": {:.0f},\n   \"cards\": [",
            comma, quoted(r.path), r.bytes, r.correct, r.run.host_ns, r.run.model_ns, r.cpu_ns);
        comma = "";
        for (const CardTimes& card : r.run.cards) {
            fmt::print(
                "{}{{\"device\": {}, \"bytes\": {}, \"work_items\": {}, \"copy_model_ns\": {:.3f}, "
                "\"count_model_ns\": {:.3f}, \"merge_model_ns\": {:.3f}}}",
                comma, card.device, card.bytes, card.work_items, card.copy_model_ns, card.count_model_ns,
                card.merge_model_ns);
            comma = ", ";
        }
        fmt::print("],\n   \"bins\": [{}]}}", fmt::join(r.run.bins, ", "));
        comma = ",";
    }
    fmt::print("\n]}}\n");
}
